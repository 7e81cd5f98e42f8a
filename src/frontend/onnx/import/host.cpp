// SPDX-License-Identifier: Apache-2.0
#include "host.h"

#include <baton/runtime/array.h>
#include <baton/runtime/scalar.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace baton::onnx {
namespace {

using Dims = std::vector<int64_t>;

/// Number of elements; INT64_MAX where there are more than that, -1 where a length is negative.
int64_t Count(const Dims& dims) {
  int64_t n = 1;
  bool large = false, zero = false;
  for (int64_t d : dims) {
    if (d < 0) return -1;
    zero = zero || d == 0;
    large = large || __builtin_mul_overflow(n, d, &n);
  }
  return zero ? 0 : large ? std::numeric_limits<int64_t>::max() : n;
}

/// Whether a result of that shape is computed here.
bool Small(const Dims& dims) {
  int64_t n = Count(dims);
  return n >= 0 && n <= kMaxFoldedElements;
}

template <typename T>
T Load(const char* at) {
  T v;
  std::memcpy(&v, at, sizeof(T));
  return v;
}

/// A tensor in the types used for computing: integers and bool as int64, floats as double.
struct Work {
  DataType dtype;
  Dims dims;
  bool real = false;
  std::vector<int64_t> i;
  std::vector<double> f;
  int64_t size() const { return real ? static_cast<int64_t>(f.size()) : static_cast<int64_t>(i.size()); }
};

bool Computes(DataType t) {
  if (t.is_bool()) return true;
  if (t.is_float()) return t.bits() >= 32;
  return t.is_integral() && t.bits() >= 8;
}

Work Read(const Host& h) {
  Work w;
  w.dtype = h.dtype;
  w.dims = h.dims;
  w.real = h.dtype.is_floating();
  int64_t n = h.size();
  for (int64_t k = 0; k < n; ++k) {
    if (w.real) {
      w.f.push_back(h.FloatAt(k));
    } else {
      w.i.push_back(h.IntAt(k));
    }
  }
  return w;
}

HostPtr Write(const Work& w) {
  return w.real ? HostFromFloats(w.dtype, w.dims, w.f) : HostFromInts(w.dtype, w.dims, w.i);
}

const Any* Find(const NamedAttrs& attrs, std::string_view name) {
  for (const auto& [key, value] : attrs) {
    if (name == key) return &value;
  }
  return nullptr;
}
int64_t IntAttr(const NamedAttrs& attrs, std::string_view name, int64_t default_value) {
  const Any* v = Find(attrs, name);
  return v == nullptr ? default_value : v->As<int64_t>();
}
Dims IntsAttr(const NamedAttrs& attrs, std::string_view name) {
  const Any* v = Find(attrs, name);
  return v == nullptr ? Dims() : v->As<runtime::Array<int64_t>>().ToVector();
}

/// Moves elements: out[k] = in[index(k)], -1 for `fill`.
template <typename Index>
Work Pick(const Work& in, Dims dims, Index&& index) {
  Work out;
  out.dtype = in.dtype;
  out.real = in.real;
  out.dims = std::move(dims);
  int64_t n = Count(out.dims);
  for (int64_t k = 0; k < n; ++k) {
    int64_t at = index(k);
    if (in.real) {
      out.f.push_back(in.f[static_cast<size_t>(at)]);
    } else {
      out.i.push_back(in.i[static_cast<size_t>(at)]);
    }
  }
  return out;
}

Dims Strides(const Dims& dims) {
  // A tensor without elements may have any lengths beside the 0; its strides are never used.
  Dims s(dims.size(), 1);
  if (Count(dims) <= 0) return s;
  for (size_t k = dims.size(); k-- > 1;) s[k - 1] = s[k] * dims[k];
  return s;
}

Dims Coordinates(int64_t k, const Dims& dims) {
  Dims at(dims.size());
  for (size_t a = dims.size(); a-- > 0;) {
    at[a] = k % dims[a];
    k /= dims[a];
  }
  return at;
}

bool Broadcast(const Dims& a, const Dims& b, Dims* out) {
  size_t n = std::max(a.size(), b.size());
  out->assign(n, 1);
  for (size_t k = 0; k < n; ++k) {
    int64_t x = k < a.size() ? a[a.size() - 1 - k] : 1, y = k < b.size() ? b[b.size() - 1 - k] : 1;
    if (x != y && x != 1 && y != 1) return false;
    (*out)[n - 1 - k] = x == 1 ? y : x;
  }
  return true;
}

Work Expand(const Work& in, const Dims& dims) {
  if (in.dims == dims) return in;
  Dims strides = Strides(in.dims);
  size_t lead = dims.size() - in.dims.size();
  return Pick(in, dims, [&](int64_t k) {
    Dims at = Coordinates(k, dims);
    int64_t from = 0;
    for (size_t a = 0; a < in.dims.size(); ++a) from += in.dims[a] == 1 ? 0 : at[a + lead] * strides[a];
    return from;
  });
}

int64_t FloorDiv(int64_t a, int64_t b) {
  int64_t q = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

/// Whether the pair can be computed; results in `out`.
bool BinaryInt(std::string_view op, int64_t a, int64_t b, int64_t* out) {
  if (op == "add") return !__builtin_add_overflow(a, b, out);
  if (op == "subtract") return !__builtin_sub_overflow(a, b, out);
  if (op == "multiply") return !__builtin_mul_overflow(a, b, out);
  if (op == "maximum") return *out = std::max(a, b), true;
  if (op == "minimum") return *out = std::min(a, b), true;
  if (op == "equal") return *out = a == b, true;
  if (op == "not_equal") return *out = a != b, true;
  if (op == "less") return *out = a < b, true;
  if (op == "less_equal") return *out = a <= b, true;
  if (op == "greater") return *out = a > b, true;
  if (op == "greater_equal") return *out = a >= b, true;
  if (op == "logical_and") return *out = a && b, true;
  if (op == "logical_or") return *out = a || b, true;
  if (op == "divide" || op == "floor_divide" || op == "mod" || op == "floor_mod") {
    if (b == 0 || (a == std::numeric_limits<int64_t>::min() && b == -1)) return false;
    *out = op == "divide"         ? a / b
           : op == "mod"          ? a % b
           : op == "floor_divide" ? FloorDiv(a, b)
                                  : a - FloorDiv(a, b) * b;
    return true;
  }
  return false;
}

bool BinaryFloat(std::string_view op, double a, double b, double* out) {
  if (op == "add") return *out = a + b, true;
  if (op == "subtract") return *out = a - b, true;
  if (op == "multiply") return *out = a * b, true;
  if (op == "divide") return *out = a / b, true;
  if (op == "power") return *out = std::pow(a, b), true;
  return false;
}

bool IsComparison(std::string_view op) {
  return op == "equal" || op == "not_equal" || op == "less" || op == "less_equal" || op == "greater" ||
         op == "greater_equal";
}

bool CompareFloat(std::string_view op, double a, double b) {
  if (op == "equal") return a == b;
  if (op == "not_equal") return a != b;
  if (op == "less") return a < b;
  if (op == "less_equal") return a <= b;
  if (op == "greater") return a > b;
  return a >= b;
}

/// Whether `op` is one of `names`; an empty tensor must not pass for the result of an operator that is not known here.
bool OneOf(std::string_view op, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), op) != names.end();
}

