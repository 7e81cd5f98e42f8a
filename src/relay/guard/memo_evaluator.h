// SPDX-License-Identifier: Apache-2.0
// Runs operators and remembers: the same operator on equal values is not run again, whichever program asks.
//
// Values are known by their content. A pass gives everything behind a rewrite new expressions, but as soon as one of
// them has a value that was seen before, what follows is remembered again. In a program that means the same that is
// everything but the rewritten part, so checking a pass costs what the pass changed.
#pragma once

#include <baton/relay/evaluator.h>
#include <baton/relay/expr.h>

#include <unordered_map>
#include <vector>

namespace baton::relay {

/// How one evaluation goes.
struct EvalMode {
  /// A float result within a few units in the last place of what another operator gave is taken for that. Without it, a
  /// rewrite that rounds differently makes everything behind it new. For the program after a pass: within one program
  /// `x + epsilon` must not be taken for `x`.
  bool snap = false;
  /// Rounding errors of this many units in the last place, drawn at random, are put into each inexact result, and
  /// nothing is remembered: how far results spread says how far they can be trusted (Monte Carlo arithmetic).
  double noise = 0;
  uint64_t seed = 0;
  /// Calls of operators and functions, and bytes that they may make, before the evaluation is given up with
  /// BudgetError. Remembered calls count too, so that the answer does not depend on what ran before.
  int64_t max_calls = 1 << 20;
  int64_t max_bytes = int64_t{8} << 30;
};

class MemoEvaluator final : public Evaluator {
 public:
  /// Bounds of the next evaluation.
  void Start(const EvalMode& mode);
  ObjectRef EvalOp(const Op& op, const Attrs& attrs, const Array<ObjectRef>& args) override;
  /// A fusion group's operators one by one.
  ObjectRef EvalPrimitive(const Function& func, const Array<ObjectRef>& args) override;
  /// The results of a program do not depend on where it runs, and its devices need not be there.
  bool MovesValues() const override { return false; }
  void OnCall() override;
  /// Forgets what was not used since the call before last.
  void NextGeneration();

  int64_t calls() const { return calls_; }    ///< of this evaluation
  int64_t bytes() const { return bytes_; }    ///< of results, of this evaluation
  int64_t misses() const { return misses_; }  ///< operators that were run, since the start
  int64_t entries() const { return static_cast<int64_t>(calls_by_key_.size()); }

 private:
  struct Entry {
    Op op;
    Attrs attrs;
    Array<ObjectRef> args;  ///< flat, canonical; keeps them alive
    ObjectRef result;
    int64_t bytes;
    uint64_t generation;
  };
  struct Known {
    NDArray array;
    bool result;  ///< of an operator
    uint64_t generation;
  };
  struct Alias {
    NDArray array;  ///< keeps the address taken
    NDArray canonical;
    uint64_t generation;
  };

  void Charge(int64_t bytes);
  uint64_t HashOf(const Attrs& attrs);
  /// The value that stands for all equal to this one.
  ObjectRef Canonical(const ObjectRef& value);
  NDArray CanonicalArray(const NDArray& a);
  /// The same for what an operator gave; its operands are not what it is taken for.
  ObjectRef CanonicalResult(const ObjectRef& value, const Array<ObjectRef>& operands);
  NDArray FindNear(const NDArray& a, const Array<ObjectRef>& operands);
  ObjectRef Perturbed(const ObjectRef& value);

  EvalMode mode_;
  int64_t calls_ = 0, bytes_ = 0, misses_ = 0;
  uint64_t generation_ = 1, draws_ = 0;
  std::unordered_multimap<uint64_t, Entry> calls_by_key_;
  std::unordered_map<const Object*, Alias> canonical_;       ///< arrays that came in, by address
  std::unordered_multimap<uint64_t, Known> by_content_;      ///< by hash of type and bytes
  std::unordered_map<uint64_t, std::vector<NDArray>> near_;  ///< float results by shape and type, in order
  struct HashedAttrs {
    Attrs attrs;
    uint64_t hash;
  };
  std::unordered_map<const Object*, HashedAttrs> attrs_;
};

}  // namespace baton::relay
