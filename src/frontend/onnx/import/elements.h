// SPDX-License-Identifier: Apache-2.0
/// \file elements.h
/// What is known of short integer tensors while importing: the values that shapes are computed from.
#pragma once

#include "importer.h"

namespace baton::onnx {

/// Elements of a short tensor of integers or bool, of rank 0 or 1, null for those that are not known. Null where
/// nothing is.
std::shared_ptr<const std::vector<PrimExpr>> ElementsOf(const Value& v);
/// The same of the result of a Relay call with types, by its operator's rule. `tuple`: `args` are the fields of its
/// only operand.
BATON_DLL std::shared_ptr<const std::vector<PrimExpr>> ElementsOfCall(const relay::Call& call, const Values& args,
                                                                      bool tuple, const Value& result);
/// The value of a call of constants with types, whose `result` has the elements that ElementsOfCall gives: from these,
/// else by the evaluator that constant folding has. Null where an operand is not known, for large results, and for
/// operators that do more than pick, combine or reduce elements.
BATON_DLL HostPtr ValueOfCall(const relay::Call& call, const Values& args, const Value& result);

}  // namespace baton::onnx
