// SPDX-License-Identifier: Apache-2.0
#include <arith/conjuncts.h>
#include <baton/arith/iter_map.h>
#include <baton/runtime/registry.h>
#include <baton/support/stack.h>
#include <baton/tir/functor.h>
#include <baton/tir/op.h>

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

namespace baton::arith {
namespace {

using tir::NodeKind;

struct Split {
  int mark = 0;
  int64_t lower = 1, extent = 1, scale = 1;
  auto operator<=>(const Split&) const = default;
};
/// base + splits, no two of which join to one.
struct Sum {
  std::vector<Split> splits;
  PrimExpr base;
};
struct Mark {
  PrimExpr source;           ///< of a variable
  std::vector<Split> parts;  ///< else: the sum that it is
  int64_t extent = 1;
  bool constrained = false;  ///< by a condition, so that its parts are not independent
};

class Detector {
 public:
  Detector(const Map<tir::Var, Range>& iters, DataType dtype) : dtype_(dtype) {
    for (const auto& [var, range] : iters) {
      const int64_t* extent = tir::as_const_int(range->extent);
      const bool zero = tir::is_const_int(range->min, 0);
      if (!extent || *extent < 1) {
        unknown_.push_back(var);
        continue;
      }
      of_var_.emplace_back(var, static_cast<int>(marks_.size()));
      Mark m;
      m.source = zero ? PrimExpr(var) : PrimExpr(tir::Sub(var, range->min));
      m.extent = *extent;
      marks_.push_back(std::move(m));
      mins_.push_back(zero ? PrimExpr() : range->min);
    }
    vars_ = marks_.size();
  }

  bool Constrain(const PrimExpr& predicate) {
    std::vector<PrimExpr> sums;
    for (const PrimExpr& c : Conjuncts(predicate)) {
      if (tir::is_const_int(c, 1)) continue;
      const NodeKind kind = tir::KindOf(c.get());
      if (kind != NodeKind::kLT && kind != NodeKind::kLE) return false;
      const auto* n = static_cast<const tir::LTNode*>(c.get());
      // negative
      sums.push_back(tir::Sub(n->a, kind == NodeKind::kLE ? tir::Add(n->b, tir::make_int(n->b.dtype(), 1)) : n->b));
    }
    // Those of one variable first: others are made of what they leave.
    for (const bool one_variable : {true, false}) {
      for (const PrimExpr& e : sums) {
        const std::optional<Sum> sum = Parse(e);
        if (!sum) return false;
        if ((sum->splits.size() == 1) == one_variable && !ConstrainSum(*sum)) return false;
      }
    }
    // Splits made of a mark before it shrank do not fit any more.
    for (const Mark& m : marks_) {
      for (const Split& s : m.parts) {
        if (static_cast<size_t>(s.mark) >= vars_ && marks_[s.mark].constrained) return false;
      }
    }
    return true;
  }

  std::optional<std::vector<Sum>> Detect(const Array<PrimExpr>& indices, bool bijective) {
    std::vector<Sum> out;
    std::vector<Split> used;
    for (const PrimExpr& e : indices) {
      std::optional<Sum> sum = Parse(e);
      if (!sum) return std::nullopt;
      if (!sum->splits.empty()) {
        const std::optional<Split> one = Fuse(*sum);
        if (!one) return std::nullopt;
        sum->splits = {*one};
        used.push_back(*one);
      }
      out.push_back(std::move(*sum));
    }
    if (!Independent(used, bijective)) return std::nullopt;
    return out;
  }

  IterSumExpr ToExpr(const Sum& s) {
    Array<IterSplitExpr> args;
    for (const Split& p : s.splits)
      args.push_back(IterSplitExpr(MarkExpr(p.mark), Number(p.lower), Number(p.extent), Number(p.scale)));
    return IterSumExpr(args, s.base.defined() ? analyzer_.Simplify(s.base) : Number(0));
  }

