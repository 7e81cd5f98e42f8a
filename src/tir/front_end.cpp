// SPDX-License-Identifier: Apache-2.0
// Constructors with checks and operators that fold, for front ends. Intrinsics are registered by their rows.
#include <baton/runtime/registry.h>
#include <baton/tir/functor.h>
#include <baton/tir/op.h>
#include <baton/tir/stmt.h>

#include <string>
#include <unordered_set>

namespace baton::tir {
namespace {

void Register(const char* name, PrimExpr (*f)(PrimExpr, PrimExpr)) {
  runtime::Registry::Register(std::string("tir.op.") + name).set_body_typed(f);
}
void Register(const char* name, PrimExpr (*f)(PrimExpr)) {
  runtime::Registry::Register(std::string("tir.op.") + name).set_body_typed(f);
}
template <class N>
void RegisterBinary(const char* name) {
  runtime::Registry::Register(std::string("tir.") + name).set_body_typed([](PrimExpr a, PrimExpr b) {
    return N(a, b);
  });
}

const bool registered_front_end = [] {
  Register("add", [](PrimExpr a, PrimExpr b) { return a + b; });
  Register("sub", [](PrimExpr a, PrimExpr b) { return a - b; });
  Register("mul", [](PrimExpr a, PrimExpr b) { return a * b; });
  Register("div", [](PrimExpr a, PrimExpr b) { return a / b; });
  Register("lt", [](PrimExpr a, PrimExpr b) { return a < b; });
  Register("le", [](PrimExpr a, PrimExpr b) { return a <= b; });
  Register("gt", [](PrimExpr a, PrimExpr b) { return a > b; });
  Register("ge", [](PrimExpr a, PrimExpr b) { return a >= b; });
  Register("logical_and", [](PrimExpr a, PrimExpr b) { return a && b; });
  Register("logical_or", [](PrimExpr a, PrimExpr b) { return a || b; });
  Register("logical_not", [](PrimExpr a) { return !a; });
  Register("neg", [](PrimExpr a) { return -a; });
#define BATON_REGISTER_OP(name) Register(#name, &baton::name);
  BATON_REGISTER_OP(equal)
  BATON_REGISTER_OP(not_equal)
  BATON_REGISTER_OP(truncdiv)
  BATON_REGISTER_OP(truncmod)
  BATON_REGISTER_OP(floordiv)
  BATON_REGISTER_OP(floormod)
  BATON_REGISTER_OP(ceildiv)
  BATON_REGISTER_OP(min)
  BATON_REGISTER_OP(max)
#undef BATON_REGISTER_OP
  RegisterBinary<Add>("Add");
  RegisterBinary<Sub>("Sub");
  RegisterBinary<Mul>("Mul");
  RegisterBinary<Div>("Div");
  RegisterBinary<Mod>("Mod");
  RegisterBinary<FloorDiv>("FloorDiv");
  RegisterBinary<FloorMod>("FloorMod");
  RegisterBinary<Min>("Min");
  RegisterBinary<Max>("Max");
  RegisterBinary<EQ>("EQ");
  RegisterBinary<NE>("NE");
  RegisterBinary<LT>("LT");
  RegisterBinary<LE>("LE");
  RegisterBinary<GT>("GT");
  RegisterBinary<GE>("GE");
  RegisterBinary<And>("And");
  RegisterBinary<Or>("Or");
  return true;
}();

BATON_REGISTER_GLOBAL("tir.Not").set_body_typed([](PrimExpr a) { return Not(a); });
BATON_REGISTER_GLOBAL("tir.IntImm").set_body_typed([](DataType t, int64_t v) { return IntImm(t, v); });
BATON_REGISTER_GLOBAL("tir.FloatImm").set_body_typed([](DataType t, double v) { return FloatImm(t, v); });
/// A literal of a dtype; an int keeps all its 64 bits.
BATON_REGISTER_GLOBAL("tir.const").set_body([](runtime::Args args, runtime::RetValue* rv) {
  DataType t = args[1].As<DataType>();
  bool whole = args[0].type_code() != kBatonFloat && !t.is_floating();
  *rv = Any(whole ? make_int(t, args[0].As<int64_t>()) : make_const(t, args[0].As<double>()));
});
/// A variable of a dtype or, for pointers, of a type.
BATON_REGISTER_GLOBAL("tir.Var").set_body([](runtime::Args args, runtime::RetValue* rv) {
  String name = args[0].As<String>();
  if (args[1].type_code() == kBatonObject && args[1].Is<Type>())
    *rv = Any(Var(name, args[1].As<Type>()));
  else
    *rv = Any(Var(name, args[1].As<DataType>()));
});
BATON_REGISTER_GLOBAL("tir.SizeVar").set_body_typed([](String name, DataType t) { return SizeVar(name, t); });
BATON_REGISTER_GLOBAL("tir.StringImm").set_body_typed([](String s) { return StringImm(s); });
BATON_REGISTER_GLOBAL("tir.Cast").set_body_typed([](DataType t, PrimExpr v) { return Cast(t, v); });
BATON_REGISTER_GLOBAL("tir.op.cast").set_body_typed([](DataType t, PrimExpr v) { return cast(t, v); });
BATON_REGISTER_GLOBAL("tir.op.reinterpret").set_body_typed([](DataType t, PrimExpr v) { return reinterpret(t, v); });
BATON_REGISTER_GLOBAL("tir.op.if_then_else").set_body_typed([](PrimExpr c, PrimExpr t, PrimExpr f) {
  return if_then_else(c, t, f);
});
BATON_REGISTER_GLOBAL("tir.op.min_value").set_body_typed([](DataType t) { return min_value(t); });
BATON_REGISTER_GLOBAL("tir.op.max_value").set_body_typed([](DataType t) { return max_value(t); });
BATON_REGISTER_GLOBAL("tir.Select").set_body_typed([](PrimExpr c, PrimExpr t, PrimExpr f) { return Select(c, t, f); });
BATON_REGISTER_GLOBAL("tir.Ramp").set_body_typed([](PrimExpr b, PrimExpr s, int64_t n) { return Ramp(b, s, n); });
BATON_REGISTER_GLOBAL("tir.Broadcast").set_body_typed([](PrimExpr v, int64_t n) { return Broadcast(v, n); });
BATON_REGISTER_GLOBAL("tir.Shuffle").set_body_typed([](Array<PrimExpr> v, Array<int64_t> i) { return Shuffle(v, i); });
BATON_REGISTER_GLOBAL("tir.Let").set_body_typed([](Var x, PrimExpr v, PrimExpr b) { return Let(x, v, b); });
BATON_REGISTER_GLOBAL("tir.Buffer").set_body_typed([](Array<PrimExpr> shape, DataType t, String name, String scope) {
  return Buffer::Make(shape, t, name, scope);
});
BATON_REGISTER_GLOBAL("tir.BufferScope").set_body_typed([](Buffer b) { return String(b->scope()); });
BATON_REGISTER_GLOBAL("tir.BufferLoad").set_body_typed([](Buffer b, Array<PrimExpr> i) { return BufferLoad(b, i); });
/// A call of an intrinsic by name or of a function of the module.
BATON_REGISTER_GLOBAL("tir.Call").set_body([](runtime::Args args, runtime::RetValue* rv) {
  DataType t = args[0].As<DataType>();
  auto operands = args[2].As<Array<PrimExpr>>();
  if (runtime::ValueTraits<std::string>::Is(args[1].raw())) {
    *rv = Any(Call(t, Op::Get(args[1].As<std::string>()), operands));
  } else {
    *rv = Any(Call(t, args[1].As<RelayExpr>(), operands));
  }
});
BATON_REGISTER_GLOBAL("tir.SeqStmt").set_body_typed([](Array<Stmt> seq) { return SeqStmt::Flatten(seq); });
BATON_REGISTER_GLOBAL("tir.PrimFunc")
    .set_body_typed([](Array<Var> params, Stmt body, Map<Var, Buffer> buffers, DictAttrs attrs) {
      return PrimFunc(params, body, buffers, attrs);
    });
/// Rewrites by two functions: the result of `before(node)` replaces the node and is not visited further; `after(node)`
/// gets the rebuilt node. Either function may be null, and may return null for no change.
class CallbackTransform : public StmtExprMutator {
 public:
  CallbackTransform(runtime::PackedFunc before, runtime::PackedFunc after, const Array<String>& only)
      : before_(std::move(before)), after_(std::move(after)) {
    for (const String& key : only) only_.insert(key.str());
  }
  Stmt VisitStmt(const Stmt& s) override {
    return Around<Stmt>(s, [&] { return StmtExprMutator::VisitStmt(s); });
  }
  PrimExpr VisitExpr(const PrimExpr& e) override {
    return Around<PrimExpr>(e, [&] { return StmtExprMutator::VisitExpr(e); });
  }

