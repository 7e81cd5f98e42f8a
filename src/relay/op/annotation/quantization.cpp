// SPDX-License-Identifier: Apache-2.0
// Rounding as integers round, by which relay.quantize marks programs.
#include <baton/relay/op/make.h>
#include <baton/relay/op/transform.h>

#include "../common.h"

namespace baton::relay {
namespace {

/// `kind` of a value that stays as it is.
constexpr int64_t kKeepsFloats = 0;

struct SimulatedQuantizeAttrs : AttrsNode<SimulatedQuantizeAttrs> {
  static constexpr auto _type_key = "relay.attrs.QuantizeAnnotationAttrs";
  int64_t kind = 1;
  bool sign = true;
  String rounding = "round";
  static constexpr void Describe(auto& d) {
    d(F<&SimulatedQuantizeAttrs::kind>,
      "What is quantized, QAnnotateKind: 0 nothing, 1 an input, 2 a weight, 3 an activation. R3: one of these.");
    d(F<&SimulatedQuantizeAttrs::sign>, "Whether the integers have a sign.");
    d(F<&SimulatedQuantizeAttrs::rounding>, "How numbers become whole. R4: \"round\", halves to the even number.");
  }
};
Type SimulatedQuantizeType(const SimulatedQuantizeAttrs& a, const TypeArgs& in) {
  in.Floating(0, "R1");
  for (int i : {1, 2, 3}) {
    in.Floating(i, "R2");
    if (in.ndim(i) != 0) in.Fail("R2", in.Show(i) + ", where a scalar is wanted");
  }
  if (a.kind < 0 || a.kind > 3) in.Fail("R3", "kind is " + Str(a.kind) + "; it is 0, 1, 2 or 3");
  if (a.rounding != "round") in.Fail("R4", "rounding is \"" + a.rounding.str() + "\"; it is \"round\"");
  return in.type(0);
}
Expr DecomposeSimulatedQuantize(const Call& call, const Array<Expr>& args) {
  if (AttrsAs<SimulatedQuantizeAttrs>(call->attrs).kind == kKeepsFloats) return args[0];
  const DataType t = AsTensor(call->args[0]->checked_type())->dtype;
  auto scalar = [&](int i) {
    return AsTensor(call->args[i]->checked_type())->dtype == t ? args[i] : Expr(Cast(args[i], t));
  };
  Expr steps = MakeCall(op::round, {Divide(args[0], scalar(1))});
  return Multiply(Maximum(Minimum(steps, scalar(3)), scalar(2)), scalar(1));
}

constexpr auto kFloatScalar = "R2: floating, a scalar.";

const Op simulated_quantize = DefineOp({
    .name = "relay.op.annotation.simulated_quantize",
    .doc =
        "round(data / dom_scale), at least clip_min and at most clip_max, times dom_scale: what integers make of data.",
    .inputs = {{"data", "Any shape. R1: floating dtype."},
               {"dom_scale", kFloatScalar},
               {"clip_min", kFloatScalar},
               {"clip_max", kFloatScalar}},
    .output = "Shape and dtype of `data`.",
    .attrs = TypeOf<SimulatedQuantizeAttrs>,
    .type_rel = Rel<"relay.op.annotation.simulated_quantize", SimulatedQuantizeType>,
    .decompose = DecomposeSimulatedQuantize,
    .pattern = OpPattern::kOpaque,
    .source = "Relay",
    .support_level = 11,
});

}  // namespace
}  // namespace baton::relay