 private:
  /// The sum is negative.
  bool ConstrainSum(const Sum& sum) {
    int64_t base = 0;
    const std::optional<Split> one = Fuse(sum);
    if (!one || !Constant(sum.base, &base) || one->scale < 1 || base >= 0) return false;
    Mark& m = marks_[one->mark];
    if (one->lower != 1 || one->extent != m.extent) return false;
    const int64_t most = (-base + one->scale - 1) / one->scale;
    if (most >= m.extent) return true;
    m.extent = most;
    m.constrained = true;
    return true;
  }
  PrimExpr Number(int64_t v) const { return tir::make_int(dtype_, v); }
  IterMark MarkExpr(int m) {
    made_.resize(marks_.size());
    // Sources have lower ids than the marks made of them.
    for (int i = 0; i <= m; ++i) {
      if (made_[i].defined()) continue;
      const Mark& mark = marks_[i];
      ObjectRef source = mark.source;
      if (!mark.parts.empty()) {
        Array<IterSplitExpr> args;
        for (const Split& p : mark.parts)
          args.push_back(IterSplitExpr(made_[p.mark], Number(p.lower), Number(p.extent), Number(p.scale)));
        source = IterSumExpr(args, Number(0));
      }
      made_[i] = IterMark(source, Number(mark.extent));
    }
    return made_[m];
  }
  bool Constant(const PrimExpr& e, int64_t* out) {
    *out = 0;
    if (!e.defined()) return true;
    const PrimExpr s = analyzer_.Simplify(e);
    const int64_t* v = tir::as_const_int(s);
    if (v) *out = *v;
    return v != nullptr;
  }
  static PrimExpr Op2(NodeKind kind, const PrimExpr& a, const PrimExpr& b) { return tir::FoldBinary(kind, a, b); }