 private:
  template <class T, class F>
  T Around(const T& node, F inside) {
    if (!only_.empty() && !only_.count(node->GetTypeKey())) return inside();
    if (before_ != nullptr) {
      if (runtime::Any made = before_(node); !made.is_null()) return made.As<T>();
    }
    T out = inside();
    if (after_ != nullptr) {
      if (runtime::Any made = after_(out); !made.is_null()) return made.As<T>();
    }
    return out;
  }
  runtime::PackedFunc before_, after_;
  std::unordered_set<std::string> only_;
};
BATON_REGISTER_GLOBAL("tir.IRTransform")
    .set_body_typed([](Stmt s, runtime::PackedFunc before, runtime::PackedFunc after, Array<String> only) {
      return CallbackTransform(before, after, only).VisitStmt(s);
    });
BATON_REGISTER_GLOBAL("tir.Substitute").set_body([](runtime::Args args, runtime::RetValue* rv) {
  auto map = args[1].As<Map<Var, PrimExpr>>();
  if (args[0].IsObjectRef<Stmt>())
    *rv = Any(Substitute(args[0].As<Stmt>(), map));
  else
    *rv = Any(Substitute(args[0].As<PrimExpr>(), map));
});
BATON_REGISTER_GLOBAL("tir.analysis.expr_deep_equal").set_body_typed([](PrimExpr a, PrimExpr b) {
  return ExprDeepEqual(a, b);
});

}  // namespace
}  // namespace baton::tir
