// SPDX-License-Identifier: Apache-2.0
// Type arguments of calls, from the types that inference has written.
#include <baton/relay/analysis.h>
#include <baton/runtime/registry.h>
#include <fmt/format.h>
#include <relay/types/inferencer.h>

namespace baton::relay {
namespace {

/// Values of a call's type parameters: those that it states; of an operator, the types of the arguments; else what
/// makes the callee's type that of the arguments and the result. Empty where types are not known.
Array<Type> TypeArgsOf(const Call& call) {
  if (!call->type_args.empty()) return call->type_args;
  Array<Type> args;
  for (const Expr& a : call->args) {
    if (!a->checked_type_.defined()) return {};
    args.push_back(a->checked_type());
  }
  if (call->op.as<OpNode>()) return args;
  const auto* sig = call->op.defined() ? call->op->checked_type_.as<FuncTypeNode>() : nullptr;
  if (!sig || sig->type_params.empty() || sig->arg_types.size() != args.size() || !call->checked_type_.defined())
    return {};
  TypePool pool;
  TypeSolver solver(&pool);
  std::vector<std::pair<const Object*, Type>> with;
  Array<Type> found;
  for (const TypeVar& v : sig->type_params) {
    found.push_back(solver.NewVariable());
    with.push_back({v.get(), found[found.size() - 1]});
  }
  const auto in = TypeSolver::Substitute(TupleType(sig->arg_types), with);
  if (!solver.Unify(in, TupleType(args))) return {};
  if (!solver.Unify(TypeSolver::Substitute(sig->ret_type, with), call->checked_type())) return {};
  Array<Type> out;
  for (const Type& t : found) {
    out.push_back(solver.Resolve(t));
    if (solver.FirstUnbound(out[out.size() - 1])) return {};
  }
  return out;
}

BATON_REGISTER_GLOBAL("relay.ir.CallTypeArgs").set_body_typed(TypeArgsOf);

}  // namespace
}  // namespace baton::relay
