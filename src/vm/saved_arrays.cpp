// SPDX-License-Identifier: Apache-2.0
#include "vm/saved_arrays.h"

#include <string>

namespace baton::vm {

using runtime::DataType;
using runtime::NDArray;

void WriteArrays(support::ByteWriter* w, const std::vector<NDArray>& arrays) {
  w->Write<uint64_t>(arrays.size());
  for (const NDArray& a : arrays) {
    w->WriteString(runtime::DataType2String(a.dtype()));
    w->Write<uint64_t>(a.shape().size());
    for (const int64_t d : a.shape()) w->Write<int64_t>(d);
    w->WriteString({static_cast<const char*>(a.data()), a.nbytes()});
  }
}

std::vector<NDArray> ReadArrays(support::ByteReader* r) {
  std::vector<NDArray> arrays(r->ReadCount(3 * sizeof(uint64_t), "constants"));
  for (NDArray& a : arrays) {
    const DataType t = runtime::String2DataType(r->ReadString("dtype"));
    std::vector<int64_t> shape(r->ReadCount(sizeof(int64_t), "shape"));
    int64_t count = 1;
    for (int64_t& d : shape) {
      d = r->Read<int64_t>("extent");
      if (d < 0 || __builtin_mul_overflow(count, d, &count)) r->Fail("a constant of no shape");
    }
    const std::string_view bytes = r->ReadString("constant");
    if (static_cast<uint64_t>(count) > bytes.size() || static_cast<size_t>(count * t.bytes()) != bytes.size()) {
      r->Fail("a constant of another size than its shape says");
    }
    a = NDArray::FromBytes(bytes.data(), shape, t);
  }
  return arrays;
}

}  // namespace baton::vm
