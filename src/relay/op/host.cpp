// SPDX-License-Identifier: Apache-2.0
#include "host.h"

namespace baton::relay {

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

}  // namespace baton::relay
