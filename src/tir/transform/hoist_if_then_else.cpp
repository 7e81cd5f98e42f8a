// SPDX-License-Identifier: Apache-2.0
#include <baton/tir/functor.h>
#include <baton/tir/lower.h>
#include <baton/tir/transform.h>
#include <tir/any_stmt.h>

#include <unordered_set>
#include <vector>

#include "tir/thread_axes.h"

namespace baton::tir {
namespace {

using transform::HoistIfThenElseConfig;
using transform::HoistIfThenElseConfigNode;

/// Whether an expression is the same whenever it is evaluated: no memory is read, nothing is done.
bool IsFixed(const PrimExpr& e) {
  if (HasSideEffect(e)) return false;
  bool fixed = true;
  PostOrderVisitExpr(e, [&](const PrimExpr& x) { fixed = fixed && !x.as<BufferLoadNode>(); });
  return fixed;
}

class Hoister : public StmtMutator {
 public:
  /// `basic`: only the condition within its loops; otherwise bindings and allocations may be between.
  Hoister(bool basic, bool scopes) : basic_(basic), scopes_(scopes) {}
  using StmtMutator::VisitStmt_;

  Stmt VisitStmt_(const ForNode* op) final {
    // The perfect nest of loops around the condition.
    std::vector<Stmt> nest;
    Stmt s = GetRef<Stmt>(op);
    while (const Stmt* inner = Inside(s)) {
      nest.push_back(s);
      s = *inner;
    }
    Stmt leaf = VisitStmt(s);
    const auto* branch = leaf.as<IfThenElseNode>();
    size_t top = branch && IsFixed(branch->condition) ? Top(nest, branch->condition) : nest.size();
    if (top == nest.size()) return Around(nest, 0, nest.size(), leaf);
    IfThenElseNode n;
    n.condition = branch->condition;
    n.then_case = Around(nest, top, nest.size(), branch->then_case);
    if (branch->else_case.defined()) n.else_case = RenewBindings(Around(nest, top, nest.size(), branch->else_case));
    return Around(nest, 0, top, IfThenElse(std::move(n)));
  }

 private:
  const Stmt* Inside(const Stmt& s) const {
    if (const auto* f = s.as<ForNode>()) return &f->body;
    if (basic_) return nullptr;
    if (const auto* a = s.as<AllocateNode>()) return &a->body;
    if (const auto* l = s.as<LetStmtNode>(); l && !HasSideEffect(l->value)) return &l->body;
    if (const auto* a = s.as<AttrStmtNode>(); a && scopes_) return &a->body;
    return nullptr;
  }
  /// Index of the outermost loop before which the condition can be evaluated; nest.size() if there is none.
  static size_t Top(const std::vector<Stmt>& nest, const PrimExpr& condition) {
    std::unordered_set<const Object*> uses;
    PostOrderVisitExpr(condition, [&](const PrimExpr& e) {
      if (e.as<VarNode>()) uses.insert(e.get());
    });
    size_t top = nest.size();
    for (size_t i = nest.size(); i-- > 0;) {
      const Object* bound = nullptr;
      if (const auto* f = nest[i].as<ForNode>()) bound = f->loop_var.get();
      if (const auto* l = nest[i].as<LetStmtNode>()) bound = l->var.get();
      if (const auto* a = nest[i].as<AllocateNode>()) bound = a->buffer->data.get();
      if (const auto* t = nest[i].as<AttrStmtNode>()) bound = BoundThreadVar(t);
      if (bound && uses.count(bound)) break;
      if (nest[i].as<ForNode>()) top = i;
    }
    return top;
  }
  /// The statements `begin` to `end` of a nest around another body.
  static Stmt Around(const std::vector<Stmt>& nest, size_t begin, size_t end, Stmt body) {
    for (size_t i = end; i-- > begin;) {
      if (const auto* f = nest[i].as<ForNode>()) {
        body = Same(f, body) ? nest[i] : With<For>(f, body);
      } else if (const auto* a = nest[i].as<AllocateNode>()) {
        body = Same(a, body) ? nest[i] : With<Allocate>(a, body);
      } else if (const auto* l = nest[i].as<LetStmtNode>()) {
        body = Same(l, body) ? nest[i] : With<LetStmt>(l, body);
      } else if (const auto* t = nest[i].as<AttrStmtNode>()) {
        body = Same(t, body) ? nest[i] : With<AttrStmt>(t, body);
      }
    }
    return body;
  }
  template <class N>
  static bool Same(const N* op, const Stmt& body) {
    return op->body.same_as(body);
  }
  template <class R, class N>
  static Stmt With(const N* op, const Stmt& body) {
    N n = *op;
    n.body = body;
    return R(std::move(n));
  }

  bool basic_, scopes_;
};

}  // namespace

namespace transform {
Pass HoistIfThenElse(const HoistIfThenElseConfigNode& options) {
  const String& variant = options.variant;
  if (!(variant == "" || variant == "basic")) {
    throw runtime::ValueError("HoistIfThenElse: variant is \"" + variant.str() +
                              "\"; it is \"basic\", or nothing for all that the pass can do");
  }
  const bool basic = variant == "basic";
  return MakePass<HoistIfThenElse>(
      options,
      {
          .doc =
              "A condition that is the same in all rounds of a loop, and is all that the loop does, moves out of it. "
              "Bindings and allocations may stand between the two, but not in the variant \"basic\". Sound because the "
              "condition reads no memory, so that it can be asked before the first round.",
          .run =
              [basic, scopes = options.support_block_scope_hosting](PrimFunc f, IRModule, PassContext) {
                if (!AnyStmtOf<IfThenElseNode>(f->body)) return f;
                return WithBody(f, Hoister(basic, scopes)(f->body));
              },
      });
}
namespace {
const RegisterPass<HoistIfThenElse> registered_hoist("tir.transform.");
}  // namespace
}  // namespace transform
}  // namespace baton::tir
