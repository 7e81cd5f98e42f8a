// SPDX-License-Identifier: Apache-2.0
#include "deferred_nodes.h"

#include <baton/relay/op.h>
#include <baton/runtime/array.h>
#include <baton/support/json.h>
#include <baton/tir/expr.h>
#include <relay/op/dyn/symbolic.h>
#include <relay/op/gradient.h>
#include <relay/types/builtin_types.h>

#include <algorithm>

#include "frontend/onnx/reader/reader.h"
#include "host_values.h"
#include "importer_impl.h"

namespace baton::onnx {
namespace {

struct DeferredAttrs : AttrsNode<DeferredAttrs> {
  static constexpr const char* _type_key = "relay.attrs.OnnxNodeAttrs";
  String op_type;
  String node;
  int64_t opset = 0;
  Array<int64_t> present;
  Array<Array<int64_t>> shapes;
  Array<String> dtypes;
  static constexpr void Describe(auto& d) {
    d(F<&DeferredAttrs::op_type>, "The ONNX operator, for the reader.", runtime::kRequired);
    d(F<&DeferredAttrs::node>, "The serialized NodeProto, in hexadecimal digits.", runtime::kRequired);
    d(F<&DeferredAttrs::opset>, "Version of the operator set.");
    d(F<&DeferredAttrs::present>, "1 for each operand of the node that the call has, 0 for one left out.");
    d(F<&DeferredAttrs::shapes>, "Shape of each result; -1 for a length unknown.");
    d(F<&DeferredAttrs::dtypes>, "Dtype of each result.");
  }
};

std::string Hex(std::string_view bytes) {
  static const char* kDigits = "0123456789abcdef";
  std::string out;
  for (char c : bytes) {
    out += kDigits[static_cast<unsigned char>(c) >> 4];
    out += kDigits[static_cast<unsigned char>(c) & 15];
  }
  return out;
}

std::string Unhex(std::string_view text) {
  auto digit = [](char c) { return c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= '0' && c <= '9' ? c - '0' : -1; };
  std::string out;
  for (size_t i = 0; i + 1 < text.size(); i += 2) {
    int high = digit(text[i]), low = digit(text[i + 1]);
    if (high < 0 || low < 0) throw CompileError("[dyn.onnx R1] `node` must be hexadecimal digits");
    out += static_cast<char>(high << 4 | low);
  }
  return out;
}

void PutBytes(int field, std::string_view bytes, std::string* out) {
  auto varint = [&](uint64_t v) {
    for (; v >= 0x80; v >>= 7) *out += static_cast<char>(v | 0x80);
    *out += static_cast<char>(v);
  };
  varint(static_cast<uint64_t>(field) << 3 | 2);
  varint(bytes.size());
  *out += bytes;
}

/// The node as a message, its attributes resolved: within a message the last name counts.
std::string Serialize(const Node& node) {
  std::string out;
  for (std::string_view i : node.inputs) PutBytes(1, i, &out);
  for (std::string_view o : node.outputs) PutBytes(2, o, &out);
  PutBytes(3, node.name, &out);
  PutBytes(4, node.op_type, &out);
  for (const Attribute& a : node.attributes) {
    std::string attribute(a.source);
    PutBytes(1, a.name, &attribute);
    PutBytes(5, attribute, &out);
  }
  PutBytes(7, node.domain, &out);
  return out;
}

/// In place of the dtype of a result that is not a tensor.
constexpr const char* kHostValue = "value";

baton::Type ResultType(const DeferredAttrs& a, size_t i) {
  if (a.dtypes[static_cast<int64_t>(i)].view() == kHostValue) return relay::HostValueType();
  Array<PrimExpr> shape;
  for (int64_t d : a.shapes[static_cast<int64_t>(i)]) {
    if (d >= 0) {
      shape.push_back(IntImm(DataType::Int(64), d));
    } else {
      shape.push_back(tir::AnyDim());
    }
  }
  return TensorType(shape, String2DataType(std::string(a.dtypes[static_cast<int64_t>(i)])));
}

bool DeferredRel(const Array<baton::Type>& types, int num_inputs, const Attrs& attrs, relay::TypeReporter& reporter) {
  const auto* a = &relay::AttrsAs<DeferredAttrs>(attrs);
  Unhex(a->node.view());
  if (a->shapes.size() != a->dtypes.size() || a->shapes.empty()) {
    throw CompileError("[dyn.onnx R2] `shapes` and `dtypes` must have an entry for each result, one or more");
  }
  int64_t there = 0;
  for (int64_t p : a->present) there += p != 0;
  if (there != num_inputs) {
    throw CompileError("[dyn.onnx R3] the call has " + std::to_string(num_inputs) + " operands, where `present` says " +
                       std::to_string(there));
  }
  Array<baton::Type> results;
  for (size_t i = 0; i < a->shapes.size(); ++i) results.push_back(ResultType(*a, i));
  reporter.Assign(types.back(), results.size() == 1 ? results[0] : TupleType(results));
  return true;
}

using Extents = Array<Array<PrimExpr>>;

/// `extents`: values of operands as extents, null lists where they are not known.
relay::Expr FormOf(const relay::Call& call, const Array<NDArray>& values, const Extents& extents) {
  const auto* a = &relay::AttrsAs<DeferredAttrs>(call->attrs);
  std::shared_ptr<Model> holder = ReadNode(Bytes::Copy(Unhex(a->node.view())), "dyn.onnx");
  const Node& node = holder->graph.nodes[0];
  auto model = std::make_shared<Model>();
  model->label = "dyn.onnx";
  Importer importer(model, ImportOptions());
  Values inputs;
  size_t next = 0;
  for (int64_t there : a->present) {
    Value v;
    if (there != 0) {
      if (next >= call->args.size())
        throw CompileError("[dyn.onnx R3] the call has fewer operands than `present` says");
      relay::Expr arg = call->args[static_cast<int64_t>(next)];
      NDArray value = next < values.size() ? values[static_cast<int64_t>(next)] : NDArray();
      Array<PrimExpr> known(ObjectPtr<Object>{});
      if (next < extents.size()) known = extents[static_cast<int64_t>(next)];
      ++next;
      v.kind = Value::kTensor;
      v.ranked = true;
      v.expr = arg;
      if (value.defined()) {
        v.host = HostOf(value);
        v.dtype = v.host->dtype;
        v.dims = v.host->dims;
        // Its type may say less than the value: the static form needs the lengths.
        if (arg.as<relay::ConstantNode>() == nullptr) v.expr = relay::Expr();
      } else {
        const auto* t = arg->checked_type().as<TensorTypeNode>();
        if (t == nullptr) return relay::Expr();
        v.dtype = t->dtype;
        for (const PrimExpr& d : t->shape) v.dims.push_back(importer.symbols()->NumberOf(d));
        if (known.get() != nullptr) {
          v.partial = std::make_shared<std::vector<PrimExpr>>(known.begin(), known.end());
        }
      }
    }
    inputs.push_back(v);
  }
  Values out;
  try {
    out = importer.One(node, inputs, a->opset);
  } catch (const NeedsValue&) {
    return relay::Expr();
  } catch (const NodeUnsupported& e) {
    throw UnsupportedError(Printable(node.op_type) + ": " + e.why);
  }
  Values results;
  for (size_t i = 0; i < a->shapes.size(); ++i) {
    if (i < node.outputs.size() && node.outputs[i].empty()) {
      // An unused output still has its index.
      Value zero;
      zero.kind = Value::kTensor;
      zero.ranked = true;
      zero.dtype = DataType::Float(32);
      zero.host = HostFromFloats(zero.dtype, {}, {0});
      results.push_back(zero);
      continue;
    }
    if (i >= out.size())
      throw UnsupportedError(Printable(node.op_type) + ": output " + std::to_string(i) + " is not computed");
    results.push_back(out[i]);
  }
  if (results.size() == 1) return importer.ExprOf(results[0]);
  Value all;
  all.kind = Value::kTuple;
  all.items = results;
  return importer.ExprOf(all);
}

/// Whether it is what JSON can hold.
bool IsText(std::string_view s) {
  while (!s.empty()) {
    const size_t n = support::Utf8Sequence(s);
    if (n == 0) return false;
    s.remove_prefix(n);
  }
  return true;
}

/// Functions of the host are registered by operator. Attributes that are graphs or large tensors are left out:
/// no such function reads them.
/// The function that computes a node on the host; empty where there is none.
std::string HostFunctionOf(const Node& node) {
  if (node.domain.empty()) return "host.onnx." + std::string(node.op_type);
  return TakesTexts(node) ? "host." + std::string(node.domain) + "." + std::string(node.op_type) : "";
}

relay::HostCall HostCallOfNode(const Attrs& attrs) {
  const auto& a = relay::AttrsAs<DeferredAttrs>(attrs);
  const std::shared_ptr<Model> holder = ReadNode(Bytes::Copy(Unhex(a.node.view())), "dyn.onnx");
  const Node& node = holder->graph.nodes[0];
  auto model = std::make_shared<Model>();
  Importer importer(model, ImportOptions());
  support::Json params = support::Json::Object(), present = support::Json::Array(), dtypes = support::Json::Array();
  for (const Attribute& at : node.attributes) {
    support::Json list = support::Json::Array();
    switch (at.kind) {
      case Attribute::kInt:
        params.Set(at.name, at.i);
        break;
      case Attribute::kFloat:
        params.Set(at.name, static_cast<double>(at.f));
        break;
      case Attribute::kString:
        if (IsText(at.s)) params.Set(at.name, at.s);
        break;
      case Attribute::kInts:
        for (int64_t v : at.ints) list.Push(v);
        params.Set(at.name, std::move(list));
        break;
      case Attribute::kStrings:
        for (std::string_view v : at.strings) {
          if (IsText(v)) list.Push(std::string(v));
        }
        params.Set(at.name, std::move(list));
        break;
      case Attribute::kFloats:
        for (float v : at.floats) list.Push(static_cast<double>(v));
        params.Set(at.name, std::move(list));
        break;
      case Attribute::kTensor:  // of one number
        if (const Value v = importer.FromTensor(at.tensors.at(0)); !v.host->is_string && v.host->size() == 1) {
          params.Set(at.name,
                     v.dtype.is_floating() ? support::Json(v.host->FloatAt(0)) : support::Json(v.host->IntAt(0)));
        }
        break;
      default:
        break;
    }
  }
  for (int64_t p : a.present) present.Push(p != 0);
  for (const String& t : a.dtypes) dtypes.Push(t.str());
  params.Set("present", std::move(present));
  params.Set("dtypes", std::move(dtypes));
  params.Set("opset", a.opset);
  return {HostFunctionOf(node), params.Dump(true, true)};
}

relay::Expr StaticForm(const relay::Call& call, const Array<NDArray>& values) { return FormOf(call, values, {}); }

/// `axis` of a node over data of some rank; -1: it is none.
int64_t AxisOf(const Node& node, int64_t rank) {
  const Attribute* given = node.Find("axis");
  const int64_t axis = given != nullptr ? given->i : 0;
  return axis < -rank || axis >= rank ? -1 : axis < 0 ? axis + rank : axis;
}

/// Tile and Split by numbers that are not negative.
relay::Expr PositiveForm(const Node& node, const relay::Call& call, const Array<Array<PrimExpr>>& operands,
                         int64_t opset) {
  const auto* data = call->args[0]->checked_type().as<TensorTypeNode>();
  if (data == nullptr) return relay::Expr();
  const auto rank = static_cast<int64_t>(data->shape.size());
  const bool known = operands.size() > 1 && operands[1].get() != nullptr;
  if (known && relay::MayBeNegative(operands[1])) return relay::Expr();
  if (node.op_type == "Tile" && known && opset >= 6 && static_cast<int64_t>(operands[1].size()) == rank)
    return relay::SymbolicTile(call->args[0], operands[1]);
  const int64_t axis = AxisOf(node, rank);
  if (node.op_type != "Split" || axis < 0) return relay::Expr();
  const auto parts = static_cast<int64_t>(node.outputs.size());
  if (known && opset >= 13 && static_cast<int64_t>(operands[1].size()) == parts)
    return relay::SymbolicSplit(call->args[0], operands[1], axis);
  const Attribute* count = node.Find("num_outputs");
  const bool equal = call->args.size() == 1 && node.Find("split") == nullptr;
  return equal && (count == nullptr || count->i == parts) ? relay::SymbolicSplit(call->args[0], parts, axis)
                                                          : relay::Expr();
}

/// Pad by (all begins, all ends), of some axes where these are literals.
relay::Expr PadForm(const Node& node, const relay::Call& call, const Array<PrimExpr>& pads, const Array<PrimExpr>* axes,
                    const relay::Expr& value) {
  const auto* data = call->args[0]->checked_type().as<TensorTypeNode>();
  const auto rank = static_cast<int64_t>(data != nullptr ? data->shape.size() : 0);
  const int64_t count = axes != nullptr ? static_cast<int64_t>(axes->size()) : rank;
  if (rank == 0 || static_cast<int64_t>(pads.size()) != 2 * count) return relay::Expr();
  std::vector<PrimExpr> widths(static_cast<size_t>(2 * rank), PrimExpr(0));
  for (int64_t i = 0; i < count; ++i) {
    const int64_t* given = axes != nullptr ? tir::as_const_int((*axes)[i]) : &i;
    if (given == nullptr || *given < -rank || *given >= rank) return relay::Expr();
    const auto a = static_cast<size_t>(*given < 0 ? *given + rank : *given);
    widths[2 * a] = pads[i], widths[2 * a + 1] = pads[i + count];
  }
  const Attribute* mode = node.Find("mode");
  return relay::SymbolicPad(call->args[0], Array<PrimExpr>(widths), value,
                            mode != nullptr ? String(std::string(mode->s)) : String("constant"));
}

/// Reshape, Slice and Pad by numbers that may be negative; other nodes take numbers that are not.
relay::Expr NegativeForm(const relay::Call& call, const Extents& extents) {
  const auto* a = &relay::AttrsAs<DeferredAttrs>(call->attrs);
  Array<Array<PrimExpr>> operands;  // of the node, null for one left out
  int64_t next = 0;
  for (int64_t there : a->present) {
    operands.push_back(there != 0 ? extents[next++] : Array<PrimExpr>(ObjectPtr<Object>{}));
  }
  auto known = [&](size_t i) { return i < operands.size() && operands[static_cast<int64_t>(i)].get() != nullptr; };
  auto absent = [&](size_t i) { return i >= a->present.size() || a->present[static_cast<int64_t>(i)] == 0; };
  std::shared_ptr<Model> holder = ReadNode(Bytes::Copy(Unhex(a->node.view())), "dyn.onnx");
  const Node& node = holder->graph.nodes[0];
  if (!node.domain.empty()) return relay::Expr();
  if (node.op_type == "Reshape" && known(1)) {
    const Attribute* allowzero = node.Find("allowzero");
    return relay::SymbolicReshape(call->args[0], operands[1], allowzero != nullptr && allowzero->i != 0);
  }
  if (node.op_type == "Slice" && known(1) && known(2) && (absent(3) || known(3)) && (absent(4) || known(4))) {
    const Array<PrimExpr> axes = absent(3) ? Array<PrimExpr>() : operands[3],
                          steps = absent(4) ? Array<PrimExpr>() : operands[4];
    return relay::SymbolicSlice(call->args[0], operands[1], operands[2], absent(3) ? nullptr : &axes,
                                absent(4) ? nullptr : &steps);
  }
  if (node.op_type == "Pad" && known(1) && a->opset >= 11 && (absent(3) || known(3))) {
    const Array<PrimExpr> axes = absent(3) ? Array<PrimExpr>() : operands[3];
    return PadForm(node, call, operands[1], absent(3) ? nullptr : &axes, absent(2) ? relay::Expr() : call->args[2]);
  }
  return PositiveForm(node, call, operands, a->opset);
}

relay::Expr SymbolicForm(const relay::Call& call, const Extents& extents) {
  bool negative = false;
  for (const Array<PrimExpr>& list : extents) {
    negative = negative || (list.get() != nullptr && relay::MayBeNegative(list));
  }
  if (relay::Expr form = NegativeForm(call, extents); form.defined() || negative) return form;
  return FormOf(call, {}, extents);
}

const Op deferred = relay::DefineOp({
    .name = kDeferredOp,
    .doc = "An ONNX node whose result's shape follows from values of operands, or from lengths not known yet.",
    .output = "As `shapes` and `dtypes` say. R1: `node` is hexadecimal. R2: both have an entry for each result, one or "
              "more. R3: `present` says how many operands there are.",
    .attrs = relay::TypeOf<DeferredAttrs>,
    .num_inputs = -1,
    .type_rel = DeferredRel,
    .host_call = HostCallOfNode,
    .static_form = StaticForm,
    .gradient = relay::NoGradient(relay::gradient::kDynamicResult),
    .source = "ONNX operators 1 to 28",
    .traits = {.symbolic_form = SymbolicForm, .negative_values = true},
});
const Op host_value = relay::DefineOp({
    .name = kHostValueOp,
    .doc = "An ONNX node about sequences or optionals, whose lengths or presence come with the inputs.",
    .output = "As `shapes` and `dtypes` say; the dtype \"value\" is a value of the host.",
    .attrs = relay::TypeOf<DeferredAttrs>,
    .num_inputs = -1,
    .type_rel = DeferredRel,
    .host_call = HostCallOfNode,
    .gradient = relay::NoGradient(relay::gradient::kDynamicResult),
    .fold = relay::Fold::kNever,
    .source = "ONNX operators 11 to 28",
});

}  // namespace

NamedAttrs DeferredAttributes(const Node& node, int64_t opset, const std::vector<bool>& present, const Values& types) {
  Dims there;
  for (bool p : present) there.push_back(p);
  std::vector<Array<int64_t>> shapes;
  std::vector<String> dtypes;
  for (const Value& t : types) {
    Dims shape = IsHostValue(t) ? Dims() : t.dims;
    for (int64_t& d : shape) d = std::max<int64_t>(d, -1);
    shapes.push_back(Array<int64_t>(shape));
    dtypes.push_back(String(
        IsHostValue(t) ? kHostValue : DataType2String(t.kind == Value::kAbsent ? DataType::Float(32) : t.dtype)));
  }
  return {{"op_type", String(std::string(node.op_type))},
          {"node", String(Hex(Serialize(node)))},
          {"opset", opset},
          {"present", IntsAny(there)},
          {"shapes", Array<Array<int64_t>>(shapes)},
          {"dtypes", Array<String>(dtypes)}};
}

}  // namespace baton::onnx
