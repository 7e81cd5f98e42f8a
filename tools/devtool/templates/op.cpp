// SPDX-License-Identifier: Apache-2.0
#include <baton/relay/op.h>
#include <baton/relay/op/make.h>
#include <baton/tir/op.h>

namespace baton::relay {
namespace {

struct @Camel@Attrs : AttrsNode<@Camel@Attrs> {
  static constexpr const char* _type_key = "relay.attrs.@Camel@Attrs";
  double factor = 2.0;
  static constexpr void Describe(auto& d) {
    d(F<&@Camel@Attrs::factor>, "The factor of each element. Unitless, any sign.");
  }
};

te::Tensor Lower@Camel@(const @Camel@Attrs& attrs, const Array<te::Tensor>& in) {
  const te::Tensor x = in[0];
  return te::Compute(x.shape(), [&](te::Indices i) { return x(i) * te::Const(attrs.factor, x.dtype()); });
}

/// The operator is linear: the adjoint of its operand is its value for the adjoint of its result.
Array<Expr> @Camel@Back(const Call& call, const Expr& grad) {
  return {MakeCall(Downcast<Op>(call->op), {grad}, call->attrs)};
}

const Op @snake@ = DefineOp({
    .name = "@name@",
    .doc = "out[i] = data[i] * factor",
    .inputs = {{"data", "Any shape and dtype."}},
    .output = "Shape and dtype of `data`.",
    .attrs = TypeOf<@Camel@Attrs>,
    .type_rel = IdentityRel,
    .lower = Lower@Camel@,
    .gradient = @Camel@Back,
    .pattern = OpPattern::kElemWise,
    .source = "",
});

}  // namespace
}  // namespace baton::relay
