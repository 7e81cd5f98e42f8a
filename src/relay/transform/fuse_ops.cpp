// SPDX-License-Identifier: Apache-2.0
#include <baton/relay/functor.h>
#include <baton/relay/lower.h>
#include <baton/relay/op.h>
#include <baton/relay/op/annotation.h>
#include <baton/relay/transform.h>
#include <baton/support/pages.h>
#include <baton/tir/functor.h>
#include <relay/expr/expr_index.h>
#include <relay/transform/lift_arrays.h>
#include <relay/transform/type_keeper.h>
#include <relay/types/type_pool.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <span>
#include <vector>

namespace baton::relay::transform {
namespace {

// A kernel beyond a few dozen operators gains nothing and costs compile time.
constexpr size_t kMaxGroup = 256;

/// State of fusion for an expression, by id.
struct GraphNode {
  const ExprNode* expr = nullptr;  ///< of the function
  OpPattern pattern = OpPattern::kOpaque;
  uint32_t size = 1;
  int sink = -1;  ///< nearest dataflow node that every path from here to a result passes; -1: none
  int group = -1;
  int length = 0;         ///< of the longest path from here to a result, in nodes
  int seen = -1;          ///< by which search last
  bool kernel = false;    ///< a call that can become a kernel
  bool member = false;    ///< a call or a tuple: what kernels are made of
  bool external = false;  ///< used by something that is not dataflow of this function: its result
  bool anchored = false;  ///< at a group's root: the group has a heavy operator
  bool too_wide = false;  ///< more nodes between here and `sink` than a group may have
};

template <class N>
const N* As(const ExprNode* e) {
  return e->IsInstance<N>() ? static_cast<const N*>(e) : nullptr;
}

bool SameShape(const ExprNode* a, const ExprNode* b) {
  const auto *ta = a->checked_type_.as<TensorTypeNode>(), *tb = b->checked_type_.as<TensorTypeNode>();
  if (!ta || !tb || ta->shape.size() != tb->shape.size()) return false;
  for (size_t i = 0; i < ta->shape.size(); ++i) {
    if (!tir::ExprDeepEqual(ta->shape[i], tb->shape[i])) return false;
  }
  return true;
}

/// Whether a type can be an input or output of a kernel: tensors whose extents are literals or follow from variables,
/// and flat tuples of them.
bool KernelType(const Type& type) {
  if (const auto* tensor = type.as<TensorTypeNode>()) return HasKnownExtents(tensor->shape);
  const auto* tuple = type.as<TupleTypeNode>();
  if (!tuple) return false;
  for (const Type& t : tuple->fields) {
    if (!t.as<TensorTypeNode>() || !KernelType(t)) return false;
  }
  return true;
}

/// Whether a call can become a kernel: it has loops, and every extent has a name. Views, where they are left outside,
/// cost nothing by themselves; inside a kernel they cost index arithmetic. Code outside runs operator by
/// operator, with the shapes of the moment.
bool KernelCall(const CallNode* call, bool views) {
  const OpDef* def = DefOf(call->op);
  if (!def || !def->lower || def->stateful || (!views && IsView(call->op))) return false;
  if (const auto* copy = AsDeviceCopy(call->op, call->attrs); copy && copy->src_dev_type != copy->dst_dev_type)
    return false;  // not the work of one device
  // These say something of their argument, and compute nothing.
  if (AsOnDevice(call->op, call->attrs) || EndsFusion(call->op)) return false;
  auto fits = [](const ObjectRef& type) { return type.defined() && KernelType(Downcast<Type>(type)); };
  if (!fits(call->checked_type_)) return false;
  return std::all_of(call->args.begin(), call->args.end(), [&](const Expr& a) { return fits(a->checked_type_); });
}

/// Whether no operand but `operand` has the shape of the result.
bool OnlyOperand(const ExprNode* e, const ExprNode* operand) {
  const auto* call = As<CallNode>(e);
  return call && std::all_of(call->args.begin(), call->args.end(),
                             [&](const Expr& a) { return a.get() == operand || !SameShape(a.get(), e); });
}

bool TensorResult(const ExprNode* e) { return e->checked_type_.as<TensorTypeNode>() != nullptr; }
/// Bits of an element of a tensor; 0 for other values.
int BitsOf(const ExprNode* e) {
  const auto* t = e->checked_type_.as<TensorTypeNode>();
  return t ? t->dtype.bits() : 0;
}
/// A resize that chooses an element for each of its results, where others compute means.
bool TakesNearest(const CallNode* call) {
  const auto* field =
      call->attrs.defined() ? runtime::TypeInfo::Get(call->attrs.type_index())->Find("method") : nullptr;
  return field && TensorResult(call) && call->args.size() == 1 &&
         field->Get(call->attrs.get()).As<String>() == "nearest_neighbor";
}
/// A call that gives a tuple of parts of its operand.
bool IsSplit(const ExprNode* e) {
  const auto* call = As<CallNode>(e);
  const OpDef* def = call ? DefOf(call->op) : nullptr;
  return def && def->pattern == OpPattern::kInjective && !TensorResult(e) && KernelCall(call, true);
}
bool PartOfSplit(const ExprNode* e) {
  const auto* item = As<TupleGetItemNode>(e);
  return item && IsSplit(item->tuple.get());
}

/// A few expressions by what they stand for: groups are small.
class Few {
 public:
  const Expr* Find(const Object* key) const {
    for (const auto& [k, e] : entries_) {
      if (k == key) return &e;
    }
    return nullptr;
  }
  void Add(const Object* key, Expr e) { entries_.emplace_back(key, std::move(e)); }

