// SPDX-License-Identifier: Apache-2.0
// What the machine that we run on offers: instructions, caches, cores, pages. Asked once, then remembered.
#pragma once

#include <baton/support/export.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace baton::support {

/// Whether the processor and the operating system support a feature, by LLVM's name ("avx512bw", "amx-bf16", "neon").
/// A name that is not known here is answered with false; IsKnownCpuFeature tells the two apart.
BATON_DLL bool HasCpuFeature(std::string_view name);
BATON_DLL bool IsKnownCpuFeature(std::string_view name);
/// Names of all features present, in a fixed order.
BATON_DLL std::vector<std::string> CpuFeatures();

/// The features that kernels choose by.
struct CpuInfo {
  bool avx2, fma, f16c;
  bool avx512f, avx512bw, avx512vl, avx512dq, avx512vnni, avx512bf16, avx512fp16, avxvnni;
  bool amx_tile, amx_bf16, amx_int8;
  /// Bytes of the data (or unified) caches of one core; 0 where not known.
  size_t l1d, l2, l3;
  size_t page_size;
  /// Bytes of memory of the machine, or the control group's limit if that is lower; 0 where not known.
  size_t memory;
  /// Processors this process may use: affinity mask and control group quota (rounded up) respected. At least 1.
  int num_cpus;
  std::string model_name;
};
BATON_DLL const CpuInfo& Machine();

/// Asks the system for the use of the tile registers, once per process; false where there are none.
BATON_DLL bool EnableAmx();

/// Processors this process may use now: affinity and quota are asked anew.
BATON_DLL int AvailableCpus();

}  // namespace baton::support
