// SPDX-License-Identifier: Apache-2.0
// Ensembles of decision trees: the three operators become one table of nodes, which `tree_ensemble` walks.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "ml.h"

namespace baton::onnx {
namespace {

enum Mode : int64_t { kLeq, kLt, kGte, kGt, kEq, kNeq, kMember, kLeaf };

/// An ensemble as `tree_ensemble` wants it.
class Trees {
 public:
  Trees(Ctx& c, DataType t) : c_(c), t_(t) {}

  /// A node; its children come later. Only <= and == are left: the others are these with children exchanged.
  int64_t Add(Mode mode, double split, int64_t feature, bool missing_goes_true) {
    if (feature < 0 || feature > std::numeric_limits<int32_t>::max())
      c_.Fail("a node has feature " + std::to_string(feature));
    const bool exchanged = mode == kGte || mode == kGt || mode == kNeq;
    if (mode == kLt || mode == kGte) split = Below(split);
    // NaN fails every comparison but !=.
    bool to_true = exchanged ? !missing_goes_true : missing_goes_true;
    if (mode == kNeq) to_true = false;
    const int64_t flags = mode == kLeaf ? 0 : (to_true ? 1 : 0) + (mode == kEq || mode == kNeq ? 2 : 0);
    flags_ |= flags;
    const int64_t at = size();
    splits_.push_back(split);
    for (int64_t v : {mode == kLeaf ? 0 : feature, at, at, flags, int64_t{0}, int64_t{0}}) nodes_.push_back(v);
    exchanged_.push_back(exchanged);
    features_ = std::max(features_, mode == kLeaf ? 0 : feature);
    return at;
  }
  void Children(int64_t node, int64_t yes, int64_t no) {
    if (yes == node || no == node) Circle();
    if (exchanged_[static_cast<size_t>(node)]) std::swap(yes, no);
    Cell(node, 1) = yes, Cell(node, 2) = no;
  }
  void Weights(int64_t node, const std::vector<std::pair<int64_t, double>>& weights) {
    Cell(node, 4) = static_cast<int64_t>(targets_.size());
    for (const auto& [target, weight] : weights) targets_.push_back(target), weights_.push_back(weight);
    Cell(node, 5) = static_cast<int64_t>(targets_.size());
  }
  void Root(int64_t node) { roots_.push_back(node); }
  int64_t size() const { return static_cast<int64_t>(splits_.size()); }
  int64_t num_roots() const { return static_cast<int64_t>(roots_.size()); }
  bool HasFeature(int64_t features) const { return features < 0 || features_ < features; }

  /// Whether each row has a weight of `target`: some tree has one in all its leaves.
  bool Always(int64_t target) const {
    return std::any_of(roots_.begin(), roots_.end(), [&](int64_t root) {
      std::set<int64_t> seen{root};
      for (std::vector<int64_t> work{root}; !work.empty();) {
        const int64_t node = work.back();
        work.pop_back();
        if (At(node, 1) == node) {
          const auto begin = targets_.begin() + At(node, 4), end = targets_.begin() + At(node, 5);
          if (std::find(begin, end, target) == end) return false;
        } else {
          for (int64_t child : {At(node, 1), At(node, 2)}) {
            if (seen.insert(child).second) work.push_back(child);
          }
        }
      }
      return true;
    });
  }

  /// (N, num_targets): how many weights of each target a row has.
  Value Count(const Value& x, int64_t num_targets) {
    return Call(x, num_targets, "sum", std::vector<double>(weights_.size(), 1.0));
  }
  Value Call(const Value& x, int64_t num_targets, const char* aggregate) {
    return Call(x, num_targets, aggregate, weights_);
  }

