// SPDX-License-Identifier: Apache-2.0
// Loops of a stage that a TensorIntrin does: whether both compute the same, and the intrinsic's statement over the
// stage's buffers.
#include <baton/arith/int_set.h>
#include <baton/tir/op.h>
#include <baton/tir/printer.h>
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "te/schedule/lowering.h"
#include "te/schedule/reads.h"
#include "te/schedule/stage.h"

namespace baton::te {
namespace {

/// A part of a tensor: of each dimension the first index and how many.
struct Part {
  Tensor tensor;
  Array<PrimExpr> base;
  std::vector<int64_t> extents;
};

/// Reads and writes of the intrinsic's buffers as those of the stage's.
class BufferBinder : public tir::StmtExprMutator {
 public:
  struct Bound {
    tir::Buffer to;
    Array<PrimExpr> base;
  };
  std::unordered_map<const Object*, Bound> bound;

 private:
  using StmtExprMutator::VisitExpr_;
  using StmtExprMutator::VisitStmt_;
  Array<PrimExpr> At(const Bound& b, const Array<PrimExpr>& indices) {
    const int64_t skip = static_cast<int64_t>(b.base.size()) - static_cast<int64_t>(indices.size());
    Array<PrimExpr> at;
    for (int64_t i = 0; i < static_cast<int64_t>(b.base.size()); ++i)
      at.push_back(i < skip ? b.base[i] : b.base[i] + VisitExpr(indices[i - skip]));
    return at;
  }
  PrimExpr VisitExpr_(const tir::BufferLoadNode* op) final {
    const auto it = bound.find(op->buffer.get());
    return it == bound.end() ? StmtExprMutator::VisitExpr_(op)
                             : tir::BufferLoad(it->second.to, At(it->second, op->indices));
  }
  tir::Stmt VisitStmt_(const tir::BufferStoreNode* op) final {
    const auto it = bound.find(op->buffer.get());
    if (it == bound.end()) return StmtExprMutator::VisitStmt_(op);
    tir::BufferStoreNode n = *op;
    n.buffer = it->second.to, n.indices = At(it->second, op->indices), n.value = VisitExpr(op->value);
    return tir::BufferStore(std::move(n));
  }
};

class Matcher {
 public:
  Matcher(Placement* placement, const Placed& p, size_t place, const TensorIntrin& intrin)
      : placement_(placement), p_(p), intrin_(intrin), op_(intrin->op.as<ComputeOpNode>()) {
    const Array<IterVar>& leaves = p.stage->leaf_iter_vars;
    for (size_t i = place; i < leaves.size(); ++i) {
      inner_.Set(leaves[i]->var, arith::IntervalSet(Int(0), placement->Simplify(p.extent(leaves[i]) - 1)));
      zero_.Set(leaves[i]->var, Int(0));
      if (!placement->within(leaves[i]).empty()) Error("other stages are computed within these loops");
    }
    Axes();
    Compare();
  }

  /// The parts of tensors that the intrinsic reads, then those that it writes.
  const std::vector<Part>& reads() const { return reads_; }
  const Part& written() const { return written_; }
  [[noreturn]] void Error(const std::string& why) const {
    Fail(fmt::format("tensorize of `{}` by `{}`: {}", NameOf(p_.stage), intrin_->name.str(), why));
  }

 private:
  static std::string Text(const std::vector<int64_t>& extents) {
    std::string out;
    for (int64_t e : extents) out += (out.empty() ? "" : ", ") + std::to_string(e);
    return "(" + out + ")";
  }
  /// How many values an expression has while the variables run, from the one at 0 on.
  int64_t Span(const PrimExpr& offset, const arith::Domains& domains, const std::string& called) {
    const PrimExpr simple = placement_->Simplify(offset);
    const arith::IntervalSet set = arith::EvalSet(simple, domains, &analyzer_);
    const PrimExpr low = placement_->Simplify(set->min_value), high = placement_->Simplify(set->max_value);
    const int64_t *a = tir::as_const_int(low), *b = tir::as_const_int(high);
    if (!a || !b || *a != 0)
      Error(fmt::format("{} does not run from its first index over a known number of them", called));
    return *b + 1;
  }
  /// Leading dimensions of a part that the intrinsic does not have: their extent is 1.
  size_t Skipped(const std::vector<int64_t>& part, const Array<PrimExpr>& of_intrinsic, const std::string& called) {
    std::vector<int64_t> wanted;
    for (const PrimExpr& e : of_intrinsic) {
      const PrimExpr simple = placement_->Simplify(e);
      const int64_t* n = tir::as_const_int(simple);
      if (!n) Error("the intrinsic's extents are not known");
      wanted.push_back(*n);
    }
    const size_t skip = part.size() - std::min(part.size(), wanted.size());
    const bool fits =
        part.size() >= wanted.size() &&
        std::equal(wanted.begin(), wanted.end(), part.begin() + static_cast<int64_t>(skip)) &&
        std::all_of(part.begin(), part.begin() + static_cast<int64_t>(skip), [](int64_t n) { return n == 1; });
    if (!fits)
      Error(fmt::format("{} is a part of extents {}, the intrinsic's is {}", called, Text(part), Text(wanted)));
    return skip;
  }

