// SPDX-License-Identifier: Apache-2.0
#include "check.h"

#include <algorithm>
#include <map>
#include <queue>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace baton::onnx {
namespace {

constexpr int64_t kNewestIrVersion = 14;
constexpr size_t kMaxListed = 10;

/// Length of the shortest edit from `a` to `b`, at most `limit`.
size_t EditDistance(std::string_view a, std::string_view b, size_t limit) {
  if (a.size() > b.size() + limit || b.size() > a.size() + limit) return limit + 1;
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t up = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1])});
      diagonal = up;
    }
  }
  return row[b.size()];
}

struct Scope {
  const Scope* parent = nullptr;
  /// In the order of definition, for suggestions.
  std::vector<std::string_view> order;
  std::unordered_set<std::string_view> names;

  bool Add(std::string_view name) {
    if (!names.insert(name).second) return false;
    order.push_back(name);
    return true;
  }
  bool Sees(std::string_view name) const {
    for (const Scope* s = this; s != nullptr; s = s->parent) {
      if (s->names.count(name) != 0) return true;
    }
    return false;
  }
  std::string Nearest(std::string_view name) const {
    size_t best = std::min<size_t>(3, name.size() / 3 + 1) + 1;
    std::string_view found;
    size_t looked = 0;
    for (const Scope* s = this; s != nullptr; s = s->parent) {
      for (std::string_view other : s->order) {
        if (++looked > 2000 || other.size() > 100) break;
        size_t d = EditDistance(name, other, best - 1);
        if (d < best) {
          best = d;
          found = other;
        }
      }
    }
    return found.empty() ? "" : "; did you mean " + Quote(found) + "?";
  }
};

class Checker {
 public:
  explicit Checker(const Model& model) : head_("`" + Printable(model.label, 400) + "`: ") {}

  void Imports(const std::vector<OpsetId>& imports, const std::string& where) const {
    std::map<std::string_view, int64_t> seen;
    for (const OpsetId& id : imports) {
      const auto [found, fresh] = seen.emplace(id.domain, id.version);
      if (!fresh && found->second != id.version) {
        Fail(where + " imports operator set " + Quote(Domain(id.domain)) + " twice, as versions " +
             std::to_string(found->second) + " and " + std::to_string(id.version));
      }
      if (id.version < 1 || id.version > (1 << 30)) {
        Fail(where + " imports version " + std::to_string(id.version) + " of operator set " + Quote(Domain(id.domain)) +
             ", which cannot be");
      }
    }
  }

  /// \param in_function Whether attributes may be taken from a function around the graph.
  void CheckGraph(Graph* graph, const Scope* outer, const std::string& where, bool in_function = false) const {
    Scope scope;
    scope.parent = outer;
    for (const ValueInfo& v : graph->inputs) {
      if (v.name.empty()) Fail(where + " has an input without a name");
      if (!scope.Add(v.name)) Fail(where + " has two inputs of the name " + Quote(v.name));
    }
    std::unordered_set<std::string_view> initialized;
    auto initializer = [&](std::string_view name) {
      if (name.empty()) Fail(where + " has an initializer without a name");
      if (!initialized.insert(name).second) Fail(where + " has two initializers of the name " + Quote(name));
      // An initializer may give an input its default value.
      scope.Add(name);
    };
    for (const Tensor& t : graph->initializers) initializer(t.name);
    for (const SparseTensor& t : graph->sparse_initializers) initializer(t.values.name);
    CheckNodes(&graph->nodes, &scope, where, in_function);
    for (const ValueInfo& v : graph->outputs) {
      if (v.name.empty()) Fail(where + " has an output without a name");
      if (!scope.Sees(v.name))
        Fail(where + " has the output " + Quote(v.name) + ", which nothing defines" + scope.Nearest(v.name));
    }
  }

  void CheckFunction(FunctionDef* f) const {
    const std::string where = "function " + Quote(f->name);
    Imports(f->opset_imports, where);
    Scope scope;
    for (std::string_view name : f->inputs) {
      if (name.empty()) Fail(where + " has an input without a name");
      if (!scope.Add(name)) Fail(where + " has two inputs of the name " + Quote(name));
    }
    std::set<std::string_view> attributes;
    for (std::string_view name : f->attributes) {
      if (!attributes.insert(name).second) Fail(where + " has two attributes of the name " + Quote(name));
    }
    for (const Attribute& a : f->attribute_defaults) {
      if (!attributes.insert(a.name).second) Fail(where + " has two attributes of the name " + Quote(a.name));
    }
    CheckNodes(&f->nodes, &scope, where, true);
    for (std::string_view name : f->outputs) {
      if (!scope.Sees(name))
        Fail(where + " has the output " + Quote(name) + ", which nothing defines" + scope.Nearest(name));
    }
  }

