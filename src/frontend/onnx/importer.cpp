// SPDX-License-Identifier: Apache-2.0
#include "importer.h"

#include <baton/relay/op.h>
#include <baton/support/nearest.h>
#include <baton/tir/expr.h>

#include <algorithm>
#include <cstring>

#include "check.h"
#include "deferred.h"
#include "importer_impl.h"
#include "ops/common.h"
#include "reader.h"

namespace baton::onnx {
namespace {

constexpr int kMostFunctionDepth = 100;

std::string DomainName(std::string_view domain) { return std::string(domain.empty() ? "ai.onnx" : domain); }

/// Collects what a type relation says about one call.
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

}  // namespace

std::string ShapeFault(const Dims& dims) {
  if (static_cast<int64_t>(dims.size()) > kMostRank) {
    return "a tensor of " + std::to_string(dims.size()) + " axes; there may be " + std::to_string(kMostRank);
  }
  int64_t n = 1;
  for (int64_t d : dims) {
    if (d > 0 && (__builtin_mul_overflow(n, d, &n) || n > kMostElements)) {
      return "a tensor of more than 2^48 elements";
    }
  }
  return "";
}

Any IntsAny(const Dims& v) { return Array<int64_t>(v); }

DataType FromOnnxType(int32_t type) {
  switch (type) {
    case kFloat:
      return DataType::Float(32);
    case kUInt8:
      return DataType::UInt(8);
    case kInt8:
      return DataType::Int(8);
    case kUInt16:
      return DataType::UInt(16);
    case kInt16:
      return DataType::Int(16);
    case kInt32:
      return DataType::Int(32);
    case kInt64:
      return DataType::Int(64);
    case kBool:
      return DataType::Bool();
    case kFloat16:
      return DataType::Float(16);
    case kDouble:
      return DataType::Float(64);
    case kUInt32:
      return DataType::UInt(32);
    case kUInt64:
      return DataType::UInt(64);
    case kBFloat16:
      return DataType::BFloat16();
    case kFloat8E4M3FN:
      return DataType(kDLFloat8_e4m3fn, 8);
    case kFloat8E4M3FNUZ:
      return DataType(kDLFloat8_e4m3fnuz, 8);
    case kFloat8E5M2:
      return DataType(kDLFloat8_e5m2, 8);
    case kFloat8E5M2FNUZ:
      return DataType(kDLFloat8_e5m2fnuz, 8);
    case kFloat8E8M0:
      return DataType(kDLFloat8_e8m0fnu, 8);
    case kFloat4E2M1:
      return DataType(kDLFloat4_e2m1fn, 4);
    case kFloat6E2M3:
      return DataType(kDLFloat6_e2m3fn, 6);
    case kFloat6E3M2:
      return DataType(kDLFloat6_e3m2fn, 6);
    case kUInt4:
      return DataType::UInt(4);
    case kInt4:
      return DataType::Int(4);
    case kUInt2:
      return DataType::UInt(2);
    case kInt2:
      return DataType::Int(2);
    default:
      return DataType::Void();
  }
}

// ---- Ctx
// -------------------------------------------------------------------------------------------------------------

Ctx::Ctx(Importer* importer, const Node& node, int since, Values inputs)
    : importer_(importer),
      node_(node),
      since_(since),
      inputs_(std::move(inputs)),
      read_(node.attributes.size(), false) {}

const Value& Ctx::In(size_t i) const {
  if (!Has(i)) Wrong("operand " + std::to_string(i) + " is missing");
  return inputs_[i];
}

Value Ctx::T(size_t i) const {
  const Value& v = In(i);
  if (v.kind != Value::kTensor) Unsupported("operand " + std::to_string(i) + " that is no tensor");
  if (v.host && v.host->is_string) Unsupported("strings");
  return v;
}

Value Ctx::Opt(size_t i) const { return Has(i) ? T(i) : Value(); }

const Attribute* Ctx::Take(const char* name, Attribute::Kind kind) {
  for (size_t i = 0; i < node_.attributes.size(); ++i) {
    const Attribute& a = node_.attributes[i];
    if (a.name != name) continue;
    read_[i] = true;
    if (a.kind != kind) {
      Wrong(std::string("attribute `") + name + "` has type " + AttributeKindName(a.kind) + ", not " +
            AttributeKindName(kind));
    }
    return &a;
  }
  return nullptr;
}

bool Ctx::HasAttr(const char* name) const { return node_.Find(name) != nullptr; }
int64_t Ctx::Int(const char* name, int64_t otherwise) {
  const Attribute* a = Take(name, Attribute::kInt);
  return a == nullptr ? otherwise : a->i;
}
int64_t Ctx::Int(const char* name) {
  if (!HasAttr(name)) Wrong(std::string("attribute `") + name + "` is missing");
  return Int(name, 0);
}
double Ctx::Float(const char* name, double otherwise) {
  const Attribute* a = Take(name, Attribute::kFloat);
  return a == nullptr ? otherwise : static_cast<double>(a->f);
}
std::string Ctx::Str(const char* name, const char* otherwise) {
  const Attribute* a = Take(name, Attribute::kString);
  return a == nullptr ? otherwise : std::string(a->s);
}
Dims Ctx::Ints(const char* name) {
  const Attribute* a = Take(name, Attribute::kInts);
  return a == nullptr ? Dims() : a->ints;
}
std::vector<float> Ctx::Floats(const char* name) {
  const Attribute* a = Take(name, Attribute::kFloats);
  return a == nullptr ? std::vector<float>() : a->floats;
}
std::vector<std::string> Ctx::Strs(const char* name) {
  const Attribute* a = Take(name, Attribute::kStrings);
  if (a == nullptr) return {};
  return {a->strings.begin(), a->strings.end()};
}
const Tensor* Ctx::TensorAttr(const char* name) {
  const Attribute* a = Take(name, Attribute::kTensor);
  return a == nullptr || a->tensors.empty() ? nullptr : &a->tensors[0];
}
const SparseTensor* Ctx::SparseAttr(const char* name) {
  const Attribute* a = Take(name, Attribute::kSparseTensor);
  return a == nullptr || a->sparse_tensors.empty() ? nullptr : &a->sparse_tensors[0];
}
const Graph* Ctx::GraphAttr(const char* name) {
  const Attribute* a = Take(name, Attribute::kGraph);
  return a == nullptr || a->graphs.empty() ? nullptr : &a->graphs[0];
}
const Type* Ctx::TypeAttr(const char* name) {
  const Attribute* a = Take(name, Attribute::kTypeProto);
  return a == nullptr || a->types.empty() ? nullptr : &a->types[0];
}
void Ctx::Ignore(const char* name) {
  for (size_t i = 0; i < node_.attributes.size(); ++i) {
    if (node_.attributes[i].name == name) read_[i] = true;
  }
}
std::vector<std::string> Ctx::Unread() const {
  std::vector<std::string> names;
  for (size_t i = 0; i < read_.size(); ++i) {
    if (!read_[i]) names.emplace_back(node_.attributes[i].name);
  }
  return names;
}

void Ctx::Unsupported(const std::string& why) const { throw NodeUnsupported{why}; }
void Ctx::Wrong(const std::string& why) const {
  Refuse("`" + Printable(importer_->model().label, 400) + "`: " + NodeLabel(node_) + ": " + why);
}

Value Ctx::Call(const char* op, const Values& args, AttrList attrs) {
  return importer_->CallOp(this, op, args, NamedAttrs(attrs), false);
}
Value Ctx::CallWith(const char* op, const Values& args, const NamedAttrs& attrs) {
  return importer_->CallOp(this, op, args, attrs, false);
}
Value Ctx::CallTuple(const char* op, const Values& tuple, AttrList attrs) {
  return importer_->CallOp(this, op, tuple, NamedAttrs(attrs), true);
}
Value Ctx::Tuple(const Values& items) {
  Value v;
  v.kind = Value::kTuple;
  v.items = items;
  return v;
}
Value Ctx::Item(const Value& tuple, size_t i) {
  if (tuple.kind != Value::kTuple || i >= tuple.items.size())
    throw InternalError("onnx import: a call has no result " + std::to_string(i));
  return tuple.items[i];
}

void Ctx::Reserve(int64_t count, int64_t bytes) const {
  try {
    importer_->Reserve(count, bytes);
  } catch (const runtime::SizeOverflow&) {
    Wrong("it asks for " + std::to_string(count) + " elements that are not in the file, more than an import may make");
  }
}

Value Ctx::Constant(HostPtr host) {
  Reserve(static_cast<int64_t>(host->owned.size()), 1);
  if (!ShapeFault(host->dims).empty()) throw runtime::SizeOverflow();
  Value v;
  v.kind = Value::kTensor;
  v.dtype = host->dtype;
  v.ranked = true;
  v.dims = host->dims;
  v.host = std::move(host);
  return v;
}
Value Ctx::Scalar(DataType dtype, double value) {
  HostPtr host = HostFromFloats(dtype, {}, {value});
  if (host == nullptr) Unsupported("arithmetic in " + DataType2String(dtype));
  return Constant(host);
}
Value Ctx::Int64s(const Dims& values) {
  return Constant(HostFromInts(DataType::Int(64), {static_cast<int64_t>(values.size())}, values));
}
Value Ctx::Int64(int64_t value) { return Constant(HostFromInts(DataType::Int(64), {}, {value})); }
Value Ctx::FromTensor(const Tensor& t) { return importer_->FromTensor(t); }

Dims Ctx::KnownInts(const Value& v) const {
  if (v.kind != Value::kTensor) Unsupported("an operand that is no tensor");
  if (v.host == nullptr) throw NeedsValue{"the value of an operand"};
  if (v.host->is_string || v.rank() > 1) Wrong("an operand that should be a list of integers is not");
  Dims out;
  if (v.host->size() > (1 << 20)) Unsupported("a list of more than 2^20 integers");
  Reserve(v.host->size(), 8);
  for (int64_t i = 0; i < v.host->size(); ++i) out.push_back(v.host->IntAt(i));
  return out;
}
Dims Ctx::PartlyKnownInts(const Value& v) const {
  if (v.kind == Value::kTensor && v.host == nullptr && v.partial != nullptr && v.rank() <= 1) return *v.partial;
  return KnownInts(v);
}
double Ctx::KnownScalar(const Value& v) const {
  if (v.host == nullptr) throw NeedsValue{"the value of an operand"};
  if (v.host->is_string || v.host->size() != 1) Wrong("an operand that should be one number is not");
  return v.host->FloatAt(0);
}
int Ctx::Rank(const Value& v) const {
  if (v.kind != Value::kTensor) Unsupported("an operand that is no tensor");
  if (!v.ranked) throw NeedsValue{"the rank of an operand"};
  return static_cast<int>(v.dims.size());
}
int64_t Ctx::Dim(const Value& v, int i) const {
  int rank = Rank(v);
  if (i < 0) i += rank;
  if (i < 0 || i >= rank) Wrong("an operand of rank " + std::to_string(rank) + " has too few axes");
  int64_t n = v.dims[static_cast<size_t>(i)];
  if (n < 0) throw NeedsValue{"the length of axis " + std::to_string(i) + " of an operand"};
  return n;
}
const Dims& Ctx::Fixed(const Value& v) const {
  for (int i = 0; i < Rank(v); ++i) Dim(v, i);
  return v.dims;
}
int Ctx::Axis(int64_t axis, int rank) const {
  if (axis < -rank || axis >= rank) {
    Wrong("axis " + std::to_string(axis) + " is out of range for " + std::to_string(rank) + " axes");
  }
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

Value Ctx::Cast(const Value& v, DataType dtype) {
  if (v.dtype == dtype) return v;
  auto narrow = [](DataType t) { return t.is_float8() || t.is_float4() || (t.is_integral() && t.bits() < 8); };
  return Call(narrow(v.dtype) || narrow(dtype) ? "onnx.cast" : "cast", {v}, {{"dtype", dtype}});
}
Value Ctx::Reshape(const Value& v, const Dims& shape) {
  if (v.ranked && v.dims == shape) return v;
  // Views of constants need no copy.
  if (v.host && !v.weight && std::all_of(shape.begin(), shape.end(), [](int64_t d) { return d >= 0; }) &&
      Product(shape) == v.host->size()) {
    auto host = std::make_shared<Host>();
    host->dtype = v.host->dtype;
    host->dims = shape;
    host->bytes = v.host->bytes;
    host->is_string = v.host->is_string;
    host->strings = v.host->strings;
    host->keep = v.host;
    return Constant(host);
  }
  return Call("reshape", {v}, {{"newshape", IntsAny(shape)}});
}
Value Ctx::Transpose(const Value& v, const Dims& perm) {
  if (Rank(v) != static_cast<int>(perm.size())) {
    Wrong("an operand has " + std::to_string(Rank(v)) + " axes, where " + std::to_string(perm.size()) + " are wanted");
  }
  bool same = true;
  for (size_t i = 0; i < perm.size(); ++i) same = same && perm[i] == static_cast<int64_t>(i);
  return same ? v : Call("transpose", {v}, {{"axes", IntsAny(perm)}});
}
Value Ctx::Unsqueeze(const Value& v, Dims axes) {
  if (axes.empty()) return v;
  std::sort(axes.begin(), axes.end());
  if (v.fixed()) {
    Dims shape = v.dims;
    for (int64_t a : axes) shape.insert(shape.begin() + std::min<int64_t>(a, static_cast<int64_t>(shape.size())), 1);
    return Reshape(v, shape);
  }
  Value y = v;
  for (int64_t a : axes) y = Call("expand_dims", {y}, {{"axis", a}, {"num_newaxis", 1}});
  return y;
}
Value Ctx::Squeeze(const Value& v, Dims axes) {
  if (axes.empty()) return v;
  if (v.fixed()) {
    Dims shape;
    for (size_t i = 0; i < v.dims.size(); ++i) {
      if (std::find(axes.begin(), axes.end(), static_cast<int64_t>(i)) == axes.end()) shape.push_back(v.dims[i]);
    }
    return Reshape(v, shape);
  }
  return Call("squeeze", {v}, {{"axis", IntsAny(axes)}});
}
Value Ctx::BroadcastTo(const Value& v, const Dims& shape) {
  return v.ranked && v.dims == shape ? v : Call("broadcast_to", {v}, {{"shape", IntsAny(shape)}});
}
Value Ctx::Slice(const Value& v, int axis, int64_t begin, int64_t end) {
  int rank = Rank(v);
  if (axis < 0 || axis >= rank) Wrong("an operand of rank " + std::to_string(rank) + " has too few axes");
  int64_t n = v.dims[static_cast<size_t>(axis)];
  if (begin == 0 && end == n) return v;
  if (begin >= end) {
    Dims shape = Fixed(v);
    shape[static_cast<size_t>(axis)] = 0;
    return Full(v.dtype, 0, shape);
  }
  Dims b(static_cast<size_t>(rank), 0), e, s(static_cast<size_t>(rank), 1);
  for (int64_t d : v.dims) e.push_back(d < 0 ? INT64_MAX : d);
  b[static_cast<size_t>(axis)] = begin;
  e[static_cast<size_t>(axis)] = end;
  return Call("strided_slice", {v},
              {{"begin", IntsAny(b)}, {"end", IntsAny(e)}, {"strides", IntsAny(s)}, {"slice_mode", "end"}});
}
Value Ctx::Concat(const Values& v, int axis) {
  if (v.size() == 1) return v[0];
  return CallTuple("concatenate", v, {{"axis", axis}});
}
Value Ctx::Full(DataType dtype, double value, const Dims& shape) {
  for (int64_t d : shape) {
    if (d < 0) Wrong("a result would have the length " + std::to_string(d));
  }
  if (Product(shape) <= 64) {
    std::vector<double> all(static_cast<size_t>(Product(shape)), value);
    HostPtr host = HostFromFloats(dtype, shape, all);
    if (host != nullptr) return Constant(host);
  }
  return Call("full", {Scalar(dtype, value)}, {{"shape", IntsAny(shape)}, {"dtype", dtype}});
}
Value Ctx::ShapeOf(const Value& v) {
  if (v.fixed()) return Int64s(v.dims);
  Rank(v);
  return Call("shape_of", {v}, {{"dtype", DataType::Int(64)}});
}

Value Ctx::MatMul(Value a, Value b, DataType out) {
  int ra = Rank(a), rb = Rank(b);
  if (ra == 0 || rb == 0) Wrong("a scalar cannot be multiplied as a matrix");
  NamedAttrs wide;
  if (!out.is_void()) wide.emplace_back("out_dtype", out);
  bool row = ra == 1, column = rb == 1;
  if (row) a = Unsqueeze(a, {0}), ra = 2;
  if (column) b = Unsqueeze(b, {1}), rb = 2;
  Value y;
  int64_t k = a.dims[static_cast<size_t>(ra) - 1], other = b.dims[static_cast<size_t>(rb) - 2];
  if (k >= 0 && other >= 0 && k != other) {
    Wrong("the matrices have inner lengths " + std::to_string(k) + " and " + std::to_string(other));
  }
  if (rb == 2) {
    // One matrix for all: the rows of every batch in one product.
    Value w = Transpose(b, {1, 0});
    NamedAttrs attrs = wide;
    attrs.emplace_back("units", w.dims[0] >= 0 ? Any(w.dims[0]) : Any());
    bool flatten = ra != 2 && a.fixed();
    Dims lead(a.dims.begin(), a.dims.end() - 1);
    Value x = flatten ? Reshape(a, {Product(lead), a.dims.back()}) : a;
    y = CallWith("nn.dense", {x, w}, attrs);
    if (flatten) {
      lead.push_back(w.dims[0]);
      y = Reshape(y, lead);
    }
  } else {
    Dims la(a.dims.begin(), a.dims.end() - 2), lb(b.dims.begin(), b.dims.end() - 2), lead;
    NamedAttrs attrs = wide;
    attrs.emplace_back("transpose_a", false);
    attrs.emplace_back("transpose_b", false);
    if (ra == 3 && rb == 3 && la == lb && la[0] >= 0) {
      y = CallWith("nn.batch_matmul", {a, b}, attrs);
    } else if (!a.fixed() || !b.fixed()) {
      y = CallWith("nn.matmul", {a, b}, wide);
    } else {
      if (!BroadcastDims(la, lb, &lead)) Wrong("the batches of the matrices do not broadcast");
      auto spread = [&](const Value& v) {
        Dims shape = lead;
        shape.insert(shape.end(), v.dims.end() - 2, v.dims.end());
        Value s = BroadcastTo(v, shape);
        return Reshape(s, {Product(lead), v.dims[v.dims.size() - 2], v.dims.back()});
      };
      y = CallWith("nn.batch_matmul", {spread(a), spread(b)}, attrs);
      Dims shape = lead;
      shape.push_back(a.dims[a.dims.size() - 2]);
      shape.push_back(b.dims.back());
      y = Reshape(y, shape);
    }
  }
  if (column) y = Squeeze(y, {Rank(y) - 1});
  if (row) y = Squeeze(y, {Rank(y) - (column ? 1 : 2)});
  return y;
}

// ---- Importer
// --------------------------------------------------------------------------------------------------------

Importer::Importer(std::shared_ptr<Model> model, ImportOptions options)
    : model_(std::move(model)), options_(std::move(options)) {
  for (const FunctionDef& f : model_->functions) functions_[{f.domain, f.name, f.overload}] = &f;
  // Inlining and unrolling may multiply the file's nodes, within reason.
  auto nodes = static_cast<int64_t>(model_->graph.nodes.size());
  budget_ = 200000 + 64 * nodes;
  calls_ = 400000 + 256 * nodes;
  auto file = static_cast<int64_t>(model_->storage == nullptr ? 0 : model_->storage->size());
  bytes_ = (int64_t{64} << 20) + 64 * file;
}

std::string Importer::Head() const { return "`" + Printable(model_->label, 400) + "`: "; }

void Importer::Spend(int64_t nodes) {
  budget_ -= nodes;
  if (budget_ < 0) Refuse(Head() + "its functions and loops unfold to more nodes than an import may make");
}

void Importer::Reserve(int64_t count, int64_t bytes) {
  int64_t total = Checked(count) * bytes;
  if (total > bytes_) throw runtime::SizeOverflow();
  bytes_ -= total;
}

int64_t Importer::Opset(std::string_view domain, const Surroundings& around) const {
  for (const OpsetId& id : *around.imports) {
    if (id.domain == domain) return id.version;
  }
  return 0;
}

void Importer::Problem(const Node& node, const Surroundings& around, const std::string& why) {
  std::string text = NodeLabel(node) + " of " + Quote(DomainName(node.domain)) + " " +
                     std::to_string(Opset(node.domain, around)) + ": " + why;
  for (const ProblemOf& p : problems_) {
    if (p.text == text) return;
  }
  std::string op(Printable(node.op_type));
  problems_.push_back({text, node.domain.empty() ? op : Printable(node.domain) + "." + op});
}

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

namespace {

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

}  // namespace

namespace {

constexpr int64_t kUnknown = Value::kUnknown;

/// Elements known of a small integer tensor; null where nothing is.
std::shared_ptr<const Dims> Elements(const Value& v) {
  if (v.kind != Value::kTensor || v.rank() < 0 || v.rank() > 1 || !v.dtype.is_int()) return nullptr;
  if (v.partial != nullptr) return v.partial;
  if (v.host == nullptr || v.host->is_string || v.host->size() > 64) return nullptr;
  auto out = std::make_shared<Dims>();
  for (int64_t i = 0; i < v.host->size(); ++i) out->push_back(v.host->IntAt(i));
  return out;
}

/// What is known of a shape computation whose operands are known in part.
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

NDArray ToNDArray(const Host& h) { return NDArray::FromBytes(h.bytes.data(), h.dims, h.dtype); }

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
  // Everything known and small is computed here: shapes, mostly.
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

HostPtr Importer::Keep(const Tensor& t) {
  if (std::string fault = ShapeFault(t.dims); !fault.empty()) {
    Refuse(Head() + "tensor " + Quote(t.name) + " is " + fault);
  }
  auto host = std::make_shared<Host>();
  host->dims = t.dims;
  if (t.data_type == kString) {
    host->is_string = true;
    for (std::string_view s : TensorStrings(t)) host->strings.emplace_back(s);
    return host;
  }
  host->dtype = FromOnnxType(t.data_type);
  if (host->dtype.is_void()) {
    if (DataTypeBits(t.data_type) == 0) NumElements(t), TensorBytes(*model_, t, &host->owned, nullptr);
    throw NodeUnsupported{std::string("elements of type ") + DataTypeName(t.data_type)};
  }
  std::shared_ptr<const Bytes> keep;
  host->bytes = TensorBytes(*model_, t, &host->owned, &keep);
  if (!host->owned.empty()) host->bytes = host->owned;
  Reserve(static_cast<int64_t>(host->owned.size()), 1);
  host->keep = keep;
  return host;
}

Value Importer::FromTensor(const Tensor& t) {
  Value v;
  v.kind = Value::kTensor;
  v.host = Keep(t);
  v.dtype = v.host->dtype;
  v.ranked = true;
  v.dims = v.host->dims;
  return v;
}

Value Importer::Input(const ValueInfo& info) {
  Value v;
  v.kind = Value::kTensor;
  const frontend::OnnxInput* option = nullptr;
  for (const frontend::OnnxInput& in : options_.inputs) {
    if (in.name == info.name) option = &in;
  }
  const Type* type = &info.type;
  if (type->kind == Type::kOptional && type->elem != nullptr && option != nullptr) {
    if (option->kind == frontend::OnnxInput::kNothing) {
      v.kind = Value::kNothing;
      return v;
    }
    type = type->elem.get();
  }
  if (type->kind == Type::kSequence && type->elem != nullptr && type->elem->kind == Type::kTensor &&
      option != nullptr && option->kind == frontend::OnnxInput::kSequence &&
      !FromOnnxType(type->elem->elem_type).is_void()) {
    v.kind = Value::kTuple;
    for (const Dims& dims : option->shapes) {
      Value item;
      item.kind = Value::kTensor;
      item.ranked = true;
      item.dtype = FromOnnxType(type->elem->elem_type);
      item.dims = dims;
      v.items.push_back(item);
    }
    baton::Type tuple = TypeOfValue(v);
    relay::Var var(std::string(info.name), tuple);
    var->checked_type_ = tuple;
    params_.push_back(var);
    return FromRelayType(tuple, var);
  }
  const Dims* given = option != nullptr && option->kind == frontend::OnnxInput::kTensor && option->shapes.size() == 1
                          ? &option->shapes[0]
                          : nullptr;
  if (type->kind != Type::kTensor) {
    static constexpr const char* kKinds[] = {"no type",     "a tensor",        "a sequence",     "a map",
                                             "an optional", "a sparse tensor", "an opaque value"};
    problems_.push_back(
        {"input " + Quote(info.name) + ": it is " + kKinds[type->kind] +
             (type->kind == Type::kSequence || type->kind == Type::kOptional ? "; give its shapes" : ""),
         ""});
    v.kind = Value::kPoison;
    return v;
  }
  v.dtype = FromOnnxType(type->elem_type);
  if (v.dtype.is_void()) {
    problems_.push_back(
        {"input " + Quote(info.name) + ": its elements have type " +
             (*DataTypeName(type->elem_type) ? DataTypeName(type->elem_type) : std::to_string(type->elem_type)),
         ""});
    v.kind = Value::kPoison;
    return v;
  }
  v.ranked = type->has_shape || given != nullptr;
  for (const Dim& d : type->shape) v.dims.push_back(d.value);
  if (std::string fault = ShapeFault(v.dims); !fault.empty()) {
    Refuse(Head() + "input " + Quote(info.name) + " is " + fault);
  }
  if (given != nullptr) {
    if (type->has_shape && given->size() != v.dims.size()) {
      Refuse(Head() + "input " + Quote(info.name) + " has " + std::to_string(v.dims.size()) +
             " axes; the shape given has " + std::to_string(given->size()));
    }
    for (size_t i = 0; i < v.dims.size(); ++i) {
      if (v.dims[i] >= 0 && (*given)[i] >= 0 && v.dims[i] != (*given)[i]) {
        Refuse(Head() + "input " + Quote(info.name) + " has length " + std::to_string(v.dims[i]) + " at axis " +
               std::to_string(i) + "; the shape given has " + std::to_string((*given)[i]));
      }
    }
    v.dims = *given;
    if (std::string fault = ShapeFault(v.dims); !fault.empty()) {
      Refuse(Head() + "the shape given for input " + Quote(info.name) + " is that of " + fault);
    }
  }
  if (!v.ranked) {
    problems_.push_back({"input " + Quote(info.name) + ": its rank is not stated; give its shape", ""});
    v.kind = Value::kPoison;
    return v;
  }
  relay::Var var(std::string(info.name), TypeOfValue(v));
  var->checked_type_ = TypeOfValue(v);
  v.expr = var;
  params_.push_back(var);
  return v;
}

Values Importer::RunNode(const Node& node, const OpVersion& version, ImportFn import, Values inputs) {
  Ctx ctx(this, node, version.since, std::move(inputs));
  Values out;
  try {
    out = import(ctx);
  } catch (const runtime::SizeOverflow& e) {
    ctx.Wrong(e.what());
  }
  std::vector<std::string> unread = ctx.Unread();
  if (!unread.empty()) {
    std::string names;
    for (const std::string& n : unread) names += (names.empty() ? "attribute " : ", ") + Quote(n);
    throw NodeUnsupported{names};
  }
  return out;
}

Values Importer::One(const Node& node, const Values& inputs, int64_t opset) {
  std::vector<OpsetId> imports = {{node.domain, opset}};
  around_ = Surroundings{&imports, nullptr, nullptr, 0};
  OpVersion version = FindOpVersion(node.domain, node.op_type, opset);
  ImportFn import = FindImporter(node.domain, node.op_type);
  if (import == nullptr) throw InternalError("onnx import: no such operator");
  Values out = RunNode(node, version, import, inputs);
  around_ = Surroundings{};
  return out;
}

Values Importer::Defer(const Node& node, int64_t opset, const Values& inputs, const std::string& what) {
  for (const Attribute& a : node.attributes) {
    if (!a.graphs.empty()) throw NodeUnsupported{"it needs " + what + " at compile time"};
  }
  Values types = OutputTypes(node, inputs);
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i].empty()) continue;
    if (i >= types.size()) types.resize(i + 1);
    Value& t = types[i];
    const ValueInfo* info = nullptr;
    if (around_.declared != nullptr) {
      auto it = around_.declared->find(node.outputs[i]);
      if (it != around_.declared->end()) info = it->second;
    }
    if (!t.ranked && info != nullptr && info->type.kind == Type::kTensor && info->type.has_shape) {
      t.kind = Value::kTensor;
      t.ranked = true;
      t.dtype = FromOnnxType(info->type.elem_type);
      // What a model declares about a value is no proof of its lengths.
      t.dims.assign(info->type.shape.size(), -1);
    }
    if (std::string fault = ShapeFault(t.dims); !fault.empty()) throw NodeUnsupported{fault};
    if (!t.ranked || t.dtype.is_void()) throw NodeUnsupported{"it needs " + what + " at compile time"};
  }
  types.resize(node.outputs.size());
  Values operands;
  std::vector<bool> present;
  for (const Value& v : inputs) {
    present.push_back(v.kind != Value::kAbsent);
    if (v.kind == Value::kAbsent) continue;
    if (v.kind != Value::kTensor || !v.ranked) throw NodeUnsupported{"it needs " + what + " at compile time"};
    operands.push_back(v);
  }
  Value v = CallOp(nullptr, kDeferredOp, operands, DeferredAttributes(node, opset, present, types), false);
  if (types.size() == 1) return {v};
  return v.items;
}

