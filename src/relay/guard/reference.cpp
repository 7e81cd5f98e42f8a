// SPDX-License-Identifier: Apache-2.0
#include "relay/guard/reference.h"

#include <baton/relay/op.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <unordered_map>
#include <vector>

namespace baton::relay {
namespace {

using Shape = std::vector<int64_t>;

/// A field of attributes whose class is in a layer above.
Any Field(const Attrs& attrs, const char* name) {
  const auto* info = attrs.defined() ? runtime::TypeInfo::Get(attrs.get()->type_index()) : nullptr;
  const auto* field = info ? info->Find(name) : nullptr;
  if (!field) throw InternalError(std::string("the attributes have no field `") + name + "`");
  return field->Get(attrs.get());
}

bool Takes(const NDArray& a) {
  return a.dtype() == DataType::Float(32) && a.device().device_type == kDLCPU && a.numel() > 0;
}

/// Elements from one index of a dimension to the next, 0 where the dimension is repeated; for a result of this rank.
Shape BroadcastStrides(const NDArray& a, const Shape& out) {
  Shape strides(out.size(), 0);
  int64_t step = 1;
  for (int i = a.ndim(); i-- > 0;) {
    const size_t at = out.size() - static_cast<size_t>(a.ndim() - i);
    strides[at] = a.dim(i) == 1 ? 0 : step;
    step *= a.dim(i);
  }
  return strides;
}

bool Broadcast(const NDArray& a, const NDArray& b, Shape* out) {
  out->assign(static_cast<size_t>(std::max(a.ndim(), b.ndim())), 1);
  for (const NDArray* x : {&a, &b}) {
    for (int i = 0; i < x->ndim(); ++i) {
      int64_t& d = (*out)[out->size() - static_cast<size_t>(x->ndim() - i)];
      if (x->dim(i) != 1 && d != 1 && d != x->dim(i)) return false;
      if (x->dim(i) != 1) d = x->dim(i);
    }
  }
  return true;
}

/// Calls `row(offset in out, offset in a, offset in b)` for each run along the last dimension.
template <class Row>
void ForRows(const Shape& shape, const Shape& sa, const Shape& sb, Row row) {
  Shape index(shape.size(), 0);
  int64_t out = 0, a = 0, b = 0;
  for (;;) {
    row(out, a, b);
    out += shape.back();
    size_t d = shape.size() - 1;
    for (;;) {
      if (d-- == 0) return;
      a += sa[d], b += sb[d];
      if (++index[d] < shape[d]) break;
      a -= sa[d] * shape[d], b -= sb[d] * shape[d];
      index[d] = 0;
    }
  }
}

template <class F>
NDArray Binary(const NDArray& a, const NDArray& b, F f) {
  Shape shape;
  if (!Broadcast(a, b, &shape)) return NDArray();
  NDArray out = NDArray::Empty(shape, a.dtype());
  float* po = out.ptr<float>();
  const float *pa = a.ptr<float>(), *pb = b.ptr<float>();
  if (shape.empty()) {
    *po = f(*pa, *pb);
    return out;
  }
  const Shape sa = BroadcastStrides(a, shape), sb = BroadcastStrides(b, shape);
  const int64_t n = shape.back(), ia = sa.back(), ib = sb.back();
  ForRows(shape, sa, sb, [&](int64_t o, int64_t x, int64_t y) {
    for (int64_t i = 0; i < n; ++i) po[o + i] = f(pa[x + i * ia], pb[y + i * ib]);
  });
  return out;
}

template <class F>
NDArray Unary(const NDArray& a, F f) {
  NDArray out = NDArray::Empty(a.shape(), a.dtype());
  const float* pa = a.ptr<float>();
  float* po = out.ptr<float>();
  for (int64_t i = 0; i < a.numel(); ++i) po[i] = f(pa[i]);
  return out;
}

NDArray Transpose(const Attrs& attrs, const NDArray& a) {
  const int n = a.ndim();
  std::vector<int> axes;
  if (Any given = Field(attrs, "axes"); !given.is_null()) {
    for (int64_t x : given.As<Array<int64_t>>()) axes.push_back(static_cast<int>(x < 0 ? x + n : x));
  } else {
    for (int i = n; i-- > 0;) axes.push_back(i);
  }
  if (static_cast<int>(axes.size()) != n || n == 0) return NDArray();
  Shape step(static_cast<size_t>(n), 1), shape, strides;
  for (int i = n - 1; i-- > 0;) step[static_cast<size_t>(i)] = step[static_cast<size_t>(i) + 1] * a.dim(i + 1);
  for (int x : axes) {
    if (x < 0 || x >= n) return NDArray();
    shape.push_back(a.dim(x));
    strides.push_back(step[static_cast<size_t>(x)]);
  }
  NDArray out = NDArray::Empty(shape, a.dtype());
  const float* pa = a.ptr<float>();
  float* po = out.ptr<float>();
  const int64_t last = shape.back(), by = strides.back();
  ForRows(shape, strides, strides, [&](int64_t o, int64_t x, int64_t) {
    for (int64_t i = 0; i < last; ++i) po[o + i] = pa[x + i * by];
  });
  return out;
}

bool LastAxis(const Attrs& attrs, const NDArray& a) {
  const int64_t axis = Field(attrs, "axis").As<int64_t>();
  return a.ndim() > 0 && (axis == -1 || axis == a.ndim() - 1);
}

NDArray Softmax(const Attrs& attrs, const NDArray& a) {
  if (!LastAxis(attrs, a)) return NDArray();
  const int64_t n = a.dim(a.ndim() - 1);
  NDArray out = NDArray::Empty(a.shape(), a.dtype());
  for (int64_t row = 0; row < a.numel(); row += n) {
    const float* x = a.ptr<float>() + row;
    float* y = out.ptr<float>() + row;
    float most = x[0];
    for (int64_t i = 1; i < n; ++i) most = x[i] > most ? x[i] : most;
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += y[i] = std::exp(x[i] - most);
    for (int64_t i = 0; i < n; ++i) y[i] = static_cast<float>(y[i] / sum);
  }
  return out;
}

NDArray LayerNorm(const Attrs& attrs, const NDArray& a, const NDArray& gamma, const NDArray& beta) {
  if (!LastAxis(attrs, a) || Field(attrs, "num_axes").As<int64_t>() != 1) return NDArray();
  const double epsilon = Field(attrs, "epsilon").As<double>();
  const bool scale = Field(attrs, "scale").As<bool>(), center = Field(attrs, "center").As<bool>();
  const int64_t n = a.dim(a.ndim() - 1);
  if (gamma.numel() != n || beta.numel() != n) return NDArray();
  NDArray out = NDArray::Empty(a.shape(), a.dtype());
  const float *g = gamma.ptr<float>(), *b = beta.ptr<float>();
  for (int64_t row = 0; row < a.numel(); row += n) {
    const float* x = a.ptr<float>() + row;
    float* y = out.ptr<float>() + row;
    double mean = 0, variance = 0;
    for (int64_t i = 0; i < n; ++i) mean += x[i];
    mean /= static_cast<double>(n);
    for (int64_t i = 0; i < n; ++i) variance += (x[i] - mean) * (x[i] - mean);
    const double by = 1 / std::sqrt(variance / static_cast<double>(n) + epsilon);
    for (int64_t i = 0; i < n; ++i) {
      y[i] = static_cast<float>((x[i] - mean) * by * (scale ? g[i] : 1.0) + (center ? b[i] : 0.0));
    }
  }
  return out;
}

using Run = NDArray (*)(const Attrs& attrs, const std::vector<NDArray>& in);
struct Entry {
  size_t operands;
  Run run;
};

template <class F>
constexpr Entry Two(F) {
  return {2, [](const Attrs&, const std::vector<NDArray>& in) { return Binary(in[0], in[1], F{}); }};
}
template <class F>
constexpr Entry One(F) {
  return {1, [](const Attrs&, const std::vector<NDArray>& in) { return Unary(in[0], F{}); }};
}

const std::unordered_map<std::string, Entry>& Table() {
  static const std::unordered_map<std::string, Entry> table = {
      {"add", Two([](float x, float y) { return x + y; })},
      {"subtract", Two([](float x, float y) { return x - y; })},
      {"multiply", Two([](float x, float y) { return x * y; })},
      {"divide", Two([](float x, float y) { return x / y; })},
      {"negative", One([](float x) { return -x; })},
      {"sqrt", One([](float x) { return std::sqrt(x); })},
      {"exp", One([](float x) { return std::exp(x); })},
      {"tanh", One([](float x) { return std::tanh(x); })},
      {"erf", One([](float x) { return std::erf(x); })},
      {"transpose", {1, [](const Attrs& a, const std::vector<NDArray>& in) { return Transpose(a, in[0]); }}},
      {"nn.softmax", {1, [](const Attrs& a, const std::vector<NDArray>& in) { return Softmax(a, in[0]); }}},
      {"nn.layer_norm",
       {3, [](const Attrs& a, const std::vector<NDArray>& in) { return LayerNorm(a, in[0], in[1], in[2]); }}},
  };
  return table;
}

}  // namespace

NDArray RunReference(const Op& op, const Attrs& attrs, const Array<ObjectRef>& args) {
  auto it = Table().find(op->name.str());
  if (it == Table().end() || args.size() != it->second.operands) return NDArray();
  std::vector<NDArray> in;
  for (const ObjectRef& a : args) {
    if (!a.as<runtime::NDArrayObj>()) return NDArray();
    in.push_back(Downcast<NDArray>(a).Contiguous());
    if (!Takes(in.back())) return NDArray();
  }
  return it->second.run(attrs, in);
}

}  // namespace baton::relay
