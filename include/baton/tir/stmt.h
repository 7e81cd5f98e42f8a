// SPDX-License-Identifier: Apache-2.0
// Statements of TIR, and PrimFunc.
#pragma once

#include <baton/tir/expr.h>

namespace baton::tir {

struct StmtNode : Node<StmtNode, Object> {
  static constexpr const char* _type_key = "tir.Stmt";
  static constexpr bool _type_final = false;
  static constexpr bool _type_abstract = true;
  static constexpr uint32_t _type_child_slots = 20;
  mutable Span span;
  static constexpr void Describe(auto& d) {
    d(F<&StmtNode::span>, "Where it came from.", kIgnored, kNullable, kSource);
  }
};
class Stmt : public ObjectRef {
 public:
  BATON_DEFINE_OBJECT_REF_METHODS(Stmt, ObjectRef, StmtNode)
};

/// buffer[indices] = value. A vector last index stores all lanes.
struct BufferStoreNode : Node<BufferStoreNode, StmtNode> {
  static constexpr const char* _type_key = "tir.BufferStore";
  Buffer buffer;
  PrimExpr value;
  Array<PrimExpr> indices;
  static constexpr void Describe(auto& d) {
    d(F<&BufferStoreNode::buffer>, "What is written.");
    d(F<&BufferStoreNode::value>, "The value.");
    d(F<&BufferStoreNode::indices>, "Where, in elements; one index a dimension.");
  }
};
class BufferStore : public RefTo<BufferStoreNode, Stmt> {
 public:
  using RefTo::RefTo;
};

/// A new buffer for the time of body. Scope "local" with a constant shape is stack or registers; "" is the workspace.
struct AllocateNode : Node<AllocateNode, StmtNode> {
  static constexpr const char* _type_key = "tir.Allocate";
  Buffer buffer;
  Stmt body;
  static constexpr void Describe(auto& d) {
    d(F<&AllocateNode::buffer>, "The buffer.", runtime::kBinds);
    d(F<&AllocateNode::body>, "Scope.");
  }
};
class Allocate : public RefTo<AllocateNode, Stmt> {
 public:
  using RefTo::RefTo;
};

enum class ForKind : int32_t { kSerial = 0, kParallel = 1, kVectorized = 2, kUnrolled = 3 };

/// for loop_var in [min, min + extent).
struct ForNode : Node<ForNode, StmtNode> {
  static constexpr const char* _type_key = "tir.For";
  Var loop_var;
  PrimExpr min;
  PrimExpr extent;
  ForKind kind = ForKind::kSerial;
  Stmt body;
  Map<String, runtime::Any> annotations;
  static constexpr void Describe(auto& d) {
    d(F<&ForNode::loop_var>, "Bound in body.", runtime::kBinds);
    d(F<&ForNode::min>, "First value.");
    d(F<&ForNode::extent>, "Number of rounds.");
    d(F<&ForNode::kind>, "0 serial, 1 parallel, 2 vectorized, 3 unrolled.");
    d(F<&ForNode::body>, "What is repeated.");
    d(F<&ForNode::annotations>, "Hints to passes.");
  }
};
class For : public RefTo<ForNode, Stmt> {
 public:
  using RefTo::RefTo;
};

/// The body as long as the condition, asked before each round, holds.
struct WhileNode : Node<WhileNode, StmtNode> {
  static constexpr const char* _type_key = "tir.While";
  PrimExpr condition;
  Stmt body;
  static constexpr void Describe(auto& d) {
    d(F<&WhileNode::condition>, "Bool; reads what the body writes.");
    d(F<&WhileNode::body>, "What is repeated.");
  }
};
class While : public RefTo<WhileNode, Stmt> {
 public:
  using RefTo::RefTo;
};

struct IfThenElseNode : Node<IfThenElseNode, StmtNode> {
  static constexpr const char* _type_key = "tir.IfThenElse";
  PrimExpr condition;
  Stmt then_case;
  Stmt else_case;
  static constexpr void Describe(auto& d) {
    d(F<&IfThenElseNode::condition>, "Bool.");
    d(F<&IfThenElseNode::then_case>, "If true.");
    d(F<&IfThenElseNode::else_case>, "If false; may be null.", kNullable);
  }
};
class IfThenElse : public RefTo<IfThenElseNode, Stmt> {
 public:
  using RefTo::RefTo;
};

struct SeqStmtNode : Node<SeqStmtNode, StmtNode> {
  static constexpr const char* _type_key = "tir.SeqStmt";
  Array<Stmt> seq;
  static constexpr void Describe(auto& d) { d(F<&SeqStmtNode::seq>, "In order."); }
};
class BATON_DLL SeqStmt : public RefTo<SeqStmtNode, Stmt> {
 public:
  using RefTo::RefTo;
  /// Nested sequences are joined, nulls dropped; one statement stays itself.
  static Stmt Flatten(const Array<Stmt>& seq);
};

struct EvaluateNode : Node<EvaluateNode, StmtNode> {
  static constexpr const char* _type_key = "tir.Evaluate";
  PrimExpr value;
  static constexpr void Describe(auto& d) { d(F<&EvaluateNode::value>, "Evaluated for its effect."); }
};
class Evaluate : public RefTo<EvaluateNode, Stmt> {
 public:
  using RefTo::RefTo;
};

struct LetStmtNode : Node<LetStmtNode, StmtNode> {
  static constexpr const char* _type_key = "tir.LetStmt";
  Var var;
  PrimExpr value;
  Stmt body;
  static constexpr void Describe(auto& d) {
    d(F<&LetStmtNode::var>, "Bound in body.", runtime::kBinds);
    d(F<&LetStmtNode::value>, "Its value.");
    d(F<&LetStmtNode::body>, "Scope.");
  }
};
class LetStmt : public RefTo<LetStmtNode, Stmt> {
 public:
  using RefTo::RefTo;
};

/// A mark on a scope, for passes and the code generator.
struct AttrStmtNode : Node<AttrStmtNode, StmtNode> {
  static constexpr const char* _type_key = "tir.AttrStmt";
  ObjectRef node;
  String attr_key;
  PrimExpr value;
  Stmt body;
  static constexpr void Describe(auto& d) {
    d(F<&AttrStmtNode::node>, "What it is about; may be null.", kNullable);
    d(F<&AttrStmtNode::attr_key>, "Name of the mark.");
    d(F<&AttrStmtNode::value>, "Its value; may be null.", kNullable);
    d(F<&AttrStmtNode::body>, "Scope.");
  }
};
class AttrStmt : public RefTo<AttrStmtNode, Stmt> {
 public:
  using RefTo::RefTo;
};

/// Raises an error at run time if the condition is false.
struct AssertStmtNode : Node<AssertStmtNode, StmtNode> {
  static constexpr const char* _type_key = "tir.AssertStmt";
  PrimExpr condition;
  PrimExpr message;
  Stmt body;
  static constexpr void Describe(auto& d) {
    d(F<&AssertStmtNode::condition>, "Bool.");
    d(F<&AssertStmtNode::message>, "A StringImm.");
    d(F<&AssertStmtNode::body>, "What follows; may be null.", kNullable);
  }
};
class AssertStmt : public RefTo<AssertStmtNode, Stmt> {
 public:
  using RefTo::RefTo;
};

/// A function of loops. Each parameter is a scalar Var or the handle of a buffer in `buffer_map`.
struct PrimFuncNode : Node<PrimFuncNode, BaseFuncNode> {
  static constexpr const char* _type_key = "tir.PrimFunc";
  Array<Var> params;
  Map<Var, Buffer> buffer_map;
  Stmt body;
  Type ret_type;
  static constexpr void Describe(auto& d) {
    d(F<&PrimFuncNode::params>, "Parameters.", runtime::kBinds);
    d(F<&PrimFuncNode::buffer_map>, "Buffers behind handle parameters.", runtime::kBinds);
    d(F<&PrimFuncNode::body>, "What it does.");
    d(F<&PrimFuncNode::ret_type>, "Null: nothing but an error code.", kNullable);
  }
};
class BATON_DLL PrimFunc : public RefTo<PrimFuncNode, BaseFunc> {
 public:
  BATON_TIR_REF(PrimFunc, PrimFuncNode)
  PrimFunc(Array<Var> params, Stmt body, Map<Var, Buffer> buffer_map = {}, DictAttrs attrs = DictAttrs(nullptr));
};

}  // namespace baton::tir
