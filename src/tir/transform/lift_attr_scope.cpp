// SPDX-License-Identifier: Apache-2.0
#include <baton/tir/functor.h>
#include <baton/tir/lower.h>
#include <baton/tir/transform.h>
#include <tir/any_stmt.h>

namespace baton::tir {
namespace {

class Lifter : public StmtMutator {
 public:
  explicit Lifter(String key) : key_(std::move(key)) {}
  using StmtMutator::VisitStmt_;

  Stmt VisitStmt_(const ForNode* op) final { return Above<For>(StmtMutator::VisitStmt_(op), op->loop_var.get()); }
  Stmt VisitStmt_(const LetStmtNode* op) final {
    // The operand of the mark would be evaluated without its value.
    if (HasSideEffect(op->value)) return StmtMutator::VisitStmt_(op);
    return Above<LetStmt>(StmtMutator::VisitStmt_(op), op->var.get());
  }
  Stmt VisitStmt_(const AllocateNode* op) final {
    return Above<Allocate>(StmtMutator::VisitStmt_(op), op->buffer->data.get());
  }
  Stmt VisitStmt_(const SeqStmtNode* op) final {
    Stmt s = StmtMutator::VisitStmt_(op);
    const auto* seq = s.as<SeqStmtNode>();
    if (!seq) return s;
    Array<Stmt> out;
    bool joined = false;
    for (size_t i = 0; i < seq->seq.size();) {
      const Stmt& first = seq->seq[static_cast<int64_t>(i)];
      const auto* mark = Marked(first);
      size_t end = i + 1;
      while (mark && end < seq->seq.size() && Equal(mark, Marked(seq->seq[static_cast<int64_t>(end)]))) ++end;
      if (end == i + 1) {
        out.push_back(first);
      } else {
        Array<Stmt> bodies;
        for (size_t k = i; k < end; ++k) bodies.push_back(seq->seq[static_cast<int64_t>(k)].as<AttrStmtNode>()->body);
        AttrStmtNode n = *mark;
        n.body = SeqStmt::Flatten(bodies);
        out.push_back(AttrStmt(std::move(n)));
        joined = true;
      }
      i = end;
    }
    return joined ? SeqStmt::Flatten(out) : s;
  }

 private:
  const AttrStmtNode* Marked(const Stmt& s) const {
    const auto* a = s.as<AttrStmtNode>();
    return a && (key_.empty() || a->attr_key == key_) ? a : nullptr;
  }
  static bool Equal(const AttrStmtNode* a, const AttrStmtNode* b) {
    return b && a->attr_key == b->attr_key && a->node.same_as(b->node) && ExprDeepEqual(a->value, b->value);
  }
  /// Moves the mark from within a statement to around it, unless it depends on what the statement binds.
  template <class R>
  Stmt Above(const Stmt& s, const VarNode* bound) const {
    const auto* op = s.as<typename R::ContainerType>();
    const AttrStmtNode* mark = Marked(op->body);
    if (!mark || mark->node.get() == bound || UsesVar(mark->value, bound)) return s;
    if (const auto* b = mark->node.as<BufferNode>(); b && b->data.get() == bound) return s;
    typename R::ContainerType n = *op;
    n.body = mark->body;
    AttrStmtNode out = *mark;
    out.body = R(std::move(n));
    return AttrStmt(std::move(out));
  }
  String key_;
};

}  // namespace

namespace transform {
struct LiftAttrScopeOptions : PassOptions<LiftAttrScopeOptions> {
  static constexpr auto _type_key = "tir.transform.LiftAttrScopeOptions";
  String attr_key;
  static constexpr void Describe(auto& d) {
    d(F<&LiftAttrScopeOptions::attr_key>, "Key of the marks that move; empty: all.");
  }
};

Pass LiftAttrScope(const LiftAttrScopeOptions& options) {
  return MakePass<LiftAttrScope>(
      options, {
                   .doc = "Marks (tir.AttrStmt) called attr_key, all where it is empty, move out of loops, bindings "
                          "and allocations "
                          "that they do not depend on; equal ones behind each other become one.",
                   .run =
                       [attr_key = options.attr_key](PrimFunc f, IRModule, PassContext) {
                         const auto marked = [&](const AttrStmtNode* a) {
                           return attr_key.empty() || a->attr_key == attr_key;
                         };
                         return AnyStmtOf<AttrStmtNode>(f->body, marked) ? WithBody(f, Lifter(attr_key)(f->body)) : f;
                       },
               });
}
namespace {
const RegisterPass<LiftAttrScope> registered_lift_attr_scope("tir.transform.");
}  // namespace
}  // namespace transform
}  // namespace baton::tir
