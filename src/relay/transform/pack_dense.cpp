// SPDX-License-Identifier: Apache-2.0
#include <baton/arith/extent.h>
#include <baton/relay/functor.h>
#include <baton/relay/op.h>
#include <baton/relay/op/make.h>
#include <baton/relay/op/nn.h>
#include <baton/relay/op/transform.h>
#include <baton/relay/transform.h>
#include <baton/support/pointer_map.h>
#include <relay/expr/children.h>
#include <relay/op/later.h>

#include <cstring>
#include <map>

#include "relay/kernel/dots.h"
#include "relay/kernel/machine.h"
#include "relay/kernel/plan.h"
#include "relay/op/takes_rows.h"

namespace baton::relay::transform {
namespace {

/// (units, K) as panels (units / columns, K, columns); columns that are not there are 0.
NDArray PackPanels(const NDArray& weight, int64_t columns) {
  NDArray w = weight.Contiguous();
  int64_t n = w.shape()[0], k = w.shape()[1], panels = (n + columns - 1) / columns;
  NDArray out = NDArray::Empty({panels, k, columns}, w.dtype());
  memset(out.data(), 0, out.nbytes());
  const float* from = w.ptr<float>();
  float* to = out.ptr<float>();
  for (int64_t p = 0; p < panels; ++p) {
    int64_t count = std::min(columns, n - p * columns);
    // Blocks of lines that the first cache holds, so that neither side is read with long steps alone.
    for (int64_t k0 = 0; k0 < k; k0 += 16) {
      int64_t k1 = std::min(k, k0 + 16);
      for (int64_t c = 0; c < count; ++c) {
        const float* line = from + (p * columns + c) * k;
        float* column = to + p * k * columns + c;
        for (int64_t i = k0; i < k1; ++i) column[i * columns] = line[i];
      }
    }
  }
  return out;
}

/// The numbers of one step of a format are a word.
constexpr int64_t kWord = 4;

/// (units, K) of narrow numbers as panels (units / columns, K / terms, columns, terms), `terms` being those in a word;
/// columns that are not there are 0.
NDArray PackDots(const NDArray& weight, int64_t columns) {
  const NDArray w = weight.Contiguous();
  const int64_t n = w.dim(0), k = w.dim(1), panels = (n + columns - 1) / columns;
  const int64_t terms = kWord / w.dtype().bytes(), steps = k / terms;
  NDArray out = NDArray::Empty({panels, steps, columns, terms}, w.dtype());
  memset(out.data(), 0, out.nbytes());
  for (int64_t line = 0; line < n; ++line) {
    const char* from = static_cast<const char*>(w.data()) + line * steps * kWord;
    char* to = static_cast<char*>(out.data()) + (line / columns * steps * columns + line % columns) * kWord;
    for (int64_t i = 0; i < steps; ++i) memcpy(to + i * columns * kWord, from + i * kWord, kWord);
  }
  return out;
}

/// How often each call is an argument.
PointerMap<int> UsesOf(const Function& f) {
  PointerMap<int> uses;
  PostOrder(f, [&](const Expr& e) {
    if (const auto* c = e.as<CallNode>()) {
      for (const Expr& a : c->args) ++uses[a.get()];
    } else if (const auto* t = e.as<TupleNode>()) {
      for (const Expr& a : t->fields) ++uses[a.get()];
    } else if (const auto* l = e.as<LetNode>()) {
      ++uses[l->value.get()];
    } else if (const auto* fn = e.as<FunctionNode>()) {
      ++uses[fn->body.get()];
    }
  });
  return uses;
}

bool IsReshape(const CallNode* call) { return call && call->op == op::reshape; }

class Packer : public MixedModeMutator {
 public:
  Packer(const Target& target, const Function& f)
      : target_(target), machine_(kernel::MachineOf(target, DataType::Float(32))), uses_(UsesOf(f)) {
    for (const ExprNode* n : PostOrderNodes(f)) {
      const auto* call = n->IsInstance<CallNode>() ? static_cast<const CallNode*>(n) : nullptr;
      if (!call || call->op != op::dense || kernel::HasDotKernel(call, target_)) continue;
      if (const int64_t columns = ColumnsOf(call)) tied_[call->args[1].get()] = columns;
    }
  }

 private:
  Expr Rewrite_(const CallNode* pre, const Expr& post) final {
    if (IsReshape(pre)) return Widen(pre, post);
    if (TakesRows(pre)) return RowsOfPanels(pre, post);
    const int64_t columns = ColumnsOf(pre);
    if (columns == 0) return post;
    const auto* call = post.as<CallNode>();
    const auto* w = pre->args[1].as<ConstantNode>();
    Expr e = MakeCall(op::dense_pack, {call->args[0], Packed(w, columns)}, AttrsOf(w->data.dim(0)));
    e->span = pre->span;
    return e;
  }

  /// Columns of a panel of a product's weight; 0 where it is not packed.
  int64_t ColumnsOf(const CallNode* call) const {
    if (call->op != op::dense) return 0;
    const auto* w = call->args[1].as<ConstantNode>();
    const auto* type = call->args[0]->checked_type_.as<TensorTypeNode>();
    const auto* out = call->checked_type_.as<TensorTypeNode>();
    if (!w || !type || !out || !HasKnownExtents(type->shape)) return 0;
    const DataType f32 = DataType::Float(32);
    const bool dots = kernel::HasDotKernel(call, target_);
    if (!dots && !(w->data.dtype() == f32 && type->dtype == f32 && out->dtype == f32)) return 0;
    int64_t rows = 1, n = w->data.dim(0), k = w->data.dim(1);
    for (size_t i = 0; i + 1 < type->shape.size(); ++i) rows *= DimOf(type->shape[static_cast<int64_t>(i)]);
    std::vector<int64_t> x;
    const bool open = !StaticShape(type->shape, &x);
    if (rows == 0 || n == 0 || k == 0) return 0;
    return open ? kernel::PlanOpenMatmul(machine_).vectors * machine_.lanes
                : kernel::PlanMatmul(machine_, {1, rows, n, dots ? k * w->data.dtype().bytes() / kWord : k, true})
                      .columns(machine_);
  }

