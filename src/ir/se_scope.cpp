// SPDX-License-Identifier: Apache-2.0
#include <baton/ir/target.h>

namespace baton {
namespace {

/// Front ends make and read it; C++ code does not use it yet.
struct SEScopeNode : Node<SEScopeNode, Object> {
  static constexpr const char* _type_key = "SEScope";
  static constexpr const char* _doc =
      "Where a value lives and what runs there: a device, a target, and a kind of the device's memory.";
  int64_t device_type_int = -1;
  int64_t virtual_device_id = -1;
  Target target;
  String memory_scope;
  static constexpr void Describe(auto& d) {
    d(F<&SEScopeNode::device_type_int>, "Device, as DLPack numbers them; -1: any.", AtLeast(-1));
    d(F<&SEScopeNode::virtual_device_id>, "Number of the device among its kind; -1: any.", AtLeast(-1));
    d(F<&SEScopeNode::target>, "What is compiled for; null: anything.", kNullable);
    d(F<&SEScopeNode::memory_scope>, "Kind of memory, \"\" for the main one.");
  }
};
const RegisterNodes<SEScopeNode> registered_se_scope;

}  // namespace
}  // namespace baton
