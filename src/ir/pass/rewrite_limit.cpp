// SPDX-License-Identifier: Apache-2.0
#include <baton/ir/rewrite_limit.h>
#include <baton/runtime/registry.h>

namespace baton::transform {

namespace {
thread_local RewriteScope* counting = nullptr;
}

RewriteScope::RewriteScope(int64_t limit) : outer_(counting), context_(PassContext::Current().get()), limit_(limit) {
  counting = this;
}
RewriteScope::~RewriteScope() { counting = outer_; }

bool RewriteScope::Active() { return counting != nullptr; }

bool RewriteAllowed() {
  RewriteScope* scope = counting;
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
