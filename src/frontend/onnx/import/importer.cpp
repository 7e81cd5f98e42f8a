// SPDX-License-Identifier: Apache-2.0
#include "importer.h"

#include <baton/support/json.h>
#include <baton/support/nearest.h>
#include <relay/types/extent_guards.h>

#include <algorithm>
#include <set>

#include "frontend/onnx/ops/common.h"
#include "frontend/onnx/reader/check.h"
#include "host_values.h"
#include "importer_impl.h"

namespace baton::onnx {
namespace {

std::string DomainName(std::string_view domain) { return std::string(domain.empty() ? "ai.onnx" : domain); }

}  // namespace

Importer::Importer(std::shared_ptr<Model> model, ImportOptions options)
    : model_(std::move(model)), options_(std::move(options)) {
  for (const FunctionDef& f : model_->functions) functions_[{f.domain, f.name, f.overload}] = &f;
  // Inlining and unrolling may multiply the file's nodes by at most this.
  auto nodes = static_cast<int64_t>(model_->graph.nodes.size());
  budget_ = 200000 + 64 * nodes;
  calls_ = 400000 + 256 * nodes;
  auto file = static_cast<int64_t>(model_->storage == nullptr ? 0 : model_->storage->size());
  bytes_ = (int64_t{64} << 20) + 64 * file;
}

std::string Importer::Head() const { return "`" + Printable(model_->label, 400) + "`: "; }

void Importer::CheckNodeBudget(int64_t nodes) {
  budget_ -= nodes;
  if (budget_ < 0) Throw(Head() + "its functions and loops unfold to more nodes than an import may make");
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

void Importer::Nodes(const std::vector<Node>& nodes, Env* env, const Surroundings& around) {
  for (const Node& n : nodes) ImportNode(n, env, around);
}

Values Importer::Inline(const Graph& graph, const Env* outer, const Values& inputs, const Surroundings& around) {
  CheckNodeBudget(1 + static_cast<int64_t>(graph.nodes.size()));
  Env env;
  env.outer = outer;
  if (inputs.size() != graph.inputs.size()) {
    Throw(Head() + "subgraph " + Quote(graph.name) + " takes " + std::to_string(graph.inputs.size()) +
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

void Importer::Initializers(Env* env) {
  for (const Tensor& t : model_->graph.initializers) {
    try {
      Value v = FromTensor(t);
      // A short list of integers is a shape, axes or the like, not a weight.
      bool small = v.host->size() <= 1 || (v.dtype.is_integral() && v.rank() <= 1 && v.host->size() <= 64);
      if (!options_.freeze_params && !v.host->is_string && !small) {
        relay::Var var(std::string(t.name), TypeOfValue(v));
        var->checked_type_ = TypeOfValue(v);
        v.expr = var;
        v.weight = true;
      }
      env->values[t.name] = v;
    } catch (const NodeUnsupported& e) {
      problems_.push_back({"initializer " + Quote(t.name) + ": " + e.why, ""});
      env->values[t.name].kind = Value::kPoison;
    }
  }
  Node none;
  Ctx ctx(this, none, 0, {});
  for (const SparseTensor& t : model_->graph.sparse_initializers) {
    try {
      env->values[t.values.name] = ctx.Constant(DenseOf(ctx, t));
    } catch (const NodeUnsupported& e) {
      problems_.push_back({"initializer " + Quote(t.values.name) + ": " + e.why, ""});
      env->values[t.values.name].kind = Value::kPoison;
    }
  }
}

void Importer::Facts() {
  auto plain = [](std::string_view name) {
    return !name.empty() && name.find_first_of("+*() ") == std::string_view::npos;
  };
  for (const ValueInfo& v : model_->graph.inputs) {
    const frontend::OnnxInput* given = nullptr;
    for (const frontend::OnnxInput& in : options_.inputs) {
      if (in.name == v.name && in.kind == frontend::OnnxInput::kTensor && in.shapes.size() == 1) given = &in;
    }
    for (size_t i = 0; i < v.type.shape.size(); ++i) {
      const Dim& d = v.type.shape[i];
      if (d.value >= 0 || !plain(d.param)) continue;
      const std::string name(d.param);
      plain_names_.push_back(name);
      // Equal names are equal lengths: one that is given for an input holds for all.
      if (given == nullptr || i >= given->shapes[0].size() || given->shapes[0][i] < 0) continue;
      const int64_t n = given->shapes[0][i];
      const PrimExpr known = symbols_.Named(name);
      const auto* before = known.as<IntImmNode>();
      if (before != nullptr && before->value != n) {
        Throw(Head() + "the shapes given say that " + Quote(name) + " is " + std::to_string(before->value) + " and " +
              std::to_string(n));
      }
      symbols_.Bind(name, n);
    }
    for (const std::string& name : given == nullptr ? std::vector<std::string>() : given->names) {
      if (plain(name)) plain_names_.push_back(name);
    }
  }
}

void Importer::GraphInputs(Env* env) {
  if (options_.symbolic) Facts();
  std::vector<std::string> names;
  for (const ValueInfo& v : model_->graph.inputs) names.emplace_back(v.name);
  for (const frontend::OnnxInput& in : options_.inputs) {
    if (std::find(names.begin(), names.end(), in.name) == names.end()) {
      Throw(Head() + "a shape is given for " + Quote(in.name) + ", which is no input" +
            support::DidYouMean(in.name, names));
    }
  }
  for (const ValueInfo& v : model_->graph.inputs) {
    // An initializer of the same name is the input's default; it is imported as a weight.
    if (env->values.find(v.name) == env->values.end()) env->values[v.name] = Input(v);
  }
}

namespace {

/// The meaning of a value of the host, as JSON for Python: {"kind": "sequence", "of": ...}.
support::Json FormOfHostValue(const Value& v) {
  support::Json form = support::Json::Object();
  if (v.kind == Value::kText) {
    support::Json shape = support::Json::Array();
    for (int64_t d : v.dims) shape.Push(d >= 0 ? support::Json(d) : support::Json());
    form.Set("kind", "text");
    form.Set("shape", std::move(shape));
  } else if (IsHostValue(v)) {
    form.Set("kind", v.kind == Value::kSequence ? "sequence" : "optional");
    form.Set("of", FormOfHostValue(ElementOf(v)));
  } else {
    form.Set("kind", "tensor");
    form.Set("dtype", v.kind == Value::kTensor ? DataType2String(v.dtype) : "");
  }
  return form;
}

}  // namespace

Values Importer::GraphOutputs(const Env& env) {
  Values outputs;
  for (const ValueInfo& v : model_->graph.outputs) {
    const Value* found = env.Find(v.name);
    if (found == nullptr) throw InternalError("onnx import: an output is not defined");
    if (found->form && found->form->kind == Form::kHashes) {
      problems_.push_back({"output " + Quote(v.name) + ": it holds strings of an input", ""});
      continue;
    }
    Value out = *found;
    if (out.host && out.host->is_string) {
      out = Text(out);
    } else if (out.kind == Value::kNothing) {
      out = InForm(out, HostValueOf(Value::kOptional, Value()));
    } else if (out.kind == Value::kOptional && v.type.kind != Type::kOptional && v.type.kind != Type::kNone) {
      out = CallHost("OptionalGetElement", {out}, ElementOf(out));  // of a loop's state, which must have a value now
    }
    outputs.push_back(out);
  }
  // A sequence of known length is several results; beside values of the host each output is one.
  if (std::any_of(outputs.begin(), outputs.end(), IsHostValue)) {
    for (Value& v : outputs) {
      if (v.kind == Value::kTuple) v = InForm(v, HostValueOf(Value::kSequence, ElementOf(v)));
    }
  }
  return outputs;
}

void Importer::ThrowProblems() const {
  std::string text = Head() + std::to_string(problems_.size()) +
                     (problems_.size() == 1 ? " part of the model is" : " parts of the model are") + " not supported:";
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

relay::Function Importer::WithForms(relay::Function main, const Values& outputs, const Env& env) {
  auto list = [](const Values& values, bool outputs_alone, bool* any) {
    Array<String> out;
    for (const Value& v : values) {
      const bool sequence = outputs_alone && v.kind == Value::kTuple;
      out.push_back(String(v.form           ? v.form->Json()
                           : IsHostValue(v) ? FormOfHostValue(v).Dump(true, true)
                           : sequence       ? "{\"kind\":\"list\"}"
                                            : ""));
      *any = *any || v.form || IsHostValue(v) || sequence;
    }
    return out;
  };
  Values inputs;
  for (const relay::Var& p : params_) {
    const Value* v = env.Find(p->name_hint().view());
    inputs.push_back(v == nullptr ? Value() : *v);
  }
  for (auto [key, values] :
       {std::pair<const char*, const Values*>{"input_forms", &inputs}, {"output_forms", &outputs}}) {
    bool any = false;
    const Array<String> forms = list(*values, values == &outputs, &any);
    if (any) main = WithAttr(main, key, Any(forms));
  }
  return main;
}

Imported Importer::MakeModule(const Values& outputs, const Env& env) {
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
    for (const Tensor& t : model_->graph.initializers) {
      const Value& v = env.values.at(t.name);
      if (!v.expr.defined() || v.expr.as<relay::VarNode>() == nullptr) continue;
      params_.push_back(Downcast<relay::Var>(v.expr));
      result.params.Set(String(std::string(t.name)), ToNDArray(v.host));
    }
  }
  Array<relay::Var> params(params_);
  relay::Function main(params, body);
  bool tensors = true;  // a sequence becomes several results, for which there are no names
  Array<String> names_out;
  for (size_t i = 0; i < outputs.size(); ++i) {
    tensors = tensors && outputs[i].kind == Value::kTensor;
    names_out.push_back(String(std::string(model_->graph.outputs[i].name)));
  }
  if (tensors) main = WithAttr(main, "output_names", Any(names_out));
  if (!guards_.empty()) main = WithAttr(main, relay::kExtentGuards, Any(guards_));
  main = WithForms(main, outputs, env);
  result.mod = IRModule::FromExpr(main);
  return result;
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
  Initializers(&env);
  GraphInputs(&env);
  const Values outputs = Explore({}, true, [&] {
                           Env own = env;
                           calls_made_.clear(), nested_ = 0;
                           Nodes(g.nodes, &own, around);
                           span_ = Span();
                           return GraphOutputs(own);
                         }).out;
  if (!problems_.empty() && options_.nodes) return {};
  if (!problems_.empty()) ThrowProblems();
  if (outputs.empty()) Throw(Head() + "the graph has no outputs");
  return MakeModule(outputs, env);
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

}  // namespace baton::onnx
