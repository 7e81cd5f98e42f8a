// SPDX-License-Identifier: Apache-2.0
/// \file elements.h
/// What is known of short integer tensors while importing: the values that shapes are computed from.
#pragma once

#include "importer.h"
#include "symbols.h"

namespace baton::onnx {

/// Elements of a short tensor of integers or bool, of rank 0 or 1: literals, numbers of `Symbols`, Value::kUnknown for
/// the others. Null where nothing is known.
std::shared_ptr<const Dims> ElementsOf(const Value& v);
/// The same of the result of a Relay call.
std::shared_ptr<const Dims> ElementsOfCall(Symbols* symbols, std::string_view op, const Values& args,
                                           const NamedAttrs& attrs, const Value& result);

}  // namespace baton::onnx
