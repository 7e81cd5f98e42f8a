// SPDX-License-Identifier: Apache-2.0
// Programs and operators that the tests of the IR share.
#pragma once

#include <baton/relay/functor.h>
#include <baton/relay/op.h>

#include <string>

#include "../support/on_stack.h"

namespace sample {

using namespace baton;         // NOLINT
using namespace baton::relay;  // NOLINT

inline TensorType F32(std::initializer_list<int64_t> shape) {
  Array<PrimExpr> dims;
  for (int64_t d : shape) dims.push_back(PrimExpr(d));
  return TensorType(dims, DataType::Float(32));
}

struct ScaleAttrs : AttrsNode<ScaleAttrs> {
  static constexpr const char* _type_key = "test.attrs.ScaleAttrs";
  double factor = 1.0;
  int64_t axis = -1;
  bool exact = false;
  Array<int64_t> pads = {0, 0};
  String mode = "plain";
  DataType out_dtype;
  static constexpr void Describe(auto& d) {
    d(F<&ScaleAttrs::factor>, "Factor.");
    d(F<&ScaleAttrs::axis>, "Axis.", AtLeast(-8));
    d(F<&ScaleAttrs::exact>, "Whether exact.");
    d(F<&ScaleAttrs::pads>, "Pads.", AtLeast(0));
    d(F<&ScaleAttrs::mode>, "Mode.");
    d(F<&ScaleAttrs::out_dtype>, "Dtype of the result; void: as the input.");
  }
};

/// (data) -> (data, data)
inline bool SplitRel(const Array<Type>& types, int, const Attrs&, TypeReporter& r) {
  if (!AsTensor(types[0])) return false;
  r.Assign(types[1], TupleType(Array<Type>{types[0], types[0]}));
  return true;
}
/// Refuses what is not float32.
inline bool FloatRel(const Array<Type>& types, int, const Attrs&, TypeReporter& r) {
  const auto* t = AsTensor(types[0]);
  if (!t) return false;
  if (!(t->dtype == DataType::Float(32)))
    throw CompileError("[R1] `data` has dtype " + DataType2String(t->dtype) + ", must be float32");
  r.Assign(types.back(), types[0]);
  return true;
}

inline const Op& NegOp() {
  static const Op op =
      DefineOp({.name = "test.neg", .doc = "-x", .inputs = {{"data", "Any."}}, .type_rel = IdentityRel});
  return op;
}
inline const Op& AddOp() {
  static const Op op = DefineOp(
      {.name = "test.add", .doc = "a + b", .inputs = {{"lhs", "Any."}, {"rhs", "Any."}}, .type_rel = BroadcastRel});
  return op;
}
inline const Op& LessOp() {
  static const Op op = DefineOp({.name = "test.less",
                                 .doc = "a < b",
                                 .inputs = {{"lhs", "Any."}, {"rhs", "Any."}},
                                 .type_rel = BroadcastCompRel});
  return op;
}
inline const Op& SplitOp() {
  static const Op op =
      DefineOp({.name = "test.split", .doc = "(x, x)", .inputs = {{"data", "Any."}}, .type_rel = SplitRel});
  return op;
}
inline const Op& ScaleOp() {
  static const Op op = DefineOp({.name = "test.scale",
                                 .doc = "x * factor",
                                 .inputs = {{"data", "R1: float32."}},
                                 .attrs = TypeOf<ScaleAttrs>,
                                 .type_rel = FloatRel});
  return op;
}
inline void Register() { NegOp(), AddOp(), LessOp(), SplitOp(), ScaleOp(); }

inline Expr Neg(Expr x) { return Call(Expr(NegOp()), Array<Expr>{x}, Attrs(), Array<Type>()); }
inline Expr Add(Expr a, Expr b) { return Call(Expr(AddOp()), Array<Expr>{a, b}, Attrs(), Array<Type>()); }
inline Expr Less(Expr a, Expr b) { return Call(Expr(LessOp()), Array<Expr>{a, b}, Attrs(), Array<Type>()); }
inline Expr Invoke(Expr f, Array<Expr> args) { return Call(f, args, Attrs(), Array<Type>()); }
inline Expr Scalar(float v) { return Constant(NDArray::Scalar(v, DataType::Float(32))); }
inline Expr Scale(Expr x, double factor) {
  auto n = make_object<ScaleAttrs>();
  TypeOf<ScaleAttrs>();
  n->factor = factor;
  return Call(Expr(ScaleOp()), Array<Expr>{x}, Attrs(ObjectPtr<Object>(n)), Array<Type>());
}

/// neg(neg(...neg(x)))
inline Expr CallChain(Expr x, int n) {
  for (int i = 0; i < n; ++i) x = Neg(x);
  return x;
}
/// let %v0 = neg(%x); let %v1 = neg(%v0); ...
inline Expr LetChain(Expr x, int n) {
  std::vector<Var> vars;
  for (int i = 0; i < n; ++i) vars.push_back(Var("v" + std::to_string(i)));
  Expr body = vars.back();
  for (int i = n; i-- > 0;) body = Let(vars[i], Neg(i ? Expr(vars[i - 1]) : x), body);
  return body;
}
/// if (c) { if (c) { ... } else { x } } else { x }
inline Expr IfChain(Expr c, Expr x, int n) {
  Expr e = x;
  for (int i = 0; i < n; ++i) e = If(c, e, x);
  return e;
}
inline Expr TupleChain(Expr x, int n) {
  for (int i = 0; i < n; ++i) x = TupleGetItem(Tuple(Array<Expr>{x}), int64_t{0});
  return x;
}

using on_stack::kDeep;
using on_stack::OnStack;

}  // namespace sample
