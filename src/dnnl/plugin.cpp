// SPDX-License-Identifier: Apache-2.0
// Regions of float32 as rows of oneDNN's primitives.
#include <baton/runtime/json_module.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <string_view>

#include "dnnl/library.h"

namespace baton::dnnl {
namespace {

Dims ShapeOf(const BatonJsonTensor& t) { return Dims(t.shape, t.shape + t.ndim); }
bool IsFloat32(const BatonJsonTensor& t) {
  return t.dtype.code == kDLFloat && t.dtype.bits == 32 && t.dtype.lanes == 1;
}

/// The integers of an attribute; `otherwise` where the node has none.
Dims Ints(const BatonJsonNode& node, const char* key, Dims otherwise) {
  int32_t n = 0;
  const char* const* values = BatonJsonAttrOf(&node, key, &n);
  if (!values) return otherwise;
  Dims out;
  for (int32_t i = 0; i < n; ++i) out.push_back(std::strtoll(values[i], nullptr, 10));
  return out;
}
bool Is(const BatonJsonNode& node, const char* key, std::string_view value) {
  int32_t n = 0;
  const char* const* values = BatonJsonAttrOf(&node, key, &n);
  return !values || n == 0 || values[0] == value || std::string_view(values[0]).empty();
}

/// The parts of a node's name: "nn.conv2d", "dnnl.conv2d_bias_relu".
struct Kind {
  bool conv, dense, relu, add, multiply, follows;  ///< `follows`: relu behind a convolution or product
};
Kind KindOf(std::string_view name) {
  const bool composite = name.starts_with("dnnl.");
  const bool conv = name == "nn.conv2d" || name.starts_with("dnnl.conv2d"),
             dense = name == "nn.dense" || name.starts_with("dnnl.dense");
  return {.conv = conv,
          .dense = dense,
          .relu = name == "nn.relu",
          .add = name == "add",
          .multiply = name == "multiply",
          .follows = composite && name.ends_with("relu")};
}

/// Shapes of a sum's or product's operand with ones in front: oneDNN broadcasts dimensions of 1 of the second one.
Dims Wide(const Dims& shape, size_t ndim) {
  Dims out(ndim - shape.size(), 1);
  out.insert(out.end(), shape.begin(), shape.end());
  return out;
}

bool Takes(const BatonJsonNode& node, const BatonJsonTensor* inputs, int32_t num_inputs) {
  const Kind kind = KindOf(node.name);
  if (!IsFloat32(node.outputs[0]) || node.outputs[0].ndim < 1 || node.outputs[0].ndim > 5) return false;
  for (int32_t i = 0; i < num_inputs; ++i) {
    if (!IsFloat32(inputs[i]) || BatonJsonCount(&inputs[i]) == 0) return false;
  }
  const Dims out = ShapeOf(node.outputs[0]);
  if (kind.conv) {
    return num_inputs == 2 && inputs[0].ndim == 4 && inputs[1].ndim == 4 && Is(node, "data_layout", "NCHW") &&
           Is(node, "kernel_layout", "OIHW") && Is(node, "out_layout", "NCHW") && BatonJsonCount(node.outputs) > 0;
  }
  if (kind.dense) return num_inputs == 2 && inputs[0].ndim == 2 && inputs[1].ndim == 2;
  if (kind.relu) return true;
  if (!(kind.add || kind.multiply) || num_inputs != 2) return false;
  // The first operand has the shape of the result, or the second has.
  return std::any_of(inputs, inputs + 2, [&](const BatonJsonTensor& t) { return ShapeOf(t) == out; });
}

/// A step: a primitive and the nodes whose memory it takes.
struct Step {
  Handle primitive;
  std::vector<std::pair<int, int32_t>> args;  // oneDNN's number, node
  std::vector<std::pair<int, Handle>> own;    // memory that stays: weights in another order
  Handle view = nullptr;                      // weights of groups that are not constant: the memory of `viewed`
  int32_t viewed = -1;
};

class Program {
 public:
  explicit Program(const BatonJsonGraph* graph) : library_(Library::Get()), graph_(graph) {
    memory_.resize(static_cast<size_t>(graph->num_nodes));
    for (int32_t i = 0; i < graph->num_nodes; ++i) {
      const BatonJsonNode& node = graph->nodes[i];
      if (!IsFloat32(node.outputs[0])) throw Failure{"a tensor is not float32"};
      const Desc desc = library_.Plain(ShapeOf(node.outputs[0]));
      void* data = node.kind == kBatonJsonConst ? BatonJsonData(node.constant) : nullptr;
      memory_[static_cast<size_t>(i)] = library_.Memory(desc.get(), data);
      if (node.kind == kBatonJsonKernel) Add(i, node);
    }
    // Results are written in place, where an argument is not a result too.
    for (int32_t r = 0; r < graph->num_results; ++r) {
      const int32_t node = graph->results[r].node;
      bool once = graph->nodes[node].kind == kBatonJsonKernel;
      for (int32_t q = 0; q < r; ++q) once = once && graph->results[q].node != node;
      in_place_.push_back(once);
      if (!once) copies_.push_back(CopyOf(node, r));
    }
  }

