// SPDX-License-Identifier: Apache-2.0
#include "host/onnx_node.h"

namespace baton::host {

OnnxNode::OnnxNode(const Params& p, const Arrays& in) : params_(p), in_(in) {
  const support::Json& present = p.At("present");
  if (!present.is_array()) Fail("parameter `present` is no list");
  int next = 0;
  for (const support::Json& there : present.AsArray()) {
    if (there.kind() != support::Json::kBool) Fail("parameter `present` holds true and false");
    place_.push_back(there.AsBool() ? next++ : -1);
  }
  if (next != static_cast<int>(in.size())) Fail(Cat("it takes ", next, " tensors, got ", in.size()));
  if (!p.At("dtypes").is_array()) Fail("parameter `dtypes` is no list");
}

const NDArray& OnnxNode::Get(size_t i) const {
  if (!Has(i)) Fail(Cat("operand ", i, " is missing"));
  return in_[place_[i]];
}

Ints OnnxNode::IntsOf(size_t i, const char* attribute) const {
  if (!Has(i)) return attribute && params_.Find(attribute) ? params_.Ints(attribute) : Ints();
  const NDArray& a = Get(i);
  Want(params_, in_, place_[i], a.dtype().is_integral() && a->ndim <= 1, "a list of integers");
  return a.ToInts();
}

int64_t OnnxNode::IntOf(size_t i) const {
  const NDArray& a = Get(i);
  Want(params_, in_, place_[i], a.dtype().is_integral() && a.numel() == 1, "one integer");
  return a.GetInt(0);
}

double OnnxNode::NumberOf(size_t i) const {
  const NDArray& a = Get(i);
  Want(params_, in_, place_[i], a.numel() == 1, "one number");
  return a.GetDouble(0);
}

int64_t OnnxNode::Int(const char* name, int64_t otherwise) const {
  return params_.Find(name) ? params_.Int(name) : otherwise;
}

std::string OnnxNode::Text(const char* name, const char* otherwise) const {
  return params_.Find(name) ? params_.Text(name) : otherwise;
}

int64_t OnnxNode::Axis(int64_t axis, int64_t rank) const {
  if (axis < -rank || axis >= rank) Fail(Cat("axis ", axis, " for a tensor of rank ", rank));
  return axis < 0 ? axis + rank : axis;
}

DataType OnnxNode::ResultType(size_t i) const {
  const auto& list = params_.At("dtypes").AsArray();
  if (i >= list.size() || !list[i].is_string()) Fail(Cat("the dtype of result ", i, " is not given"));
  return runtime::String2DataType(list[i].AsString());
}

}  // namespace baton::host
