// SPDX-License-Identifier: Apache-2.0
#include <baton/ir/structural.h>
#include <baton/relay/functor.h>
#include <baton/relay/op/make.h>
#include <baton/relay/op/transform.h>
#include <baton/relay/transform.h>
#include <baton/runtime/registry.h>
#include <relay/transform/let_inserter.h>
#include <relay/transform/type_keeper.h>

#include <cmath>

#include "simplify_rows.h"

namespace baton::relay::transform {

BATON_REGISTER_PASS_CONFIG_OPTION(
    "fp", String,
    "What rewrites may change in floating values: \"strict\" nothing, which is the default, "
    "\"contract\" NaN and the sign of zero, \"fast\" rounding too.");

Expr Found::operator[](const DFPattern& p) const {
  for (int32_t i = 0; i < table_.size(); ++i) {
    if (table_.row(i).pattern == p.get()) {
      const ExprNode* e = matcher_.Bound(i);
      return e ? GetRef<Expr>(e) : Expr();
    }
  }
  throw InternalError("a row asks for what its pattern does not have");
}

const TensorTypeNode* TensorOf(const Expr& e) { return e->checked_type_.as<TensorTypeNode>(); }
bool HasStaticShape(const Expr& e) {
  const auto* t = TensorOf(e);
  std::vector<int64_t> shape;
  return t && StaticShape(t->shape, &shape);
}
std::vector<int64_t> ShapeOf(const Expr& e) {
  std::vector<int64_t> shape;
  const auto* t = TensorOf(e);
  ICHECK(t && StaticShape(t->shape, &shape));
  return shape;
}
DataType DtypeOf(const Expr& e) {
  const auto* t = TensorOf(e);
  return t ? t->dtype : DataType::Void();
}

namespace {
bool SplatOfConstant(const ConstantNode* c, double* value) {
  const runtime::NDArray& a = c->data;
  if (a.numel() == 0 || !a.contiguous()) return false;
  *value = a.GetDouble(0);
  if (a.numel() == 1) return true;
  const size_t item = a.nbytes() / static_cast<size_t>(a.numel());
  const char* bytes = static_cast<const char*>(a.data());
  return memcmp(bytes, bytes + item, a.nbytes() - item) == 0;
}
}  // namespace

bool Splat(const Expr& e, double* value) {
  if (const auto* c = e.as<ConstantNode>()) return SplatOfConstant(c, value);
  const auto* call = e.as<CallNode>();
  if (!call || !HasStaticShape(e)) return false;
  const OpDef* def = DefOf(call->op);
  if (def && def->traits.fill >= 0) return *value = def->traits.fill, true;
  const auto* c = call->op.same_as(op::full) ? call->args[0].as<ConstantNode>() : nullptr;
  return c && SplatOfConstant(c, value) && c->data.dtype() == DtypeOf(e);
}
bool IsSplat(const Expr& e, double value) {
  double v = 0;
  return Splat(e, &v) && v == value;
}
bool IsSplatBits(const Expr& e, double value) {
  double v = 0;
  return Splat(e, &v) && v == value && std::signbit(v) == std::signbit(value);
}

DFPattern AnyOpWith(bool (*has)(const OpDef& def)) {
  DFPattern any{ObjectPtr<Object>()};
  for (const std::string& name : Op::ListNames()) {
    const OpDef* def = DefOf(Op::Get(name));
    if (def && has(*def)) any = any.defined() ? any || IsOp(name) : IsOp(name);
  }
  return any;
}
const DFPattern& Filled() {
  static const DFPattern p = [] {
    const Array<DFPattern> any{ObjectPtr<Object>()};
    return (IsOp("full") || AnyOpWith([](const OpDef& def) { return def.traits.fill >= 0; }))(any);
  }();
  return p;
}

Expr FullLike(const Expr& like, double value) {
  const auto* t = TensorOf(like);
  if (!t || !HasStaticShape(like)) return Expr();
  Expr scalar = MakeScalar(value, t->dtype);
  if (t->shape.empty()) return scalar;
  return MakeCall<InitOpAttrs>(op::full, {scalar}, [&](InitOpAttrs* a) {
    a->shape = Array<int64_t>(ShapeOf(like));
    a->dtype = t->dtype;
  });
}

Expr ReshapeToShape(const Expr& x, const std::vector<int64_t>& shape) {
  return MakeCall<ReshapeAttrs>(op::reshape, {x}, [&](ReshapeAttrs* a) {
    a->newshape = Array<int64_t>(shape);
    for (int64_t d : shape) a->allowzero |= d == 0;
  });
}

namespace {

/// All rows, and which of them begin with which operator.
struct Rows {
  std::vector<SimplifyRow> rows;
  std::vector<std::unique_ptr<PatternTable>> tables;
  PointerMap<std::vector<int32_t>> of_op;
  Rows() {
    for (auto* rows_of : {ArithmeticRows, LogicRows, ShapeRows, SliceRows, ReduceRows}) {
      for (SimplifyRow& r : rows_of()) rows.push_back(std::move(r));
    }
    for (size_t i = 0; i < rows.size(); ++i) {
      tables.push_back(std::make_unique<PatternTable>(rows[i].pattern));
      const PatternTable::Filter& f = tables.back()->filter(tables.back()->root());
      ICHECK(!f.any && f.kinds == 0) << rows[i].text << " does not begin with an operator";
      PointerSet seen;
      for (const Object* op : f.called) {
        if (seen.Add(op)) of_op[op].push_back(static_cast<int32_t>(i));
      }
    }
  }
  static const Rows& All() {
    static const Rows rows;
    return rows;
  }
};

/// Besides what is exact, what Relay 0.8's pass did.
constexpr const char* kRelay = "relay";

Exactness Allowed(const String& fp) {
  if (fp == "strict" || fp == kRelay) return Exactness::kExact;
  if (fp == "contract") return Exactness::kButNanOrZero;
  if (fp == "fast") return Exactness::kReassociates;
  throw runtime::ValueError("the option `fp` is \"" + fp.str() +
                            "\"; it is \"strict\", \"relay\", \"contract\" or \"fast\"");
}

class Simplifier : public TypeKeeper {
 public:
  Simplifier(const Expr& root, const IRModule& mod, const String& fp, Array<String>* trace)
      : allowed_(Allowed(fp)), relay_(fp == kRelay), trace_(trace), mod_(mod), impure_(ImpureNodes(root)) {
    matchers_.resize(Rows::All().rows.size());
  }

