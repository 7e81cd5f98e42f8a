// SPDX-License-Identifier: Apache-2.0
// The table of C functions that a tensor type of Python lends as `__dlpack_c_exchange_api__`, written down from
// DLPack's public specification (1.3): tensors cross without a call into Python.
#pragma once

#include <baton/runtime/c_runtime_api.h>

struct DLPackExchangeAPIHeader {
  DLPackVersion version;
  DLPackExchangeAPIHeader* prev_api;  ///< a table of an older major version, or null
};

struct DLPackExchangeAPI {
  DLPackExchangeAPIHeader header;
  /// An uninitialised tensor of the prototype's shape, type and device.
  int (*managed_tensor_allocator)(DLTensor* prototype, DLManagedTensorVersioned** out, void* error_ctx,
                                  void (*set_error)(void* error_ctx, const char* kind, const char* message));
  /// An owning view of a Python tensor. Like the others here: 0, or -1 with a Python error set.
  int (*managed_tensor_from_py_object_no_sync)(void* py_object, DLManagedTensorVersioned** out);
  /// A Python tensor over `tensor`, which is taken over.
  int (*managed_tensor_to_py_object_no_sync)(DLManagedTensorVersioned* tensor, void** out_py_object);
  /// A view that is good until control returns to Python. May be null.
  int (*dltensor_from_py_object_no_sync)(void* py_object, DLTensor* out);
  /// The stream that work on the device goes to; null on the CPU.
  int (*current_work_stream)(int32_t device_type, int32_t device_id, void** out_stream);
};

constexpr const char* kExchangeCapsule = "dlpack_exchange_api";
constexpr const char* kExchangeAttribute = "__dlpack_c_exchange_api__";