HostPtr EvaluateBinary(std::string_view op, const Work& a, const Work& b) {
  if (!IsComparison(op) && !OneOf(op, {"add", "subtract", "multiply", "maximum", "minimum", "logical_and", "logical_or",
                                       "divide", "floor_divide", "mod", "floor_mod", "power"})) {
    return nullptr;
  }
  Work out;
  if (a.real != b.real || !(a.dtype == b.dtype) || !Broadcast(a.dims, b.dims, &out.dims)) return nullptr;
  if (!Small(out.dims)) return nullptr;
  Work x = Expand(a, out.dims), y = Expand(b, out.dims);
  bool compares = IsComparison(op);
  out.dtype = compares ? DataType::Bool() : a.dtype;
  out.real = a.real && !compares;
  for (int64_t k = 0; k < x.size(); ++k) {
    size_t at = static_cast<size_t>(k);
    int64_t i = 0;
    double f = 0;
    if (a.real && compares) {
      out.i.push_back(CompareFloat(op, x.f[at], y.f[at]));
    } else if (a.real) {
      if (!BinaryFloat(op, x.f[at], y.f[at], &f)) return nullptr;
      out.f.push_back(f);
    } else {
      if (!BinaryInt(op, x.i[at], y.i[at], &i)) return nullptr;
      out.i.push_back(i);
    }
  }
  return Write(out);
}

