// SPDX-License-Identifier: Apache-2.0
// Relay calls that many importers make: views, slices, products of matrices. No call is made for a known result.
#include <algorithm>
#include <memory>

#include "frontend/onnx/ops/common.h"
#include "importer_impl.h"

namespace baton::onnx {

Value Ctx::Cast(const Value& v, DataType dtype) {
  if (v.dtype == dtype) return v;
  auto narrow = [](DataType t) { return t.is_float8() || t.is_float4() || (t.is_integral() && t.bits() < 8); };
  return Call(narrow(v.dtype) || narrow(dtype) ? "onnx.cast" : "cast", {v}, {{"dtype", dtype}});
}

Value Ctx::Reshape(const Value& v, const Dims& shape) {
  if (v.ranked && v.dims == shape) return v;
  // Views of constants need no copy.
  if (v.host && !v.weight && std::all_of(shape.begin(), shape.end(), [](int64_t d) { return d >= 0; }) &&
      Product(shape) == v.host->size()) {
    auto host = std::make_shared<Host>();
    host->dtype = v.host->dtype;
    host->dims = shape;
    host->bytes = v.host->bytes;
    host->is_string = v.host->is_string;
    host->strings = v.host->strings;
    host->keep = v.host;
    return Constant(host);
  }
  // A 0 means "as in the input" to `reshape`.
  if (v.fixed() && Product(shape) == 0 && Product(v.dims) == 0) return Full(v.dtype, 0, shape);
  return Call("reshape", {v}, {{"newshape", IntsAny(shape)}});
}

Value Ctx::Transpose(const Value& v, const Dims& perm) {
  if (Rank(v) != static_cast<int>(perm.size())) {
    Fail("an operand has " + std::to_string(Rank(v)) + " axes, where " + std::to_string(perm.size()) + " are wanted");
  }
  bool same = true;
  for (size_t i = 0; i < perm.size(); ++i) same = same && perm[i] == static_cast<int64_t>(i);
  return same ? v : Call("transpose", {v}, {{"axes", IntsAny(perm)}});
}

Value Ctx::Unsqueeze(const Value& v, Dims axes) {
  if (axes.empty()) return v;
  std::sort(axes.begin(), axes.end());
  if (v.fixed()) {
    Dims shape = v.dims;
    for (int64_t a : axes) shape.insert(shape.begin() + std::min<int64_t>(a, static_cast<int64_t>(shape.size())), 1);
    return Reshape(v, shape);
  }
  Value y = v;
  for (int64_t a : axes) y = Call("expand_dims", {y}, {{"axis", a}, {"num_newaxis", 1}});
  return y;
}

Value Ctx::Squeeze(const Value& v, Dims axes) {
  if (axes.empty()) return v;
  if (v.fixed()) {
    Dims shape;
    for (size_t i = 0; i < v.dims.size(); ++i) {
      if (std::find(axes.begin(), axes.end(), static_cast<int64_t>(i)) == axes.end()) shape.push_back(v.dims[i]);
    }
    return Reshape(v, shape);
  }
  return Call("squeeze", {v}, {{"axis", IntsAny(axes)}});
}

Value Ctx::BroadcastTo(const Value& v, const Dims& shape) {
  return v.ranked && v.dims == shape ? v : Call("broadcast_to", {v}, {{"shape", IntsAny(shape)}});
}

Value Ctx::Slice(const Value& v, int axis, int64_t begin, int64_t end) {
  int rank = Rank(v);
  if (axis < 0 || axis >= rank) Fail("an operand of rank " + std::to_string(rank) + " has too few axes");
  int64_t n = v.dims[static_cast<size_t>(axis)];
  if (begin == 0 && end == n) return v;
  if (!IsSymbol(begin) && !IsSymbol(end) && begin >= end) {
    Dims shape = Fixed(v);
    shape[static_cast<size_t>(axis)] = 0;
    return Full(v.dtype, 0, shape);
  }
  Dims b(static_cast<size_t>(rank), 0), e, s(static_cast<size_t>(rank), 1);
  for (int64_t d : v.dims) e.push_back(d < 0 ? INT64_MAX : d);
  b[static_cast<size_t>(axis)] = begin;
  e[static_cast<size_t>(axis)] = end;
  return Call("strided_slice", {v},
              {{"begin", IntsAny(b)}, {"end", IntsAny(e)}, {"strides", IntsAny(s)}, {"slice_mode", "end"}});
}

Value Ctx::Concat(const Values& v, int axis) {
  if (v.size() == 1) return v[0];
  return CallTuple("concatenate", v, {{"axis", axis}});
}

Value Ctx::Full(DataType dtype, double value, const Dims& shape) {
  for (int64_t d : shape) {
    if (d < 0 && !IsSymbol(d)) Fail("a result would have the length " + std::to_string(d));
  }
  const bool literal = std::none_of(shape.begin(), shape.end(), IsSymbol);
  if (literal && Product(shape) <= 64) {
    std::vector<double> all(static_cast<size_t>(Product(shape)), value);
    HostPtr host = HostFromFloats(dtype, shape, all);
    if (host != nullptr) return Constant(host);
  }
  return Call("full", {Scalar(dtype, value)}, {{"shape", IntsAny(shape)}, {"dtype", dtype}});
}

Value Ctx::ShapeOf(const Value& v) {
  if (v.fixed()) return Int64s(v.dims);
  Rank(v);
  return Call("shape_of", {v}, {{"dtype", DataType::Int(64)}});
}

Value Ctx::MatMul(Value a, Value b, DataType out) {
  int ra = Rank(a), rb = Rank(b);
  if (ra == 0 || rb == 0) Fail("a scalar cannot be multiplied as a matrix");
  NamedAttrs wide;
  if (!out.is_void()) wide.emplace_back("out_dtype", out);
  bool row = ra == 1, column = rb == 1;
  if (row) a = Unsqueeze(a, {0}), ra = 2;
  if (column) b = Unsqueeze(b, {1}), rb = 2;
  Value y;
  int64_t k = a.dims[static_cast<size_t>(ra) - 1], other = b.dims[static_cast<size_t>(rb) - 2];
  if (k >= 0 && other >= 0 ? k != other : k != -1 && other != -1 && !AssumeEqual(k, other)) {
    Fail("the matrices have inner lengths " + std::to_string(k) + " and " + std::to_string(other));
  }
  if (rb == 2) {
    // One matrix for all: the rows of every batch in one product.
    Value w = Transpose(b, {1, 0});
    NamedAttrs attrs = wide;
    attrs.emplace_back("units", w.dims[0] >= 0 ? Any(w.dims[0]) : Any());
    bool flatten = ra != 2 && Sized(a) && w.dims[0] >= 0;
    Dims lead(a.dims.begin(), a.dims.end() - 1);
    Value x = flatten ? Reshape(a, {Volume(lead), a.dims.back()}) : a;
    y = CallWith("nn.dense", {x, w}, attrs);
    if (flatten) {
      lead.push_back(w.dims[0]);
      y = Reshape(y, lead);
    }
  } else {
    Dims la(a.dims.begin(), a.dims.end() - 2), lb(b.dims.begin(), b.dims.end() - 2), lead;
    NamedAttrs attrs = wide;
    attrs.emplace_back("transpose_a", false);
    attrs.emplace_back("transpose_b", false);
    if (ra == 3 && rb == 3 && la == lb && la[0] != -1) {
      y = CallWith("nn.batch_matmul", {a, b}, attrs);
    } else if (!Sized(a) || !Sized(b)) {
      y = CallWith("nn.matmul", {a, b}, wide);
    } else {
      if (!Broadcast(la, lb, &lead)) Fail("the batches of the matrices do not broadcast");
      auto spread = [&](const Value& v) {
        Dims shape = lead;
        shape.insert(shape.end(), v.dims.end() - 2, v.dims.end());
        Value s = BroadcastTo(v, shape);
        return Reshape(s, {Volume(lead), v.dims[v.dims.size() - 2], v.dims.back()});
      };
      y = CallWith("nn.batch_matmul", {spread(a), spread(b)}, attrs);
      Dims shape = lead;
      shape.push_back(a.dims[a.dims.size() - 2]);
      shape.push_back(b.dims.back());
      y = Reshape(y, shape);
    }
  }
  if (column) y = Squeeze(y, {Rank(y) - 1});
  if (row) y = Squeeze(y, {Rank(y) - (column ? 1 : 2)});
  return y;
}

}  // namespace baton::onnx
