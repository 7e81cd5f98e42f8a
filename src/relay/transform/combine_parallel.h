// SPDX-License-Identifier: Apache-2.0
// What CombineParallelConv2D, CombineParallelDense and CombineParallelBatchMatmul share: they find calls of one
// operator on the same data, follow the elementwise operators behind all of them, and put one call in the place of all.
#pragma once

#include <baton/relay/op.h>
#include <baton/relay/transform.h>
#include <baton/support/pointer_map.h>
#include <relay/expr/expr_index.h>

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace baton::relay::transform {

using Ints = std::vector<int64_t>;

/// How calls of one operator become one. args[0] of a call is the data that branches share.
class ParallelRule {
 public:
  virtual ~ParallelRule() = default;
  /// Whether the call begins a branch; calls of equal `key` (and of equal `attrs`) may be combined. Types are known.
  virtual bool Match(const CallNode* call, Ints* key, Attrs* attrs) const = 0;
  /// The call that computes all branches, given the weights that they were given.
  virtual Expr Combine(const std::vector<const CallNode*>& calls, const Expr& data,
                       const Array<Expr>& weights) const = 0;
  /// The dimension of a branch's result of this shape along which results are joined.
  virtual int64_t Axis(const CallNode* call) const = 0;
  /// Results are stacked along a new first dimension instead.
  virtual bool stacks() const { return false; }
};

/// Rewrites all of a function. A branch that another one needs the result of is left out.
Function CombineParallel(const Function& f, const ParallelRule& rule, int64_t min_branches);

/// Throws ValueError unless there are to be at least two.
void CheckMinBranches(int64_t min_branches, const char* pass);

/// The shape of an expression if it is a tensor of known extents.
bool KnownShape(const Expr& e, Ints* shape);
/// concatenate(parts, axis)
Expr ConcatenateOf(const Array<Expr>& parts, int64_t axis);

}  // namespace baton::relay::transform
