// SPDX-License-Identifier: Apache-2.0
// Sums of bytes that are scaled, and what follows until they are quantized: one factor where the program has three.
#pragma once

#include <baton/relay/expr.h>
#include <baton/support/pointer_map.h>

namespace baton::relay::transform {

/// A value for each output of the typed product, or one for all, in a shape that broadcasts with its result.
Expr AlongOutputs(const runtime::NDArray& values, const CallNode* product);

class QuantizedSums {
 public:
  /// `made`, of the typed product, is float32(`sum`) * `factors`.
  void Add(const Expr& made, const Expr& sum, const runtime::NDArray& factors, const CallNode* product);
  bool Has(const Expr& made) const { return sums_.Has(made.get()); }
  /// `made` / `scale`, where `made` is such a sum or one with a bias that stands for whole numbers of its steps; these
  /// are added to the sum. Null for others.
  Expr Scaled(const Expr& made, float scale) const;

 private:
  struct Sum {
    Expr made, sum;
    runtime::NDArray factors;
    const CallNode* product = nullptr;
  };
  PointerMap<Sum> sums_;
};

}  // namespace baton::relay::transform
