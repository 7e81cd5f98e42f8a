// SPDX-License-Identifier: Apache-2.0
#include <baton/ir/env_func.h>
#include <baton/runtime/registry.h>

namespace baton {

EnvFunc EnvFunc::Get(const String& name) {
  EnvFunc f(name);
  f.func();
  return f;
}

runtime::PackedFunc EnvFunc::func() const {
  if (!defined()) throw runtime::ValueError("a null EnvFunc has no function");
  const runtime::PackedFunc* f = Registry::Get(get()->name.str());
  if (!f) {
    throw runtime::ValueError("no global function is called `" + get()->name.str() +
                              "`; load the library or import the module that registers it");
  }
  return *f;
}

namespace {
const RegisterNodes<EnvFuncNode> registered_env_func;
BATON_REGISTER_GLOBAL("ir.EnvFuncGet").set_body_typed(EnvFunc::Get);
BATON_REGISTER_GLOBAL("ir.EnvFuncGetPackedFunc").set_body_typed([](EnvFunc f) { return f.func(); });
BATON_REGISTER_GLOBAL("ir.EnvFuncCall").set_body([](runtime::Args args, runtime::RetValue* rv) {
  *rv = args[0].As<EnvFunc>().func().CallPacked(args.values + 1, args.size() - 1);
});
}  // namespace

}  // namespace baton
