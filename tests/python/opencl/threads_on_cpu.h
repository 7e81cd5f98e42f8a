// SPDX-License-Identifier: Apache-2.0
// Kernels on a processor: blocks one after the other, each thread of a block as a thread of the system.
#pragma once

#include <stdint.h>

#include <barrier>
#include <thread>
#include <vector>

struct Place {
  unsigned x, y, z;
};
static std::barrier<>* block_barrier;

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
        kernel(place(b, groups), place(t, threads),
               Place{unsigned(threads[0]), unsigned(threads[1]), unsigned(threads[2])});
        barrier.arrive_and_drop();
      });
    }
  }
}
