// SPDX-License-Identifier: Apache-2.0
// Nests of reductions. Sums are formed in the same order whatever the machine and the threads.
#include <algorithm>
#include <string>

#include "te/lower/nests.h"

namespace baton::te::lower {
namespace {

enum class Combine { kOther, kSum, kProd, kMin, kMax, kAnd, kOr };

Combine KindOfCombiner(const tir::CommReducer& c) {
  if (c->result.size() != 1) return Combine::kOther;
  const PrimExpr& r = c->result[0];
  auto is = [&](const auto* n) {
    return n && ((n->a.same_as(c->lhs[0]) && n->b.same_as(c->rhs[0])) ||
                 (n->a.same_as(c->rhs[0]) && n->b.same_as(c->lhs[0])));
  };
  if (is(r.as<tir::AddNode>())) return Combine::kSum;
  if (is(r.as<tir::MulNode>())) return Combine::kProd;
  if (is(r.as<tir::MinNode>())) return Combine::kMin;
  if (is(r.as<tir::MaxNode>())) return Combine::kMax;
  if (is(r.as<tir::AndNode>())) return Combine::kAnd;
  if (is(r.as<tir::OrNode>())) return Combine::kOr;
  return Combine::kOther;
}

/// acc op value for each output of the reduction.
std::vector<PrimExpr> Apply(const tir::CommReducer& c, const std::vector<PrimExpr>& acc,
                            const std::vector<PrimExpr>& value) {
  std::vector<PrimExpr> out;
  // a * b + acc in one rounding: as exact as can be, and one instruction.
  if (KindOfCombiner(c) == Combine::kSum && value[0].dtype().is_float() && value[0].dtype().bits() >= 32) {
    if (const auto* m = value[0].as<tir::MulNode>()) return {fma(m->a, m->b, acc[0])};
  }
  tir::VarMap map;
  for (size_t i = 0; i < acc.size(); ++i) map[c->lhs[i].get()] = acc[i], map[c->rhs[i].get()] = value[i];
  for (const PrimExpr& r : c->result) out.push_back(tir::Substitute(r, map));
  return out;
}

Stmt StoreAll(const std::vector<Buffer>& buffers, const PrimExpr& index, const std::vector<PrimExpr>& values) {
  if (buffers.size() == 1) return MakeStore(buffers[0], index, values[0]);
  // All values are computed from the old ones before the first is stored.
  Array<Stmt> seq;
  std::vector<Var> vars;
  for (size_t i = 0; i < values.size(); ++i) {
    vars.push_back(Var("r" + std::to_string(i), values[i].dtype()));
    seq.push_back(MakeStore(buffers[i], index, vars[i]));
  }
  Stmt body = tir::SeqStmt::Flatten(seq);
  for (size_t i = values.size(); i-- > 0;) {
    tir::LetStmtNode let;
    let.var = vars[i], let.value = values[i], let.body = body;
    body = tir::LetStmt(std::move(let));
  }
  return body;
}

/// The same operation on two vectors.
PrimExpr Join(Combine kind, const PrimExpr& x, const PrimExpr& y) {
  switch (kind) {
    case Combine::kSum:
      return x + y;
    case Combine::kProd:
      return x * y;
    case Combine::kMin:
      return min(x, y);
    case Combine::kMax:
      return max(x, y);
    case Combine::kAnd:
      return x && y;
    default:
      return x || y;
  }
}
/// The lanes of a vector, joined by halves.
PrimExpr JoinLanes(Combine kind, const PrimExpr& v) {
  switch (kind) {
    case Combine::kSum:
      return tir::vector_sum(v);
    case Combine::kProd:
      return tir::vector_prod(v);
    case Combine::kMin:
    case Combine::kAnd:
      return tir::vector_min(v);
    default:
      return tir::vector_max(v);
  }
}

/// One reduction over `axes` whose results go to `index` of `homes`.
class Reduction {
 public:
  Reduction(NestEmitter* nests, const Stage& s, const std::vector<Home>& homes, const std::vector<PrimExpr>& index,
            const std::vector<Axis>& axes, std::vector<PrimExpr> values, const PrimExpr& condition)
      : nests_(nests),
        s_(s),
        homes_(homes),
        index_(index),
        axes_(axes),
        raxes_(s.raxes),
        values_(std::move(values)),
        identity_(s.combiner->identity_element.begin(), s.combiner->identity_element.end()),
        kind_(KindOfCombiner(s.combiner)) {
    for (const Axis& a : axes_) an_.Bind(a.var, 0, a.extent);
    for (const Axis& a : raxes_) an_.Bind(a.var, 0, a.extent);
    if (condition.defined()) {
      for (size_t i = 0; i < values_.size(); ++i) values_[i] = if_then_else(condition, values_[i], identity_[i]);
    }
    for (PrimExpr& v : values_) v = an_.Simplify(v);
    // Join the reduction axes where all reads move through them as through one.
    if (values_.size() == 1) {
      std::vector<Store> fake = {{homes_[0].buffer, PrimExpr(0), values_[0]}};
      Collapse(&raxes_, &fake);
      values_[0] = fake[0].value;
      for (const Axis& a : raxes_) an_.Bind(a.var, 0, a.extent);
    }
    lanes_ = std::max<int64_t>(1, kVectorBytes / std::max(WidestBytes(values_), WidestBytes(identity_)));
  }

