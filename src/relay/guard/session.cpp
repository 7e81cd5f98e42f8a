// SPDX-License-Identifier: Apache-2.0
// What the guard's Python side calls: sessions, evaluation, and values that only C++ can make or look into.
#include <baton/ir/transform.h>
#include <baton/runtime/registry.h>
#include <baton/tir/interpreter.h>

#include "relay/guard/memo_evaluator.h"

namespace baton::relay {
namespace {

/// A memory that several evaluations share. One thread at a time.
class GuardSessionObj : public Object {
 public:
  static constexpr const char* _type_key = "relay.GuardSession";
  mutable MemoEvaluator memo;
  BATON_DECLARE_FINAL_OBJECT_INFO(GuardSessionObj, Object)
};
class GuardSession : public ObjectRef {
 public:
  BATON_DEFINE_OBJECT_REF_METHODS(GuardSession, ObjectRef, GuardSessionObj)
};

/// Evaluation compiles kernels, which runs passes. Instruments of the outer context do not see these passes.
struct Unwatched {
  transform::AdoptPassContext adopt{transform::PassContext::Create()};
};

BATON_REGISTER_GLOBAL("relay.guard.Session").set_body_typed([] {
  return GuardSession(ObjectPtr<Object>(make_object<GuardSessionObj>()));
});
/// (session, callee, args, module, snap, noise, seed, max_calls, max_bytes): the value. The callee is a function of the
/// module, or a closure.
BATON_REGISTER_GLOBAL("relay.guard.Evaluate")
    .set_body_typed([](GuardSession s, ObjectRef callee, Array<ObjectRef> args, IRModule mod, bool snap, double noise,
                       int64_t seed, int64_t max_calls, int64_t max_bytes) -> ObjectRef {
      Unwatched unwatched;
      MemoEvaluator& memo = s->memo;
      memo.Start({.snap = snap,
                  .noise = noise,
                  .seed = static_cast<uint64_t>(seed),
                  .max_calls = max_calls,
                  .max_bytes = max_bytes});
      if (callee.as<FunctionNode>()) return InterpretCall(Downcast<Function>(callee), args, mod, memo);
      return InterpretApply(callee, args, mod, memo);
    });
/// (function, arrays, steps): runs a PrimFunc, which changes the arrays.
BATON_REGISTER_GLOBAL("relay.guard.RunLoops")
    .set_body_typed([](tir::PrimFunc func, Array<NDArray> arrays, int64_t max_steps) {
      tir::Interpret(func, std::vector<NDArray>(arrays.begin(), arrays.end()), max_steps);
    });
BATON_REGISTER_GLOBAL("relay.guard.NextGeneration").set_body_typed([](GuardSession s) { s->memo.NextGeneration(); });
/// (calls, bytes of results) of the last evaluation, operators run since the start, results that are remembered.
BATON_REGISTER_GLOBAL("relay.guard.Counts").set_body_typed([](GuardSession s) {
  return Array<Any>{Any(s->memo.calls()), Any(s->memo.bytes()), Any(s->memo.misses()), Any(s->memo.entries())};
});
BATON_REGISTER_GLOBAL("relay.guard.MakeRef").set_body_typed([](ObjectRef value) {
  auto o = make_object<RefValueObj>();
  o->value = value;
  return RefValue(ObjectPtr<Object>(o));
});
BATON_REGISTER_GLOBAL("relay.guard.ReadRef").set_body_typed([](RefValue ref) { return ref->value; });
BATON_REGISTER_GLOBAL("relay.guard.MakeClosure").set_body_typed([](Function f) {
  auto o = make_object<ClosureObj>();
  o->func = f;
  return Closure(ObjectPtr<Object>(o));
});

}  // namespace
}  // namespace baton::relay
