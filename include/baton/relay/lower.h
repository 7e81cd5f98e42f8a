// SPDX-License-Identifier: Apache-2.0
// From a primitive function (a fusion group) to one PrimFunc.
#pragma once

#include <baton/ir/target.h>
#include <baton/relay/expr.h>
#include <baton/te/tensor.h>
#include <baton/tir/stmt.h>

namespace baton::relay {

/// The body of a primitive function as tensor expressions. `inputs` receives a placeholder for each parameter.
/// Outputs are the leaves of the result, in order.
BATON_DLL Array<te::Tensor> ToTensorExpressions(const Function& func, Array<te::Tensor>* inputs);
/// The same with a placeholder, which `*result` receives, in place of what `cut` computes.
BATON_DLL Array<te::Tensor> ToTensorExpressions(const Function& func, Array<te::Tensor>* inputs, const Call& cut,
                                                te::Tensor* result);

/// The PrimFunc of a primitive function, by a kernel generator or by the general schedule; not yet lowered further.
BATON_DLL tir::PrimFunc LowerPrimitive(const Function& func, const String& name, const Target& target);

/// The operator call that decides how a group is computed: its heavy one, else its last.
BATON_DLL Call AnchorOf(const Function& func);

/// True for operators that only change how the elements of a dense tensor are numbered: no kernel is needed.
BATON_DLL bool IsView(const ObjectRef& op);
/// Whether an operator writes its second operand behind the first, a state, and gives the whole.
BATON_DLL bool IsAppend(const ObjectRef& op);

}  // namespace baton::relay
