// SPDX-License-Identifier: Apache-2.0
// Relations within types, and a standalone interface to the type solver, for tests.
#include <baton/arith/extent.h>
#include <baton/ir/structural.h>
#include <baton/ir/type_relation.h>
#include <baton/relay/op.h>
#include <baton/runtime/registry.h>
#include <relay/types/type_solver.h>

#include <memory>

namespace baton::relay {
namespace {

const RegisterNodes<TypeRelationNode> registered_type_relation;

/// Forwards the results of a relation to the solver.
class ToSolver final : public TypeReporter {
 public:
  explicit ToSolver(TypeSolver* solver) : solver_(solver) {}
  void Assign(const Type& dst, const Type& src) override {
    if (!solver_->Unify(dst, src)) {
      throw CompileError("the types " + AsText(solver_->Resolve(dst)) + " and " + AsText(solver_->Resolve(src)) +
                         " differ");
    }
  }
  bool AssertEQ(const PrimExpr& a, const PrimExpr& b) override { return arith::ExtentsEqual(a, b) != arith::Fact::kNo; }
  const runtime::NDArray* ConstantArg(int) override { return nullptr; }

 private:
  TypeSolver* solver_;
};

/// Constraints in order of arrival; each is retried until its inputs are known.
struct Constraints {
  TypePool pool;
  TypeSolver solver{&pool};
  std::vector<TypeRelation> waiting;

  bool Ask(const TypeRelation& r) {
    Array<Type> args;
    for (const Type& t : r->args) args.push_back(solver.Resolve(t));
    ToSolver reporter(&solver);
    return r->func(args, r->num_inputs, r->attrs, static_cast<void*>(&reporter)).As<bool>();
  }
  /// Whether all are settled.
  bool Solve() {
    for (bool progress = true; progress && !waiting.empty();) {
      progress = false;
      std::vector<TypeRelation> left;
      for (const TypeRelation& r : waiting) {
        if (Ask(r)) {
          progress = true;
        } else {
          left.push_back(r);
        }
      }
      progress |= !solver.TakeBound().empty();
      if (left.size() == waiting.size() && !progress) break;
      waiting = std::move(left);
    }
    return waiting.empty();
  }
};

/// A solver: called with "AddConstraint", "Solve", "Unify" or "Resolve", it gives that function.
BATON_REGISTER_GLOBAL("relay.analysis._test_type_solver").set_body_typed([]() -> runtime::PackedFunc {
  auto all = std::make_shared<Constraints>();
  return runtime::MakeTyped(
      [all](std::string name) -> runtime::PackedFunc {
        if (name == "AddConstraint") {
          return runtime::MakeTyped([all](TypeRelation r) { all->waiting.push_back(r); }, "AddConstraint");
        }
        if (name == "Solve") return runtime::MakeTyped([all] { return all->Solve(); }, "Solve");
        if (name == "Resolve") return runtime::MakeTyped([all](Type t) { return all->solver.Resolve(t); }, "Resolve");
        if (name == "Unify") {
          return runtime::MakeTyped(
              [all](Type a, Type b) {
                if (!all->solver.Unify(a, b)) {
                  throw CompileError("the types " + AsText(all->solver.Resolve(a)) + " and " +
                                     AsText(all->solver.Resolve(b)) + " cannot be unified");
                }
                return all->solver.Resolve(all->solver.Join(a, b));
              },
              "Unify");
        }
        throw runtime::ValueError("the solver has AddConstraint, Solve, Unify and Resolve, no `" + name + "`");
      },
      "_test_type_solver");
});

template <TypeRelationFn rel>
bool Call(Array<Type> types, int num_inputs, Attrs attrs, void* reporter) {
  if (!reporter)
    throw runtime::ValueError("a relation is asked by a solver: `relay.analysis._ffi_api._test_type_solver`");
  const int wanted = rel == nullptr ? 1 : 2;
  if (num_inputs != wanted || static_cast<int>(types.size()) != wanted + 1) {
    throw CompileError("the relation is between " + std::to_string(wanted) + " inputs and a result, got " +
                       std::to_string(num_inputs) + " inputs among " + std::to_string(types.size()) + " types");
  }
  auto& to = *static_cast<ToSolver*>(reporter);
  if constexpr (rel == nullptr) {  // whatever both types are
    to.Assign(types[1], types[0]);
    return true;
  } else {
    return rel(types, num_inputs, attrs, to);
  }
}
// Under the names that programs look for.
BATON_REGISTER_GLOBAL("tvm.relay.type_relation.Identity").set_body_typed(Call<nullptr>);
BATON_REGISTER_GLOBAL("tvm.relay.type_relation.Broadcast").set_body_typed(Call<BroadcastRel>);
BATON_REGISTER_GLOBAL("tvm.relay.type_relation.BroadcastComp").set_body_typed(Call<BroadcastCompRel>);

}  // namespace
}  // namespace baton::relay
