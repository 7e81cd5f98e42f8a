// SPDX-License-Identifier: Apache-2.0
// Helpers of gradient rules: expressions with arithmetic, and shapes of a call's arguments.
#pragma once

#include <baton/relay/gradient.h>
#include <baton/relay/op/make.h>
#include <baton/relay/op/transform.h>

#include "common.h"

namespace baton::relay::gradient {

/// A tensor; numbers beside it get its dtype: `1.0 - y * y`.
struct Val {
  Expr e;
  DataType t;
  operator const Expr&() const { return e; }  // NOLINT
};
using Grads = Array<Expr>;

inline Val Num(double v, DataType t) { return {MakeScalar(v, t), t}; }
inline Val operator+(const Val& a, const Val& b) { return {Add(a.e, b.e), a.t}; }
inline Val operator-(const Val& a, const Val& b) { return {Subtract(a.e, b.e), a.t}; }
inline Val operator*(const Val& a, const Val& b) { return {Multiply(a.e, b.e), a.t}; }
inline Val operator/(const Val& a, const Val& b) { return {Divide(a.e, b.e), a.t}; }
inline Val operator+(const Val& a, double b) { return a + Num(b, a.t); }
inline Val operator-(const Val& a, double b) { return a - Num(b, a.t); }
inline Val operator*(const Val& a, double b) { return a * Num(b, a.t); }
inline Val operator/(const Val& a, double b) { return a / Num(b, a.t); }
inline Val operator+(double a, const Val& b) { return Num(a, b.t) + b; }
inline Val operator-(double a, const Val& b) { return Num(a, b.t) - b; }
inline Val operator*(double a, const Val& b) { return b * a; }
inline Val operator/(double a, const Val& b) { return Num(a, b.t) / b; }
inline Val operator-(const Val& a) { return {MakeCall(op::negative, {a.e}), a.t}; }
/// An operator of one operand on a tensor.
inline Val Do(const Op& op, const Val& a) { return {MakeCall(op, {a.e}), a.t}; }
/// A comparison; its dtype is that of its operands still, for Pick.
inline Val Test(const Op& op, const Val& a, const Val& b) { return {MakeCall(op, {a.e, b.e}), a.t}; }
inline Val Test(const Op& op, const Val& a, double b) { return Test(op, a, Num(b, a.t)); }
inline Val Pick(const Val& condition, const Val& a, const Val& b) { return {Where(condition.e, a.e, b.e), a.t}; }
inline Val Pick(const Val& c, const Val& a, double b) { return Pick(c, a, Num(b, a.t)); }
inline Val Pick(const Val& c, double a, const Val& b) { return Pick(c, Num(a, b.t), b); }
inline Val Pick(const Val& c, double a, double b) { return Pick(c, Num(a, c.t), Num(b, c.t)); }

/// A call that is differentiated, or decomposed.
class At {
 public:
  At(const Call& call, const Expr& grad) : call_(call), g_(grad) {}
  const Call& call() const { return call_; }
  template <class A>
  const A& attrs() const {
    return AttrsAs<A>(call_->attrs);
  }
  const char* op() const { return call_->op.as<OpNode>()->name.c_str(); }
  size_t size() const { return call_->args.size(); }
  const Expr& arg(int i) const { return call_->args[i]; }
  /// Type of argument i, which is a tensor.
  const TensorTypeNode* type(int i) const { return Tensor(call_->args[i]->checked_type(), "an argument"); }
  const TensorTypeNode* out() const { return Tensor(call_->checked_type(), "the result"); }
  DataType dtype(int i) const { return type(i)->dtype; }
  bool floating(int i) const { return type(i)->dtype.is_floating(); }
  int64_t ndim(int i) const { return static_cast<int64_t>(type(i)->shape.size()); }
  Val x(int i = 0) const { return {arg(i), dtype(i)}; }
  Val y() const { return {call_, out()->dtype}; }
  Val g() const { return {g_, out()->dtype}; }
  const Expr& grad() const { return g_; }
  /// Extents of argument i; a CompileError where one is not known.
  Ints dims(int i) const { return Known(type(i)->shape); }
  Ints out_dims() const { return Known(out()->shape); }
  Ints Known(const Shape& shape) const;
  bool Static(const Shape& shape) const {
    std::vector<int64_t> unused;
    return StaticShape(shape, &unused);
  }
  int64_t Axis(int64_t axis, int i = 0) const { return NormalizeAxis(axis, ndim(i), op()); }
  /// Throws: this call has no gradient.
  [[noreturn]] void Fail(const std::string& text) const;

