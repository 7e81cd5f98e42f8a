// SPDX-License-Identifier: Apache-2.0
#include <baton/relay/functor.h>
#include <baton/relay/op.h>
#include <baton/relay/op/make.h>
#include <baton/relay/op/nn.h>
#include <baton/relay/transform.h>
#include <baton/support/pointer_map.h>
#include <relay/expr/children.h>
#include <relay/op/later.h>

#include <cstring>
#include <vector>

#include "relay/kernel/machine.h"

namespace baton::relay::transform {
namespace {

/// Vectors of float32 in a panel: two columns' sums and products are in flight, and a byte has their numbers side by
/// side.
constexpr int64_t kVectors = 2;

/// (rows, N) as panels (N / columns, rows, columns); columns that are not there are 0.
NDArray InPanels(const NDArray& from, int64_t columns) {
  const NDArray dense = from.Contiguous();
  const int64_t rows = dense.dim(0), n = dense.dim(1), panels = (n + columns - 1) / columns;
  const auto each = static_cast<size_t>(dense.dtype().bytes());
  NDArray out = NDArray::Empty({panels, rows, columns}, dense.dtype());
  memset(out.data(), 0, out.nbytes());
  const char* source = static_cast<const char*>(dense.data());
  char* to = static_cast<char*>(out.data());
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t p = 0; p < panels; ++p) {
      const int64_t count = std::min(columns, n - p * columns);
      memcpy(to + static_cast<size_t>((p * rows + row) * columns) * each,
             source + static_cast<size_t>(row * n + p * columns) * each, static_cast<size_t>(count) * each);
    }
  }
  return out;
}

class FewBitsPacker : public MixedModeMutator {
 public:
  explicit FewBitsPacker(int64_t columns) : columns_(columns) {}

 private:
  Expr Rewrite_(const CallNode* pre, const Expr& post) final {
    const bool product = pre->op == op::matmul_nbits;
    if (!product && pre->op != op::unpack_nbits) return post;
    const auto* attrs = pre->attrs.as<MatmulNBitsAttrs>();
    const int64_t first = product ? 1 : 0;
    if (!attrs || attrs->panel != 0) return post;
    for (int64_t i = first; i < first + 3; ++i) {
      const auto* c = pre->args[i].as<ConstantNode>();
      if (!c || c->data.numel() == 0) return post;
    }
    const int64_t n = pre->args[first].as<ConstantNode>()->data.dim(1);
    Array<Expr> args;
    if (product) args.push_back(post.as<CallNode>()->args[0]);
    for (int64_t i = first; i < first + 3; ++i) args.push_back(Packed(pre->args[i].as<ConstantNode>()));
    Expr e = MakeCall<MatmulNBitsAttrs>(Downcast<Op>(pre->op), args, [&](MatmulNBitsAttrs* a) {
      a->bits = attrs->bits, a->block = attrs->block, a->panel = columns_, a->units = n;
    });
    e->span = pre->span;
    return e;
  }

  /// A constant in panels, once for all products that read it.
  const Constant& Packed(const ConstantNode* from) {
    Constant& packed = packed_[from];
    if (packed.defined()) return packed;
    const int64_t panels = (from->data.dim(1) + columns_ - 1) / columns_;
    ConstantNode c;
    c.data = MadeOf(
        from->data, [columns = columns_](const NDArray& x) { return InPanels(x, columns); },
        {panels, from->data.dim(0), columns_}, from->data.dtype());
    packed = Constant(std::move(c));
    packed->span = from->span;
    kept_.push_back(GetRef<Constant>(from));
    return packed;
  }

  int64_t columns_;
  PointerMap<Constant> packed_;
  std::vector<Constant> kept_;  // their addresses are keys
};

}  // namespace

Pass PackFewBits() {
  return MakePass<PackFewBits>({
      .doc =
          "Puts constant weights of few bits into panels of as many columns as the vectors of the current target take.",
      .opt_level = 1,
      .required = {"InferType"},
      .run = [](Function f, IRModule, PassContext) -> Function {
        const Target target = Target::Current();
        if (!target->traits().vector_kernels || !AnyCallOf(f, op::matmul_nbits)) return f;
        const int64_t lanes = kernel::MachineOf(target, DataType::Float(32)).lanes;
        return Downcast<Function>(FewBitsPacker(kVectors * lanes).Mutate(f));
      },
  });
}

namespace {
const RegisterPass<PackFewBits> registered_pack_few_bits;
}

}  // namespace baton::relay::transform