HostPtr EvaluateUnary(std::string_view op, const Work& in) {
  if (!OneOf(op, {"negative", "abs", "logical_not", "sqrt", "floor", "ceil"})) return nullptr;
  Work out = in;
  for (int64_t& v : out.i) {
    if (op == "negative" && v != std::numeric_limits<int64_t>::min()) {
      v = -v;
    } else if (op == "abs" && v != std::numeric_limits<int64_t>::min()) {
      v = v < 0 ? -v : v;
    } else if (op == "logical_not") {
      v = !v;
    } else {
      return nullptr;
    }
  }
  for (double& v : out.f) {
    if (op == "negative") {
      v = -v;
    } else if (op == "abs") {
      v = std::fabs(v);
    } else if (op == "sqrt") {
      v = std::sqrt(v);
    } else if (op == "floor") {
      v = std::floor(v);
    } else if (op == "ceil") {
      v = std::ceil(v);
    } else {
      return nullptr;
    }
  }
  return Write(out);
}

HostPtr EvaluateCast(const Work& in, DataType to) {
  if (!Computes(to)) return nullptr;
  Work out;
  out.dtype = to;
  out.dims = in.dims;
  out.real = to.is_floating();
  for (int64_t k = 0; k < in.size(); ++k) {
    size_t at = static_cast<size_t>(k);
    if (out.real) {
      out.f.push_back(in.real ? in.f[at] : static_cast<double>(in.i[at]));
    } else if (in.real) {
      double v = in.f[at];
      if (to.is_bool()) {
        out.i.push_back(v != 0);
      } else {
        if (!(std::fabs(v) < 9e18)) return nullptr;
        out.i.push_back(static_cast<int64_t>(v));
      }
    } else {
      out.i.push_back(to.is_bool() ? in.i[at] != 0 : in.i[at]);
    }
  }
  return Write(out);
}

HostPtr EvaluateReduce(std::string_view op, const Work& in, Dims axes, bool keepdims) {
  size_t rank = in.dims.size();
  std::vector<bool> reduced(rank, axes.empty());
  for (int64_t a : axes) {
    if (a < 0) a += static_cast<int64_t>(rank);
    if (a < 0 || a >= static_cast<int64_t>(rank)) return nullptr;
    reduced[static_cast<size_t>(a)] = true;
  }
  Dims kept, shape;
  for (size_t a = 0; a < rank; ++a) {
    kept.push_back(reduced[a] ? 1 : in.dims[a]);
    if (!reduced[a] || keepdims) shape.push_back(kept.back());
  }
  if (!Small(kept)) return nullptr;
  int64_t n = Count(kept);
  Dims strides = Strides(kept);
  Work out;
  out.dtype = in.dtype;
  out.real = in.real;
  out.dims = shape;
  std::vector<bool> seen(static_cast<size_t>(n), false);
  out.i.assign(in.real ? 0 : static_cast<size_t>(n), op == "prod");
  out.f.assign(in.real ? static_cast<size_t>(n) : 0, op == "prod");
  for (int64_t k = 0; k < in.size(); ++k) {
    Dims at = Coordinates(k, in.dims);
    int64_t to = 0;
    for (size_t a = 0; a < rank; ++a) to += reduced[a] ? 0 : at[a] * strides[a];
    size_t t = static_cast<size_t>(to), from = static_cast<size_t>(k);
    bool first = !seen[t];
    seen[t] = true;
    if (in.real) {
      double v = in.f[from];
      double& o = out.f[t];
      o = op == "sum" ? o + v : op == "prod" ? o * v : first ? v : op == "max" ? std::max(o, v) : std::min(o, v);
    } else {
      int64_t v = in.i[from];
      int64_t& o = out.i[t];
      if (op == "sum" && __builtin_add_overflow(o, v, &o)) return nullptr;
      if (op == "prod" && __builtin_mul_overflow(o, v, &o)) return nullptr;
      if (op == "max" || op == "min") o = first ? v : op == "max" ? std::max(o, v) : std::min(o, v);
    }
  }
  if (op == "max" || op == "min") {
    for (bool s : seen) {
      if (!s) return nullptr;
    }
  }
  return Write(out);
}

