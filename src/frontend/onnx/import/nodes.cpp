// SPDX-License-Identifier: Apache-2.0
// One node: its importer runs, its function is inlined, or it waits for run time.
#include <baton/runtime/interrupt.h>

#include <algorithm>
#include <set>

#include "deferred_nodes.h"
#include "domains.h"
#include "frontend/onnx/ops/common.h"
#include "frontend/onnx/reader/check.h"
#include "host_values.h"
#include "importer_impl.h"

namespace baton::onnx {
namespace {

constexpr int kMaxFunctionDepth = 100;

/// A copy of the attribute's value under another name; graphs and types cannot be copied.
Attribute Renamed(std::string_view name, const Attribute& from) {
  Attribute b;
  b.name = name, b.kind = from.kind, b.f = from.f, b.i = from.i, b.s = from.s, b.floats = from.floats,
  b.ints = from.ints;
  b.strings = from.strings, b.tensors = from.tensors, b.source = from.source;
  return b;
}

}  // namespace

namespace {

/// Operators whose results are elements of their operands, whatever these stand for.
bool MovesElements(const Node& node) {
  static const std::set<std::string_view> kMoves = {"Identity",  "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Expand",
                                                    "Transpose", "Gather",  "Slice",   "Concat",  "Split",     "Tile"};
  return node.domain.empty() && kMoves.count(node.op_type) != 0;
}

/// The operator's meaning. ONNX Runtime's operators have one version; it has more of them in ONNX's own domain than
/// ONNX, and takes LayerNormalization in every version of the operator set.
OpVersion VersionOf(const Node& node, int64_t opset, const OpRow* row) {
  OpVersion version = FindOpVersion(node.domain, node.op_type, opset);
  if (row == nullptr) return version;
  const bool added = node.domain.empty() && (version.first == 0 || node.op_type == "LayerNormalization");
  if (version.since == 0 && (added || IsOnnxRuntimeDomain(node.domain))) {
    version.since = version.first = std::max(version.first, 1);
  }
  return version;
}

[[noreturn]] void Unknown(const Node& node) {
  const std::string advice = DomainAdvice(node.domain);
  throw NodeUnsupported{advice.empty() ? "no such operator is known" : "no such operator is known: " + advice};
}

bool SameForm(const Form& a, const Form& b) { return a.kind == b.kind && a.kind != Form::kMaps && a.texts == b.texts; }

}  // namespace

Values Importer::RunNode(const Node& node, const OpVersion& version, ImportFn import, Values inputs) {
  const std::shared_ptr<const Form> form = inputs.empty() ? nullptr : inputs[0].form;
  if (form && MovesElements(node) && form->kind != Form::kMaps) {
    for (Value& v : inputs) {
      if (v.form && SameForm(*v.form, *form)) v.form = nullptr;
    }
    if (node.op_type == "Concat") {
      for (const Value& v : inputs) {
        if (v.form || (v.host && v.host->is_string)) throw NodeUnsupported{"strings of several kinds"};
      }
    }
    Values out = RunNode(node, version, import, inputs);
    for (Value& v : out) v.form = form;
    return out;
  }
  Ctx ctx(this, node, version.since, std::move(inputs));
  Values out;
  try {
    out = import(ctx);
  } catch (const runtime::SizeOverflow& e) {
    ctx.Fail(e.what());
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
  const OpRow* row = FindOperator(node.domain, node.op_type);
  if (row == nullptr) throw InternalError("onnx import: no such operator");
  OpVersion version = VersionOf(node, opset, row);
  Values out = RunNode(node, version, row->import, inputs);
  around_ = Surroundings{};
  return out;
}

Values Importer::TypesOf(const Node& node, int64_t opset, const Values& inputs) {
  const OpRow* row = FindOperator(node.domain, node.op_type);
  if (row == nullptr || row->types == nullptr) return {};
  Ctx ctx(this, node, VersionOf(node, opset, row).since, inputs);
  try {
    return row->types(ctx);
  } catch (const NeedsValue&) {
    return {};
  }
}

Values Importer::Defer(const Node& node, int64_t opset, Values inputs, const std::string& what) {
  for (const Attribute& a : node.attributes) {
    if (!a.graphs.empty()) throw NodeUnsupported{"it needs " + what + " at compile time"};
  }
  Values types = TypesOf(node, opset, inputs);
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i].empty()) continue;
    if (i >= types.size()) types.resize(i + 1);
    Value& t = types[i];
    if (IsHostValue(t)) continue;
    const ValueInfo* info = nullptr;
    if (around_.declared != nullptr) {
      auto it = around_.declared->find(node.outputs[i]);
      if (it != around_.declared->end()) info = it->second;
    }
    if (!t.ranked && info != nullptr && info->type.kind == Type::kTensor && info->type.has_shape) {
      t.kind = Value::kTensor;
      t.ranked = true;
      t.dtype = FromOnnxType(info->type.elem_type);
      // A declared type does not prove a value's lengths.
      t.dims.assign(info->type.shape.size(), -1);
    }
    if (std::string fault = ShapeFault(t.dims); !fault.empty()) throw NodeUnsupported{fault};
    if (!t.ranked || t.dtype.is_void()) throw NodeUnsupported{"it needs " + what + " at compile time"};
  }
  types.resize(node.outputs.size());
  Values operands;
  std::vector<bool> present;
  bool values = std::any_of(types.begin(), types.end(), IsHostValue);
  for (Value& v : inputs) {
    present.push_back(v.kind != Value::kAbsent);
    if (v.kind == Value::kAbsent) continue;
    if (v.host && v.host->is_string) v = Text(v);
    if (v.kind != Value::kTensor || !v.ranked) {
      if (v.kind != Value::kTuple && !IsHostValue(v)) throw NodeUnsupported{"it needs " + what + " at compile time"};
      values = true;
    }
    operands.push_back(v);
  }
  Value v = CallOp(nullptr, values ? kHostValueOp : kDeferredOp, operands,
                   DeferredAttributes(node, opset, present, types), false);
  if (types.size() == 1) return {FormedAs(v, types[0])};
  for (size_t i = 0; i < types.size(); ++i) v.items[i] = FormedAs(v.items[i], types[i]);
  return v.items;
}

