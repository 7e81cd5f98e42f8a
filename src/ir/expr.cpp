// SPDX-License-Identifier: Apache-2.0
#include <baton/ir/expr.h>
#include <baton/ir/function.h>
#include <baton/ir/module.h>
#include <baton/ir/op.h>
#include <baton/ir/type.h>

#include <cmath>

namespace baton {

PrimExpr::PrimExpr(int32_t value) : PrimExpr(IntImm(DataType::Int(64), value)) {}
PrimExpr::PrimExpr(int64_t value) : PrimExpr(IntImm(DataType::Int(64), value)) {}
PrimExpr::PrimExpr(float value) : PrimExpr(FloatImm(DataType::Float(32), value)) {}

IntImm::IntImm(DataType dtype, int64_t value, Span span) {
  if (!(dtype.is_integral() || dtype.is_bool()) || !dtype.is_scalar()) {
    throw runtime::ValueError("an IntImm has an integer or bool dtype, got " + DataType2String(dtype));
  }
  int bits = dtype.is_bool() ? 1 : dtype.bits();
  bool fits = true;
  if (bits < 64) {
    int64_t lo = dtype.is_int() ? -(int64_t{1} << (bits - 1)) : 0;
    int64_t hi = dtype.is_int() ? (int64_t{1} << (bits - 1)) - 1 : (int64_t{1} << bits) - 1;
    fits = value >= lo && value <= hi;
  }
  if (!fits) throw runtime::ValueError(std::to_string(value) + " does not fit " + DataType2String(dtype));
  IntImmNode n;
  n.dtype = dtype, n.value = value, n.span = span;
  data_ = make_object<IntImmNode>(std::move(n));
}

FloatImm::FloatImm(DataType dtype, double value, Span span) {
  if (!dtype.is_floating() || !dtype.is_scalar()) {
    throw runtime::ValueError("a FloatImm has a floating dtype, got " + DataType2String(dtype));
  }
  FloatImmNode n;
  n.dtype = dtype, n.value = value, n.span = span;
  data_ = make_object<FloatImmNode>(std::move(n));
}

const Type& RelayExprNode::checked_type() const {
  if (!checked_type_.defined()) {
    throw CompileError("the type of this expression is not known yet; run InferType first");
  }
  return static_cast<const Type&>(static_cast<const ObjectRef&>(checked_type_));
}

bool BaseFuncNode::HasNonzeroAttr(const char* key) const {
  if (!attrs.defined()) return false;
  const auto* e = attrs->dict.get() ? attrs->dict.get()->Find(Any(key)) : nullptr;
  if (!e) return false;
  if (e->value.Is<int64_t>()) return e->value.As<int64_t>() != 0;
  if (e->value.object() && e->value.object()->IsInstance<IntImmNode>()) {
    return static_cast<const IntImmNode*>(e->value.object())->value != 0;
  }
  return !e->value.is_null();
}

namespace {
const RegisterNodes<SourceNameNode, SpanNode, BaseExprNode, PrimExprNode, IntImmNode, FloatImmNode, RangeNode,
                    RelayExprNode, GlobalVarNode, TypeNode, PrimTypeNode, PointerTypeNode, TensorTypeNode, TypeVarNode,
                    GlobalTypeVarNode, TupleTypeNode, TypeConstraintNode, FuncTypeNode, IncompleteTypeNode,
                    RelayRefTypeNode, TypeCallNode, BaseFuncNode>
    registered_expr;
}  // namespace

}  // namespace baton

namespace baton::runtime {
PrimExpr ValueTraits<PrimExpr>::From(const BatonValue& v) {
  switch (v.type_code) {
    case kBatonNull:
      return PrimExpr();
    case kBatonInt:
      return PrimExpr(v.v_int64);
    case kBatonBool:
      return IntImm(DataType::Bool(), v.v_int64);
    case kBatonFloat:
      return PrimExpr(static_cast<float>(v.v_float64));
    case kBatonObject: {
      auto* o = reinterpret_cast<Object*>(v.v_obj);
      if (o->IsInstance<PrimExprNode>()) return PrimExpr(ObjectPtr<Object>(o));
      // An axis of a tensor expression (a higher layer) converts to its variable.
      if (const auto* info = TypeInfo::Get(o->type_index()); info && std::string_view(info->key) == "tir.IterVar")
        return info->Find("var")->Get(o).As<PrimExpr>();
    }
  }
  ThrowValueMismatch("PrimExpr", v);
}
}  // namespace baton::runtime