Values Importer::CallFunction(const Node& node, const FunctionDef& f, const Values& inputs,
                              const Surroundings& around) {
  if (around.depth >= kMostFunctionDepth)
    Refuse(Head() + "functions call functions more than " + std::to_string(kMostFunctionDepth) + " deep");
  Spend(1 + static_cast<int64_t>(f.nodes.size()));
  if (inputs.size() > f.inputs.size()) {
    Refuse(Head() + NodeLabel(node) + " has " + std::to_string(inputs.size()) + " operands, its function takes " +
           std::to_string(f.inputs.size()));
  }
  Env env;
  for (size_t i = 0; i < f.inputs.size(); ++i) env.values[f.inputs[i]] = i < inputs.size() ? inputs[i] : Value();
  std::vector<Attribute> bound;
  auto copy = [](const Attribute& a) {
    Attribute b;
    b.name = a.name, b.kind = a.kind, b.f = a.f, b.i = a.i, b.s = a.s, b.floats = a.floats, b.ints = a.ints;
    b.strings = a.strings, b.tensors = a.tensors, b.source = a.source;
    return b;
  };
  for (const Attribute& a : node.attributes) {
    bool known = std::find(f.attributes.begin(), f.attributes.end(), a.name) != f.attributes.end();
    for (const Attribute& d : f.attribute_defaults) known = known || d.name == a.name;
    if (!known) throw NodeUnsupported{"attribute " + Quote(a.name) + ", which its function does not take"};
    if (!a.graphs.empty() || !a.types.empty() || !a.sparse_tensors.empty()) {
      throw NodeUnsupported{"attribute " + Quote(a.name) +
                            ": graphs, types and sparse tensors cannot be passed to functions"};
    }
    bound.push_back(copy(a));
  }
  for (const Attribute& d : f.attribute_defaults) {
    if (node.Find(d.name) == nullptr) bound.push_back(copy(d));
  }
  Surroundings inner;
  inner.imports = f.opset_imports.empty() ? around.imports : &f.opset_imports;
  inner.bound = &bound;
  inner.depth = around.depth + 1;
  Nodes(f.nodes, &env, inner);
  Values out;
  for (std::string_view name : f.outputs) {
    const Value* v = env.Find(name);
    out.push_back(v == nullptr ? Value() : *v);
  }
  return out;
}

