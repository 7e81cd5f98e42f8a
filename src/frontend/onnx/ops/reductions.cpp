// SPDX-License-Identifier: Apache-2.0
// Reductions, scans, softmax and its kin, and orderings.
#include <algorithm>
#include <limits>

#include "common.h"

namespace baton::onnx {
namespace {

struct Reduced {
  Value data;
  Dims axes;
  bool keepdims;
  bool nothing = false;  // no axes, and noop_with_empty_axes is set
};

/// Axes are an attribute before `input_since` and an operand from there on; none are all.
Reduced Operands(Ctx& c, int input_since) {
  Reduced r;
  r.data = c.T(0);
  r.keepdims = c.Int("keepdims", 1) != 0;
  bool given = false;
  if (c.since() < input_since) {
    given = c.HasAttr("axes");
    r.axes = c.Ints("axes");
  } else {
    bool noop = c.Int("noop_with_empty_axes", 0) != 0;
    if (c.Has(1)) r.axes = c.KnownInts(c.T(1));
    given = !r.axes.empty();
    r.nothing = !given && noop;
  }
  int rank = c.Rank(r.data);
  if (!given) r.axes = Iota(rank);
  for (int64_t& a : r.axes) a = c.Axis(a, rank);
  std::sort(r.axes.begin(), r.axes.end());
  if (std::adjacent_find(r.axes.begin(), r.axes.end()) != r.axes.end()) c.Fail("`axes` names an axis twice");
  return r;
}

Values Simple(Ctx& c, const char* op, int input_since = 18) {
  Reduced r = Operands(c, input_since);
  if (r.nothing) return {r.data};
  return {Reduce(c, op, r.data, r.axes, r.keepdims)};
}

Values ReduceSum(Ctx& c) { return Simple(c, "sum", 13); }
Values ReduceProd(Ctx& c) { return Simple(c, "prod"); }
Values ReduceMax(Ctx& c) { return Simple(c, "max"); }
Values ReduceMin(Ctx& c) { return Simple(c, "min"); }
Values ReduceMean(Ctx& c) { return Simple(c, "mean"); }

Value MaybeReduce(Ctx& c, const Reduced& r, const Value& v) {
  return r.nothing ? v : Reduce(c, "sum", v, r.axes, r.keepdims);
}

Values ReduceL1(Ctx& c) {
  Reduced r = Operands(c, 18);
  return {MaybeReduce(c, r, c.Call("abs", {r.data}))};
}
Values ReduceSumSquare(Ctx& c) {
  Reduced r = Operands(c, 18);
  return {MaybeReduce(c, r, c.Mul(r.data, r.data))};
}
Value SqrtOf(Ctx& c, const Value& v) {
  if (IsFloat(v.dtype)) return c.Call("sqrt", {v});
  return c.Cast(c.Call("sqrt", {c.Cast(v, DataType::Float(64))}), v.dtype);
}
Values ReduceL2(Ctx& c) {
  Reduced r = Operands(c, 18);
  return {SqrtOf(c, MaybeReduce(c, r, c.Mul(r.data, r.data)))};
}
Value LogOf(Ctx& c, const Value& v) {
  if (IsFloat(v.dtype)) return c.Call("log", {v});
  return c.Cast(c.Call("log", {c.Cast(v, DataType::Float(64))}), v.dtype);
}
Values ReduceLogSum(Ctx& c) {
  Reduced r = Operands(c, 18);
  return {LogOf(c, MaybeReduce(c, r, r.data))};
}
Values ReduceLogSumExp(Ctx& c) {
  Reduced r = Operands(c, 18);
  DataType given = r.data.dtype;
  Value x = IsFloat(given) ? r.data : c.Cast(r.data, DataType::Float(64));
  if (r.nothing) return {r.data};
  Value top = Reduce(c, "max", x, r.axes, true);
  // Where all elements are -inf the maximum must not be subtracted: -inf - -inf is NaN.
  Value finite = c.Call("less", {c.Call("abs", {top}), c.Scalar(x.dtype, std::numeric_limits<double>::infinity())});
  top = c.Where(finite, top, c.Scalar(x.dtype, 0));
  Value sum = Reduce(c, "sum", c.Call("exp", {c.Sub(x, top)}), r.axes, true);
  Value out = c.Add(c.Call("log", {sum}), top);
  if (!r.keepdims) out = c.Squeeze(out, r.axes);
  return {c.Cast(out, given)};
}

Values ArgReduce(Ctx& c, const char* op) {
  Value x = c.T(0);
  int axis = c.Axis(c.Int("axis", 0), c.Rank(x));
  bool keepdims = c.Int("keepdims", 1) != 0;
  bool last = c.Int("select_last_index", 0) != 0;
  return {c.Call(
      op, {x},
      {{"axis", IntsAny({axis})}, {"keepdims", keepdims}, {"select_last_index", last}, {"dtype", DataType::Int(64)}})};
}
/// Axes that are reduced and stay have the length 1, but are not known.
Values ReducedTypes(Ctx& c) {
  if (c.Int("keepdims", 1) != 0) return RankOfFirst(c);
  int64_t axes = CountOf(c, 1);
  if (axes == 0) throw NeedsValue{"the rank of its result"};  // none, or all
  return {Reduce(c, "max", RankedOperand(c, 0), Iota(axes), false)};
}

Values ArgMax(Ctx& c) { return ArgReduce(c, "argmax"); }
Values ArgMin(Ctx& c) { return ArgReduce(c, "argmin"); }

Values Cumulate(Ctx& c, const char* op) {
  Value x = c.T(0);
  bool exclusive = c.Int("exclusive", 0) != 0, reverse = c.Int("reverse", 0) != 0;
  Dims at = c.KnownInts(c.T(1));
  if (at.size() != 1) c.Fail("`axis` must be one number");
  int axis = c.Axis(at[0], c.Rank(x));
  return {c.Call(op, {x}, {{"axis", axis}, {"exclusive", exclusive}, {"reverse", reverse}})};
}
Values CumulateTypes(Ctx& c) { return {c.Call("cumsum", {TypedOperand(c, 0)}, {{"axis", 0}})}; }
Values CumSum(Ctx& c) { return Cumulate(c, "cumsum"); }
Values CumProd(Ctx& c) { return Cumulate(c, "cumprod"); }

/// Before opset 13, softmax and its kin see the data as a matrix whose columns begin at `axis`.
Values AlongAxis(Ctx& c, Value (*f)(Ctx&, const Value&, int)) {
  Value x = c.T(0);
  int rank = c.Rank(x);
  if (c.since() >= 13) return {f(c, x, c.Axis(c.Int("axis", -1), rank))};
  int64_t given = c.Int("axis", 1);
  // Rank 1 with the default axis: one column of all.
  int axis = given == rank ? rank : c.Axis(given, rank);
  if (axis == rank - 1) return {f(c, x, axis)};
  const Dims shape = c.Lengths(x);
  size_t at = static_cast<size_t>(axis);
  Value flat = c.Reshape(x, {c.Volume(shape, 0, at), c.Volume(shape, at, shape.size())});
  return {c.Reshape(f(c, flat, 1), shape)};
}
Values SoftmaxOp(Ctx& c) { return AlongAxis(c, Softmax); }
Values LogSoftmaxOp(Ctx& c) { return AlongAxis(c, LogSoftmax); }
Values Hardmax(Ctx& c) {
  return AlongAxis(c, [](Ctx& c, const Value& x, int axis) { return c.Call("nn.hardmax", {x}, {{"axis", axis}}); });
}

Values SoftmaxTypes(Ctx& c) { return {Softmax(c, TypedOperand(c, 0), -1)}; }

Values TopKTypes(Ctx& c) {
  Value both = c.Call("dyn.topk", {RankedOperand(c, 0), SomeInts(c, 1)}, {{"dtype", DataType::Int(64)}});
  return {c.Item(both, 0), c.Item(both, 1)};
}

Values TopK(Ctx& c) {
  Value x = c.T(0);
  int axis = c.Axis(c.Int("axis", -1), c.Rank(x));
  bool largest = c.Int("largest", 1) != 0;
  c.Int("sorted", 1);  // unsorted results may be in any order, so also sorted
  int64_t k;
  if (c.since() < 10) {
    k = c.Int("k");
  } else {
    Dims given = c.KnownLengths(c.T(1));
    if (given.size() != 1) c.Fail("`K` must be one number");
    k = given[0];
  }
  int64_t n = c.Length(x, axis);
  const bool all = k == n;
  if (Ctx::IsSymbol(k) && !all) throw NeedsValue{"`K`"};
  if (!all && (k < 0 || (n >= 0 && k > n)))
    c.Fail("`K` is " + std::to_string(k) + ", but the axis has " + std::to_string(n) + " elements");
  if (k == 0) {
    // To Relay, a k of 0 means all.
    Dims none = c.Lengths(x);
    none[static_cast<size_t>(axis)] = 0;
    return {c.Full(x.dtype, 0, none), c.Full(DataType::Int(64), 0, none)};
  }
  Value both = c.Call("topk", {x},
                      {{"k", all ? 0 : k},
                       {"axis", axis},
                       {"ret_type", "both"},
                       {"is_ascend", !largest},
                       {"dtype", DataType::Int(64)}});
  return {c.Item(both, 0), c.Item(both, 1)};
}

}  // namespace

Value Reduce(Ctx& c, const char* op, const Value& v, const Dims& axes, bool keepdims) {
  if (axes.empty()) return v;
  std::string name = op;
  if (v.dtype.is_bool()) {
    if (name == "max") name = "any";
    if (name == "min") name = "all";
  }
  return c.Call(name.c_str(), {v}, {{"axis", IntsAny(axes)}, {"keepdims", keepdims}});
}

Value Softmax(Ctx& c, const Value& v, int axis) { return c.Call("nn.softmax", {v}, {{"axis", axis}}); }
Value LogSoftmax(Ctx& c, const Value& v, int axis) { return c.Call("nn.log_softmax", {v}, {{"axis", axis}}); }

void AddReductions(OpTable* table) {
  for (const OpRow& row : {
           OpRow{"", "ReduceSum", ReduceSum, ReducedTypes},
           {"", "ReduceProd", ReduceProd, ReducedTypes},
           {"", "ReduceMax", ReduceMax, ReducedTypes},
           {"", "ReduceMin", ReduceMin, ReducedTypes},
           {"", "ReduceMean", ReduceMean, ReducedTypes},
           {"", "ReduceL1", ReduceL1, ReducedTypes},
           {"", "ReduceL2", ReduceL2, ReducedTypes},
           {"", "ReduceSumSquare", ReduceSumSquare, ReducedTypes},
           {"", "ReduceLogSum", ReduceLogSum, ReducedTypes},
           {"", "ReduceLogSumExp", ReduceLogSumExp, ReducedTypes},
           {"", "ArgMax", ArgMax},
           {"", "ArgMin", ArgMin},
           {"", "CumSum", CumSum, CumulateTypes},
           {"", "CumProd", CumProd, CumulateTypes},
           {"", "Softmax", SoftmaxOp, SoftmaxTypes},
           {"", "LogSoftmax", LogSoftmaxOp, SoftmaxTypes},
           {"", "Hardmax", Hardmax, SoftmaxTypes},
           {"", "TopK", TopK, TopKTypes},
       }) {
    table->push_back(row);
  }
}

}  // namespace baton::onnx
