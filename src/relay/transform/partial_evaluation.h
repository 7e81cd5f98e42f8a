// SPDX-License-Identifier: Apache-2.0
// The evaluation of one function: its state, and what its files share. partial_evaluate.cpp walks expressions,
// partial_calls.cpp decides which calls are unfolded, partial_branches.cpp chooses branches and clauses.
#pragma once

#include <baton/relay/functor.h>
#include <baton/relay/op.h>
#include <relay/expr/captured_vars.h>
#include <relay/transform/partial_values.h>

#include <unordered_set>

namespace baton::relay::transform::partial {

/// Bound of the rest of a program of n nodes: kGrowth * n + kSlack bindings; calls are not unfolded beyond.
constexpr int64_t kGrowth = 8, kSlack = 10000;

class Evaluation {
 public:
  Evaluation(const IRModule& mod, int64_t nodes, const std::unordered_set<const Object*>& recursive)
      : mod_(mod), budget_(kGrowth * nodes + kSlack), recursive_(recursive) {}

  Function Run(const Function& f) { return Residual(f, Bindings(), EvalFrame()); }

 private:
  // ---- Blocks

  /// Evaluates a chain of lets; residual bindings go into `block`.
  PValue Eval(const Expr& expr, EvalFrame* frame, LetBlock* block);

  PValue Atom(const Expr& e, EvalFrame* frame);

  static PValue Tensor(const NDArray& data, const Expr& left);

  static bool Opaque(const FunctionNode* f);

  static Type In(const Type& type, const EvalFrame* frame);
  static Type TypeFor(const ExprNode* e, const EvalFrame* frame);
  /// Binds the type parameters in `pattern`, where `type` is the type of the pattern.
  static void Solve(const Type& pattern, const Type& type, Types* out);
  Expr Push(const ExprNode* original, Expr value, EvalFrame* frame, LetBlock* block);

  PValue EvalValue(const Expr& e, EvalFrame* frame, LetBlock* block);

  // ---- Functions

  PValue MakeClosure(const Function& f, const Var& self, EvalFrame* frame, LetBlock* block);

  /// The function with known values in its body computed; its parameters are unknown.
  Function Residual(const Function& f, const Bindings& captured, const EvalFrame& around);

  // ---- Calls

  /// A number of a value that recursion can count down: a whole number, or how much of data is known.
  static int64_t Measure(const PValue& v);

  /// Whether a call is unfolded. A function that is running already must count down an argument below all that it had
  /// there: each place can do so only finitely often.
  bool Unfolds(const Closure& c, const std::vector<PValue>& args, std::vector<int64_t>* least);

  PValue EvalCall(const CallNode* call, EvalFrame* frame, LetBlock* block);

  Expr PushCall(const CallNode* call, const Expr& callee, const std::vector<PValue>& args, EvalFrame* frame,
                LetBlock* block);

  /// The type arguments of a call of a function.
  static void Instantiate(const Function& f, const CallNode* call, const EvalFrame* caller, EvalFrame* inner);

  PValue Unfold(const PValue& callee, const std::vector<PValue>& args, std::vector<int64_t> least, EvalFrame frame,
                LetBlock* block);

  /// The value of an operator whose arguments are known; null to leave the call.
  PValue EvalOp(const CallNode* call, const OpNode* op, const std::vector<PValue>& args);

  static bool Small(const Type& type);

  /// A tensor, or a tuple of such; null if something in it is not known.
  static ObjectRef Known(const PValue& v);
  static PValue FromValue(const ObjectRef& value, const Span& span);

  // ---- Branches

  /// Evaluates one of several alternative blocks; each starts with the current knowledge.
  Expr Branch(const Expr& body, EvalFrame* frame, const Store& before, std::vector<Store>* after);
  /// Contents of references after the branches: those on which all branches agree.
  void Join(const Store& before, const std::vector<Store>& after);

  PValue EvalIf(const IfNode* i, EvalFrame* frame, LetBlock* block);

  enum Answer { kNo, kYes, kMaybe };
  /// Whether a value fits; variables of the pattern get what they stand for.
  Answer Matches(const Pattern& pattern, const PValue& value, Bindings* bound);

  /// Returns the pattern with new variables, whose values are not known.
  Pattern Fresh(const Pattern& p, EvalFrame* frame);

  PValue EvalMatch(const MatchNode* m, EvalFrame* frame, LetBlock* block);

  const IRModule& mod_;
  int64_t budget_;
  const std::unordered_set<const Object*>& recursive_;
  CapturedVars captured_;
  std::unordered_map<const Object*, std::vector<std::vector<int64_t>>> running_;
  Uses uses_;
  const String name_{"x"};
  Store store_;
  int64_t next_ref_ = 0;
};

}  // namespace baton::relay::transform::partial
