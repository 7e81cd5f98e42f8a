// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <baton/arith/analyzer.h>
#include <baton/tir/functor.h>
#include <baton/tir/op.h>

#include <utility>

#include "arith/bounds.h"

namespace baton::arith {

/// Canonical sums for indices; a plain bottom-up rewrite for the rest.
class Simplifier : public tir::ExprMutator {
 public:
  explicit Simplifier(Analyzer* a) : a_(a) {}
  using tir::ExprMutator::VisitExpr_;

  PrimExpr VisitExpr(const PrimExpr& e) final;

  LinearForm Linear(const PrimExpr& e);

  PrimExpr VisitExpr_(const tir::LTNode* op) final { return Compare(tir::NodeKind::kLT, op->a, op->b, op); }
  PrimExpr VisitExpr_(const tir::LENode* op) final { return Compare(tir::NodeKind::kLE, op->a, op->b, op); }
  PrimExpr VisitExpr_(const tir::GTNode* op) final { return Compare(tir::NodeKind::kGT, op->a, op->b, op); }
  PrimExpr VisitExpr_(const tir::GENode* op) final { return Compare(tir::NodeKind::kGE, op->a, op->b, op); }
  PrimExpr VisitExpr_(const tir::EQNode* op) final { return Compare(tir::NodeKind::kEQ, op->a, op->b, op); }
  PrimExpr VisitExpr_(const tir::NENode* op) final { return Compare(tir::NodeKind::kNE, op->a, op->b, op); }
  PrimExpr VisitExpr_(const tir::NotNode* op) final;
  PrimExpr VisitExpr_(const tir::AndNode* op) final;
  PrimExpr VisitExpr_(const tir::SelectNode* op) final;
  PrimExpr VisitExpr_(const tir::CallNode* op) final;
  PrimExpr VisitExpr_(const tir::LetNode* op) final;
  PrimExpr VisitExpr_(const tir::CastNode* op) final;

 private:
  PrimExpr Compare(tir::NodeKind k, const PrimExpr& a0, const PrimExpr& b0, const PrimExprNode* self);

  /// Whether the sum of an expression takes more than its parts' sums.
  static bool IsKept(const PrimExpr& e);
  static LinearForm Constant(int64_t c);
  static LinearForm Atom(PrimExpr e);

  LinearForm LinearImpl(const PrimExpr& e);

  LinearForm DivForm(const LinearForm& f, int64_t c);

  LinearForm ModForm(const LinearForm& f, int64_t c);

  /// Joins k*c*(x // c) + k*(x % c) to k*x, and k*c*((x // c) % m) + k*(x % c) to k*(x % (c*m)).
  LinearForm Merge(LinearForm f);

  Analyzer* a_;
};

}  // namespace baton::arith
