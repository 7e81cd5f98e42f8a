// SPDX-License-Identifier: Apache-2.0
// Annotations: their value is that of their argument.
#include <baton/relay/op/annotation.h>
#include <baton/runtime/device_types.h>
#include <baton/topi/elemwise.h>

#include "../common.h"
#include "../gradient.h"

namespace baton::relay {
namespace {

struct CastHintAttrs : AttrsNode<CastHintAttrs> {
  static constexpr auto _type_key = "relay.attrs.CastHintAttrs";
  DataType dtype = DataType::Int(8);
  static constexpr void Describe(auto& d) { d(F<&CastHintAttrs::dtype>, "Dtype that the value is to be held in."); }
};

bool SameRel(const Array<Type>& types, int num_inputs, const Attrs&, TypeReporter& reporter) {
  reporter.Assign(types[num_inputs], types[0]);
  return true;
}
void CheckDevice(const char* op, const char* attr, int64_t type) {
  if (type == kInvalidDeviceType || runtime::IsDeviceType(type)) return;
  throw CompileError("[" + std::string(op) + " R1] `" + attr + "` is " + std::to_string(type) +
                     ", which is no device; there are " + runtime::DeviceTypes());
}
bool OnDeviceRel(const Array<Type>& types, int num_inputs, const Attrs& attrs, TypeReporter& reporter) {
  CheckDevice("on_device", "device_type", AttrsAs<OnDeviceAttrs>(attrs).device_type);
  return SameRel(types, num_inputs, attrs, reporter);
}
bool DeviceCopyRel(const Array<Type>& types, int num_inputs, const Attrs& attrs, TypeReporter& reporter) {
  CheckDevice("device_copy", "src_dev_type", AttrsAs<DeviceCopyAttrs>(attrs).src_dev_type);
  CheckDevice("device_copy", "dst_dev_type", AttrsAs<DeviceCopyAttrs>(attrs).dst_dev_type);
  return SameRel(types, num_inputs, attrs, reporter);
}
Tensors LowerSame(const Tensors& in) {
  Tensors out;
  for (const Tensor& t : in) out.push_back(topi::Map(t, [](PrimExpr v) { return v; }, "copy"));
  return out;
}
Op Define(const char* name, const char* doc, const char* (*attrs)(), decltype(&SameRel) rel = SameRel,
          OpGradient gradient = gradient::Through) {
  return DefineOp({.name = name,
                   .doc = doc,
                   .inputs = {{"data", "Anything."}},
                   .output = "`data`.",
                   .attrs = attrs,
                   .type_rel = rel,
                   .lower = LowerSame,
                   .gradient = gradient,
                   .pattern = OpPattern::kOpaque,
                   .fold = Fold::kNever,
                   .source = "Relay",
                   .traits = {.values = Values::kExact}});
}

const Op cast_hint =
    Define("annotation.cast_hint", "data, which relay.quantize is to hold in another dtype from here on.",
           TypeOf<CastHintAttrs>);

}  // namespace

Expr OnDevice(const Expr& e, int64_t device) {
  auto attrs = runtime::make_object<OnDeviceAttrs>();
  attrs->device_type = device;
  CallNode call;
  call.op = op::on_device;
  call.args.push_back(e);
  call.attrs = Attrs(attrs);
  call.span = e->span;
  return Call(std::move(call));
}
const Op op::on_device = Define("on_device", "data, which runs on a device.", TypeOf<OnDeviceAttrs>, OnDeviceRel);
const Op op::device_copy =
    Define("device_copy", "data on another device.", TypeOf<DeviceCopyAttrs>, DeviceCopyRel,
           NoGradient("where its gradient goes back to is decided by PlanDevices; run gradient first"));
const Op op::stop_fusion = Define("annotation.stop_fusion", "data, which is not fused with what uses it.", nullptr);
const Op op::compiler_begin =
    Define("annotation.compiler_begin", "data, where a region of another compiler begins.", TypeOf<CompilerAttrs>);
const Op op::compiler_end =
    Define("annotation.compiler_end", "data, where a region of another compiler ends.", TypeOf<CompilerAttrs>);
const Op op::checkpoint =
    Define("annotation.checkpoint", "data, which a gradient computes again and does not keep.", nullptr);

}  // namespace baton::relay
