// SPDX-License-Identifier: Apache-2.0
// Expressions of TIR. Indices are int64 once a program is in canonical form (lower.h). Constructors check dtypes;
// helpers in tir/op.h fold.
#pragma once

#include <baton/ir/op.h>

namespace baton::tir {

// The interface of RefTo without its constructor from all fields: that one would win over the checking one.
#define BATON_TIR_REF(Name, Node)                             \
  Name() = default;                                           \
  explicit Name(ObjectPtr<Object> n) : RefTo(std::move(n)) {} \
  explicit Name(Node&& node) : RefTo(std::move(node)) {}

struct VarNode : Node<VarNode, PrimExprNode> {
  static constexpr const char* _type_key = "tir.Var";
  static constexpr bool _type_final = false;
  static constexpr uint32_t _type_child_slots = 1;
  static constexpr bool _type_is_var = true;
  String name_hint;
  Type type_annotation;
  static constexpr void Describe(auto& d) {
    d(F<&VarNode::name_hint>, "Name in text; identity is the object's.", runtime::kIgnored);
    d(F<&VarNode::type_annotation>, "PointerType of a buffer's data, or null.", kNullable);
  }
};
class BATON_DLL Var : public RefTo<VarNode, PrimExpr> {
 public:
  BATON_TIR_REF(Var, VarNode)
  explicit Var(String name, DataType dtype = DataType::Int(64));
  explicit Var(const char* name, DataType dtype = DataType::Int(64)) : Var(String(name), dtype) {}
  Var(String name, Type type);
};
/// A dimension: a variable that is not negative.
struct SizeVarNode : Node<SizeVarNode, VarNode> {
  static constexpr const char* _type_key = "tir.SizeVar";
  static constexpr bool _type_is_var = true;
  static constexpr void Describe(auto&) {}
};
class BATON_DLL SizeVar : public Var {
 public:
  BATON_DEFINE_OBJECT_REF_METHODS(SizeVar, Var, SizeVarNode)
  explicit SizeVar(String name, DataType dtype = DataType::Int(64));
};

/// A dimension that is not known: `?`. Two of them are equal as types, not as values.
struct AnyNode : Node<AnyNode, PrimExprNode> {
  static constexpr const char* _type_key = "tir.Any";
  static constexpr void Describe(auto&) {}
};
class BATON_DLL AnyDim : public RefTo<AnyNode, PrimExpr> {
 public:
  using RefTo::RefTo;
  AnyDim();
};

struct StringImmNode : Node<StringImmNode, PrimExprNode> {
  static constexpr const char* _type_key = "tir.StringImm";
  String value;
  static constexpr void Describe(auto& d) { d(F<&StringImmNode::value>, "The text."); }
};
class BATON_DLL StringImm : public RefTo<StringImmNode, PrimExpr> {
 public:
  BATON_TIR_REF(StringImm, StringImmNode)
  explicit StringImm(String value);
};

struct CastNode : Node<CastNode, PrimExprNode> {
  static constexpr const char* _type_key = "tir.Cast";
  PrimExpr value;
  static constexpr void Describe(auto& d) { d(F<&CastNode::value>, "What is converted to `dtype`, lane by lane."); }
};
class BATON_DLL Cast : public RefTo<CastNode, PrimExpr> {
 public:
  BATON_TIR_REF(Cast, CastNode)
  Cast(DataType dtype, PrimExpr value);
};

// Binary operations: operands of one dtype; comparisons give bool with their lanes.
#define BATON_TIR_BINARY(Name, Doc)                           \
  struct Name##Node : Node<Name##Node, PrimExprNode> {        \
    static constexpr const char* _type_key = "tir." #Name;    \
    static constexpr const char* _doc = Doc;                  \
    PrimExpr a;                                               \
    PrimExpr b;                                               \
    static constexpr void Describe(auto& d) {                 \
      d(F<&Name##Node::a>, "Left operand.");                  \
      d(F<&Name##Node::b>, "Right operand.");                 \
    }                                                         \
  };                                                          \
  class BATON_DLL Name : public RefTo<Name##Node, PrimExpr> { \
   public:                                                    \
    BATON_TIR_REF(Name, Name##Node)                           \
    Name(PrimExpr a, PrimExpr b);                             \
  };
BATON_TIR_BINARY(Add, "a + b")
BATON_TIR_BINARY(Sub, "a - b")
BATON_TIR_BINARY(Mul, "a * b")
BATON_TIR_BINARY(Div, "a / b; integers truncate")
BATON_TIR_BINARY(Mod, "remainder of Div")
BATON_TIR_BINARY(FloorDiv, "floor(a / b)")
BATON_TIR_BINARY(FloorMod, "a - floor(a / b) * b")
BATON_TIR_BINARY(Min, "the smaller; NaN if either is NaN")
BATON_TIR_BINARY(Max, "the larger; NaN if either is NaN")
BATON_TIR_BINARY(EQ, "a == b")
BATON_TIR_BINARY(NE, "a != b")
BATON_TIR_BINARY(LT, "a < b")
BATON_TIR_BINARY(LE, "a <= b")
BATON_TIR_BINARY(GT, "a > b")
BATON_TIR_BINARY(GE, "a >= b")
BATON_TIR_BINARY(And, "a and b")
BATON_TIR_BINARY(Or, "a or b")
#undef BATON_TIR_BINARY

struct NotNode : Node<NotNode, PrimExprNode> {
  static constexpr const char* _type_key = "tir.Not";
  PrimExpr a;
  static constexpr void Describe(auto& d) { d(F<&NotNode::a>, "Operand, bool."); }
};
class BATON_DLL Not : public RefTo<NotNode, PrimExpr> {
 public:
  BATON_TIR_REF(Not, NotNode)
  explicit Not(PrimExpr a);
};

/// Both values may be evaluated; for guarded access use the intrinsic tir.if_then_else.
struct SelectNode : Node<SelectNode, PrimExprNode> {
  static constexpr const char* _type_key = "tir.Select";
  PrimExpr condition;
  PrimExpr true_value;
  PrimExpr false_value;
  static constexpr void Describe(auto& d) {
    d(F<&SelectNode::condition>, "Bool, with the lanes of the values or one.");
    d(F<&SelectNode::true_value>, "Value where it is true.");
    d(F<&SelectNode::false_value>, "Value where it is false.");
  }
};
class BATON_DLL Select : public RefTo<SelectNode, PrimExpr> {
 public:
  BATON_TIR_REF(Select, SelectNode)
  Select(PrimExpr condition, PrimExpr true_value, PrimExpr false_value);
};

class Buffer;
/// Typed view on memory: data pointer, shape, and where it lives. Row-major unless it has strides. Strides and offsets
/// are for views that programs write; StorageFlatten takes them into the index, and parameters have none.
struct BufferNode : Node<BufferNode, Object> {
  static constexpr const char* _type_key = "tir.Buffer";
  static constexpr bool _type_is_value = false;
  Var data;
  DataType dtype;
  Array<PrimExpr> shape;
  String name;
  int64_t data_alignment = 64;
  Array<PrimExpr> strides;
  PrimExpr elem_offset;
  int64_t offset_factor = 1;
  int64_t buffer_type = 1;
  static constexpr void Describe(auto& d) {
    d(F<&BufferNode::data>, "Pointer to the elements; its PointerType has the storage scope.", runtime::kBinds);
    d(F<&BufferNode::dtype>, "Type of an element.");
    d(F<&BufferNode::shape>, "Dimensions, in elements; one after flattening.");
    d(F<&BufferNode::name>, "Name in text.", runtime::kIgnored);
    d(F<&BufferNode::data_alignment>, "Alignment of the data, in bytes.");
    d(F<&BufferNode::strides>, "Steps between elements, in elements; none: row-major, dense.");
    d(F<&BufferNode::elem_offset>, "Place of the first element, in elements; null: 0.", kNullable);
    d(F<&BufferNode::offset_factor>, "What `elem_offset` is a multiple of.");
    d(F<&BufferNode::buffer_type>, "1: as it is; 2: dimensions of 1 are broadcast.");
  }
  /// Whether the first element is at `data` and the others follow in row-major order.
  bool IsDense() const { return strides.empty() && !elem_offset.defined(); }
  /// "" or "global": memory; "local": registers and stack.
  String scope() const;
};
class BATON_DLL Buffer : public RefTo<BufferNode, ObjectRef> {
 public:
  using RefTo::RefTo;
  /// A new buffer with a new data variable.
  static Buffer Make(Array<PrimExpr> shape, DataType dtype, String name, String scope = "");
};

/// buffer[indices]. The last index may be a vector (Ramp): the value has its lanes.
struct BufferLoadNode : Node<BufferLoadNode, PrimExprNode> {
  static constexpr const char* _type_key = "tir.BufferLoad";
  Buffer buffer;
  Array<PrimExpr> indices;
  static constexpr void Describe(auto& d) {
    d(F<&BufferLoadNode::buffer>, "What is read.");
    d(F<&BufferLoadNode::indices>, "Where, in elements; one index a dimension.");
  }
};
class BATON_DLL BufferLoad : public RefTo<BufferLoadNode, PrimExpr> {
 public:
  BATON_TIR_REF(BufferLoad, BufferLoadNode)
  BufferLoad(Buffer buffer, Array<PrimExpr> indices);
};

/// Vector base, base + stride, ...
struct RampNode : Node<RampNode, PrimExprNode> {
  static constexpr const char* _type_key = "tir.Ramp";
  PrimExpr base;
  PrimExpr stride;
  int64_t lanes = 1;
  static constexpr void Describe(auto& d) {
    d(F<&RampNode::base>, "First element.");
    d(F<&RampNode::stride>, "Step.");
    d(F<&RampNode::lanes>, "Number of elements.");
  }
};
class BATON_DLL Ramp : public RefTo<RampNode, PrimExpr> {
 public:
  BATON_TIR_REF(Ramp, RampNode)
  Ramp(PrimExpr base, PrimExpr stride, int64_t lanes);
};
struct BroadcastNode : Node<BroadcastNode, PrimExprNode> {
  static constexpr const char* _type_key = "tir.Broadcast";
  PrimExpr value;
  int64_t lanes = 1;
  static constexpr void Describe(auto& d) {
    d(F<&BroadcastNode::value>, "Scalar that every lane holds.");
    d(F<&BroadcastNode::lanes>, "Number of lanes.");
  }
};
class BATON_DLL Broadcast : public RefTo<BroadcastNode, PrimExpr> {
 public:
  BATON_TIR_REF(Broadcast, BroadcastNode)
  Broadcast(PrimExpr value, int64_t lanes);
};

/// Concatenates vectors and picks lanes by constant number.
struct ShuffleNode : Node<ShuffleNode, PrimExprNode> {
  static constexpr const char* _type_key = "tir.Shuffle";
  Array<PrimExpr> vectors;
  Array<int64_t> indices;
  static constexpr void Describe(auto& d) {
    d(F<&ShuffleNode::vectors>, "One or two vectors of one dtype.");
    d(F<&ShuffleNode::indices>, "Lane of the concatenation for each lane of the result.");
  }
};
class BATON_DLL Shuffle : public RefTo<ShuffleNode, PrimExpr> {
 public:
  BATON_TIR_REF(Shuffle, ShuffleNode)
  Shuffle(Array<PrimExpr> vectors, Array<int64_t> indices);
};

struct LetNode : Node<LetNode, PrimExprNode> {
  static constexpr const char* _type_key = "tir.Let";
  Var var;
  PrimExpr value;
  PrimExpr body;
  static constexpr void Describe(auto& d) {
    d(F<&LetNode::var>, "Bound in body.", runtime::kBinds);
    d(F<&LetNode::value>, "Its value.");
    d(F<&LetNode::body>, "Scope.");
  }
};
class BATON_DLL Let : public RefTo<LetNode, PrimExpr> {
 public:
  BATON_TIR_REF(Let, LetNode)
  Let(Var var, PrimExpr value, PrimExpr body);
};

/// An intrinsic (Op "tir.exp", ...) or a function of the module (GlobalVar).
struct CallNode : Node<CallNode, PrimExprNode> {
  static constexpr const char* _type_key = "tir.Call";
  RelayExpr op;
  Array<PrimExpr> args;
  static constexpr void Describe(auto& d) {
    d(F<&CallNode::op>, "Op or GlobalVar.");
    d(F<&CallNode::args>, "Arguments.");
  }
};
class BATON_DLL Call : public RefTo<CallNode, PrimExpr> {
 public:
  BATON_TIR_REF(Call, CallNode)
  Call(DataType dtype, RelayExpr op, Array<PrimExpr> args);
};

/// Combiner of a reduction: (a, b) -> result, with its identity element; several values at once for argmax.
struct CommReducerNode : Node<CommReducerNode, Object> {
  static constexpr const char* _type_key = "tir.CommReducer";
  Array<Var> lhs;
  Array<Var> rhs;
  Array<PrimExpr> result;
  Array<PrimExpr> identity_element;
  static constexpr void Describe(auto& d) {
    d(F<&CommReducerNode::lhs>, "Accumulated so far.", runtime::kBinds);
    d(F<&CommReducerNode::rhs>, "New value.", runtime::kBinds);
    d(F<&CommReducerNode::result>, "Combination.");
    d(F<&CommReducerNode::identity_element>, "Start value.");
  }
};
class CommReducer : public RefTo<CommReducerNode, ObjectRef> {
 public:
  using RefTo::RefTo;
};

enum class IterVarType : int32_t {
  kDataPar = 0,
  kCommReduce = 2,
  kOrdered = 3,
  kVectorized = 6,
  kParallelized = 7,
  kUnrolled = 5
};
/// A loop variable of a tensor expression, with its domain.
struct IterVarNode : Node<IterVarNode, Object> {
  static constexpr const char* _type_key = "tir.IterVar";
  static constexpr bool _type_is_value = false;
  Range dom;
  Var var;
  IterVarType iter_type = IterVarType::kDataPar;
  static constexpr void Describe(auto& d) {
    d(F<&IterVarNode::dom>, "Domain; null: not known, as of an axis of threads.", kNullable);
    d(F<&IterVarNode::var>, "The variable.", runtime::kBinds);
    d(F<&IterVarNode::iter_type>, "0 data parallel, 2 reduction.");
  }
};
class IterVar : public RefTo<IterVarNode, ObjectRef> {
 public:
  using RefTo::RefTo;
};

/// A reduction over `axis`; only at the root of a tensor expression's body.
struct ReduceNode : Node<ReduceNode, PrimExprNode> {
  static constexpr const char* _type_key = "tir.Reduce";
  CommReducer combiner;
  Array<IterVar> axis;
  Array<PrimExpr> source;
  PrimExpr condition;
  int64_t value_index = 0;
  static constexpr void Describe(auto& d) {
    d(F<&ReduceNode::combiner>, "How two values become one.");
    d(F<&ReduceNode::axis>, "What it runs over.");
    d(F<&ReduceNode::source>, "The values.");
    d(F<&ReduceNode::condition>, "Values where it is false are left out; null is true.", kNullable);
    d(F<&ReduceNode::value_index>, "Which of several results this is.");
  }
};
class BATON_DLL Reduce : public RefTo<ReduceNode, PrimExpr> {
 public:
  using RefTo::RefTo;
};

/// A use of a tensor expression's output as a value: tensor(indices). Replaced by BufferLoad when lowered.
struct ProducerLoadNode : Node<ProducerLoadNode, PrimExprNode> {
  static constexpr const char* _type_key = "tir.ProducerLoad";
  ObjectRef producer;
  Array<PrimExpr> indices;
  static constexpr void Describe(auto& d) {
    d(F<&ProducerLoadNode::producer>, "A te.Tensor.");
    d(F<&ProducerLoadNode::indices>, "Where, in elements.");
  }
};
class BATON_DLL ProducerLoad : public RefTo<ProducerLoadNode, PrimExpr> {
 public:
  using RefTo::RefTo;
};

}  // namespace baton::tir
