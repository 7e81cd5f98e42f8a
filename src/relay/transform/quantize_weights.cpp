// SPDX-License-Identifier: Apache-2.0
#include "relay/transform/quantize_weights.h"

#include <baton/relay/functor.h>
#include <baton/relay/op.h>
#include <baton/relay/op/make.h>
#include <baton/relay/op/nn.h>
#include <baton/relay/op/transform.h>
#include <baton/runtime/scalar.h>
#include <baton/support/pointer_map.h>
#include <relay/expr/children.h>
#include <relay/op/later.h>
#include <relay/op/takes_rows.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

namespace baton::relay::transform {
namespace {

/// A matrix of fewer weights stays as it is: its bytes are few, and its product takes no less time.
constexpr int64_t kFewWeights = 4096;
/// Least and largest numbers that float16 holds with all its digits.
constexpr float kLeastHalf = 6.2e-5F, kMostHalf = 65504;

/// (N, K) as numbers of few bits, (K * bits / 8, N), and a scale and a zero point for each block of K, (K / block, N).
struct Quantized {
  Constant numbers, scales, zeros;
  bool defined() const { return numbers.defined(); }
};

Quantized QuantizedOf(const NDArray& from, int64_t bits, int64_t block) {
  const NDArray dense = from.Contiguous();
  const int64_t n = dense.dim(0), k = dense.dim(1), blocks = (k + block - 1) / block, each = 8 / bits;
  const auto most = static_cast<float>((int64_t{1} << bits) - 1);
  NDArray numbers = NDArray::Empty({k / each, n}, DataType::UInt(8)),
          zeros = NDArray::Empty({blocks, n}, DataType::UInt(8));
  NDArray scales = NDArray::Empty({blocks, n}, DataType::Float(32)),
          halves = NDArray::Empty({blocks, n}, DataType::Float(16));
  std::fill_n(numbers.ptr<uint8_t>(), numbers.numel(), uint8_t{0});
  bool fits_half = true;
  const float* w = dense.ptr<float>();
  for (int64_t b = 0; b < blocks; ++b) {
    const int64_t begin = b * block, end = std::min(k, begin + block);
    for (int64_t j = 0; j < n; ++j) {
      const float* line = w + j * k;
      // Numbers include 0, so that a weight of 0 stays 0.
      float low = 0, high = 0;
      for (int64_t i = begin; i < end; ++i) low = std::min(low, line[i]), high = std::max(high, line[i]);
      if (!std::isfinite(low) || !std::isfinite(high)) return {};
      float scale = (high - low) / most;
      if (scale > 0) {
        // Numbers are quantized by the scale that is stored.
        runtime::StoreDouble(halves.data(), DataType::Float(16), b * n + j, scale);
        if (scale < kLeastHalf || scale > kMostHalf)
          fits_half = false;
        else
          scale = static_cast<float>(runtime::LoadDouble(halves.data(), DataType::Float(16), b * n + j));
      } else {
        runtime::StoreDouble(halves.data(), DataType::Float(16), b * n + j, 0);
      }
      const float zero = scale > 0 ? std::clamp(std::nearbyint(-low / scale), 0.0F, most) : 0.0F;
      scales.ptr<float>()[b * n + j] = scale;
      zeros.ptr<uint8_t>()[b * n + j] = static_cast<uint8_t>(zero);
      for (int64_t i = begin; i < end; ++i) {
        const float number = scale > 0 ? std::clamp(std::nearbyint(line[i] / scale) + zero, 0.0F, most) : 0.0F;
        numbers.ptr<uint8_t>()[i / each * n + j] |=
            static_cast<uint8_t>(static_cast<int64_t>(number) << (i % each * bits));
      }
    }
  }
  return {Constant(numbers), Constant(fits_half ? halves : scales), Constant(zeros)};
}

class Quantizer : public MixedModeMutator {
 public:
  Quantizer(const Function& f, const QuantizeWeightsOptions& options) : options_(options) {
    for (const ExprNode* n : PostOrderNodes(f)) {
      const auto* call = n->IsInstance<CallNode>() ? static_cast<const CallNode*>(n) : nullptr;
      if (call && IsProduct(call)) Weight(call->args[1].as<ConstantNode>());
    }
  }

