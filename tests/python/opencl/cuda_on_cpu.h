// SPDX-License-Identifier: Apache-2.0
// CUDA C++ on a processor.
#include <math.h>
#include <string.h>

#include <cmath>

#include "threads_on_cpu.h"

using std::isfinite;
using std::isinf;

#define __global__
#define __device__
#define __shared__ static
#define __launch_bounds__(n)
#define __restrict__ __restrict

static thread_local Place threadIdx, blockIdx, blockDim;
static inline void __syncthreads() { block_barrier->arrive_and_wait(); }