  /// `work` 0: the nest lies inside of others.
  Stmt Emit(const Work& work) {
    switch (VectorAxis()) {
      case Vector::kReduction:
        return AlongReduction(work);
      case Vector::kData:
        return AlongData(work);
      case Vector::kNone:
        break;
    }
    return Scalar(work);
  }

 private:
  static constexpr int64_t kLeastVector = 4;  ///< rounds from which on a reduction is a vector
  enum class Vector { kNone, kData, kReduction };

  /// Which axis is the vector.
  Vector VectorAxis() {
    const Axis* data = axes_.empty() ? nullptr : &axes_.back();
    const Axis* red = raxes_.empty() ? nullptr : &raxes_.back();
    auto known = [](const Axis* a) { return SizeOf(a->extent); };
    bool same_type = true;
    for (const PrimExpr& v : values_) same_type &= !v.dtype().is_handle();
    if (!same_type || nests_->scalar_reduce()) return Vector::kNone;
    Strides sd = data ? StridesOf(values_, data->var, &an_) : Strides{};
    Strides sr = red ? StridesOf(values_, red->var, &an_) : Strides{};
    bool can_r = red && kind_ != Combine::kOther && values_.size() == 1 &&
                 known(red) >= (OrderMatters() && (!data || sd.bad > 0) ? LeastOfSum() : kLeastVector);
    bool can_d = data && known(data) >= 4;
    if (can_d && sd.bad == 0 && (known(data) >= lanes_ || !can_r || sr.bad > 0)) return Vector::kData;
    if (can_r && sr.bad == 0) return Vector::kReduction;
    if (can_d && sd.bad <= sr.bad) return Vector::kData;
    if (can_r && known(red) >= lanes_) return Vector::kReduction;
    return can_d ? Vector::kData : Vector::kNone;
  }

  bool OrderMatters() const { return kind_ == Combine::kSum || kind_ == Combine::kProd; }
  /// A product that is added in one rounding: the number of lanes matters, too.
  bool OfProducts() const { return kind_ == Combine::kSum && values_[0].as<tir::MulNode>(); }
  /// Two numbers have one sum.
  int64_t LeastOfSum() const { return OfProducts() ? kLeastVector : 3; }

  // ---- Accumulators

