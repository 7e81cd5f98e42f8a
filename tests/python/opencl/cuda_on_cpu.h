// SPDX-License-Identifier: Apache-2.0
// CUDA C++ on a processor: blocks one after the other, each thread of a block as a thread of the system.
#include <math.h>
#include <stdint.h>
#include <string.h>

#include <barrier>
#include <thread>
#include <vector>

using std::isfinite;
using std::isinf;

#define __global__
#define __device__
#define __shared__ static
#define __launch_bounds__(n)
#define __restrict__ __restrict

struct Place {
  unsigned x, y, z;
};
static thread_local Place threadIdx, blockIdx, blockDim;
static std::barrier<>* block_barrier;
static inline void __syncthreads() { block_barrier->arrive_and_wait(); }

template <class Kernel>
void Launch(const int64_t* groups, const int64_t* threads, const Kernel& kernel) {
  for (unsigned b = 0; b < groups[0] * groups[1] * groups[2]; ++b) {
    std::barrier<> barrier(threads[0] * threads[1] * threads[2]);
    block_barrier = &barrier;
    std::vector<std::jthread> all;
    for (unsigned t = 0; t < threads[0] * threads[1] * threads[2]; ++t) {
      all.emplace_back([&, b, t] {
        const auto place = [](unsigned i, const int64_t* of) {
          return Place{unsigned(i % of[0]), unsigned(i / of[0] % of[1]), unsigned(i / of[0] / of[1])};
        };
        blockIdx = place(b, groups), threadIdx = place(t, threads);
        blockDim = {unsigned(threads[0]), unsigned(threads[1]), unsigned(threads[2])};
        kernel();
        barrier.arrive_and_drop();
      });
    }
  }
}