  std::optional<Sum> Parse(const PrimExpr& e) {
    return support::WithStack([&]() -> std::optional<Sum> {
      const NodeKind kind = tir::KindOf(e.get());
      if (kind == NodeKind::kVar) {
        for (const auto& [var, m] : of_var_) {
          if (!e.same_as(var)) continue;
          Sum s;
          s.base = mins_[m];
          if (marks_[m].extent > 1) s.splits.push_back({m, 1, marks_[m].extent, 1});
          return s;
        }
      }
      const bool binary = kind == NodeKind::kAdd || kind == NodeKind::kSub || kind == NodeKind::kMul ||
                          kind == NodeKind::kFloorDiv || kind == NodeKind::kFloorMod;
      if (!binary) {
        for (const auto& [var, m] : of_var_) {
          if (tir::UsesVar(e, var.get())) return std::nullopt;
        }
        for (const tir::Var& var : unknown_) {
          if (tir::UsesVar(e, var.get())) return std::nullopt;
        }
        return Sum{{}, tir::is_const_int(e, 0) ? PrimExpr() : e};
      }
      const auto* n = static_cast<const tir::AddNode*>(e.get());  // of one shape
      std::optional<Sum> a = Parse(n->a), b = Parse(n->b);
      if (!a || !b) return std::nullopt;
      if (a->splits.empty() && b->splits.empty()) {
        // Variables with one value are gone from the bases.
        int64_t by = 1;
        const bool divides = kind == NodeKind::kFloorDiv || kind == NodeKind::kFloorMod;
        if (divides && Constant(b->base, &by) && by == 0) return std::nullopt;
        const PrimExpr x = a->base.defined() ? a->base : tir::make_int(e.dtype(), 0);
        return Sum{{}, Op2(kind, x, b->base.defined() ? b->base : tir::make_int(e.dtype(), 0))};
      }
      if (kind == NodeKind::kAdd) return Add(std::move(*a), *b, 1);
      if (kind == NodeKind::kSub) return Add(std::move(*a), *b, -1);
      if (kind == NodeKind::kMul) {
        if (!b->splits.empty()) std::swap(a, b);
        int64_t by = 0;
        if (!b->splits.empty() || !Constant(b->base, &by)) return std::nullopt;
        return Scale(std::move(*a), by);
      }
      int64_t by = 0;
      if (!b->splits.empty() || !Constant(b->base, &by) || by < 1) return std::nullopt;
      return Divide(*a, by, kind == NodeKind::kFloorMod);
    });
  }
  static std::optional<Sum> Scale(Sum s, int64_t by) {
    if (by == 0) return Sum{};
    for (Split& p : s.splits) {
      if (__builtin_mul_overflow(p.scale, by, &p.scale)) return std::nullopt;
    }
    if (s.base.defined()) s.base = Op2(NodeKind::kMul, s.base, tir::make_int(s.base.dtype(), by));
    return s;
  }
  std::optional<Sum> Add(Sum a, const Sum& b, int64_t sign) {
    for (const Split& p : b.splits) a.splits.push_back({p.mark, p.lower, p.extent, p.scale * sign});
    if (b.base.defined()) {
      a.base = Op2(sign > 0 ? NodeKind::kAdd : NodeKind::kSub, a.base.defined() ? a.base : Number(0), b.base);
    }
    Join(&a.splits);
    return a;
  }
  /// Equal splits add up; neighbouring digits of a mark that are weighted as in the mark are one.
  static void Join(std::vector<Split>* splits) {
    for (bool again = true; again;) {
      again = false;
      std::sort(splits->begin(), splits->end());
      for (size_t i = 0; i + 1 < splits->size() && !again; ++i) {
        Split &p = (*splits)[i], &q = (*splits)[i + 1];
        if (p.mark != q.mark) continue;
        if (p.lower == q.lower && p.extent == q.extent) {
          p.scale += q.scale;
          again = true;
        } else if (q.lower == p.lower * p.extent && q.scale == p.scale * p.extent) {
          p.extent *= q.extent;
          again = true;
        }
        if (again) splits->erase(splits->begin() + static_cast<std::ptrdiff_t>(i) + 1);
      }
      std::erase_if(*splits, [](const Split& p) { return p.scale == 0; });
    }
  }
  /// The splits of a sum as one, if they are digits of a number; the base is left out.
  std::optional<Split> Fuse(const Sum& s) {
    if (s.splits.empty()) return std::nullopt;
    if (s.splits.size() == 1) return s.splits[0];
    std::vector<Split> parts = s.splits;
    std::sort(parts.begin(), parts.end(), [](const Split& a, const Split& b) {
      return std::tie(a.scale, a.mark, a.lower) < std::tie(b.scale, b.mark, b.lower);
    });
    const int64_t unit = parts[0].scale;
    if (unit < 1) return std::nullopt;
    int64_t next = 1;
    for (Split& p : parts) {
      if (p.scale % unit != 0 || p.scale / unit != next) return std::nullopt;
      p.scale = next;
      if (__builtin_mul_overflow(next, p.extent, &next)) return std::nullopt;
    }
    std::reverse(parts.begin(), parts.end());
    const auto [it, fresh] = fused_.emplace(parts, static_cast<int>(marks_.size()));
    if (fresh) {
      Mark m;
      m.parts = parts, m.extent = next;
      marks_.push_back(std::move(m));
    }
    return Split{it->second, 1, marks_[it->second].extent, unit};
  }
  std::optional<Sum> Divide(const Sum& s, int64_t by, bool rest) {
    const std::optional<Split> one = Fuse(s);
    if (!one || one->scale < 1) return std::nullopt;
    // Digits stay what they are unless a condition ties them together.
    const bool apart = s.splits.size() > 1 && !marks_[one->mark].constrained;
    Sum out;
    if (one->scale % by == 0) {
      if (s.base.defined()) {
        const NodeKind kind = rest ? NodeKind::kFloorMod : NodeKind::kFloorDiv;
        out.base = Op2(kind, s.base, tir::make_int(s.base.dtype(), by));
      }
      if (rest) return out;
      out.splits = apart ? s.splits : std::vector<Split>{*one};
      for (Split& p : out.splits) p.scale /= by;
      return out;
    }
    if (by % one->scale != 0) return std::nullopt;
    const int64_t count = by / one->scale;  // of the split's values that have one quotient
    int64_t base = 0;
    if (!Constant(s.base, &base)) return std::nullopt;
    const int64_t left = ((base % by) + by) % by, whole = (base - left) / by;
    if (left >= one->scale) return std::nullopt;
    if (rest && left) out.base = Number(left);
    if (!rest && whole) out.base = Number(whole);
    if (!apart) {
      if (!Cut(*one, count, one->scale, rest, &out.splits)) return std::nullopt;
      return out;
    }
    // The digit that the cut goes through, or before.
    std::vector<Split> digits = marks_[one->mark].parts;  // scaled as digits are, the largest first
    bool ok = true;
    for (const Split& d : digits) {
      const int64_t unit = d.scale;
      if (unit >= count) {
        if (unit % count != 0) ok = false;
        if (!rest) out.splits.push_back({d.mark, d.lower, d.extent, unit / count});
      } else if (unit * d.extent <= count) {
        if (rest) out.splits.push_back({d.mark, d.lower, d.extent, unit * one->scale});
      } else if (count % unit != 0 || !Cut(d, count / unit, unit * one->scale, rest, &out.splits)) {
        ok = false;
      }
    }
    if (!ok) {
      out.splits.clear();
      if (!Cut(*one, count, one->scale, rest, &out.splits)) return std::nullopt;
    }
    Join(&out.splits);
    return out;
  }
  /// The quotient or the rest of a split's values by `count`; the rest is scaled.
  static bool Cut(const Split& s, int64_t count, int64_t scale, bool rest, std::vector<Split>* out) {
    const bool within = s.extent <= count;
    if (!within && s.extent % count != 0) return false;
    if (rest) {
      const int64_t extent = within ? s.extent : count;
      if (extent > 1) out->push_back({s.mark, s.lower, extent, scale});
    } else if (!within && s.extent > count) {
      out->push_back({s.mark, s.lower * count, s.extent / count, 1});
    }
    return true;
  }