  std::vector<Buffer> Accumulators(int64_t size) {
    std::vector<Buffer> acc;
    for (size_t i = 0; i < values_.size(); ++i)
      acc.push_back(Buffer::Make({PrimExpr(size)}, identity_[i].dtype(), nests_->names()->Unique("acc"), "local"));
    return acc;
  }
  static Stmt WithAccumulators(const std::vector<Buffer>& acc, Stmt body) {
    for (size_t i = acc.size(); i-- > 0;) body = AllocateStmt(acc[i], body);
    return body;
  }
  static std::vector<PrimExpr> LoadAll(const std::vector<Buffer>& acc) {
    std::vector<PrimExpr> v;
    for (const Buffer& b : acc) v.push_back(tir::BufferLoad(b, {PrimExpr(0)}));
    return v;
  }
  /// Stores the results at the index, in which `map` is substituted.
  Stmt StoreResults(const std::vector<PrimExpr>& results, const tir::VarMap& map) const {
    Array<Stmt> seq;
    for (size_t i = 0; i < homes_.size(); ++i) {
      std::vector<PrimExpr> at;
      for (const PrimExpr& x : index_) at.push_back(tir::Substitute(x, map));
      int64_t which = s_.info->compute->body[static_cast<int64_t>(i)].as<tir::ReduceNode>()->value_index;
      seq.push_back(MakeStore(homes_[i].buffer, HomeIndex(homes_[i], at), results.at(static_cast<size_t>(which))));
    }
    return tir::SeqStmt::Flatten(seq);
  }
  /// The outer `count` reduction loops around `body`.
  Stmt ReductionLoops(Stmt body, size_t count) const {
    for (size_t i = count; i-- > 0;) body = MakeFor(raxes_[i].var, raxes_[i].extent, ForKind::kSerial, body);
    return body;
  }
  /// All of one element: accumulators are set, run over the reduction and stored.
  Stmt OneElement(const std::vector<PrimExpr>& values, const tir::VarMap& map) {
    std::vector<Buffer> acc = Accumulators(1);
    Array<Stmt> seq;
    for (size_t k = 0; k < values.size(); ++k) seq.push_back(MakeStore(acc[k], 0, identity_[k]));
    seq.push_back(ReductionLoops(StoreAll(acc, 0, Apply(s_.combiner, LoadAll(acc), values)), raxes_.size()));
    seq.push_back(StoreResults(LoadAll(acc), map));
    return WithAccumulators(acc, tir::SeqStmt::Flatten(seq));
  }

  // ---- Nests

  Stmt Scalar(const Work& work) { return nests_->OuterLoops(axes_, OneElement(values_, {}), work); }

  Stmt AlongData(const Work& work) {
    Axis d = axes_.back();
    std::vector<Axis> outer_axes(axes_.begin(), axes_.end() - 1);
    Stmt body = VectorLoop(
        d, lanes_,
        [&](const PrimExpr& i) {
          tir::VarMap map{{d.var.get(), i}};
          std::vector<PrimExpr> vals;
          for (const PrimExpr& v : values_) vals.push_back(tir::Substitute(v, map));
          return tir::RenewBindings(OneElement(vals, map));
        },
        outer_axes.empty() ? work : Work());
    return nests_->OuterLoops(outer_axes, body, work);
  }