 private:
  Value Call(const Value& x, int64_t num_targets, const char* aggregate, const std::vector<double>& weights) {
    if (roots_.empty()) c_.Fail("it has no tree");
    if (!HasFeature(x.dims[1]))
      c_.Fail("a node has feature " + std::to_string(features_) + ", which its operand lacks");
    for (int64_t t : targets_) {
      if (t < 0 || t >= num_targets)
        c_.Fail("a leaf has target " + std::to_string(t) + " of " + std::to_string(num_targets));
    }
    const DataType i32 = DataType::Int(32);
    const std::vector<int64_t> heights = Heights();
    Dims roots;
    int64_t depth = 0;
    for (int64_t root : roots_) {
      const int64_t height = heights[static_cast<size_t>(root)];
      roots.push_back(root), roots.push_back(height);
      depth = std::max(depth, height);
    }
    auto floats = [&](const std::vector<double>& v) {
      return c_.Constant(HostFromFloats(t_, {static_cast<int64_t>(v.size())}, v));
    };
    auto ints = [&](const Dims& shape, const Dims& v) { return c_.Constant(HostFromInts(i32, shape, v)); };
    return c_.Call("tree_ensemble",
                   {x, floats(splits_), ints({size(), 6}, nodes_), ints({num_roots(), 2}, roots),
                    ints({static_cast<int64_t>(targets_.size())}, targets_), floats(weights)},
                   {{"num_targets", num_targets}, {"depth", depth}, {"flags", flags_}, {"aggregate", aggregate}});
  }
  [[noreturn]] void Circle() { c_.Fail("a tree has a node that is beneath itself"); }
  int64_t At(int64_t node, int64_t column) const { return nodes_[static_cast<size_t>(node * 6 + column)]; }
  int64_t& Cell(int64_t node, int64_t column) { return nodes_[static_cast<size_t>(node * 6 + column)]; }
  /// The largest number of the type below: x < v where x <= Below(v).
  double Below(double v) const {
    if (t_.bits() == 64) return std::nextafter(v, -std::numeric_limits<double>::infinity());
    return static_cast<double>(std::nextafter(static_cast<float>(v), -std::numeric_limits<float>::infinity()));
  }
  /// Steps from each node to its farthest leaf. A node that reaches itself is an error, even one that no root reaches.
  std::vector<int64_t> Heights() {
    std::vector<int64_t> height(static_cast<size_t>(size()), -1);  // -2: open
    for (int64_t start = 0; start < size(); ++start) {
      std::vector<int64_t> work{start};
      while (!work.empty()) {
        const int64_t node = work.back();
        int64_t& h = height[static_cast<size_t>(node)];
        if (h >= 0) {
          work.pop_back();
          continue;
        }
        const int64_t yes = Cell(node, 1), no = Cell(node, 2);
        if (yes == node && no == node) {
          h = 0;
          continue;
        }
        const int64_t a = height[static_cast<size_t>(yes)], b = height[static_cast<size_t>(no)];
        if (a >= 0 && b >= 0) {
          h = 1 + std::max(a, b);
          continue;
        }
        if (h == -2) Circle();
        h = -2;
        for (int64_t child : {yes, no}) {
          if (height[static_cast<size_t>(child)] == -2) Circle();
          if (height[static_cast<size_t>(child)] < 0) work.push_back(child);
        }
      }
    }
    return height;
  }

