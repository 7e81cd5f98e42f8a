// SPDX-License-Identifier: Apache-2.0
// Relay's expressions.
#pragma once

#include <baton/ir/module.h>
#include <baton/ir/op.h>
#include <baton/runtime/ndarray.h>

namespace baton::relay {

using Expr = RelayExpr;
using ExprNode = RelayExprNode;

/// A tensor known at compile time.
struct BATON_DLL ConstantNode : Node<ConstantNode, ExprNode> {
  static constexpr const char* _type_key = "relay.Constant";
  static constexpr bool _type_is_value = true;
  runtime::NDArray data;
  static constexpr void Describe(auto& d) { d(F<&ConstantNode::data>, "The tensor; never written to."); }
  TensorType tensor_type() const;
  bool is_scalar() const { return data->ndim == 0; }
};
class Constant : public RefTo<ConstantNode, Expr> {
 public:
  using RefTo::RefTo;
};

struct TupleNode : Node<TupleNode, ExprNode> {
  static constexpr const char* _type_key = "relay.Tuple";
  Array<Expr> fields;
  static constexpr void Describe(auto& d) { d(F<&TupleNode::fields>, "Its parts."); }
};
class Tuple : public RefTo<TupleNode, Expr> {
 public:
  using RefTo::RefTo;
};

/// Identity of a variable, with the name it is printed by.
struct IdNode : Node<IdNode, Object> {
  static constexpr const char* _type_key = "relay.Id";
  static constexpr bool _type_is_var = true;
  String name_hint;
  static constexpr void Describe(auto& d) { d(F<&IdNode::name_hint>, "Name in text.", runtime::kIgnored); }
};
class Id : public RefTo<IdNode, ObjectRef> {
 public:
  using RefTo::RefTo;
};

/// A local variable. Identity is the object's.
struct VarNode : Node<VarNode, ExprNode> {
  static constexpr const char* _type_key = "relay.Var";
  static constexpr bool _type_is_value = true;
  static constexpr bool _type_is_var = true;
  Id vid;
  Type type_annotation;
  static constexpr void Describe(auto& d) {
    d(F<&VarNode::vid>, "Identity and name.", runtime::kIgnored);
    d(F<&VarNode::type_annotation>, "Type that the user wrote; null if none.", kNullable);
  }
  const String& name_hint() const { return vid->name_hint; }
};
class Var : public RefTo<VarNode, Expr> {
 public:
  using RefTo::RefTo;
  Var(const char* name, Type type = Type()) : RefTo(VarNode{.vid = Id(String(name)), .type_annotation = type}) {}
  Var(const std::string& name, Type type = Type()) : RefTo(VarNode{.vid = Id(String(name)), .type_annotation = type}) {}
  Var(const String& name, Type type = Type()) : RefTo(VarNode{.vid = Id(name), .type_annotation = type}) {}
  Var(Id vid, Type type) : RefTo(VarNode{.vid = vid, .type_annotation = type}) {}
};

/// `op(args)` with attributes. `op` is an Op, a function, a global, a constructor or anything of function type.
struct CallNode : Node<CallNode, ExprNode> {
  static constexpr const char* _type_key = "relay.Call";
  Expr op;
  Array<Expr> args;
  Attrs attrs;
  Array<Type> type_args;
  static constexpr void Describe(auto& d) {
    d(F<&CallNode::op>, "What is called.");
    d(F<&CallNode::args>, "Arguments.");
    d(F<&CallNode::attrs>, "Attributes; null is none.", kNullable);
    d(F<&CallNode::type_args>, "Type arguments of a polymorphic callee.");
  }
};
class Call : public RefTo<CallNode, Expr> {
 public:
  using RefTo::RefTo;
};

/// `let var = value; body`. Chains are long in practice: traversals iterate over `body`.
struct LetNode : Node<LetNode, ExprNode> {
  static constexpr const char* _type_key = "relay.Let";
  Var var;
  Expr value;
  Expr body;
  static constexpr void Describe(auto& d) {
    d(F<&LetNode::value>, "Bound expression; `var` is in scope here only if it is a function (recursion).");
    d(F<&LetNode::var>, "Variable bound in `body`.", runtime::kBinds);
    d(F<&LetNode::body>, "Scope of the binding.");
  }
};
class Let : public RefTo<LetNode, Expr> {
 public:
  using RefTo::RefTo;
};

struct IfNode : Node<IfNode, ExprNode> {
  static constexpr const char* _type_key = "relay.If";
  Expr cond;
  Expr true_branch;
  Expr false_branch;
  static constexpr void Describe(auto& d) {
    d(F<&IfNode::cond>, "A scalar bool.");
    d(F<&IfNode::true_branch>, "Value if true.");
    d(F<&IfNode::false_branch>, "Value if false; of the same type.");
  }
};
class If : public RefTo<IfNode, Expr> {
 public:
  using RefTo::RefTo;
};

struct TupleGetItemNode : Node<TupleGetItemNode, ExprNode> {
  static constexpr const char* _type_key = "relay.TupleGetItem";
  static constexpr bool _type_is_value = true;
  Expr tuple;
  int64_t index = 0;
  static constexpr void Describe(auto& d) {
    d(F<&TupleGetItemNode::tuple>, "A tuple.");
    d(F<&TupleGetItemNode::index>, "Which part, from 0.");
  }
};
class TupleGetItem : public RefTo<TupleGetItemNode, Expr> {
 public:
  using RefTo::RefTo;
};

struct FunctionNode : Node<FunctionNode, BaseFuncNode> {
  static constexpr const char* _type_key = "relay.Function";
  Array<TypeVar> type_params;
  Array<Var> params;
  Expr body;
  Type ret_type;
  static constexpr void Describe(auto& d) {
    d(F<&FunctionNode::type_params>, "Type parameters.", runtime::kBinds);
    d(F<&FunctionNode::params>, "Parameters.", runtime::kBinds);
    d(F<&FunctionNode::body>, "Value of a call.");
    d(F<&FunctionNode::ret_type>, "Type of the result; null: inferred.", kNullable);
  }
};
class Function : public RefTo<FunctionNode, BaseFunc> {
 public:
  using RefTo::RefTo;
  Function(Array<Var> params, Expr body, Type ret_type = Type(), Array<TypeVar> type_params = {},
           DictAttrs attrs = DictAttrs())
      : RefTo(MakeNode(params, body, ret_type, type_params, attrs)) {}