  /// Whether no digit of a mark is used twice, nor one that a condition ties to others.
  bool Independent(const std::vector<Split>& used, bool bijective) {
    std::vector<std::vector<Split>> of(marks_.size());
    for (const Split& s : used) of[s.mark].push_back(s);
    // A mark has a higher id than its sources.
    for (size_t m = marks_.size(); m-- > 0;) {
      if (of[m].empty()) {
        if (marks_[m].constrained && m >= vars_) return false;
        if (bijective && m < vars_ && marks_[m].extent > 1) return false;
        continue;
      }
      std::sort(of[m].begin(), of[m].end(), [](const Split& a, const Split& b) { return a.lower < b.lower; });
      int64_t next = 1;
      for (const Split& s : of[m]) {
        if (bijective ? s.lower != next : s.lower % next != 0) return false;
        next = s.lower * s.extent;
      }
      if (marks_[m].extent % next != 0 || (bijective && next != marks_[m].extent)) return false;
      for (const Split& p : marks_[m].parts) of[p.mark].push_back(p);
    }
    return true;
  }

  DataType dtype_;
  Analyzer analyzer_;
  std::vector<std::pair<tir::Var, int>> of_var_;
  std::vector<tir::Var> unknown_;
  std::vector<Mark> marks_;
  std::vector<PrimExpr> mins_;
  size_t vars_ = 0;  ///< marks of variables come first
  std::map<std::vector<Split>, int> fused_;
  std::vector<IterMark> made_;
};

}  // namespace

Array<IterSumExpr> DetectIterMap(const Array<PrimExpr>& indices, const Map<tir::Var, Range>& iters,
                                 const PrimExpr& predicate, bool bijective) {
  Array<IterSumExpr> out;
  if (indices.empty()) return out;
  Detector detector(iters, indices[0].dtype());
  if (!detector.Constrain(predicate)) return out;
  const auto found = detector.Detect(indices, bijective);
  if (!found) return out;
  for (const Sum& s : *found) out.push_back(detector.ToExpr(s));
  return out;
}

PrimExpr NormalizeIterMapToExpr(const IterMapExpr& e) {
  return support::WithStack([&]() -> PrimExpr {
    if (const auto* s = e.as<IterSplitExprNode>()) {
      PrimExpr v = s->source->source.as<IterSumExprNode>()
                       ? NormalizeIterMapToExpr(Downcast<IterSumExpr>(s->source->source))
                       : Downcast<PrimExpr>(s->source->source);
      const int64_t *lower = tir::as_const_int(s->lower_factor), *extent = tir::as_const_int(s->extent);
      const int64_t* whole = tir::as_const_int(s->source->extent);
      if (!lower || *lower != 1) v = tir::FloorDiv(v, s->lower_factor);
      if (!lower || !extent || !whole || *lower * *extent != *whole) v = tir::FloorMod(v, s->extent);
      return tir::is_const_int(s->scale, 1) ? v : PrimExpr(tir::Mul(v, s->scale));
    }
    const auto* sum = e.as<IterSumExprNode>();
    PrimExpr out;
    for (const IterSplitExpr& s : sum->args) {
      const PrimExpr v = NormalizeIterMapToExpr(s);
      out = out.defined() ? PrimExpr(tir::Add(out, v)) : v;
    }
    if (!out.defined()) return sum->base;
    return tir::is_const_int(sum->base, 0) ? out : PrimExpr(tir::Add(out, sum->base));
  });
}

namespace {
/// For each dimension the interval that a region covers without gaps over all rounds; none if that is not known.
Array<IntSet> EstimateRegion(const Array<Range>& region, const Map<tir::Var, Range>& iters, const PrimExpr& predicate) {
  Array<PrimExpr> mins;
  for (const Range& r : region) mins.push_back(r->min);
  const Array<IterSumExpr> sums = DetectIterMap(mins, iters, predicate, false);
  Analyzer analyzer;
  Array<IntSet> out;
  if (sums.size() != region.size()) return {};
  for (size_t i = 0; i < region.size(); ++i) {
    const int64_t* extent = tir::as_const_int(region[i]->extent);
    if (!extent) return {};
    int64_t last = *extent - 1;
    for (const IterSplitExpr& s : sums[i]->args) {
      const int64_t scale = *tir::as_const_int(s->scale);
      if (scale < 1 || scale > *extent) return {};
      last += scale * (*tir::as_const_int(s->extent) - 1);
    }
    const PrimExpr base = sums[i]->base;
    out.push_back(IntervalSet(base, analyzer.Simplify(tir::Add(base, tir::make_int(base.dtype(), last)))));
  }
  return out;
}

const RegisterNodes<IterMarkNode, IterMapExprNode, IterSplitExprNode, IterSumExprNode> registered_iter_map;
BATON_REGISTER_GLOBAL("arith.DetectIterMap")
    .set_body_typed([](Array<PrimExpr> indices, Map<tir::Var, Range> iters, PrimExpr predicate, bool bijective) {
      return DetectIterMap(indices, iters, predicate, bijective);
    });
BATON_REGISTER_GLOBAL("arith.NormalizeIterMapToExpr").set_body_typed([](IterMapExpr e) {
  return NormalizeIterMapToExpr(e);
});
BATON_REGISTER_GLOBAL("arith.EstimateRegionLowerBound")
    .set_body_typed([](Array<Range> region, Map<tir::Var, Range> iters, PrimExpr predicate) {
      return EstimateRegion(region, iters, predicate);
    });
}  // namespace
}  // namespace baton::arith