  void Run(DLTensor* const* args) {
    for (int32_t i = 0; i < graph_->num_inputs; ++i) {
      library_.SetData(Of(graph_->inputs[i]), BatonJsonData(args[i]));
    }
    DLTensor* const* results = args + graph_->num_inputs;
    for (int32_t r = 0; r < graph_->num_results; ++r) {
      if (in_place_[static_cast<size_t>(r)]) library_.SetData(Of(graph_->results[r].node), BatonJsonData(results[r]));
    }
    for (const Step& step : steps_) Do(step);
    for (const Copy& copy : copies_) {
      library_.SetData(copy.to, BatonJsonData(results[copy.result]));
      library_.Run(copy.primitive, {{kArgSrc, Of(copy.from).get()}, {kArgDst, copy.to.get()}});
    }
  }

 private:
  struct Copy {
    Handle primitive, to;
    int32_t from, result;
  };
  const Handle& Of(int32_t node) const { return memory_[static_cast<size_t>(node)]; }
  Dims Shape(int32_t node) const { return ShapeOf(graph_->nodes[node].outputs[0]); }
  Copy CopyOf(int32_t node, int32_t result) const {
    const Desc desc = library_.Plain(Shape(node));
    return {library_.Primitive(library_.Reorder(desc.get(), desc.get())), library_.Memory(desc.get(), nullptr), node,
            result};
  }
  void Do(const Step& step) const {
    std::vector<Arg> args;
    for (const auto& [what, node] : step.args) args.push_back({what, Of(node).get()});
    for (const auto& [what, memory] : step.own) args.push_back({what, memory.get()});
    if (step.view) {
      library_.SetData(step.view, library_.DataOf(Of(step.viewed)));
      args.push_back({kArgWeights, step.view.get()});
    }
    library_.Run(step.primitive, args);
  }

  void Add(int32_t at, const BatonJsonNode& node) {
    const Kind kind = KindOf(node.name);
    if (kind.conv || kind.dense) {
      Product(at, node, kind);
    } else if (kind.relu) {
      const Desc desc = library_.Plain(Shape(at));
      steps_.push_back({library_.Primitive(library_.Relu(desc)), {{kArgSrc, node.inputs[0].node}, {kArgDst, at}}, {}});
    } else if ((kind.add || kind.multiply) && node.num_inputs == 2) {
      int32_t a = node.inputs[0].node, b = node.inputs[1].node;
      const Dims out = Shape(at);
      if (Shape(a) != out) std::swap(a, b);  // both are commutative
      if (Shape(a) != out || Shape(b).size() > out.size())
        throw Failure{"operands of shapes that it does not broadcast"};
      const Desc left = library_.Plain(out), right = library_.Plain(Wide(Shape(b), out.size())),
                 dst = library_.Plain(out);
      steps_.push_back({library_.Primitive(library_.Binary(kind.add ? kBinaryAdd : kBinaryMul, left, right, dst)),
                        {{kArgSrc, a}, {kArgSrc1, b}, {kArgDst, at}},
                        {}});
    } else {
      throw Failure{std::string("there is no code for `") + node.name + "`"};
    }
  }

