// SPDX-License-Identifier: Apache-2.0
// A pattern made ready for matching.
#include <baton/runtime/interrupt.h>
#include <relay/pattern/matcher.h>

namespace baton::relay {
namespace {

using Kind = PatternTable::Kind;

Kind KindOf(const Object* p) {
  if (p->IsInstance<ExprPatternNode>()) return Kind::kExpr;
  if (p->IsInstance<VarPatternNode>()) return Kind::kVar;
  if (p->IsInstance<ConstantPatternNode>()) return Kind::kConstant;
  if (p->IsInstance<CallPatternNode>()) return Kind::kCall;
  if (p->IsInstance<FunctionPatternNode>()) return Kind::kFunction;
  if (p->IsInstance<LetPatternNode>()) return Kind::kLet;
  if (p->IsInstance<IfPatternNode>()) return Kind::kIf;
  if (p->IsInstance<TuplePatternNode>()) return Kind::kTuple;
  if (p->IsInstance<TupleGetItemPatternNode>()) return Kind::kTupleGetItem;
  if (p->IsInstance<AltPatternNode>()) return Kind::kAlt;
  if (p->IsInstance<WildcardPatternNode>()) return Kind::kWildcard;
  if (p->IsInstance<TypePatternNode>()) return Kind::kType;
  if (p->IsInstance<ShapePatternNode>()) return Kind::kShape;
  if (p->IsInstance<DataTypePatternNode>()) return Kind::kDataType;
  if (p->IsInstance<AttrPatternNode>()) return Kind::kAttr;
  if (p->IsInstance<DominatorPatternNode>()) return Kind::kDominator;
  throw CompileError("no pattern of this kind can be matched: `" + p->GetTypeKey() + "`");
}

template <class N>
const N* CastTo(const Object* p) {
  return static_cast<const N*>(p);
}

/// The patterns that `p` is made of; `any` is set where they may be any.
std::vector<const Object*> ChildrenOf(Kind kind, const Object* p, bool* any) {
  std::vector<const Object*> out;
  auto list = [&](const Array<DFPattern>& children) {
    *any = children.get() == nullptr;
    for (const DFPattern& x : children) out.push_back(x.get());
  };
  switch (kind) {
    case Kind::kCall:
      out.push_back(CastTo<CallPatternNode>(p)->op.get());
      list(CastTo<CallPatternNode>(p)->args);
      break;
    case Kind::kFunction:
      list(CastTo<FunctionPatternNode>(p)->params);
      out.push_back(CastTo<FunctionPatternNode>(p)->body.get());
      break;
    case Kind::kLet:
      out = {CastTo<LetPatternNode>(p)->var.get(), CastTo<LetPatternNode>(p)->value.get(),
             CastTo<LetPatternNode>(p)->body.get()};
      break;
    case Kind::kIf:
      out = {CastTo<IfPatternNode>(p)->cond.get(), CastTo<IfPatternNode>(p)->true_branch.get(),
             CastTo<IfPatternNode>(p)->false_branch.get()};
      break;
    case Kind::kTuple:
      list(CastTo<TuplePatternNode>(p)->fields);
      break;
    case Kind::kTupleGetItem:
      out = {CastTo<TupleGetItemPatternNode>(p)->tuple.get()};
      break;
    case Kind::kAlt:
      out = {CastTo<AltPatternNode>(p)->left.get(), CastTo<AltPatternNode>(p)->right.get()};
      break;
    case Kind::kType:
      out = {CastTo<TypePatternNode>(p)->pattern.get()};
      break;
    case Kind::kShape:
      out = {CastTo<ShapePatternNode>(p)->pattern.get()};
      break;
    case Kind::kDataType:
      out = {CastTo<DataTypePatternNode>(p)->pattern.get()};
      break;
    case Kind::kAttr:
      out = {CastTo<AttrPatternNode>(p)->pattern.get()};
      break;
    case Kind::kDominator:
      out = {CastTo<DominatorPatternNode>(p)->parent.get(), CastTo<DominatorPatternNode>(p)->path.get(),
             CastTo<DominatorPatternNode>(p)->child.get()};
      break;
    default:
      break;
  }
  return out;
}

/// The operator that a pattern stands for, or null.
const OpNode* OpOf(const Object* p) {
  return p->IsInstance<ExprPatternNode>() ? CastTo<ExprPatternNode>(p)->expr.as<OpNode>() : nullptr;
}

uint32_t KindBit(const ExprNode* e) {
  if (e->IsInstance<CallNode>()) return 1;
  if (e->IsInstance<VarNode>()) return 2;
  if (e->IsInstance<ConstantNode>()) return 4;
  if (e->IsInstance<TupleNode>()) return 8;
  if (e->IsInstance<TupleGetItemNode>()) return 16;
  if (e->IsInstance<FunctionNode>()) return 32;
  if (e->IsInstance<LetNode>()) return 64;
  if (e->IsInstance<IfNode>()) return 128;
  if (e->IsInstance<OpNode>()) return 256;
  return 512;
}

}  // namespace

bool PatternTable::Filter::Accepts(const ExprNode* e) const {
  if (any) return true;
  const uint32_t bit = KindBit(e);
  if (kinds & bit) return true;
  if (bit != 1) return false;
  const Object* op = static_cast<const CallNode*>(e)->op.get();
  for (const Object* c : called) {
    if (c == op) return true;
  }
  return false;
}

void PatternTable::Filter::Add(const Filter& o) {
  any |= o.any;
  kinds |= o.kinds;
  called.insert(called.end(), o.called.begin(), o.called.end());
}

void PatternTable::FilterCall(Row* r, Filter* f) const {
  static const Op add = Op::Get("add"), multiply = Op::Get("multiply"), divide = Op::Get("divide");
  const OpNode* op = OpOf(rows_[r->children[0]].pattern);
  if (op && !r->any_children && r->children.size() == 3) {
    r->commutative = op == add.get() || op == multiply.get();
    r->product = op == multiply.get() ? 1 : op == divide.get() ? 2 : 0;
  }
  // One operator, or one of several.
  std::vector<int32_t> work{r->children[0]};
  while (!work.empty() && !f->kinds) {
    const Row& callee = rows_[work.back()];
    work.pop_back();
    if (const OpNode* one = OpOf(callee.pattern)) {
      f->called.push_back(one);
    } else if (callee.kind == Kind::kAlt && f->called.size() < 64) {
      work.push_back(callee.children[1]);
      work.push_back(callee.children[0]);
    } else if (callee.kind == Kind::kAttr) {
      work.push_back(callee.children[0]);
    } else {
      f->kinds = 1;
    }
  }
  if (f->kinds) f->called.clear();
  // a * (b / c) matches (a * b) / c, and the other way round.
  for (size_t k = 1; r->product && k < 3; ++k) {
    const Row& inner = rows_[r->children[k]];
    if (inner.kind == Kind::kCall && inner.product == 3 - r->product && (k == 1 || r->product == 1)) {
      f->called.push_back(r->product == 1 ? divide.get() : multiply.get());
    }
  }
}

PatternTable::PatternTable(const DFPattern& root) : keep_(root) {
  if (!root.defined()) throw CompileError("a null pattern cannot be matched");
  PointerMap<int32_t> id;  // -1: waits for its parts
  std::vector<int32_t> uses;
  std::vector<const Object*> stack{root.get()};
  while (!stack.empty()) {
    baton::runtime::PollInterrupt();
    const Object* p = stack.back();
    if (!p) throw CompileError("a part of the pattern is null");
    Row row{.kind = KindOf(p), .pattern = p, .children = {}};
    std::vector<const Object*> children = ChildrenOf(row.kind, p, &row.any_children);
    bool fresh = false;
    const int32_t seen = [&] {
      int32_t& n = id.Insert(p, &fresh);
      if (fresh) n = -1;
      return n;
    }();
    if (fresh && !children.empty()) {
      for (size_t i = children.size(); i-- > 0;) {
        if (!children[i] || !id.Has(children[i])) stack.push_back(children[i]);
      }
      continue;
    }
    stack.pop_back();
    if (!fresh && seen >= 0) continue;
    for (const Object* x : children) {
      const int32_t n = *id.Find(x);
      row.children.push_back(n);
      ++uses[n];
    }
    id[p] = static_cast<int32_t>(rows_.size());
    rows_.push_back(std::move(row));
    uses.push_back(0);
  }
  filters_.resize(rows_.size());
  for (int32_t i = 0; i < size(); ++i) {
    Row& r = rows_[i];
    for (int32_t x : r.children) r.closed &= rows_[x].closed && uses[x] == 1;
    Filter& f = filters_[i];
    switch (r.kind) {
      case Kind::kWildcard:
        f.any = true;
        break;
      case Kind::kExpr: {
        const Expr& e = CastTo<ExprPatternNode>(r.pattern)->expr;
        if (!e.defined()) throw CompileError("a pattern stands for a null expression");
        f.kinds = KindBit(e.get());
        break;
      }
      case Kind::kVar:
        f.kinds = 2;
        break;
      case Kind::kConstant:
        f.kinds = 4;
        break;
      case Kind::kCall:
        FilterCall(&r, &f);
        break;
      case Kind::kFunction:
        f.kinds = 32;
        break;
      case Kind::kLet:
        f.kinds = 64;
        break;
      case Kind::kIf:
        f.kinds = 128;
        break;
      case Kind::kTuple:
        f.kinds = 8;
        break;
      case Kind::kTupleGetItem:
        f.kinds = 16;
        break;
      case Kind::kAlt:
        f = filters_[r.children[0]];
        f.Add(filters_[r.children[1]]);
        break;
      case Kind::kDominator:
        f = filters_[r.children[2]];
        break;
      default:
        f = filters_[r.children[0]];
    }
    if (f.called.size() > 64) f.any = true;  // alternatives without end: looking costs more than trying
    if (f.any) f.called.clear();
  }
}

}  // namespace baton::relay
