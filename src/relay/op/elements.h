// SPDX-License-Identifier: Apache-2.0
// Rules of operators for the elements of short tensors of integers: the values that shapes are computed from.
#pragma once

#include <baton/relay/op.h>

#include <optional>
#include <vector>

namespace baton::relay {

/// Elements of a tensor of integers or truth values (1 and 0) of rank 0 or 1; null for one that is not known.
using Elements = std::vector<PrimExpr>;

/// A call, as the rule of its operator sees it.
struct ElementsSite {
  const Attrs& attrs;
  const Array<Type>& types;  ///< of the operands
  /// Elements of each operand, a tuple's fields one after the other; nullopt where not even their number is known.
  const std::vector<std::optional<Elements>>& in;
  DataType dtype;  ///< of the result
};
/// The rule of an operator, in its definition (`OpTraits::elements`); null for one that has none. Nothing else says
/// what an operator does to values of shapes. Rules give nothing for calls that they do not take.
inline ElementsFn ElementsRuleOf(const Op& op) {
  const OpDef* def = DefOf(op);
  return def != nullptr ? def->traits.elements : nullptr;
}
/// The elements of a call by the rule of its operator: canonical, as many as `result` has, literals within its dtype.
/// Nothing where the operator has no rule or none is known.
BATON_DLL std::optional<Elements> ElementsOfCall(const Op& op, const ElementsSite& site, const Type& result);
/// Whether a tensor of the type may have elements here: integers or bool, rank 0 or 1. The number of them goes to
/// `count`; -1 where it is not a literal.
BATON_DLL bool HasElements(const Type& type, int64_t* count);

/// 1 where the condition holds, 0 where it does not, for all sizes; else an expression that is one of both.
PrimExpr OfCondition(const PrimExpr& condition);
/// Whether an element is not 0.
PrimExpr ConditionOf(const PrimExpr& element);
/// Each element of the only operand, in order: for operators that change shapes alone.
std::optional<Elements> SameElements(const ElementsSite& site);
/// Element by element, broadcasting: `f` of two integers, or of two conditions. Its result may be a condition.
std::optional<Elements> ElementsOfPairs(const ElementsSite& site, PrimExpr (*f)(PrimExpr, PrimExpr), bool conditions);
/// The number of elements of operands that broadcast: -1 where they do not, or are not known.
int64_t CountOfBroadcast(const ElementsSite& site);
/// Element `i` of an operand that broadcasts.
inline const PrimExpr& BroadcastElement(const Elements& x, int64_t i) {
  return x[x.size() == 1 ? 0 : static_cast<size_t>(i)];
}
/// Elements by literals within their number; `from_end`: negative ones count from there.
Elements ElementsAt(const Elements& x, const Elements& places, bool from_end);
/// `f` over all elements of the only operand; `none` of nothing, which may be null.
std::optional<Elements> ElementsOfReduction(const ElementsSite& site, PrimExpr (*f)(PrimExpr, PrimExpr), PrimExpr none);

}  // namespace baton::relay
