// SPDX-License-Identifier: Apache-2.0
#include <baton/ir/keep_functions.h>
#include <baton/relay/text.h>
#include <baton/relay/transform.h>

namespace baton::relay::transform {

Pass AnnotateSpans() {
  return MakePass<AnnotateSpans>({
      .doc = "Prints the program and reads it back, so that each expression has a place in its text.",
      .opt_level = 0,
      .run =
          [](IRModule mod, PassContext) {
            // Functions of another IR have no text: they stay as they are.
            IRModule others = IRModule(Map<GlobalVar, BaseFunc>());
            const IRModule own = KeepFunctions(mod, [&](const GlobalVar& var, const BaseFunc& func) {
              if (func.as<FunctionNode>()) return true;
              others.CopyOnWrite()->Add(var, func);
              return false;
            });
            const bool mixed = !own.same_as(mod);
            // Parts without text, constants above all, are handed on as they are: to print and read the weights
            // of a model would take seconds. So are deep types: those of nested functions would be a text of the square
            // of the depth.
            Map<String, Any> objects;
            const std::string text = PrintText(own, {.objects = &objects});
            return ParseModule(text, "GeneratedSource", mixed ? others : IRModule(), objects);
          },
  });
}

namespace {
const RegisterPass<AnnotateSpans> registered_annotate_spans;
}

}  // namespace baton::relay::transform
