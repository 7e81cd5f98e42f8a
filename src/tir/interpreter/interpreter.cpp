// SPDX-License-Identifier: Apache-2.0
#include <baton/runtime/registry.h>
#include <baton/tir/functor.h>
#include <baton/tir/interpreter.h>
#include <baton/tir/intrin.h>

#include "tir/interpreter/interpreter_impl.h"

namespace baton::tir {

void Interpret(const PrimFunc& func, const std::vector<NDArray>& args, const InterpretOptions& options) {
  try {
    interpreter::Interpreter(func, args, options).Run(func->body);
  } catch (const interpreter::OutOfSteps&) {
    throw RuntimeError("the interpreter's budget of " + std::to_string(options.max_steps) + " steps is used up");
  }
}
bool InterpretWithin(const PrimFunc& func, const std::vector<NDArray>& args, int64_t max_steps) {
  InterpretOptions options;
  options.max_steps = max_steps;
  try {
    interpreter::Interpreter(func, args, options).Run(func->body);
    return true;
  } catch (const interpreter::OutOfSteps&) {
    return false;
  }
}
void Interpret(const PrimFunc& func, const std::vector<NDArray>& args, int64_t max_steps) {
  InterpretOptions options;
  options.max_steps = max_steps;
  Interpret(func, args, options);
}

namespace {

/// Looks for what the interpreter does not know: functions, intrinsics without a value, pointers.
class Unknown : public StmtExprVisitor {
 public:
  bool found = false;

 private:
  using StmtExprVisitor::VisitExpr_;
  void VisitExpr_(const CallNode* call) final {
    const IntrinDef* row = IntrinOf(call);
    const bool floats = call->dtype.element_of().is_floating();
    found = found || !row || !(row->interpret || (row->host && row->host.gives_float() == floats));
    StmtExprVisitor::VisitExpr_(call);
  }
};

}  // namespace

bool CanInterpret(const PrimFunc& func) {
  // Elements of less than a byte are not read one by one.
  for (const auto& [param, buffer] : func->buffer_map) {
    if (buffer->dtype.bits() < 8 && !buffer->dtype.is_bool()) return false;
  }
  Unknown look;
  look(func->body);
  return !look.found;
}

namespace {

Threads ThreadsOf(const String& text) {
  if (text == "together") return Threads::kTogether;
  if (text == "apart") return Threads::kApart;
  if (text == "apart backwards") return Threads::kApartBackwards;
  throw runtime::ValueError("threads run together, apart or apart backwards, not \"" + text.str() + "\"");
}

}  // namespace

/// The same for front ends: (function, arrays as a list, which the function writes to, how threads run: "together",
/// "apart" or "apart backwards", module whose functions can be called or null); the last two may be left out.
BATON_REGISTER_GLOBAL("tir.Interpret").set_body([](runtime::Args args, runtime::RetValue*) {
  const auto arrays = args[1].As<Array<NDArray>>();
  InterpretOptions options;
  if (args.size() > 2) {
    options.threads = ThreadsOf(args[2].As<String>());
  }
  if (args.size() > 3 && !args[3].is_null()) options.mod = args[3].As<IRModule>();
  Interpret(args[0].As<PrimFunc>(), std::vector<NDArray>(arrays.begin(), arrays.end()), options);
});

BATON_REGISTER_GLOBAL("tir.analysis.can_interpret").set_body_typed([](PrimFunc f) { return CanInterpret(f); });
/// (function, arrays, how threads run, module or null) -> the races; arrays are written to.
BATON_REGISTER_GLOBAL("tir.analysis.find_races")
    .set_body_typed([](PrimFunc f, Array<NDArray> arrays, String threads, ObjectRef mod) {
      std::vector<Race> races;
      InterpretOptions options{.threads = ThreadsOf(threads), .races = &races};
      if (mod.defined()) options.mod = Downcast<IRModule>(mod);
      Interpret(f, std::vector<NDArray>(arrays.begin(), arrays.end()), options);
      return Array<Race>(races.begin(), races.end());
    });

}  // namespace baton::tir
