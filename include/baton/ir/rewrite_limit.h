// SPDX-License-Identifier: Apache-2.0
// Counting rewrites, so that the one that goes wrong can be found by halving: with a limit of n, a pass makes its first
// n rewrites and leaves the rest of the program as it is.
#pragma once

#include <baton/ir/transform.h>

namespace baton::transform {

/// Counts what passes rewrite on this thread while it lives, in the context that is current now: what a pass compiles
/// in a context of its own (constant folding does) is not counted.
class BATON_DLL RewriteScope {
 public:
  /// No rewrite but the first `limit` is made; a negative limit is none.
  explicit RewriteScope(int64_t limit);
  ~RewriteScope();
  RewriteScope(const RewriteScope&) = delete;
  int64_t seen() const { return seen_; }
  /// Whether there is one on this thread: then who looks for a fault wants the program that a pass leaves, be it wrong.
  static bool Active();

 private:
  friend bool RewriteAllowed();
  RewriteScope* outer_;
  const Object* context_;
  int64_t limit_, seen_ = 0;
};

/// A pass asks before each rewrite that it could as well leave out; true when nobody counts. The mutators that are
/// built on MixedModeMutator::Rewrite_ ask here by themselves.
BATON_DLL bool RewriteAllowed();

}  // namespace baton::transform
