// SPDX-License-Identifier: Apache-2.0
#include <baton/relay/op.h>
#include <baton/tir/op.h>

namespace baton::relay {
namespace {

struct @Camel@Attrs : AttrsNode<@Camel@Attrs> {
  static constexpr const char* _type_key = "relay.attrs.@Camel@Attrs";
  double factor = 2.0;
  static constexpr void Describe(auto& d) {
    d(F<&@Camel@Attrs::factor>, "What each element is multiplied by. Unitless, any sign.");
  }
};

te::Tensor Lower@Camel@(const @Camel@Attrs& attrs, const Array<te::Tensor>& in) {
  return te::Compute(in[0].shape(), [&attrs, x = in[0]](te::Indices i) { return x(i) * te::Const(attrs.factor, x.dtype()); });
}

const Op @snake@ = DefineOp({
    .name = "@name@",
    .doc = "out[i] = data[i] * factor",
    .inputs = {{"data", "Any shape and dtype."}},
    .output = "Shape and dtype of `data`.",
    .attrs = TypeOf<@Camel@Attrs>,
    .type_rel = IdentityRel,
    .lower = Lower@Camel@,
    .pattern = OpPattern::kElemWise,
    .source = "",
});

}  // namespace
}  // namespace baton::relay
