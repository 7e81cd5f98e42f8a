// SPDX-License-Identifier: Apache-2.0
// Matching: one pattern, made ready once, against many expressions.
#pragma once

#include <baton/relay/dataflow_pattern.h>
#include <relay/expr/expr_index.h>

#include <cstdint>
#include <vector>

namespace baton::relay {

/// A pattern as a table: its nodes numbered, parts before wholes.
class PatternTable {
 public:
  enum class Kind : uint8_t {
    kExpr,
    kVar,
    kConstant,
    kCall,
    kFunction,
    kLet,
    kIf,
    kTuple,
    kTupleGetItem,
    kAlt,
    kWildcard,
    kType,
    kShape,
    kDataType,
    kAttr,
    kDominator
  };
  struct Row {
    Kind kind;
    bool any_children = false;  ///< a call or tuple whose parts may be any, a function with any parameters
    bool closed = true;         ///< no pattern below it occurs anywhere else: what it matches decides nothing outside
    bool commutative = false;
    int8_t product = 0;  ///< a call of two: 1 of multiply, 2 of divide
    const Object* pattern;
    std::vector<int32_t> children;  ///< op and arguments; parameters and body; parent, path, child
  };
  /// Which expressions a pattern can match at all, by kind, and calls by operator.
  struct Filter {
    bool any = false;
    uint32_t kinds = 0;  ///< bits as KindBit gives them
    std::vector<const Object*> called;
    bool Accepts(const ExprNode* e) const;
    void Add(const Filter& o);
  };
  explicit PatternTable(const DFPattern& root);
  int32_t root() const { return static_cast<int32_t>(rows_.size()) - 1; }
  int32_t size() const { return static_cast<int32_t>(rows_.size()); }
  const Row& row(int32_t i) const { return rows_[i]; }
  DFPattern pattern(int32_t i) const { return DFPattern(ObjectPtr<Object>(const_cast<Object*>(rows_[i].pattern))); }
  const Filter& filter(int32_t i) const { return filters_[i]; }
  bool CanMatch(const ExprNode* e) const { return filters_.back().Accepts(e); }

 private:
  DFPattern keep_;
  void FilterCall(Row* r, Filter* f) const;

  std::vector<Row> rows_;
  std::vector<Filter> filters_;
};

/// Matches a table against expressions below `root`. Searches all ways to match: arguments of commutative operators,
/// alternatives. Iterates, so neither depth of patterns nor of expressions matters.
class PatternMatcher {
 public:
  /// `graph` may be null: it is made of `root` when a dominator asks for it. `mod` may be null.
  PatternMatcher(const PatternTable& table, Expr root, ExprIndex* graph, IRModule mod);
  ~PatternMatcher();
  PatternMatcher(const PatternMatcher&) = delete;
  bool Match(const ExprNode* e);
  /// Returns the match of a pattern, null if it had no part in it. Until the next Match.
  const ExprNode* Bound(int32_t pattern) const { return bound_[pattern]; }
  /// Expressions on the path of a dominator, farthest from the child first.
  std::vector<const ExprNode*> OnPath(int32_t dominator) const;

 private:
  struct Goal;
  struct Choice;
  struct PathSearch;
  struct ParentSearch;
  bool Run(const ExprNode* e);
  bool Step(const Goal& goal);
  bool StepCall(int32_t p, const ExprNode* e);
  bool StepFunction(int32_t p, const ExprNode* e);
  bool StepDominator(int32_t p, const ExprNode* e);
  bool NextParent(int32_t p, const ExprNode* e, int32_t list);
  bool TryRegrouped(int32_t p, const ExprNode* e, int order);
  bool Check(int32_t p, const ExprNode* e);
  bool Backtrack();
  void Bind(int32_t p, const ExprNode* e);
  void Push(int32_t p, const ExprNode* e, int what = 0, int32_t extra = 0);
  void Offer(int32_t p, const ExprNode* e, int what, int32_t state, int32_t list = 0);
  const Object* TypeOf(const ExprNode* e);
  ExprIndex& Graph();
  PathSearch& Paths(int32_t dominator);

  const PatternTable& table_;
  Expr root_;
  ExprIndex* graph_;
  ExprIndex* own_graph_ = nullptr;
  IRModule mod_;
  bool typed_ = false;
  std::vector<const ExprNode*> bound_;
  std::vector<int32_t> parent_of_;  // of a matched dominator: number of its parent's node
  std::vector<int32_t> trail_;
  std::vector<Goal> goals_;
  std::vector<Choice> choices_;
  int32_t next_ = -1;
  std::vector<PathSearch*> paths_;
};

/// Whether two attribute values are the same: numbers by value, texts and dtypes by name, others by structure.
bool SameAttrValue(const Any& a, const Any& b);

}  // namespace baton::relay
