// SPDX-License-Identifier: Apache-2.0
// Traversal and variables for front ends.
#include <baton/relay/functor.h>
#include <baton/runtime/registry.h>

namespace baton::relay {

BATON_REGISTER_GLOBAL("relay.analysis.post_order_visit").set_body_typed([](Expr e, PackedFunc f) {
  PostOrderVisit(e, TypedPackedFunc<void(Expr)>(f));
});
BATON_REGISTER_GLOBAL("relay.analysis.free_vars").set_body_typed([](Expr e) { return FreeVars(e); });
BATON_REGISTER_GLOBAL("relay.analysis.bound_vars").set_body_typed([](Expr e) { return BoundVars(e); });
BATON_REGISTER_GLOBAL("relay.analysis.all_vars").set_body_typed([](Expr e) { return AllVars(e); });
BATON_REGISTER_GLOBAL("relay.analysis.bind").set_body_typed([](Expr e, Map<Var, Expr> binds) { return Bind(e, binds); });

}  // namespace baton::relay