 private:
  static FunctionNode MakeNode(Array<Var> params, Expr body, Type ret, Array<TypeVar> tp, DictAttrs attrs) {
    FunctionNode n;
    n.params = params, n.body = body, n.ret_type = ret, n.type_params = tp, n.attrs = attrs;
    return n;
  }
};

struct RefCreateNode : Node<RefCreateNode, ExprNode> {
  static constexpr const char* _type_key = "relay.RefCreate";
  Expr value;
  static constexpr void Describe(auto& d) { d(F<&RefCreateNode::value>, "Initial value."); }
};
class RefCreate : public RefTo<RefCreateNode, Expr> {
 public:
  using RefTo::RefTo;
};
struct RefReadNode : Node<RefReadNode, ExprNode> {
  static constexpr const char* _type_key = "relay.RefRead";
  Expr ref;
  static constexpr void Describe(auto& d) { d(F<&RefReadNode::ref>, "A reference."); }
};
class RefRead : public RefTo<RefReadNode, Expr> {
 public:
  using RefTo::RefTo;
};
struct RefWriteNode : Node<RefWriteNode, ExprNode> {
  static constexpr const char* _type_key = "relay.RefWrite";
  Expr ref;
  Expr value;
  static constexpr void Describe(auto& d) {
    d(F<&RefWriteNode::ref>, "A reference.");
    d(F<&RefWriteNode::value>, "New value.");
  }
};
class RefWrite : public RefTo<RefWriteNode, Expr> {
 public:
  using RefTo::RefTo;
};

// Patterns of match.
struct PatternNode : Node<PatternNode, Object> {
  static constexpr const char* _type_key = "relay.Pattern";
  static constexpr bool _type_final = false;
  static constexpr bool _type_abstract = true;
  static constexpr uint32_t _type_child_slots = 5;
  mutable Span span;
  static constexpr void Describe(auto& d) {
    d(F<&PatternNode::span>, "Where it came from.", kIgnored, kNullable, kSource);
  }
};
class Pattern : public ObjectRef {
 public:
  BATON_DEFINE_OBJECT_REF_METHODS(Pattern, ObjectRef, PatternNode)
};
struct PatternWildcardNode : Node<PatternWildcardNode, PatternNode> {
  static constexpr const char* _type_key = "relay.PatternWildcard";
  static constexpr void Describe(auto&) {}
};
class PatternWildcard : public RefTo<PatternWildcardNode, Pattern> {
 public:
  using RefTo::RefTo;
};
struct PatternVarNode : Node<PatternVarNode, PatternNode> {
  static constexpr const char* _type_key = "relay.PatternVar";
  Var var;
  static constexpr void Describe(auto& d) {
    d(F<&PatternVarNode::var>, "Bound to the matched value.", runtime::kBinds);
  }
};
class PatternVar : public RefTo<PatternVarNode, Pattern> {
 public:
  using RefTo::RefTo;
};
struct PatternConstructorNode : Node<PatternConstructorNode, PatternNode> {
  static constexpr const char* _type_key = "relay.PatternConstructor";
  Constructor constructor;
  Array<Pattern> patterns;
  static constexpr void Describe(auto& d) {
    d(F<&PatternConstructorNode::constructor>, "The constructor.");
    d(F<&PatternConstructorNode::patterns>, "Patterns of its fields.");
  }
};
class PatternConstructor : public RefTo<PatternConstructorNode, Pattern> {
 public:
  using RefTo::RefTo;
};
struct PatternTupleNode : Node<PatternTupleNode, PatternNode> {
  static constexpr const char* _type_key = "relay.PatternTuple";
  Array<Pattern> patterns;
  static constexpr void Describe(auto& d) { d(F<&PatternTupleNode::patterns>, "Patterns of the parts."); }
};
class PatternTuple : public RefTo<PatternTupleNode, Pattern> {
 public:
  using RefTo::RefTo;
};
struct ClauseNode : Node<ClauseNode, Object> {
  static constexpr const char* _type_key = "relay.Clause";
  Pattern lhs;
  Expr rhs;
  static constexpr void Describe(auto& d) {
    d(F<&ClauseNode::lhs>, "Pattern; its variables are bound in rhs.");
    d(F<&ClauseNode::rhs>, "Value.");
  }
};
class Clause : public RefTo<ClauseNode, ObjectRef> {
 public:
  using RefTo::RefTo;
};
struct MatchNode : Node<MatchNode, ExprNode> {
  static constexpr const char* _type_key = "relay.Match";
  Expr data;
  Array<Clause> clauses;
  bool complete = true;
  static constexpr void Describe(auto& d) {
    d(F<&MatchNode::data>, "What is matched.");
    d(F<&MatchNode::clauses>, "Tried in order.");
    d(F<&MatchNode::complete>, "Whether the clauses must cover all values.");
  }
};
class Match : public RefTo<MatchNode, Expr> {
 public:
  using RefTo::RefTo;
};

}  // namespace baton::relay
