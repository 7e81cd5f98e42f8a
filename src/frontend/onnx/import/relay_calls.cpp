// SPDX-License-Identifier: Apache-2.0
// Calls of Relay operators: folded where the operands are known and small, else typed by the operator's relation.
#include <baton/relay/op.h>
#include <baton/tir/expr.h>

#include <algorithm>

#include "frontend/onnx/ops/common.h"
#include "importer_impl.h"

namespace baton::onnx {
namespace {

/// Collects the results of a type relation for one call.
class Reporter : public relay::TypeReporter {
 public:
  Reporter(baton::Type hole, const std::vector<NDArray>* constants) : hole_(std::move(hole)), constants_(constants) {}
  void Assign(const baton::Type& dst, const baton::Type& src) final {
    if (dst.same_as(hole_)) result_ = src;
  }
  bool AssertEQ(const PrimExpr& a, const PrimExpr& b) final {
    int64_t x = relay::DimOf(a), y = relay::DimOf(b);
    return x < 0 || y < 0 || x == y;
  }
  const NDArray* ConstantArg(int i) final {
    const NDArray& a = (*constants_)[static_cast<size_t>(i)];
    return a.defined() ? &a : nullptr;
  }
  const baton::Type& result() const { return result_; }

 private:
  baton::Type hole_, result_;
  const std::vector<NDArray>* constants_;
};

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

constexpr int64_t kUnknown = Value::kUnknown;

/// The known elements of a small integer tensor; null if none is known.
std::shared_ptr<const Dims> Elements(const Value& v) {
  if (v.kind != Value::kTensor || v.rank() < 0 || v.rank() > 1 || !v.dtype.is_int()) return nullptr;
  if (v.partial != nullptr) return v.partial;
  if (v.host == nullptr || v.host->is_string || v.host->size() > 64) return nullptr;
  auto out = std::make_shared<Dims>();
  for (int64_t i = 0; i < v.host->size(); ++i) out->push_back(v.host->IntAt(i));
  return out;
}

/// The known elements of a shape computation whose operands are partly known.
std::shared_ptr<const Dims> PartialOf(std::string_view op, const Values& args, const NamedAttrs& attrs,
                                      const Value& result) {
  if (result.kind != Value::kTensor || result.rank() < 0 || result.rank() > 1 || !result.dtype.is_int()) return nullptr;
  auto attr = [&](std::string_view name) -> Dims {
    for (const auto& [key, value] : attrs) {
      if (name == key) return value.As<Array<int64_t>>().ToVector();
    }
    return {};
  };
  auto out = std::make_shared<Dims>();
  if (op == "shape_of") {
    for (int64_t d : args[0].dims) out->push_back(d < 0 ? kUnknown : d);
  } else if (op == "concatenate") {
    for (const Value& a : args) {
      auto part = Elements(a);
      if (part == nullptr) {
        if (!a.fixed() || Product(a.dims) > 64) return nullptr;
        part = std::make_shared<Dims>(static_cast<size_t>(Product(a.dims)), kUnknown);
      }
      out->insert(out->end(), part->begin(), part->end());
    }
  } else {
    std::vector<std::shared_ptr<const Dims>> in;
    for (const Value& a : args) {
      in.push_back(Elements(a));
      if (in.back() == nullptr) return nullptr;
    }
    if (in.empty()) return nullptr;
    const Dims& x = *in[0];
    if (op == "reshape" || op == "squeeze" || op == "expand_dims" || op == "cast") {
      *out = x;
    } else if (op == "take" && args[0].rank() == 1) {
      for (int64_t i : *in[1]) {
        if (i < 0) i += static_cast<int64_t>(x.size());
        out->push_back(i < 0 || i >= static_cast<int64_t>(x.size()) ? kUnknown : x[static_cast<size_t>(i)]);
      }
    } else if (op == "strided_slice") {
      Dims begin = attr("begin"), end = attr("end"), step = attr("strides");
      if (begin.size() != 1 || (!step.empty() && step[0] != 1) || begin[0] < 0) return nullptr;
      int64_t n = static_cast<int64_t>(x.size());
      for (int64_t i = begin[0]; i < std::min(n, end[0]); ++i) out->push_back(x[static_cast<size_t>(i)]);
    } else if (args.size() == 2) {
      const Dims& y = *in[1];
      size_t n = std::max(x.size(), y.size());
      if ((x.size() != n && x.size() != 1) || (y.size() != n && y.size() != 1)) return nullptr;
      for (size_t i = 0; i < n; ++i) {
        int64_t a = x[x.size() == 1 ? 0 : i], b = y[y.size() == 1 ? 0 : i], r = kUnknown;
        if (a != kUnknown && b != kUnknown) {
          HostPtr one = EvaluateCall(
              op, {HostFromInts(DataType::Int(64), {}, {a}), HostFromInts(DataType::Int(64), {}, {b})}, attrs);
          if (one != nullptr && !one->dtype.is_floating()) r = one->IntAt(0);
        }
        out->push_back(r);
      }
    } else {
      return nullptr;
    }
  }
  if (result.fixed() && Product(result.dims) != static_cast<int64_t>(out->size())) return nullptr;
  if (std::all_of(out->begin(), out->end(), [](int64_t v) { return v == kUnknown; })) return nullptr;
  return out;
}

}  // namespace

Value FromRelayType(const baton::Type& type, const relay::Expr& expr) {
  Value v;
  v.expr = expr;
  if (const auto* t = type.as<TensorTypeNode>()) {
    v.kind = Value::kTensor;
    v.dtype = t->dtype;
    v.ranked = true;
    for (const PrimExpr& d : t->shape) v.dims.push_back(relay::DimOf(d));
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

NDArray ToNDArray(const Host& h) { return NDArray::FromBytes(h.bytes.data(), h.dims, h.dtype); }

baton::Type Importer::TypeOfValue(const Value& v) {
  if (v.kind == Value::kTuple) {
    Array<baton::Type> fields;
    for (const Value& i : v.items) fields.push_back(TypeOfValue(i));
    return types_.Share(TupleType(fields));
  }
  Array<PrimExpr> shape;
  for (int64_t d : v.dims) {
    if (d >= 0) {
      shape.push_back(IntImm(DataType::Int(64), d));
    } else {
      shape.push_back(tir::AnyDim());
    }
  }
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
  relay::Constant c(ToNDArray(*v.host));
  c->checked_type_ = TypeOfValue(v);
  c->span = span_;
  return c;
}

Value Importer::CallOp(const Ctx* ctx, const char* name, const Values& args, const NamedAttrs& attrs, bool tuple) {
  if (--calls_ < 0) Refuse(Head() + "its nodes unfold to more Relay calls than an import may make");
  // Small known values are computed here: shapes, mostly.
  std::vector<HostPtr> hosts;
  for (const Value& a : args) hosts.push_back(a.weight ? nullptr : a.host);
  if (std::all_of(hosts.begin(), hosts.end(), [](const HostPtr& h) { return h != nullptr; })) {
    HostPtr folded = EvaluateCall(name, hosts, attrs);
    if (folded != nullptr) {
      Value v;
      v.kind = Value::kTensor;
      v.dtype = folded->dtype;
      v.ranked = true;
      v.dims = folded->dims;
      v.host = folded;
      return v;
    }
  }
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
  if (def->attrs != nullptr) made = *attrs_.insert(MakeAttrs(def->attrs(), attrs)).first;
  int num_inputs = static_cast<int>(types.size());
  IncompleteType hole(TypeKind::kType);
  types.push_back(hole);
  Reporter reporter(hole, &constants);
  bool decided = false;
  try {
    if (def->type_rel != nullptr) decided = def->type_rel(types, num_inputs, made, reporter);
  } catch (const CompileError& e) {
    std::string what = e.what();
    if (ctx != nullptr)
      ctx->Wrong(what[0] == '[' && what[1] == 'R' ? std::string("[") + name + " " + what.substr(1) : what);
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
  result.partial = PartialOf(name, args, attrs, result);
  if (result.partial != nullptr &&
      std::find(result.partial->begin(), result.partial->end(), kUnknown) == result.partial->end()) {
    result.host =
        HostFromInts(result.dtype, result.rank() == 0 ? Dims() : Dims{static_cast<int64_t>(result.partial->size())},
                     *result.partial);
    result.dims = result.host->dims;
    result.expr = relay::Expr();
  }
  return result;
}

}  // namespace baton::onnx
