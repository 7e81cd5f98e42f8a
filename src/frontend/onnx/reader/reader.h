// SPDX-License-Identifier: Apache-2.0
/// \file reader.h
/// From bytes to a checked `Model`. The reader rejects lengths beyond the bytes that remain, nests at most 100 deep (as
/// protobuf does), and allocates at most 64 times the input and 64 MiB.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "proto.h"

namespace baton::onnx {

/// Messages within messages; protobuf's own limit, so no ONNX file is nested deeper.
constexpr int kMaxNesting = 100;

/// Reads the model in `bytes`.
/// \param label What messages call it: a path, or "<model>".
/// \throws CompileError with byte offset and field path where the bytes are not an ONNX model.
BATON_DLL std::shared_ptr<Model> ReadModel(std::shared_ptr<const Bytes> bytes, const std::string& label);

/// Reads and checks the model file at `path`; external data is beneath its folder.
BATON_DLL std::shared_ptr<Model> LoadModel(const std::string& path);

/// Reads and checks a serialized model. `folder` has the external data; empty: external data is refused.
BATON_DLL std::shared_ptr<Model> ParseModel(std::string_view text, const std::string& folder = "");

/// Reads one serialized TensorProto (the data files of ONNX's test suite).
BATON_DLL std::shared_ptr<Model> ReadTensorFile(std::shared_ptr<const Bytes> bytes, const std::string& label);

/// Reads one serialized NodeProto.
BATON_DLL std::shared_ptr<Model> ReadNode(std::shared_ptr<const Bytes> bytes, const std::string& label);

/// Number of elements of `t`. \throws CompileError on a negative length or a product above 2^62 bits.
BATON_DLL int64_t NumElements(const Tensor& t);

/// The elements of a numeric tensor, little-endian, back to back, one element in (bits + 7) / 8 bytes: types under a
/// byte are unpacked to a byte each, signed ones with their sign extended. A view into the file where it has them so
/// (`keep` then holds the file), else decoded into `scratch`. The size is exactly what the shape asks for.
BATON_DLL std::string_view TensorBytes(const Model& model, const Tensor& t, std::string* scratch,
                                       std::shared_ptr<const Bytes>* keep);

/// The elements of a STRING tensor; views into the file.
BATON_DLL std::vector<std::string_view> TensorStrings(const Tensor& t);

/// Int64 elements of an INT32 or INT64 tensor.
BATON_DLL std::vector<int64_t> TensorInts(const Model& model, const Tensor& t);

}  // namespace baton::onnx