 private:
  std::vector<std::pair<const Object*, Expr>> entries_;
};

/// Arguments are evaluated from left to right: those with effects must come as they did in the program.
void InOrder(const std::vector<int>& order, Array<Var>* params, Array<Expr>* args) {
  std::vector<int64_t> sorted(order.size());
  std::iota(sorted.begin(), sorted.end(), 0);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [&](int64_t a, int64_t b) { return order[static_cast<size_t>(a)] < order[static_cast<size_t>(b)]; });
  Array<Var> p;
  Array<Expr> a;
  for (int64_t i : sorted) p.push_back((*params)[i]), a.push_back((*args)[i]);
  *params = p;
  *args = a;
}

/// Finds groups of operators for one kernel each, by post-dominators: a producer joins its post-dominator when every
/// operator between them may be fused.
class Fuser {
 public:
  Fuser(int max_pattern, size_t max_group, bool views)
      : max_pattern_(max_pattern), max_group_(max_group), views_(views) {}

  Function Run(const Function& func) {
    Build(func);
    FindSinks();
    for (int phase = 0; phase < 3; ++phase) {
      for (uint32_t id : index_->ids())
        phase < 2 ? TryFuse(static_cast<int>(id), phase) : FuseIntoTuple(static_cast<int>(id));
    }
    return Rewrite(func);
  }

 private:
  int Find(int i) {
    while (nodes_[i].group != i) i = nodes_[i].group = nodes_[nodes_[i].group].group;
    return i;
  }