  Ctx& c_;
  DataType t_;
  std::vector<double> splits_, weights_;
  Dims nodes_, roots_, targets_;
  std::vector<bool> exchanged_;
  int64_t features_ = 0, flags_ = 0;  ///< the largest feature; the bits that flags of nodes have
};

/// A list of floats, or of doubles in a tensor.
std::vector<double> Numbers(Ctx& c, const std::string& name) {
  std::vector<float> list = c.Floats(name.c_str());
  std::vector<double> out(list.begin(), list.end());
  const std::string as_tensor = name + "_as_tensor";
  if (const Tensor* t = out.empty() ? c.TensorAttr(as_tensor.c_str()) : nullptr) {
    Value v = c.FromTensor(*t);
    if (v.host->is_string) c.Fail("`" + as_tensor + "` holds strings");
    for (int64_t i = 0; i < v.host->size(); ++i) out.push_back(v.host->FloatAt(i));
  }
  return out;
}

Mode ModeOf(Ctx& c, const std::string& name) {
  static const std::map<std::string_view, Mode> kModes = {
      {"BRANCH_LEQ", kLeq}, {"BRANCH_LT", kLt},   {"BRANCH_GTE", kGte}, {"BRANCH_GT", kGt},
      {"BRANCH_EQ", kEq},   {"BRANCH_NEQ", kNeq}, {"LEAF", kLeaf}};
  auto it = kModes.find(name);
  if (it == kModes.end()) c.Fail("a node has mode `" + name + "`");
  return it->second;
}

/// Operand 0 as (N, F).
Value Rows(Ctx& c) {
  Value x = c.T(0);
  x = c.Cast(x, ScoreType(x.dtype));
  if (c.Rank(x) == 1) x = c.Unsqueeze(x, {0});
  if (c.Rank(x) != 2) c.Fail("its operand must have one or two axes");
  return x;
}

/// The nodes of the two older operators. `weights` gives those of each node by (tree, node).
using NodeWeights = std::map<std::pair<int64_t, int64_t>, std::vector<std::pair<int64_t, double>>>;
void ReadNodes(Ctx& c, const NodeWeights& weights, Trees* trees) {
  Dims tree = c.Ints("nodes_treeids"), id = c.Ints("nodes_nodeids"), feature = c.Ints("nodes_featureids");
  Dims yes = c.Ints("nodes_truenodeids"), no = c.Ints("nodes_falsenodeids");
  Dims missing = c.Ints("nodes_missing_value_tracks_true");
  std::vector<std::string> modes = c.Strs("nodes_modes");
  std::vector<double> values = Numbers(c, "nodes_values");
  for (const char* unused : {"nodes_hitrates", "nodes_hitrates_as_tensor"}) c.Ignore(unused);
  const size_t n = id.size();
  for (size_t have : {tree.size(), feature.size(), yes.size(), no.size(), modes.size(), values.size(),
                      missing.empty() ? n : missing.size()}) {
    if (have != n) c.Fail("its lists of nodes differ in length");
  }
  std::map<std::pair<int64_t, int64_t>, int64_t> place;
  std::vector<Mode> mode;
  for (size_t i = 0; i < n; ++i) {
    mode.push_back(ModeOf(c, modes[i]));
    const int64_t at = trees->Add(mode[i], values[i], feature[i], !missing.empty() && missing[i] != 0);
    if (!place.emplace(std::make_pair(tree[i], id[i]), at).second)
      c.Fail("node " + std::to_string(id[i]) + " of tree " + std::to_string(tree[i]) + " stands twice");
  }
  std::vector<bool> child(n, false);
  for (size_t i = 0; i < n; ++i) {
    if (mode[i] == kLeaf) {
      auto found = weights.find({tree[i], id[i]});
      if (found != weights.end()) trees->Weights(static_cast<int64_t>(i), found->second);
      continue;
    }
    auto a = place.find({tree[i], yes[i]}), b = place.find({tree[i], no[i]});
    if (a == place.end() || b == place.end())
      c.Fail("node " + std::to_string(id[i]) + " of tree " + std::to_string(tree[i]) + " has a child that is missing");
    trees->Children(static_cast<int64_t>(i), a->second, b->second);
    child[static_cast<size_t>(a->second)] = child[static_cast<size_t>(b->second)] = true;
  }
  for (size_t i = 0; i < n; ++i) {
    if (!child[i]) trees->Root(static_cast<int64_t>(i));
  }
}

/// The weights of leaves, from lists whose names begin with `prefix`; `targets` receives the targets that have some.
NodeWeights ReadWeights(Ctx& c, const std::string& prefix, std::set<int64_t>* targets, bool* positive) {
  Dims tree = c.Ints((prefix + "_treeids").c_str()), node = c.Ints((prefix + "_nodeids").c_str());
  Dims target = c.Ints((prefix + "_ids").c_str());
  std::vector<double> weight = Numbers(c, prefix + "_weights");
  if (tree.size() != node.size() || target.size() != node.size() || weight.size() != node.size())
    c.Fail("its lists of leaves differ in length");
  NodeWeights out;
  for (size_t i = 0; i < node.size(); ++i) {
    out[{tree[i], node[i]}].emplace_back(target[i], weight[i]);
    targets->insert(target[i]);
    *positive = *positive && weight[i] >= 0;
  }
  return out;
}

const char* AggregateOf(Ctx& c, const std::string& name) {
  if (name == "SUM" || name == "AVERAGE") return "sum";
  if (name == "MIN") return "min";
  if (name == "MAX") return "max";
  c.Fail("`aggregate_function` is `" + name + "`");
}

Values TreeEnsembleRegressor(Ctx& c) {
  Value x = Rows(c);
  Trees trees(c, x.dtype);
  std::set<int64_t> targets;
  bool positive = true;
  ReadNodes(c, ReadWeights(c, "target", &targets, &positive), &trees);
  const std::string aggregate = c.Str("aggregate_function", "SUM");
  const int64_t count = c.Int("n_targets", 1);
  if (count < 1 || count > (1 << 24)) c.Fail("`n_targets` is " + std::to_string(count));
  Value y = trees.Call(x, count, AggregateOf(c, aggregate));
  if (aggregate == "AVERAGE") y = c.Div(y, static_cast<double>(trees.num_roots()));
  std::vector<double> base = Numbers(c, "base_values");
  if (!base.empty()) y = c.Add(y, c.Constant(HostFromFloats(x.dtype, {static_cast<int64_t>(base.size())}, base)));
  return {c.Cast(PostTransform(c, y, c.Str("post_transform", "NONE")), DataType::Float(32))};
}

Values TreeEnsembleClassifier(Ctx& c) {
  Value x = Rows(c);
  Trees trees(c, x.dtype);
  std::set<int64_t> ids;
  bool positive = true;
  ReadNodes(c, ReadWeights(c, "class", &ids, &positive), &trees);
  Classes classes;
  classes.texts = c.Strs("classlabels_strings");
  classes.numbers = c.Ints("classlabels_int64s");
  const std::string transform = c.Str("post_transform", "NONE");
  std::vector<double> base = Numbers(c, "base_values");
  const int64_t n = classes.size();
  if (n < 1) c.Fail("it has no labels");
  Value y = trees.Call(x, n, "sum");
  auto row = [&](const std::vector<double>& v) {
    return c.Constant(HostFromFloats(x.dtype, {static_cast<int64_t>(v.size())}, v));
  };
  // A base for each class is "added to final class score". (ONNX Runtime leaves the weights of one class out where
  // there are two; the text is clear.)
  if (n > 2 || (n == 2 && base.size() == 2)) {
    if (!base.empty()) y = c.Add(y, row(base));
    return ManyScores(c, classes, y, transform);
  }
  if (base.size() > 1) c.Fail("`base_values` has " + std::to_string(base.size()) + " numbers");
  // Two classes may share one score, which is then the second's. Where the operator's text is silent, ONNX Runtime's
  // results count.
  const bool second = n == 2 && ids.count(1) != 0, one = ids.size() <= 1;
  Value first = c.Slice(y, 1, 0, 1);
  if (!second) {
    if (!base.empty()) first = c.Add(first, base[0]);
    if (n == 2) return BinaryScores(c, classes, first, positive, transform);
    // The label says whether there is one.
    Value above = c.Squeeze(c.Call("greater", {first, c.Scalar(first.dtype, 0)}), {1});
    return {c.Cast(above, DataType::Int(64)), c.Cast(PostTransform(c, first, transform), DataType::Float(32))};
  }
  if (!trees.Always(1)) c.Unsupported("two classes where a row may have no weight of the second");
  Value s = c.Slice(y, 1, 1, 2);
  if (!base.empty() && ids.count(0) != 0) {  // a single base counts for the rows that have a weight of the first
    Value more = c.Add(first, base[0]);
    if (!trees.Always(0)) {
      Value count = c.Slice(trees.Count(x, n), 1, 0, 1);
      more = c.Where(c.Call("greater", {count, c.Scalar(count.dtype, 0)}), more, first);
    }
    y = c.Concat({more, s}, 1);
  }
  Value above = c.Squeeze(c.Call("greater", {s, c.Scalar(s.dtype, one && positive ? 0.5 : 0.0)}), {1});
  return {LabelAt(c, classes, c.Cast(above, DataType::Int(64))),
          c.Cast(PostTransform(c, y, transform), DataType::Float(32))};
}

// ---- version 5
Dims IntsOf(Ctx& c, const char* name) {
  const Tensor* t = c.TensorAttr(name);
  if (t == nullptr) return {};
  Dims out;
  Value v = c.FromTensor(*t);
  if (v.host->is_string) c.Fail(std::string("`") + name + "` holds strings");
  for (int64_t i = 0; i < v.host->size(); ++i) out.push_back(v.host->IntAt(i));
  return out;
}
std::vector<double> FloatsOf(Ctx& c, const char* name) {
  const Tensor* t = c.TensorAttr(name);
  if (t == nullptr) return {};
  std::vector<double> out;
  Value v = c.FromTensor(*t);
  if (v.host->is_string) c.Fail(std::string("`") + name + "` holds strings");
  for (int64_t i = 0; i < v.host->size(); ++i) out.push_back(v.host->FloatAt(i));
  return out;
}

Values TreeEnsemble(Ctx& c) {
  Value x = Rows(c);
  const DataType given = c.T(0).dtype;
  Trees trees(c, x.dtype);
  Dims feature = c.Ints("nodes_featureids"), yes = c.Ints("nodes_truenodeids"), no = c.Ints("nodes_falsenodeids");
  Dims yes_leaf = c.Ints("nodes_trueleafs"), no_leaf = c.Ints("nodes_falseleafs"), roots = c.Ints("tree_roots");
  Dims missing = c.Ints("nodes_missing_value_tracks_true"), leaf_target = c.Ints("leaf_targetids");
  Dims modes = IntsOf(c, "nodes_modes");
  std::vector<double> splits = FloatsOf(c, "nodes_splits"), leaf_weight = FloatsOf(c, "leaf_weights");
  std::vector<double> members = FloatsOf(c, "membership_values");
  c.Ignore("nodes_hitrates");
  const size_t n = feature.size();
  for (size_t have : {yes.size(), no.size(), yes_leaf.size(), no_leaf.size(), modes.size(), splits.size(),
                      missing.empty() ? n : missing.size()}) {
    if (have != n) c.Fail("its lists of nodes differ in length");
  }
  if (leaf_target.size() != leaf_weight.size()) c.Fail("its lists of leaves differ in length");
  // A node with a set is a chain of ==, whose first node stands for it.
  std::vector<Dims> chain(n);
  size_t member = 0;
  for (size_t i = 0; i < n; ++i) {
    const bool to_true = !missing.empty() && missing[i] != 0;
    if (modes[i] < 0 || modes[i] > kMember) c.Fail("a node has mode " + std::to_string(modes[i]));
    if (modes[i] != kMember) {
      chain[i].push_back(trees.Add(static_cast<Mode>(modes[i]), splits[i], feature[i], to_true));
      continue;
    }
    for (; member < members.size() && !std::isnan(members[member]); ++member)
      chain[i].push_back(trees.Add(kEq, members[member], feature[i], to_true));
    ++member;
    if (chain[i].empty()) c.Fail("a node has an empty set");
  }
  const int64_t first_leaf = trees.size();
  for (size_t k = 0; k < leaf_target.size(); ++k) {
    const int64_t leaf = trees.Add(kLeaf, 0, 0, false);
    trees.Weights(leaf, {{leaf_target[k], leaf_weight[k]}});
  }
  auto place = [&](int64_t to, int64_t leaf) {
    const auto limit = static_cast<int64_t>(leaf ? leaf_target.size() : n);
    if (to < 0 || to >= limit) c.Fail("a node has a child that is missing");
    return leaf ? first_leaf + to : chain[static_cast<size_t>(to)][0];
  };
  for (size_t i = 0; i < n; ++i) {
    const int64_t a = place(yes[i], yes_leaf[i]), b = place(no[i], no_leaf[i]);
    for (size_t k = 0; k < chain[i].size(); ++k)
      trees.Children(chain[i][k], a, k + 1 < chain[i].size() ? chain[i][k + 1] : b);
  }
  for (int64_t root : roots) trees.Root(place(root, 0));
  const int64_t targets = c.Int("n_targets", 1), aggregate = c.Int("aggregate_function", 1);
  if (targets < 1 || targets > (1 << 24)) c.Fail("`n_targets` is " + std::to_string(targets));
  static constexpr const char* kAggregates[] = {"AVERAGE", "SUM", "MIN", "MAX"};
  static constexpr const char* kTransforms[] = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"};
  const int64_t transform = c.Int("post_transform", 0);
  if (aggregate < 0 || aggregate > 3 || transform < 0 || transform > 4)
    c.Fail("its `aggregate_function` or `post_transform` is unknown");
  Value y = trees.Call(x, targets, AggregateOf(c, kAggregates[aggregate]));
  if (aggregate == 0) y = c.Div(y, static_cast<double>(trees.num_roots()));
  return {c.Cast(PostTransform(c, y, kTransforms[transform]), given)};
}

}  // namespace

void AddMlTrees(OpTable* table) {
  for (const OpRow& row : {
           OpRow{kMl, "TreeEnsemble", TreeEnsemble},
           {kMl, "TreeEnsembleClassifier", TreeEnsembleClassifier},
           {kMl, "TreeEnsembleRegressor", TreeEnsembleRegressor},
       }) {
    table->push_back(row);
  }
}

}  // namespace baton::onnx
