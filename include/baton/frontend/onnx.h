// SPDX-License-Identifier: Apache-2.0
/// \file onnx.h
/// From an ONNX model to a Relay module.
#pragma once

#include <baton/ir/module.h>
#include <baton/runtime/ndarray.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace baton::frontend {

/// The type of an input, where the model leaves it open.
struct OnnxInput {
  enum Kind { kTensor, kSequence, kNothing };
  std::string name;
  Kind kind = kTensor;
  /// Shape of the tensor, or of each element of the sequence; -1 for a length that stays open.
  std::vector<std::vector<int64_t>> shapes;
  /// For a tensor: names of lengths that stay open, empty where there is none; or nothing.
  std::vector<std::string> names;
};

/// A value of a node: its name, and its type as far as it is known (-1: an open length).
struct OnnxValue {
  std::string name, dtype;
  std::vector<int64_t> shape;
  bool ranked = false;
};
/// A node of a model and the result of its import, for reports.
struct OnnxNode {
  std::string label;  ///< what messages call it
  std::string domain, op;
  int64_t version = 0;  ///< of the operator set that defined the operator; 0: unknown
  std::vector<OnnxValue> inputs, outputs;
  std::vector<std::string> calls;  ///< operators of Relay that it became; none where values are known
  std::string why;                 ///< why it is not supported; empty where it is
  int depth = 0;                   ///< how many bodies of functions and subgraphs are around it
  bool after_unsupported = false;  ///< it needs results of a node that is not supported
};

struct OnnxOptions {
  std::vector<OnnxInput> inputs;
  /// Weights become constants of the module; else parameters of `main`, whose values are given beside it.
  bool freeze_params = true;
  /// Folder of the external data of a model given as bytes; empty: external data is refused.
  std::string folder;
  /// Treat the model as of this version of the operator set; 0: the model's.
  int64_t opset = 0;
  /// Lengths that stay open become symbols, named as in the model, and all types are expressions of these; else `?`.
  bool symbolic = false;
  /// Large weights stay in their file until a pass reads them: for an import that a compilation follows at once.
  bool weights_later = false;
  /// Where given, receives the nodes in the order of the import; nodes that are not supported then make the module
  /// null instead of an error.
  std::vector<OnnxNode>* nodes = nullptr;
};

struct OnnxModule {
  IRModule mod;
  Map<String, NDArray> params;
};

/// Imports the model file at `path`: operator sets 1 to 28, IR versions 1 to 14.
/// \throws CompileError where the model is wrong; UnsupportedError that lists every part that is not supported.
BATON_DLL OnnxModule FromOnnxFile(const std::string& path, const OnnxOptions& options = {});
/// The same for a serialized ModelProto.
BATON_DLL OnnxModule FromOnnxBytes(std::string_view model, const OnnxOptions& options = {});

}  // namespace baton::frontend
