// SPDX-License-Identifier: Apache-2.0
// The context of a node's importer: operands, attributes, calls and constants.
#include <memory>
#include <utility>

#include "frontend/onnx/ops/common.h"
#include "frontend/onnx/reader/check.h"
#include "host_values.h"
#include "importer_impl.h"

namespace baton::onnx {
namespace {

/// The type of strings' hashes.
Value HashesOf(const Value& text) {
  Value v;
  v.kind = Value::kTensor;
  v.dtype = DataType::Int(64);
  v.ranked = true;
  v.dims = text.dims;
  return v;
}

}  // namespace

Ctx::Ctx(Importer* importer, const Node& node, int since, Values inputs)
    : importer_(importer),
      node_(node),
      since_(since),
      inputs_(std::move(inputs)),
      read_(node.attributes.size(), false) {}

const Value& Ctx::In(size_t i) const {
  if (!Has(i)) Fail("operand " + std::to_string(i) + " is missing");
  return inputs_[i];
}

Value Ctx::T(size_t i) const {
  const Value v = Texts(i);
  if ((v.host && v.host->is_string) || v.form) Unsupported("strings");
  return v;
}

Value Ctx::Texts(size_t i) const {
  const Value& v = In(i);
  if (v.kind == Value::kText) {  // what they are equal to
    Value hashes = importer_->CallHost("TextHash", {v}, HashesOf(v));
    hashes.form = std::make_shared<Form>(Form{Form::kHashes, {}, {}});
    return hashes;
  }
  if (v.kind != Value::kTensor || (v.form && v.form->kind == Form::kMaps))
    Unsupported("operand " + std::to_string(i) + " that is no tensor");
  return v;
}

Value Ctx::Opt(size_t i) const { return Has(i) ? T(i) : Value(); }

const Attribute* Ctx::Take(const char* name, Attribute::Kind kind) {
  for (size_t i = 0; i < node_.attributes.size(); ++i) {
    const Attribute& a = node_.attributes[i];
    if (a.name != name) continue;
    read_[i] = true;
    if (a.kind != kind) {
      Fail(std::string("attribute `") + name + "` has type " + AttributeKindName(a.kind) + ", not " +
           AttributeKindName(kind));
    }
    return &a;
  }
  return nullptr;
}

bool Ctx::HasAttr(const char* name) const { return node_.Find(name) != nullptr; }

int64_t Ctx::Int(const char* name, int64_t default_value) {
  const Attribute* a = Take(name, Attribute::kInt);
  return a == nullptr ? default_value : a->i;
}

int64_t Ctx::Int(const char* name) {
  if (!HasAttr(name)) Fail(std::string("attribute `") + name + "` is missing");
  return Int(name, 0);
}

double Ctx::Float(const char* name, double default_value) {
  const Attribute* a = Take(name, Attribute::kFloat);
  return a == nullptr ? default_value : static_cast<double>(a->f);
}

std::string Ctx::Str(const char* name, const char* default_value) {
  const Attribute* a = Take(name, Attribute::kString);
  return a == nullptr ? default_value : std::string(a->s);
}

Dims Ctx::Ints(const char* name) {
  const Attribute* a = Take(name, Attribute::kInts);
  for (int64_t i : a == nullptr ? Dims() : a->ints) {
    if (Symbols::IsSymbol(i)) Fail(std::string("attribute `") + name + "` holds the number " + std::to_string(i));
  }
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

void Ctx::Fail(const std::string& why) const {
  Throw("`" + Printable(importer_->model().label, 400) + "`: " + NodeLabel(node_) + ": " + why);
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
    Fail("it asks for " + std::to_string(count) + " elements that are not in the file, more than an import may make");
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

Value Ctx::Unknown(DataType dtype, const Dims& dims) {
  Value v;
  v.kind = Value::kTensor;
  v.dtype = dtype;
  v.ranked = true;
  v.dims = dims;
  relay::Var var("operand", importer_->TypeOfValue(v));
  var->checked_type_ = var->type_annotation;
  v.expr = var;
  return v;
}

Dims Ctx::KnownInts(const Value& v) const {
  if (v.kind != Value::kTensor) Unsupported("an operand that is no tensor");
  if (v.host == nullptr) throw NeedsValue{"the value of an operand"};
  if (v.host->is_string || v.rank() > 1) Fail("an operand that should be a list of integers is not");
  Dims out;
  if (v.host->size() > (1 << 20)) Unsupported("a list of more than 2^20 integers");
  Reserve(v.host->size(), 8);
  for (int64_t i = 0; i < v.host->size(); ++i) {
    out.push_back(v.host->IntAt(i));
    if (Symbols::IsSymbol(out.back())) Fail("an operand holds the number " + std::to_string(out.back()));
  }
  return out;
}

double Ctx::KnownScalar(const Value& v) const {
  if (v.host == nullptr) throw NeedsValue{"the value of an operand"};
  if (v.host->is_string || v.host->size() != 1) Fail("an operand that should be one number is not");
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
  if (i < 0 || i >= rank) Fail("an operand of rank " + std::to_string(rank) + " has too few axes");
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
    Fail("axis " + std::to_string(axis) + " is out of range for " + std::to_string(rank) + " axes");
  }
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

}  // namespace baton::onnx