  /// No function may call itself, through others either: inlining would not end.
  void CheckCalls(const std::vector<FunctionDef>& functions) const {
    std::map<std::tuple<std::string_view, std::string_view, std::string_view>, size_t> index;
    for (size_t i = 0; i < functions.size(); ++i) {
      const FunctionDef& f = functions[i];
      if (f.name.empty()) Fail("a function has no name");
      if (!index.emplace(std::make_tuple(f.domain, f.name, f.overload), i).second) {
        Fail("function " + Quote(f.name) + " of domain " + Quote(f.domain) + " is defined twice");
      }
    }
    std::vector<std::vector<size_t>> calls(functions.size());
    for (size_t i = 0; i < functions.size(); ++i) {
      CollectCalls(functions[i].nodes, index, &calls[i]);
    }
    std::vector<char> state(functions.size(), 0);  // 0: not seen, 1: on the path, 2: done
    for (size_t root = 0; root < functions.size(); ++root) {
      std::vector<std::pair<size_t, size_t>> path;
      if (state[root] == 0) path.emplace_back(root, 0);
      while (!path.empty()) {
        auto& [at, next] = path.back();
        state[at] = 1;
        if (next == calls[at].size()) {
          state[at] = 2;
          path.pop_back();
          continue;
        }
        size_t callee = calls[at][next++];
        if (state[callee] == 1)
          Fail("function " + Quote(functions[callee].name) + " calls itself; ONNX functions cannot recurse");
        if (state[callee] == 0) path.emplace_back(callee, 0);
      }
    }
  }

 private:
  [[noreturn]] void Fail(const std::string& what) const { Throw(head_ + what); }

  static std::string Domain(std::string_view domain) { return std::string(domain.empty() ? "ai.onnx" : domain); }

  template <typename Index>
  static void CollectCalls(const std::vector<Node>& nodes, const Index& index, std::vector<size_t>* calls) {
    for (const Node& n : nodes) {
      auto it = index.find(std::make_tuple(n.domain, n.op_type, n.overload));
      if (it != index.end()) calls->push_back(it->second);
      for (const Attribute& a : n.attributes) {
        for (const Graph& g : a.graphs) CollectCalls(g.nodes, index, calls);
      }
    }
  }

  void CheckNodes(std::vector<Node>* nodes, Scope* scope, const std::string& where, bool in_function) const {
    std::unordered_map<std::string_view, size_t> makers;
    for (size_t i = 0; i < nodes->size(); ++i) {
      const Node& n = (*nodes)[i];
      for (std::string_view name : n.outputs) {
        if (name.empty()) continue;
        if (!makers.emplace(name, i).second) {
          Fail(where + ": " + NodeLabel((*nodes)[makers[name]]) + " and " + NodeLabel(n) + " both define " +
               Quote(name));
        }
        if (!scope->Add(name))
          Fail(where + ": " + NodeLabel(n) + " defines " + Quote(name) + ", which is an input or initializer already");
      }
      for (size_t k = 0; k < n.attributes.size(); ++k) {
        const Attribute& a = n.attributes[k];
        if (n.Find(a.name) != &a)
          Fail(where + ": " + NodeLabel(n) + " has two attributes of the name " + Quote(a.name));
        if (!a.ref_attr_name.empty() && !in_function) {
          Fail(where + ": " + NodeLabel(n) + " takes its attribute " + Quote(a.name) +
               " from a function, but is in none");
        }
      }
    }
    SortNodes(nodes, makers, *scope, where);
    for (Node& n : *nodes) {
      for (Attribute& a : n.attributes) {
        for (Graph& g : a.graphs) {
          CheckGraph(&g, scope, where + ": " + NodeLabel(n) + ": subgraph " + Quote(a.name), in_function);
        }
      }
    }
  }

  void SortNodes(std::vector<Node>* nodes, const std::unordered_map<std::string_view, size_t>& makers,
                 const Scope& scope, const std::string& where) const {
    size_t n = nodes->size();
    std::vector<std::vector<size_t>> users(n);
    std::vector<size_t> waits(n, 0);
    std::string undefined;
    size_t missing = 0;
    bool sorted = true;
    for (size_t i = 0; i < n; ++i) {
      const Node& node = (*nodes)[i];
      auto reads = [&](std::string_view name) {
        auto it = makers.find(name);
        if (it != makers.end()) {
          users[it->second].push_back(i);
          ++waits[i];
          sorted = sorted && it->second < i;
        } else if (!scope.Sees(name) && ++missing <= kMaxListed) {
          undefined += "\n  " + NodeLabel(node) + " reads " + Quote(name) + scope.Nearest(name);
        }
      };
      for (std::string_view name : node.inputs) {
        if (!name.empty()) reads(name);
      }
      for (const Attribute& a : node.attributes) {
        for (const Graph& g : a.graphs) {
          for (std::string_view name : FreeNames(g)) reads(name);
        }
      }
    }
    if (missing != 0) {
      if (missing > kMaxListed) undefined += "\n  and " + std::to_string(missing - kMaxListed) + " more";
      Fail(where + " reads values that no input, initializer or node defines:" + undefined +
           "\n  help: an initializer may have been lost; export the model again with its weights");
    }
    if (sorted) return;
    std::priority_queue<size_t, std::vector<size_t>, std::greater<>> ready;
    for (size_t i = 0; i < n; ++i) {
      if (waits[i] == 0) ready.push(i);
    }
    std::vector<size_t> order;
    order.reserve(n);
    while (!ready.empty()) {
      size_t i = ready.top();
      ready.pop();
      order.push_back(i);
      for (size_t user : users[i]) {
        if (--waits[user] == 0) ready.push(user);
      }
    }
    if (order.size() != n) FailWithCycle(*nodes, makers, waits, where);
    std::vector<Node> moved;
    moved.reserve(n);
    for (size_t i : order) moved.push_back(std::move((*nodes)[i]));
    *nodes = std::move(moved);
  }