 private:
  using TypeKeeper::Rewrite_;
  using TypeKeeper::VisitExpr_;
  Expr VisitExpr_(const FunctionNode* f) final {
    // Fusion groups are compiled as they are; a composite function is what a code generator asked for.
    if (f->HasNonzeroAttr(attr::kPrimitive) || (f->attrs.defined() && f->attrs->dict.count("Composite"))) {
      return GetRef<Expr>(f);
    }
    return TypeKeeper::VisitExpr_(f);
  }
  Expr Rewrite_(const CallNode* pre, const Expr& post) final {
    if (impure_.Has(pre)) return Simple(post);  // a row may drop an operand, and effects with it
    Expr e = post;
    for (;;) {
      Expr next = Apply(e);
      if (!next.defined()) break;
      // Parts of it that are new are simplified too; the others are known to be simple.
      if (++depth_ > kMaxDepth) {
        --depth_;
        break;
      }
      e = VisitExpr(next);
      --depth_;
      if (!e.as<CallNode>()) break;
    }
    Put(e, e);
    return e;
  }
  Expr Rewrite_(const TupleNode*, const Expr& post) final { return Simple(post); }
  Expr Rewrite_(const TupleGetItemNode* pre, const Expr& post) final {
    const auto* g = post.as<TupleGetItemNode>();
    if (impure_.Has(pre)) return Simple(post);
    if (const auto* t = g->tuple.as<TupleNode>()) {
      Note("(x0, x1, ...).i -> xi");
      return t->fields[g->index];
    }
    // One part of a split in one.
    static const Op split = Op::Get("split");
    const auto* call = g->tuple.as<CallNode>();
    if (call && call->op.same_as(split)) {
      const auto* type = g->tuple->checked_type_.as<TupleTypeNode>();
      if (type && type->fields.size() == 1) {
        Note("split(x, 1).0 -> x");
        return call->args[0];
      }
    }
    return Simple(post);
  }
  Expr Simple(const Expr& post) {
    Put(post, post);
    return post;
  }
  void Note(const char* row) {
    if (trace_) trace_->push_back(String(row));
  }