  void Build(const Function& func) {
    index_.emplace(func->body);
    nodes_.Fill(index_->size(), GraphNode());
    for (uint32_t id : index_->ids()) {
      const ExprNode* e = index_->Visit(id);
      GraphNode& n = nodes_[id];
      n.expr = e;
      n.group = static_cast<int>(id);
      n.member = As<CallNode>(e) || As<TupleNode>(e);
      if (views_ && PartOfSplit(e)) n.member = true, n.pattern = OpPattern::kInjective;
      if (const auto* call = As<CallNode>(e)) {
        const OpDef* def = DefOf(call->op);
        effects_ = effects_ || !(def ? !def->stateful : call->op.as<ConstructorNode>() != nullptr);
        n.kernel = KernelCall(call, views_);
        if (n.kernel && TensorResult(e)) n.pattern = DefOf(call->op)->pattern;
        if (views_ && n.kernel && (IsSplit(e) || TakesNearest(call))) n.pattern = OpPattern::kInjective;
      } else if (As<TupleNode>(e)) {
        n.pattern = OpPattern::kTuple;
      } else if (!As<TupleGetItemNode>(e)) {
        effects_ = effects_ || As<RefCreateNode>(e) || As<RefReadNode>(e) || As<RefWriteNode>(e);
        // Operands of what is not dataflow (let, if, match, closures) keep their values outside of groups. (Variables
        // that it binds are in no group.)
        for (uint32_t operand : index_->Operands(id)) {
          if (operand != ExprIndex::kNone) nodes_[operand].external = true;
        }
      }
      n.anchored = n.pattern == OpPattern::kOutEWiseFusable;
    }
    if (!nodes_.empty()) nodes_.back().external = true;
  }
  /// The id of a node, -1 if the function has no such.
  int IdOf(const ExprNode* e) const { return static_cast<int>(index_->IdOf(e)); }
  /// The nodes that use the value; some do not compute with it if it is external.
  std::span<const uint32_t> Consumers(int i) const { return index_->Users(i); }
  /// Finds each node's sink, users first.
  void FindSinks() {
    for (uint32_t id : index_->ids_from_root()) {
      GraphNode& n = nodes_[id];
      if (n.external || index_->atom(id)) continue;
      const uint32_t sink = index_->PostDominator(id);
      if (sink != ExprIndex::kNone && index_->kind(sink) == ExprIndex::kDataflow) n.sink = static_cast<int>(sink);
      for (uint32_t c : Consumers(id)) n.length = std::max(n.length, nodes_[c].length + 1);
      n.too_wide = n.sink >= 0 && TooWide(id);
    }
  }
  /// Whether more operators are between a node and its post-dominator than a group may have. Said
  /// once here, so that a wide net is not searched again from each of its nodes. Consumers are done.
  bool TooWide(int from) {
    const GraphNode& n = nodes_[from];
    // Every path ends in the post-dominator: the longest one has so many nodes.
    if (static_cast<size_t>(n.length - nodes_[n.sink].length) > max_group_) return true;
    if (Consumers(from).size() == 1) return false;
    for (int c : Consumers(from)) {
      if (c != n.sink && nodes_[c].too_wide) return true;  // its post-dominator is on the way to this one's
    }
    size_t count = 1;  // the post-dominator
    std::vector<int> work{from};
    while (!work.empty()) {
      int i = work.back();
      work.pop_back();
      for (int c : Consumers(i)) {
        if (c == n.sink || nodes_[c].seen == from) continue;
        nodes_[c].seen = from;
        if (++count > max_group_) return true;
        work.push_back(c);
      }
    }
    return false;
  }
  /// A part of a split's result whose split is elsewhere: it would bring all parts into a kernel.
  bool Apart(int i) {
    const auto* item = As<TupleGetItemNode>(nodes_[i].expr);
    return item && Find(IdOf(item->tuple.get())) != Find(i);
  }
  /// Puts the groups of nodes into another one, if it does not become too large.
  void Join(std::vector<int> roots, int target) {
    std::sort(roots.begin(), roots.end());
    roots.erase(std::unique(roots.begin(), roots.end()), roots.end());
    size_t size = 0;
    int anchors = 0;
    for (int r : roots) size += nodes_[r].size, anchors += nodes_[r].anchored;
    if (anchors > 1 || size > max_group_) return;
    for (int r : roots) {
      if (r == target) continue;
      nodes_[r].group = target;
      nodes_[target].size += nodes_[r].size;
      nodes_[target].anchored |= nodes_[r].anchored;
    }
  }
  /// Phase 2, where views may be part of kernels: light operators join the tuple that an operator such as concatenate
  /// takes, whose group is light itself.
  void FuseIntoTuple(int i) {
    const GraphNode& n = nodes_[i];
    if (!views_ || max_pattern_ < 0 || n.sink < 0 || n.too_wide || n.pattern > OpPattern::kInjective) return;
    const GraphNode& tuple = nodes_[n.sink];
    if (tuple.pattern != OpPattern::kTuple || tuple.external || Consumers(n.sink).size() != 1) return;
    const int taker = static_cast<int>(Consumers(n.sink)[0]), target = Find(taker);
    const auto light = [&](int k) { return nodes_[k].pattern <= OpPattern::kInjective && !nodes_[Find(k)].anchored; };
    if (!light(taker) || !light(target) || !light(i) || Apart(i) || target == Find(i)) return;
    std::vector<int> between;
    if (!Collect(i, n.sink, 2, &between)) return;
    std::vector<int> roots{Find(i), target};
    for (int b : between) roots.push_back(Find(b));
    Join(roots, target);
  }
  /// Phase 0: a heavy operator takes the elementwise operators that follow. Phase 1: light operators join what follows.
  void TryFuse(int i, int phase) {
    GraphNode& n = nodes_[i];
    if (n.sink < 0 || static_cast<int>(n.pattern) > max_pattern_ || Apart(i)) return;
    GraphNode& root = nodes_[Find(i)];
    if (phase == 0 && !root.anchored) return;
    if (n.too_wide) return;
    if (phase == 0 && WidenedElsewhere(i)) return;
    if (phase == 1 && (root.anchored || n.pattern > OpPattern::kInjective)) return;
    if (phase == 1 && JoinEpilogue(i)) return;
    // The group so far must end here: only its last node has consumers outside.
    int sink = n.sink;
    std::vector<int> between;
    if (!Collect(i, sink, phase, &between)) return;
    std::vector<int> roots{Find(i)};
    for (int b : between) roots.push_back(Find(b));
    Join(roots, Find(sink));
  }