  [[noreturn]] void FailWithCycle(const std::vector<Node>& nodes,
                                  const std::unordered_map<std::string_view, size_t>& makers,
                                  const std::vector<size_t>& waits, const std::string& where) const {
    size_t at = 0;
    while (waits[at] == 0) ++at;
    // Each node that waits reads from another that waits, so walking back ends in a cycle.
    std::vector<size_t> path;
    std::vector<size_t> place(nodes.size(), SIZE_MAX);
    std::vector<std::string_view> via;
    while (place[at] == SIZE_MAX) {
      place[at] = path.size();
      path.push_back(at);
      std::string_view by;
      size_t next = at;
      auto follow = [&](std::string_view name) {
        auto it = makers.find(name);
        if (by.empty() && it != makers.end() && waits[it->second] != 0) {
          by = name;
          next = it->second;
        }
      };
      for (std::string_view name : nodes[at].inputs) follow(name);
      for (const Attribute& a : nodes[at].attributes) {
        for (const Graph& g : a.graphs) {
          for (std::string_view name : FreeNames(g)) follow(name);
        }
      }
      via.push_back(by);
      at = next;
    }
    std::string text;
    size_t begin = place[at];
    for (size_t i = begin; i < path.size() && i < begin + kMaxListed; ++i) {
      text += "\n  " + NodeLabel(nodes[path[i]]) + " needs " + Quote(via[i]);
    }
    if (path.size() - begin > kMaxListed)
      text += "\n  and " + std::to_string(path.size() - begin - kMaxListed) + " more";
    Fail(where + " has a cycle, so no order of its nodes can be run:" + text);
  }

  std::string head_;
};

void Collect(const Graph& graph, std::set<std::string_view>* free) {
  std::set<std::string_view> bound;
  for (const ValueInfo& v : graph.inputs) bound.insert(v.name);
  for (const Tensor& t : graph.initializers) bound.insert(t.name);
  for (const SparseTensor& t : graph.sparse_initializers) bound.insert(t.values.name);
  for (const Node& n : graph.nodes) {
    for (std::string_view name : n.outputs) bound.insert(name);
  }
  auto read = [&](std::string_view name) {
    if (!name.empty() && bound.count(name) == 0) free->insert(name);
  };
  for (const Node& n : graph.nodes) {
    for (std::string_view name : n.inputs) read(name);
    for (const Attribute& a : n.attributes) {
      for (const Graph& g : a.graphs) {
        for (std::string_view name : FreeNames(g)) read(name);
      }
    }
  }
  for (const ValueInfo& v : graph.outputs) read(v.name);
}

}  // namespace

std::set<std::string_view> FreeNames(const Graph& graph) {
  std::set<std::string_view> free;
  Collect(graph, &free);
  return free;
}

std::string NodeLabel(const Node& node) {
  std::string op = std::string(node.domain) + (node.domain.empty() ? "" : ".") + std::string(node.op_type);
  op = Printable(op);
  if (!node.name.empty()) return "node " + Quote(node.name) + " (" + op + ")";
  for (std::string_view out : node.outputs) {
    if (!out.empty()) return "the " + op + " node that makes " + Quote(out);
  }
  return "a " + op + " node without name and outputs";
}

void CheckModel(Model* model) {
  Checker checker(*model);
  if (model->ir_version < 1 || model->ir_version > kNewestIrVersion) {
    Throw("`" + Printable(model->label, 400) + "`: IR version " + std::to_string(model->ir_version) +
          " is not known; versions 1 to " + std::to_string(kNewestIrVersion) +
          " are. Export the model for an older ONNX release");
  }
  if (model->opset_imports.empty()) {
    if (model->ir_version >= 3) {
      Throw("`" + Printable(model->label, 400) + "`: the model imports no operator set, so its nodes have no meaning");
    }
    model->opset_imports.push_back({{}, 1});
  }
  checker.Imports(model->opset_imports, "the model");
  checker.CheckCalls(model->functions);
  checker.CheckGraph(&model->graph, nullptr, "the graph");
  for (FunctionDef& f : model->functions) checker.CheckFunction(&f);
}

}  // namespace baton::onnx
