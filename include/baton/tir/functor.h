// SPDX-License-Identifier: Apache-2.0
// Traversal of PrimFuncs: functors, visitors, mutators, substitution. All continue on a fresh stack when the IR is
// deep.
#pragma once

#include <baton/support/stack.h>
#include <baton/tir/stmt.h>

#include <unordered_map>

namespace baton::tir {

// Every concrete expression and statement class, once. SizeVar is visited as Var.
#define BATON_TIR_BINARY_LIST(X) \
  X(Add)                         \
  X(Sub) X(Mul) X(Div) X(Mod) X(FloorDiv) X(FloorMod) X(Min) X(Max) X(EQ) X(NE) X(LT) X(LE) X(GT) X(GE) X(And) X(Or)
#define BATON_TIR_EXPR_LIST(X) \
  BATON_TIR_BINARY_LIST(X)     \
  X(Var)                       \
  X(IntImm)                    \
  X(FloatImm)                  \
  X(StringImm)                 \
  X(Any) X(Cast) X(Not) X(Select) X(BufferLoad) X(Ramp) X(Broadcast) X(Shuffle) X(Let) X(Call) X(Reduce) X(ProducerLoad)
#define BATON_TIR_STMT_LIST(X) \
  X(BufferStore) X(Allocate) X(For) X(While) X(IfThenElse) X(SeqStmt) X(Evaluate) X(LetStmt) X(AttrStmt) X(AssertStmt)

enum class NodeKind : uint8_t {
  kNone = 0,
#define BATON_TIR_KIND(Name) k##Name,
  BATON_TIR_EXPR_LIST(BATON_TIR_KIND) BATON_TIR_STMT_LIST(BATON_TIR_KIND)
#undef BATON_TIR_KIND
};
/// Class of a node as a small number, for switches; kNone for classes outside of TIR.
BATON_DLL NodeKind KindOf(const Object* node);
/// The binary operation of this class on operands of one type, literals folded.
BATON_DLL PrimExpr FoldBinary(NodeKind kind, const PrimExpr& a, const PrimExpr& b);
[[noreturn]] BATON_DLL void ThrowNoVisit(const Object* node);

template <class Sig>
class ExprFunctor;
/// Dispatch over expressions by class. Override VisitExpr_ for the classes of interest.
template <class R, class... A>
class ExprFunctor<R(const PrimExpr&, A...)> {
 public:
  virtual ~ExprFunctor() = default;
  virtual R VisitExpr(const PrimExpr& e, A... args) {
    return support::WithStack([&]() -> R {
      switch (KindOf(e.get())) {
#define BATON_TIR_CASE(Name) \
  case NodeKind::k##Name:    \
    return VisitExpr_(static_cast<const Name##Node*>(e.get()), args...);
        BATON_TIR_EXPR_LIST(BATON_TIR_CASE)
#undef BATON_TIR_CASE
        default:
          ThrowNoVisit(e.get());
      }
    });
  }
#define BATON_TIR_DECL(Name) \
  virtual R VisitExpr_(const Name##Node* op, A... args) { return VisitExprDefault_(op, args...); }
  BATON_TIR_EXPR_LIST(BATON_TIR_DECL)
#undef BATON_TIR_DECL
  virtual R VisitExprDefault_(const Object* op, A...) { ThrowNoVisit(op); }
};

template <class Sig>
class StmtFunctor;
template <class R, class... A>
class StmtFunctor<R(const Stmt&, A...)> {
 public:
  virtual ~StmtFunctor() = default;
  virtual R VisitStmt(const Stmt& s, A... args) {
    return support::WithStack([&]() -> R {
      switch (KindOf(s.get())) {
#define BATON_TIR_CASE(Name) \
  case NodeKind::k##Name:    \
    return VisitStmt_(static_cast<const Name##Node*>(s.get()), args...);
        BATON_TIR_STMT_LIST(BATON_TIR_CASE)
#undef BATON_TIR_CASE
        default:
          ThrowNoVisit(s.get());
      }
    });
  }
#define BATON_TIR_DECL(Name) \
  virtual R VisitStmt_(const Name##Node* op, A... args) { return VisitStmtDefault_(op, args...); }
  BATON_TIR_STMT_LIST(BATON_TIR_DECL)
#undef BATON_TIR_DECL
  virtual R VisitStmtDefault_(const Object* op, A...) { ThrowNoVisit(op); }
};

/// Gives `e` a span if it has none. Variables and literals, which many share, get none: the code generator takes the
/// span of what is around them.
BATON_DLL void MarkSpan(const PrimExpr& e, const Span& span);
/// Gives `to`, made in place of `from`, the span of `from` if it has none.
inline void KeepSpan(const PrimExpr& from, const PrimExpr& to) {
  if (from->span.defined() && !from.same_as(to)) MarkSpan(to, from->span);
}
BATON_DLL void KeepSpan(const Stmt& from, const Stmt& to);

/// Visits every subexpression.
class BATON_DLL ExprVisitor : public ExprFunctor<void(const PrimExpr&)> {
 public:
  using ExprFunctor::VisitExpr_;
#define BATON_TIR_DECL(Name) void VisitExpr_(const Name##Node* op) override;
  BATON_TIR_EXPR_LIST(BATON_TIR_DECL)
#undef BATON_TIR_DECL
};

/// Rewrites expressions bottom-up; what does not change stays the same object. Results keep the spans.
class BATON_DLL ExprMutator : public ExprFunctor<PrimExpr(const PrimExpr&)> {
 public:
  PrimExpr operator()(const PrimExpr& e) { return VisitExpr(e); }
  PrimExpr VisitExpr(const PrimExpr& e) override;
  using ExprFunctor::VisitExpr_;
#define BATON_TIR_DECL(Name) PrimExpr VisitExpr_(const Name##Node* op) override;
  BATON_TIR_EXPR_LIST(BATON_TIR_DECL)
#undef BATON_TIR_DECL
 protected:
  Array<PrimExpr> VisitExprs(const Array<PrimExpr>& a);
};

/// Visits every statement. Expressions in them go to VisitExpr, which does nothing here.
class BATON_DLL StmtVisitor : public StmtFunctor<void(const Stmt&)> {
 public:
  void operator()(const Stmt& s) { VisitStmt(s); }
  using StmtFunctor::VisitStmt_;
#define BATON_TIR_DECL(Name) void VisitStmt_(const Name##Node* op) override;
  BATON_TIR_STMT_LIST(BATON_TIR_DECL)
#undef BATON_TIR_DECL
 protected:
  virtual void OnExpr(const PrimExpr&) {}
};

class BATON_DLL StmtExprVisitor : public StmtVisitor, public ExprVisitor {
 public:
  using ExprVisitor::VisitExpr_;
  using StmtVisitor::VisitStmt_;
  using StmtVisitor::operator();
  void operator()(const PrimExpr& e) { VisitExpr(e); }

 protected:
  void OnExpr(const PrimExpr& e) override { VisitExpr(e); }
};

/// Rewrites statements. Expressions in them go through VisitExpr of StmtExprMutator. Results keep the spans.
class BATON_DLL StmtMutator : public StmtFunctor<Stmt(const Stmt&)> {
 public:
  Stmt operator()(const Stmt& s) { return VisitStmt(s); }
  Stmt VisitStmt(const Stmt& s) override;
  using StmtFunctor::VisitStmt_;
#define BATON_TIR_DECL(Name) Stmt VisitStmt_(const Name##Node* op) override;
  BATON_TIR_STMT_LIST(BATON_TIR_DECL)
#undef BATON_TIR_DECL
 protected:
  virtual PrimExpr OnExpr(const PrimExpr& e) { return e; }
  Array<PrimExpr> OnExprs(const Array<PrimExpr>& a);
};

class BATON_DLL StmtExprMutator : public StmtMutator, public ExprMutator {
 public:
  using ExprMutator::VisitExpr_;
  using StmtMutator::VisitStmt_;
  using StmtMutator::operator();
  PrimExpr operator()(const PrimExpr& e) { return VisitExpr(e); }

 protected:
  PrimExpr OnExpr(const PrimExpr& e) override { return VisitExpr(e); }
};

using VarMap = std::unordered_map<const Object*, PrimExpr>;
using BufferMap = std::unordered_map<const Object*, Buffer>;
/// Replaces variables. Bound variables are unique objects, so nothing can be captured.
BATON_DLL PrimExpr Substitute(const PrimExpr& e, const VarMap& map);
BATON_DLL Stmt Substitute(const Stmt& s, const VarMap& map);
BATON_DLL PrimExpr Substitute(const PrimExpr& e, const Map<Var, PrimExpr>& map);
BATON_DLL Stmt Substitute(const Stmt& s, const Map<Var, PrimExpr>& map);
/// Replaces buffers in loads, stores and allocations, and variables.
BATON_DLL Stmt SubstituteBuffers(const Stmt& s, const BufferMap& buffers, const VarMap& vars = {});
/// Copies a statement with new objects for all variables and buffers that it binds, so that it can occur twice in one
/// function.
BATON_DLL Stmt RenewBindings(const Stmt& s);

/// Calls `f(expr)` for each subexpression, parents first.
template <class F>
void PostOrderVisitExpr(const PrimExpr& e, F f) {
  struct V : ExprVisitor {
    F& f;
    explicit V(F& f) : f(f) {}
    void VisitExpr(const PrimExpr& x) override {
      ExprVisitor::VisitExpr(x);
      f(x);
    }
  } v(f);
  v.VisitExpr(e);
}

/// Equal as expressions: same classes, dtypes and literals, the same variables and buffers.
BATON_DLL bool ExprDeepEqual(const PrimExpr& a, const PrimExpr& b);
/// Agrees with ExprDeepEqual; differs from run to run where variables occur (it is for tables, never for order).
BATON_DLL size_t ExprHash(const PrimExpr& e);
BATON_DLL bool UsesVar(const PrimExpr& e, const VarNode* var);
BATON_DLL bool UsesVar(const Stmt& s, const VarNode* var);
/// Whether a call has an effect or may fail, its arguments aside.
BATON_DLL bool CallHasSideEffect(const CallNode* call);
/// True if evaluating has an effect or may fail (stores, calls of unknown functions).
BATON_DLL bool HasSideEffect(const PrimExpr& e);

}  // namespace baton::tir
