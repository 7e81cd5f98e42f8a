// SPDX-License-Identifier: Apache-2.0
// Choices, jumps, calls of functions outside of the program, and threads.
#include <baton/runtime/registry.h>
#include <baton/tir/intrin.h>
#include <fmt/format.h>

#include "tir/literals.h"

namespace baton::tir {
namespace {

HostNumber InterpretChoice(Machine& machine, const CallNode* call, int lane) {
  const PrimExpr& condition = call->args[0];
  const bool chosen = machine.Eval(condition, condition.dtype().lanes() > 1 ? lane : 0).i != 0;
  return machine.Eval(call->args[chosen ? 1 : 2], lane);
}
HostNumber InterpretFirst(Machine& machine, const CallNode* call, int lane) {
  return machine.Eval(call->args[0], lane);
}
/// Threads in lockstep, or a single thread, need no wait.
HostNumber InterpretAlone(Machine& /*machine*/, const CallNode* /*call*/, int /*lane*/) { return {0, 0}; }
HostNumber InterpretOutsideOfKernel(Machine& /*machine*/, const CallNode* /*call*/, int /*lane*/) {
  throw RuntimeError("tvm_thread_allreduce stands in no kernel, or in a branch or loop that not all threads take");
}

/// Guards the derivatives as the values are.
PrimExpr DerivativeOfChosen(const CallNode* call, const Array<PrimExpr>& of_args) {
  const PrimExpr zero = make_const(call->dtype, 0);
  if (!of_args[1].defined() && !of_args[2].defined()) return {};
  return if_then_else(call->args[0], of_args[1].defined() ? of_args[1] : zero,
                      of_args[2].defined() ? of_args[2] : zero);
}

}  // namespace

const Op intrin::if_then_else = DefineIntrin({
    .name = "if_then_else",
    .doc = "One of two values; only the chosen one is evaluated: (condition, if true, if false).",
    .takes = "brr",
    .interpret = InterpretChoice,
    .derivative = DerivativeOfChosen,
    .effect = Effect::kPure,
    .lanes = LaneForm::kEach,
    .cost = 0,
});
const Op intrin::likely = DefineIntrin({
    .name = "likely",
    .doc = "A condition that mostly holds: its value is the condition.",
    .takes = "x",
    .interpret = InterpretFirst,
    .derivative = IntrinDerivative::Zero(),
    .effect = Effect::kAnnotation,
    .lanes = LaneForm::kEach,
    .cost = 0,
});
const Op intrin::ret = DefineIntrin({
    .name = "ret",
    .doc = "Leaves the function with a value.",
    .takes = "x",
    .derivative = IntrinDerivative::None("its value is not a number"),
    .effect = Effect::kJumps,
    .lanes = LaneForm::kNone,
    .cost = 0,
    .ends_in = "MakePackedAPI",
});
const Op intrin::index_error = DefineIntrin({
    .name = "index_error",
    .doc = "The message of an assertion about an index: (format, index, extent).",
    .takes = "*",
    .derivative = IntrinDerivative::None("its value is not a number"),
    .effect = Effect::kPure,
    .lanes = LaneForm::kNone,
    .cost = 0,
    .ends_in = "the message of its AssertStmt",
});
const Op intrin::call_extern = DefineIntrin({
    .name = "call_extern",
    .doc = "Calls a C function by its name: (name, arguments...).",
    .takes = "s*",
    .derivative = IntrinDerivative::None("it is a function that is not known here"),
    .effect = Effect::kUpdates,
    .lanes = LaneForm::kNone,
    .cost = 16,
    .halves = Halves::kRefused,
    .shows_dtype = true,
    .calls_c = true,
});
const Op intrin::call_packed = DefineIntrin({
    .name = "call_packed",
    .doc = "Calls a PackedFunc by its name: (name, arguments...).",
    .takes = "s*",
    .derivative = IntrinDerivative::None("it is a function that is not known here"),
    .effect = Effect::kUpdates,
    .lanes = LaneForm::kNone,
    .cost = 16,
    .halves = Halves::kRefused,
    .shows_dtype = true,
});
const Op intrin::tvm_call_trace_packed = DefineIntrin({
    .name = "tvm_call_trace_packed",
    .doc = "Calls a PackedFunc by its name; its value is the last argument where the function gives none: (name, "
           "arguments...).",
    .takes = "sx*",
    .derivative = IntrinDerivative::None("it is a function that is not known here"),
    .effect = Effect::kUpdates,
    .lanes = LaneForm::kNone,
    .cost = 16,
});
const Op intrin::tvm_stack_make_array = DefineIntrin({
    .name = "tvm_stack_make_array",
    .doc = "A tensor as an argument of call_packed: (data, a literal of the dtype, dimensions...).",
    .takes = "*",
    .derivative = IntrinDerivative::None("its value is not a number"),
    .effect = Effect::kArgument,
    .lanes = LaneForm::kNone,
    .cost = 0,
    .ends_in = "the arguments of call_packed",
});
const Op intrin::tvm_storage_sync = DefineIntrin({
    .name = "tvm_storage_sync",
    .doc = "Waits for the threads of the block: (scope).",
    .takes = "*",
    .interpret = InterpretAlone,
    .derivative = IntrinDerivative::None("its value is not a number"),
    .effect = Effect::kUpdates,
    .lanes = LaneForm::kNone,
    .cost = 16,
});
const Op intrin::tvm_thread_allreduce = DefineIntrin({
    .name = "tvm_thread_allreduce",
    .doc = "Combines values of the threads of a block: (n, n values, condition, n places, thread variables...).",
    .takes = "*",
    .interpret = InterpretOutsideOfKernel,
    .derivative = IntrinDerivative::None("memory is not differentiated"),
    .effect = Effect::kUpdates,
    .lanes = LaneForm::kNone,
    .cost = 16,
    .ends_in = "LowerThreadAllreduce",
});

PrimExpr call_extern(DataType ret, String name, Array<PrimExpr> args) {
  args.insert(0, StringImm(std::move(name)));
  return Call(ret, intrin::call_extern, std::move(args));
}

BATON_REGISTER_GLOBAL("tir.op.call_extern").set_body_typed([](DataType t, String name, Array<PrimExpr> args) {
  return call_extern(t, name, args);
});
BATON_REGISTER_GLOBAL("tir.op.call_packed").set_body_typed([](DataType t, Array<PrimExpr> args) {
  return Call(t, intrin::call_packed, args);
});
BATON_REGISTER_GLOBAL("tir.op.stack_array").set_body_typed([](Array<PrimExpr> args) {
  return Call(DataType::Handle(), intrin::tvm_stack_make_array, args);
});

}  // namespace baton::tir

namespace baton {

PrimExpr if_then_else(PrimExpr cond, PrimExpr t, PrimExpr f) {
  using namespace literals;  // NOLINT
  if (!cond.defined() || !cond.dtype().is_bool()) {
    Fail(fmt::format("the condition of if_then_else has dtype {}, not bool", TypeName(cond)));
  }
  Match("if_then_else", &t, &f);
  if (PrimExpr l = Literal(cond); l.defined() && AsInt(l)) return AsInt(l)->value ? t : f;
  return tir::Call(t.dtype(), tir::intrin::if_then_else, {cond, t, f});
}

}  // namespace baton
