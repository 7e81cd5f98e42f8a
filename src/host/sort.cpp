// SPDX-License-Identifier: Apache-2.0
// Sorting along an axis. Equal elements keep their order.
#include "host/arrays.h"
#include "host/functions.h"
#include "host/order.h"

namespace baton::host {
Arrays Sort(const Params& p, const Arrays& in) {
  NDArray x = in[0], out = NDArray::Empty(x.shape(), x.dtype());
  int64_t axis = Axis(p, "axis", x.shape());
  FirstInOrder(x, axis, p.Bool("is_ascend"), x.shape()[axis], &out, nullptr);
  return {out};
}
Arrays Argsort(const Params& p, const Arrays& in) {
  NDArray x = in[0], out = NDArray::Empty(x.shape(), DataType::Int(64));
  int64_t axis = Axis(p, "axis", x.shape());
  FirstInOrder(x, axis, p.Bool("is_ascend"), x.shape()[axis], nullptr, &out);
  return {CastIndices(out, NumberType(p, "dtype"))};
}
Arrays TopK(const Params& p, const Arrays& in) {
  const std::string& type = p.Text("ret_type");
  if (type != "both" && type != "values" && type != "indices")
    p.Fail(Cat("ret_type is \"", type, "\"; it is \"both\", \"values\" or \"indices\""));
  const DataType index_type = NumberType(p, "dtype");
  const NDArray& x = in[0];
  int64_t axis = Axis(p, "axis", x.shape());
  Ints shape = x.shape();
  int64_t k = p.Int("k");
  if (k < 1) k = shape[axis];
  if (k > shape[axis]) p.Fail(Cat("k is ", k, " and the axis has ", shape[axis], " elements"));
  shape[axis] = k;
  NDArray values = NDArray::Empty(shape, x.dtype()), indices = NDArray::Empty(shape, DataType::Int(64));
  FirstInOrder(x, axis, p.Bool("is_ascend"), k, &values, &indices);
  if (type == "values") return {values};
  indices = CastIndices(indices, index_type);
  return type == "indices" ? Arrays{indices} : Arrays{values, indices};
}
Arrays SearchSorted(const Params& p, const Arrays& in) {
  NDArray s = in[0], v = in[1];
  const bool right = p.Bool("right");
  Want(p, in, 0, s->ndim > 0, "rank 1 or more");
  Ints rows = s.shape(), of = v.shape();
  if (s->ndim > 1) {
    if (!of.empty()) of.back() = rows.back();
    Want(p, in, 1, of == rows, "values for each row of the sequences");
  }
  Want(p, in, 1, v.dtype() == s.dtype(), "the dtype of the sequence");
  // Both in one list, so that they compare exactly.
  int64_t ns = s.numel(), nv = v.numel(), n = s.shape().back(), row = s->ndim == 1 ? nv : v.shape().back();
  NDArray both = NDArray::Empty({ns + nv}, s.dtype()), out = NDArray::Empty(v.shape(), DataType::Int(64));
  for (int64_t i = 0; i < ns; ++i) CopyElement(s, i, both, i);
  for (int64_t i = 0; i < nv; ++i) CopyElement(v, i, both, ns + i);
  Elements e(both);
  for (int64_t i = 0; i < nv; ++i) {
    int64_t begin = s->ndim == 1 ? 0 : i / row * n, low = 0, high = n;
    while (low < high) {
      int64_t mid = (low + high) / 2;
      int c = e.Compare(begin + mid, ns + i);
      if (c < 0 || (right && c == 0)) {
        low = mid + 1;
      } else {
        high = mid;
      }
    }
    I64(out)[i] = low;
  }
  return {CastIndices(out, NumberType(p, "dtype"))};
}

namespace {
const Register kSorting[] = {
    {"sort", 1, Sort}, {"argsort", 1, Argsort}, {"topk", 1, TopK}, {"searchsorted", 2, SearchSorted}};
}
}  // namespace baton::host