HostPtr EvaluateSlice(const Work& in, const NamedAttrs& attrs) {
  Dims begin = IntsAttr(attrs, "begin"), end = IntsAttr(attrs, "end"), step = IntsAttr(attrs, "strides"), dims;
  if (begin.size() != in.dims.size() || end.size() != in.dims.size()) return nullptr;
  if (step.empty()) step.assign(begin.size(), 1);
  if (step.size() != begin.size()) return nullptr;
  for (size_t a = 0; a < begin.size(); ++a) {
    if (step[a] == 0) return nullptr;
    // Steps beyond the axis are all equivalent, including one too small to be negated.
    step[a] = std::clamp<int64_t>(step[a], -(int64_t{1} << 56), int64_t{1} << 56);
    int64_t n = in.dims[a];
    if (begin[a] < 0) begin[a] += n;
    if (step[a] > 0) {
      if (end[a] < 0) end[a] += n;
      begin[a] = std::clamp<int64_t>(begin[a], 0, n);
      end[a] = std::clamp<int64_t>(end[a], begin[a], n);
      dims.push_back((end[a] - begin[a] + step[a] - 1) / step[a]);
    } else {
      // An end before the first element is written as -n - 1.
      end[a] = end[a] < 0 ? std::max<int64_t>(end[a] + n, -1) : end[a];
      begin[a] = std::clamp<int64_t>(begin[a], -1, n - 1);
      end[a] = std::clamp<int64_t>(end[a], -1, begin[a]);
      dims.push_back((begin[a] - end[a] - step[a] - 1) / -step[a]);
    }
  }
  if (!Small(dims)) return nullptr;
  Dims strides = Strides(in.dims);
  return Write(Pick(in, dims, [&](int64_t k) {
    Dims at = Coordinates(k, dims);
    int64_t from = 0;
    for (size_t a = 0; a < at.size(); ++a) from += (begin[a] + at[a] * step[a]) * strides[a];
    return from;
  }));
}

HostPtr EvaluateTake(const Work& in, Work index, int64_t axis) {
  if (index.real || axis < 0 || axis >= static_cast<int64_t>(in.dims.size())) return nullptr;
  size_t a = static_cast<size_t>(axis);
  int64_t n = in.dims[a];
  // Negative indices count from the end.
  for (int64_t& v : index.i) {
    if (v < 0) v += n;
    if (v < 0 || v >= n) return nullptr;
  }
  Dims dims(in.dims.begin(), in.dims.begin() + axis);
  dims.insert(dims.end(), index.dims.begin(), index.dims.end());
  dims.insert(dims.end(), in.dims.begin() + axis + 1, in.dims.end());
  if (!Small(dims)) return nullptr;
  // Without elements there is nothing to pick, and lengths beside a 0 may be anything.
  if (Count(dims) == 0) return Write(Pick(in, dims, [](int64_t) { return 0; }));
  int64_t inner = 1;
  for (size_t k = a + 1; k < in.dims.size(); ++k) inner *= in.dims[k];
  int64_t middle = index.size();
  return Write(Pick(in, dims, [&](int64_t k) {
    int64_t tail = k % inner, at = k / inner % middle, head = k / inner / middle;
    return (head * n + index.i[static_cast<size_t>(at)]) * inner + tail;
  }));
}