  /// Whether operator `i` works element by element on value `from`, of the same shape.
  bool FollowsElementwise(int from, int i) const {
    const GraphNode& n = nodes_[i];
    return n.kernel && n.pattern <= OpPattern::kBroadcast && SameShape(nodes_[from].expr, n.expr);
  }
  /// Whether the steps that follow value `i` one by one only make wider elements of it, for the epilogue of a
  /// heavy operator that is there already: memory between the two holds the narrow ones.
  bool WidenedElsewhere(int i) {
    for (int at = i; !nodes_[at].external && Consumers(at).size() == 1;) {
      const int next = static_cast<int>(Consumers(at)[0]);
      if (!FollowsElementwise(at, next)) return false;
      if (nodes_[Find(next)].anchored) return at != i && BitsOf(nodes_[at].expr) > BitsOf(nodes_[i].expr);
      if (!OnlyOperand(nodes_[next].expr, nodes_[at].expr)) return false;
      at = next;
    }
    return false;
  }
  /// The group of light steps that ends with `i` joins the epilogue that alone reads it, if it widens what it reads.
  bool JoinEpilogue(int i) {
    const GraphNode& n = nodes_[i];
    if (n.pattern > OpPattern::kBroadcast || !n.kernel || n.external || Consumers(i).size() != 1 || Find(i) != i)
      return false;
    const int next = static_cast<int>(Consumers(i)[0]), target = Find(next);
    if (!nodes_[target].anchored || !FollowsElementwise(i, next)) return false;
    for (int at = i, before = -1; at >= 0; at = before, before = -1) {
      for (const Expr& a : As<CallNode>(nodes_[at].expr)->args) {
        const int k = SameShape(a.get(), n.expr) ? IdOf(a.get()) : -1;
        if (k >= 0 && Find(k) == i) {
          before = As<CallNode>(nodes_[k].expr) ? k : -1;
        } else if (SameShape(a.get(), n.expr) && BitsOf(a.get()) < BitsOf(n.expr)) {
          Join({i, target}, target);
          return true;
        }
      }
    }
    return false;
  }

  bool Fusable(int from, int i, int phase, bool is_sink) {
    const GraphNode& n = nodes_[i];
    if (phase == 0) {
      // The epilogue runs in registers at the store: it must write elements of the heavy operator's own shape.
      return n.pattern <= OpPattern::kBroadcast && SameShape(nodes_[from].expr, n.expr) && !nodes_[Find(i)].anchored;
    }
    if (nodes_[Find(i)].anchored) return false;  // heavy kernels read plain buffers
    if (n.pattern == OpPattern::kTuple) return phase == 2 ? is_sink : !is_sink;
    if (n.pattern <= OpPattern::kInjective) return true;
    return is_sink && n.pattern == OpPattern::kCommReduce && phase == 1;
  }

  /// All nodes on paths from `from` to `sink`, the latter included; false if one may not be fused.
  bool Collect(int from, int sink, int phase, std::vector<int>* out) {
    const int search = --searches_;
    std::vector<int> work(Consumers(from).begin(), Consumers(from).end());
    while (!work.empty()) {
      int i = work.back();
      work.pop_back();
      if (nodes_[i].seen == search) continue;
      nodes_[i].seen = search;
      bool is_sink = i == sink;
      if (!Fusable(from, i, phase, is_sink) || out->size() >= max_group_) return false;
      // A tuple is fused with the operator that takes it, never without.
      if (nodes_[i].pattern == OpPattern::kTuple) {
        if (nodes_[i].external) return false;
      }
      out->push_back(i);
      if (!is_sink) {
        if (nodes_[i].external || Consumers(i).empty()) return false;
        for (int c : Consumers(i)) work.push_back(c);
      }
    }
    // A tuple's consumer must be an operator that can be fused: a kTuple whose post-dominator is the sink is on the
    // way.
    return true;
  }

  // ---- Rewriting