bool Importer::Declared(const Node& node, const Surroundings& around, Values* inputs) {
  for (size_t i = 0; i < inputs->size(); ++i) {
    Value& v = (*inputs)[i];
    if (v.kind != Value::kPoison) continue;
    if (around.declared == nullptr) return false;
    auto it = around.declared->find(node.inputs[i]);
    if (it == around.declared->end() || it->second->type.kind != Type::kTensor || !it->second->type.has_shape)
      return false;
    v = Value();
    v.kind = Value::kTensor;
    v.dtype = FromOnnxType(it->second->type.elem_type);
    v.ranked = true;
    for (const Dim& d : it->second->type.shape) v.dims.push_back(d.value);
    if (v.dtype.is_void() || !ShapeFault(v.dims).empty()) return false;
    relay::Var var(std::string(node.inputs[i]), TypeOfValue(v));
    var->checked_type_ = TypeOfValue(v);
    v.expr = var;
  }
  return true;
}

void Importer::ImportNode(const Node& given, Env* env, const Surroundings& around) {
  // Attributes taken from the call of a function around the node.
  Node resolved;
  const Node* node = &given;
  bool refers = std::any_of(given.attributes.begin(), given.attributes.end(),
                            [](const Attribute& a) { return !a.ref_attr_name.empty(); });
  std::vector<std::string> kept;
  if (refers) {
    resolved.name = given.name, resolved.op_type = given.op_type, resolved.domain = given.domain;
    resolved.overload = given.overload, resolved.inputs = given.inputs, resolved.outputs = given.outputs;
    for (const Attribute& a : given.attributes) {
      const Attribute* from = &a;
      if (!a.ref_attr_name.empty()) {
        from = nullptr;
        for (const Attribute& b : *around.bound) {
          if (b.name == a.ref_attr_name) from = &b;
        }
        if (from == nullptr) continue;  // not given and without a default: as if it were not there
      }
      if (!from->graphs.empty() || !from->types.empty() || !from->sparse_tensors.empty()) {
        Problem(given, around, "attribute " + Quote(a.name) + ": graphs beside attributes of a function");
        from = nullptr;
        continue;
      }
      Attribute b;
      b.name = a.name, b.kind = from->kind, b.f = from->f, b.i = from->i, b.s = from->s, b.floats = from->floats;
      b.ints = from->ints, b.strings = from->strings, b.tensors = from->tensors, b.source = from->source;
      resolved.attributes.push_back(std::move(b));
    }
    node = &resolved;
  }

  Values inputs;
  bool poisoned = false;
  for (std::string_view name : node->inputs) {
    Value v;
    if (!name.empty()) {
      const Value* found = env->Find(name);
      if (found == nullptr) throw InternalError("onnx import: `" + Printable(name) + "` is not defined");
      v = *found;
    }
    poisoned = poisoned || v.kind == Value::kPoison;
    inputs.push_back(std::move(v));
  }
  while (!inputs.empty() && inputs.back().kind == Value::kAbsent) inputs.pop_back();

  int64_t opset = Opset(node->domain, around);
  Values out;
  bool failed = poisoned;
  span_ = Span(SourceName(String(NodeLabel(*node))), 0, 0, 0, 0);
  try {
    auto f = functions_.find({node->domain, node->op_type, node->overload});
    ImportFn import = FindImporter(node->domain, node->op_type);
    if (f != functions_.end() && import == nullptr) {
      if (!poisoned) out = CallFunction(*node, *f->second, inputs, around);
    } else {
      OpVersion version = FindOpVersion(node->domain, node->op_type, opset);
      if (version.first == 0) throw NodeUnsupported{"no such operator is known"};
      if (version.since == 0) throw NodeUnsupported{"the operator came with version " + std::to_string(version.first)};
      if (version.deprecated) throw NodeUnsupported{"the operator is no longer in this version"};
      if (import == nullptr) throw NodeUnsupported{"the operator is not supported"};
      // Behind a node that is not supported, go on with what the model declares: so that all is said at once.
      bool looks = poisoned && Declared(*node, around, &inputs);
      if (!poisoned || looks) {
        // Put back on every way out: an error that is collected must not leave an inner scope behind.
        struct Scope {
          Importer* importer;
          Env* env;
          Surroundings around;
          ~Scope() { importer->env_ = env, importer->around_ = around; }
        } outer{this, env_, around_};
        env_ = env;
        around_ = around;
        try {
          out = RunNode(*node, version, import, inputs);
        } catch (const NeedsValue& needs) {
          if (!looks) out = Defer(*node, opset, inputs, needs.what);
        } catch (const CompileError&) {
          if (!looks) throw;  // what is declared may be wrong
        }
      }
    }
  } catch (const NodeUnsupported& e) {
    Problem(*node, around, e.why);
    failed = true;
  } catch (const NeedsValue& e) {
    Problem(*node, around, "it needs " + e.what + " at compile time");
    failed = true;
  }
  for (size_t i = 0; i < node->outputs.size(); ++i) {
    if (node->outputs[i].empty()) continue;
    Value v;
    if (failed) {
      v.kind = Value::kPoison;
    } else if (i < out.size() && out[i].kind != Value::kAbsent) {
      v = out[i];
    } else {
      Problem(*node, around, "output " + std::to_string(i) + " is not computed");
      v.kind = Value::kPoison;
    }
    env->values[node->outputs[i]] = v;
  }
}