  void Axes() {
    for (const bool reduce : {false, true}) {
      for (const PrimExpr& c : p_.loops.Conditions(reduce)) {
        for (const auto& [var, set] : inner_)
          if (tir::UsesVar(c, var.get()))
            Error(fmt::format("factors of its loops do not divide: {} need not hold", tir::AsText(c)));
      }
    }
    const Array<IterVar> axes = AxesOf(p_.stage->op), formal = AxesOf(intrin_->op);
    std::vector<int64_t> spans[2];
    Array<PrimExpr> wanted[2];
    for (const IterVar& a : axes) {
      const PrimExpr value = p_.value(a), base = placement_->Simplify(tir::Substitute(value, zero_));
      spans[IsReduce(a)].push_back(Span(value - base, inner_, fmt::format("`{}`", NameOf(a))));
      bases_.push_back(base);
    }
    for (const IterVar& a : formal) wanted[IsReduce(a)].push_back(a->dom->extent);
    const size_t skip[2] = {Skipped(spans[0], wanted[0], "what it writes"),
                            Skipped(spans[1], wanted[1], "what its reduction runs over")};
    size_t place[2] = {0, 0};
    for (size_t i = 0; i < axes.size(); ++i) {
      const bool reduce = IsReduce(axes[i]);
      const size_t at = place[reduce]++;
      const PrimExpr first = i < p_.first.size() ? p_.first[i] : axes[i]->dom->min;
      at_base_.Set(axes[i]->var, first + bases_[i]);
      PrimExpr index = first + bases_[i];
      if (at >= skip[reduce]) {
        const IterVar& own = formal[(reduce ? wanted[0].size() : 0) + at - skip[reduce]];
        index = index + own->var;
        domains_.Set(own->var, arith::IntervalSet(Int(0), placement_->Simplify(own->dom->extent - 1)));
      }
      running_.Set(axes[i]->var, index);
    }
    written_.extents = spans[0];
    for (size_t i = 0; i < spans[0].size(); ++i) written_.base.push_back(bases_[i]);
  }

  PrimExpr Canonical(const PrimExpr& e) {
    return ReplaceLoads(e, [&](const Tensor& t, const Array<PrimExpr>& indices) {
      Array<PrimExpr> at;
      for (const PrimExpr& i : indices) at.push_back(placement_->Simplify(i));
      return t(at);
    });
  }

  /// An element that the stage reads, as the intrinsic reads it.
  PrimExpr AsIntrinsic(const Tensor& t, const Array<PrimExpr>& indices) {
    Part part;
    part.tensor = t;
    Array<PrimExpr> offsets;
    for (const PrimExpr& i : indices) {
      const PrimExpr base = placement_->Simplify(tir::Substitute(i, at_base_));
      const PrimExpr offset = placement_->Simplify(tir::Substitute(i, running_) - base);
      part.base.push_back(base);
      part.extents.push_back(Span(offset, domains_, fmt::format("an index of `{}`", NameOf(t->op))));
      offsets.push_back(offset);
    }
    size_t at = 0;
    while (at < reads_.size() && !SameTensor(reads_[at].tensor, t)) ++at;
    if (at == reads_.size()) {
      if (at == intrin_->inputs.size())
        Error(fmt::format("it reads `{}` too, the intrinsic has {} inputs", NameOf(t->op), at));
      reads_.push_back(part);
    } else {
      for (size_t d = 0; d < part.base.size(); ++d) {
        if (!tir::is_const_int(placement_->Simplify(part.base[d] - reads_[at].base[d]), 0))
          Error(fmt::format("it reads `{}` at two places", NameOf(t->op)));
      }
    }
    const Tensor& own = intrin_->inputs[static_cast<int64_t>(at)];
    const size_t skip = Skipped(part.extents, own->shape, fmt::format("what it reads of `{}`", NameOf(t->op)));
    return own(Array<PrimExpr>(offsets.begin() + static_cast<int64_t>(skip), offsets.end()));
  }

