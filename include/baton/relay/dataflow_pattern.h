// SPDX-License-Identifier: Apache-2.0
// The pattern language of dataflow: what a pattern is, matching, rewriting, partitioning.
#pragma once

#include <baton/relay/expr.h>

#include <initializer_list>
#include <string>

namespace baton::relay {

/// A pattern of expressions. One pattern object stands for one expression wherever it occurs within a pattern, so a
/// wildcard that is used twice asks for the same value twice.
struct DFPatternNode : Node<DFPatternNode, Object> {
  static constexpr const char* _type_key = "relay.dataflow_pattern.DFPattern";
  static constexpr bool _type_final = false;
  static constexpr bool _type_abstract = true;
  static constexpr bool _type_is_value = false;
  static constexpr uint32_t _type_child_slots = 20;
  static constexpr void Describe(auto&) {}
};
class BATON_DLL DFPattern : public ObjectRef {
 public:
  BATON_DEFINE_OBJECT_REF_METHODS(DFPattern, ObjectRef, DFPatternNode)
  /// A call of what matches this pattern.
  DFPattern operator()(const Array<DFPattern>& args) const;
  DFPattern operator+(const DFPattern& other) const;
  DFPattern operator-(const DFPattern& other) const;
  DFPattern operator*(const DFPattern& other) const;
  DFPattern operator/(const DFPattern& other) const;
  /// This pattern or the other one.
  DFPattern operator||(const DFPattern& other) const;
  /// This pattern, or what `make` makes of it: `conv.Optional([](DFPattern x) { return IsOp("nn.relu")({x}); })`.
  template <class Fn>
  DFPattern Optional(Fn make) const {
    return *this || make(*this);
  }
  DFPattern HasAttr(const Map<String, Any>& attrs) const;
  DFPattern HasType(const Type& type) const;
  DFPattern HasDtype(DataType dtype) const;
  DFPattern HasDtype(const std::string& dtype) const;
  DFPattern HasShape(const Array<PrimExpr>& shape) const;
};

/// Exactly an expression, up to renaming of what it binds.
struct ExprPatternNode : Node<ExprPatternNode, DFPatternNode> {
  static constexpr const char* _type_key = "relay.dataflow_pattern.ExprPattern";
  Expr expr;
  static constexpr void Describe(auto& d) { d(F<&ExprPatternNode::expr>, "The expression."); }
};
class ExprPattern : public RefTo<ExprPatternNode, DFPattern> {
 public:
  using RefTo::RefTo;
};

/// A variable, of a name if one is given.
struct VarPatternNode : Node<VarPatternNode, DFPatternNode> {
  static constexpr const char* _type_key = "relay.dataflow_pattern.VarPattern";
  String name;
  static constexpr void Describe(auto& d) { d(F<&VarPatternNode::name>, "Its name; \"\": any."); }
};
class VarPattern : public RefTo<VarPatternNode, DFPattern> {
 public:
  using RefTo::RefTo;
};

/// Any constant.
struct ConstantPatternNode : Node<ConstantPatternNode, DFPatternNode> {
  static constexpr const char* _type_key = "relay.dataflow_pattern.ConstantPattern";
  static constexpr void Describe(auto&) {}
};
class ConstantPattern : public RefTo<ConstantPatternNode, DFPattern> {
 public:
  using RefTo::RefTo;
};

/// A call. `add` and `multiply` match their arguments in either order; `(a * b) / c` matches `a * (b / c)` and the
/// other way round.
struct CallPatternNode : Node<CallPatternNode, DFPatternNode> {
  static constexpr const char* _type_key = "relay.dataflow_pattern.CallPattern";
  DFPattern op;
  Array<DFPattern> args;
  static constexpr void Describe(auto& d) {
    d(F<&CallPatternNode::op>, "What is called.");
    d(F<&CallPatternNode::args>, "Its arguments; null: any number of any.", kNullable);
  }
};
class CallPattern : public RefTo<CallPatternNode, DFPattern> {
 public:
  using RefTo::RefTo;
};

/// A function.
struct FunctionPatternNode : Node<FunctionPatternNode, DFPatternNode> {
  static constexpr const char* _type_key = "relay.dataflow_pattern.FunctionPattern";
  Array<DFPattern> params;
  DFPattern body;
  static constexpr void Describe(auto& d) {
    d(F<&FunctionPatternNode::params>, "Its parameters; null: any.", kNullable);
    d(F<&FunctionPatternNode::body>, "Its body.");
  }
};
class FunctionPattern : public RefTo<FunctionPatternNode, DFPattern> {
 public:
  using RefTo::RefTo;
};

struct LetPatternNode : Node<LetPatternNode, DFPatternNode> {
  static constexpr const char* _type_key = "relay.dataflow_pattern.LetPattern";
  DFPattern var;
  DFPattern value;
  DFPattern body;
  static constexpr void Describe(auto& d) {
    d(F<&LetPatternNode::var>, "The variable.");
    d(F<&LetPatternNode::value>, "Its value.");
    d(F<&LetPatternNode::body>, "The rest.");
  }
};
class LetPattern : public RefTo<LetPatternNode, DFPattern> {
 public:
  using RefTo::RefTo;
};

struct IfPatternNode : Node<IfPatternNode, DFPatternNode> {
  static constexpr const char* _type_key = "relay.dataflow_pattern.IfPattern";
  DFPattern cond;
  DFPattern true_branch;
  DFPattern false_branch;
  static constexpr void Describe(auto& d) {
    d(F<&IfPatternNode::cond>, "The condition.");
    d(F<&IfPatternNode::true_branch>, "Value if true.");
    d(F<&IfPatternNode::false_branch>, "Value if false.");
  }
};
class IfPattern : public RefTo<IfPatternNode, DFPattern> {
 public:
  using RefTo::RefTo;
};

struct TuplePatternNode : Node<TuplePatternNode, DFPatternNode> {
  static constexpr const char* _type_key = "relay.dataflow_pattern.TuplePattern";
  Array<DFPattern> fields;
  static constexpr void Describe(auto& d) {
    d(F<&TuplePatternNode::fields>, "Its fields; null: any number of any.", kNullable);
  }
};
class TuplePattern : public RefTo<TuplePatternNode, DFPattern> {
 public:
  using RefTo::RefTo;
};

struct TupleGetItemPatternNode : Node<TupleGetItemPatternNode, DFPatternNode> {
  static constexpr const char* _type_key = "relay.dataflow_pattern.TupleGetItemPattern";
  DFPattern tuple;
  int64_t index = -1;
  static constexpr void Describe(auto& d) {
    d(F<&TupleGetItemPatternNode::tuple>, "The tuple.");
    d(F<&TupleGetItemPatternNode::index>, "Which field; -1: any.", AtLeast(-1));
  }
};
class TupleGetItemPattern : public RefTo<TupleGetItemPatternNode, DFPattern> {
 public:
  using RefTo::RefTo;
};

/// One of two patterns; the left one if both match.
struct AltPatternNode : Node<AltPatternNode, DFPatternNode> {
  static constexpr const char* _type_key = "relay.dataflow_pattern.AltPattern";
  DFPattern left;
  DFPattern right;
  static constexpr void Describe(auto& d) {
    d(F<&AltPatternNode::left>, "Tried first.");
    d(F<&AltPatternNode::right>, "Tried if the first does not match.");
  }
};
class AltPattern : public RefTo<AltPatternNode, DFPattern> {
 public:
  using RefTo::RefTo;
};

/// Anything.
struct WildcardPatternNode : Node<WildcardPatternNode, DFPatternNode> {
  static constexpr const char* _type_key = "relay.dataflow_pattern.WildcardPattern";
  static constexpr void Describe(auto&) {}
};
class WildcardPattern : public RefTo<WildcardPatternNode, DFPattern> {
 public:
  using RefTo::RefTo;
};

struct TypePatternNode : Node<TypePatternNode, DFPatternNode> {
  static constexpr const char* _type_key = "relay.dataflow_pattern.TypePattern";
  DFPattern pattern;
  Type type;
  static constexpr void Describe(auto& d) {
    d(F<&TypePatternNode::pattern>, "What matches.");
    d(F<&TypePatternNode::type>, "And has this type.");
  }
};
class TypePattern : public RefTo<TypePatternNode, DFPattern> {
 public:
  using RefTo::RefTo;
};

struct ShapePatternNode : Node<ShapePatternNode, DFPatternNode> {
  static constexpr const char* _type_key = "relay.dataflow_pattern.ShapePattern";
  DFPattern pattern;
  Array<PrimExpr> shape;
  static constexpr void Describe(auto& d) {
    d(F<&ShapePatternNode::pattern>, "What matches.");
    d(F<&ShapePatternNode::shape>, "And is a tensor of this shape.");
  }
};
class ShapePattern : public RefTo<ShapePatternNode, DFPattern> {
 public:
  using RefTo::RefTo;
};

struct DataTypePatternNode : Node<DataTypePatternNode, DFPatternNode> {
  static constexpr const char* _type_key = "relay.dataflow_pattern.DataTypePattern";
  DFPattern pattern;
  DataType dtype;
  static constexpr void Describe(auto& d) {
    d(F<&DataTypePatternNode::pattern>, "What matches.");
    d(F<&DataTypePatternNode::dtype>, "And is a tensor of this dtype.");
  }
};
class DataTypePattern : public RefTo<DataTypePatternNode, DFPattern> {
 public:
  using RefTo::RefTo;
};

/// An operator with these attributes in the registry, or a call or function with these attributes.
struct AttrPatternNode : Node<AttrPatternNode, DFPatternNode> {
  static constexpr const char* _type_key = "relay.dataflow_pattern.AttrPattern";
  DFPattern pattern;
  DictAttrs attrs;
  static constexpr void Describe(auto& d) {
    d(F<&AttrPatternNode::pattern>, "What matches.");
    d(F<&AttrPatternNode::attrs>, "And has these attributes, of these values.");
  }
};
class AttrPattern : public RefTo<AttrPatternNode, DFPattern> {
 public:
  using RefTo::RefTo;
};

/// `child`, all of whose data comes from one `parent` through expressions that match `path`, and through which all that
/// the parent feeds goes. An expression that reads the parent itself may read other data too.
struct DominatorPatternNode : Node<DominatorPatternNode, DFPatternNode> {
  static constexpr const char* _type_key = "relay.dataflow_pattern.DominatorPattern";
  DFPattern parent;
  DFPattern path;
  DFPattern child;
  static constexpr void Describe(auto& d) {
    d(F<&DominatorPatternNode::parent>, "Where the data comes from.");
    d(F<&DominatorPatternNode::path>, "Each expression between.");
    d(F<&DominatorPatternNode::child>, "Where it comes together.");
  }
};
class DominatorPattern : public RefTo<DominatorPatternNode, DFPattern> {
 public:
  using RefTo::RefTo;
};

/// A rewrite: `function(pre, post, node_map)` gives the expression for a match. `pre` is the matched expression, `post`
/// the same with its parts rewritten, `node_map` gives for each pattern what it matched, rewritten.
struct DFPatternCallbackNode : Node<DFPatternCallbackNode, Object> {
  static constexpr const char* _type_key = "relay.dataflow_pattern.DFPatternCallback";
  DFPattern pattern;
  PackedFunc function;
  bool require_type = false;
  bool rewrite_once = false;
  static constexpr void Describe(auto& d) {
    d(F<&DFPatternCallbackNode::pattern>, "What is rewritten.");
    d(F<&DFPatternCallbackNode::function>, "(pre, post, node_map) -> expression.", kNullable, runtime::kTransient);
    d(F<&DFPatternCallbackNode::require_type>, "Types are inferred before each round.");
    d(F<&DFPatternCallbackNode::rewrite_once>, "Only in the first round.");
  }
};
class DFPatternCallback : public RefTo<DFPatternCallbackNode, ObjectRef> {
 public:
  using RefTo::RefTo;
};

/// Whether the pattern matches the expression as a whole.
BATON_DLL bool MatchPattern(const DFPattern& pattern, const Expr& expr);
/// Rewrites matches until nothing changes. In each round the outermost matches are taken first and do not overlap; one
/// whose inner expressions are used outside of it is left alone. Linear in the size of the expression for each round.
/// Throws CompileError, naming the pattern, where rounds repeat an earlier expression or do not end.
BATON_DLL Expr RewritePatterns(const Array<DFPatternCallback>& callbacks, const Expr& expr,
                               const IRModule& mod = IRModule());
/// Puts each match into a separate function that is called in its place. It gets `attrs`, and PartitionedFromPattern,
/// which lists the operators. `check(expr)` false leaves a match alone.
BATON_DLL Expr PartitionPattern(const DFPattern& pattern, const Expr& expr, const Map<String, Any>& attrs = {},
                                const PackedFunc& check = nullptr);

/// A variable of a name; "" is any.
BATON_DLL DFPattern IsVar(const String& name);
BATON_DLL DFPattern IsConstant();
BATON_DLL DFPattern IsWildcard();
BATON_DLL DFPattern IsExpr(const Expr& expr);
BATON_DLL DFPattern IsOp(const String& op_name);
/// A tuple; a null array is any number of fields.
BATON_DLL DFPattern IsTuple(const Array<DFPattern>& fields);
/// A tuple access; index -1 is any.
BATON_DLL DFPattern IsTupleGetItem(const DFPattern& tuple, int64_t index = -1);

}  // namespace baton::relay
