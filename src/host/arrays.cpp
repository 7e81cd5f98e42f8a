// SPDX-License-Identifier: Apache-2.0
#include "host/arrays.h"

#include <baton/runtime/scalar.h>

namespace baton::host {

std::vector<double> ToDoubles(const NDArray& a) {
  std::vector<double> out(a.numel());
  if (a.dtype() == DataType::Float(32)) {
    const float* p = a.ptr<float>();
    for (size_t i = 0; i < out.size(); ++i) out[i] = p[i];
  } else {
    for (size_t i = 0; i < out.size(); ++i) out[i] = a.GetDouble(i);
  }
  return out;
}

Elements::Elements(const NDArray& a) : floating_(a.dtype().is_floating()), unsigned_(a.dtype().is_uint()) {
  if (floating_) {
    real_ = ToDoubles(a);
    return;
  }
  whole_.resize(a.numel());
  for (size_t i = 0; i < whole_.size(); ++i) whole_[i] = a.GetInt(i);
}

NDArray CastIndices(const NDArray& a, DataType dtype) {
  if (dtype == a.dtype()) return a;
  NDArray out = NDArray::Empty(a.shape(), dtype);
  for (int64_t i = 0, n = a.numel(); i < n; ++i) {
    if (dtype.is_integral()) {
      out.SetInt(i, I64(a)[i]);
    } else {
      out.SetDouble(i, static_cast<double>(I64(a)[i]));
    }
  }
  return out;
}

std::string Show(const NDArray& a) { return runtime::TensorTypeString(a->shape, a->ndim, a->dtype); }

std::string ShowInts(const Ints& v) {
  std::string out = "[";
  for (int64_t i : v) out += Cat(out.size() > 1 ? ", " : "", i);
  return out + "]";
}

void Want(const Params& p, const Arrays& in, int i, bool ok, const char* wanted) {
  if (!ok) p.Fail(Cat("argument ", i, " is ", Show(in[i]), ", where ", wanted, " is wanted"));
}

DataType NumberType(const Params& p, const char* name) {
  const DataType t = p.Dtype(name);
  if (!runtime::IsLoadable(t))
    p.Fail(Cat("parameter `", name, "` is ", DataType2String(t), ", where a number's is wanted"));
  return t;
}

void WantRank(const Params& p, const Arrays& in, int i, int rank) {
  if (in[i]->ndim != rank) p.Fail(Cat("argument ", i, " is ", Show(in[i]), ", where rank ", rank, " is wanted"));
}

int64_t Axis(const Params& p, const char* name, const Ints& shape) {
  const int64_t axis = p.Int(name), rank = static_cast<int64_t>(shape.size());
  if (axis < -rank || axis >= rank) p.Fail(Cat(name, " is ", axis, " for a tensor of rank ", rank));
  return axis < 0 ? axis + rank : axis;
}

double OneNumber(const Params& p, const Arrays& in, int i) {
  if (in[i].numel() != 1) p.Fail(Cat("argument ", i, " is ", Show(in[i]), ", which is no single number"));
  return in[i].GetDouble(0);
}

Ints Extents(const Params& p, const char* name, size_t count, int64_t least) {
  Ints v = p.Ints(name);
  bool ok = v.size() == count;
  for (int64_t n : v) ok = ok && n >= least;
  if (!ok)
    p.Fail(Cat("parameter `", name, "` is ", ShowInts(v), ", where ", count, " numbers from ", least, " are wanted"));
  return v;
}

}  // namespace baton::host
