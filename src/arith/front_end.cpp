// SPDX-License-Identifier: Apache-2.0
// Analysis of integer expressions, for front ends.
#include <baton/arith/analyzer.h>
#include <baton/arith/int_set.h>
#include <baton/runtime/registry.h>

#include <memory>
#include <numeric>
#include <string>

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

/// The method of an analyzer by its name; null for one that it has not.
PackedFunc Method(const std::shared_ptr<Analyzer>& a, std::string_view name) {
  if (name == "bind") {
    return PackedFunc(
        [a](Args args, RetValue*) { a->Bind(Downcast<tir::Var>(Given(args, 0)), Given(args, 1), Given(args, 2)); });
  }
  if (name == "simplify") return PackedFunc([a](Args args, RetValue* rv) { *rv = a->Simplify(Given(args, 0)); });
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
