// SPDX-License-Identifier: Apache-2.0
#include <baton/relay/transform.h>
#include <relay/transform/let_inserter.h>

namespace baton::relay::transform {

Pass ToBasicBlockNormalForm() {
  return MakePass<ToBasicBlockNormalForm>({
      .doc = "Binds by a let each value that several blocks (bodies, branches, clauses) use, in the innermost block "
             "around them.",
      .opt_level = 1,
      .run = [](IRModule mod, PassContext) { return InsertLets(mod, LetForm::kBlocks); },
  });
}

namespace {
const RegisterPass<ToBasicBlockNormalForm> registered_to_basic_block_normal_form;
BATON_REGISTER_GLOBAL("relay._transform.ToBasicBlockNormalFormExpr").set_body_typed([](Expr e) {
  return InsertLets(e, LetForm::kBlocks);
});
}  // namespace

}  // namespace baton::relay::transform