  Function Rewrite(const Function& func) {
    // Calls and tuples by group, in order.
    const int n = static_cast<int>(nodes_.size());
    first_member_.assign(nodes_.size() + 1, 0);
    for (int i = 0; i < n; ++i) first_member_[Find(i) + 1] += nodes_[i].member;
    for (int i = 0; i < n; ++i) first_member_[i + 1] += first_member_[i];
    members_.resize(first_member_[n]);
    std::vector<int> at(first_member_.begin(), first_member_.end() - 1);
    for (int i = 0; i < n; ++i) {
      if (nodes_[i].member) members_[at[Find(i)]++] = i;
    }
    return Downcast<Function>(Rebuild(func));
  }

  /// Kernels: groups whose last member is an operator call. Others stay as they are.
  Expr Rebuild(const Function& func) {
    struct Mut : TypeKeeper {
      using TypeKeeper::Rewrite_;
      using TypeKeeper::VisitExpr_;
      Fuser* f;
      Expr Rewrite_(const CallNode* pre, const Expr& post) final {
        const auto* called = pre->op.as<FunctionNode>();
        if (called && called->HasNonzeroAttr(attr::kPrimitive)) return Typed(pre, WithArrays(pre, post));
        // The group before it has ended here: the annotation has done its work.
        if (EndsFusion(pre->op)) return post.as<CallNode>()->args[0];
        return Typed(pre, f->Emit(pre, post, this));
      }
      Expr Rewrite_(const TupleGetItemNode* pre, const Expr& post) final {
        return Typed(pre, f->FusedPart(pre) ? f->Emit(pre, post, this) : post);
      }
      Expr VisitExpr_(const FunctionNode* op) final {
        // Functions that are kernels already stay, but they take arrays from outside.
        if (!op->HasNonzeroAttr(attr::kPrimitive)) return TypeKeeper::VisitExpr_(op);
        const LiftedArrays lifted = LiftArrays(GetRef<Function>(op));
        if (lifted.arrays.empty()) return GetRef<Expr>(op);
        Array<Var> params;
        Array<Expr> args;
        for (const Var& p : op->params) {
          Var own(p->vid, p->type_annotation);
          own->checked_type_ = p->checked_type_;
          params.push_back(own), args.push_back(own);
        }
        for (const Constant& c : lifted.arrays) args.push_back(c);
        Call call(lifted.func, args, Attrs(), Array<Type>());
        call->checked_type_ = op->body->checked_type_;
        return Function(params, call, op->ret_type, op->type_params);
      }
      /// A call of a kernel that holds arrays hands them over itself.
      static Expr WithArrays(const CallNode* pre, const Expr& post) {
        const auto* call = post.as<CallNode>();
        if (call->op.same_as(pre->op)) return post;
        const auto* inner = call->op.as<FunctionNode>()->body.as<CallNode>();
        Array<Expr> args = call->args;
        for (size_t i = args.size(); i < inner->args.size(); ++i) args.push_back(inner->args[static_cast<int64_t>(i)]);
        Call out(inner->op, args, call->attrs, Array<Type>());
        out->span = call->span;
        return out;
      }
    } m;
    m.f = this;
    return m.VisitExpr(func);
  }

  /// Whether a part of a split's result is the result of a group.
  bool FusedPart(const TupleGetItemNode* item) {
    const int i = IdOf(item), of = IdOf(item->tuple.get());
    return i >= 0 && of >= 0 && nodes_[i].member && Find(i) == i && Find(of) == i;
  }

