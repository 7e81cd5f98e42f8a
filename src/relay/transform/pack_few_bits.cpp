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

#include "relay/kernel/dots.h"
#include "relay/kernel/machine.h"

namespace baton::relay::transform {
namespace {

/// Vectors of float32 in a panel: two columns' sums and products are in flight, and a byte has their numbers side by
/// side.
constexpr int64_t kVectors = 2;
/// Terms of a sum of bytes that are side by side.
constexpr int64_t kTerms = 4;

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

/// Numbers of 4 or 8 bits (rows of bytes, N) as panels whose lines have four terms of the sum of each column side by
/// side: of 4 bits eight, four in the low halves of bytes and four in the high ones.
NDArray InDots(const NDArray& from, int64_t columns, int64_t bits) {
  const NDArray dense = from.Contiguous();
  const int64_t n = dense.dim(1), each = 8 / bits, step = kTerms * each, panels = (n + columns - 1) / columns;
  const int64_t depth = dense.dim(0) * each, most = (int64_t{1} << bits) - 1;
  NDArray out = NDArray::Empty({panels, depth / step, columns * kTerms}, dense.dtype());
  memset(out.data(), 0, out.nbytes());
  const auto* source = dense.ptr<uint8_t>();
  auto* to = out.ptr<uint8_t>();
  for (int64_t k = 0; k < depth; ++k) {
    const int64_t line = k / step, part = k % step / kTerms, term = k % kTerms;
    for (int64_t j = 0; j < n; ++j) {
      const int64_t number = source[k / each * n + j] >> (k % each * bits) & most;
      const int64_t place = ((j / columns * (depth / step) + line) * columns + j % columns) * kTerms + term;
      to[place] = static_cast<uint8_t>(to[place] | number << (part * bits));
    }
  }
  return out;
}

class FewBitsPacker : public MixedModeMutator {
 public:
  /// `dots`: the target adds four products of bytes.
  FewBitsPacker(int64_t columns, bool dots) : columns_(columns), dots_(dots) {}

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
    const auto* weight = pre->args[first].as<ConstantNode>();
    const int64_t step = kTerms * (8 / attrs->bits);
    const bool dots = dots_ && attrs->activations == 8 && attrs->bits != 2 && attrs->block % step == 0 &&
                      weight->data.dim(0) % kTerms == 0;
    for (int64_t i = first; i < first + 3; ++i)
      args.push_back(Packed(pre->args[i].as<ConstantNode>(), i == first && dots ? attrs->bits : 0));
    Expr e = MakeCall<MatmulNBitsAttrs>(Downcast<Op>(pre->op), args, [&](MatmulNBitsAttrs* a) {
      a->bits = attrs->bits, a->block = attrs->block, a->panel = columns_, a->units = n;
      a->activations = attrs->activations, a->terms = dots ? kTerms : 1;
    });
    e->span = pre->span;
    return e;
  }

  /// A constant in panels, once for all products that read it. `bits`: of numbers for products of bytes, else 0.
  const Constant& Packed(const ConstantNode* from, int64_t bits) {
    Constant& packed = packed_[from];
    if (packed.defined()) return packed;
    const int64_t panels = (from->data.dim(1) + columns_ - 1) / columns_;
    ConstantNode c;
    const int64_t terms = bits > 0 ? kTerms : 1;
    c.data = MadeOf(
        from->data,
        [bits, columns = columns_](const NDArray& x) {
          return bits > 0 ? InDots(x, columns, bits) : InPanels(x, columns);
        },
        {panels, from->data.dim(0) / terms, columns_ * terms}, from->data.dtype());
    packed = Constant(std::move(c));
    packed->span = from->span;
    kept_.push_back(GetRef<Constant>(from));
    return packed;
  }

  int64_t columns_;
  bool dots_;
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
        return Downcast<Function>(FewBitsPacker(kVectors * lanes, kernel::AddsFourProducts(target)).Mutate(f));
      },
  });
}

namespace {
const RegisterPass<PackFewBits> registered_pack_few_bits;
}

}  // namespace baton::relay::transform
