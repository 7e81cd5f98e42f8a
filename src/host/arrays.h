// SPDX-License-Identifier: Apache-2.0
// Shared by functions of the host: elements as numbers, a tensor as rows along an axis, and what arrays must be.
#pragma once

#include <baton/host/function.h>
#include <baton/runtime/error.h>
#include <baton/support/text.h>

namespace baton::host {

using runtime::DataType2String;
using runtime::NDArray;
using runtime::RuntimeError;
using support::Cat;
using Ints = std::vector<int64_t>;

/// Elements of any dtype, compared exactly: integers as integers. NaN is larger than any number and equal to itself.
class Elements {
 public:
  explicit Elements(const NDArray& a);
  /// -1, 0, 1
  int Compare(int64_t i, int64_t j) const {
    if (floating_) {
      double x = real_[i], y = real_[j];
      if (x < y) return -1;
      if (x > y) return 1;
      if (x == y) return 0;
      bool p = x != x, q = y != y;
      return p == q ? 0 : p ? 1 : -1;
    }
    int64_t x = whole_[i], y = whole_[j];
    if (unsigned_) return static_cast<uint64_t>(x) < static_cast<uint64_t>(y) ? -1 : x != y;
    return x < y ? -1 : x > y;
  }

 private:
  bool floating_, unsigned_;
  std::vector<double> real_;
  std::vector<int64_t> whole_;
};
std::vector<double> ToDoubles(const NDArray& a);

/// A shape around an axis: outer * n * inner elements, element k of row (o, i) at (o * n + k) * inner + i.
struct Rows {
  int64_t outer = 1, n = 1, inner = 1;
  Rows(const Ints& shape, int64_t axis) {
    for (size_t d = 0; d < shape.size(); ++d) {
      int64_t& part = static_cast<int64_t>(d) < axis ? outer : static_cast<int64_t>(d) == axis ? n : inner;
      part *= shape[d];
    }
  }
  int64_t At(int64_t o, int64_t k, int64_t i) const { return (o * n + k) * inner + i; }
};
/// Copies element `from` of a to element `to` of b, both of one dtype.
inline void CopyElement(const NDArray& a, int64_t from, const NDArray& b, int64_t to) {
  size_t n = static_cast<size_t>(a.dtype().bytes());
  __builtin_memcpy(static_cast<char*>(b.data()) + to * n, static_cast<const char*>(a.data()) + from * n, n);
}
inline int64_t* I64(const NDArray& a) { return a.ptr<int64_t>(); }
/// An int64 array in another dtype of numbers; integers wrap around.
NDArray CastIndices(const NDArray& a, DataType dtype);
inline bool IsTrue(const NDArray& a, int64_t i) {
  return a.dtype().is_floating() ? !(a.GetDouble(i) == 0) : a.GetInt(i) != 0;
}

// ---- Requirements of arrays. A compiled program's always meet them: its types say so.
/// "float32[2, 3]"
std::string Show(const NDArray& a);
/// "[2, 3]"
std::string ShowInts(const Ints& v);
/// Array i, where `ok` holds of it; else an error that says what is wanted.
void Want(const Params& p, const Arrays& in, int i, bool ok, const char* wanted);
/// The parameter as a data type whose elements can be stored one by one.
DataType NumberType(const Params& p, const char* name);
/// The same, of a rank.
void WantRank(const Params& p, const Arrays& in, int i, int rank);
/// The parameter as a dimension of `shape`.
int64_t Axis(const Params& p, const char* name, const Ints& shape);
/// The only element of array i, a limit of the function.
double OneNumber(const Params& p, const Arrays& in, int i);
/// A parameter that is a list of so many integers of at least `least`.
Ints Extents(const Params& p, const char* name, size_t count, int64_t least);

}  // namespace baton::host
