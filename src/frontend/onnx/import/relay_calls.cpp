// SPDX-License-Identifier: Apache-2.0
// Calls of Relay operators: folded where the operands are known and small, else typed by the operator's relation.
#include <baton/arith/extent.h>
#include <baton/relay/op.h>
#include <baton/tir/expr.h>
#include <relay/types/builtin_types.h>
#include <relay/types/extent_guards.h>

#include <algorithm>
#include <cstring>

#include "elements.h"
#include "frontend/onnx/ops/common.h"
#include "host_values.h"
#include "importer_impl.h"

namespace baton::onnx {
namespace {

/// Collects the results of a type relation for one call.
class Reporter : public relay::TypeReporter {
 public:
  Reporter(baton::Type variable, const std::vector<NDArray>* constants, Array<Any>* guards, const std::string& place)
      : variable_(std::move(variable)), constants_(constants), guards_(guards), place_(place) {}
  void Assign(const baton::Type& dst, const baton::Type& src) final {
    if (dst.same_as(variable_)) result_ = src;
  }
  bool AssertEQ(const PrimExpr& a, const PrimExpr& b) final {
    const arith::Fact same = arith::ExtentsEqual(a, b);
    if (same == arith::Fact::kOpen) Assume(a, b);
    return same != arith::Fact::kNo;
  }
  void Assume(const PrimExpr& a, const PrimExpr& b) final { relay::AddExtentGuard(guards_, a, b, place_); }
  const NDArray* ConstantArg(int i) final {
    if (constants_ == nullptr) return nullptr;
    const NDArray& a = (*constants_)[static_cast<size_t>(i)];
    return a.defined() ? &a : nullptr;
  }
  const baton::Type& result() const { return result_; }

