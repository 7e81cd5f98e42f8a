// SPDX-License-Identifier: Apache-2.0
// Axes of one element that `Squeeze` without axes takes away, where lengths are open.
#include <algorithm>

#include "common.h"
#include "frontend/onnx/import/importer_impl.h"

namespace baton::onnx {
namespace {

/// Whether the operator's result has the rank of its operands, where those that are single numbers are left out.
bool KeepsRank(const Node& node) {
  static constexpr const char* kNames[] = {"Abs",   "Add",     "Cast",        "Clip",     "Concat",     "Div",
                                           "Elu",   "Exp",     "HardSigmoid", "Identity", "Log",        "LeakyRelu",
                                           "Mul",   "Neg",     "Pow",         "Relu",     "LogSoftmax", "Sigmoid",
                                           "Slice", "Softmax", "Softplus",    "Sqrt",     "Sub",        "Tanh"};
  return node.domain.empty() && std::find(std::begin(kNames), std::end(kNames), node.op_type) != std::end(kNames);
}

/// Whether `name` is an initializer or a `Constant` of one element.
bool IsNumber(const Graph& graph, std::string_view name) {
  const auto is_one = [](const Tensor& t) { return t.dims.empty() || (t.dims.size() == 1 && t.dims[0] == 1); };
  for (const Tensor& t : graph.initializers) {
    if (t.name == name) return is_one(t);
  }
  for (const Node& n : graph.nodes) {
    if (n.op_type != "Constant" || n.outputs.empty() || n.outputs[0] != name) continue;
    const Attribute* value = n.Find("value");
    if (value == nullptr) return n.Find("value_float") != nullptr || n.Find("value_int") != nullptr;
    return value->tensors.size() == 1 && is_one(value->tensors[0]);
  }
  return false;
}

/// The rank that the model's file gives for `name`, or for what is made of it with the same rank; none where it gives
/// none.
std::optional<size_t> DeclaredRank(const Graph& graph, std::string_view name) {
  for (int steps = 0; steps < 16; ++steps) {
    for (const std::vector<ValueInfo>* list : {&graph.value_info, &graph.outputs}) {
      for (const ValueInfo& v : *list) {
        if (v.name == name && v.type.has_shape) return v.type.shape.size();
      }
    }
    const auto next = std::find_if(graph.nodes.begin(), graph.nodes.end(), [&](const Node& n) {
      if (!KeepsRank(n) || n.outputs.size() != 1) return false;
      if (n.op_type == "Slice") return n.inputs.at(0) == name;
      return std::count(n.inputs.begin(), n.inputs.end(), name) > 0 &&
             std::all_of(n.inputs.begin(), n.inputs.end(), [&](std::string_view in) {
               return in.empty() || in == name || n.op_type == "Concat" || IsNumber(graph, in);
             });
    });
    if (next == graph.nodes.end()) return std::nullopt;
    name = next->outputs[0];
  }
  return std::nullopt;
}

/// 0 where the open length of axis `i` is 1, else 1 (`ones`: 1, else 0), which is an error of the call if it is 1.
Value CheckOfOne(Ctx& c, const Value& x, int64_t i, bool ones) {
  Value found = c.Call("equal", {c.Reshape(c.Slice(c.ShapeOf(x), 0, i, i + 1), {}), c.Int64(1)});
  if (ones) found = c.Call("logical_not", {found});
  const String place(NodeLabel(c.node()) + " without axes, whose operand has an open length that is " +
                     (ones ? "not 1 now, as the shape that the file gives for its result says" : "1 now") +
                     " (give `shape=` to compile for that length)");
  return c.Call("contrib_check_index", {c.Cast(found, DataType::Int(64))},
                {{"extents", IntsAny({1})}, {"axis", i}, {"place", place}});
}

}  // namespace

Dims OnesOf(Ctx& c, Value* x) {
  Dims ones, open;
  for (int64_t i = 0; i < c.Rank(*x); ++i) {
    const int64_t n = x->dims[static_cast<size_t>(i)];
    if (n == 1) ones.push_back(i);
    if (n < 0) open.push_back(i);
  }
  if (open.empty()) return ones;
  const bool of_main = c.importer()->around().depth == 0;
  const auto rank = of_main ? DeclaredRank(c.importer()->model().graph, c.node().outputs.at(0)) : std::nullopt;
  const bool all = rank && *rank + ones.size() + open.size() == x->dims.size();
  Value checks;
  for (int64_t i : open) {
    const int64_t n = x->dims[static_cast<size_t>(i)];
    if (all && Ctx::IsSymbol(n) && c.AssumeEqual(n, 1)) continue;
    Value check = CheckOfOne(c, *x, i, all);
    checks = checks ? c.Add(checks, check) : check;
  }
  if (checks) {
    if (x->dtype.is_bool()) c.Fixed(*x);  // refuses
    const Dims dims = x->dims;
    *x = c.Add(*x, c.Cast(checks, x->dtype));
    x->dims = dims;
  }
  if (all) ones.insert(ones.end(), open.begin(), open.end());
  std::sort(ones.begin(), ones.end());
  return ones;
}

}  // namespace baton::onnx