 private:
  /// Whether a call is a product of float32 whose weight is quantized, unless it has numbers that are not finite.
  bool IsProduct(const CallNode* call) const {
    if (call->op != op::dense) return false;
    const auto* w = call->args[1].as<ConstantNode>();
    const auto *x = call->args[0]->checked_type_.as<TensorTypeNode>(), *out = call->checked_type_.as<TensorTypeNode>();
    const DataType f32 = DataType::Float(32);
    return w && x && out && x->dtype == f32 && out->dtype == f32 && w->data.dtype() == f32 && w->data.ndim() == 2 &&
           w->data.numel() >= kFewWeights && w->data.dim(1) % (8 / options_.bits) == 0;
  }

  Expr Rewrite_(const CallNode* pre, const Expr& post) final {
    const auto* call = post.as<CallNode>();
    if (!call || call->args.size() < 2) return post;
    Expr e;
    if (IsProduct(pre)) {
      const Quantized& w = Weight(pre->args[1].as<ConstantNode>());
      if (!w.defined()) return post;
      e = MakeCall<MatmulNBitsAttrs>(op::matmul_nbits, {call->args[0], w.numbers, w.scales, w.zeros}, Bits());
    } else if (TakesRows(pre)) {
      // The rows of a table that is a weight too (tied embeddings): it is stored once.
      const Quantized* w = weights_.Find(pre->args[0].get());
      if (!w || !w->defined()) return post;
      Expr table = MakeCall<MatmulNBitsAttrs>(op::unpack_nbits, {w->numbers, w->scales, w->zeros}, Bits());
      Array<Expr> args = call->args;
      args.Set(0, MakeCall<TransposeAttrs>(op::transpose, {table}, [](TransposeAttrs* a) { a->axes = {1, 0}; }));
      e = MakeCall(op::take, args, pre->attrs);
    } else {
      return post;
    }
    e->span = pre->span;
    return e;
  }
  std::function<void(MatmulNBitsAttrs*)> Bits() const {
    return [this](MatmulNBitsAttrs* a) {
      a->bits = options_.bits, a->block = options_.block, a->activations = options_.activations;
    };
  }

  const Quantized& Weight(const ConstantNode* w) {
    bool fresh = false;
    Quantized& made = weights_.Insert(w, &fresh);
    if (!fresh) return made;
    kept_.push_back(GetRef<Constant>(w));
    made = Reading(w->data, [&](const NDArray& data) { return QuantizedOf(data, options_.bits, options_.block); });
    return made;
  }

  QuantizeWeightsOptions options_;
  PointerMap<Quantized> weights_;
  std::vector<Constant> kept_;  // their addresses are keys
};

}  // namespace

Pass QuantizeWeights(const QuantizeWeightsOptions& options) {
  if (options.bits != 2 && options.bits != 4 && options.bits != 8)
    throw runtime::ValueError("QuantizeWeights: bits is " + std::to_string(options.bits) + "; it is 2, 4 or 8");
  if (options.activations != 0 && options.activations != 8)
    throw runtime::ValueError("QuantizeWeights: activations is " + std::to_string(options.activations) +
                              "; it is 0 or 8");
  if (options.block < 16 || options.block > 256 || (options.block & (options.block - 1)) != 0)
    throw runtime::ValueError("QuantizeWeights: block is " + std::to_string(options.block) +
                              "; it is 16, 32, 64, 128 or 256");
  return MakePass<QuantizeWeights>(
      options,
      {
          .doc = "Stores constant weights of float32 products in few bits, with a scale and a zero point for each "
                 "block of an output's weights. "
                 "It is asked for (`weights=` of baton.compile): results differ by what rounding the weights changes.",
          .opt_level = 0,
          .required = {"InferType"},
          .changes_results = true,
          .run = [options](Function f, IRModule, PassContext) -> Function {
            if (!AnyCallOf(f, op::dense)) return f;
            return Downcast<Function>(Quantizer(f, options).Mutate(f));
          },
      });
}

namespace {
const RegisterPass<QuantizeWeights> registered_quantize_weights;
}

}  // namespace baton::relay::transform
