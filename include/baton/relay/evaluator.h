// SPDX-License-Identifier: Apache-2.0
// Evaluating Relay: the interface by which constant folding and the interpreter run single operators. The driver
// supplies the implementation, which compiles or interprets their loops.
#pragma once

#include <baton/relay/value.h>

namespace baton::relay {

/// Runs one operator on concrete values. Implementations may be called from several threads.
class BATON_DLL Evaluator {
 public:
  virtual ~Evaluator() = default;
  /// `args` are values (NDArray or Array of values); the result is one too. `call` gives span and type, if known.
  virtual ObjectRef EvalOp(const Op& op, const Attrs& attrs, const Array<ObjectRef>& args) = 0;
  /// DLPack number of the device that a call of an annotation wants its argument on; -1: it says none.
  virtual int64_t WantedDevice(const Op&, const Attrs&) { return -1; }
  /// Whether an operator returns its argument, and only says or changes its device.
  virtual bool OnlyPlaces(const Op&) { return false; }
  /// Whether a program's values are moved to the devices that it names. Otherwise all stay where they are made.
  virtual bool MovesValues() const { return true; }
  /// Told of each call of a closure or a global function before it is made. An exception from it ends the evaluation.
  virtual void OnCall() {}
  /// Runs a primitive function (a fusion group).
  virtual ObjectRef EvalPrimitive(const Function& func, const Array<ObjectRef>& args) = 0;
  /// The one in use; an error when the library has none.
  static Evaluator& Get();
  static void Set(Evaluator* evaluator);
};

/// Evaluates a closed expression, or `main` of a module when expr is null. Handles all of Relay: control flow,
/// closures, recursion, references, data types, dynamic shapes. Operators run one by one.
BATON_DLL ObjectRef Interpret(const Expr& expr, const IRModule& mod);
/// Calls a function value or a function with values. The second form has its operators run by `operators`, which is
/// asked by one thread at a time.
BATON_DLL ObjectRef InterpretCall(const Expr& func, const Array<ObjectRef>& args, const IRModule& mod);
BATON_DLL ObjectRef InterpretCall(const Expr& func, const Array<ObjectRef>& args, const IRModule& mod,
                                  Evaluator& operators);
/// Calls a closure that an evaluation gave.
BATON_DLL ObjectRef InterpretApply(const ObjectRef& callee, const Array<ObjectRef>& args, const IRModule& mod,
                                   Evaluator& operators);

}  // namespace baton::relay
