// SPDX-License-Identifier: Apache-2.0
// Shapes as values.
#include "host/arrays.h"
#include "host/functions.h"

namespace baton::host {

Arrays ShapeOf(const Params& p, const Arrays& in) {
  const Ints shape = in[0].shape();
  return {CastIndices(NDArray::FromBytes(shape.data(), {in[0]->ndim}, DataType::Int(64)), NumberType(p, "dtype"))};
}

Arrays ReshapeTensor(const Params& p, const Arrays& in) {
  const Ints want = in[1].ToInts(), said = p.Ints("newshape");
  int64_t n = 1;
  for (size_t d = 0; d < want.size(); ++d) {
    if (want[d] < 0 || (d < said.size() && said[d] >= 0 && said[d] != want[d]) ||
        __builtin_mul_overflow(n, want[d], &n)) {
      p.Fail(Cat("the shape is ", ShowInts(want), ", where newshape says ", ShowInts(said)));
    }
  }
  if (n != in[0].numel())
    p.Fail(Cat("a tensor of ", in[0].numel(), " elements cannot have the shape ", ShowInts(want)));
  return {in[0].Copy().View(want, in[0].dtype())};
}

namespace {
const Register kShapes[] = {{"vm.shape_of", 1, ShapeOf}, {"vm.reshape_tensor", 2, ReshapeTensor}};
}
}  // namespace baton::host
