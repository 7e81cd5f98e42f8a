// SPDX-License-Identifier: Apache-2.0
#include <baton/ir/rewrite_limit.h>
#include <baton/runtime/registry.h>

#include "ir/thread_state.h"

namespace baton::transform {

RewriteScope::RewriteScope(int64_t limit)
    : outer_(ThreadState::Get().rewrites), context_(PassContext::Current().get()), limit_(limit) {
  ThreadState::Get().rewrites = this;
}
RewriteScope::~RewriteScope() { ThreadState::Get().rewrites = outer_; }

bool RewriteScope::Active() { return ThreadState::Get().rewrites != nullptr; }

bool RewriteAllowed() {
  RewriteScope* scope = ThreadState::Get().rewrites;
  if (!scope || PassContext::Current().get() != scope->context_) return true;
  return scope->seen_++ < scope->limit_ || scope->limit_ < 0;
}

BATON_REGISTER_GLOBAL("transform.RewriteAllowed").set_body_typed([] { return RewriteAllowed(); });
/// (pass, module, limit): the module after the pass's first `limit` rewrites, and how many it asked for.
BATON_REGISTER_GLOBAL("transform.RunLimited").set_body_typed([](Pass pass, IRModule mod, int64_t limit) {
  RewriteScope scope(limit);
  IRModule out = pass(std::move(mod));
  return Array<Any>{Any(out), Any(scope.seen())};
});

}  // namespace baton::transform
