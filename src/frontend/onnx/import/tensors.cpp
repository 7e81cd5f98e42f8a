// SPDX-License-Identifier: Apache-2.0
// Tensors of the file and inputs of the graph as values.
#include <algorithm>
#include <cstring>
#include <memory>
#include <set>

#include "frontend/onnx/ops/common.h"
#include "frontend/onnx/reader/reader.h"
#include "host_values.h"
#include "importer_impl.h"

namespace baton::onnx {

HostPtr Importer::Keep(const Tensor& t) {
  if (std::string fault = ShapeFault(t.dims); !fault.empty()) {
    Throw(Head() + "tensor " + Quote(t.name) + " is " + fault);
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
  if (keep != nullptr && keep->mapped() && host->owned.empty()) host->file = keep.get();
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

void Importer::NameLengths(const ValueInfo& info, const Type& type, const frontend::OnnxInput* given, Dims* dims) {
  for (size_t i = 0; i < dims->size(); ++i) {
    if ((*dims)[i] >= 0) continue;
    std::string name = std::string(info.name) + "_" + std::to_string(i);
    if (given != nullptr && given->names.size() == dims->size() && !given->names[i].empty()) {
      name = given->names[i];
    } else if (type.has_shape && !type.shape[i].param.empty()) {
      name = std::string(type.shape[i].param);
    }
    (*dims)[i] = symbols_.NumberOf(symbols_.Formula(name, plain_names_));
  }
}

bool TakesTexts(const Node& node) {
  static const std::set<std::pair<std::string_view, std::string_view>> kOps = {{"", "StringConcat"},
                                                                               {"", "StringNormalizer"},
                                                                               {"", "StringSplit"},
                                                                               {"", "RegexFullMatch"},
                                                                               {"com.microsoft", "Tokenizer"}};
  return kOps.count({node.domain, node.op_type}) != 0;
}

bool Importer::WorksOnTexts() const {
  std::set<std::string_view> strings;
  for (const ValueInfo& v : model_->graph.inputs) {
    if (v.type.kind == Type::kTensor && v.type.elem_type == kString) strings.insert(v.name);
  }
  return std::any_of(model_->graph.nodes.begin(), model_->graph.nodes.end(), [&](const Node& n) {
    if (!n.domain.empty() || n.op_type != "Equal") return TakesTexts(n);
    return std::any_of(n.inputs.begin(), n.inputs.end(), [&](std::string_view i) { return strings.count(i) != 0; });
  });
}

Value Importer::Parameter(std::string_view name, Value looks) {
  relay::Var var(std::string(name), TypeOfValue(looks));
  var->checked_type_ = TypeOfValue(looks);
  looks.expr = var;
  params_.push_back(var);
  return looks;
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
    const baton::Type tuple = TypeOfValue(v);
    return FromRelayType(tuple, Parameter(info.name, v).expr);
  }
  if (const Value looks = OfType(info.type); option == nullptr && IsHostValue(looks))
    return Parameter(info.name, looks);
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
  if (type->elem_type == kString && WorksOnTexts() && (type->has_shape || given != nullptr)) {
    Dims dims(given != nullptr ? given->size() : type->shape.size(), -1);
    for (size_t i = 0; i < dims.size(); ++i) dims[i] = given != nullptr ? (*given)[i] : type->shape[i].value;
    return Parameter(info.name, TextOf(dims));
  }
  if (type->elem_type == kString) {
    auto form = std::make_shared<Form>();
    form->kind = Form::kHashes;
    v.dtype = DataType::Int(64);
    v.form = form;
  }
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
    Throw(Head() + "input " + Quote(info.name) + " is " + fault);
  }
  if (given != nullptr) {
    if (type->has_shape && given->size() != v.dims.size()) {
      Throw(Head() + "input " + Quote(info.name) + " has " + std::to_string(v.dims.size()) +
            " axes; the shape given has " + std::to_string(given->size()));
    }
    v.dims = *given;
    if (std::string fault = ShapeFault(v.dims); !fault.empty()) {
      Throw(Head() + "the shape given for input " + Quote(info.name) + " is that of " + fault);
    }
  }
  if (!v.ranked) {
    problems_.push_back({"input " + Quote(info.name) + ": its rank is not stated; give its shape", ""});
    v.kind = Value::kPoison;
    return v;
  }
  if (options_.symbolic) NameLengths(info, *type, option, &v.dims);
  return Parameter(info.name, v);
}

HostPtr DenseOf(Ctx& c, const SparseTensor& t) {
  Value values = c.FromTensor(t.values), indices = c.FromTensor(t.indices);
  Tensor shape;
  shape.dims = t.dims;
  int64_t n = NumElements(shape);
  c.Reserve(n, std::max(values.dtype.bytes(), 1));
  if (values.host->is_string || indices.host->is_string || values.rank() != 1) Throw("a sparse tensor is malformed");
  int64_t count = values.dims[0], rank = static_cast<int64_t>(t.dims.size());
  bool flat = indices.rank() == 1;
  if (indices.dims.empty() || indices.dims[0] != count || (!flat && (indices.rank() != 2 || indices.dims[1] != rank))) {
    Throw("the indices of sparse tensor `" + Printable(t.values.name) + "` do not fit its values");
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
    if (at < 0 || at >= n) Throw("an index of sparse tensor `" + Printable(t.values.name) + "` lies outside its shape");
    std::memcpy(host->owned.data() + static_cast<size_t>(at) * width,
                values.host->bytes.data() + static_cast<size_t>(k) * width, width);
  }
  host->bytes = host->owned;
  return host;
}

}  // namespace baton::onnx
