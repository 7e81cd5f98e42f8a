// SPDX-License-Identifier: Apache-2.0
/// \file importer_impl.h
/// The state of an import. Operators use it through Ctx alone; control flow imports subgraphs, too.
#pragma once

#include <baton/ir/structural.h>
#include <relay/types/type_pool.h>

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "frontend/onnx/reader/op_versions.h"
#include "importer.h"
#include "symbols.h"

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

/// The context of a node: operator sets, and attributes of the function call around it.
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
  /// Imports the body of a loop with `inputs` for its inputs; its outputs.
  Values Subgraph(const Graph& graph, const Env* outer, const Values& inputs, const Surroundings& around);
  /// The same of a graph that runs whenever the graph around it does, which decides its Ifs.
  Values Inline(const Graph& graph, const Env* outer, const Values& inputs, const Surroundings& around);
  /// A branch of an If, which may wait for what Ifs within it decide.
  Values Branch(const Graph& graph, const Env* outer, const Surroundings& around);
  /// Both branches; one that cannot be imported for these shapes is an error where it is taken.
  std::pair<Values, Values> Branches(const Value& condition, const Graph& yes, const Graph& no, const Env* outer,
                                     const Surroundings& around);
  /// An If of an open condition begins: its number among those of the graph that is imported.
  size_t EnterIf();
  /// Whether such an If is taken to hold; nothing where its branches are to be joined.
  std::optional<bool> Decided(size_t which);
  /// Its branches cannot be joined: the graph is imported again with either of them.
  [[noreturn]] void LeaveOpen(size_t which, const Value& condition);
  /// Each of `a` or `b`, whose common types are those of `both`.
  Values Choice(const Value& condition, Values a, Values b, const Values& both);
  /// Imports one node with these operands: for operators that wait for run time.
  Values One(const Node& node, const Values& inputs, int64_t opset);

  Value CallOp(const Ctx* ctx, const char* op, const Values& args, const NamedAttrs& attrs, bool tuple);
  relay::Expr ExprOf(const Value& v);
  Value FromTensor(const Tensor& t);
  Value FromExpr(const relay::Expr& expr, const Type& type);
  baton::Type TypeOfValue(const Value& v);
  /// `v` in the form of `like`, which Join has made of it: known sequences and optionals become values of the host.
  Value InForm(const Value& v, const Value& like);
  /// Strings as a value of the host, constants too.
  Value Text(const Value& v);
  /// A call of the function of the host for an ONNX operator without attributes.
  Value CallHost(const char* op, const Values& operands, const Value& result);
  /// The tensors of a sequence of the host as one tensor, with a new first axis.
  Value Stacked(const Value& sequence);
  HostPtr Keep(const Tensor& t);
  /// A value of this type, item by item where it is a tuple.
  Value FromRelayType(const baton::Type& type, const relay::Expr& expr);
  /// An extent that both broadcast to; INT64_MIN where they never do. Assumptions about symbols are noted.
  int64_t BroadcastLength(int64_t a, int64_t b);
  /// False where two lengths are never equal; where that is open it is noted as assumed.
  bool AssumeEqual(int64_t a, int64_t b);
  Symbols* symbols() { return &symbols_; }

  const Model& model() const { return *model_; }
  const Env* env() const { return env_; }
  const Surroundings& around() const { return around_; }
  size_t problems() const { return problems_.size(); }
  /// Drops all problems but the first `n`.
  void DropProblems(size_t n) { problems_.resize(n); }
  /// Counts nodes, so that small files cannot ask for endless unrolling or inlining.
  void CheckNodeBudget(int64_t nodes);
  /// Counts bytes that are allocated because numbers in the file say so.
  void Reserve(int64_t count, int64_t bytes);

 private:
  /// Stand-ins of the declared types for operands that could not be imported; false where a type is not declared.
  bool Declared(const Node& node, const Surroundings& around, Values* inputs);
  void ImportNode(const Node& node, Env* env, const Surroundings& around);
  /// The node with its attributes taken from the call of the function around it.
  Node ResolveAttributes(const Node& given, const Surroundings& around);
  /// Notes a node for `options.nodes`. inputs: as they were before the import; failed: its results are not there.
  void Note(const Node& node, const Values& inputs, const Env& env, int64_t version, bool poisoned, std::string why);
  Values RunNode(const Node& node, const OpVersion& version, ImportFn import, Values inputs);
  Values Defer(const Node& node, int64_t opset, Values inputs, const std::string& what);
  /// The types of its results as far as they follow from those of its operands; absent values where they do not.
  Values TypesOf(const Node& node, int64_t opset, const Values& inputs);
  Values CallFunction(const Node& node, const FunctionDef& f, const Values& inputs, const Surroundings& around);
  Value Input(const ValueInfo& info);
  /// A parameter of main that looks so.
  Value Parameter(std::string_view name, Value looks);
  /// Open lengths of an input as symbols: with the name that is given, else the model's, else the input's and the axis.
  void NameLengths(const ValueInfo& info, const Type& type, const frontend::OnnxInput* given, Dims* dims);
  // The steps of Run.
  void Initializers(Env* env);
  void GraphInputs(Env* env);
  Values GraphOutputs(const Env& env);
  /// One error that names all that is not supported.
  [[noreturn]] void ThrowProblems() const;
  /// Main with the meaning of its inputs and outputs other than numbers.
  relay::Function WithForms(relay::Function main, const Values& outputs, const Env& env);
  Imported MakeModule(const Values& outputs, const Env& env);
  int64_t Opset(std::string_view domain, const Surroundings& around) const;
  /// The node that is imported, else `op`.
  std::string Place(const char* op) const;
  /// Names of symbols that stand alone as lengths of inputs, and symbols that a given shape makes literals.
  void Facts();
  /// Whether nodes work on strings themselves, not only on what they are equal to.
  bool WorksOnTexts() const;
  void Problem(const Node& node, const Surroundings& around, const std::string& why);
  std::string Head() const;

  std::shared_ptr<Model> model_;
  ImportOptions options_;
  std::map<std::tuple<std::string_view, std::string_view, std::string_view>, const FunctionDef*> functions_;
  /// An unsupported feature: its text in messages, and its operator if it has one.
  struct ProblemOf {
    std::string text, op;
  };
  std::vector<ProblemOf> problems_;
  /// Ifs of a graph that are decided, by their numbers, in order.
  using Path = std::vector<std::pair<size_t, bool>>;
  struct Decisions {
    Path taken;
    size_t asked = 0, seen = 0;
  };
  /// The result of an import with some Ifs decided.
  struct Way {
    bool fits = false;   ///< it is imported; else `why` not
    bool apart = false;  ///< ways have results without a common type
    Values out;
    std::string why;
    std::vector<ProblemOf> problems;
    Array<Any> guards;
  };
  /// The result of `import`; again with either branch of each If that it leaves open. `main`: of the whole model.
  Way Explore(const Path& taken, bool main, const std::function<Values()>& import);
  Way Merge(const Value& condition, const std::string& place, const Way& yes, const Way& no, bool main);
  Way OneWay(const Value& condition, const PrimExpr& extent, const std::string& place, Way way, bool holds,
             const Way& other, bool main);
  /// Values that look like `like`, whose computation is an error.
  Values Refused(const Value& condition, const Values& like, const std::string& text);
  Decisions* deciding_ = nullptr;
  int ways_ = 256;  ///< how often a graph may still be imported for a branch of an If that another branch differs from
  std::vector<relay::Var> params_;
  Map<String, NDArray> weights_;
  Env* env_ = nullptr;
  Surroundings around_;
  Span span_;
  std::vector<std::string> calls_made_;  // operators of Relay that the node became; kept for `options.nodes` alone
  int nested_ = 0;
  // Equal types and attributes of calls are one object.
  relay::TypePool types_;
  std::unordered_set<Attrs, StructuralHasher, StructuralEq> attrs_;
  Symbols symbols_;
  std::vector<std::string> plain_names_;
  Array<Any> guards_;  ///< what was assumed of lengths: [a, b, text]
  int64_t budget_;
  int64_t calls_;
  int64_t bytes_;
};

/// `later`: large elements in a file are read when they are asked for.
BATON_DLL NDArray ToNDArray(const HostPtr& h, bool later = false);

/// Attributes of the class with this type key.
BATON_DLL Attrs MakeAttrs(const std::string& key, const NamedAttrs& attrs);

/// The row of an operator in the table of all; null for one that is not there.
const OpRow* FindOperator(std::string_view domain, std::string_view op);

}  // namespace baton::onnx
