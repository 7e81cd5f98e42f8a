// SPDX-License-Identifier: Apache-2.0
// Device planning. One walk over a function writes down which values must live on one device (DeviceDomains); what an
// annotation fixes is settled first, then the uses at which a copy may stand, in the order of the program; the rest
// goes to the default device. A second walk writes the result into the program: copies where a value is used on another
// device, `on_device(..., is_fixed=True)` on what a let binds, devices of parameters and results as attributes.
//
// Where a copy may stand: at the result of on_device, at uses of variables and of values with several uses, at
// arguments and results of calls of functions, at conditions of `if`. Arguments and result of an operator share their
// device.
#include <baton/ir/diagnostic.h>
#include <baton/ir/structural.h>
#include <baton/relay/device.h>
#include <baton/relay/functor.h>
#include <baton/relay/op.h>
#include <baton/relay/op/annotation.h>
#include <baton/relay/op/make.h>
#include <baton/relay/transform.h>
#include <baton/runtime/device_types.h>
#include <baton/runtime/interrupt.h>
#include <baton/runtime/named.h>
#include <baton/runtime/registry.h>
#include <fmt/format.h>
#include <relay/expr/blocks.h>
#include <relay/expr/call_graph.h>
#include <relay/expr/node_graph.h>
#include <relay/transform/device_domains.h>
#include <relay/transform/plan_devices.h>
#include <relay/transform/type_keeper.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <unordered_map>

namespace baton::relay::transform {
namespace {

using Id = DeviceDomains::Id;
using Signature = std::vector<int64_t>;  ///< devices of a function's leaves: parameters, then the result

constexpr int64_t kHost = kDLCPU;

std::string DeviceName(int64_t type) {
  if (type < 0) return "any device";
  std::string name = runtime::Device2String({static_cast<DLDeviceType>(type), 0});
  return fmt::format("{} ({})", type, name.substr(0, name.find('(')));
}

std::string Place(const ExprNode* n) {
  if (!n || !n->span.defined() || !n->span->source_name.defined() || n->span->line == 0) return "";
  return fmt::format("{}:{}:{}", n->span->source_name->name.view(), n->span->line, n->span->column);
}

std::string Brief(const ExprNode* n) {
  if (!n) return "";
  if (n->IsInstance<VarNode>()) return fmt::format("%{}", static_cast<const VarNode*>(n)->name_hint().view());
  if (n->IsInstance<GlobalVarNode>()) return fmt::format("@{}", static_cast<const GlobalVarNode*>(n)->name_hint.view());
  if (n->IsInstance<CallNode>()) {
    const Expr& op = static_cast<const CallNode*>(n)->op;
    if (const auto* o = op.as<OpNode>()) return o->name.str();
    if (const auto* k = op.as<ConstructorNode>()) return k->name_hint.str();
    return op.as<FunctionNode>() ? "call of a function" : fmt::format("call of {}", Brief(op.get()));
  }
  if (n->IsInstance<FunctionNode>()) return "fn";
  std::string key = n->GetTypeKey();
  return key.substr(key.rfind('.') + 1);
}

Type TypeOf(const ExprNode* n) {
  if (n->checked_type_.defined()) return runtime::RefCast<Type>(n->checked_type_);
  if (n->IsInstance<VarNode>()) return static_cast<const VarNode*>(n)->type_annotation;
  return Type();
}
bool IsUnit(const Type& t) { return t.as<TupleTypeNode>() && t.as<TupleTypeNode>()->fields.empty(); }

enum class OpKind { kPlain, kOnDevice, kDeviceCopy, kShapeOf, kAllocStorage, kAllocTensor, kReshapeTensor, kInvoke };
OpKind KindOf(const Expr& op) {
  if (op.same_as(op::on_device)) return OpKind::kOnDevice;
  if (op.same_as(op::device_copy)) return OpKind::kDeviceCopy;
  static const Op shape_of = Op::Get("shape_of"), size = Op::Get("ndarray_size");
  if (op.same_as(shape_of) || op.same_as(size) || op.same_as(op::vm_shape_of) || op.same_as(op::vm_shape_func))
    return OpKind::kShapeOf;
  if (op.same_as(op::memory_alloc_storage)) return OpKind::kAllocStorage;
  if (op.same_as(op::memory_alloc_tensor)) return OpKind::kAllocTensor;
  if (op.same_as(op::vm_reshape_tensor)) return OpKind::kReshapeTensor;
  return op.same_as(op::vm_invoke_tvm_op) ? OpKind::kInvoke : OpKind::kPlain;
}
bool IsFixed(const Expr& e) {
  const auto* c = e.as<CallNode>();
  return c && c->op.same_as(op::on_device) && AttrsAs<OnDeviceAttrs>(c->attrs).is_fixed;
}

enum class How {
  kFollow,  ///< on the user's device; a copy may stand here if the part is one that can be elsewhere
  kHard,    ///< on the user's device, without a copy
  kSoft,    ///< on the user's device, with a copy if it is elsewhere
  kApart    ///< on a device of its own, which is written down
};

/// What planning of one module needs across functions.
class ModulePlan {
 public:
  ModulePlan(const IRModule& mod, int64_t default_device, PlacementReport* report);
  IRModule Run();

  int64_t default_device() const { return default_; }
  /// Devices of a global function in terms of `domains`: those it requires, and those that must be equal.
  Id Instantiate(const GlobalVarNode* var, const ExprNode* by, DeviceDomains* domains);
  /// The variable of the function for these devices.
  GlobalVar Specialise(const GlobalVarNode* var, const Signature& signature);
  DiagnosticList& errors() { return errors_; }
  PlacementReport* report = nullptr;
  PointerMap<int64_t>* placed = nullptr;  ///< if it is asked for: the device of each expression of the result

 private:
  struct Entry {
    GlobalVar var;
    Function func;
    size_t group = 0;
    bool called = false;
    bool planned = false;
    // Signature of leaves: >= 0 a device, < 0 a class of equal ones.
    Signature scheme;
    bool has_scheme = false;
    std::map<Signature, GlobalVar> versions;
  };
  struct Demand {
    size_t entry;
    Signature signature;
    bool open;  ///< an entry function: devices are found, not given
    GlobalVar var;
  };
  void Plan(const Demand& demand);
  void FindScheme(size_t entry);