 private:
  baton::Type variable_, result_;
  const std::vector<NDArray>* constants_;
  Array<Any>* guards_;
  const std::string& place_;
};

/// `value` with expressions where it has numbers of symbols; `*any` is set where it has.
Any WithSymbols(const Symbols& symbols, const Any& value, bool* any) {
  if (value.type_code() == kBatonInt && Symbols::IsSymbol(value.As<int64_t>())) {
    *any = true;
    return Any(symbols.ExprOf(value.As<int64_t>()));
  }
  const auto* list = value.object() ? value.object()->IsInstance<runtime::ArrayObj>()
                                          ? static_cast<const runtime::ArrayObj*>(value.object())
                                          : nullptr
                                    : nullptr;
  if (list == nullptr) return value;
  bool here = false;
  Array<Any> out;
  for (const Any& x : list->items) out.push_back(WithSymbols(symbols, x, &here));
  *any = *any || here;
  return here ? Any(out) : value;
}

}  // namespace

Attrs MakeAttrs(const std::string& key, const NamedAttrs& attrs) {
  std::vector<Any> names;
  std::vector<BatonValue> kv;
  for (const auto& [name, value] : attrs) {
    names.emplace_back(name);
    kv.push_back(names.back().raw());
    kv.push_back(value.raw());
  }
  return Downcast<Attrs>(runtime::MakeNode(key, kv.data(), static_cast<int>(kv.size())));
}

Value Importer::FromRelayType(const baton::Type& type, const relay::Expr& expr) {
  Value v;
  v.expr = expr;
  if (const auto* t = type.as<TensorTypeNode>()) {
    v.kind = Value::kTensor;
    v.dtype = t->dtype;
    v.ranked = true;
    for (const PrimExpr& d : t->shape) v.dims.push_back(symbols_.NumberOf(d));
    if (!ShapeFault(v.dims).empty()) throw runtime::SizeOverflow();
  } else if (const auto* tuple = type.as<TupleTypeNode>()) {
    v.kind = Value::kTuple;
    for (size_t i = 0; i < tuple->fields.size(); ++i) {
      relay::TupleGetItem item(expr, static_cast<int64_t>(i));
      item->checked_type_ = tuple->fields[static_cast<int64_t>(i)];
      v.items.push_back(FromRelayType(tuple->fields[static_cast<int64_t>(i)], item));
    }
  } else {
    v.kind = Value::kOpaque;
  }
  return v;
}

NDArray ToNDArray(const HostPtr& h, bool later) {
  if (h->file == nullptr) return NDArray::FromBytes(h->bytes.data(), h->dims, h->dtype);
  constexpr size_t kLater = 64 << 10;
  auto read = [h] {
    NDArray out = NDArray::Empty(h->dims, h->dtype);
    h->file->GiveBack(h->bytes);  // what was looked at while importing
    h->file->Read(h->bytes.substr(0, out.nbytes()), out.data());
    return out;
  };
  if (!later || h->bytes.size() < kLater) return read();
  return NDArray::Later(h->dims, h->dtype, PackedFunc([read](runtime::Args, runtime::RetValue* rv) { *rv = read(); }));
}

baton::Type Importer::TypeOfValue(const Value& v) {
  if (IsHostValue(v)) return relay::HostValueType();
  if (v.kind == Value::kTuple) {
    Array<baton::Type> fields;
    for (const Value& i : v.items) fields.push_back(TypeOfValue(i));
    return types_.Share(TupleType(fields));
  }
  Array<PrimExpr> shape;
  for (int64_t d : v.dims) shape.push_back(symbols_.ExprOf(d));
  return types_.Share(TensorType(shape, v.dtype));
}

relay::Expr Importer::ExprOf(const Value& v) {
  if (v.expr.defined()) return v.expr;
  if (v.kind == Value::kTuple) {
    Array<relay::Expr> fields;
    Array<baton::Type> types;
    for (const Value& i : v.items) {
      fields.push_back(ExprOf(i));
      types.push_back(fields.back()->checked_type());
    }
    relay::Tuple tuple(fields);
    tuple->checked_type_ = types_.Share(TupleType(types));
    tuple->span = span_;
    return tuple;
  }
  if (v.host == nullptr) throw InternalError("onnx import: a value has neither an expression nor a constant");
  if (v.host->is_string) throw NodeUnsupported{"strings"};
  relay::Constant c(ToNDArray(v.host, options_.weights_later));
  c->checked_type_ = TypeOfValue(v);
  c->span = span_;
  return c;
}

int64_t Importer::BroadcastLength(int64_t a, int64_t b) {
  const std::string place = Place("");
  Reporter reporter(baton::Type(), nullptr, &guards_, place);
  const PrimExpr d = relay::BroadcastDim(symbols_.ExprOf(a), symbols_.ExprOf(b), reporter);
  return d.defined() ? symbols_.NumberOf(d) : INT64_MIN;
}

bool Importer::AssumeEqual(int64_t a, int64_t b) {
  const std::string place = Place("");
  return Reporter(baton::Type(), nullptr, &guards_, place).AssertEQ(symbols_.ValueOf(a), symbols_.ValueOf(b));
}

std::string Importer::Place(const char* op) const {
  return span_.defined() && span_->source_name.defined() ? span_->source_name->name.str() : std::string(op);
}

Value Importer::CallOp(const Ctx* ctx, const char* name, const Values& args, const NamedAttrs& given, bool tuple) {
  if (--calls_ < 0) Throw(Head() + "its nodes unfold to more Relay calls than an import may make");
  bool symbolic = false;
  NamedAttrs attrs = given;
  for (auto& [key, value] : attrs) value = WithSymbols(symbols_, value, &symbolic);
  const Op* op = Op::Find(name);
  const relay::OpDef* def = op == nullptr ? nullptr : relay::DefOf(*op);
  if (def == nullptr)
    throw NodeUnsupported{std::string("it needs Relay's operator `") + name + "`, which is not there"};
  Array<relay::Expr> exprs;
  Array<baton::Type> types;
  std::vector<NDArray> constants;
  if (tuple) {
    Value all;
    all.kind = Value::kTuple;
    all.items = args;
    exprs.push_back(ExprOf(all));
    types.push_back(exprs.back()->checked_type());
    constants.emplace_back();
  } else {
    for (const Value& a : args) {
      if (a.kind == Value::kTensor && !a.ranked) throw NeedsValue{"the rank of an operand"};
      exprs.push_back(ExprOf(a));
      types.push_back(exprs.back()->checked_type());
      const auto* c = exprs.back().as<relay::ConstantNode>();
      constants.push_back(c ? c->data : NDArray());
    }
  }
  Attrs made;
  try {
    if (def->attrs != nullptr) made = *attrs_.insert(MakeAttrs(def->attrs(), attrs)).first;
  } catch (const runtime::TypeError&) {
    // The attribute holds literals alone.
    if (symbolic) throw NeedsValue{"a length"};
    throw;
  }
  int num_inputs = static_cast<int>(types.size());
  IncompleteType variable(TypeKind::kType);
  types.push_back(variable);
  const std::string place = Place(name);
  Reporter reporter(variable, &constants, &guards_, place);
  bool decided = false;
  try {
    if (def->type_rel != nullptr) decided = def->type_rel(types, num_inputs, made, reporter);
  } catch (const CompileError& e) {
    std::string what = e.what();
    if (ctx != nullptr)
      ctx->Fail(what[0] == '[' && what[1] == 'R' ? std::string("[") + name + " " + what.substr(1) : what);
    throw;
  }
  if (!decided || !reporter.result().defined()) {
    throw NodeUnsupported{std::string("the type of its Relay call `") + name + "` cannot be found"};
  }
  relay::Call call(relay::Expr(*op), exprs, made, Array<baton::Type>());
  const baton::Type type = types_.Share(reporter.result());
  call->checked_type_ = type;
  call->span = span_;
  Value result = FromRelayType(type, call);
  result.partial = ElementsOfCall(call, args, tuple, result);
  if (HostPtr value = ValueOfCall(call, args, result); value != nullptr) {
    result.host = std::move(value);
    result.dims = result.host->dims;
    result.expr = relay::Expr();
  } else if (options_.nodes) {
    calls_made_.emplace_back(name);
  }
  return result;
}

}  // namespace baton::onnx
