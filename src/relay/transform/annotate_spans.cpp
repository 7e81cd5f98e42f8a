// SPDX-License-Identifier: Apache-2.0
#include <baton/relay/text.h>
#include <baton/relay/transform.h>

namespace baton::relay::transform {

Pass AnnotateSpans() {
  return MakePass<AnnotateSpans>({
      .doc = "Prints the program and reads it back, so that each expression has a place in its text.",
      .opt_level = 0,
      .run =
          [](IRModule mod, PassContext) {
            // Functions of another IR have no text of their own: they stay as they are.
            IRModule own = mod, others = IRModule(Map<GlobalVar, BaseFunc>());
            bool mixed = false;
            for (const auto& [var, func] : mod->functions) {
              if (Expr(func)->IsInstance<FunctionNode>()) continue;
              own.CopyOnWrite()->Remove(var);
              others.CopyOnWrite()->Add(var, func);
              mixed = true;
            }
            return ParseModule(PrintText(own), "GeneratedSource", mixed ? others : IRModule());
          },
  });
}

namespace {
const RegisterPass<AnnotateSpans> registered;
}

}  // namespace baton::relay::transform
