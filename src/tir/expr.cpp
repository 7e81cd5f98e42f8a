// SPDX-License-Identifier: Apache-2.0
// Constructors with their checks, and the tables of the classes.
#include <baton/tir/op.h>
#include <baton/tir/stmt.h>
#include <fmt/format.h>

namespace baton::tir {
namespace {
const RegisterNodes<VarNode, SizeVarNode, AnyNode, StringImmNode, CastNode, AddNode, SubNode, MulNode, DivNode, ModNode,
                    FloorDivNode, FloorModNode, MinNode, MaxNode, EQNode, NENode, LTNode, LENode, GTNode, GENode,
                    AndNode, OrNode, NotNode, SelectNode, BufferNode, BufferLoadNode, RampNode, BroadcastNode,
                    ShuffleNode, LetNode, CallNode, CommReducerNode, IterVarNode, ReduceNode, ProducerLoadNode>
    registered_exprs;
const RegisterNodes<StmtNode, BufferStoreNode, AllocateNode, ForNode, WhileNode, IfThenElseNode, SeqStmtNode,
                    EvaluateNode, LetStmtNode, AttrStmtNode, AssertStmtNode, PrimFuncNode>
    registered_stmts;

[[noreturn]] void Fail(const std::string& message) { throw runtime::TypeError(message); }
std::string Name(const PrimExpr& e) { return DataType2String(e.dtype()); }
void Defined(const PrimExpr& e, const char* what) {
  if (!e.defined()) Fail(fmt::format("{} is null", what));
}
/// Nodes get their fields by name, so that constructors need not repeat those of the base.
template <class N>
N Typed(DataType t) {
  N n;
  n.dtype = t;
  return n;
}
template <class N>
ObjectPtr<Object> Binary(const char* name, PrimExpr a, PrimExpr b, bool compare, bool logical) {
  Defined(a, name), Defined(b, name);
  if (!(a.dtype() == b.dtype())) {
    Fail(fmt::format("tir.{} takes operands of one dtype, got {} and {}; cast one of them", name, Name(a), Name(b)));
  }
  if (logical && !a.dtype().is_bool()) Fail(fmt::format("tir.{} takes bool, got {}", name, Name(a)));
  N n = Typed<N>(compare ? DataType::Bool(a.dtype().lanes()) : a.dtype());
  n.a = std::move(a), n.b = std::move(b);
  return make_object<N>(std::move(n));
}
bool IsWhole(DataType t) { return (t.is_int() || t.is_uint()) && !t.is_bool(); }
void CheckIndices(const Buffer& b, const Array<PrimExpr>& indices, const char* what) {
  if (!b.defined()) Fail(fmt::format("{} without a buffer", what));
  if (indices.size() != b->shape.size()) {
    Fail(fmt::format("{} of `{}` has {} indices, the buffer has {} dimensions", what, b->name.str(), indices.size(),
                     b->shape.size()));
  }
  for (const PrimExpr& i : indices) {
    Defined(i, "index");
    if (!IsWhole(i.dtype()))
      Fail(fmt::format("an index of `{}` has dtype {}; indices are integers", b->name.str(), Name(i)));
  }
}
}  // namespace

Var::Var(String name, DataType dtype) {
  VarNode n = Typed<VarNode>(dtype);
  n.name_hint = std::move(name);
  data_ = make_object<VarNode>(std::move(n));
}
Var::Var(String name, Type type) {
  VarNode n = Typed<VarNode>(DataType::Handle());
  if (const auto* p = type.as<PrimTypeNode>()) n.dtype = p->dtype;
  n.name_hint = std::move(name);
  n.type_annotation = std::move(type);
  data_ = make_object<VarNode>(std::move(n));
}
SizeVar::SizeVar(String name, DataType dtype) {
  SizeVarNode n = Typed<SizeVarNode>(dtype);
  n.name_hint = std::move(name);
  data_ = make_object<SizeVarNode>(std::move(n));
}
AnyDim::AnyDim() { data_ = make_object<AnyNode>(Typed<AnyNode>(DataType::Int(64))); }
StringImm::StringImm(String value) {
  StringImmNode n = Typed<StringImmNode>(DataType::Handle());
  n.value = std::move(value);
  data_ = make_object<StringImmNode>(std::move(n));
}
Cast::Cast(DataType dtype, PrimExpr value) {
  Defined(value, "operand of tir.Cast");
  if (dtype.lanes() != value.dtype().lanes()) {
    Fail(fmt::format("tir.Cast from {} to {} changes the number of lanes", Name(value), DataType2String(dtype)));
  }
  CastNode n = Typed<CastNode>(dtype);
  n.value = std::move(value);
  data_ = make_object<CastNode>(std::move(n));
}
#define BATON_TIR_BINARY_CTOR(Name, compare, logical)                                \
  Name::Name(PrimExpr a, PrimExpr b) {                                               \
    data_ = Binary<Name##Node>(#Name, std::move(a), std::move(b), compare, logical); \
  }
BATON_TIR_BINARY_CTOR(Add, false, false)
BATON_TIR_BINARY_CTOR(Sub, false, false)
BATON_TIR_BINARY_CTOR(Mul, false, false)
BATON_TIR_BINARY_CTOR(Div, false, false)
BATON_TIR_BINARY_CTOR(Mod, false, false)
BATON_TIR_BINARY_CTOR(FloorDiv, false, false)
BATON_TIR_BINARY_CTOR(FloorMod, false, false)
BATON_TIR_BINARY_CTOR(Min, false, false)
BATON_TIR_BINARY_CTOR(Max, false, false)
BATON_TIR_BINARY_CTOR(EQ, true, false)
BATON_TIR_BINARY_CTOR(NE, true, false)
BATON_TIR_BINARY_CTOR(LT, true, false)
BATON_TIR_BINARY_CTOR(LE, true, false)
BATON_TIR_BINARY_CTOR(GT, true, false)
BATON_TIR_BINARY_CTOR(GE, true, false)
BATON_TIR_BINARY_CTOR(And, false, true)
BATON_TIR_BINARY_CTOR(Or, false, true)
Not::Not(PrimExpr a) {
  Defined(a, "operand of tir.Not");
  if (!a.dtype().is_bool()) Fail(fmt::format("tir.Not takes bool, got {}", Name(a)));
  NotNode n = Typed<NotNode>(a.dtype());
  n.a = std::move(a);
  data_ = make_object<NotNode>(std::move(n));
}
Select::Select(PrimExpr condition, PrimExpr true_value, PrimExpr false_value) {
  Defined(condition, "condition of tir.Select"), Defined(true_value, "value of tir.Select"),
      Defined(false_value, "value of tir.Select");
  if (!condition.dtype().is_bool())
    Fail(fmt::format("the condition of tir.Select has dtype {}, not bool", Name(condition)));
  if (!(true_value.dtype() == false_value.dtype())) {
    Fail(fmt::format("the values of tir.Select have dtypes {} and {}", Name(true_value), Name(false_value)));
  }
  int cl = condition.dtype().lanes();
  if (cl != 1 && cl != true_value.dtype().lanes()) {
    Fail(fmt::format("the condition of tir.Select has {} lanes, its values {}", cl, true_value.dtype().lanes()));
  }
  SelectNode n = Typed<SelectNode>(true_value.dtype());
  n.condition = std::move(condition), n.true_value = std::move(true_value), n.false_value = std::move(false_value);
  data_ = make_object<SelectNode>(std::move(n));
}
namespace {
String BufferScope(const BufferNode* b) {
  const auto* p = b->data->type_annotation.as<PointerTypeNode>();
  return p ? p->storage_scope : String("");
}
}  // namespace
String BufferNode::scope() const { return BufferScope(this); }
Buffer Buffer::Make(Array<PrimExpr> shape, DataType dtype, String name, String scope) {
  for (const PrimExpr& d : shape) {
    Defined(d, "dimension of a buffer");
    if (!IsWhole(d.dtype()) || !d.dtype().is_scalar())
      Fail(fmt::format("a dimension of `{}` has dtype {}; dimensions are integers", name.str(), Name(d)));
  }
  PointerTypeNode p;
  p.element_type = PrimType(dtype);
  p.storage_scope = std::move(scope);
  BufferNode n;
  n.data = Var(name, PointerType(std::move(p)));
  n.dtype = dtype;
  n.shape = std::move(shape);
  n.name = std::move(name);
  return Buffer(std::move(n));
}
BufferLoad::BufferLoad(Buffer buffer, Array<PrimExpr> indices) {
  CheckIndices(buffer, indices, "a load");
  int lanes = indices.empty() ? 1 : indices.back().dtype().lanes();
  BufferLoadNode n = Typed<BufferLoadNode>(buffer->dtype.with_lanes(buffer->dtype.lanes() * lanes));
  n.buffer = std::move(buffer), n.indices = std::move(indices);
  data_ = make_object<BufferLoadNode>(std::move(n));
}
Ramp::Ramp(PrimExpr base, PrimExpr stride, int64_t lanes) {
  Defined(base, "base of tir.Ramp"), Defined(stride, "stride of tir.Ramp");
  if (!(base.dtype() == stride.dtype()) || !base.dtype().is_scalar()) {
    Fail(fmt::format("tir.Ramp takes scalars of one dtype, got {} and {}", Name(base), Name(stride)));
  }
  if (lanes < 1 || lanes > 4096) Fail(fmt::format("tir.Ramp with {} lanes; 1 to 4096 can be had", lanes));
  RampNode n = Typed<RampNode>(base.dtype().with_lanes(static_cast<int>(lanes)));
  n.base = std::move(base), n.stride = std::move(stride), n.lanes = lanes;
  data_ = make_object<RampNode>(std::move(n));
}
Broadcast::Broadcast(PrimExpr value, int64_t lanes) {
  Defined(value, "operand of tir.Broadcast");
  if (!value.dtype().is_scalar()) Fail(fmt::format("tir.Broadcast takes a scalar, got {}", Name(value)));
  if (lanes < 1 || lanes > 4096) Fail(fmt::format("tir.Broadcast with {} lanes; 1 to 4096 can be had", lanes));
  BroadcastNode n = Typed<BroadcastNode>(value.dtype().with_lanes(static_cast<int>(lanes)));
  n.value = std::move(value), n.lanes = lanes;
  data_ = make_object<BroadcastNode>(std::move(n));
}
Shuffle::Shuffle(Array<PrimExpr> vectors, Array<int64_t> indices) {
  if (vectors.empty() || vectors.size() > 2 || indices.empty())
    Fail("tir.Shuffle takes one or two vectors and at least one lane number");
  int64_t total = 0;
  for (const PrimExpr& v : vectors) {
    Defined(v, "vector of tir.Shuffle");
    if (!(v.dtype() == vectors[0].dtype())) Fail("the vectors of tir.Shuffle have different dtypes");
    total += v.dtype().lanes();
  }
  for (int64_t i : indices) {
    if (i < 0 || i >= total) Fail(fmt::format("lane {} of tir.Shuffle is outside [0, {})", i, total));
  }
  ShuffleNode n = Typed<ShuffleNode>(vectors[0].dtype().with_lanes(static_cast<int>(indices.size())));
  n.vectors = std::move(vectors), n.indices = std::move(indices);
  data_ = make_object<ShuffleNode>(std::move(n));
}
Let::Let(Var var, PrimExpr value, PrimExpr body) {
  Defined(value, "value of tir.Let"), Defined(body, "body of tir.Let");
  if (!(var.dtype() == value.dtype()))
    Fail(fmt::format("tir.Let binds `{}` of {} to a value of {}", var->name_hint.str(), Name(var), Name(value)));
  LetNode n = Typed<LetNode>(body.dtype());
  n.var = std::move(var), n.value = std::move(value), n.body = std::move(body);
  data_ = make_object<LetNode>(std::move(n));
}
Call::Call(DataType dtype, RelayExpr op, Array<PrimExpr> args) {
  for (const PrimExpr& a : args) Defined(a, "argument of tir.Call");
  CallNode n = Typed<CallNode>(dtype);
  n.op = std::move(op), n.args = std::move(args);
  data_ = make_object<CallNode>(std::move(n));
}

Stmt SeqStmt::Flatten(const Array<Stmt>& seq) {
  Array<Stmt> out;
  std::vector<Stmt> todo(seq.begin(), seq.end());
  for (size_t i = 0, j = todo.size(); i < j / 2; ++i) std::swap(todo[i], todo[j - 1 - i]);
  while (!todo.empty()) {
    Stmt s = todo.back();
    todo.pop_back();
    if (!s.defined()) continue;
    if (const auto* q = s.as<SeqStmtNode>()) {
      for (int64_t i = static_cast<int64_t>(q->seq.size()); i-- > 0;) todo.push_back(q->seq[i]);
    } else {
      out.push_back(s);
    }
  }
  if (out.size() == 1) return out[0];
  SeqStmtNode n;
  n.seq = out;
  return SeqStmt(std::move(n));
}

PrimFunc::PrimFunc(Array<Var> params, Stmt body, Map<Var, Buffer> buffer_map, DictAttrs attrs) {
  PrimFuncNode n;
  n.params = std::move(params), n.body = std::move(body), n.buffer_map = std::move(buffer_map);
  n.attrs = std::move(attrs);
  data_ = make_object<PrimFuncNode>(std::move(n));
}

}  // namespace baton::tir
