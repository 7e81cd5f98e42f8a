// SPDX-License-Identifier: Apache-2.0
// Counts rewrites, so that a faulty one can be found by bisection: with a limit of n, a pass makes its first n rewrites
// and leaves the rest of the program unchanged.
#pragma once

#include <baton/ir/transform.h>

namespace baton::transform {

/// While it lives, counts the rewrites of passes on this thread that run in the current context. Passes that run in a
/// nested context, as constant folding does, are not counted.
class BATON_DLL RewriteScope {
 public:
  /// Only the first `limit` rewrites are made; a negative limit means no limit.
  explicit RewriteScope(int64_t limit);
  ~RewriteScope();
  RewriteScope(const RewriteScope&) = delete;
  int64_t seen() const { return seen_; }
  /// Whether a scope is active on this thread. A search for a faulty rewrite then needs the output of a pass, even if
  /// it is wrong.
  static bool Active();

 private:
  friend bool RewriteAllowed();
  RewriteScope* outer_;
  const Object* context_;
  int64_t limit_, seen_ = 0;
};

/// A pass asks this before each optional rewrite. True when no scope is active. Mutators built on
/// MixedModeMutator::Rewrite_ ask by themselves.
BATON_DLL bool RewriteAllowed();

}  // namespace baton::transform