void Importer::Nodes(const std::vector<Node>& nodes, Env* env, const Surroundings& around) {
  for (const Node& n : nodes) ImportNode(n, env, around);
}

Values Importer::Subgraph(const Graph& graph, const Env* outer, const Values& inputs, const Surroundings& around) {
  Spend(1 + static_cast<int64_t>(graph.nodes.size()));
  Env env;
  env.outer = outer;
  if (inputs.size() != graph.inputs.size()) {
    Refuse(Head() + "subgraph " + Quote(graph.name) + " takes " + std::to_string(graph.inputs.size()) +
           " inputs and is given " + std::to_string(inputs.size()));
  }
  for (size_t i = 0; i < inputs.size(); ++i) env.values[graph.inputs[i].name] = inputs[i];
  for (const Tensor& t : graph.initializers) {
    if (env.values.find(t.name) == env.values.end()) env.values[t.name] = FromTensor(t);
  }
  if (!graph.sparse_initializers.empty()) throw NodeUnsupported{"sparse initializers in a subgraph"};
  Surroundings inner = around;
  std::unordered_map<std::string_view, const ValueInfo*> declared;
  for (const ValueInfo& v : graph.value_info) declared[v.name] = &v;
  for (const ValueInfo& v : graph.outputs) declared[v.name] = &v;
  inner.declared = &declared;
  Nodes(graph.nodes, &env, inner);
  Values out;
  for (const ValueInfo& v : graph.outputs) {
    const Value* found = env.Find(v.name);
    if (found == nullptr) throw InternalError("onnx import: an output of a subgraph is not defined");
    out.push_back(*found);
  }
  return out;
}