  /// Fixed partial sums, whatever the machine and the threads: `parts` vectors of 64 bytes, joined pairwise. An element
  /// belongs to the lane of its place, wherever the row ends, so that a sum keeps its bits when zeros follow.
  Stmt AlongReduction(const Work& work) {
    const PrimExpr extent = raxes_.back().extent;
    Stmt whole;
    if (const int64_t* n = tir::as_const_int(extent)) {
      int64_t parts = *n >= 4 * lanes_ ? 4 : 1;
      if (OrderMatters()) parts = *n > 2 * lanes_ ? 4 : *n > lanes_ ? 2 : 1;
      while (lanes_ > *n) lanes_ /= 2;
      whole = InVectors(parts);
    } else {
      whole = tir::RenewBindings(InVectors(4));  // four parts add up what fewer would, where they are not filled
      if (OfProducts()) whole = InKnownOrder(extent, whole);
    }
    return nests_->OuterLoops(axes_, whole, work);
  }
  /// `whole`, and for few rounds what a literal extent would give: sums in the same order.
  Stmt InKnownOrder(const PrimExpr& extent, const Stmt& whole) {
    auto choose = [&](int64_t least, const Stmt& yes, const Stmt& no) {
      tir::IfThenElseNode n;
      n.condition = PrimExpr(least) <= extent, n.then_case = yes, n.else_case = no;
      return Stmt(tir::IfThenElse(std::move(n)));
    };
    const int64_t lanes = lanes_;
    Stmt few = tir::RenewBindings(OneElement(values_, {}));
    int64_t least = kLeastVector;
    for (; least < lanes; least *= 2) {
      lanes_ = least;
      Stmt narrow = tir::RenewBindings(InVectors(1));
      few = choose(least, narrow, few);
    }
    lanes_ = lanes;
    return choose(least, whole, few);
  }
  Stmt InVectors(int64_t parts) {
    std::vector<Buffer> acc = Accumulators(parts * lanes_);
    const Buffer& a = acc[0];
    Array<Stmt> init;
    for (int64_t p = 0; p < parts; ++p) {
      Var li("l");
      init.push_back(MakeFor(li, lanes_, ForKind::kVectorized, MakeStore(a, PrimExpr(p * lanes_) + li, identity_[0])));
    }
    Stmt body = ReductionLoops(PartialSums(a, parts), raxes_.size() - 1);
    // Join: parts pairwise, then the lanes by halves.
    std::vector<PrimExpr> sums;
    for (int64_t p = 0; p < parts; ++p)
      sums.push_back(tir::BufferLoad(a, {tir::Ramp(PrimExpr(p * lanes_), PrimExpr(1), lanes_)}));
    while (sums.size() > 1) {
      std::vector<PrimExpr> half;
      for (size_t i = 0; i < sums.size() / 2; ++i) half.push_back(Join(kind_, sums[i], sums[i + sums.size() / 2]));
      sums = half;
    }
    PrimExpr result = JoinLanes(kind_, sums[0]);
    Stmt whole = tir::SeqStmt::Flatten({tir::SeqStmt::Flatten(init), body, StoreResults({result}, {})});
    return WithAccumulators(acc, whole);
  }
  /// `value` joined to a lane of a part.
  PrimExpr Joined(const Buffer& a, int64_t part, const Var& lane, const PrimExpr& value) const {
    return Apply(s_.combiner, {tir::BufferLoad(a, {PrimExpr(part * lanes_) + lane})}, {value})[0];
  }
  PrimExpr ValueAt(const PrimExpr& at) const { return tir::Substitute(values_[0], {{raxes_.back().var.get(), at}}); }
  /// The value where the condition holds; where not, what changes no accumulator, and nothing is read.
  PrimExpr Where(const PrimExpr& condition, const PrimExpr& value) const {
    const auto* product = OfProducts() ? value.as<tir::MulNode>() : nullptr;
    if (!product) return if_then_else(condition, value, identity_[0]);
    return if_then_else(condition, product->a, identity_[0]) * if_then_else(condition, product->b, identity_[0]);
  }
  /// What follows the rounds, where its length is known when it runs: vectors of the parts in order, the last one
  /// under a mask. The loop is written once for all parts.
  Stmt RestOfParts(const Buffer& a, int64_t parts, const PrimExpr& done, const PrimExpr& rest) {
    Var rv(raxes_.back().var->name_hint.str() + "_r"), l("l");
    const PrimExpr value = Where(l < rest - rv * lanes_, ValueAt(done + rv * lanes_ + l));
    const bool bound = !OfProducts();
    Var v("v", value.dtype());
    Array<Stmt> stores;
    for (int64_t p = 0; p < parts; ++p) {
      PrimExpr slot = PrimExpr(p * lanes_) + l;
      PrimExpr next = Joined(a, p, l, bound ? PrimExpr(v) : value);
      stores.push_back(MakeStore(a, slot, tir::Select(equal(rv, PrimExpr(p)), next, tir::BufferLoad(a, {slot}))));
    }
    Stmt body = tir::SeqStmt::Flatten(stores);
    if (bound) body = MakeLet(v, value, body);
    body = MakeFor(l, lanes_, ForKind::kVectorized, body);
    return MakeFor(rv, floordiv(rest + PrimExpr(lanes_ - 1), PrimExpr(lanes_)), ForKind::kSerial, body);
  }
  /// The innermost loop of AlongReduction: rounds of `parts` vectors, single vectors, and the rest under a mask.
  Stmt PartialSums(const Buffer& a, int64_t parts) {
    const Axis* red = &raxes_.back();
    auto update = [&](int64_t part, const PrimExpr& at, const Var& lane) {
      return MakeStore(a, PrimExpr(part * lanes_) + lane, Joined(a, part, lane, ValueAt(at)));
    };
    Array<Stmt> step;
    Var ro(red->var->name_hint.str() + "_o");
    PrimExpr rounds = floordiv(red->extent, PrimExpr(parts * lanes_));
    for (int64_t p = 0; p < parts; ++p) {
      Var l("l");
      step.push_back(MakeFor(l, lanes_, ForKind::kVectorized, update(p, ro * (parts * lanes_) + p * lanes_ + l, l)));
    }
    Array<Stmt> inner;
    inner.push_back(MakeFor(ro, rounds, ForKind::kSerial, tir::SeqStmt::Flatten(step)));
    PrimExpr done = rounds * (parts * lanes_), rest = an_.Simplify(red->extent - done);
    const int64_t* fixed = tir::as_const_int(rest);
    if (OrderMatters() && fixed) {
      const int64_t left = *fixed;
      for (int64_t p = 0; p * lanes_ < left; ++p) {
        Var l("l");
        PrimExpr value = ValueAt(done + p * lanes_ + l);
        if (left < (p + 1) * lanes_) value = Where(l < PrimExpr(left - p * lanes_), value);
        const Stmt one = MakeStore(a, PrimExpr(p * lanes_) + l, Joined(a, p, l, value));
        inner.push_back(MakeFor(l, lanes_, ForKind::kVectorized, one));
      }
    } else if (OrderMatters() && parts > 1) {
      inner.push_back(RestOfParts(a, parts, done, rest));
    } else if (!(fixed && *fixed == 0)) {
      if (parts > 1) {
        Var rv(red->var->name_hint.str() + "_r"), l("l");
        PrimExpr vectors = floordiv(rest, PrimExpr(lanes_));
        inner.push_back(MakeFor(rv, vectors, ForKind::kSerial,
                                MakeFor(l, lanes_, ForKind::kVectorized, update(0, done + rv * lanes_ + l, l))));
        done = done + vectors * lanes_;
        rest = red->extent - done;
      }
      fixed = tir::as_const_int(an_.Simplify(rest));
      if (!(fixed && *fixed == 0)) {
        Var l("l");
        Stmt tail = MakeFor(l, lanes_, ForKind::kVectorized, Guard(l < rest, update(0, done + l, l)));
        inner.push_back(fixed ? tail : Guard(rest > 0, tail));
      }
    }
    return tir::SeqStmt::Flatten(inner);
  }

