// SPDX-License-Identifier: Apache-2.0
// A fusion group with a heavy operator, taken apart: the buffers it reads and writes, and what follows the heavy
// operator as vector code at the store.
#pragma once

#include <baton/relay/expr.h>
#include <baton/te/tensor.h>
#include <baton/tir/functor.h>

#include <optional>
#include <unordered_map>
#include <vector>

#include "build.h"

namespace baton::relay::kernel {

/// The place of a vector of results in the heavy operator's output, and its value.
struct Site {
  Array<PrimExpr> at;  ///< index of the first lane, one a dimension
  PrimExpr offset;     ///< the same in the flat output
  int64_t lanes = 1;   ///< along the last dimension
  PrimExpr mask;       ///< lanes that exist; null: all
  /// So many last dimensions are one: their place is the last index, the others are variables that stand for nothing.
  int64_t merged = 1;
};

class Group {
 public:
  /// Null when the group has a form that kernels do not take: then the general schedule has to. `open`: extents may be
  /// expressions of variables.
  static std::optional<Group> Make(const Function& func, const Call& anchor, bool open = false);

  /// The flat buffer behind the heavy operator's i-th argument.
  const Buffer& arg(size_t i) const { return args_[i]; }
  const Array<PrimExpr>& arg_extents(size_t i) const { return arg_extents_[i]; }
  /// The same where all are literals.
  const std::vector<int64_t>& arg_shape(size_t i) const { return arg_shapes_[i]; }
  size_t num_args() const { return args_.size(); }
  DataType arg_dtype(size_t i) const { return args_[i]->dtype; }
  const Buffer& out() const { return out_; }
  const Array<PrimExpr>& out_extents() const { return extents_; }
  const std::vector<int64_t>& out_shape() const { return shape_; }
  /// Dtype of the heavy operator's result, before what follows.
  DataType anchor_dtype() const { return anchor_->dtype; }
  /// True if partial results can lie in the output until the last ones are there.
  bool out_holds_partials() const { return out_->dtype == anchor_->dtype && !aliased_; }
  /// Whether the heavy operator's result is the group's.
  bool ends_with_anchor() const { return result_->op.same_as(anchor_->op); }
  /// Operations a vector of results takes after the heavy operator: a measure, 0 also where constants follow.
  int64_t epilogue_size() const { return epilogue_size_; }

  /// Stores f(value), f being what follows the heavy operator. Throws NoVectorForm.
  Stmt Finish(const Site& site, PrimExpr value) const;
  /// The function around a body: buffers of inputs and output, then the variables of their extents as they appear.
  tir::PrimFunc Function(const Stmt& body) const;

 private:
  std::vector<tir::Var> handles_;
  std::vector<Buffer> buffers_;  // of the parameters, then the output
  std::vector<tir::Var> sizes_;  // variables of their extents
  std::unordered_map<const Object*, size_t> placeholder_;
  std::vector<Buffer> args_;
  std::vector<Array<PrimExpr>> arg_extents_;
  std::vector<std::vector<int64_t>> arg_shapes_;
  Array<PrimExpr> extents_;  // of the output
  std::vector<int64_t> shape_;
  te::Tensor anchor_, result_;
  Buffer out_;
  int64_t epilogue_size_ = 0;
  bool aliased_ = false;
  friend class Vectorizer;
};

/// Whether the heavy operator sums products of uint8 by int8 in int32.
inline bool IsDot(const Group& g) {
  return g.num_args() == 2 && g.arg_dtype(0) == DataType::UInt(8) && g.arg_dtype(1) == DataType::Int(8) &&
         g.anchor_dtype() == DataType::Int(32);
}

/// Whether it sums products of bfloat16 in float32.
inline bool IsHalfDot(const Group& g) {
  return g.num_args() == 2 && g.arg_dtype(0) == DataType::BFloat16() && g.arg_dtype(1) == DataType::BFloat16() &&
         g.anchor_dtype() == DataType::Float(32);
}
/// Terms of the sum that one step takes: 4 of bytes, 2 of bfloat16, else 1.
inline int64_t TermsOf(const Group& g) { return IsDot(g) ? 4 : IsHalfDot(g) ? 2 : 1; }

/// The operators after the heavy one cannot be said in vectors.
struct NoVectorForm {};

/// Calls `generate(group)`; null when the group or its epilogue has no vector form.
template <class F>
tir::PrimFunc Generate(const relay::Function& func, const Call& anchor, F generate, bool open = false) {
  std::optional<Group> g = Group::Make(func, anchor, open);
  if (!g) return tir::PrimFunc();
  try {
    Stmt body = generate(*g);
    return body.defined() ? g->Function(body) : tir::PrimFunc();
  } catch (const NoVectorForm&) {
    return tir::PrimFunc();
  }
}

/// The same for generators that take extents which are not literals.
template <class F>
tir::PrimFunc GenerateOpen(const relay::Function& func, const Call& anchor, F generate) {
  return Generate(func, anchor, generate, true);
}

}  // namespace baton::relay::kernel