  const Constant& Packed(const ConstantNode* w, int64_t columns) {
    Constant& packed = packed_[{w, columns}];
    if (packed.defined()) return packed;
    ConstantNode c;
    const int64_t panels = (w->data.dim(0) + columns - 1) / columns, k = w->data.dim(1);
    const bool dots = w->data.dtype() != DataType::Float(32);
    const int64_t terms = kWord / w->data.dtype().bytes();
    const std::vector<int64_t> shape =
        dots ? std::vector<int64_t>{panels, k / terms, columns, terms} : std::vector<int64_t>{panels, k, columns};
    c.data = MadeOf(
        w->data, [=](const NDArray& weight) { return dots ? PackDots(weight, columns) : PackPanels(weight, columns); },
        shape, w->data.dtype());
    packed = Constant(std::move(c));
    packed->span = w->span;
    kept_.push_back(GetRef<Constant>(w));
    return packed;
  }

  const Attrs& AttrsOf(int64_t units) {
    Attrs& attrs = attrs_[units];
    if (!attrs.defined()) attrs = MakeAttrs<DenseAttrs>([&](DenseAttrs* a) { a->units = PrimExpr(units); });
    return attrs;
  }

  /// take(w, i), where w is the weight of a product too (tied embeddings), reads the panels: they are there once.
  Expr RowsOfPanels(const CallNode* pre, const Expr& post) {
    const int64_t* columns = tied_.Find(pre->args[0].get());
    if (!columns) return post;
    const auto* w = pre->args[0].as<ConstantNode>();
    Expr table = MakeCall(op::unpack_panels, {Packed(w, *columns)}, AttrsOf(w->data.dim(0)));
    table->span = pre->span;
    Array<Expr> args = post.as<CallNode>()->args;
    args.Set(0, table);
    Expr e = MakeCall(op::take, args, pre->attrs);
    e->span = pre->span;
    return e;
  }

  /// reshape(dense(x)) that only gives the rows more dimensions becomes a product of rows with those dimensions, so
  /// that the operators behind the reshape follow the product itself.
  Expr Widen(const CallNode* pre, const Expr& post) {
    const auto* call = post.as<CallNode>();
    const auto* inner = call->args[0].as<CallNode>();
    const auto* pre_inner = pre->args[0].as<CallNode>();
    if (!inner || !pre_inner || inner->op != op::dense_pack || uses_[pre_inner] != 1) return post;
    const auto *out = pre->checked_type_.as<TensorTypeNode>(), *was = pre_inner->checked_type_.as<TensorTypeNode>();
    const auto* data = pre_inner->args[0]->checked_type_.as<TensorTypeNode>();
    if (!out || !was || !data || !HasKnownExtents(out->shape) || !HasKnownExtents(data->shape)) return post;
    const int64_t rank = out->shape.size();
    if (rank == 0 || arith::ExtentsEqual(out->shape[rank - 1], was->shape[was->shape.size() - 1]) != arith::Fact::kYes)
      return post;
    Array<PrimExpr> to = out->shape;
    to.Set(rank - 1, data->shape[data->shape.size() - 1]);
    Expr rows = inner->args[0];
    // A reshape that made the rows one dimension is undone.
    const auto* view = pre_inner->args[0].as<CallNode>();
    const auto* before = IsReshape(view) ? view->args[0]->checked_type_.as<TensorTypeNode>() : nullptr;
    if (before && Equal(before->shape, to) && rows.as<CallNode>()) {
      rows = rows.as<CallNode>()->args[0];
    } else {
      rows = MakeCall<ReshapeAttrs>(op::reshape, {rows}, [&](ReshapeAttrs* a) { a->newshape = ExtentArray(to); });
    }
    Expr e = MakeCall(op::dense_pack, {rows, inner->args[1]}, inner->attrs);
    e->span = pre_inner->span;
    return e;
  }

  /// Whether two shapes are the same whatever their symbols are.
  static bool Equal(const Array<PrimExpr>& a, const Array<PrimExpr>& b) {
    if (a.size() != b.size()) return false;
    for (size_t i = 0; i < a.size(); ++i) {
      if (arith::ExtentsEqual(a[i], b[i]) != arith::Fact::kYes) return false;
    }
    return true;
  }

  Target target_;
  kernel::Machine machine_;  // a vector has as many int32 as float32
  PointerMap<int> uses_;
  PointerMap<int64_t> tied_;  // columns of weights that are packed
  std::map<std::pair<const Object*, int64_t>, Constant> packed_;
  std::map<int64_t, Attrs> attrs_;  // by the number of units
  std::vector<Constant> kept_;      // their addresses are keys
};

}  // namespace

Pass PackDense() {
  return MakePass<PackDense>({
      .doc = "Puts constant weights of nn.dense into panels, as the kernels of the current target read them. Rows that "
             "are taken of such a weight come from the panels.",
      .opt_level = 1,
      .required = {"InferType"},
      .reassociates = true,
      .run = [](Function f, IRModule, PassContext) -> Function {
        const Target target = Target::Current();
        if (!target->traits().vector_kernels) return f;  // kernels read weights as they are
        return AnyCallOf(f, op::dense) ? Downcast<Function>(Packer(target, f).Mutate(f)) : f;
      },
  });
}

namespace {
const RegisterPass<PackDense> registered_pack_dense;
}

}  // namespace baton::relay::transform