  NestEmitter* nests_;
  const Stage& s_;
  const std::vector<Home>& homes_;
  const std::vector<PrimExpr>& index_;
  const std::vector<Axis>& axes_;
  std::vector<Axis> raxes_;
  std::vector<PrimExpr> values_;
  std::vector<PrimExpr> identity_;
  Combine kind_;
  Analyzer an_;
  int64_t lanes_ = 1;
};

}  // namespace

Stmt NestEmitter::EmitReduce(const Stage& s, const std::vector<Home>& homes, const std::vector<PrimExpr>& index,
                             std::vector<Axis> axes, std::vector<PrimExpr> values, PrimExpr condition, const Work& work,
                             bool outermost, int depth) {
  Analyzer an;
  for (const Axis& a : axes) an.Bind(a.var, 0, a.extent);
  for (const Axis& a : s.raxes) an.Bind(a.var, 0, a.extent);
  // A window that leaves the input does so at the borders: the inside is computed without asking.
  if (outermost && depth < 2 && !work_items_) {
    for (size_t i = axes.size(); i-- > 0;) {
      std::vector<int64_t> cuts = CutPoints(values, axes[i], &an);
      if (cuts.empty() || cuts.size() > 4) continue;
      int64_t widest = cuts[0];
      for (size_t c = 0; c < cuts.size(); ++c) {
        widest = std::max(widest, (c + 1 < cuts.size() ? cuts[c + 1] : *tir::as_const_int(axes[i].extent)) - cuts[c]);
      }
      if (widest * 2 < *tir::as_const_int(axes[i].extent)) continue;
      return EmitParts(axes, i, cuts, [&](const std::vector<Axis>& part, const tir::VarMap& map, double share) {
        std::vector<PrimExpr> at, vals;
        for (const PrimExpr& x : index) at.push_back(tir::Substitute(x, map));
        Analyzer inner;
        for (const Axis& a : part) inner.Bind(a.var, 0, a.extent);
        for (const Axis& a : s.raxes) inner.Bind(a.var, 0, a.extent);
        for (const PrimExpr& v : values) vals.push_back(inner.Simplify(tir::Substitute(v, map)));
        PrimExpr cond = condition.defined() ? tir::Substitute(condition, map) : condition;
        return EmitReduce(s, homes, at, part, vals, cond, work * share, true, depth + 1);
      });
    }
  }
  return Reduction(this, s, homes, index, axes, std::move(values), condition).Emit(outermost ? work : Work());
}

}  // namespace baton::te::lower
