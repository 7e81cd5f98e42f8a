// SPDX-License-Identifier: Apache-2.0
#include <baton/arith/extent.h>
#include <baton/tir/functor.h>
#include <baton/tir/op.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <relay/types/extent_guards.h>

#include <algorithm>

namespace baton::relay {

namespace {

/// In the words of the requirement, of which there are three kinds.
std::string Requirement(const PrimExpr& a, const PrimExpr& b) {
  const std::string x = arith::ExtentText(a), y = arith::ExtentText(b);
  if (const auto* least = a.as<tir::MaxNode>()) {
    for (const auto& [part, other] : {std::pair{least->a, least->b}, {least->b, least->a}}) {
      if (other.as<IntImmNode>() && tir::ExprDeepEqual(part, b))
        return fmt::format("extent {} must be at least {}", y, arith::ExtentText(other));
    }
  }
  // "1, or as long": the extent that is stretched if it is 1.
  auto stretched = [](const PrimExpr& e) {
    const auto* choice = e.as<tir::SelectNode>();
    const auto* one = choice ? choice->condition.as<tir::EQNode>() : nullptr;
    return one && tir::is_const_int(one->b, 1) ? choice->false_value : PrimExpr();
  };
  if (const PrimExpr m = stretched(a); m.defined()) {
    const PrimExpr n = stretched(b);
    return fmt::format("extents {} and {} do not broadcast", arith::ExtentText(m),
                       n.defined() ? arith::ExtentText(n) : y);
  }
  // A formula that fills lines says less than what it is made of.
  constexpr size_t kLong = 100;
  if (x.size() <= kLong && y.size() <= kLong) return fmt::format("extents {} and {} must be equal", x, y);
  std::vector<std::string> names;
  for (const PrimExpr& e : {a, b}) {
    tir::PostOrderVisitExpr(e, [&](const PrimExpr& part) {
      const auto* v = part.as<tir::VarNode>();
      if (v && std::find(names.begin(), names.end(), v->name_hint.str()) == names.end())
        names.push_back(v->name_hint.str());
    });
  }
  return fmt::format("extents that follow from {} must be equal", fmt::join(names, ", "));
}

}  // namespace

void AddExtentGuard(Array<Any>* guards, const PrimExpr& a, const PrimExpr& b, const std::string& where) {
  PrimExpr x = a, y = b;
  if (!arith::ToCanonicalExtent(&x) || !arith::ToCanonicalExtent(&y)) return;
  if (arith::ExtentsEqual(x, y) == arith::Fact::kYes) return;
  for (const Any& g : *guards) {
    const auto known = g.As<Array<Any>>();
    auto is = [&](int64_t i, const PrimExpr& e) { return tir::ExprDeepEqual(known[i].As<PrimExpr>(), e); };
    if ((is(0, x) && is(1, y)) || (is(0, y) && is(1, x))) return;
  }
  const std::string text = where + ": " + Requirement(x, y);
  guards->push_back(Any(Array<Any>{Any(x), Any(y), Any(String(text))}));
}

}  // namespace baton::relay