  /// The first row that applies, applied; null if none does.
  Expr Apply(const Expr& e) {
    const auto* call = e.as<CallNode>();
    const Rows& all = Rows::All();
    const std::vector<int32_t>* rows = all.of_op.Find(call->op.get());
    const auto* type = TensorOf(e);
    if (!rows || !type || call->args.empty()) return Expr();
    const DataType dtype = call->args[0]->checked_type_.as<TensorTypeNode>() ? DtypeOf(call->args[0]) : type->dtype;
    const bool floats = dtype.is_floating();
    const uint32_t domain = floats ? kFloats : dtype.is_bool() ? kBools : kInts;
    const bool known = HasStaticShape(e);
    for (int32_t i : *rows) {
      const SimplifyRow& row = all.rows[i];
      if (!(row.domain & domain) || (!known && !row.any_shape)) continue;
      if (floats && row.floats > allowed_ && !(relay_ && row.of_relay)) continue;
      if (relay_ && row.but_relay) continue;
      if (!matchers_[i]) {
        matchers_[i] = std::make_unique<PatternMatcher>(*all.tables[i], Expr(), nullptr, IRModule());
      }
      if (!matchers_[i]->Match(e.get())) continue;
      Expr out = row.make(Found(*all.tables[i], *matchers_[i], e.get()));
      if (!out.defined() || out.same_as(e)) continue;
      if (!out->checked_type_.defined()) InferTypeOf(out, mod_);
      if (!StructuralEqual(out->checked_type_, e->checked_type_)) continue;
      if (!out->span.defined()) out->span = e->span;
      Note(row.text);
      return out;
    }
    return Expr();
  }

  static constexpr int kMaxDepth = 64;
  Exactness allowed_;
  bool relay_;
  Array<String>* trace_;
  IRModule mod_;
  PointerSet impure_;
  std::vector<std::unique_ptr<PatternMatcher>> matchers_;
  int depth_ = 0;
};

}  // namespace

Pass SimplifyExpr(const SimplifyExprOptions& options) {
  const String fp = options.fp;
  if (!fp.empty()) Allowed(fp);  // an error now, where it is none
  return MakePass<SimplifyExpr>(
      options,
      {
          .doc =
              "Replaces expressions by simpler equal ones, by tables of local identities: moves of elements that undo "
              "each "
              "other, casts, neutral operands, idempotent functions. The option `fp` says what may change in floating "
              "values: \"strict\" nothing, \"contract\" NaN and the sign of zero, \"fast\" rounding too; \"relay\": "
              "what Relay 0.8's pass changed, such as x + 0.",
          .opt_level = 0,
          .required = {"InferType"},
          .needs = {"Typed"},
          .reassociates = true,
          .run =
              [fp](Function f, IRModule mod, PassContext ctx) {
                const bool open = fp.empty() || fp == kRelay;
                const String asked = open ? ctx->GetConfig<String>("fp", fp.empty() ? String("strict") : fp) : fp;
                return Simplifier(f, mod, asked, nullptr).Mutate(f);
              },
      });
}

namespace {
const RegisterPass<SimplifyExpr> registered_simplify_expr;

const char* LabelOf(Exactness e) {
  return e == Exactness::kExact ? "exact" : e == Exactness::kButNanOrZero ? "but NaN or zero" : "reassociates";
}
}  // namespace

/// [[text, label, domain]] of all rows.
BATON_REGISTER_GLOBAL("relay.testing.simplify_rows").set_body_typed([] {
  Array<Array<Any>> out;
  for (const SimplifyRow& r : Rows::All().rows) {
    out.push_back({Any(String(r.text)), Any(String(LabelOf(r.floats))), Any(static_cast<int64_t>(r.domain))});
  }
  return out;
});
/// [function, texts of the rows that were applied] for a typed function.
BATON_REGISTER_GLOBAL("relay.testing.simplify_trace").set_body_typed([](Function f, String fp) {
  Array<String> trace;
  Function out = Simplifier(f, IRModule(), fp, &trace).Mutate(f);
  return Array<ObjectRef>{out, trace};
});

}  // namespace baton::relay::transform
