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
/// The same of the result of a Relay call with types, by its operator's rule. `tuple`: `args` are the fields of its
/// only operand.
std::shared_ptr<const Dims> ElementsOfCall(Symbols* symbols, const relay::Call& call, const Values& args, bool tuple,
                                           const Value& result);

}  // namespace baton::onnx