  Expr Emit(const ExprNode* pre, const Expr& post, ExprMutator* mutator) {
    const int i = IdOf(pre);
    if (i < 0 || !(nodes_[i].kernel || As<TupleGetItemNode>(pre))) return post;
    // Inner members are emitted with the last one; what they become here is not used.
    if (i != Find(i)) return post;
    // Members in post order: build the body with parameters in place of what comes from outside.
    Few body, param_of;
    Array<Var> params;
    Array<Expr> args;
    std::vector<int> order;  // of the parameters, as they are evaluated
    auto param = [&](const Type& type, const Expr& arg, const Expr& of) {
      Var v(ParamName(params.size()), type);
      v->checked_type_ = type;
      params.push_back(v);
      args.push_back(arg);
      order.push_back(IdOf(of.get()));
      return v;
    };
    auto inside = [&](const Expr& e) -> Expr {
      if (const Expr* b = body.Find(e.get())) return *b;
      if (const auto* c = e.as<ConstantNode>(); c && c->is_scalar()) return e;  // immediate operand
      if (const Expr* p = param_of.Find(e.get())) return *p;
      Expr arg = mutator->VisitExpr(e);
      if (const auto* types = e->checked_type_.as<TupleTypeNode>()) {
        // A kernel takes tensors: of a tuple that comes from elsewhere its fields.
        Array<Expr> fields;
        for (size_t k = 0; k < types->fields.size(); ++k) {
          TupleGetItem field(arg, static_cast<int>(k));
          field->checked_type_ = types->fields[k];
          fields.push_back(param(types->fields[k], field, e));
        }
        Tuple all(fields);
        all->checked_type_ = e->checked_type_;
        body.Add(e.get(), all);
        return all;
      }
      Var v = param(Downcast<Type>(e->checked_type_), arg, e);
      param_of.Add(e.get(), v);
      return v;
    };
    for (int at = first_member_[i]; at < first_member_[i + 1]; ++at) {
      const ExprNode* e = nodes_[members_[at]].expr;
      if (const auto* call = As<CallNode>(e)) {
        Array<Expr> a;
        for (const Expr& x : call->args) {
          // A tuple that only feeds this operator belongs to it.
          if (const auto* t = x.as<TupleNode>(); t && !body.Find(x.get())) {
            Array<Expr> fields;
            for (const Expr& f : t->fields) fields.push_back(inside(f));
            Tuple inner(fields);
            inner->checked_type_ = x->checked_type_;
            inner->span = x->span;
            a.push_back(inner);
          } else {
            a.push_back(inside(x));
          }
        }
        Call c(call->op, a, call->attrs, call->type_args);
        c->checked_type_ = call->checked_type_;
        c->span = call->span;
        body.Add(e, c);
      } else if (const auto* t = As<TupleNode>(e)) {
        Array<Expr> fields;
        for (const Expr& f : t->fields) fields.push_back(inside(f));
        Tuple c(fields);
        c->checked_type_ = t->checked_type_;
        body.Add(e, c);
      } else if (const auto* item = As<TupleGetItemNode>(e)) {
        TupleGetItem c(inside(item->tuple), static_cast<int64_t>(item->index));
        c->checked_type_ = item->checked_type_;
        body.Add(e, c);
      }
    }
    if (effects_) InOrder(order, &params, &args);
    Function f(params, *body.Find(pre), Downcast<Type>(pre->checked_type_), Array<TypeVar>(), primitive_);
    Array<Type> arg_types;
    for (const Var& p : params) arg_types.push_back(p->type_annotation);
    f->checked_type_ = types_.Share(
        FuncType(Array<TypeVar>(), arg_types, Downcast<Type>(pre->checked_type_), Array<TypeConstraint>()));
    f->span = pre->span;
    Call out(f, args, Attrs(), Array<Type>());
    out->checked_type_ = pre->checked_type_;
    out->span = pre->span;
    return out;
  }

  /// Objects shared by many kernels are made once.
  String ParamName(size_t i) {
    while (names_.size() <= i) names_.push_back(String("p" + std::to_string(names_.size())));
    return names_[i];
  }
  std::vector<String> names_;
  TypePool types_;
  DictAttrs primitive_{Map<String, Any>{{String(attr::kPrimitive), Any(1)}}};

  int searches_ = -1;
  bool effects_ = false;  ///< the function may do more than give a value
  int max_pattern_;
  size_t max_group_;
  bool views_;
  support::PageStack<GraphNode> nodes_;
  std::vector<int> first_member_, members_;
  std::optional<ExprIndex> index_;  ///< its ids are places among nodes_
};

}  // namespace

/// Every operator that has a lowering ends in a function with attribute Primitive, alone or with others.
Pass FuseOps(const FuseOpsOptions& options) {
  return MakePass<FuseOps>(
      options, {
                   .doc = "Groups operators into primitive functions, one kernel each.",
                   .opt_level = 0,
                   .required = {"InferType"},
                   .run =
                       [fuse_opt_level = options.fuse_opt_level, max_depth = options.max_depth, views = options.views](
                           Function f, IRModule, PassContext ctx) {
                         if (f->HasNonzeroAttr(attr::kPrimitive)) return f;
                         int level = fuse_opt_level < 0 ? ctx->opt_level : fuse_opt_level;
                         return Fuser(level >= 1 ? static_cast<int>(OpPattern::kOutEWiseFusable) : -1,
                                      static_cast<size_t>(std::min(max_depth, static_cast<int64_t>(kMaxGroup))), views)
                             .Run(f);
                       },
               });
}

namespace {
const RegisterPass<FuseOps> registered_fuse_ops;
}  // namespace

}  // namespace baton::relay::transform