  IRModule mod_, out_;
  int64_t default_;
  std::vector<Entry> entries_;
  /// The number among entries_ of the module's function of this name; kNone if that is none of Relay's.
  size_t IndexOf(std::string_view name) const {
    const auto* e = runtime::FindNamed(mod_->functions.get(), name);
    return e ? numbers_[static_cast<size_t>(e - mod_->functions->entries.data())] : kNone;
  }
  static constexpr size_t kNone = static_cast<size_t>(-1);

  std::vector<size_t> numbers_;  ///< of each function of the module
  std::vector<std::vector<size_t>> groups_;
  size_t schemed_ = 0;  ///< groups below it have schemes, where any function of theirs is called
  std::vector<Demand> work_;
  size_t done_ = 0;
  std::set<std::string> names_;  ///< that were given to copies
  DiagnosticList errors_;
};

/// Planning of one function, together with those that it calls in a circle.
class BodyPlan {
 public:
  BodyPlan(ModulePlan* mod, const std::vector<std::pair<GlobalVar, Function>>& funcs) : mod_(mod), funcs_(funcs) {
    host_ = d_.Leaf();
    d_.Set(host_, kHost, nullptr, "the condition of `if`, which the host decides");
    for (const auto& [var, func] : funcs) roots_[var->name_hint.view()] = Dom(func.get());
  }
  DeviceDomains& domains() { return d_; }
  Id Root(size_t i) { return Dom(funcs_[i].second.get()); }
  void Constrain();
  void Settle(bool use_default);
  Function Rewrite(const Function& func, const std::string& name);
  Signature Resolve(Id id) {
    std::vector<Id> leaves;
    d_.Leaves(id, &leaves);
    Signature out;
    for (Id l : leaves) out.push_back(d_.DeviceOf(l));
    return out;
  }

 private:
  struct Info {
    using ZeroIsDefault = void;
    Id dom = 0;
    Id aux = 0;
    uint32_t uses = 0;
  };
  struct Soft {
    Id part, want;
    const ExprNode* by;
    const char* rule;
  };
  struct Copy {
    Expr source, copy;
    int64_t from, to;
  };

  /// Who goes through `order` is at `i` and looks at parts, too.
  static void PartsSoon(const NodeList& order, size_t i) {
    constexpr size_t kSoon = 4;  // lists of parts have been asked for by then
    if (i + kSoon < order.size()) Ahead::EachPartSoon(order[i + kSoon]);
  }
  static bool HasDomain(const ExprNode* n) { return !IsAtom(n) || n->IsInstance<VarNode>(); }
  Id Dom(const ExprNode* n) { return InfoOf(n).dom; }
  /// Until the next is made.
  Info& InfoOf(const ExprNode* n) {
    bool fresh = false;
    Info& i = info_.Insert(n, &fresh);
    if (fresh) i.dom = d_.OfType(TypeOf(n));
    return i;
  }
  Id& Aux(const ExprNode* n) { return info_[n].aux; }
  Id Instance(const GlobalVarNode* var, const ExprNode* by, int index) {
    auto [it, fresh] = instances_.try_emplace({by, index}, 0);
    if (fresh) {
      auto own = roots_.find(var->name_hint.view());
      it->second = own != roots_.end() ? own->second : mod_->Instantiate(var, by, &d_);
    }
    return it->second;
  }
  Id CalleeOf(const CallNode* c) {
    const auto* g = c->op.as<GlobalVarNode>();
    return g ? Instance(g, c, -1) : Dom(c->op.get());
  }

  /// f(part, want, how, rule, index) for each part that `n` evaluates.
  template <class F>
  void ForEachUse(const ExprNode* n, F f);
  void Node(const ExprNode* n);
  void CallOf(const CallNode* c);
  void FunctionOf(const FunctionNode* fn);
  void Edge(const ExprNode* by, const Expr& part, Id want, How how, const char* rule, int index);
  bool Movable(const ExprNode* part);
  static bool OfOperator(const ExprNode* by);
  bool Known(int64_t type, const char* what, const ExprNode* by);

  Expr Part(const ExprNode* by, const Expr& part, Id want, How how, const char* rule, int index);
  Expr Moved(const ExprNode* by, const Expr& value, int64_t from, int64_t to, const char* rule);
  void Tell(const ExprNode* value, int64_t from, int64_t to, std::string because);
  Expr Rebuild(const ExprNode* n);
  Expr Fixed(const Expr& e, int64_t device);
  int64_t Device(Id id) { return DeviceDomains::IsFunction(id) ? -1 : d_.DeviceOf(id); }
  Any DevicesOf(Id id);
  int64_t NumberOf(const Any& devices);
  void Say(const std::string& function);