Imported Importer::Run() {
  const Graph& g = model_->graph;
  Surroundings around;
  around.imports = &model_->opset_imports;
  for (const OpsetId& id : model_->opset_imports) {
    if (id.domain.empty() && id.version > kNewestOpset) {
      throw UnsupportedError(Head() + "operator set " + std::to_string(id.version) +
                             " is newer than the newest known (" + std::to_string(kNewestOpset) +
                             "); export the model for that version");
    }
  }
  std::unordered_map<std::string_view, const ValueInfo*> declared;
  for (const ValueInfo& v : g.value_info) declared[v.name] = &v;
  for (const ValueInfo& v : g.outputs) declared[v.name] = &v;
  around.declared = &declared;
  Env env;
  for (const Tensor& t : g.initializers) {
    try {
      Value v = FromTensor(t);
      // A short list of integers is a shape, axes or the like, no weight.
      bool small = v.host->size() <= 1 || (v.dtype.is_integral() && v.rank() <= 1 && v.host->size() <= 64);
      if (!options_.freeze_params && !v.host->is_string && !small) {
        relay::Var var(std::string(t.name), TypeOfValue(v));
        var->checked_type_ = TypeOfValue(v);
        v.expr = var;
        v.weight = true;
      }
      env.values[t.name] = v;
    } catch (const NodeUnsupported& e) {
      problems_.push_back({"initializer " + Quote(t.name) + ": " + e.why, ""});
      env.values[t.name].kind = Value::kPoison;
    }
  }
  Node none;
  Ctx ctx(this, none, 0, {});
  for (const SparseTensor& t : g.sparse_initializers) {
    try {
      env.values[t.values.name] = ctx.Constant(DenseOf(ctx, t));
    } catch (const NodeUnsupported& e) {
      problems_.push_back({"initializer " + Quote(t.values.name) + ": " + e.why, ""});
      env.values[t.values.name].kind = Value::kPoison;
    }
  }
  std::vector<std::string> names;
  for (const ValueInfo& v : g.inputs) names.emplace_back(v.name);
  for (const frontend::OnnxInput& in : options_.inputs) {
    if (std::find(names.begin(), names.end(), in.name) == names.end()) {
      Refuse(Head() + "a shape is given for " + Quote(in.name) + ", which is no input" +
             support::DidYouMean(in.name, names));
    }
  }
  for (const ValueInfo& v : g.inputs) {
    // An initializer of the same name is a default; as a weight it is more use.
    if (env.values.find(v.name) == env.values.end()) env.values[v.name] = Input(v);
  }
  Nodes(g.nodes, &env, around);
  span_ = Span();
  Values outputs;
  for (const ValueInfo& v : g.outputs) {
    const Value* found = env.Find(v.name);
    if (found == nullptr) throw InternalError("onnx import: an output is not defined");
    if (found->kind == Value::kNothing || (found->host && found->host->is_string)) {
      problems_.push_back(
          {"output " + Quote(v.name) + ": " + (found->host ? "it holds strings" : "it is an optional without a value"),
           ""});
      continue;
    }
    outputs.push_back(*found);
  }
  if (!problems_.empty()) {
    std::string text = Head() + std::to_string(problems_.size()) +
                       (problems_.size() == 1 ? " part of the model is" : " parts of the model are") +
                       " not supported:";
    Array<String> ops;
    std::set<std::string> named;
    for (const ProblemOf& p : problems_) {
      text += "\n  " + p.text;
      if (!p.op.empty() && named.insert(p.op).second) ops.push_back(String(p.op));
    }
    // Programs read the operators as `error.ops`.
    UnsupportedError error(text);
    error.get()->payload = ops;
    throw error;
  }
  if (outputs.empty()) Refuse(Head() + "the graph has no outputs");
  relay::Expr body;
  if (outputs.size() == 1) {
    body = ExprOf(outputs[0]);
  } else {
    Value all;
    all.kind = Value::kTuple;
    all.items = outputs;
    body = ExprOf(all);
  }
  Imported result;
  if (!options_.freeze_params) {
    for (const Tensor& t : g.initializers) {
      const Value& v = env.values[t.name];
      if (!v.expr.defined() || v.expr.as<relay::VarNode>() == nullptr) continue;
      params_.push_back(Downcast<relay::Var>(v.expr));
      result.params.Set(String(std::string(t.name)), ToNDArray(*v.host));
    }
  }
  Array<relay::Var> params(params_);
  relay::Function main(params, body);
  bool tensors = true;  // a sequence becomes several results, for which there are no names
  Array<String> names_out;
  for (size_t i = 0; i < outputs.size(); ++i) {
    tensors = tensors && outputs[i].kind == Value::kTensor;
    names_out.push_back(String(std::string(g.outputs[i].name)));
  }
  if (tensors) main = WithAttr(main, "output_names", Any(names_out));
  result.mod = IRModule::FromExpr(main);
  return result;
}

