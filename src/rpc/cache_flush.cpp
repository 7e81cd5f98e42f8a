// SPDX-License-Identifier: Apache-2.0
// What timing calls before each repetition when it is asked for by name (`f_preproc`), so that times are those of cold
// caches.
#include <baton/runtime/ndarray.h>
#include <baton/runtime/registry.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace baton::rpc {
using namespace runtime;  // NOLINT
namespace {

constexpr size_t kLine = 64;  // bytes, or half of a line: no line is left out

void FlushLine([[maybe_unused]] const char* at) {
#if defined(__x86_64__)
  __builtin_ia32_clflush(at);
#elif defined(__aarch64__)
  asm volatile("dc civac, %0" ::"r"(at) : "memory");
#elif defined(__arm__) || defined(__riscv)
  // There a program may not; the function says so.
#endif
}

/// Writes the elements of all arguments but the first, which holds what other kernels made just now, out of the caches.
BATON_REGISTER_GLOBAL("cache_flush_cpu_non_first_arg").set_body(PackedFunc([](Args args, RetValue*) {
#if !defined(__x86_64__) && !defined(__aarch64__)
  throw UnsupportedError("cache_flush_cpu_non_first_arg: programs of this machine cannot empty its caches");
#endif
  for (int i = 1; i < args.size(); ++i) {
    if (!args[i].Is<NDArray>()) continue;
    const NDArray a = args[i].As<NDArray>();
    if (a.device().device_type != kDLCPU) continue;
    const char* begin = static_cast<const char*>(a.data());
    for (size_t at = 0; at < a.nbytes(); at += kLine) FlushLine(begin + at);
  }
  std::atomic_thread_fence(std::memory_order_seq_cst);
}));

}  // namespace
}  // namespace baton::rpc
