// SPDX-License-Identifier: Apache-2.0
// Analysis of integer expressions, for front ends.
#include <baton/arith/analyzer.h>
#include <baton/arith/int_set.h>
#include <baton/runtime/registry.h>
#include <baton/tir/functor.h>
#include <baton/tir/op.h>

#include <cstdlib>
#include <memory>
#include <numeric>
#include <string>

#include "arith/bounds.h"

namespace baton::arith {
namespace {

using runtime::Args;
using runtime::Array;
using runtime::PackedFunc;
using runtime::RetValue;

PrimExpr Given(const Args& args, int i) {
  PrimExpr e = args[i].As<PrimExpr>();
  if (!e.defined()) throw runtime::TypeError("an expression is wanted, got None");
  return e;
}
PrimExpr Condition(const Args& args) {
  PrimExpr e = Given(args, 0);
  if (!e.dtype().is_bool())
    throw runtime::TypeError("a condition is wanted, got an expression of " + runtime::DataType2String(e.dtype()));
  return e;
}

/// Comparisons as they are read: `x - y < 0` is `x < y`, `x * 4 < 17` is `x < 5`, `!(x < y)` is `y <= x`. For people
/// and programs that look at conditions; loops are made from what Simplify gives.
class Comparisons : public tir::ExprMutator {
 public:
  explicit Comparisons(Analyzer* a) : a_(a) {}

 private:
  using tir::ExprMutator::VisitExpr_;
  using Kind = tir::NodeKind;
  PrimExpr VisitExpr_(const tir::LTNode* op) final { return Read(op->a, op->b, Kind::kLT, GetRef<PrimExpr>(op)); }
  PrimExpr VisitExpr_(const tir::LENode* op) final { return Read(op->a, op->b, Kind::kLE, GetRef<PrimExpr>(op)); }
  PrimExpr VisitExpr_(const tir::GTNode* op) final { return Read(op->a, op->b, Kind::kGT, GetRef<PrimExpr>(op)); }
  PrimExpr VisitExpr_(const tir::GENode* op) final { return Read(op->a, op->b, Kind::kGE, GetRef<PrimExpr>(op)); }
  PrimExpr VisitExpr_(const tir::EQNode* op) final { return Read(op->a, op->b, Kind::kEQ, GetRef<PrimExpr>(op)); }
  PrimExpr VisitExpr_(const tir::NENode* op) final { return Read(op->a, op->b, Kind::kNE, GetRef<PrimExpr>(op)); }
  PrimExpr VisitExpr_(const tir::NotNode* op) final {
    const PrimExpr a = VisitExpr(op->a);
    if (const auto* n = a.as<tir::LTNode>()) return tir::LE(n->b, n->a);
    if (const auto* n = a.as<tir::LENode>()) return tir::LT(n->b, n->a);
    if (const auto* n = a.as<tir::GTNode>()) return tir::LE(n->a, n->b);
    if (const auto* n = a.as<tir::GENode>()) return tir::LT(n->a, n->b);
    if (const auto* n = a.as<tir::EQNode>()) return tir::NE(n->a, n->b);
    if (const auto* n = a.as<tir::NENode>()) return tir::EQ(n->a, n->b);
    return a.same_as(op->a) ? GetRef<PrimExpr>(op) : !a;
  }