HostPtr EvaluateConcat(const std::vector<Work>& parts, int64_t axis) {
  int64_t rank = static_cast<int64_t>(parts[0].dims.size());
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank) return nullptr;
  size_t a = static_cast<size_t>(axis);
  Work out = parts[0];
  out.i.clear();
  out.f.clear();
  out.dims[a] = 0;
  for (const Work& p : parts) {
    if (!(p.dtype == out.dtype) || p.dims.size() != out.dims.size()) return nullptr;
    for (size_t k = 0; k < out.dims.size(); ++k) {
      if (k != a && p.dims[k] != out.dims[k]) return nullptr;
    }
    if (__builtin_add_overflow(out.dims[a], p.dims[a], &out.dims[a])) return nullptr;
  }
  if (!Small(out.dims)) return nullptr;
  if (Count(out.dims) == 0) return Write(out);
  int64_t outer = 1, inner = 1;
  for (size_t k = 0; k < out.dims.size(); ++k) (k < a ? outer : inner) *= k == a ? 1 : out.dims[k];
  for (int64_t o = 0; o < outer; ++o) {
    for (const Work& p : parts) {
      int64_t run = p.dims[a] * inner;
      for (int64_t k = o * run; k < (o + 1) * run; ++k) {
        if (out.real) {
          out.f.push_back(p.f[static_cast<size_t>(k)]);
        } else {
          out.i.push_back(p.i[static_cast<size_t>(k)]);
        }
      }
    }
  }
  return Write(out);
}

}  // namespace

/// `v` as an integer, rounded towards zero and clamped to the range.
static int64_t Truncate(double v) {
  return std::fabs(v) < 9.2e18 ? static_cast<int64_t>(v)
         : v > 0               ? std::numeric_limits<int64_t>::max()
                               : std::numeric_limits<int64_t>::min();
}

int64_t Host::size() const { return is_string ? static_cast<int64_t>(strings.size()) : Count(dims); }

int64_t Host::IntAt(int64_t k) const {
  if (dtype.is_floating()) return Truncate(FloatAt(k));
  int width = dtype.bytes();
  const char* at = bytes.data() + k * width;
  bool sign = dtype.is_int();
  switch (width) {
    case 1:
      return sign ? Load<int8_t>(at) : static_cast<int64_t>(Load<uint8_t>(at));
    case 2:
      return sign ? Load<int16_t>(at) : static_cast<int64_t>(Load<uint16_t>(at));
    case 4:
      return sign ? Load<int32_t>(at) : static_cast<int64_t>(Load<uint32_t>(at));
    default:
      return Load<int64_t>(at);
  }
}

double Host::FloatAt(int64_t k) const {
  if (!dtype.is_floating()) return static_cast<double>(IntAt(k));
  if (runtime::IsLoadable(dtype)) return runtime::LoadDouble(bytes.data(), dtype, k);
  return runtime::DecodeSmallFloat(dtype, static_cast<uint8_t>(bytes[static_cast<size_t>(k)]));
}

HostPtr HostFromInts(DataType dtype, Dims dims, const Dims& values) {
  auto host = std::make_shared<Host>();
  host->dtype = dtype;
  host->dims = std::move(dims);
  int width = dtype.bytes();
  if (dtype.is_floating()) return HostFromFloats(dtype, host->dims, std::vector<double>(values.begin(), values.end()));
  host->owned.resize(values.size() * static_cast<size_t>(width));
  for (size_t k = 0; k < values.size(); ++k) {
    // Two's complement, low bytes first: a narrower type takes the low ones.
    std::memcpy(host->owned.data() + k * static_cast<size_t>(width), &values[k], static_cast<size_t>(width));
  }
  host->bytes = host->owned;
  return host;
}