  /// A convolution or a product: its data, weights of as many dimensions, perhaps a bias.
  void Product(int32_t at, const BatonJsonNode& node, const Kind& kind) {
    const size_t ndim = kind.conv ? 4 : 2;
    int32_t data = -1, weights = -1, bias = -1;
    for (int32_t i = 0; i < node.num_inputs; ++i) {
      const int32_t input = node.inputs[i].node;
      int32_t& role = data < 0                                                           ? data
                      : Shape(input).size() == ndim && weights < 0 && !IsBias(input, at) ? weights
                                                                                         : bias;
      role = input;
    }
    if (data < 0 || weights < 0 || Shape(data).size() != ndim)
      throw Failure{std::string("the arguments of `") + node.name + "`"};
    const Dims out = Shape(at);
    Dims order = Shape(weights);
    Library::Convolution c;
    if (kind.conv) {
      c.strides = Ints(node, "strides", {1, 1});
      c.dilates = Ints(node, "dilation", {1, 1});
      for (int64_t& d : c.dilates) --d;
      Dims padding = Ints(node, "padding", {0, 0});
      if (padding.size() == 1) padding.resize(2, padding[0]);
      if (padding.size() == 2) padding.insert(padding.end(), {padding[0], padding[1]});
      if (padding.size() != 4 || c.strides.size() != 2 || c.dilates.size() != 2)
        throw Failure{"attributes of a convolution"};
      c.before = {padding[0], padding[1]}, c.after = {padding[2], padding[3]};
      const int64_t groups = Ints(node, "groups", {1})[0];
      if (groups > 1) {
        order[0] /= groups;
        order.insert(order.begin(), groups);
      }
    }
    const Desc src = library_.Plain(Shape(data)), any = library_.Any(order), plain = library_.Plain(order),
               dst = library_.Plain(out);
    const Desc flat = library_.Plain({out[1]});
    const Desc* b = bias < 0 ? nullptr : &flat;
    if (bias >= 0 && BatonJsonCount(graph_->nodes[bias].outputs) != out[1]) throw Failure{"a bias of another length"};
    const auto made = [&](const Desc& w) {
      return kind.conv ? library_.ConvolutionOf(c, src, w, b, dst, kind.follows)
                       : library_.InnerProduct(src, w, b, dst, kind.follows);
    };
    // Constant weights are brought into the order that the primitive likes best, once.
    const bool constant = graph_->nodes[weights].kind == kBatonJsonConst;
    const Handle description = made(constant ? any : plain);
    Step step{library_.Primitive(description), {{kArgSrc, data}, {kArgDst, at}}, {}};
    if (bias >= 0) step.args.push_back({kArgBias, bias});
    const void* liked = library_.WeightsOf(description);
    if (!constant) {
      step.view = library_.Memory(plain.get(), nullptr);
      step.viewed = weights;
      steps_.push_back(std::move(step));
      return;
    }
    void* values = BatonJsonData(graph_->nodes[weights].constant);
    const Handle given = library_.Memory(plain.get(), values), kept = library_.Memory(liked, nullptr);
    if (library_.Same(plain.get(), liked)) {
      step.own.push_back({kArgWeights, given});
    } else {
      library_.Run(library_.Primitive(library_.Reorder(plain.get(), liked)),
                   {{kArgSrc, given.get()}, {kArgDst, kept.get()}});
      step.own.push_back({kArgWeights, kept});
    }
    steps_.push_back(std::move(step));
  }
  /// Whether an input has one element a channel.
  bool IsBias(int32_t input, int32_t at) const {
    const Dims shape = Shape(input), out = Shape(at);
    const int64_t count = BatonJsonCount(graph_->nodes[input].outputs);
    return count == out[1] && shape.size() == 4 && shape[1] == out[1] && shape[0] == 1;
  }

  const Library& library_;
  const BatonJsonGraph* graph_;
  std::vector<Handle> memory_;
  std::vector<Step> steps_;
  std::vector<bool> in_place_;
  std::vector<Copy> copies_;
};

/// Calls f, and puts what it throws into *error.
template <class F>
int Guarded(const char** error, F f) {
  static thread_local std::string said;
  try {
    f();
    return 0;
  } catch (const Failure& failure) {
    said = failure.text;
  } catch (const std::exception& e) {
    said = e.what();
  }
  *error = said.c_str();
  return 1;
}

int Init(const BatonJsonGraph* graph, void** state, const char** error) {
  return Guarded(error, [&] { *state = new Program(graph); });
}
int Run(void* state, DLTensor* const* args, int32_t, const char** error) {
  return Guarded(error, [&] { static_cast<Program*>(state)->Run(args); });
}
void Free(void* state) { delete static_cast<Program*>(state); }
int TakesNode(const BatonJsonNode* node, const BatonJsonTensor* inputs, int32_t num_inputs) {
  return Takes(*node, inputs, num_inputs);
}

}  // namespace
}  // namespace baton::dnnl

extern "C" __attribute__((visibility("default"))) const BatonJsonPlugin* baton_json_plugin(void) {
  static const BatonJsonPlugin plugin = {sizeof(BatonJsonPlugin), kBatonJsonPluginVersion, "dnnl",
                                         baton::dnnl::Init,       baton::dnnl::Run,        baton::dnnl::Free,
                                         baton::dnnl::TakesNode};
  return &plugin;
}
/// Why there is no oneDNN; "" where there is one. The text stays.
extern "C" __attribute__((visibility("default"))) const char* baton_dnnl_why_none(void) {
  static const std::string why = baton::dnnl::Library::WhyNone();
  return why.c_str();
}
