// SPDX-License-Identifier: Apache-2.0
#include <baton/runtime/registry.h>
#include <baton/tir/interpreter.h>

#include "tir/interpreter/interpreter_impl.h"

namespace baton::tir {

void Interpret(const PrimFunc& func, const std::vector<NDArray>& args, const InterpretOptions& options) {
  interpreter::Interpreter(func, args, options).Run(func->body);
}
void Interpret(const PrimFunc& func, const std::vector<NDArray>& args, int64_t max_steps) {
  InterpretOptions options;
  options.max_steps = max_steps;
  Interpret(func, args, options);
}

/// The same for front ends: (function, arrays as a list, which the function writes to, how threads run: "together",
/// "apart" or "apart backwards", module whose functions can be called or null); the last two may be left out.
BATON_REGISTER_GLOBAL("tir.Interpret").set_body([](runtime::Args args, runtime::RetValue*) {
  const auto arrays = args[1].As<Array<NDArray>>();
  InterpretOptions options;
  if (args.size() > 2) {
    const String threads = args[2].As<String>();
    if (threads != "together" && threads != "apart" && threads != "apart backwards") {
      throw runtime::ValueError("threads run together, apart or apart backwards, not \"" + threads.str() + "\"");
    }
    options.threads = threads == "together" ? Threads::kTogether
                      : threads == "apart"  ? Threads::kApart
                                            : Threads::kApartBackwards;
  }
  if (args.size() > 3 && !args[3].is_null()) options.mod = args[3].As<IRModule>();
  Interpret(args[0].As<PrimFunc>(), std::vector<NDArray>(arrays.begin(), arrays.end()), options);
});

}  // namespace baton::tir
