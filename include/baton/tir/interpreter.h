// SPDX-License-Identifier: Apache-2.0
// Runs loop programs without compiling them: for small constant folding, and as a yardstick for code generators.
#pragma once

#include <baton/runtime/ndarray.h>
#include <baton/tir/stmt.h>

#include <vector>

namespace baton::tir {

/// Runs a function on host arrays, one a parameter (an array of one for a number), before or after LowerPipeline.
/// Arithmetic is rounded to the dtype at each operation. Throws RuntimeError when it takes more than `max_steps`
/// evaluations of a node (0: no limit), or when an index leaves its buffer.
BATON_DLL void Interpret(const PrimFunc& func, const std::vector<NDArray>& args, int64_t max_steps = 0);

}  // namespace baton::tir
