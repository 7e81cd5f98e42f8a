// SPDX-License-Identifier: Apache-2.0
// A search with a list of goals and a stack of choices: a goal is a pattern and the expression that it must match;
// where there are several ways, the others are kept as a choice, to which the search comes back when a later goal
// fails.
#include <baton/ir/structural.h>
#include <baton/relay/transform.h>
#include <relay/pattern/matcher.h>

#include <algorithm>

namespace baton::relay {

using Kind = PatternTable::Kind;

namespace {
enum { kMatchGoal, kCheckGoal, kCutGoal, kDominateGoal };
enum { kOrderChoice, kRightChoice, kParentChoice };
// Steps that one match may take: a pattern of many alternatives that depend on each other has too many ways.
constexpr int64_t kMaxSteps = int64_t{1} << 26;

template <class N>
const N* As(const Object* p) {
  return static_cast<const N*>(p);
}
}  // namespace

struct PatternMatcher::Goal {
  int32_t pattern;
  int32_t next;
  int what;
  int32_t extra;
  const ExprNode* expr;
};

struct PatternMatcher::Choice {
  int32_t pattern;
  int32_t next;
  int what;
  int32_t state;
  int32_t list;
  const ExprNode* expr;
  size_t trail;
  size_t goals;
};

/// A walk from the child of a dominator towards the parents that may be meant, nearest first.
struct PatternMatcher::ParentSearch {
  int32_t child;
  std::vector<int32_t> queue;
  size_t at = 0;                 // in the queue
  std::vector<int32_t> waiting;  // parents found behind the node before `at`, last first
  PointerSet seen;
};

/// A dominator's facts of the graph: which nodes match its path, and which have a node behind them that its parent
/// could be.
struct PatternMatcher::PathSearch {
  PatternTable table;
  PatternMatcher matcher;
  std::vector<int8_t> matches;  // -1: not asked yet
  std::vector<bool> leads;
  std::vector<ParentSearch> searches;  // of this match
  PathSearch(const DFPattern& path, const Expr& root, ExprIndex* graph, const IRModule& mod,
             const PatternTable::Filter& parent)
      : table(path), matcher(table, root, graph, mod), matches(graph->size(), -1), leads(graph->size(), false) {
    for (int32_t i = 0; i < static_cast<int32_t>(graph->size()); ++i) {
      for (int32_t in : graph->Operands(i)) {
        if (in >= 0 && (leads[in] || parent.Accepts((*graph)[in]))) leads[i] = true;
      }
    }
  }
  bool OnPath(ExprIndex& graph, int32_t i) {
    if (matches[i] < 0) matches[i] = matcher.Match(graph[i]);
    return matches[i] != 0;
  }
};

PatternMatcher::PatternMatcher(const PatternTable& table, Expr root, ExprIndex* graph, IRModule mod)
    : table_(table), root_(std::move(root)), graph_(graph), mod_(std::move(mod)) {
  bound_.resize(table.size());
  parent_of_.resize(table.size(), -1);
}

PatternMatcher::~PatternMatcher() {
  for (PathSearch* p : paths_) delete p;
  delete own_graph_;
}

ExprIndex& PatternMatcher::Graph() {
  if (!graph_) graph_ = own_graph_ = new ExprIndex(root_);
  return *graph_;
}

PatternMatcher::PathSearch& PatternMatcher::Paths(int32_t dominator) {
  if (paths_.empty()) paths_.resize(table_.size());
  PathSearch*& p = paths_[dominator];
  if (!p)
    p = new PathSearch(table_.pattern(table_.row(dominator).children[1]), root_, &Graph(), mod_,
                       table_.filter(table_.row(dominator).children[0]));
  return *p;
}

const Object* PatternMatcher::TypeOf(const ExprNode* e) {
  // The whole first: each part of it then has its type, and nothing is inferred twice.
  if (!e->checked_type_.defined() && !typed_) {
    typed_ = true;
    try {
      transform::InferTypeOf(root_, mod_);
    } catch (const CompileError&) {
    }
  }
  if (!e->checked_type_.defined()) {
    try {
      transform::InferTypeOf(GetRef<Expr>(e), mod_);
    } catch (const CompileError&) {  // what has no type has not the wanted one
    }
  }
  return e->checked_type_.get();
}

void PatternMatcher::Bind(int32_t p, const ExprNode* e) {
  bound_[p] = e;
  trail_.push_back(p);
}

void PatternMatcher::Push(int32_t p, const ExprNode* e, int what, int32_t extra) {
  goals_.push_back({p, next_, what, extra, e});
  next_ = static_cast<int32_t>(goals_.size()) - 1;
}

void PatternMatcher::Offer(int32_t p, const ExprNode* e, int what, int32_t state, int32_t list) {
  choices_.push_back({p, next_, what, state, list, e, trail_.size(), goals_.size()});
}

bool PatternMatcher::Match(const ExprNode* e) {
  if (!table_.CanMatch(e)) return false;
  for (int32_t p : trail_) bound_[p] = nullptr;
  trail_.clear();
  goals_.clear();
  choices_.clear();
  for (PathSearch* p : paths_) {
    if (p) p->searches.clear();
  }
  next_ = -1;
  return Run(e);
}

bool PatternMatcher::Run(const ExprNode* e) {
  Push(table_.root(), e);
  int64_t steps = 0;
  while (next_ >= 0) {
    if (++steps > kMaxSteps) {
      throw CompileError("there are too many ways to match the pattern " +
                         AsText(table_.pattern(table_.root()), false).substr(0, 400) +
                         "; use fewer alternatives that share parts");
    }
    const Goal goal = goals_[next_];
    next_ = goal.next;
    if (!Step(goal) && !Backtrack()) return false;
  }
  return true;
}

bool PatternMatcher::Backtrack() {
  while (!choices_.empty()) {
    const Choice c = choices_.back();
    choices_.pop_back();
    for (size_t i = c.trail; i < trail_.size(); ++i) bound_[trail_[i]] = nullptr;
    trail_.resize(c.trail);
    goals_.resize(c.goals);
    next_ = c.next;
    if (c.what == kRightChoice) {
      Push(table_.row(c.pattern).children[1], c.expr);
      return true;
    }
    if (c.what == kOrderChoice) {
      if (TryRegrouped(c.pattern, c.expr, c.state)) return true;
      continue;
    }
    if (NextParent(c.pattern, c.expr, c.list)) return true;
  }
  return false;
}

bool PatternMatcher::Step(const Goal& goal) {
  const int32_t p = goal.pattern;
  const ExprNode* e = goal.expr;
  switch (goal.what) {
    case kCheckGoal:
      return Check(p, e);
    case kCutGoal:
      choices_.resize(static_cast<size_t>(goal.extra));
      return true;
    case kDominateGoal:
      return StepDominator(p, e);
    default:
      break;
  }
  if (!e) return false;
  if (bound_[p]) return bound_[p] == e;
  if (!table_.filter(p).Accepts(e)) return false;
  const PatternTable::Row& row = table_.row(p);
  auto parts_in_order = [&](const auto& exprs, size_t first) {
    for (size_t i = exprs.size(); i-- > 0;) Push(row.children[first + i], exprs[i].get());
  };
  Bind(p, e);
  switch (row.kind) {
    case Kind::kWildcard:
      return true;
    case Kind::kConstant:
      return e->IsInstance<ConstantNode>();
    case Kind::kVar: {
      const String& name = As<VarPatternNode>(row.pattern)->name;
      return e->IsInstance<VarNode>() && (name.size() == 0 || As<VarNode>(e)->name_hint() == name);
    }
    case Kind::kExpr: {
      const Expr& want = As<ExprPatternNode>(row.pattern)->expr;
      if (want.get() == e) return true;
      return want->type_index() == e->type_index() && !e->IsInstance<OpNode>() &&
             StructuralEqual(want, GetRef<Expr>(e));
    }
    case Kind::kCall:
      return StepCall(p, e);
    case Kind::kFunction:
      return StepFunction(p, e);
    case Kind::kLet: {
      const auto* l = As<LetNode>(e);
      if (!e->IsInstance<LetNode>()) return false;
      Push(row.children[2], l->body.get());
      Push(row.children[1], l->value.get());
      Push(row.children[0], l->var.get());
      return true;
    }
    case Kind::kIf: {
      const auto* i = As<IfNode>(e);
      if (!e->IsInstance<IfNode>()) return false;
      Push(row.children[2], i->false_branch.get());
      Push(row.children[1], i->true_branch.get());
      Push(row.children[0], i->cond.get());
      return true;
    }
    case Kind::kTuple: {
      const auto* t = As<TupleNode>(e);
      if (!e->IsInstance<TupleNode>()) return false;
      if (row.any_children) return true;
      if (t->fields.size() != row.children.size()) return false;
      parts_in_order(t->fields, 0);
      return true;
    }
    case Kind::kTupleGetItem: {
      const auto* g = As<TupleGetItemNode>(e);
      const int64_t index = As<TupleGetItemPatternNode>(row.pattern)->index;
      if (!e->IsInstance<TupleGetItemNode>() || (index >= 0 && index != g->index)) return false;
      Push(row.children[0], g->tuple.get());
      return true;
    }
    case Kind::kAlt: {
      if (row.closed) Push(p, e, kCutGoal, static_cast<int32_t>(choices_.size()));
      if (table_.filter(row.children[1]).Accepts(e)) Offer(p, e, kRightChoice, 0);
      Push(row.children[0], e);
      return true;
    }
    case Kind::kAttr:
      if (!Check(p, e)) return false;
      Push(row.children[0], e);
      return true;
    case Kind::kType:
    case Kind::kShape:
    case Kind::kDataType:
      Push(p, e, kCheckGoal);
      Push(row.children[0], e);
      return true;
    case Kind::kDominator:
      Push(p, e, kDominateGoal);
      Push(row.children[2], e);
      return true;
  }
  return false;
}

bool PatternMatcher::StepFunction(int32_t p, const ExprNode* e) {
  const PatternTable::Row& row = table_.row(p);
  const auto* f = As<FunctionNode>(e);
  if (!e->IsInstance<FunctionNode>()) return false;
  Push(row.children.back(), f->body.get());
  if (row.any_children) return true;
  if (f->params.size() + 1 != row.children.size()) return false;
  for (size_t i = f->params.size(); i-- > 0;) Push(row.children[i], f->params[i].get());
  return true;
}

bool PatternMatcher::StepCall(int32_t p, const ExprNode* e) {
  const auto* call = As<CallNode>(e);
  const PatternTable::Row& row = table_.row(p);
  if (!e->IsInstance<CallNode>()) return false;
  if (row.any_children) {
    Push(row.children[0], call->op.get());
    return true;
  }
  if (row.commutative || row.product) {
    if (row.closed) Push(p, e, kCutGoal, static_cast<int32_t>(choices_.size()));
    return TryRegrouped(p, e, 0);
  }
  if (call->args.size() + 1 != row.children.size()) return false;
  for (size_t i = call->args.size(); i-- > 0;) Push(row.children[i + 1], call->args[i].get());
  Push(row.children[0], call->op.get());
  return true;
}

/// Ways to match a call of two arguments, from `order` on: 0 in order, 1 swapped, 2 to 5 a product with a quotient
/// as the other grouping of the two.
bool PatternMatcher::TryRegrouped(int32_t p, const ExprNode* e, int order) {
  const auto* call = As<CallNode>(e);
  const PatternTable::Row& row = table_.row(p);
  static const Op multiply = Op::Get("multiply"), divide = Op::Get("divide");
  const Object* own = As<ExprPatternNode>(table_.row(row.children[0]).pattern)->expr.get();
  if (call->args.size() != 2) return false;
  auto filter = [&](int32_t child, const Expr& x) { return table_.filter(child).Accepts(x.get()); };
  for (; order < 6; ++order) {
    if (order < 2) {
      if (call->op.get() != own || (order == 1 && !row.commutative)) continue;
      const int32_t first = row.children[1 + order], second = row.children[2 - order];
      if (!filter(first, call->args[0]) || !filter(second, call->args[1])) continue;
      if (order + 1 < 6) Offer(p, e, kOrderChoice, order + 1);
      // The operator pattern matches: it is the one operator.
      Push(second, call->args[1].get());
      Push(first, call->args[0].get());
      Push(row.children[0], call->op.get());
      return true;
    }
    if (!row.product || call->op.get() != (row.product == 1 ? divide.get() : multiply.get())) return false;
    // Integers do not regroup: (5 * 2) / 4 is 2, 5 * (2 / 4) is 0.
    const auto* type = As<TensorTypeNode>(e->checked_type_.get());
    if (type && type->IsInstance<TensorTypeNode>() && !type->dtype.is_float() && !type->dtype.is_bfloat16())
      return false;
    const int side = (order - 2) / 2, swap = (order - 2) % 2;
    // The pattern's inner call and the expression's, each a product in a quotient or the other way round.
    const int32_t inner_pattern = row.product == 1 ? row.children[1 + side] : row.children[1];
    const PatternTable::Row& inner = table_.row(inner_pattern);
    const Expr& inner_arg = row.product == 1 ? call->args[0] : call->args[side];
    const auto* inner_call = inner_arg.as<CallNode>();
    if (inner.kind != Kind::kCall || inner.product != 3 - row.product || inner.any_children || bound_[inner_pattern])
      continue;
    if (!inner_call || inner_call->op.get() != own || inner_call->args.size() != 2) continue;
    // a * b / c: the two factors and the divisor, on both sides.
    const int32_t divisor = row.product == 1 ? inner.children[2] : row.children[2];
    int32_t a = row.product == 1 ? row.children[2 - side] : inner.children[1];
    int32_t b = row.product == 1 ? inner.children[1] : inner.children[2];
    const Expr& x = row.product == 1 ? inner_call->args[0] : call->args[1 - side];
    const Expr& y = row.product == 1 ? inner_call->args[1] : inner_call->args[0];
    const Expr& z = row.product == 1 ? call->args[1] : inner_call->args[1];
    if (swap) std::swap(a, b);
    if (!filter(a, x) || !filter(b, y) || !filter(divisor, z)) continue;
    if (order + 1 < 6) Offer(p, e, kOrderChoice, order + 1);
    Bind(inner_pattern, inner_call);
    Push(divisor, z.get());
    Push(b, y.get());
    Push(a, x.get());
    Push(inner.children[0], call->op.get());
    Push(row.children[0], inner_call->op.get());
    return true;
  }
  return false;
}

bool PatternMatcher::StepDominator(int32_t p, const ExprNode* e) {
  const auto child = static_cast<int32_t>(Graph().IdOf(e));
  PathSearch& paths = Paths(p);
  if (child < 0 || !paths.leads[child]) return false;
  if (table_.row(p).closed) Push(p, e, kCutGoal, static_cast<int32_t>(choices_.size()));
  ParentSearch search;
  search.child = child;
  search.queue.push_back(child);
  paths.searches.push_back(std::move(search));
  return NextParent(p, e, static_cast<int32_t>(paths.searches.size()) - 1);
}

/// Goes on to the next parent that the dominator may mean: all data of the child comes from it.
bool PatternMatcher::NextParent(int32_t p, const ExprNode* e, int32_t list) {
  ExprIndex& graph = Graph();
  PathSearch& paths = Paths(p);
  ParentSearch& search = paths.searches[list];
  const PatternTable::Filter& filter = table_.filter(table_.row(p).children[0]);
  auto is_data = [&](int32_t i) { return i >= 0 && !graph[i]->IsInstance<OpNode>(); };
  auto reaches = [&](int32_t parent) {
    std::vector<int32_t> work{search.child};
    PointerSet visited;
    bool reached = false;
    while (!work.empty()) {
      const int32_t n = work.back();
      work.pop_back();
      bool direct = false;
      for (int32_t in : graph.Operands(n)) direct |= in == parent;
      reached |= direct;
      if (direct) continue;
      for (int32_t in : graph.Operands(n)) {
        if (!is_data(in) || !visited.Add(graph[in])) continue;
        if (!paths.OnPath(graph, in)) return false;
        work.push_back(in);
      }
    }
    return reached;
  };
  for (;;) {
    while (!search.waiting.empty()) {
      const int32_t parent = search.waiting.back();
      search.waiting.pop_back();
      if (!reaches(parent)) continue;
      Offer(p, e, kParentChoice, 0, list);
      parent_of_[p] = parent;
      Push(table_.row(p).children[0], graph[parent]);
      return true;
    }
    if (search.at == search.queue.size()) return false;
    // Nodes past the child on another way to the root are out.
    const int32_t n = search.queue[search.at++];
    for (int32_t in : graph.Operands(n)) {
      if (!is_data(in) || !search.seen.Add(graph[in]) || !graph.PostDominates(search.child, in)) continue;
      if (filter.Accepts(graph[in])) search.waiting.insert(search.waiting.begin(), in);
      if (paths.leads[in] && paths.OnPath(graph, in)) search.queue.push_back(in);
    }
  }
}

std::vector<const ExprNode*> PatternMatcher::OnPath(int32_t dominator) const {
  std::vector<const ExprNode*> out;
  const ExprNode* e = bound_[dominator];
  if (!e || parent_of_[dominator] < 0) return out;
  ExprIndex& graph = *graph_;
  const int32_t parent = parent_of_[dominator];
  std::vector<int32_t> work{static_cast<int32_t>(graph.IdOf(e))}, on;
  PointerSet visited;
  while (!work.empty()) {
    const int32_t n = work.back();
    work.pop_back();
    bool direct = false;
    for (int32_t in : graph.Operands(n)) direct |= in == parent;
    if (direct) continue;
    for (int32_t in : graph.Operands(n)) {
      if (in < 0 || graph[in]->IsInstance<OpNode>() || !visited.Add(graph[in])) continue;
      on.push_back(in);
      work.push_back(in);
    }
  }
  std::sort(on.begin(), on.end());
  for (int32_t i : on) out.push_back(graph[i]);
  return out;
}

bool SameAttrValue(const Any& a, const Any& b) {
  auto number = [](const Any& x, double* out) {
    if (x.Is<double>() && !x.is_null()) {
      *out = x.As<double>();
      return true;
    }
    ObjectRef o = x.Is<ObjectRef>() ? x.As<ObjectRef>() : ObjectRef();
    if (const auto* i = o.as<IntImmNode>()) return *out = static_cast<double>(i->value), true;
    if (const auto* f = o.as<FloatImmNode>()) return *out = f->value, true;
    return false;
  };
  double x = 0, y = 0;
  const bool is_number = number(a, &x);
  if (is_number != number(b, &y)) return false;
  if (is_number) return x == y;
  if (a.is_null() || b.is_null()) return a.is_null() == b.is_null();
  if (a.Is<DataType>() || b.Is<DataType>()) {
    if (!(a.Is<DataType>() || a.Is<std::string>()) || !(b.Is<DataType>() || b.Is<std::string>())) return false;
    try {
      return a.As<DataType>() == b.As<DataType>();
    } catch (const Error&) {  // a text that names no dtype
      return false;
    }
  }
  if (a.Is<std::string>() || b.Is<std::string>()) {
    return a.Is<std::string>() && b.Is<std::string>() && a.As<std::string>() == b.As<std::string>();
  }
  ObjectRef ra = a.As<ObjectRef>(), rb = b.As<ObjectRef>();
  const auto* la = ra.as<runtime::ArrayObj>();
  const auto* lb = rb.as<runtime::ArrayObj>();
  if (!la || !lb) return StructuralEqual(ra, rb);
  Array<Any> ea = a.As<Array<Any>>(), eb = b.As<Array<Any>>();
  if (ea.size() != eb.size()) return false;
  for (size_t i = 0; i < ea.size(); ++i) {
    if (!SameAttrValue(ea[i], eb[i])) return false;
  }
  return true;
}

bool PatternMatcher::Check(int32_t p, const ExprNode* e) {
  const PatternTable::Row& row = table_.row(p);
  if (row.kind == Kind::kAttr) {
    const Map<String, Any>& want = As<AttrPatternNode>(row.pattern)->attrs->dict;
    for (const auto& [key, value] : want) {
      Any have;
      if (e->IsInstance<OpNode>()) {
        have = GetRef<Op>(As<OpNode>(e)).GetAttrValue(key.c_str());
        if (have.is_null()) return false;
      } else if (e->IsInstance<FunctionNode>()) {
        const DictAttrs& attrs = As<FunctionNode>(e)->attrs;
        if (!attrs.defined() || !attrs->dict.count(key)) return false;
        have = attrs->dict.at(key);
      } else if (e->IsInstance<CallNode>()) {
        const Attrs& attrs = As<CallNode>(e)->attrs;
        if (!attrs.defined()) return false;
        if (const auto* dict = attrs.as<DictAttrsNode>()) {
          if (!dict->dict.count(key)) return false;
          have = dict->dict.at(key);
        } else {
          const auto* field = runtime::TypeInfo::Get(attrs.type_index())->Find(key.view());
          if (!field) return false;
          have = field->Get(attrs.get());
        }
      } else {
        return false;
      }
      if (!SameAttrValue(value, have)) return false;
    }
    return true;
  }
  const Object* type = TypeOf(e);
  if (!type) return false;
  if (row.kind == Kind::kType) {
    return StructuralEqual(As<TypePatternNode>(row.pattern)->type, GetRef<Type>(As<TypeNode>(type)));
  }
  if (!type->IsInstance<TensorTypeNode>()) return false;
  const auto* tensor = As<TensorTypeNode>(type);
  if (row.kind == Kind::kShape) return StructuralEqual(As<ShapePatternNode>(row.pattern)->shape, tensor->shape);
  return tensor->dtype == As<DataTypePatternNode>(row.pattern)->dtype;
}

bool MatchPattern(const DFPattern& pattern, const Expr& expr) {
  if (!expr.defined()) throw CompileError("a null expression cannot be matched");
  PatternTable table(pattern);
  PatternMatcher matcher(table, expr, nullptr, IRModule());
  return matcher.Match(expr.get());
}

}  // namespace baton::relay
