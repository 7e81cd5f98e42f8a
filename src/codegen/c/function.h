// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "codegen/c/c.h"
#include "codegen/source/printer.h"

namespace baton::codegen::c {

/// Whether a call makes a tensor that is an argument of another call.
bool IsStackTensor(const tir::CallNode* op);

/// A PrimFunc as a C function. A vector is a loop over its lanes: within one, the text of an expression is that of the
/// lane `lane_`.
class FunctionPrinter final : public source::Printer {
 public:
  FunctionPrinter(const IRModule& mod, const Symbols& symbols, const std::string& symbol, FileNeeds* needs);
  FunctionText Print(const tir::PrimFunc& f);

 private:
  friend struct Forms;  // of intrinsics.cpp
  using Printer::VisitExpr_;
  using Printer::VisitStmt_;

  std::string Element(const tir::Buffer& b, const std::string& index, bool write) override;
  std::string FloatToInt(const std::string& v, DataType from, DataType to) override;
  std::string HalfLiteral(double value, DataType t) override;
  bool IsUnused(const tir::Var& v) const override { return !used_.count(v.get()); }
  std::string Type(DataType t) override;
  std::string VisitExpr_(const tir::VarNode* op) override;
  std::string VisitExpr_(const tir::StringImmNode* op) override;
  std::string VisitExpr_(const tir::CastNode* op) override;
  std::string VisitExpr_(const tir::LetNode* op) override;
  void VisitStmt_(const tir::AllocateNode* op) override;
  void VisitStmt_(const tir::AssertStmtNode* op) override;
  void VisitStmt_(const tir::EvaluateNode* op) override;

  // ---- vectors.cpp
  std::string VisitExpr_(const tir::RampNode* op) override;
  std::string VisitExpr_(const tir::BroadcastNode* op) override;
  std::string VisitExpr_(const tir::ShuffleNode* op) override;
  void VisitStmt_(const tir::BufferStoreNode* op) override;
  void VisitStmt_(const tir::LetStmtNode* op) override;
  /// Writes a loop over lanes; `body` writes what happens in each.
  template <class F>
  void Lanes(int lanes, F body);
  /// The name of an array with the lanes of `e`.
  std::string InArray(const PrimExpr& e);
  /// The text of one lane.
  std::string Lane(const PrimExpr& e, const std::string& lane);
  /// All lanes by `sign`: a sum, a product, the least or the most.
  std::string Reduced(const tir::CallNode* op, char sign);
  std::string Dot4(const tir::CallNode* op);
  std::string Dot2(const tir::CallNode* op);
  std::string MaskedLoad(const tir::CallNode* op);
  std::string MaskedStore(const tir::CallNode* op);

  // ---- calls.cpp
  std::string CallFunction(const tir::CallNode* op) override;
  /// `traced`: where the function gives nothing, the value is the last argument.
  std::string CallPacked(const tir::CallNode* op, bool traced);
  std::string AddressOf(const tir::CallNode* op);
  std::string CallExtern(const tir::CallNode* op);
  std::string StackTensor(const tir::CallNode* op);
  /// Leaves the function with a number that is not 0.
  void ReturnIf(const std::string& condition, const std::string& number);

  /// Memory of a parameter as its functions see it: a pointer for each type of elements.
  struct View {
    std::string name;
    bool written = false;
  };
  struct Param {
    std::string name;
    std::string hint;
    std::map<std::string, View> views;
  };
  struct Local {
    std::string name, type;
  };

  const IRModule& mod_;
  const Symbols& symbols_;
  FileNeeds* const file_;
  FunctionText out_;
  std::unordered_set<const tir::VarNode*> used_;
  std::unordered_map<const Object*, Param> params_;  // by the data variable
  std::unordered_map<const Object*, Local> locals_;
  std::vector<std::string> heap_;
  bool has_status_ = false;
  std::string lane_;                                        // "" outside of vectors
  std::unordered_map<const Object*, std::string> of_lane_;  // variables that hold a lane's value, with the lane
};

}  // namespace baton::codegen::c