  PrimExpr Replaced(const PrimExpr& e) {
    return ReplaceLoads(e, [&](const Tensor& t, const Array<PrimExpr>& i) { return AsIntrinsic(t, i); });
  }

  void Compare() {
    if (p_.body.size() != op_->body.size()) Error("they have different numbers of results");
    for (size_t k = 0; k < p_.body.size(); ++k) {
      const PrimExpr &mine = p_.body[k], &its = op_->body[k];
      const auto *a = mine.as<tir::ReduceNode>(), *b = its.as<tir::ReduceNode>();
      if (!a != !b) Error("one of them is a reduction, the other is not");
      if (!a) {
        Same(mine, its);
        continue;
      }
      for (size_t i = 0; i < std::max(a->source.size(), b->source.size()); ++i) {
        if (a->source.size() != b->source.size()) Error("they reduce different numbers of values");
        Same(a->source[i], b->source[i]);
        if (tir::AsText(a->combiner->result[i]) != tir::AsText(b->combiner->result[i])) {
          Error(fmt::format("it reduces by {}, the intrinsic by {}", tir::AsText(a->combiner->result[i]),
                            tir::AsText(b->combiner->result[i])));
        }
      }
    }
  }
  void Same(const PrimExpr& mine, const PrimExpr& its) {
    const PrimExpr a = Canonical(tir::Substitute(Replaced(mine), running_)), b = Canonical(its);
    if (!tir::ExprDeepEqual(a, b))
      Error(fmt::format("it computes {}, the intrinsic computes {}", tir::AsText(a), tir::AsText(b)));
  }

