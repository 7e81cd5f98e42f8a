// SPDX-License-Identifier: Apache-2.0
/// \file importer_impl.h
/// The state of an import; operators see it through Ctx alone, control flow a little more.
#pragma once

#include <baton/ir/structural.h>
#include <relay/types/type_pool.h>

#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "importer.h"
#include "frontend/onnx/reader/op_versions.h"

namespace baton::onnx {

/// Names to values, inner scopes first.
struct Env {
  const Env* outer = nullptr;
  std::unordered_map<std::string_view, Value> values;

  const Value* Find(std::string_view name) const {
    for (const Env* e = this; e != nullptr; e = e->outer) {
      auto it = e->values.find(name);
      if (it != e->values.end()) return &it->second;
    }
    return nullptr;
  }
};

/// What a node's surroundings say about it: operator sets, and attributes of the function call around it.
struct Surroundings {
  const std::vector<OpsetId>* imports = nullptr;
  const std::vector<Attribute>* bound = nullptr;
  const std::unordered_map<std::string_view, const ValueInfo*>* declared = nullptr;
  int depth = 0;
};

class Importer {
 public:
  Importer(std::shared_ptr<Model> model, ImportOptions options);
  Imported Run();

  /// Imports the nodes in order into `env`.
  void Nodes(const std::vector<Node>& nodes, Env* env, const Surroundings& around);
  /// Imports a subgraph with `inputs` for its inputs; its outputs.
  Values Subgraph(const Graph& graph, const Env* outer, const Values& inputs, const Surroundings& around);
  /// One node with its operands at hand: for operators that wait for run time.
  Values One(const Node& node, const Values& inputs, int64_t opset);

  Value CallOp(const Ctx* ctx, const char* op, const Values& args, const NamedAttrs& attrs, bool tuple);
  relay::Expr ExprOf(const Value& v);
  Value FromTensor(const Tensor& t);
  Value FromExpr(const relay::Expr& expr, const Type& type);
  baton::Type TypeOfValue(const Value& v);
  HostPtr Keep(const Tensor& t);

  const Model& model() const { return *model_; }
  const Env* env() const { return env_; }
  const Surroundings& around() const { return around_; }
  size_t problems() const { return problems_.size(); }
  /// Forgets problems found since there were `n`.
  void DropProblems(size_t n) { problems_.resize(n); }
  /// Counts work, so that small files cannot ask for endless unrolling or inlining.
  void Spend(int64_t nodes);
  /// Counts bytes that are allocated because numbers in the file say so.
  void Reserve(int64_t count, int64_t bytes);

 private:
  /// Stand-ins of the declared types for operands that could not be imported; false where a type is not declared.
  bool Declared(const Node& node, const Surroundings& around, Values* inputs);
  void ImportNode(const Node& node, Env* env, const Surroundings& around);
  /// The node with its attributes taken from the call of the function around it.
  Node ResolveAttributes(const Node& given, const Surroundings& around);
  Values RunNode(const Node& node, const OpVersion& version, ImportFn import, Values inputs);
  Values Defer(const Node& node, int64_t opset, const Values& inputs, const std::string& what);
  /// The types of its results as far as they follow from those of its operands; absent values where they do not.
  Values TypesOf(const Node& node, int64_t opset, const Values& inputs);
  Values CallFunction(const Node& node, const FunctionDef& f, const Values& inputs, const Surroundings& around);
  Value Input(const ValueInfo& info);
  // The steps of Run.
  void Initializers(Env* env);
  void GraphInputs(Env* env);
  Values GraphOutputs(const Env& env);
  /// One error that names all that is not supported.
  [[noreturn]] void ThrowProblems() const;
  Imported MakeModule(const Values& outputs, const Env& env);
  int64_t Opset(std::string_view domain, const Surroundings& around) const;
  void Problem(const Node& node, const Surroundings& around, const std::string& why);
  std::string Head() const;

  std::shared_ptr<Model> model_;
  ImportOptions options_;
  std::map<std::tuple<std::string_view, std::string_view, std::string_view>, const FunctionDef*> functions_;
  /// What is not supported: how messages say it, and the operator where it is one's.
  struct ProblemOf {
    std::string text, op;
  };
  std::vector<ProblemOf> problems_;
  std::vector<relay::Var> params_;
  Map<String, NDArray> weights_;
  Env* env_ = nullptr;
  Surroundings around_;
  Span span_;
  // Equal types and attributes of calls are one object.
  relay::TypePool types_;
  std::unordered_set<Attrs, StructuralHasher, StructuralEq> attrs_;
  int64_t budget_;
  int64_t calls_;
  int64_t bytes_;
};

/// A value of this type, item by item where it is a tuple.
Value FromRelayType(const baton::Type& type, const relay::Expr& expr);
NDArray ToNDArray(const Host& h);

/// The row of an operator in the table of all; null for one that is not there.
const OpRow* FindOperator(std::string_view domain, std::string_view op);

}  // namespace baton::onnx