Imported Import(const std::shared_ptr<Model>& model, const ImportOptions& options) {
  const std::string head = "`" + Printable(model->label, 400) + "`: ";
  try {
    return Importer(model, options).Run();
  } catch (const NodeUnsupported& e) {
    throw UnsupportedError(head + "1 part of the model is not supported:\n  " + e.why);
  } catch (const NeedsValue& e) {
    throw UnsupportedError(head + "1 part of the model is not supported:\n  it needs " + e.what + " at compile time");
  }
}

ImportFn FindImporter(std::string_view domain, std::string_view op) {
  static const auto* const kTable = [] {
    OpTable rows;
    AddElementwise(&rows);
    AddReductions(&rows);
    AddShapes(&rows);
    AddIndexing(&rows);
    AddMatrix(&rows);
    AddConvolutions(&rows);
    AddNormalization(&rows);
    AddQuantization(&rows);
    AddImages(&rows);
    AddControl(&rows);
    AddRecurrent(&rows);
    AddLosses(&rows);
    AddSignal(&rows);
    AddAttention(&rows);
    AddMl(&rows);
    AddText(&rows);
    AddRandom(&rows);
    auto* table = new std::map<std::pair<std::string_view, std::string_view>, ImportFn>();
    for (const OpRow& r : rows) {
      if (!table->emplace(std::make_pair(r.domain, r.op), r.import).second) {
        throw InternalError(std::string("onnx import: operator `") + r.op + "` stands twice in the tables");
      }
    }
    return table;
  }();
  auto it = kTable->find({domain, op});
  return it == kTable->end() ? nullptr : it->second;
}

