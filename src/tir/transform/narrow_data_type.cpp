// SPDX-License-Identifier: Apache-2.0
#include <baton/tir/functor.h>
#include <baton/tir/lower.h>
#include <baton/tir/op.h>
#include <baton/tir/transform.h>

#include <algorithm>
#include <unordered_map>

namespace baton::tir {
namespace {

/// An int64 expression, and its narrow form if its values and all intermediate ones fit.
struct Narrowed {
  PrimExpr wide;
  PrimExpr narrow;  ///< null: it may not fit
  int64_t min = 0, max = 0;
  bool leaf = true;  ///< a variable or literal: nothing is computed
};

class Narrower : public StmtExprMutator {
 public:
  explicit Narrower(int bits)
      : type_(DataType::Int(bits)), low_(-(int64_t{1} << (bits - 1))), high_((int64_t{1} << (bits - 1)) - 1) {}
  using StmtExprMutator::VisitExpr_;
  using StmtExprMutator::VisitStmt_;

  PrimExpr VisitExpr(const PrimExpr& e) final {
    return e.dtype() == DataType::Int(64) ? Go(e).wide : StmtExprMutator::VisitExpr(e);
  }
#define BATON_NARROW_COMPARE(Name) \
  PrimExpr VisitExpr_(const Name##Node* op) final { return Compare<Name>(op); }
  BATON_NARROW_COMPARE(EQ)
  BATON_NARROW_COMPARE(NE)
  BATON_NARROW_COMPARE(LT)
  BATON_NARROW_COMPARE(LE)
  BATON_NARROW_COMPARE(GT)
  BATON_NARROW_COMPARE(GE)
#undef BATON_NARROW_COMPARE

  Stmt VisitStmt_(const ForNode* op) final {
    Narrowed min = Go(op->min), extent = Go(op->extent);
    if (min.narrow.defined() && extent.narrow.defined())
      bounds_[op->loop_var.get()] = {min.min, min.max + std::max<int64_t>(extent.max, 1) - 1};
    Stmt body = VisitStmt(op->body);
    if (min.wide.same_as(op->min) && extent.wide.same_as(op->extent) && body.same_as(op->body)) return GetRef<Stmt>(op);
    ForNode n = *op;
    n.min = min.wide, n.extent = extent.wide, n.body = body;
    return For(std::move(n));
  }
  Stmt VisitStmt_(const LetStmtNode* op) final {
    if (!(op->value.dtype() == DataType::Int(64))) return StmtExprMutator::VisitStmt_(op);
    Narrowed v = Go(op->value);
    if (v.narrow.defined()) bounds_[op->var.get()] = {v.min, v.max};
    Stmt body = VisitStmt(op->body);
    if (v.wide.same_as(op->value) && body.same_as(op->body)) return GetRef<Stmt>(op);
    LetStmtNode n = *op;
    n.value = v.wide, n.body = body;
    return LetStmt(std::move(n));
  }

 private:
  bool Fits(int64_t min, int64_t max) const { return min >= low_ && max <= high_; }
  Narrowed Wide(PrimExpr e) const { return {.wide = std::move(e)}; }
  Narrowed Computed(const PrimExpr& from, const PrimExpr& narrow, int64_t min, int64_t max) const {
    KeepSpan(from, narrow);
    return {Cast(DataType::Int(64), narrow), narrow, min, max, false};
  }

  Narrowed Go(const PrimExpr& e) {
    return support::WithStack([&]() -> Narrowed {
      const NodeKind kind = KindOf(e.get());
      switch (kind) {
        case NodeKind::kIntImm: {
          int64_t v = e.as<IntImmNode>()->value;
          return Fits(v, v) ? Narrowed{e, IntImm(type_, v), v, v} : Wide(e);
        }
        case NodeKind::kVar: {
          auto it = bounds_.find(e.get());
          if (it == bounds_.end() || !Fits(it->second.first, it->second.second)) return Wide(e);
          return {e, Cast(type_, e), it->second.first, it->second.second};
        }
        case NodeKind::kCast: {
          const PrimExpr& from = e.as<CastNode>()->value;
          DataType t = from.dtype();
          PrimExpr value = VisitExpr(from);
          PrimExpr wide = value.same_as(from) ? e : PrimExpr(Cast(e.dtype(), value));
          if (!t.is_scalar() || !(t.is_int() || t.is_uint()) || t.bits() + (t.is_uint() && !t.is_bool()) > type_.bits())
            return Wide(wide);
          int64_t most = t.is_bool() ? 1 : (int64_t{1} << (t.bits() - t.is_int())) - 1;
          return {wide, t == type_ ? value : PrimExpr(Cast(type_, value)), t.is_int() ? -most - 1 : 0, most};
        }
        case NodeKind::kSelect: {
          const auto* s = e.as<SelectNode>();
          PrimExpr c = VisitExpr(s->condition);
          Narrowed t = Go(s->true_value), f = Go(s->false_value);
          if (!t.narrow.defined() || !f.narrow.defined() || (t.leaf && f.leaf)) {
            bool same = c.same_as(s->condition) && t.wide.same_as(s->true_value) && f.wide.same_as(s->false_value);
            return Wide(same ? e : PrimExpr(Select(c, t.wide, f.wide)));
          }
          return Computed(e, Select(c, t.narrow, f.narrow), std::min(t.min, f.min), std::max(t.max, f.max));
        }
#define BATON_NARROW_BINARY(Name) \
  case NodeKind::k##Name:         \
    return Binary<Name>(static_cast<const Name##Node*>(e.get()), kind);
          BATON_NARROW_BINARY(Add)
          BATON_NARROW_BINARY(Sub)
          BATON_NARROW_BINARY(Mul)
          BATON_NARROW_BINARY(Div)
          BATON_NARROW_BINARY(Mod)
          BATON_NARROW_BINARY(FloorDiv)
          BATON_NARROW_BINARY(FloorMod)
          BATON_NARROW_BINARY(Min)
          BATON_NARROW_BINARY(Max)
#undef BATON_NARROW_BINARY
        default:
          return Wide(StmtExprMutator::VisitExpr(e));
      }
    });
  }

  template <class R, class N>
  Narrowed Binary(const N* op, NodeKind kind) {
    Narrowed a = Go(op->a), b = Go(op->b);
    int64_t min = 0, max = 0;
    if (a.narrow.defined() && b.narrow.defined() && Range(kind, a, b, &min, &max) && Fits(min, max))
      return Computed(GetRef<PrimExpr>(op), R(a.narrow, b.narrow), min, max);
    if (a.wide.same_as(op->a) && b.wide.same_as(op->b)) return Wide(GetRef<PrimExpr>(op));
    return Wide(R(a.wide, b.wide));
  }
  /// The values of an operation on values that fit. None for a divisor that may be 0 or negative.
  static bool Range(NodeKind kind, const Narrowed& a, const Narrowed& b, int64_t* min, int64_t* max) {
    auto among = [&](std::initializer_list<int64_t> all) { *min = std::min(all), *max = std::max(all); };
    auto floor = [](int64_t x, int64_t d) { return x / d - (x % d < 0); };
    switch (kind) {
      case NodeKind::kAdd:
        among({a.min + b.min, a.max + b.max});
        return true;
      case NodeKind::kSub:
        among({a.min - b.max, a.max - b.min});
        return true;
      case NodeKind::kMul:
        among({a.min * b.min, a.min * b.max, a.max * b.min, a.max * b.max});
        return true;
      case NodeKind::kMin:
        *min = std::min(a.min, b.min), *max = std::min(a.max, b.max);
        return true;
      case NodeKind::kMax:
        *min = std::max(a.min, b.min), *max = std::max(a.max, b.max);
        return true;
      case NodeKind::kDiv:
        if (b.min < 1) return false;
        among({a.min / b.min, a.min / b.max, a.max / b.min, a.max / b.max});
        return true;
      case NodeKind::kFloorDiv:
        if (b.min < 1) return false;
        among({floor(a.min, b.min), floor(a.min, b.max), floor(a.max, b.min), floor(a.max, b.max)});
        return true;
      case NodeKind::kMod:
        if (b.min < 1) return false;
        among({a.min < 0 ? 1 - b.max : 0, a.max > 0 ? b.max - 1 : 0});
        return true;
      case NodeKind::kFloorMod:
        if (b.min < 1) return false;
        among({0, b.max - 1});
        return true;
      default:
        return false;
    }
  }

  template <class R, class N>
  PrimExpr Compare(const N* op) {
    if (!(op->a.dtype() == DataType::Int(64))) return StmtExprMutator::VisitExpr_(op);
    Narrowed a = Go(op->a), b = Go(op->b);
    if (a.narrow.defined() && b.narrow.defined() && !(a.leaf && b.leaf)) return R(a.narrow, b.narrow);
    if (a.wide.same_as(op->a) && b.wide.same_as(op->b)) return GetRef<PrimExpr>(op);
    return R(a.wide, b.wide);
  }

  DataType type_;
  int64_t low_, high_;
  std::unordered_map<const Object*, std::pair<int64_t, int64_t>> bounds_;
};

}  // namespace

namespace transform {
struct NarrowDataTypeOptions : PassOptions<NarrowDataTypeOptions> {
  static constexpr auto _type_key = "tir.transform.NarrowDataTypeOptions";
  int32_t target_bits = 32;
  static constexpr void Describe(auto& d) {
    d(F<&NarrowDataTypeOptions::target_bits>, "Bits of the narrow integers: 16 or 32; 64 changes nothing.");
  }
};

Pass NarrowDataType(const NarrowDataTypeOptions& options) {
  const int target_bits = options.target_bits;
  if (target_bits != 16 && target_bits != 32 && target_bits != 64) {
    throw runtime::ValueError("NarrowDataType: target_bits is " + std::to_string(target_bits) + "; it is 16, 32 or 64");
  }
  return MakePass<NarrowDataType>(
      options,
      {
          .doc =
              "Integers of 64 bits are computed with target_bits (32) where the bounds of loops prove that nothing is "
              "lost. Variables of loops and indices stay int64; what is computed between them becomes narrow.",
          .run = [target_bits](
                     PrimFunc f, IRModule,
                     PassContext) { return target_bits == 64 ? f : WithBody(f, Narrower(target_bits)(f->body)); },
      });
}
namespace {
const RegisterPass<NarrowDataType> registered_narrow_data_type("tir.transform.");
}  // namespace
}  // namespace transform
}  // namespace baton::tir
