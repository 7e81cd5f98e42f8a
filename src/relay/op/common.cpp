// SPDX-License-Identifier: Apache-2.0
#include "common.h"

#include <baton/arith/extent.h>
#include <baton/tir/functor.h>
#include <relay/text/type_text.h>

namespace baton::relay {

std::string ShowShape(const Shape& shape) {
  std::string s = "(";
  bool first = true;
  for (const PrimExpr& d : shape) {
    if (!first) s += ", ";
    first = false;
    s += arith::ExtentText(d);
  }
  if (shape.size() == 1) s += ",";
  return s + ")";
}

std::string ShowType(const Type& type) {
  return type.defined() && !type.as<IncompleteTypeNode>() ? TypeText(type) : "an unknown type";
}

std::string ShowInts(const Ints& values) {
  std::string s = "[";
  for (int64_t v : values) s += (s.size() > 1 ? ", " : "") + Str(v);
  return s + "]";
}

namespace {
bool Known(const Type& t) {
  if (!t.defined() || t.as<IncompleteTypeNode>()) return false;
  if (const auto* tuple = t.as<TupleTypeNode>()) {
    for (const Type& f : tuple->fields) {
      if (!f.defined() || f.as<IncompleteTypeNode>()) return false;
    }
  }
  return true;
}
}  // namespace

bool AllKnown(const Array<Type>& types, int num_inputs) {
  for (int i = 0; i < num_inputs; ++i) {
    if (!Known(types[i])) return false;
  }
  return true;
}

std::string TypeArgs::Name(int i) const {
  if (const Op* op = Op::Find(op_); op && i < static_cast<int>((*op)->arguments.size())) {
    return (*op)->arguments[i]->name.str();
  }
  return "argument " + Str(i);
}

const TensorTypeNode* TypeArgs::operator[](int i) const {
  if (i >= n_) Fail("", "is called with " + Str(n_) + " arguments; `" + Name(i) + "` is missing");
  const auto* t = AsTensor(types_[i]);
  if (!t) Fail("", "`" + Name(i) + "` is " + ShowType(types_[i]) + ", where a tensor is wanted");
  return t;
}

std::vector<const TensorTypeNode*> TypeArgs::Fields(int i) const {
  const auto* t = types_[i].as<TupleTypeNode>();
  if (!t) Fail("", "`" + Name(i) + "` is " + ShowType(types_[i]) + ", where a tuple of tensors is wanted");
  std::vector<const TensorTypeNode*> out;
  for (size_t k = 0; k < t->fields.size(); ++k) {
    out.push_back(AsTensor(t->fields[k]));
    if (!out.back())
      Fail("", "part " + Str(k) + " of `" + Name(i) + "` is " + ShowType(t->fields[k]) + ", where a tensor is wanted");
  }
  return out;
}

void TypeArgs::Fail(const char* rule, const std::string& text) const {
  std::string s = std::string("[") + op_;
  if (*rule) s += std::string(" ") + rule;
  throw CompileError(s + "] " + text);
}

void TypeArgs::Floating(int i, const char* rule) const {
  if (!dtype(i).is_floating()) {
    Fail(rule, "`" + Name(i) + "` has dtype " + DataType2String(dtype(i)) +
                   ", where a floating one is wanted; cast it first");
  }
}
void TypeArgs::Number(int i, const char* rule) const {
  if (!dtype(i).is_floating() && !dtype(i).is_integral()) {
    Fail(rule,
         "`" + Name(i) + "` has dtype " + DataType2String(dtype(i)) + ", where numbers are wanted; cast it first");
  }
}
void TypeArgs::Integral(int i, const char* rule) const {
  if (!dtype(i).is_integral()) {
    Fail(rule, "`" + Name(i) + "` has dtype " + DataType2String(dtype(i)) + ", where integers are wanted");
  }
}
void TypeArgs::Bool(int i, const char* rule) const {
  if (!dtype(i).is_bool()) {
    Fail(rule, "`" + Name(i) + "` has dtype " + DataType2String(dtype(i)) +
                   ", where bool is wanted; compare it with 0 first");
  }
}
void TypeArgs::Rank(int i, int64_t want, const char* rule) const {
  if (ndim(i) != want) {
    Fail(rule, "`" + Name(i) + "` has shape " + ShowShape(shape(i)) + ", where rank " + Str(want) + " is wanted");
  }
}
void TypeArgs::MinRank(int i, int64_t want, const char* rule) const {
  if (ndim(i) < want) {
    Fail(rule,
         "`" + Name(i) + "` has shape " + ShowShape(shape(i)) + ", where rank " + Str(want) + " or more is wanted");
  }
}
void TypeArgs::SameDtype(int i, int j, const char* rule) const {
  if (dtype(i) != dtype(j)) {
    Fail(rule, "`" + Name(i) + "` has dtype " + DataType2String(dtype(i)) + " and `" + Name(j) + "` has " +
                   DataType2String(dtype(j)) + ", where they have to agree; cast one of them");
  }
}

void CheckResult(const TypeArgs& in, const Type& type) {
  auto check = [&](const Type& t) {
    const auto* tensor = AsTensor(t);
    if (tensor && (tensor->dtype.is_void() || tensor->dtype.is_handle() || tensor->dtype.lanes() != 1))
      in.Fail("", "the result would be " + ShowType(t) + ", which holds no numbers: ask for another dtype");
  };
  check(type);
  if (const auto* tuple = type.as<TupleTypeNode>()) {
    for (const Type& f : tuple->fields) check(f);
  }
}

Shape MakeShape(const ExtentArray& v) {
  Shape s;
  s.reserve(v.size());
  for (const Extent& e : v) s.push_back(e.is_literal() ? MakeDim(e.literal()) : TypeDim(e.expr()));
  return s;
}

std::string ShowExtents(const ExtentArray& values) {
  std::string s = "[";
  for (const Extent& e : values) s += (s.size() > 1 ? ", " : "") + arith::ExtentText(e.expr());
  return s + "]";
}

bool TypeArgs::AtLeast(const PrimExpr& extent, int64_t least) const {
  switch (arith::ExtentAtLeast(extent, least)) {
    case arith::Fact::kYes:
      return true;
    case arith::Fact::kNo:
      return false;
    default:
      Assume(max(extent, PrimExpr(least)), extent);
      return true;
  }
}

Shape TypeArgs::Fitting(const Shape& shape) const {
  Shape out;
  for (const PrimExpr& written : shape) {
    PrimExpr d = TypeDim(written);
    bool of_data = false;
    for (const PrimExpr& e : this->shape(0)) of_data = of_data || tir::ExprDeepEqual(e, d);
    if (const auto* m = d.as<tir::MaxNode>(); m && !of_data) {
      const PrimExpr count = DimOf(m->a) == 0 ? m->b : DimOf(m->b) == 0 ? m->a : PrimExpr();
      if (count.defined() && AtLeast(count, 0)) d = count;
    }
    out.push_back(d);
  }
  return out;
}

Ints Dims(const Shape& shape) {
  Ints out;
  out.reserve(shape.size());
  for (const PrimExpr& d : shape) out.push_back(DimOf(d));
  return out;
}

PrimExpr TypeDim(const PrimExpr& written) {
  PrimExpr extent = written;
  arith::ToCanonicalExtent(&extent);
  constexpr int kMax = 256;  // longer ones would cost more than they tell
  std::vector<const Object*> todo{extent.get()};
  auto both = [&](const auto* n) {
    if (n) todo.insert(todo.end(), {n->a.get(), n->b.get()});
    return n != nullptr;
  };
  for (int seen = 0; !todo.empty(); ++seen) {
    const Object* e = todo.back();
    todo.pop_back();
    if (seen == kMax) return UnknownDim();
    if (e->IsInstance<IntImmNode>() || e->IsInstance<tir::VarNode>()) continue;
    auto as = [&]<class T>(const T*) { return e->IsInstance<T>() ? static_cast<const T*>(e) : nullptr; };
#define BATON_AS(T) as(static_cast<const tir::T*>(nullptr))
    if (both(BATON_AS(AddNode)) || both(BATON_AS(SubNode)) || both(BATON_AS(MulNode)) || both(BATON_AS(FloorDivNode)) ||
        both(BATON_AS(FloorModNode)) || both(BATON_AS(MaxNode)) || both(BATON_AS(MinNode))) {
      continue;
    }
    if (const auto* c = BATON_AS(CastNode)) {
      todo.push_back(c->value.get());
      continue;
    }
    if (const auto* s = BATON_AS(SelectNode)) {
      todo.insert(todo.end(), {s->condition.get(), s->true_value.get(), s->false_value.get()});
      continue;
    }
    if (both(BATON_AS(EQNode)) || both(BATON_AS(GENode)) || both(BATON_AS(AndNode)) || both(BATON_AS(OrNode))) continue;
    if (const auto* c = BATON_AS(NotNode)) {
      todo.push_back(c->a.get());
      continue;
    }
#undef BATON_AS
    return UnknownDim();
  }
  return extent;
}

PrimExpr ProductDim(const Shape& dims) {
  int64_t n = ProductOf(Dims(dims));
  if (n >= 0) return PrimExpr(n);
  PrimExpr all;
  for (const PrimExpr& d : dims) all = all.defined() ? all * d : d;
  return TypeDim(all);
}

int64_t ProductOf(const Ints& dims) {
  bool unknown = false;
  int64_t n = 1;
  for (int64_t d : dims) {
    if (d == 0) return 0;
    if (d < 0) {
      unknown = true;
    } else if (__builtin_mul_overflow(n, d, &n)) {
      throw CompileError("a tensor of shape " + ShowInts(dims) + " has more elements than an int64 counts");
    }
  }
  return unknown ? -1 : n;
}

Shape BroadcastShapes(const TypeArgs& in, const Shape& a, const Shape& b, const char* rule) {
  const Shape& big = a.size() >= b.size() ? a : b;
  const Shape& small = a.size() >= b.size() ? b : a;
  Shape out;
  out.reserve(big.size());
  size_t lead = big.size() - small.size();
  for (size_t i = 0; i < big.size(); ++i) {
    const PrimExpr& x = big[i];
    if (i < lead) {
      out.push_back(x);
      continue;
    }
    const PrimExpr& y = small[i - lead];
    PrimExpr d = BroadcastDim(x, y, in.reporter());
    if (!d.defined()) {
      in.Fail(rule, "shapes " + ShowShape(a) + " and " + ShowShape(b) + " do not broadcast: extents " +
                        arith::ExtentText(x) + " and " + arith::ExtentText(y) + " differ and neither is 1");
    }
    out.push_back(d);
  }
  return out;
}

Ints NormalizeAxes(const Array<int64_t>& axes, int64_t ndim, const char* op) {
  std::vector<bool> on(ndim);
  for (int64_t a : axes) on[NormalizeAxis(a, ndim, op)] = true;
  Ints out;
  for (int64_t i = 0; i < ndim; ++i) {
    if (on[i]) out.push_back(i);
  }
  return out;
}

}  // namespace baton::relay
