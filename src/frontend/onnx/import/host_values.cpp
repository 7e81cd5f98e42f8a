// SPDX-License-Identifier: Apache-2.0
#include "host_values.h"

#include <algorithm>
#include <string_view>

#include "deferred_nodes.h"
#include "frontend/onnx/ops/common.h"
#include "importer_impl.h"

namespace baton::onnx {
namespace {

Value TypeAlone(Value v) {
  v.host = nullptr;
  v.partial = nullptr;
  v.expr = relay::Expr();
  for (Value& item : v.items) item = TypeAlone(item);
  return v;
}

/// The known facts of an element that looks like one of both; a tensor without a rank where ranks differ.
bool JoinElements(const Value& a, const Value& b, Value* out) {
  if (a.kind == Value::kAbsent || b.kind == Value::kAbsent) {
    *out = TypeAlone(a.kind == Value::kAbsent ? b : a);
    return true;
  }
  if (a.kind != Value::kTensor || b.kind != Value::kTensor) return Join(a, b, out);
  if (!(a.dtype == b.dtype)) return false;
  if (a.ranked && b.ranked && a.dims.size() == b.dims.size()) return Join(a, b, out);
  *out = TypeAlone(a);
  out->ranked = false;
  out->dims.clear();
  return true;
}

/// The elements of a tuple or sequence as one; false where they have no common form.
bool Elements(const Value& v, Value* out) {
  *out = Value();
  if (v.kind != Value::kTuple) {
    *out = ElementOf(v);
    return true;
  }
  return std::all_of(v.items.begin(), v.items.end(), [&](const Value& item) { return JoinElements(*out, item, out); });
}

bool IsSequence(const Value& v) { return v.kind == Value::kTuple || v.kind == Value::kSequence; }

}  // namespace

Value HostValueOf(Value::Kind kind, const Value& element) {
  Value v;
  v.kind = kind;
  v.items = {TypeAlone(element)};
  return v;
}

Value ElementOf(const Value& v) {
  if (IsHostValue(v)) return v.items.empty() ? Value() : v.items[0];
  Value all;
  return Elements(v, &all) ? all : Value();
}

Value TextOf(const Dims& dims) {
  Value v;
  v.kind = Value::kText;
  v.ranked = true;
  v.dims = dims;
  return v;
}

Value OfType(const Type& type) {
  Value v;
  if (type.kind == Type::kTensor) {
    v.dtype = FromOnnxType(type.elem_type);
    if (v.dtype.is_void()) return v;
    v.kind = Value::kTensor;
    v.ranked = type.has_shape;
    // A declared length is not believed: values may differ.
    if (v.ranked) v.dims.assign(type.shape.size(), -1);
    if (!ShapeFault(v.dims).empty()) return Value();
    return v;
  }
  if ((type.kind != Type::kSequence && type.kind != Type::kOptional) || type.elem == nullptr) return v;
  const Value element = OfType(*type.elem);
  if (element.kind == Value::kAbsent) return v;
  return HostValueOf(type.kind == Type::kSequence ? Value::kSequence : Value::kOptional, element);
}

Value FormedAs(Value v, const Value& like) {
  if (IsHostValue(like)) {
    v.kind = like.kind;
    v.items = like.items;
    v.ranked = like.ranked;
    v.dims = like.dims;
  } else if (like.kind == Value::kTuple && v.kind == Value::kTuple) {
    for (size_t i = 0; i < v.items.size() && i < like.items.size(); ++i)
      v.items[i] = FormedAs(v.items[i], like.items[i]);
  }
  return v;
}

bool SameType(const Value& a, const Value& b) {
  if (a.kind != b.kind) return false;
  if (a.kind == Value::kTuple || IsHostValue(a)) {
    return a.items.size() == b.items.size() && std::equal(a.items.begin(), a.items.end(), b.items.begin(), SameType);
  }
  return a.dtype == b.dtype && a.dims == b.dims && a.ranked == b.ranked;
}

bool Join(const Value& a, const Value& b, Value* out) {
  if (a.kind == Value::kText && b.kind == Value::kText && a.dims.size() == b.dims.size()) {
    *out = TypeAlone(a);
    for (size_t i = 0; i < a.dims.size(); ++i) out->dims[i] = a.dims[i] == b.dims[i] ? a.dims[i] : -1;
    return true;
  }
  const bool optional = a.kind == Value::kNothing || b.kind == Value::kNothing || a.kind == Value::kOptional ||
                        b.kind == Value::kOptional;
  if (optional) {
    if (a.kind == b.kind && a.kind == Value::kNothing) {
      *out = TypeAlone(a);
      return true;
    }
    auto inner = [](const Value& v) {
      return v.kind == Value::kNothing ? Value() : v.kind == Value::kOptional ? ElementOf(v) : v;
    };
    Value element;
    if (!JoinElements(inner(a), inner(b), &element)) return false;
    if (element.kind == Value::kTuple) {
      Value of;
      if (!Elements(element, &of)) return false;
      element = HostValueOf(Value::kSequence, of);
    }
    *out = HostValueOf(Value::kOptional, element);
    return true;
  }
  if (IsSequence(a) && IsSequence(b)) {
    if (a.kind == Value::kTuple && b.kind == Value::kTuple && a.items.size() == b.items.size()) {
      Value made = TypeAlone(a);
      bool fits = true;
      for (size_t i = 0; fits && i < a.items.size(); ++i) fits = Join(a.items[i], b.items[i], &made.items[i]);
      if (fits) {
        *out = made;
        return true;
      }
    }
    Value x, y, element;
    if (!Elements(a, &x) || !Elements(b, &y) || !JoinElements(x, y, &element)) return false;
    *out = HostValueOf(Value::kSequence, element);
    return true;
  }
  if (a.kind != Value::kTensor || b.kind != Value::kTensor || !(a.dtype == b.dtype) || a.rank() != b.rank() ||
      a.rank() < 0) {
    return false;
  }
  Value made = TypeAlone(a);
  for (size_t i = 0; i < a.dims.size(); ++i) {
    if (a.dims[i] != b.dims[i]) made.dims[i] = -1;
  }
  *out = made;
  return true;
}

Value Importer::CallHost(const char* op, const Values& operands, const Value& result) {
  if (options_.nodes) calls_made_.emplace_back(std::string("host.") + op);
  Node node;
  node.op_type = op;
  const std::vector<bool> present(operands.size(), true);
  return FormedAs(CallOp(nullptr, kHostValueOp, operands, DeferredAttributes(node, kOpset, present, {result}), false),
                  result);
}

Value Importer::Stacked(const Value& sequence) {
  // The messages of two attributes: field 20 says that they are integers, field 3 has the number.
  using std::string_view_literals::operator""sv;
  Node node;
  node.op_type = "ConcatFromSequence";
  for (auto [name, message] :
       {std::pair{"axis"sv, "\xA0\x01\x02\x18\x00"sv}, {"new_axis"sv, "\xA0\x01\x02\x18\x01"sv}}) {
    Attribute& a = node.attributes.emplace_back();
    a.name = name, a.source = message;
  }
  Value all = ElementOf(sequence);
  all.dims.insert(all.dims.begin(), -1);
  for (int64_t& d : all.dims) d = std::max<int64_t>(d, -1);  // names of a round do not hold for all
  return FormedAs(CallOp(nullptr, kHostValueOp, {sequence}, DeferredAttributes(node, kOpset, {true}, {all}), false),
                  all);
}

Value Importer::Text(const Value& v) {
  if (v.kind == Value::kText) return v;
  if (v.host == nullptr || !v.host->is_string) throw NodeUnsupported{"strings that are not known"};
  // The bytes of all, where each ends, and the shape.
  Dims codes, ends;
  for (const std::string& s : v.host->strings) {
    for (char c : s) codes.push_back(static_cast<unsigned char>(c));
    ends.push_back(static_cast<int64_t>(codes.size()));
  }
  Node none;
  Ctx ctx(this, none, 0, {});
  auto list = [&](DataType t, const Dims& values) {
    return ctx.Constant(HostFromInts(t, {static_cast<int64_t>(values.size())}, values));
  };
  const DataType i64 = DataType::Int(64);
  return CallHost("Text", {list(DataType::UInt(8), codes), list(i64, ends), list(i64, v.dims)}, TextOf(v.dims));
}

Value Importer::InForm(const Value& v, const Value& like) {
  if (like.kind == Value::kText) return FormedAs(Text(v), like);
  if (like.kind == Value::kTuple && v.kind == Value::kTuple) {
    Value all;
    all.kind = Value::kTuple;
    for (size_t i = 0; i < v.items.size(); ++i) all.items.push_back(InForm(v.items[i], like.items[i]));
    return all;
  }
  if (v.kind == like.kind && IsHostValue(v)) return FormedAs(v, like);
  if (like.kind == Value::kSequence) return CallHost("SequenceConstruct", v.items, like);
  if (like.kind == Value::kOptional) {
    if (v.kind == Value::kNothing) return CallHost("Optional", {}, like);
    return CallHost("Optional", {v.kind == Value::kTensor ? v : InForm(v, ElementOf(like))}, like);
  }
  // A tensor whose lengths are not those of the other: its type says less.
  if (v.kind == Value::kTensor && like.kind == Value::kTensor && v.dims != like.dims) {
    return CallHost("Identity", {v}, like);
  }
  return v;
}

}  // namespace baton::onnx