Values Importer::CallFunction(const Node& node, const FunctionDef& f, const Values& inputs,
                              const Surroundings& around) {
  if (around.depth >= kMaxFunctionDepth)
    Throw(Head() + "functions call functions more than " + std::to_string(kMaxFunctionDepth) + " deep");
  CheckNodeBudget(1 + static_cast<int64_t>(f.nodes.size()));
  if (inputs.size() > f.inputs.size()) {
    Throw(Head() + NodeLabel(node) + " has " + std::to_string(inputs.size()) + " operands, its function takes " +
          std::to_string(f.inputs.size()));
  }
  Env env;
  for (size_t i = 0; i < f.inputs.size(); ++i) env.values[f.inputs[i]] = i < inputs.size() ? inputs[i] : Value();
  std::vector<Attribute> bound;
  for (const Attribute& a : node.attributes) {
    bool known = std::find(f.attributes.begin(), f.attributes.end(), a.name) != f.attributes.end();
    for (const Attribute& d : f.attribute_defaults) known = known || d.name == a.name;
    if (!known) throw NodeUnsupported{"attribute " + Quote(a.name) + ", which its function does not take"};
    if (!a.graphs.empty() || !a.types.empty() || !a.sparse_tensors.empty()) {
      throw NodeUnsupported{"attribute " + Quote(a.name) +
                            ": graphs, types and sparse tensors cannot be passed to functions"};
    }
    bound.push_back(Renamed(a.name, a));
  }
  for (const Attribute& d : f.attribute_defaults) {
    if (node.Find(d.name) == nullptr) bound.push_back(Renamed(d.name, d));
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

Node Importer::ResolveAttributes(const Node& given, const Surroundings& around) {
  Node resolved;
  resolved.name = given.name, resolved.op_type = given.op_type, resolved.domain = given.domain;
  resolved.overload = given.overload, resolved.inputs = given.inputs, resolved.outputs = given.outputs;
  for (const Attribute& a : given.attributes) {
    const Attribute* from = &a;
    if (!a.ref_attr_name.empty()) {
      from = nullptr;
      for (const Attribute& b : *around.bound) {
        if (b.name == a.ref_attr_name) from = &b;
      }
      if (from == nullptr) continue;  // not given and without a default: the same as absent
    }
    if (!from->graphs.empty() || !from->types.empty() || !from->sparse_tensors.empty()) {
      Problem(given, around, "attribute " + Quote(a.name) + ": graphs beside attributes of a function");
      continue;
    }
    resolved.attributes.push_back(Renamed(a.name, *from));
  }
  return resolved;
}

void Importer::ImportNode(const Node& given, Env* env, const Surroundings& around) {
  runtime::CheckInterrupt();  // a node takes long enough to ask at each
  Node resolved;
  const Node* node = &given;
  bool refers = std::any_of(given.attributes.begin(), given.attributes.end(),
                            [](const Attribute& a) { return !a.ref_attr_name.empty(); });
  if (refers) {
    resolved = ResolveAttributes(given, around);
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
  const Values given_inputs = options_.nodes ? inputs : Values();
  std::vector<std::string> calls = std::exchange(calls_made_, {});
  int64_t since = 0;
  std::string why;
  ++nested_;
  Values out;
  bool failed = poisoned;
  span_ = Span(SourceName(String(NodeLabel(*node))), 0, 0, 0, 0);
  try {
    auto f = functions_.find({node->domain, node->op_type, node->overload});
    const OpRow* row = FindOperator(node->domain, node->op_type);
    if (f != functions_.end() && row == nullptr) {
      if (!poisoned) out = CallFunction(*node, *f->second, inputs, around);
    } else {
      OpVersion version = VersionOf(*node, opset, row);
      since = version.since;
      if (version.first == 0) Unknown(*node);
      if (version.since == 0) throw NodeUnsupported{"the operator came with version " + std::to_string(version.first)};
      if (version.deprecated) throw NodeUnsupported{"the operator is no longer in this version"};
      if (row == nullptr) throw NodeUnsupported{"the operator is not supported"};
      // After an unsupported node, continue with the declared types, so that all errors are reported at once.
      bool looks = poisoned && Declared(*node, around, &inputs);
      if (!poisoned || looks) {
        // Restored on every path: a collected error must not leave an inner scope behind.
        struct Scope {
          Importer* importer;
          Env* env;
          Surroundings around;
          ~Scope() { importer->env_ = env, importer->around_ = around; }
        } outer{this, env_, around_};
        env_ = env;
        around_ = around;
        try {
          out = RunNode(*node, version, row->import, inputs);
        } catch (const NeedsValue& needs) {
          if (!looks) out = Defer(*node, opset, inputs, needs.what);
        } catch (const CompileError&) {
          if (!looks) throw;  // declared types may be wrong
        }
      }
    }
  } catch (const NodeUnsupported& e) {
    Problem(*node, around, why = e.why);
    failed = true;
  } catch (const NeedsValue& e) {
    Problem(*node, around, why = "it needs " + e.what + " at compile time");
    failed = true;
  }
  --nested_;
  for (size_t i = 0; i < node->outputs.size(); ++i) {
    if (node->outputs[i].empty()) continue;
    Value v;
    if (failed) {
      v.kind = Value::kPoison;
    } else if (i < out.size() && out[i].kind != Value::kAbsent) {
      v = out[i];
    } else {
      Problem(*node, around, why = "output " + std::to_string(i) + " is not computed");
      v.kind = Value::kPoison;
    }
    env->values[node->outputs[i]] = v;
  }
  if (options_.nodes) Note(*node, given_inputs, *env, since, poisoned, std::move(why));
  calls_made_ = std::move(calls);
}

void Importer::Note(const Node& node, const Values& inputs, const Env& env, int64_t version, bool poisoned,
                    std::string why) {
  const auto looks = [](std::string_view name, const Value* v) {
    frontend::OnnxValue out{.name = Printable(name)};
    if (v == nullptr || v->kind != Value::kTensor) return out;
    out.dtype = DataType2String(v->dtype), out.ranked = v->ranked;
    for (int64_t d : v->dims) out.shape.push_back(d < 0 ? -1 : d);
    return out;
  };
  frontend::OnnxNode row;
  row.label = NodeLabel(node), row.domain = Printable(node.domain), row.op = Printable(node.op_type);
  row.version = version, row.calls = calls_made_, row.why = std::move(why), row.depth = nested_;
  row.after_unsupported = poisoned;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    row.inputs.push_back(looks(node.inputs[i], i < inputs.size() ? &inputs[i] : nullptr));
  }
  for (std::string_view name : node.outputs) {
    if (!name.empty()) row.outputs.push_back(looks(name, env.Find(name)));
  }
  options_.nodes->push_back(std::move(row));
}

}  // namespace baton::onnx
