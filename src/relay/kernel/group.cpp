// SPDX-License-Identifier: Apache-2.0
#include "group.h"

#include <baton/relay/functor.h>
#include <baton/relay/lower.h>
#include <baton/relay/op.h>
#include <baton/tir/intrin.h>

#include <algorithm>

namespace baton::relay::kernel {

namespace {
const TensorTypeNode* TypeOf(const Expr& e) {
  const auto* t = e->checked_type_.as<TensorTypeNode>();
  if (t) return t;
  const auto* v = e.as<VarNode>();
  return v ? v->type_annotation.as<TensorTypeNode>() : nullptr;
}
int64_t Rank(const Array<PrimExpr>& at) { return static_cast<int64_t>(at.size()); }
PrimExpr Product(const Array<PrimExpr>& shape) {
  PrimExpr n = I(1);
  for (const PrimExpr& d : shape) n = n * d;
  return n;
}
bool SameExtent(const PrimExpr& a, const PrimExpr& b) {
  if (kernel::Known(a) >= 0 || kernel::Known(b) >= 0) return kernel::Known(a) == kernel::Known(b);
  return tir::ExprDeepEqual(a, b);
}
}  // namespace

/// Evaluates tensor expressions at a vector of neighbouring elements.
class Vectorizer : public tir::ExprFunctor<PrimExpr(const PrimExpr&)> {
 public:
  Vectorizer(const Group& g, const Site& site, PrimExpr value, Steps* steps)
      : g_(g), site_(site), value_(std::move(value)), steps_(steps) {
    at_ = site.at;
    if (site.lanes > 1) at_.Set(static_cast<int64_t>(at_.size()) - 1, tir::Ramp(site.at.back(), I(1), site.lanes));
  }

  PrimExpr Run(const te::Tensor& t) { return Eval(t, at_); }