  /// The difference of both sides, without a common factor, with its positive terms on the left.
  PrimExpr Read(const PrimExpr& a, const PrimExpr& b, Kind kind, const PrimExpr& as_it_is) {
    if (a.dtype() != DataType::Int(64)) return as_it_is;
    LinearForm d = a_->Linear(a);
    for (const LinearForm::Term& t : a_->Linear(b).terms) d.terms.push_back({t.atom, -t.coeff});
    const int64_t less = a_->Linear(b).constant;
    if (__builtin_sub_overflow(d.constant, less, &d.constant)) return as_it_is;
    d = Summed(d);
    int64_t factor = 0;
    for (const LinearForm::Term& t : d.terms) factor = std::gcd(factor, t.coeff);
    if (factor == 0) return as_it_is;
    const int64_t rest = (d.constant % factor + factor) % factor;
    const bool equality = kind == Kind::kEQ || kind == Kind::kNE;
    if (equality && rest) return tir::make_int(DataType::Bool(), kind == Kind::kNE);
    // sum * factor + c < 0 where sum + floor(c / factor) < 0, and so for `>=`; for `<=` and `>` the quotient is rounded
    // up.
    const bool up = rest != 0 && (kind == Kind::kLE || kind == Kind::kGT);
    d.constant = (d.constant - rest) / factor + (up ? 1 : 0);
    LinearForm left, right;
    for (const LinearForm::Term& t : d.terms) {
      (t.coeff > 0 ? left : right).terms.push_back({t.atom, std::abs(t.coeff) / factor});
    }
    if (right.terms.empty() || (!left.terms.empty() && d.constant < 0)) {
      right.constant = -d.constant;
    } else {
      left.constant = d.constant;
    }
    const PrimExpr l = a_->FromLinear(left, a.dtype()), r = a_->FromLinear(right, a.dtype());
    return tir::FoldBinary(kind, l, r);
  }
  static LinearForm Summed(const LinearForm& f) {
    LinearForm out;
    out.constant = f.constant;
    for (const LinearForm::Term& t : f.terms) AddTerm(&out, t.atom, t.coeff);
    return out;
  }
  Analyzer* a_;
};

/// The method of an analyzer by its name; null for an unknown one.
PackedFunc Method(const std::shared_ptr<Analyzer>& a, std::string_view name) {
  if (name == "bind") {
    return PackedFunc(
        [a](Args args, RetValue*) { a->Bind(Downcast<tir::Var>(Given(args, 0)), Given(args, 1), Given(args, 2)); });
  }
  if (name == "simplify")
    return PackedFunc([a](Args args, RetValue* rv) { *rv = Comparisons(a.get())(a->Simplify(Given(args, 0))); });
  if (name == "const_int_bound") {
    return PackedFunc([a](Args args, RetValue* rv) {
      const ConstIntBound b = a->Bound(Given(args, 0));
      *rv = Array<int64_t>{b.min, b.max};
    });
  }
  if (name == "modular_set") {
    return PackedFunc([a](Args args, RetValue* rv) {
      const LinearForm f = a->Linear(Given(args, 0));
      int64_t coeff = 0;
      for (const LinearForm::Term& t : f.terms) coeff = std::gcd(coeff, t.coeff);
      const int64_t rest = coeff ? f.constant % coeff : f.constant;
      *rv = Array<int64_t>{coeff, rest < 0 ? rest + coeff : rest};
    });
  }
  if (name == "int_set") {
    return PackedFunc([a](Args args, RetValue* rv) { *rv = EvalSet(Given(args, 0), args[1].As<Domains>(), a.get()); });
  }
  if (name == "can_prove") return PackedFunc([a](Args args, RetValue* rv) { *rv = a->CanProve(Condition(args)); });
  if (name == "can_prove_equal") {
    return PackedFunc([a](Args args, RetValue* rv) { *rv = a->CanProveEqual(Given(args, 0), Given(args, 1)); });
  }
  if (name == "assume") {
    return PackedFunc([a](Args args, RetValue* rv) { *rv = static_cast<int64_t>(a->Assume(Condition(args))); });
  }
  if (name == "forget")
    return PackedFunc([a](Args args, RetValue*) { a->Forget(static_cast<size_t>(args[0].As<int64_t>())); });
  return nullptr;
}

BATON_REGISTER_GLOBAL("arith.MakeAnalyzer").set_body([](Args, RetValue* rv) {
  auto a = std::make_shared<Analyzer>();
  *rv = PackedFunc([a](Args args, RetValue* out) { *out = Method(a, args[0].As<runtime::String>().view()); });
});

}  // namespace
}  // namespace baton::arith
