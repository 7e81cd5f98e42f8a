// SPDX-License-Identifier: Apache-2.0
// NM-003: "Adding a Compiler Pass to Relay" (later), AST Traversers: the functor over loop expressions.
#include <baton/compat/tvm.h>
#include <doctest/doctest.h>

namespace seed_expr_functor {
using namespace tvm::tir;
using tvm::NodeFunctor;
using tvm::ObjectRef;
using tvm::PrimExpr;

template <class F>
class ExprFunctor;

// The members are the document's; the class, the table's type and how it is filled are left out there.
#define EXPR_FUNCTOR_DEFAULT_SEED                              \
  {                                                            \
    return VisitExprDefault_(op, std::forward<Args>(args)...); \
  }
template <class R, class... Args>
class ExprFunctor<R(const PrimExpr& n, Args...)> {
 public:
  using FType = NodeFunctor<R(const ObjectRef& n, ExprFunctor* self, Args...)>;
  virtual ~ExprFunctor() = default;

  virtual R VisitExpr(const PrimExpr& n, Args... args) {
    static FType vtable = InitVTable();
    return vtable(n, this, std::forward<Args>(args)...);
  }
  // Functions that can be overriden by subclass
  virtual R VisitExpr_(const VarNode* op, Args... args) EXPR_FUNCTOR_DEFAULT_SEED;
  virtual R VisitExpr_(const CallNode* op, Args... args) EXPR_FUNCTOR_DEFAULT_SEED;
  virtual R VisitExpr_(const AddNode* op, Args... args) EXPR_FUNCTOR_DEFAULT_SEED;
  virtual R VisitExpr_(const SubNode* op, Args... args) EXPR_FUNCTOR_DEFAULT_SEED;
  virtual R VisitExpr_(const MulNode* op, Args... args) EXPR_FUNCTOR_DEFAULT_SEED;
  virtual R VisitExpr_(const DivNode* op, Args... args) EXPR_FUNCTOR_DEFAULT_SEED;

  virtual R VisitExprDefault_(const tvm::Object* op, Args...) {
    throw tvm::InternalError("no handler for `" + op->GetTypeKey() + "`");
  }

 private:
  template <class N>
  static void Set(FType* vtable) {
    vtable->template set_dispatch<N>([](const ObjectRef& n, ExprFunctor* self, Args... args) -> R {
      return self->VisitExpr_(static_cast<const N*>(n.get()), std::forward<Args>(args)...);
    });
  }
  static FType InitVTable() {
    FType vtable;
    Set<VarNode>(&vtable);
    Set<CallNode>(&vtable);
    Set<AddNode>(&vtable);
    Set<SubNode>(&vtable);
    Set<MulNode>(&vtable);
    Set<DivNode>(&vtable);
    return vtable;
  }
};
#undef EXPR_FUNCTOR_DEFAULT_SEED

/// Counts a kind, with one more argument.
struct Depth : ExprFunctor<int(const PrimExpr&, int)> {
  using ExprFunctor::VisitExpr_;
  int VisitExpr_(const VarNode*, int depth) final { return depth; }
  int VisitExpr_(const AddNode* op, int depth) final {
    return VisitExpr(op->a, depth + 1) + VisitExpr(op->b, depth + 1);
  }
};

}  // namespace seed_expr_functor

TEST_CASE("NM-003 TR-11 FN-001 FN-003 FN-005 FN-006 seed 003: dispatch by a table that is made once") {
  using namespace tvm::tir;
  Var x("x");
  seed_expr_functor::Depth depth;
  CHECK(depth.VisitExpr(Add(x, Add(x, x)), 0) == 5);
  CHECK_THROWS_WITH_AS(depth.VisitExpr(Sub(x, x), 0), doctest::Contains("tir.Sub"), tvm::Error);
}