  Placement* placement_;
  const Placed& p_;
  const TensorIntrin& intrin_;
  const ComputeOpNode* op_;
  arith::Analyzer analyzer_;
  arith::Domains inner_, domains_;  ///< of the tensorized loops, and of the intrinsic's axes
  Map<Var, PrimExpr> zero_, at_base_, running_;
  Array<PrimExpr> bases_;
  std::vector<Part> reads_;
  Part written_;
};

/// Binds a buffer of the intrinsic to a part of a stage's buffer: element offset, strides and elements.
void BindPart(const Matcher& m, const tir::Buffer& formal, const tir::Buffer& to, const Array<PrimExpr>& base,
              Placement* placement, BufferBinder* binder, tir::VarMap* vars) {
  binder->bound[formal.get()] = {to, base};
  (*vars)[formal->data.get()] = to->data;
  const auto rank = static_cast<int64_t>(to->shape.size());
  std::vector<PrimExpr> strides(to->shape.size(), Int(1));
  PrimExpr offset = Int(0);
  for (int64_t i = rank; i-- > 0;) {
    if (i + 1 < rank) strides[i] = strides[i + 1] * cast(DataType::Int(64), to->shape[i + 1]);
    offset = offset + base[i] * strides[i];
  }
  const auto bind = [&](const PrimExpr& wanted, const PrimExpr& value, const std::string& what) {
    const PrimExpr simple = placement->Simplify(value);
    if (wanted.as<tir::VarNode>()) {
      const PrimExpr given = wanted.dtype() == simple.dtype() ? simple : cast(wanted.dtype(), simple);
      const auto [it, fresh] = vars->emplace(wanted.get(), given);
      if (!fresh && !tir::is_const_int(placement->Simplify(it->second - given), 0))
        m.Error(fmt::format("{} of `{}` would be {} and {}", what, formal->name.str(), tir::AsText(it->second),
                            tir::AsText(given)));
    } else if (!tir::is_const_int(placement->Simplify(cast(DataType::Int(64), wanted) - simple), 0)) {
      m.Error(fmt::format("{} of `{}` is {}, `{}` has {}", what, formal->name.str(), tir::AsText(wanted),
                          to->name.str(), tir::AsText(simple)));
    }
  };
  bind(formal->elem_offset.defined() ? formal->elem_offset : Int(0), offset, "the offset");
  const auto dims = static_cast<int64_t>(formal->shape.size());
  PrimExpr dense = Int(1);
  for (int64_t i = dims; i-- > 0;) {
    if (tir::is_const_int(formal->shape[i], 1) && formal->strides.empty()) continue;
    bind(formal->strides.empty() ? dense : formal->strides[i], strides[rank - dims + i], "the stride of a dimension");
    dense = dense * cast(DataType::Int(64), formal->shape[i]);
  }
}

}  // namespace

tir::Stmt LoopWriter::Tensorized(const Placed& p, size_t place) {
  const Array<IterVar>& leaves = p.stage->leaf_iter_vars;
  const TensorIntrin intrin = AskedOf(p.stage, leaves[place])->tensor_intrin;
  const Matcher match(placement_, p, place, intrin);
  BufferBinder binder;
  tir::VarMap vars;
  const size_t inputs = intrin->inputs.size();
  for (size_t i = 0; i < match.reads().size(); ++i) {
    const Part& part = match.reads()[i];
    const auto element = Downcast<tir::BufferLoad>(Element(part.tensor, part.base));
    BindPart(match, intrin->buffers[i], element->buffer, element->indices, placement_, &binder, &vars);
  }
  for (size_t k = 0; k < p.buffers.size(); ++k)
    BindPart(match, intrin->buffers[inputs + k], p.buffers[k], match.written().base, placement_, &binder, &vars);
  const auto bound = [&](const ObjectRef& s) {
    return s.defined() ? tir::Substitute(tir::RenewBindings(binder(Downcast<tir::Stmt>(s))), vars) : tir::Stmt();
  };
  std::vector<PrimExpr> own;
  for (const PrimExpr& c : p.loops.Conditions(false)) own.push_back(c);
  for (const PrimExpr& c : Inside(p)) own.push_back(c);
  std::vector<PrimExpr> conditions = own, begins;
  for (const PrimExpr& c : p.loops.Conditions(true)) conditions.push_back(c);
  size_t first = 0;
  while (first < place && !IsReduce(leaves[first])) ++first;
  const tir::Stmt whole = bound(intrin->body), init = bound(intrin->reduce_init), update = bound(intrin->reduce_update);
  tir::Stmt body;
  if (first == place) {  // all of the reduction, if there is one
    body = IfAll(own, whole.defined() ? whole : tir::SeqStmt(tir::SeqStmtNode{{}, {init, update}}));
  } else {
    if (!update.defined()) {
      match.Error(fmt::format(
          "`{}` of the reduction is outside of it, and the intrinsic has no statement that reduces further elements; "
          "its function returns (body, reset, update)",
          NameOf(leaves[first])));
    }
    if (init.defined()) {
      body = IfAll(conditions, update);
    } else {  // the first round is `whole`
      for (size_t i = first; i < place; ++i)
        if (IsReduce(leaves[i])) begins.push_back(equal(leaves[i]->var, Int(0)));
      PrimExpr all = begins[0];
      for (size_t i = 1; i < begins.size(); ++i) all = all && begins[i];
      tir::IfThenElseNode n;
      n.condition = all, n.then_case = whole, n.else_case = update;
      body = IfAll(conditions, tir::IfThenElse(std::move(n)));
    }
    for (size_t i = place; i-- > first;) body = Loop(p, leaves[i], Within(leaves[i], std::move(body)));
    if (init.defined()) {
      tir::Stmt begin = IfAll(own, init);
      for (size_t i = place; i-- > first;) {
        if (IsReduce(leaves[i])) continue;
        const Var fresh(String(std::string(NameOf(leaves[i])) + ".init"), leaves[i]->var.dtype());
        begin = Loop(p, leaves[i], tir::Substitute(begin, tir::VarMap{{leaves[i]->var.get(), fresh}}), fresh);
      }
      body = tir::SeqStmt(tir::SeqStmtNode{{}, {begin, body}});
    }
  }
  for (size_t i = first; i-- > 0;) body = Loop(p, leaves[i], Within(leaves[i], std::move(body)));
  return body;
}

}  // namespace baton::te