 private:
  const TensorTypeNode* Tensor(const Type& t, const char* what) const;
  const Call& call_;
  const Expr& g_;
};

/// `g`, of type `from`, summed over the axes along which `like` was broadcast.
Expr Collapse(const Expr& g, const TensorTypeNode* from, const Expr& like);
/// `g` with the shape of `like`, and as many elements.
Expr ShapeLike(const Expr& g, const Expr& like);
/// A tensor of zeros, or of ones, of like's type.
Expr ZerosLike(const Expr& like);
Expr OnesLike(const Expr& like);
Expr Sum(const Expr& data, const Ints& axes, bool keepdims = false);
Expr Mean(const Expr& data, const Ints& axes, bool keepdims = true);
Expr Slice(const Expr& data, const Ints& begin, const Ints& end);
Expr Split(const Expr& data, const Ints& at, int64_t axis);
Expr Concat(const Expr& tuple, int64_t axis);
Expr Squeeze(const Expr& data, const Ints& axes);
/// Pads with zeros, or crops where negative.
Expr Pad(const Expr& data, const Ints& before, const Ints& after, DataType dtype);
/// data with axes in the order `axes`.
Expr Permute(const Expr& data, const Ints& axes);
Expr MatMul(const Expr& a, const Expr& b, bool transpose_a, bool transpose_b);
/// 0, 1, ..., n - 1 as int64.
Expr Iota(int64_t n);
inline Expr Flatten(const Expr& e) { return Reshape(e, {-1}); }
/// The n x n matrix with ones on the diagonal.
Expr Identity(int64_t n, DataType t);
/// n zeros.
Expr ZerosOf(int64_t n, DataType t);
/// `updates` added to `zeros`, which has one dimension, at the places `index`.
Expr Scatter(const Expr& zeros, const Expr& index, const Expr& updates);
inline Expr Item(const Expr& tuple, int64_t i) { return TupleGetItem(TupleGetItemNode{.tuple = tuple, .index = i}); }
/// The axes that a reduction names, sorted.
Ints ReducedAxes(const Array<int64_t>& axis, bool exclude, int64_t ndim, const char* op);
inline Ints AxesFrom(int64_t begin, int64_t end) {
  Ints v;
  for (int64_t d = begin; d < end; ++d) v.push_back(d);
  return v;
}

/// For an operator whose result holds elements of its first argument, each any number of times, and zeros:
/// `move(numbers)` is the operator on another tensor. Numbers start at 1: elements not from data go to a dropped place.
template <class Move>
Expr ByNumbers(const At& at, const Expr& grad, Move move) {
  Ints dims = at.dims(0);
  int64_t n = ProductOf(dims);
  if (n == 0) return ZerosLike(at.arg(0));
  Expr numbers = Reshape(Add(Iota(n), MakeScalar(1, DataType::Int(64))), ToArray(dims));
  Expr sum = Scatter(ZerosOf(n + 1, at.dtype(0)), Flatten(move(numbers)), Flatten(grad));
  return ShapeLike(Slice(sum, {1}, {n + 1}), at.arg(0));
}

/// Adjoints of operators that return their argument.
inline Grads Through(const Call&, const Expr& grad) { return {grad}; }
/// Adjoints of piecewise constant operators, and of those that do not depend on their arguments' values.
inline Grads Flat(const Call& call, const Expr&) { return Grads(call->args.size(), Expr()); }
/// The adjoint with the first argument's shape: as many elements, in the same order.
Grads ReshapeBack(const Call& call, const Expr& grad);
/// Summed over what the first argument was broadcast along.
Grads CollapseBack(const Call& call, const Expr& grad);
/// ByNumbers for a call with its attributes and its other arguments.
Grads SelectBack(const Call& call, const Expr& grad);
// Reasons that several operators share.
constexpr auto kNoRuleYet = "its rule is not written yet";
constexpr auto kComparesBoxes = "it selects boxes by comparing them";
constexpr auto kDynamicResult = "its result's shape is an operand; run DynamicToStatic first";

}  // namespace baton::relay::gradient
