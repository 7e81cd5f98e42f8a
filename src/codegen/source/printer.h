// SPDX-License-Identifier: Apache-2.0
// PrimFuncs as text. Expressions become text; what has to be computed in order, or under a condition (values of Let,
// the branches of if_then_else), becomes statements before the one of the expression.
#pragma once

#include <baton/tir/functor.h>
#include <baton/tir/stmt.h>

#include <string>
#include <unordered_map>
#include <unordered_set>

#include "codegen/source/dialect.h"

namespace baton::codegen::source {

class Printer : public tir::ExprFunctor<std::string(const PrimExpr&)>, public tir::StmtFunctor<void(const tir::Stmt&)> {
 protected:
  Printer(const Dialect& dialect, std::string function, Needs* needs);
  ~Printer() override = default;

  // ---- The differences of languages

  /// An element of a buffer: a text that can be read, and assigned to where `write`.
  virtual std::string Element(const tir::Buffer& b, const std::string& index, bool write) = 0;
  /// A float to an integer of at least 32 bits: out of range gives the nearest limit, NaN gives 0.
  virtual std::string FloatToInt(const std::string& v, DataType from, DataType to) = 0;
  virtual std::string HalfLiteral(double value, DataType t);
  /// A call of a function of the module.
  virtual std::string CallFunction(const tir::CallNode* op);
  /// The text of an error about a vector where scalars are due.
  virtual std::string WhyNoVectors() const;
  /// Whether nothing reads a variable.
  virtual bool IsUnused(const tir::Var& v) const;

  // ---- Text

  [[noreturn]] void No(const std::string& what) const;
  [[noreturn]] void Vectors() const { No(WhyNoVectors()); }
  void Line(const std::string& s);
  std::string Fresh(const std::string& hint);
  /// The type of a value in a register. Throws for vectors.
  virtual std::string Type(DataType t);
  std::string Builtin(const std::string& name);
  std::string Name(const tir::VarNode* v);
  void Define(const tir::Var& v, const std::string& value);
  void DefineValue(const tir::Var& v, const PrimExpr& value);
  void Block(const tir::Stmt& body);
  std::string Index(const tir::Buffer& b, const Array<PrimExpr>& indices);
  /// A number that does not come near the limits of its type.
  std::string Position(const PrimExpr& e);
  std::string Convert(const std::string& v, DataType from, DataType to);
  /// `value` as memory has it.
  std::string ToMemory(const std::string& value, DataType t) const;
  /// A condition in the brackets of a statement: without further brackets where the language's compilers warn of
  /// them.
  std::string InBrackets(const std::string& condition) const;

  std::string VisitExpr(const PrimExpr& e) override;
  void VisitStmt(const tir::Stmt& s) override;
  void VisitStmt_(const tir::BufferStoreNode* op) override;
  void VisitStmt_(const tir::ForNode* op) override;
  void VisitStmt_(const tir::WhileNode* op) override;
  void VisitStmt_(const tir::IfThenElseNode* op) override;
  void VisitStmt_(const tir::SeqStmtNode* op) override;
  void VisitStmt_(const tir::EvaluateNode* op) override;
  void VisitStmt_(const tir::LetStmtNode* op) override;
  void VisitStmt_(const tir::AttrStmtNode* op) override;
  std::string VisitExpr_(const tir::VarNode* op) override;
  std::string VisitExpr_(const IntImmNode* op) override;
  std::string VisitExpr_(const FloatImmNode* op) override;
  std::string VisitExpr_(const tir::LetNode* op) override;
  std::string VisitExpr_(const tir::BufferLoadNode* op) override;
  std::string VisitExpr_(const tir::CastNode* op) override;
  std::string VisitExpr_(const tir::AddNode* op) override;
  std::string VisitExpr_(const tir::SubNode* op) override;
  std::string VisitExpr_(const tir::MulNode* op) override;
  std::string VisitExpr_(const tir::DivNode* op) override;
  std::string VisitExpr_(const tir::ModNode* op) override;
  std::string VisitExpr_(const tir::FloorDivNode* op) override;
  std::string VisitExpr_(const tir::FloorModNode* op) override;
  std::string VisitExpr_(const tir::MinNode* op) override;
  std::string VisitExpr_(const tir::MaxNode* op) override;
  std::string VisitExpr_(const tir::EQNode* op) override;
  std::string VisitExpr_(const tir::NENode* op) override;
  std::string VisitExpr_(const tir::LTNode* op) override;
  std::string VisitExpr_(const tir::LENode* op) override;
  std::string VisitExpr_(const tir::GTNode* op) override;
  std::string VisitExpr_(const tir::GENode* op) override;
  std::string VisitExpr_(const tir::AndNode* op) override;
  std::string VisitExpr_(const tir::OrNode* op) override;
  std::string VisitExpr_(const tir::NotNode* op) override;
  std::string VisitExpr_(const tir::SelectNode* op) override;
  std::string VisitExpr_(const tir::CallNode* op) override;
  std::string VisitExpr_(const tir::RampNode* op) override;
  std::string VisitExpr_(const tir::BroadcastNode* op) override;
  std::string VisitExpr_(const tir::ShuffleNode* op) override;
  std::string VisitExprDefault_(const runtime::Object* op) override;
  void VisitStmtDefault_(const runtime::Object* op) override;

  const Dialect& dialect_;
  const std::string function_;
  Needs* const needs_;
  std::string text_;
  int indent_ = 0;
  std::unordered_map<const runtime::Object*, std::string> names_;

 private:
  std::string Beside(const PrimExpr& e);
  /// Whether a value follows from elements of buffers, for languages where int64 is narrow.
  bool HoldsData(const PrimExpr& e) const;
  std::string Arithmetic(const PrimExpr& a, const PrimExpr& b, char op);
  std::string Binary(const PrimExpr& a, const PrimExpr& b, const char* op);
  std::string Call(const std::string& f, const PrimExpr& a, const PrimExpr& b);
  std::string Divide(const PrimExpr& a, const PrimExpr& b, const char* name, char op);
  std::string Extreme(PrimExpr a, PrimExpr b, const char* name, char op);
  std::string Math(const char* name, DataType t) const;
  std::string IfThenElse(const tir::CallNode* op);

  int counter_ = 0;
  bool index_ = false;                               // inside of an index or a loop's bound
  std::unordered_set<const runtime::Object*> data_;  // variables of int64 that hold data
};

}  // namespace baton::codegen::source
