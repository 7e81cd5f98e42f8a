// SPDX-License-Identifier: Apache-2.0
// Functions of a module by name: found without a look at the others, kept or dropped together.
#include <baton/ir/keep_functions.h>
#include <baton/runtime/named.h>
#include <baton/tir/stmt.h>
#include <doctest/doctest.h>

using namespace baton;

namespace {
BaseFunc Nothing() { return tir::PrimFunc({}, tir::Evaluate(PrimExpr(0))); }
}  // namespace

TEST_CASE("ir.Module: functions are found by name, whatever was added, replaced and removed before") {
  IRModule mod{Map<GlobalVar, BaseFunc>()};
  std::vector<GlobalVar> vars;
  constexpr int kFunctions = 1000;
  for (int i = 0; i < kFunctions; ++i) {
    vars.push_back(GlobalVar(("f" + std::to_string(i)).c_str()));
    mod.CopyOnWrite()->Add(vars.back(), Nothing());
  }
  for (int i = 0; i < kFunctions; ++i) {
    CHECK(mod->GetGlobalVar("f" + std::to_string(i)).same_as(vars[static_cast<size_t>(i)]));
    CHECK(mod->Lookup(GlobalVar(("f" + std::to_string(i)).c_str())).same_as(mod->Lookup(vars[static_cast<size_t>(i)])));
  }
  CHECK_FALSE(mod->ContainGlobalVar("f"));
  CHECK_FALSE(mod->ContainGlobalVar("f1000"));
  CHECK_FALSE(mod->ContainGlobalVar(""));
  CHECK_THROWS(mod.CopyOnWrite()->Add(GlobalVar("f3"), Nothing()));
  // An update under another variable of that name keeps the variable that the module has.
  const BaseFunc other = Nothing();
  mod.CopyOnWrite()->Update(GlobalVar("f3"), other);
  CHECK(mod->GetGlobalVar("f3").same_as(vars[3]));
  CHECK(mod->Lookup(vars[3]).same_as(other));
  mod.CopyOnWrite()->Remove(GlobalVar("f3"));
  CHECK_FALSE(mod->ContainGlobalVar("f3"));
  CHECK(mod->GetGlobalVar("f999").same_as(vars[999]));
  CHECK(mod->functions.size() == kFunctions - 1);
}

TEST_CASE("runtime.FindNamed: keys with names stay keys by identity") {
  const GlobalVar a("x"), b("x");
  const GlobalTypeVar t(String("x"));
  Map<ObjectRef, Any> map;
  map.Set(String("x"), Any(int64_t{0}));
  CHECK_FALSE(static_cast<bool>(runtime::FindNamed(map.get(), "x")));  // a string is no object with a name
  map.Set(a, Any(int64_t{1}));
  map.Set(b, Any(int64_t{2}));
  map.Set(t, Any(int64_t{3}));
  CHECK(map.size() == 4);
  CHECK(map.at(a).As<int64_t>() == 1);
  CHECK(map.at(b).As<int64_t>() == 2);
  CHECK(map.at(String("x")).As<int64_t>() == 0);
  CHECK(runtime::FindNamed(map.get(), "x")->key.object() == a.get());  // the first of them
  map.erase(a);
  CHECK(runtime::FindNamed(map.get(), "x")->key.object() == b.get());
  CHECK_FALSE(static_cast<bool>(runtime::FindNamed(map.get(), "y")));
  CHECK_FALSE(static_cast<bool>(runtime::FindNamed(nullptr, "x")));
}

TEST_CASE("ir.KeepFunctions: keeps the order, and the module where all stay") {
  IRModule mod{Map<GlobalVar, BaseFunc>()};
  for (const char* name : {"a", "b", "c"}) mod.CopyOnWrite()->Add(GlobalVar(name), Nothing());
  CHECK(KeepFunctions(mod, [](const GlobalVar&, const BaseFunc&) { return true; }).same_as(mod));
  const IRModule kept = KeepFunctions(mod, [](const GlobalVar& v, const BaseFunc&) { return v->name_hint != "b"; });
  std::string names;
  for (const auto& [var, func] : kept->functions) names += var->name_hint.str();
  CHECK(names == "ac");
  CHECK(mod->functions.size() == 3);
}