HostPtr DenseOf(Ctx& c, const SparseTensor& t) {
  Value values = c.FromTensor(t.values), indices = c.FromTensor(t.indices);
  Tensor shape;
  shape.dims = t.dims;
  int64_t n = NumElements(shape);
  c.Reserve(n, std::max(values.dtype.bytes(), 1));
  if (values.host->is_string || indices.host->is_string || values.rank() != 1) Refuse("a sparse tensor is malformed");
  int64_t count = values.dims[0], rank = static_cast<int64_t>(t.dims.size());
  bool flat = indices.rank() == 1;
  if (indices.dims.empty() || indices.dims[0] != count || (!flat && (indices.rank() != 2 || indices.dims[1] != rank))) {
    Refuse("the indices of sparse tensor `" + Printable(t.values.name) + "` do not fit its values");
  }
  auto host = std::make_shared<Host>();
  host->dtype = values.dtype;
  host->dims = t.dims;
  size_t width = static_cast<size_t>(values.dtype.bytes());
  host->owned.assign(static_cast<size_t>(n) * width, '\0');
  for (int64_t k = 0; k < count; ++k) {
    int64_t at = 0;
    if (flat) {
      at = indices.host->IntAt(k);
    } else {
      for (int64_t a = 0; a < rank; ++a) {
        int64_t i = indices.host->IntAt(k * rank + a);
        if (i < 0 || i >= t.dims[static_cast<size_t>(a)]) at = n;
        if (at < n) at = at * t.dims[static_cast<size_t>(a)] + i;
      }
    }
    if (at < 0 || at >= n)
      Refuse("an index of sparse tensor `" + Printable(t.values.name) + "` lies outside its shape");
    std::memcpy(host->owned.data() + static_cast<size_t>(at) * width,
                values.host->bytes.data() + static_cast<size_t>(k) * width, width);
  }
  host->bytes = host->owned;
  return host;
}

}  // namespace baton::onnx
