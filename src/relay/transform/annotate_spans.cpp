// SPDX-License-Identifier: Apache-2.0
#include <baton/relay/text.h>
#include <baton/relay/transform.h>

namespace baton::relay::transform {

Pass AnnotateSpans() {
  return MakePass<AnnotateSpans>({
      .doc = "Prints the program and reads it back, so that each expression has a place in its text.",
      .opt_level = 5,
      .run = [](IRModule mod, PassContext) { return ParseModule(PrintText(mod), "GeneratedSource", IRModule()); },
  });
}

namespace {
const RegisterPass<AnnotateSpans> registered;
}

}  // namespace baton::relay::transform
