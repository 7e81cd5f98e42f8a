// SPDX-License-Identifier: Apache-2.0
#include <baton/relay/transform.h>
#include <relay/transform/let_inserter.h>

namespace baton::relay::transform {

Pass ToANormalForm() {
  return MakePass<ToANormalForm>({
      .doc =
          "Binds every value but variables, constants and names by a let, in the order of evaluation; what is shared "
          "is bound once.",
      .opt_level = 1,
      .establishes = {"ANF"},
      .run = [](IRModule mod, PassContext) { return InsertLets(mod, LetForm::kAll); },
  });
}

namespace {
const RegisterPass<ToANormalForm> registered_to_a_normal_form;
BATON_REGISTER_GLOBAL("relay._transform.ToANormalFormExpr").set_body_typed([](Expr e) {
  if (e->IsInstance<FunctionNode>()) return InsertLets(e, LetForm::kAll);
  // The value itself is bound, too, as that of a function is.
  return InsertLets(Function({}, e), LetForm::kAll).as<FunctionNode>()->body;
});
}  // namespace

}  // namespace baton::relay::transform
