// SPDX-License-Identifier: Apache-2.0
// Operators that say where and how a program runs, and those of the virtual machine.
#pragma once

#include <baton/relay/op.h>
#include <baton/relay/op/tensor.h>

namespace baton::relay {

/// No device: as DLPack has no such number, it equals no real one.
constexpr int64_t kInvalidDeviceType = -1;

struct OnDeviceAttrs : AttrsNode<OnDeviceAttrs> {
  static constexpr auto _type_key = "relay.attrs.OnDeviceAttrs";
  int64_t device_type = kInvalidDeviceType;
  bool is_fixed = false;
  static constexpr void Describe(auto& d) {
    d(F<&OnDeviceAttrs::device_type>,
      "Device that the argument runs on, as DLPack numbers them: 1 CPU, 2 CUDA. -1: not said. R1: a number of a "
      "device.");
    d(F<&OnDeviceAttrs::is_fixed>,
      "Whether the annotation itself stands on that device, so that nothing is copied for it.");
  }
};
struct DeviceCopyAttrs : AttrsNode<DeviceCopyAttrs> {
  static constexpr auto _type_key = "relay.attrs.DeviceCopyAttrs";
  int64_t src_dev_type = kInvalidDeviceType;
  int64_t dst_dev_type = kInvalidDeviceType;
  static constexpr void Describe(auto& d) {
    d(F<&DeviceCopyAttrs::src_dev_type>, "Device of the argument, or -1. R1: a number of a device.");
    d(F<&DeviceCopyAttrs::dst_dev_type>, "Device of the result, or -1. R1: a number of a device.");
  }
};
/// Attributes of annotation.compiler_begin and annotation.compiler_end.
struct CompilerAttrs : AttrsNode<CompilerAttrs> {
  static constexpr auto _type_key = "relay.attrs.CompilerAttrs";
  String compiler;
  static constexpr void Describe(auto& d) {
    d(F<&CompilerAttrs::compiler>, "Name of the code generator that the region is for.", kRequired);
  }
};
struct AllocStorageAttrs : AttrsNode<AllocStorageAttrs> {
  static constexpr auto _type_key = "relay.attrs.AllocStorageAttrs";
  DataType dtype = DataType::Float(32);
  int64_t device_type = 1;
  int64_t device_id = 0;
  static constexpr void Describe(auto& d) {
    d(F<&AllocStorageAttrs::dtype>, "Dtype that the storage is for.");
    d(F<&AllocStorageAttrs::device_type>, "Kind of device.");
    d(F<&AllocStorageAttrs::device_id>, "Number of the device among its kind.", AtLeast(0));
  }
};

namespace op {
extern BATON_DLL const Op compiler_begin, compiler_end;
extern BATON_DLL const Op on_device, device_copy, stop_fusion, checkpoint, vm_shape_of, vm_shape_func, vm_invoke_tvm_op,
    vm_reshape_tensor, memory_alloc_storage, memory_alloc_tensor, memory_kill, memory_append;
}  // namespace op

/// The attributes of a call of on_device; null for another operator.
inline const OnDeviceAttrs* AsOnDevice(const ObjectRef& op, const Attrs& attrs) {
  return op.same_as(op::on_device) ? &AttrsAs<OnDeviceAttrs>(attrs) : nullptr;
}
/// `e`, which runs on a device of this type.
BATON_DLL Expr OnDevice(const Expr& e, int64_t device);
/// The same of device_copy.
inline const DeviceCopyAttrs* AsDeviceCopy(const ObjectRef& op, const Attrs& attrs) {
  return op.same_as(op::device_copy) ? &AttrsAs<DeviceCopyAttrs>(attrs) : nullptr;
}

/// Whether an operator ends the kernel that computes its argument, and computes nothing.
inline bool EndsFusion(const ObjectRef& op) { return op.same_as(op::stop_fusion); }

}  // namespace baton::relay
