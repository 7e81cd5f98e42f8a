// SPDX-License-Identifier: Apache-2.0
// What the types of results are made of, for nodes that wait for values or lengths of their operands.
#include <baton/tir/op.h>

#include "common.h"

namespace baton::onnx {

Value TypedOperand(Ctx& c, size_t i) {
  Value v = c.T(i);
  c.Rank(v);
  return c.Unknown(v.dtype, v.dims);
}

Value RankedOperand(Ctx& c, size_t i) {
  Value v = c.T(i);
  return c.Unknown(v.dtype, Dims(static_cast<size_t>(c.Rank(v)), -1));
}

Value SomeInts(Ctx& c, int64_t n) { return c.Unknown(DataType::Int(64), {n}); }

int64_t CountOf(Ctx& c, size_t i) {
  if (!c.Has(i)) throw NeedsValue{"the rank of its result"};
  Value v = c.T(i);
  int rank = c.Rank(v);
  if (rank == 0) return 1;
  if (rank != 1 || v.dims[0] < 0 || v.dims[0] > kMaxRank) throw NeedsValue{"the rank of its result"};
  return v.dims[0];
}

Dims LengthsIn(Ctx& c, size_t i) {
  Dims out(static_cast<size_t>(CountOf(c, i)), -1);
  Value v = c.T(i);
  for (size_t k = 0; k < out.size(); ++k) {
    int64_t d = -1;
    if (v.partial != nullptr && k < v.partial->size() && (*v.partial)[k].defined()) {
      const int64_t* literal = tir::as_const_int((*v.partial)[k]);
      if (literal != nullptr) d = *literal;
    }
    if (v.host != nullptr && !v.host->is_string && static_cast<int64_t>(k) < v.host->size())
      d = v.host->IntAt(static_cast<int64_t>(k));
    if (d > 0) out[k] = d;
  }
  return out;
}

Values TypeOfFirst(Ctx& c) { return {c.Call("copy", {TypedOperand(c, 0)})}; }

Values RankOfFirst(Ctx& c) {
  Value x = RankedOperand(c, 0), bounds = SomeInts(c, x.rank());
  return {c.Call("dyn.strided_slice", {x, bounds, bounds})};
}

}  // namespace baton::onnx