  ModulePlan* mod_;
  const std::vector<std::pair<GlobalVar, Function>>& funcs_;
  DeviceDomains d_;
  Id host_;
  PointerMap<Info> info_;
  std::unordered_map<std::string_view, Id> roots_;
  std::map<std::pair<const ExprNode*, int>, Id> instances_;
  std::vector<NodeList> orders_;
  std::vector<Soft> soft_;
  PointerMap<Expr> made_;                     // of what did not stay as it was
  std::vector<Expr> parts_;                   // of the node that is rebuilt
  PointerMap<std::vector<Copy>> copies_;      // by what is copied
  PointerMap<Copy> copy_of_;                  // by the copy
  std::unordered_map<Id, Array<Any>> lists_;  // devices of functions
  std::unordered_map<const Object*, int64_t> list_numbers_;
  std::map<std::vector<int64_t>, int64_t> numbers_;
  std::set<std::pair<Id, const Object*>> set_lists_;  // that functions have
  std::vector<PlacementReport::Copy> told_;
  std::vector<Expr> keep_;
};

template <class F>
void BodyPlan::ForEachUse(const ExprNode* n, F f) {
  if (n->IsInstance<CallNode>()) {
    const auto* c = static_cast<const CallNode*>(n);
    const auto& args = c->args;
    if (c->op.as<OpNode>()) {
      const OpKind kind = KindOf(c->op);
      if (kind == OpKind::kOnDevice && args.size() == 1) {
        f(args[0], Aux(n), IsFixed(GetRef<Expr>(n)) ? How::kHard : How::kFollow, "argument of on_device", 0);
      } else if (kind == OpKind::kDeviceCopy && args.size() == 1) {
        f(args[0], Aux(n), How::kHard, "argument of device_copy", 0);
      } else {
        for (size_t i = 0; i < args.size(); ++i) {
          const bool apart = kind == OpKind::kShapeOf || kind == OpKind::kAllocStorage ||
                             ((kind == OpKind::kAllocTensor || kind == OpKind::kReshapeTensor) && i > 0) ||
                             (kind == OpKind::kInvoke && i == 0);
          f(args[i], Dom(n), apart ? How::kApart : How::kFollow, "argument", static_cast<int>(i));
        }
      }
    } else if (c->op.as<ConstructorNode>()) {
      for (size_t i = 0; i < args.size(); ++i) f(args[i], Dom(n), How::kFollow, "field", static_cast<int>(i));
    } else {
      const Id callee = CalleeOf(c);
      if (!c->op.as<GlobalVarNode>()) f(c->op, callee, How::kHard, "callee", -2);
      for (size_t i = 0; i < args.size(); ++i) {
        Id want = Dom(n);
        if (DeviceDomains::IsFunction(callee)) {
          if (i + 1 < d_.PartsOf(callee).size()) want = d_.PartsOf(callee)[i];
        } else {
          want = callee;
        }
        f(args[i], want, How::kSoft, "argument of a function", static_cast<int>(i));
      }
    }
  } else if (n->IsInstance<TupleNode>()) {
    int i = 0;
    for (const Expr& e : static_cast<const TupleNode*>(n)->fields) f(e, Dom(n), How::kFollow, "field of a tuple", i++);
  } else if (n->IsInstance<TupleGetItemNode>()) {
    f(static_cast<const TupleGetItemNode*>(n)->tuple, Dom(n), How::kFollow, "tuple", 0);
  } else if (n->IsInstance<LetNode>()) {
    const auto* l = static_cast<const LetNode*>(n);
    f(l->value, Dom(l->var.get()), How::kFollow, "value of a let", 0);
    f(l->body, Dom(n), How::kFollow, "body of a let", 1);
  } else if (n->IsInstance<IfNode>()) {
    const auto* i = static_cast<const IfNode*>(n);
    f(i->cond, host_, How::kSoft, "condition of an if", 0);
    f(i->true_branch, Dom(n), How::kFollow, "branch of an if", 1);
    f(i->false_branch, Dom(n), How::kFollow, "branch of an if", 2);
  } else if (n->IsInstance<FunctionNode>()) {
    const Id own = Dom(n);
    f(static_cast<const FunctionNode*>(n)->body, DeviceDomains::IsFunction(own) ? d_.PartsOf(own).back() : own,
      How::kFollow, "result of a function", 0);
  } else if (n->IsInstance<RefCreateNode>()) {
    f(static_cast<const RefCreateNode*>(n)->value, Dom(n), How::kFollow, "value of a reference", 0);
  } else if (n->IsInstance<RefReadNode>()) {
    f(static_cast<const RefReadNode*>(n)->ref, Dom(n), How::kHard, "reference", 0);
  } else if (n->IsInstance<RefWriteNode>()) {
    f(static_cast<const RefWriteNode*>(n)->ref, Dom(n), How::kHard, "reference", 0);
    f(static_cast<const RefWriteNode*>(n)->value, Dom(n), How::kFollow, "value of a reference", 1);
  } else if (n->IsInstance<MatchNode>()) {
    const auto* m = static_cast<const MatchNode*>(n);
    f(m->data, Aux(n), How::kFollow, "matched value", 0);
    int i = 1;
    ForEachClause(m, [&](const Clause& c) { f(c->rhs, Dom(n), How::kFollow, "clause of a match", i++); });
  }
}

// ---- Constraints

bool BodyPlan::Movable(const ExprNode* part) {
  if (part->IsInstance<VarNode>() || info_[part].uses > 1) return true;
  if (!part->IsInstance<CallNode>()) return false;
  const Expr& op = static_cast<const CallNode*>(part)->op;
  return !op.as<OpNode>() && !op.as<ConstructorNode>();
}

void BodyPlan::Edge(const ExprNode* by, const Expr& part, Id want, How how, const char* rule, int index) {
  if (how == How::kApart) return;
  if (const auto* g = part.as<GlobalVarNode>()) {
    d_.Unify(Instance(g, by, index), want, by, rule);
  } else if (part.as<ConstructorNode>() || part.as<OpNode>()) {
    std::vector<Id> leaves;
    d_.Leaves(want, &leaves);
    for (size_t i = 1; i < leaves.size(); ++i) d_.Unify(leaves[0], leaves[i], by, rule);
  } else if (HasDomain(part.get())) {
    const Id have = Dom(part.get());
    const bool function = DeviceDomains::IsFunction(have) || DeviceDomains::IsFunction(want);
    if (!function && (how == How::kSoft || (how == How::kFollow && Movable(part.get()))))
      soft_.push_back({have, want, by, rule});
    else
      d_.Unify(have, want, by, rule);
  }
}

/// Whether there are devices of this type anywhere; an error if not. -1 stands for none.
bool BodyPlan::Known(int64_t type, const char* what, const ExprNode* by) {
  if (type == kInvalidDeviceType || runtime::IsDeviceType(type)) return true;
  mod_->errors().Error(by->span, fmt::format("{} names device type {}, which is no device", what, type), "",
                       "there are " + runtime::DeviceTypes());
  return false;
}

void BodyPlan::CallOf(const CallNode* c) {
  if (!c->op.as<OpNode>()) {
    if (c->op.as<ConstructorNode>()) return;
    const Id callee = CalleeOf(c);
    d_.Unify(Dom(c), DeviceDomains::IsFunction(callee) ? d_.PartsOf(callee).back() : callee, c, "result of a call");
    return;
  }
  switch (KindOf(c->op)) {
    case OpKind::kOnDevice: {
      const auto& attrs = AttrsAs<OnDeviceAttrs>(c->attrs);
      Aux(c) = d_.OfType(TypeOf(c));
      if (attrs.device_type == kInvalidDeviceType) {
        if (attrs.is_fixed) {
          mod_->errors().Error(c->span, "an `on_device` with is_fixed=True names no device", "",
                               "give device_type, or leave is_fixed out");
        }
        d_.Unify(Aux(c), Dom(c), c, "on_device without a device");
        break;
      }
      if (!Known(attrs.device_type, "on_device", c)) break;
      d_.Set(Aux(c), attrs.device_type, c, "on_device");
      if (attrs.is_fixed) d_.Set(Dom(c), attrs.device_type, c, "on_device");
      break;
    }
    case OpKind::kDeviceCopy: {
      const auto& attrs = AttrsAs<DeviceCopyAttrs>(c->attrs);
      Aux(c) = d_.OfType(TypeOf(c));
      if (!Known(attrs.src_dev_type, "device_copy", c) || !Known(attrs.dst_dev_type, "device_copy", c)) break;
      if (attrs.src_dev_type != kInvalidDeviceType) d_.Set(Aux(c), attrs.src_dev_type, c, "device_copy");
      if (attrs.dst_dev_type != kInvalidDeviceType) d_.Set(Dom(c), attrs.dst_dev_type, c, "device_copy");
      break;
    }
    case OpKind::kAllocStorage:
      if (!Known(AttrsAs<AllocStorageAttrs>(c->attrs).device_type, "memory.alloc_storage", c)) break;
      d_.Set(Dom(c), AttrsAs<AllocStorageAttrs>(c->attrs).device_type, c, "memory.alloc_storage");
      break;
    default:
      break;
  }
}

void BodyPlan::FunctionOf(const FunctionNode* fn) {
  const Id own = Dom(fn);
  if (!DeviceDomains::IsFunction(own)) return;
  const std::vector<Id> parts = d_.PartsOf(own);
  for (size_t i = 0; i < fn->params.size() && i + 1 < parts.size(); ++i)
    d_.Unify(Dom(fn->params[i].get()), parts[i], fn, "parameter");
  if (fn->HasNonzeroAttr(attr::kPrimitive)) {
    std::vector<Id> leaves;
    d_.Leaves(own, &leaves);
    for (size_t i = 1; i < leaves.size(); ++i) d_.Unify(leaves[0], leaves[i], fn, "fusion group");
    return;
  }
  // What an earlier run has written down.
  auto set = [&](Id of, const Any& said) {
    std::vector<std::pair<Id, Any>> work{{of, said}};
    while (!work.empty()) {
      auto [id, devices] = work.back();
      work.pop_back();
      if (!DeviceDomains::IsFunction(id)) {
        if (devices.type_code() == kBatonInt && Known(devices.As<int64_t>(), "an attribute of the function", fn))
          d_.Set(id, devices.As<int64_t>(), fn, "attribute of the function");
      } else if (devices.object() && devices.object()->IsInstance<runtime::ArrayObj>() &&
                 set_lists_.insert({d_.FindFunction(id), devices.object()}).second) {
        Array<Any> list = devices.As<Array<Any>>();
        const std::vector<Id>& ids = d_.PartsOf(id);
        for (size_t i = std::min(list.size(), ids.size()); i-- > 0;) work.push_back({ids[i], list[i]});
      }
    }
  };
  if (!fn->attrs.defined()) return;
  for (const auto& e : fn->attrs->dict) {
    if (e.first == kParamDevices) {
      Array<Any> list = e.second.template As<Array<Any>>();
      for (size_t i = 0; i < list.size() && i + 1 < parts.size(); ++i) set(parts[i], list[static_cast<int64_t>(i)]);
    } else if (e.first == kResultDevice) {
      // A function that it gives is known by now, with what it gives itself.
      if (DeviceDomains::IsFunction(parts.back()) && HasDomain(fn->body.get()))
        d_.Unify(Dom(fn->body.get()), parts.back(), fn, "result of a function");
      set(parts.back(), e.second);
    }
  }
}

void BodyPlan::Node(const ExprNode* n) {
  Dom(n);
  if (n->IsInstance<CallNode>()) {
    CallOf(static_cast<const CallNode*>(n));
  } else if (n->IsInstance<FunctionNode>()) {
    FunctionOf(static_cast<const FunctionNode*>(n));
  } else if (n->IsInstance<MatchNode>()) {
    const auto* m = static_cast<const MatchNode*>(n);
    Aux(n) = d_.OfType(TypeOf(m->data.get()));
    ForEachClause(m, [&](const Clause& c) {
      ForEachPatternPart(
          c->lhs.get(), [&](const Var& v) { d_.Unify(Dom(v.get()), Aux(n), n, "part of a matched value"); },
          [](const Constructor&) {});
    });
  }
  ForEachUse(n, [&](const Expr& part, Id want, How how, const char* rule, int index) {
    Edge(n, part, want, how, rule, index);
  });
}

void BodyPlan::Constrain() {
  for (const auto& [var, func] : funcs_) {
    NodeGraph graph(func);
    support::PageStack<uint32_t> uses;
    uses.Fill(graph.size(), 0);
    for (size_t i = 0; i < graph.size(); ++i) {
      baton::runtime::PollInterrupt();
      for (uint32_t part : graph.Parts(i)) {
        if (part != NodeGraph::kNone) ++uses[part];
      }
    }
    size_t i = 0;
    for (const ExprNode* n : graph.nodes()) {
      baton::runtime::PollInterrupt();
      if (HasDomain(n)) InfoOf(n).uses += uses[i];
      ++i;
    }
    orders_.push_back(graph.TakeNodes());
  }
  for (const auto& order : orders_) {
    size_t i = 0;
    for (const ExprNode* n : order) {
      baton::runtime::PollInterrupt();
      PartsSoon(order, i++);
      if (!IsAtom(n)) Node(n);
    }
  }
}

void BodyPlan::Settle(bool use_default) {
  for (const Soft& s : soft_) d_.Try(s.part, s.want, s.by, s.rule);
  if (use_default) d_.Default(mod_->default_device());
  std::set<std::pair<const void*, const void*>> told;
  for (const auto& c : d_.conflicts()) {
    if (!told.insert({c.first.by, c.second.by}).second) continue;
    auto say = [](const DeviceDomains::Source& s) {
      std::string at = Place(s.by);
      return fmt::format("{}{}{} puts it on device {}", s.what, at.empty() ? "" : " at ", at, DeviceName(s.device));
    };
    const ExprNode* by = c.at.by ? c.at.by : c.second.by;
    Span span = by ? by->span : Span();
    mod_->errors().Error(span,
                         fmt::format("`{}` ({}) cannot be on two devices: {}, but {}", Brief(by), c.at.rule,
                                     say(c.first), say(c.second)),
                         "", "leave out is_fixed so that a copy may stand there, or write device_copy");
    for (const auto* s : {&c.first, &c.second}) {
      if (!s->by || !s->by->span.defined()) continue;
      DiagnosticNode note;
      note.level = DiagnosticLevel::kNote;
      note.span = s->by->span;
      note.message = String(fmt::format("device {} is asked for here", DeviceName(s->device)));
      mod_->errors().Add(Diagnostic(std::move(note)));
    }
  }
}

// ---- Writing

Expr BodyPlan::Fixed(const Expr& e, int64_t device) {
  Expr out = MakeCall<OnDeviceAttrs>(op::on_device, {e}, [&](OnDeviceAttrs* a) {
    a->device_type = device;
    a->is_fixed = true;
  });
  out->span = e->span;
  out->checked_type_ = e->checked_type_;
  return out;
}

void BodyPlan::Tell(const ExprNode* value, int64_t from, int64_t to, std::string because) {
  const Type type = TypeOf(value);
  told_.push_back({Brief(value), Place(value), from, to, BytesOfValue(type), BytesFormula(type), std::move(because)});
}

Expr BodyPlan::Moved(const ExprNode* by, const Expr& value, int64_t from, int64_t to, const char* rule) {
  // There and back again is no journey.
  if (const Copy* c = copy_of_.Find(value.get()); c && c->from == to) return c->source;
  for (const Copy& c : copies_[value.get()]) {
    if (c.to == to) return c.copy;
  }
  Expr out = MakeCall<DeviceCopyAttrs>(op::device_copy, {value}, [&](DeviceCopyAttrs* a) {
    a->src_dev_type = from;
    a->dst_dev_type = to;
  });
  out->span = value->span.defined() ? value->span : by->span;
  out->checked_type_ = value->checked_type_;
  Copy made{value, out, from, to};
  copies_[value.get()].push_back(made);
  copy_of_[out.get()] = made;
  if (mod_->report) {
    Tell(value.get(), from, to,
         fmt::format("{} of `{}`{}{} on {}", rule, Brief(by), Place(by).empty() ? "" : " at ", Place(by),
                     DeviceName(to)));
  }
  return out;
}

Expr BodyPlan::Part(const ExprNode* by, const Expr& part, Id want, How how, const char* rule, int index) {
  if (const auto* g = part.as<GlobalVarNode>()) return mod_->Specialise(g, Resolve(Instance(g, by, index)));
  const bool fix = how == How::kApart || by->IsInstance<MatchNode>() || by->IsInstance<LetNode>();
  const bool value = index == 0;  // of a let or match: the bodies live where the whole does
  if (!HasDomain(part.get())) {
    if (mod_->placed && part.as<ConstantNode>() && how != How::kApart && !OfOperator(by)) {
      const int64_t device = Device(want);
      return device == kHost || device < 0 ? part : Fixed(part, device);
    }
    if (!fix || !value || !(part.as<ConstantNode>())) return part;
    const int64_t device = how == How::kApart ? mod_->default_device() : Device(want);
    return device < 0 ? part : Fixed(part, device);
  }
  const Expr* made = made_.Find(part.get());
  Expr out = made ? *made : part;
  const int64_t have = Device(Dom(part.get()));
  if (have < 0) return out;
  if (how != How::kApart && Device(want) >= 0 && have != Device(want)) return Moved(by, out, have, Device(want), rule);
  if (!fix || (how != How::kApart && !value)) return out;
  if (out.as<VarNode>() || IsFixed(out) || IsUnit(TypeOf(out.get()))) return out;
  if (const auto* c = out.as<CallNode>(); c && c->op.same_as(op::device_copy)) return out;
  return Fixed(out, have);
}

bool BodyPlan::OfOperator(const ExprNode* by) {
  const auto* call = by->IsInstance<CallNode>() ? static_cast<const CallNode*>(by) : nullptr;
  if (!call) return false;
  const auto* f = call->op.as<FunctionNode>();
  return call->op.as<OpNode>() || (f && f->HasNonzeroAttr(attr::kPrimitive));
}

Any BodyPlan::DevicesOf(Id id) {
  if (!DeviceDomains::IsFunction(id)) return Any(d_.DeviceOf(id));
  // Those of a function are one object for all that it is a part of.
  std::vector<Id> work{d_.FindFunction(id)};
  while (!work.empty()) {
    const Id f = work.back();
    bool ready = !lists_.count(f);
    if (ready) {
      for (Id part : d_.PartsOf(f)) {
        if (!DeviceDomains::IsFunction(part) || lists_.count(d_.FindFunction(part))) continue;
        work.push_back(d_.FindFunction(part));
        ready = false;
      }
      if (!ready) continue;
      Array<Any> list;
      for (Id part : d_.PartsOf(f)) {
        list.push_back(DeviceDomains::IsFunction(part) ? Any(lists_.at(d_.FindFunction(part)))
                                                       : Any(d_.DeviceOf(part)));
      }
      lists_.emplace(f, list);
    }
    work.pop_back();
  }
  return Any(lists_.at(d_.FindFunction(id)));
}

/// A number for devices, or a list of them: equal ones have one number. Lists of an earlier run are parts of one
/// another, too, so each is looked at once. The outermost may be gone after this, so nothing is noted of it.
int64_t BodyPlan::NumberOf(const Any& devices) {
  using Words = std::vector<int64_t>;
  auto list_of = [](const Any& v) {
    const Object* o = v.object();
    return o && o->IsInstance<runtime::ArrayObj>() ? static_cast<const runtime::ArrayObj*>(o) : nullptr;
  };
  auto number = [this](const Words& said) {
    return numbers_.try_emplace(said, static_cast<int64_t>(numbers_.size())).first->second;
  };
  auto of = [&](const Any& v) {
    const auto* list = list_of(v);
    if (list) return list_numbers_.at(list);
    return number({0, v.type_code(), v.object() ? reinterpret_cast<intptr_t>(v.object()) : v.raw().v_int64});
  };
  auto of_list = [&](const runtime::ArrayObj* list) {
    Words said{1};
    for (const Any& v : list->items) said.push_back(of(v));
    return number(said);
  };
  const runtime::ArrayObj* outermost = list_of(devices);
  if (!outermost) return of(devices);
  std::vector<const runtime::ArrayObj*> work;
  for (const Any& v : outermost->items) {
    if (const auto* part = list_of(v)) work.push_back(part);
  }
  while (!work.empty()) {
    const runtime::ArrayObj* list = work.back();
    bool ready = !list_numbers_.count(list);
    if (ready) {
      for (const Any& v : list->items) {
        const auto* part = list_of(v);
        if (part && !list_numbers_.count(part)) work.push_back(part), ready = false;
      }
      if (!ready) continue;
      list_numbers_[list] = of_list(list);
    }
    work.pop_back();
  }
  return of_list(outermost);
}

Expr BodyPlan::Rebuild(const ExprNode* n) {
  Expr old = GetRef<Expr>(n);
  std::vector<Expr>& parts = parts_;
  parts.clear();
  bool changed = false;
  ForEachUse(n, [&](const Expr& part, Id want, How how, const char* rule, int index) {
    parts.push_back(Part(n, part, want, how, rule, index));
    changed = changed || !parts.back().same_as(part);
  });
  auto done = [&](auto node) {
    Expr out{ObjectPtr<Object>(node)};
    out->checked_type_ = n->checked_type_;
    return out;
  };
  if (n->IsInstance<CallNode>()) {
    const auto* c = static_cast<const CallNode*>(n);
    if (c->op.same_as(op::on_device) && !IsFixed(old) && parts.size() == 1) {
      const Id inner = Aux(n), outer = Dom(n);
      if (DeviceDomains::IsFunction(inner) || Device(inner) == Device(outer)) return parts[0];
      return Moved(n, parts[0], Device(inner), Device(outer), "value");
    }
    Expr callee = c->op;
    if (const auto* g = c->op.as<GlobalVarNode>()) {
      callee = mod_->Specialise(g, Resolve(Instance(g, c, -1)));
      changed = changed || !callee.same_as(c->op);
    } else if (!c->op.as<OpNode>() && !c->op.as<ConstructorNode>()) {
      callee = parts[0];
      parts.erase(parts.begin());
    }
    if (!changed) return old;
    auto node = make_object<CallNode>(*c);
    node->op = callee;
    node->args = Array<Expr>(parts);
    return done(node);
  }
  if (n->IsInstance<FunctionNode>()) {
    const auto* fn = static_cast<const FunctionNode*>(n);
    if (fn->HasNonzeroAttr(attr::kPrimitive)) return old;
    const Id own = Dom(n);
    Array<Any> devices;
    Any result;
    if (DeviceDomains::IsFunction(own)) {
      const std::vector<Id> ids = d_.PartsOf(own);
      for (size_t i = 0; i + 1 < ids.size(); ++i) devices.push_back(DevicesOf(ids[i]));
      result = DevicesOf(ids.back());
    }
    Function out = Downcast<Function>(old);
    if (changed) {
      auto node = make_object<FunctionNode>(*fn);
      node->body = parts[0];
      node->checked_type_ = n->checked_type_;
      out = Function(node);
    }
    if (result.is_null()) return out;
    auto put = [&](const char* key, const Any& value) {
      if (out->attrs.defined()) {
        for (const auto& e : out->attrs->dict) {
          if (e.first == key && NumberOf(e.second) == NumberOf(value)) return;
        }
      }
      out = WithAttr(out, key, value);
    };
    put(kParamDevices, Any(devices));
    put(kResultDevice, result);
    return out;
  }
  if (!changed) return old;
  if (n->IsInstance<TupleNode>()) {
    auto node = make_object<TupleNode>(*static_cast<const TupleNode*>(n));
    node->fields = Array<Expr>(parts);
    return done(node);
  }
  if (n->IsInstance<TupleGetItemNode>()) {
    auto node = make_object<TupleGetItemNode>(*static_cast<const TupleGetItemNode*>(n));
    node->tuple = parts[0];
    return done(node);
  }
  if (n->IsInstance<LetNode>()) {
    auto node = make_object<LetNode>(*static_cast<const LetNode*>(n));
    node->value = parts[0], node->body = parts[1];
    return done(node);
  }
  if (n->IsInstance<IfNode>()) {
    auto node = make_object<IfNode>(*static_cast<const IfNode*>(n));
    node->cond = parts[0], node->true_branch = parts[1], node->false_branch = parts[2];
    return done(node);
  }
  if (n->IsInstance<RefCreateNode>()) {
    auto node = make_object<RefCreateNode>(*static_cast<const RefCreateNode*>(n));
    node->value = parts[0];
    return done(node);
  }
  if (n->IsInstance<RefReadNode>()) {
    auto node = make_object<RefReadNode>(*static_cast<const RefReadNode*>(n));
    node->ref = parts[0];
    return done(node);
  }
  if (n->IsInstance<RefWriteNode>()) {
    auto node = make_object<RefWriteNode>(*static_cast<const RefWriteNode*>(n));
    node->ref = parts[0], node->value = parts[1];
    return done(node);
  }
  ICHECK(n->IsInstance<MatchNode>()) << "planning devices of a " << n->GetTypeKey();
  auto node = make_object<MatchNode>(*static_cast<const MatchNode*>(n));
  node->data = parts[0];
  size_t i = 0;
  ForEachClause(static_cast<const MatchNode*>(n), [&](const Clause& c) {
    if (!parts[i + 1].same_as(c->rhs)) node->clauses.Set(i, Clause(c->lhs, parts[i + 1]));
    ++i;
  });
  return done(node);
}

void BodyPlan::Say(const std::string& function) {
  PlacementReport* report = mod_->report;
  std::vector<DeviceDomains::Cause> causes = d_.Causes();
  auto why = [&](Id leaf) -> std::string {
    const auto& cause = causes[leaf];
    if (cause.source < 0) return "nothing decides: the default device";
    const auto& source = d_.sources()[cause.source];
    std::string at = Place(source.by), out = fmt::format("{}{}{}", source.what, at.empty() ? "" : " at ", at);
    if (cause.edge < 0) return out;
    const auto& edge = d_.edges()[cause.edge];
    std::string there = Place(edge.by);
    return fmt::format("{}, through the {} of `{}`{}{}", out, edge.rule, Brief(edge.by), there.empty() ? "" : " at ",
                       there);
  };
  for (const ExprNode* n : orders_[0]) {
    baton::runtime::PollInterrupt();
    if (!HasDomain(n)) continue;
    const Id dom = Dom(n);
    if (DeviceDomains::IsFunction(dom) || IsUnit(TypeOf(n))) continue;
    report->places.push_back({function, Brief(n), Place(n), d_.DeviceOf(dom), why(dom)});
    const auto* call = n->IsInstance<CallNode>() ? static_cast<const CallNode*>(n) : nullptr;
    if (!call || KindOf(call->op) != OpKind::kDeviceCopy) continue;
    const int64_t from = Device(Dom(call->args[0].get())), to = Device(dom);
    const std::string at = Place(n);
    if (from != to) Tell(call->args[0].get(), from, to, "written as device_copy" + (at.empty() ? "" : " at " + at));
  }
  for (PlacementReport::Copy& c : told_) {
    c.function = function;
    report->copies.push_back(c);
  }
}

Function BodyPlan::Rewrite(const Function& func, const std::string& name) {
  size_t i = 0;
  for (const ExprNode* n : orders_[0]) {
    baton::runtime::PollInterrupt();
    PartsSoon(orders_[0], i++);
    if (IsAtom(n)) continue;
    Expr made = Rebuild(n);
    if (made.get() != n) made_[n] = std::move(made);
  }
  if (mod_->report) Say(name);
  if (mod_->placed) {
    for (const ExprNode* n : orders_[0]) {
      const Expr* made = made_.Find(n);
      if (HasDomain(n)) (*mod_->placed)[made ? made->get() : n] = Device(Dom(n));
    }
  }
  const Expr* made = made_.Find(func.get());
  return made ? Downcast<Function>(*made) : func;
}

// ---- Modules

ModulePlan::ModulePlan(const IRModule& mod, int64_t default_device, PlacementReport* told)
    : report(told), mod_(mod), out_(mod), default_(default_device) {
  for (const auto& [var, func] : mod->functions) {
    numbers_.push_back(func.as<FunctionNode>() ? entries_.size() : kNone);
    if (!func.as<FunctionNode>()) continue;
    entries_.push_back({var, Downcast<Function>(func)});
  }
  std::vector<std::vector<size_t>> calls(entries_.size());
  for (size_t i = 0; i < entries_.size(); ++i) {
    baton::runtime::PollInterrupt();
    AnyNode(entries_[i].func, [&](const ExprNode* n) {
      if (!n->IsInstance<GlobalVarNode>()) return false;
      const size_t callee = IndexOf(static_cast<const GlobalVarNode*>(n)->name_hint.view());
      if (callee == kNone) return false;
      calls[i].push_back(callee);
      if (callee != i) entries_[callee].called = true;
      return false;
    });
  }
  groups_ = CallGroups(calls);
  for (size_t g = 0; g < groups_.size(); ++g) {
    for (size_t i : groups_[g]) entries_[i].group = g;
  }
}

Id ModulePlan::Instantiate(const GlobalVarNode* var, const ExprNode* by, DeviceDomains* domains) {
  const size_t index = IndexOf(var->name_hint.view());
  if (index == kNone) {
    // A function of another IR: all on one device, as an operator.
    const Id id = domains->OfType(TypeOf(var));
    std::vector<Id> leaves;
    domains->Leaves(id, &leaves);
    for (size_t i = 1; i < leaves.size(); ++i) domains->Unify(leaves[0], leaves[i], by, "compiled function");
    return id;
  }
  Entry& e = entries_[index];
  if (!e.has_scheme) FindScheme(index);
  const Id id = domains->OfType(TypeOf(e.func.get()));
  std::vector<Id> leaves;
  domains->Leaves(id, &leaves);
  std::map<int64_t, Id> classes;
  for (size_t i = 0; i < leaves.size(); ++i) {
    if (e.scheme[i] >= 0) {
      domains->Set(leaves[i], e.scheme[i], by, "the function that is called");
    } else {
      auto [at, fresh] = classes.try_emplace(e.scheme[i], leaves[i]);
      if (!fresh) domains->Unify(at->second, leaves[i], by, "parameters and result of a function");
    }
  }
  return id;
}

void ModulePlan::FindScheme(size_t entry) {
  // Callees first, without recursion: groups come in that order.
  while (schemed_ <= entries_[entry].group) {
    const size_t g = schemed_++;
    std::vector<std::pair<GlobalVar, Function>> funcs;
    bool wanted = false;
    for (size_t i : groups_[g]) {
      funcs.push_back({entries_[i].var, entries_[i].func});
      wanted = wanted || (entries_[i].called && !entries_[i].has_scheme);
    }
    if (!wanted) continue;
    PlacementReport* kept = report;
    report = nullptr;
    BodyPlan plan(this, funcs);
    plan.Constrain();
    plan.Settle(false);
    report = kept;
    for (size_t k = 0; k < funcs.size(); ++k) {
      Entry& e = entries_[groups_[g][k]];
      std::vector<Id> leaves;
      plan.domains().Leaves(plan.Root(k), &leaves);
      for (Id leaf : leaves) {
        const int64_t device = plan.domains().DeviceOf(leaf);
        e.scheme.push_back(device >= 0 ? device : -1 - static_cast<int64_t>(plan.domains().Find(leaf)));
      }
      e.has_scheme = true;
    }
  }
}

GlobalVar ModulePlan::Specialise(const GlobalVarNode* var, const Signature& signature) {
  const size_t index = IndexOf(var->name_hint.view());
  if (index == kNone) return GetRef<GlobalVar>(var);
  Entry& e = entries_[index];
  auto [at, fresh] = e.versions.try_emplace(signature);
  if (!fresh) return at->second;
  if (!e.planned) {
    e.planned = true;
    at->second = GetRef<GlobalVar>(var);
  } else {
    std::string name = e.var->name_hint.str() + "_on";
    for (int64_t d : signature) name += "_" + std::to_string(d);
    while (mod_->ContainGlobalVar(name) || !names_.insert(name).second) name += "_";
    at->second = GlobalVar(name.c_str());
    at->second->checked_type_ = e.var->checked_type_;
  }
  work_.push_back({index, signature, false, at->second});
  return at->second;
}

/// A copy with variables of its own, and the types of what it is a copy of.
class Renewer : public TypeKeeper {
 public:
  explicit Renewer(const Expr& e) {
    for (const Var& v : BoundVars(e)) {
      Var fresh(v->vid, v->type_annotation);
      fresh->checked_type_ = v->checked_type_;
      fresh->span = v->span;
      Put(v, fresh);
    }
  }
};

void ModulePlan::Plan(const Demand& demand) {
  Entry& e = entries_[demand.entry];
  std::vector<std::pair<GlobalVar, Function>> funcs{{e.var, e.func}};
  if (!demand.var.same_as(e.var) && !(demand.var->name_hint == e.var->name_hint)) {
    // Planned once more under another name.
    funcs[0].second = Downcast<Function>(Renewer(e.func).Mutate(e.func));
  }
  for (size_t i : groups_[e.group]) {
    if (i != demand.entry) funcs.push_back({entries_[i].var, entries_[i].func});
  }
  BodyPlan plan(this, funcs);
  if (!demand.open) {
    std::vector<Id> leaves;
    plan.domains().Leaves(plan.Root(0), &leaves);
    for (size_t i = 0; i < leaves.size(); ++i)
      plan.domains().Set(leaves[i], demand.signature[i], funcs[0].second.get(), "the call of the function");
  }
  plan.Constrain();
  plan.Settle(true);
  if (!errors_.empty()) return;
  if (demand.open) e.versions[plan.Resolve(plan.Root(0))] = demand.var;
  Function func = plan.Rewrite(funcs[0].second, demand.var->name_hint.str());
  if (demand.var.same_as(e.var) && func.same_as(e.func)) return;
  out_.CopyOnWrite()->Add(demand.var, func, true);
}

IRModule ModulePlan::Run() {
  auto drain = [&] {
    while (done_ < work_.size() && errors_.empty()) {
      baton::runtime::PollInterrupt();
      Demand d = work_[done_++];
      Plan(d);
    }
  };
  auto open = [&](size_t i) {
    entries_[i].planned = true;
    work_.push_back({i, {}, true, entries_[i].var});
    drain();
  };
  for (size_t i = 0; i < entries_.size(); ++i) {
    baton::runtime::PollInterrupt();
    if (!entries_[i].called || entries_[i].var->name_hint == "main") open(i);
  }
  for (size_t i = 0; i < entries_.size() && errors_.empty(); ++i) {
    baton::runtime::PollInterrupt();
    if (!entries_[i].planned) open(i);
  }
  errors_.ThrowIfAny(PassContext::Current()->diag_ctx);
  return out_;
}

}  // namespace

IRModule PlanModuleDevices(const IRModule& mod, int64_t default_device, PlacementReport* report) {
  if (default_device <= 0)
    throw CompileError(fmt::format("the default device has type {}, must be positive", default_device));
  if (!runtime::IsDeviceType(default_device)) {
    throw CompileError(fmt::format("the default device has type {}, which is no device; there are {}", default_device,
                                   runtime::DeviceTypes()));
  }
  return ModulePlan(mod, default_device, report).Run();
}

PlacedModule PlaceModule(const IRModule& planned, int64_t default_device) {
  PlacedModule out;
  ModulePlan plan(planned, default_device, nullptr);
  plan.placed = &out.device;
  out.mod = plan.Run();
  return out;
}

BATON_REGISTER_PASS_CONFIG_OPTION(
    "relay.fallback_device_type", int64_t,
    "Device, as DLPack numbers them, of what no annotation decides; 1 (CPU) if not given.");

namespace {
constexpr int64_t kDeviceOfContext = -1;
}

Pass PlanDevices(const PlanDevicesOptions& options) {
  return MakePass<PlanDevices>(options, {
      .doc =
          "Decides on which device each expression runs, from on_device and device_copy, and writes that down: copies "
          "where a value changes device, fixed annotations on bindings, attributes on functions.",
      .opt_level = 0,
      .required = {"InferType"},
      .run =
          [default_device = options.default_device](IRModule mod, PassContext ctx) {
            int64_t device = default_device != kDeviceOfContext
                                 ? default_device
                                 : ctx->GetConfig<int64_t>("relay.fallback_device_type", 1);
            return PlanModuleDevices(mod, device, nullptr);
          },
  });
}

namespace {
const RegisterPass<PlanDevices> registered_plan_devices;

BATON_REGISTER_GLOBAL("relay.analysis.Placement").set_body_typed([](IRModule mod, int64_t default_device) {
  PlacementReport report;
  IRModule planned = PlanModuleDevices(InferType()(mod), default_device, &report);
  Array<Any> places, copies;
  for (const auto& p : report.places) {
    places.push_back(Any(Map<String, Any>{{"function", Any(String(p.function))},
                                          {"expression", Any(String(p.expression))},
                                          {"place", Any(String(p.place))},
                                          {"device_type", Any(p.device)},
                                          {"because", Any(String(p.because))}}));
  }
  for (const auto& c : report.copies) {
    copies.push_back(Any(Map<String, Any>{{"function", Any(String(c.function))},
                                          {"expression", Any(String(c.expression))},
                                          {"place", Any(String(c.place))},
                                          {"src_dev_type", Any(c.from)},
                                          {"dst_dev_type", Any(c.to)},
                                          {"bytes", Any(c.bytes)},
                                          {"formula", Any(String(c.formula))},
                                          {"because", Any(String(c.because))}}));
  }
  return Map<String, Any>{{"places", Any(places)}, {"copies", Any(copies)}, {"module", Any(planned)}};
});
}  // namespace

}  // namespace baton::relay::transform
