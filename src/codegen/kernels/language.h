// SPDX-License-Identifier: Apache-2.0
// A language of kernels: a table beside that of its family (codegen/source).
#pragma once

#include <string>
#include <vector>

#include "codegen/source/dialect.h"

namespace baton::codegen::kernels {

inline constexpr const char* kHostFunction = "it calls functions of the host";

/// The calls that make threads wait for each other; null: the language has none.
struct Barriers {
  const char *shared, *global, *warp;
};
/// Returns the call for a tvm_storage_sync of a scope. Throws UnsupportedError for a scope without one.
std::string BarrierOf(const tir::CallNode* op, const Barriers& barriers);

/// The things that a kernel's head declares.
struct KernelHead {
  struct Buffer {
    std::string name, type;
    bool written;
  };
  std::string name;
  std::string block_size;  ///< of `Language::block_size`; "" for a kernel of items, or of open numbers of threads
  std::vector<Buffer> buffers;
  std::vector<std::string> sizes;  ///< of int64
  std::string shared;              ///< arrays of a block, where they are declared first
  bool items;                      ///< it has a work-item a value, instead of axes
};

struct Language {
  source::Dialect dialect;
  const char* fp64;    ///< the device's extension for float64; null: each device has it, or none
  const char* fp16;    ///< for float16, the same
  const char* device;  ///< the first word of the program's head, as in "// baton-opencl {...}"
  /// Returns the text before a kernel's first statement.
  std::string (*head)(const Language& language, const KernelHead& head);
  const char* kernel;      ///< before a kernel's name
  const char* memory;      ///< before a type of the device's memory
  const char* restricted;  ///< behind a pointer that no other one aliases
  const char* shared;      ///< before an array that the threads of a block share
  bool shared_first;       ///< such arrays are declared in the outermost block alone, or outside of the kernel
  /// The declaration of such an array, where they are declared first.
  std::string (*shared_array)(const Language& language, const std::string& type, const std::string& name,
                              int64_t count);
  bool global_names;    ///< buffers and arrays of a block have names of the whole program, and offsets in elements
  bool wide_truth;      ///< a bool takes four bytes of memory
  const char* item;     ///< the number of a work-item of one dimension
  const char* axes[6];  ///< blockIdx.x to blockIdx.z, threadIdx.x to threadIdx.z
  /// Returns the attribute of a kernel whose blocks have these numbers of threads.
  std::string (*block_size)(const int64_t* threads);
  /// A float to an integer of at least 32 bits: out of range gives the nearest limit, NaN gives 0.
  std::string (*float_to_int)(const std::string& value, DataType from, DataType to, const std::string& type,
                              source::Needs* needs);
  /// Text before all functions.
  std::string (*prelude)(const source::Needs& needs);
};

/// The head of a C function: a pointer and an offset a buffer, then the sizes.
std::string HeadC(const Language& language, const KernelHead& head);
/// An array of a block in such a function.
std::string SharedArrayC(const Language& language, const std::string& type, const std::string& name, int64_t count);

}  // namespace baton::codegen::kernels
