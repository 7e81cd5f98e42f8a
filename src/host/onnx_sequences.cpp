// SPDX-License-Identifier: Apache-2.0
// ONNX's sequences and optionals, whose lengths and presence come with a call: a sequence is a list of arrays, an
// optional a list of one value or none.
#include <algorithm>

#include "host/onnx_values.h"
#include "host/pick.h"

namespace baton::host {
namespace {

/// The place that operand i names, from the start; `last` is that of a missing one.
int64_t Place(const Params& p, const Values& in, size_t i, int64_t count, int64_t last) {
  if (i >= in.size()) return last;
  const NDArray at = TensorAt(p, in, i);
  if (!at.dtype().is_integral() || at.numel() != 1) p.Fail(Cat("the position is ", Show(at)));
  const int64_t given = at.GetInt(0), place = given < 0 ? given + count : given;
  if (place < 0 || place > last) p.Fail(Cat("the position is ", given, ", in a sequence of ", count));
  return place;
}

NDArray Scalar(DataType dtype, int64_t value) {
  NDArray out = NDArray::Empty({}, dtype);
  out.SetInt(0, value);
  return out;
}

ObjectRef Construct(const Params&, const Values& in) { return List(in.begin(), in.end()); }

ObjectRef At(const Params& p, const Values& in) {
  const List list = ListAt(p, in, 0);
  const auto n = static_cast<int64_t>(list.size());
  return list[Place(p, in, 1, n, n - 1)];
}

ObjectRef Insert(const Params& p, const Values& in) {
  const List list = ListAt(p, in, 0);
  const auto n = static_cast<int64_t>(list.size());
  Values out(list.begin(), list.end());
  out.insert(out.begin() + Place(p, in, 2, n, n), TensorAt(p, in, 1));
  return List(out.begin(), out.end());
}

ObjectRef Erase(const Params& p, const Values& in) {
  const List list = ListAt(p, in, 0);
  const auto n = static_cast<int64_t>(list.size());
  if (n == 0) p.Fail("the sequence is empty");
  Values out(list.begin(), list.end());
  out.erase(out.begin() + Place(p, in, 1, n, n - 1));
  return List(out.begin(), out.end());
}

ObjectRef Length(const Params& p, const Values& in) {
  return Scalar(DataType::Int(64), static_cast<int64_t>(ListAt(p, in, 0).size()));
}

int64_t AxisOf(const Params& p, int64_t rank) {
  const int64_t axis = p.Find("axis") ? p.Int("axis") : 0;
  if (axis < -rank || axis >= rank) p.Fail(Cat("axis ", axis, " for a tensor of rank ", rank));
  return axis < 0 ? axis + rank : axis;
}

ObjectRef Split(const Params& p, const Values& in) {
  const NDArray x = TensorAt(p, in, 0);
  const auto axis = static_cast<size_t>(AxisOf(p, x->ndim));
  const int64_t n = x.shape()[axis];
  const bool ones = in.size() < 2, squeeze = ones && p.Find("keepdims") && p.Int("keepdims") == 0;
  Ints sizes;
  if (ones) {
    sizes.assign(static_cast<size_t>(n), 1);
  } else {
    const NDArray given = TensorAt(p, in, 1);
    if (!given.dtype().is_integral() || given->ndim > 1) p.Fail(Cat("`split` is ", Show(given)));
    sizes = given.ToInts();
    if (given->ndim == 0) {
      const int64_t each = sizes[0];
      if (each < 1) p.Fail(Cat("`split` is ", each));
      sizes.clear();
      for (int64_t at = 0; at < n; at += std::min(each, n - at)) sizes.push_back(std::min(each, n - at));
    }
  }
  int64_t all = 0;
  for (int64_t s : sizes) {
    if (s < 0 || s > n - all) p.Fail(Cat("`split` is ", ShowInts(sizes), " for ", Show(x)));
    all += s;
  }
  if (all != n) p.Fail(Cat("`split` is ", ShowInts(sizes), " for ", Show(x)));
  Values out;
  int64_t begin = 0;
  for (int64_t s : sizes) {
    Ints shape = x.shape();
    shape[axis] = s;
    NDArray part = Pick(x, shape, kZeros, [&](size_t d, int64_t i) { return d == axis ? begin + i : i; });
    shape.erase(shape.begin() + static_cast<int64_t>(axis));
    out.push_back(squeeze ? part.View(shape, part.dtype()) : part);
    begin += s;
  }
  return List(out.begin(), out.end());
}

ObjectRef Concat(const Params& p, const Values& in) {
  const List list = ListAt(p, in, 0);
  if (list.empty()) p.Fail("the sequence is empty");
  const bool fresh = p.Find("new_axis") && p.Int("new_axis") != 0;
  std::vector<NDArray> parts;
  for (const ObjectRef& v : list) parts.push_back(TensorOf(p, v, "an element"));
  const auto axis = static_cast<size_t>(AxisOf(p, parts[0]->ndim + fresh));
  Ints shape;
  for (NDArray& part : parts) {
    Ints have = part.shape();
    if (fresh) {
      have.insert(have.begin() + static_cast<int64_t>(axis), 1);
      part = part.View(have, part.dtype());
    }
    Ints without = have;
    bool fits = part.dtype() == parts[0].dtype() && (shape.empty() || have.size() == shape.size());
    for (size_t d = 0; fits && !shape.empty() && d < have.size(); ++d) fits = d == axis || have[d] == shape[d];
    if (!fits) p.Fail(Cat(Show(part), " and ", Show(parts[0]), " cannot be joined at axis ", axis));
    if (shape.empty()) {
      shape = have;
    } else if (__builtin_add_overflow(shape[axis], have[axis], &shape[axis])) {
      p.Fail("an extent overflows");
    }
  }
  NDArray out = NDArray::Empty(shape, parts[0].dtype());
  const Rows rows(shape, static_cast<int64_t>(axis));
  auto* to = static_cast<char*>(out.data());
  const auto bytes = static_cast<int64_t>(out.dtype().bytes());
  int64_t begin = 0;
  for (const NDArray& part : parts) {
    const int64_t n = part.shape()[axis], run = n * rows.inner * bytes;
    for (int64_t o = 0; run > 0 && o < rows.outer; ++o) {
      __builtin_memcpy(to + (o * rows.n + begin) * rows.inner * bytes, static_cast<const char*>(part.data()) + o * run,
                       static_cast<size_t>(run));
    }
    begin += n;
  }
  return out;
}

ObjectRef Has(const Params& p, const Values& in) { return Scalar(DataType::Bool(), ListAt(p, in, 0).empty() ? 0 : 1); }
ObjectRef Get(const Params& p, const Values& in) {
  const List list = ListAt(p, in, 0);
  if (list.empty()) p.Fail("the optional has no value");
  return list[0];
}
ObjectRef Same(const Params& p, const Values& in) {
  if (in.size() != 1) p.Fail("it takes one operand");
  return in[0];
}

/// In place of a node without a program for the importer: the error is its text.
ObjectRef Refuse(const Params& p, const Values&) { p.Fail(p.Text("text")); }

const RegisterValues kSequences[] = {
    {"onnx.Refuse", Refuse},          {"onnx.SequenceConstruct", Construct}, {"onnx.SequenceAt", At},
    {"onnx.SequenceInsert", Insert},  {"onnx.SequenceErase", Erase},         {"onnx.SequenceLength", Length},
    {"onnx.SplitToSequence", Split},  {"onnx.ConcatFromSequence", Concat},   {"onnx.Optional", Construct},
    {"onnx.OptionalHasElement", Has}, {"onnx.OptionalGetElement", Get},      {"onnx.Identity", Same}};

}  // namespace
}  // namespace baton::host
