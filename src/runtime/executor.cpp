// SPDX-License-Identifier: Apache-2.0
#include <baton/runtime/executor.h>
#include <baton/runtime/registry.h>
#include <baton/support/text.h>

#include "runtime/native_runner.h"

namespace baton::runtime {
using support::Cat;

const char* LoadBeside(const char* library);  // device_api.cpp

const PackedFunc& FunctionBeside(const std::string& name, const char* library, std::string_view why) {
  const PackedFunc* f = Registry::Get(name);
  if (!f) {
    const char* wrong = LoadBeside(library);
    f = Registry::Get(name);
    if (!f) {
      throw RuntimeError(Cat(why, " and needs the library ", library,
                             " of this version beside libbaton_runtime.so: ", wrong ? wrong : name.c_str()));
    }
  }
  return *f;
}

/// A function of the library that runs programs.
const PackedFunc& ProgramFunction(const char* name) {
  return FunctionBeside(name, "libbaton_vm.so", "the model has control flow, states, imports or several devices");
}

Module CreateExecutorOn(const Module& code, const Args& devices) {
  const ExecutableDesc* desc = code.defined() ? code->GetExecutable() : nullptr;
  if (desc && !(desc->program.empty() && desc->state.empty())) {
    // The module, then its devices: no program knows more than seven.
    const Any self(code);
    BatonValue values[8] = {self.raw()};
    int n = 1;
    for (; n < 8 && n <= devices.num_args; ++n) values[n] = devices.values[n - 1];
    return ProgramFunction(desc->state.empty() ? "vm.CreateExecutor" : "vm.CreateSession")
        .CallPacked(values, n)
        .As<Module>();
  }
  return MakeModule<NativeRunner>(code, devices.size() ? devices[0].As<Device>() : Cpu());
}

Module CreateExecutor(const Module& code, Device device) {
  const Any given(device);
  return CreateExecutorOn(code, Args{&given.raw(), 1});
}

}  // namespace baton::runtime