  PrimExpr VisitExpr(const PrimExpr& e) override {
    baton::Span outer = span_;
    if (e->span.defined()) span_ = e->span;
    PrimExpr r = ExprFunctor::VisitExpr(e);
    tir::KeepSpan(e, r);
    span_ = outer;
    return r;
  }
  PrimExpr VisitExprDefault_(const Object*) override { throw NoVectorForm{}; }
  PrimExpr VisitExpr_(const tir::VarNode* op) override {
    auto it = vars_.find(op);
    if (it == vars_.end()) throw NoVectorForm{};
    return it->second;
  }
  PrimExpr VisitExpr_(const IntImmNode* op) override { return GetRef<PrimExpr>(op); }
  PrimExpr VisitExpr_(const FloatImmNode* op) override { return GetRef<PrimExpr>(op); }
  PrimExpr VisitExpr_(const tir::CastNode* op) override {
    PrimExpr v = VisitExpr(op->value);
    return cast(op->dtype.with_lanes(v.dtype().lanes()), v);
  }
#define BATON_BINARY(Name)                                                                                    \
  PrimExpr VisitExpr_(const tir::Name##Node* op) override {                                                   \
    PrimExpr a = VisitExpr(op->a), b = VisitExpr(op->b);                                                      \
    int lanes = std::max(a.dtype().lanes(), b.dtype().lanes());                                               \
    return tir::FoldBinary(tir::NodeKind::k##Name, tir::broadcast_to(a, lanes), tir::broadcast_to(b, lanes)); \
  }
  BATON_TIR_BINARY_LIST(BATON_BINARY)
#undef BATON_BINARY
  PrimExpr VisitExpr_(const tir::NotNode* op) override { return !VisitExpr(op->a); }
  PrimExpr VisitExpr_(const tir::SelectNode* op) override {
    PrimExpr c = VisitExpr(op->condition), t = VisitExpr(op->true_value), f = VisitExpr(op->false_value);
    int lanes = std::max({c.dtype().lanes(), t.dtype().lanes(), f.dtype().lanes()});
    return tir::Select(tir::broadcast_to(c, lanes), tir::broadcast_to(t, lanes), tir::broadcast_to(f, lanes));
  }
  PrimExpr VisitExpr_(const tir::LetNode* op) override {
    vars_[op->var.get()] = steps_->Let("t", VisitExpr(op->value));
    return VisitExpr(op->body);
  }
  PrimExpr VisitExpr_(const tir::CallNode* op) override {
    if (!tir::IsLaneByLane(op)) throw NoVectorForm{};
    const bool choice = tir::IsChoice(op);
    Array<PrimExpr> args;
    int lanes = 1;
    for (const PrimExpr& a : op->args) {
      args.push_back(VisitExpr(a));
      lanes = std::max<int>(lanes, args.back().dtype().lanes());
    }
    if (choice && args[0].dtype().lanes() > 1) throw NoVectorForm{};  // a guard lane by lane
    for (size_t i = 0; i < args.size(); ++i) {
      int64_t k = static_cast<int64_t>(i);
      if (choice && k == 0) continue;
      args.Set(k, tir::broadcast_to(args[k], lanes));
    }
    return tir::Call(op->dtype.with_lanes(lanes), op->op, args);
  }
  PrimExpr VisitExpr_(const tir::ProducerLoadNode* op) override {
    Array<PrimExpr> at;
    for (const PrimExpr& i : op->indices) at.push_back(VisitExpr(i));
    return Eval(Downcast<te::Tensor>(op->producer), at);
  }

 private:
  struct Known {
    te::Tensor tensor;
    Array<PrimExpr> at;
    PrimExpr value;
  };

  bool Here(const Array<PrimExpr>& at) const {
    if (at.size() != at_.size()) return false;
    for (size_t i = 0; i < at.size(); ++i) {
      int64_t k = static_cast<int64_t>(i);
      if (tir::is_one(g_.extents_[k])) continue;  // the only place there is
      if (!at[k].same_as(at_[k]) && !tir::ExprDeepEqual(at[k], at_[k])) return false;
    }
    return true;
  }

  PrimExpr Eval(const te::Tensor& t, const Array<PrimExpr>& at) {
    if (t.same_as(g_.anchor_)) {
      if (!Here(at)) throw NoVectorForm{};
      return value_;
    }
    for (const Known& k : known_) {
      if (!k.tensor.same_as(t) && !(k.tensor->op.same_as(t->op) && k.tensor->value_index == t->value_index)) continue;
      bool same = k.at.size() == at.size();
      for (size_t i = 0; same && i < at.size(); ++i) {
        same = tir::ExprDeepEqual(k.at[static_cast<int64_t>(i)], at[static_cast<int64_t>(i)]);
      }
      if (same) return k.value;
    }
    PrimExpr v;
    if (t->op.as<te::PlaceholderOpNode>()) {
      v = Load(t, at);
      tir::MarkSpan(v, span_);
    } else if (const auto* c = t->op.as<te::ComputeOpNode>()) {
      // Axes of different calls are different variables: bindings never clash.
      for (size_t i = 0; i < at.size(); ++i)
        vars_[c->axis[static_cast<int64_t>(i)]->var.get()] = at[static_cast<int64_t>(i)];
      v = VisitExpr(c->body[t->value_index]);
    } else {
      throw NoVectorForm{};
    }
    if (HasMerged(v)) throw NoVectorForm{};
    if (!v.as<IntImmNode>() && !v.as<FloatImmNode>()) v = steps_->Let("e", v);
    known_.push_back({t, at, v});
    return v;
  }

  /// True if the expression has an index of a merged dimension, the last one aside.
  bool HasMerged(const PrimExpr& e) const {
    if (site_.merged < 2) return false;
    bool found = false;
    tir::PostOrderVisitExpr(e, [&](const PrimExpr& x) {
      for (int64_t i = Rank(at_) - site_.merged; i + 1 < Rank(at_); ++i) found = found || x.same_as(at_[i]);
    });
    return found;
  }
  /// The index with merged dimensions as one, which they must be in `t`, too, if it has them.
  Array<PrimExpr> Merge(const te::Tensor& t, Array<PrimExpr> at) const {
    if (site_.merged < 2) return at;
    int64_t n = Rank(at), rank = Rank(at_), used = 0;
    for (const PrimExpr& x : at) used += (x.dtype().lanes() > 1 && !tir::BytesOfIndex(x).defined()) || HasMerged(x);
    if (used == 0) return at;
    if (n < site_.merged || tir::is_one(g_.extents_.back())) throw NoVectorForm{};
    for (int64_t i = 1; i <= site_.merged; ++i) {
      const PrimExpr& extent = g_.extents_[rank - i];
      if (!SameExtent(t->shape[n - i], extent)) throw NoVectorForm{};
      if (!tir::is_one(extent) && !tir::is_zero(extent)) {
        if (!tir::ExprDeepEqual(at[n - i], at_[rank - i])) throw NoVectorForm{};
        --used;
      }
      if (i > 1) at.Set(n - i, I(0));
    }
    if (used != 0) throw NoVectorForm{};
    return at;
  }

  PrimExpr Load(const te::Tensor& t, const Array<PrimExpr>& whole) {
    auto it = g_.placeholder_.find(t->op.get());
    if (it == g_.placeholder_.end()) throw NoVectorForm{};
    const Buffer& b = g_.buffers_[it->second];
    bool same_shape = t->shape.size() == g_.extents_.size() && Here(whole);
    for (int64_t i = 0; same_shape && i < Rank(t->shape); ++i) same_shape = SameExtent(t->shape[i], g_.extents_[i]);
    if (same_shape) return ReadMasked(b, site_.offset, site_.lanes, site_.mask);
    Array<PrimExpr> at = Merge(t, whole);
    PrimExpr base = I(0), wide, stride = I(1);
    int64_t step = 0;
    for (size_t i = at.size(); i-- > 0;) {
      const PrimExpr& x = at[static_cast<int64_t>(i)];
      const int64_t* fixed = tir::as_const_int(stride);
      if (const auto* r = x.as<tir::RampNode>(); r && fixed && tir::as_const_int(r->stride)) {
        base = base + r->base * stride;
        step += *tir::as_const_int(r->stride) * *fixed;
      } else if (const auto* c = x.as<tir::BroadcastNode>()) {
        base = base + c->value * stride;
      } else if (x.dtype().lanes() > 1) {
        PrimExpr w = tir::is_one(stride) ? x : x * tir::broadcast_to(stride, x.dtype().lanes());
        wide = wide.defined() ? wide + w : w;
      } else {
        base = base + x * stride;
      }
      stride = stride * t->shape[static_cast<int64_t>(i)];
    }
    if (wide.defined()) {
      if (step) wide = wide + PrimExpr(tir::Ramp(I(0), I(step), site_.lanes));
      if (!tir::is_zero(base)) wide = wide + base;
      PrimExpr load = tir::BufferLoad(b, {wide});
      // A table has an element for each byte, also where the lane has no place in the output.
      const int64_t* extent = tir::as_const_int(b->shape[0]);
      const bool whole_table = tir::BytesOfIndex(wide).defined() && extent && *extent >= 256;
      return site_.mask.defined() && !whole_table ? tir::masked_load(load, site_.mask) : load;
    }
    if (step == 0) return Read(b, base);
    if (step == 1) return ReadMasked(b, base, site_.lanes, site_.mask);
    PrimExpr load = tir::BufferLoad(b, {tir::Ramp(base, I(step), site_.lanes)});
    return site_.mask.defined() ? tir::masked_load(load, site_.mask) : load;
  }

  const Group& g_;
  const Site& site_;
  PrimExpr value_;
  Steps* steps_;
  Array<PrimExpr> at_;
  std::unordered_map<const Object*, PrimExpr> vars_;
  std::vector<Known> known_;
  baton::Span span_;  // of the expression that is evaluated
};

std::optional<Group> Group::Make(const relay::Function& func, const Call& anchor, bool open) {
  Group g;
  // The type of a value, if kernels take it.
  auto type_of = [&](const Expr& e, std::vector<int64_t>* shape) -> const TensorTypeNode* {
    const TensorTypeNode* t = TypeOf(e);
    if (!t || (!StaticShape(t->shape, shape) && !open)) return nullptr;
    for (const PrimExpr& d : t->shape) {
      bool known = true;
      tir::PostOrderVisitExpr(d, [&](const PrimExpr& x) {
        known = known && !x.as<tir::AnyNode>();
        const auto* v = x.as<tir::VarNode>();
        auto is = [&](const tir::Var& s) { return s.get() == v; };
        if (!v || std::any_of(g.sizes_.begin(), g.sizes_.end(), is)) return;
        g.sizes_.push_back(GetRef<tir::Var>(v));
      });
      if (!known) return nullptr;
    }
    return t;
  };
  Array<te::Tensor> inputs;
  Array<te::Tensor> outputs;
  auto buffer = [&](const Array<PrimExpr>& shape, DataType t, const std::string& name) {
    g.buffers_.push_back(Buffer::Make({Product(shape)}, t, String(name)));
    g.handles_.push_back(tir::Var(String(name), DataType::Handle()));
    return g.buffers_.back();
  };
  std::unordered_map<const Object*, size_t> param;
  for (size_t i = 0; i < func->params.size(); ++i) {
    const Var& p = func->params[static_cast<int64_t>(i)];
    std::vector<int64_t> shape;
    const TensorTypeNode* t = type_of(p, &shape);
    if (!t) return std::nullopt;
    buffer(t->shape, t->dtype, p->name_hint().str());
    param[p.get()] = i;
  }
  const TensorTypeNode* type = type_of(anchor, &g.shape_);
  std::vector<int64_t> result_shape;
  const TensorTypeNode* result = type ? type_of(func->body, &result_shape) : nullptr;
  if (!result || result->shape.size() != type->shape.size()) return std::nullopt;
  for (int64_t i = 0; i < Rank(type->shape); ++i) {
    if (!SameExtent(type->shape[i], result->shape[i])) return std::nullopt;
  }
  g.extents_ = type->shape;
  outputs = ToTensorExpressions(func, &inputs, anchor, &g.anchor_);
  if (outputs.size() != 1) return std::nullopt;
  g.result_ = outputs[0];
  for (size_t i = 0; i < func->params.size(); ++i) g.placeholder_[inputs[static_cast<int64_t>(i)]->op.get()] = i;
  for (const Expr& a : anchor->args) {
    auto it = param.find(a.get());
    if (it == param.end()) return std::nullopt;
    std::vector<int64_t> shape;
    g.arg_extents_.push_back(type_of(a, &shape)->shape);
    g.args_.push_back(g.buffers_[it->second]);
    g.arg_shapes_.push_back(shape);
  }
  g.out_ = buffer(g.extents_, result->dtype, "out");
  // The size of what follows: operations in the bodies, elementary functions counting more.
  std::vector<te::Tensor> work{g.result_};
  std::unordered_map<const Object*, bool> seen;
  while (!work.empty()) {
    te::Tensor t = work.back();
    work.pop_back();
    const auto* c = t->op.as<te::ComputeOpNode>();
    if (!c || seen[c]) continue;
    seen[c] = true;
    for (const PrimExpr& b : c->body) {
      tir::PostOrderVisitExpr(b, [&](const PrimExpr& e) {
        if (const auto* p = e.as<tir::ProducerLoadNode>()) {
          work.push_back(Downcast<te::Tensor>(p->producer));
        } else if (e.as<tir::CallNode>()) {
          g.epilogue_size_ += 12;
        } else if (e.dtype().is_floating() && !e.as<FloatImmNode>()) {
          g.epilogue_size_ += 1;
        }
      });
    }
  }
  return g;
}

Stmt Group::Finish(const Site& site, PrimExpr value) const {
  Steps steps;
  Vectorizer v(*this, site, std::move(value), &steps);
  PrimExpr r = tir::broadcast_to(v.Run(result_), static_cast<int>(site.lanes));
  steps.Add(WriteMasked(out_, site.offset, site.lanes, r, site.mask));
  return steps.Done();
}

tir::PrimFunc Group::Function(const Stmt& body) const {
  Array<tir::Var> params;
  Map<tir::Var, Buffer> map;
  for (size_t i = 0; i < buffers_.size(); ++i) {
    params.push_back(handles_[i]);
    map.Set(handles_[i], buffers_[i]);
  }
  for (const tir::Var& v : sizes_) params.push_back(v);
  return tir::PrimFunc(params, body, map);
}

}  // namespace baton::relay::kernel
