// SPDX-License-Identifier: Apache-2.0
// The plan of a module and of one function: what their files share. device_constraints.cpp finds devices,
// device_rewrite.cpp writes them into the program, plan_devices.cpp goes over the functions of a module.
#pragma once

#include <baton/ir/diagnostic.h>
#include <baton/relay/device.h>
#include <baton/relay/functor.h>
#include <baton/relay/op/annotation.h>
#include <baton/relay/transform.h>
#include <baton/runtime/device_types.h>
#include <baton/runtime/named.h>
#include <relay/expr/expr_index.h>
#include <relay/transform/device_domains.h>
#include <relay/transform/plan_devices.h>

#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace baton::relay::transform::devices {

using Id = DeviceDomains::Id;
using Signature = std::vector<int64_t>;  ///< devices of a function's leaves: parameters, then the result

constexpr int64_t kHost = kDLCPU;

// ---- Words for messages

std::string DeviceName(int64_t type);
/// The expression's place in the source; empty where that is not known.
std::string Place(const ExprNode* n);
/// A few words for the expression.
std::string Brief(const ExprNode* n);

Type TypeOf(const ExprNode* n);
inline bool IsUnit(const Type& t) { return t.as<TupleTypeNode>() && t.as<TupleTypeNode>()->fields.empty(); }

enum class OpKind {
  kPlain,
  kOnDevice,
  kDeviceCopy,
  kShapeOf,    ///< asks for a shape, which the host has
  kShapeFunc,  ///< all on the host
  kAllocStorage,
  kAllocTensor,
  kReshapeTensor,
  kInvoke
};
OpKind KindOf(const Expr& op);
/// on_device with is_fixed=True.
bool IsFixed(const Expr& e);

enum class How {
  kFollow,  ///< on the user's device; a copy may be put here if the part is one that can be elsewhere
  kHard,    ///< on the user's device, without a copy
  kSoft,    ///< on the user's device, with a copy if it is elsewhere
  kApart    ///< on its own device, which is written down where it is not the user's
};

/// State of the planning of one module, across functions.
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
    Id operand, want;
    const ExprNode* by;
    const char* rule;
  };
  struct Copy {
    Expr copy;
    int64_t to;
  };

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
  void LetOf(const LetNode* l);
  void FunctionOf(const FunctionNode* fn);
  void Edge(const ExprNode* by, const Expr& operand, Id want, How how, const char* rule, int index);
  bool Movable(const ExprNode* operand);
  static bool OfOperator(const ExprNode* by);
  bool Known(int64_t type, const char* what, const ExprNode* by);

  Expr Operand(const ExprNode* by, const Expr& operand, Id want, How how, const char* rule, int index);
  /// A device_copy of a value; `on` is an annotation of it that the program has, or null.
  Expr Moved(const ExprNode* by, const Expr& value, const CallNode* on, int64_t from, int64_t to, const char* rule);
  void Tell(const ExprNode* value, int64_t from, int64_t to, std::string because);
  Expr Rebuild(const ExprNode* n);
  /// Calls and functions with the parts that Rebuild has made.
  Expr RebuildCall(const CallNode* c, bool changed);
  Expr RebuildFunction(const FunctionNode* fn, bool changed);
  Expr Fixed(const Expr& e, int64_t device);
  /// A value with its device written down, unless its binding or its attributes say it.
  Expr Said(const Expr& value, const CallNode* on, int64_t device);
  int64_t Device(Id id) { return DeviceDomains::IsFunction(id) ? -1 : d_.DeviceOf(id); }
  /// The device of a value, of a function that of its result.
  int64_t ResultDevice(Id id) { return d_.DeviceOf(d_.ResultOf(id)); }
  /// The device that the parts of `by` have unless they say another.
  int64_t Around(const ExprNode* by, Id want);
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
  std::vector<Soft> ends_;                ///< annotations at ends of functions, which say where the result is, and
                                          ///< shapes, which the host has unless something else decides
  std::vector<Soft> around_;              ///< parts that are where their surroundings are if nothing else decides
  PointerMap<Expr> made_;                 // of what did not stay as it was
  std::vector<Expr> operands_;            // of the node that is rebuilt
  PointerMap<std::vector<Copy>> copies_;  // by what is copied
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
          const bool apart =
              kind == OpKind::kShapeOf || (kind == OpKind::kShapeFunc && i == 0) || (kind == OpKind::kInvoke && i == 0);
          const bool shape = kind == OpKind::kAllocStorage || kind == OpKind::kShapeFunc ||
                             ((kind == OpKind::kAllocTensor || kind == OpKind::kReshapeTensor) && i > 0);
          f(args[i], shape ? host_ : Dom(n), apart ? How::kApart : How::kFollow, "argument", static_cast<int>(i));
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
          if (i + 1 < d_.SignatureOf(callee).size()) want = d_.SignatureOf(callee)[i];
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
    f(static_cast<const FunctionNode*>(n)->body, DeviceDomains::IsFunction(own) ? d_.SignatureOf(own).back() : own,
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

}  // namespace baton::relay::transform::devices