HostPtr HostFromFloats(DataType dtype, Dims dims, const std::vector<double>& values) {
  if (!dtype.is_floating()) {
    Dims ints;
    for (double v : values) ints.push_back(dtype.is_bool() ? v != 0 : Truncate(v));
    return HostFromInts(dtype, std::move(dims), ints);
  }
  auto host = std::make_shared<Host>();
  host->dtype = dtype;
  host->dims = std::move(dims);
  host->owned.resize(values.size() * static_cast<size_t>(dtype.bytes()));
  for (size_t k = 0; k < values.size(); ++k) {
    if (runtime::IsLoadable(dtype)) {
      runtime::StoreDouble(host->owned.data(), dtype, static_cast<int64_t>(k), values[k]);
    } else {
      host->owned[k] = static_cast<char>(runtime::EncodeSmallFloat(dtype, values[k]));
    }
  }
  host->bytes = host->owned;
  return host;
}

HostPtr EvaluateCall(std::string_view op, const std::vector<HostPtr>& args, const NamedAttrs& attrs) {
  std::vector<Work> in;
  for (const HostPtr& h : args) {
    if (h == nullptr || h->is_string || h->size() > kMaxFoldedElements || !Computes(h->dtype)) return nullptr;
  }
  for (const HostPtr& h : args) in.push_back(Read(*h));
  if (in.empty()) return nullptr;
  const Work& a = in[0];
  if (op == "concatenate") return EvaluateConcat(in, IntAttr(attrs, "axis", 0));
  if (in.size() == 3 && op == "where") {
    Work out;
    Dims ab;
    if (!(in[1].dtype == in[2].dtype) || !Broadcast(in[1].dims, in[2].dims, &ab) || !Broadcast(ab, a.dims, &out.dims))
      return nullptr;
    if (!Small(out.dims)) return nullptr;
    Work c = Expand(a, out.dims), x = Expand(in[1], out.dims), y = Expand(in[2], out.dims);
    if (c.real) return nullptr;
    out.dtype = x.dtype;
    out.real = x.real;
    for (size_t k = 0; k < c.i.size(); ++k) {
      if (x.real) {
        out.f.push_back(c.i[k] ? x.f[k] : y.f[k]);
      } else {
        out.i.push_back(c.i[k] ? x.i[k] : y.i[k]);
      }
    }
    return Write(out);
  }
  if (in.size() == 2) {
    if (op == "take") return EvaluateTake(a, in[1], IntAttr(attrs, "axis", 0));
    return EvaluateBinary(op, a, in[1]);
  }
  if (in.size() != 1) return nullptr;
  if (op == "cast") return EvaluateCast(a, Find(attrs, "dtype")->As<DataType>());
  if (op == "reshape") {
    Work out = a;
    out.dims = IntsAttr(attrs, "newshape");
    return Count(out.dims) == a.size() ? Write(out) : nullptr;
  }
  if (op == "strided_slice") return EvaluateSlice(a, attrs);
  if (op == "broadcast_to") {
    Dims dims = IntsAttr(attrs, "shape"), both;
    if (!Small(dims) || !Broadcast(a.dims, dims, &both) || both != dims) return nullptr;
    return Write(Expand(a, dims));
  }
  if (op == "transpose") {
    Dims perm = IntsAttr(attrs, "axes"), dims, strides = Strides(a.dims);
    if (perm.size() != a.dims.size()) return nullptr;
    for (int64_t p : perm) {
      if (p < 0 || p >= static_cast<int64_t>(a.dims.size())) return nullptr;
      dims.push_back(a.dims[static_cast<size_t>(p)]);
    }
    return Write(Pick(a, dims, [&](int64_t k) {
      Dims at = Coordinates(k, dims);
      int64_t from = 0;
      for (size_t d = 0; d < perm.size(); ++d) from += at[d] * strides[static_cast<size_t>(perm[d])];
      return from;
    }));
  }
  if (op == "sum" || op == "prod" || op == "max" || op == "min") {
    return EvaluateReduce(op, a, IntsAttr(attrs, "axis"), IntAttr(attrs, "keepdims", 0) != 0);
  }
  return EvaluateUnary(op, a);
}

}  // namespace baton::onnx
