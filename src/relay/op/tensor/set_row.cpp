// SPDX-License-Identifier: Apache-2.0
// What loops collect, a row each round.
#include <baton/host/function.h>

#include <cstring>

#include "../common.h"
#include "../gradient.h"

namespace baton::relay {
namespace op {
extern const Op set_row;
}
namespace {

Type SetRowType(const TypeArgs& in) {
  in.MinRank(0, 1, "R1");
  in.SameDtype(0, 1, "R2");
  bool fits = in.ndim(1) + 1 == in.ndim(0);
  for (int64_t d = 0; fits && d < in.ndim(1); ++d) fits = in.Same(in.shape(0)[d + 1], in.shape(1)[d]);
  if (!fits) in.Fail("R2", in.Show(1) + " is no row of " + in.Show(0));
  in.Integral(2, "R3");
  in.Rank(2, 0, "R3");
  return in.type(0);
}

/// The virtual machine has its own, which writes where it can into what it is given (src/vm/set_row.cpp).
host::Arrays SetRowOnHost(const host::Params& params, const host::Arrays& in) {
  const NDArray data = in[0].Copy(in[0].device()), row = in[1].Contiguous();
  const int64_t at = in[2].GetInt(0), rows = data.shape()[0];
  if (at < 0 || at >= rows) params.Fail("row " + Str(at) + " of " + Str(rows));
  if (row.nbytes()) std::memcpy(static_cast<char*>(data.data()) + at * row.nbytes(), row.data(), row.nbytes());
  return {data};
}

}  // namespace

namespace gradient {
namespace {

Grads SetRowBack(const Call& call, const Expr& grad) {
  const At at(call, grad);
  const Expr row = MakeCall<TakeAttrs>(op::take, {grad, at.arg(2)}, [](TakeAttrs* a) { a->axis = PrimExpr(0); });
  return {MakeCall(op::set_row, {grad, ZerosLike(at.arg(1)), at.arg(2)}), row, Expr()};
}

}  // namespace
}  // namespace gradient

const Op op::set_row = DefineOp({
    .name = "contrib_set_row",
    .doc = "data with another row: what a loop collects. A compiled program writes into `data` where it is not read "
           "again.",
    .inputs = {{"data", "R1: rank 1 or more."},
               {"row", "R2: dtype of data, and its shape without the first dimension."},
               {"index", "Of the row, from 0 on. R3: an integer of rank 0."}},
    .output = "Shape and dtype of `data`.",
    .type_rel = Rel<"contrib_set_row", SetRowType>,
    .host = SetRowOnHost,
    .gradient = gradient::SetRowBack,
    .source = "Baton",
});

}  // namespace baton::relay
