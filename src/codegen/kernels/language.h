// SPDX-License-Identifier: Apache-2.0
// A language of kernels: a table beside that of its family (codegen/source).
#pragma once

#include <string>

#include "codegen/source/dialect.h"

namespace baton::codegen::kernels {

inline constexpr const char* kHostFunction = "it calls functions of the host";

struct Language {
  source::Dialect dialect;
  const char* device;      ///< the first word of the program's head, as in "// baton-opencl {...}"
  const char* kernel;      ///< before a kernel's name
  const char* memory;      ///< before a type of the device's memory
  const char* restricted;  ///< behind a pointer that no other one aliases
  const char* shared;      ///< before an array that the threads of a block share
  bool shared_first;       ///< such arrays are declared in the outermost block alone
  const char* item;        ///< the number of a work-item of one dimension
  const char* axes[6];     ///< blockIdx.x to blockIdx.z, threadIdx.x to threadIdx.z
  /// What says how many threads a block has, where the numbers are known.
  std::string (*block_size)(const int64_t* threads);
  /// A float to an integer of at least 32 bits: out of range gives the nearest limit, NaN gives 0.
  std::string (*float_to_int)(const std::string& value, DataType from, DataType to, const std::string& type,
                              source::Needs* needs);
  /// Text before all functions.
  std::string (*prelude)(const source::Needs& needs);
};

}  // namespace baton::codegen::kernels
