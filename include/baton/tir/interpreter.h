// SPDX-License-Identifier: Apache-2.0
// Runs PrimFuncs without compiling them: for small constant folding, and as a yardstick for code generators.
#pragma once

#include <baton/ir/module.h>
#include <baton/runtime/ndarray.h>
#include <baton/tir/race.h>
#include <baton/tir/stmt.h>

#include <vector>

namespace baton::tir {

/// Runs a function on host arrays, one a parameter (an array of one for a number), before or after LowerPipeline.
/// Arithmetic is rounded to the dtype at each operation. Throws RuntimeError when it takes more than `max_steps`
/// evaluations of a node (0: no limit), or when an index leaves its buffer.
BATON_DLL void Interpret(const PrimFunc& func, const std::vector<NDArray>& args, int64_t max_steps = 0);

/// The same; false where it takes more steps, and arrays hold parts of results then.
BATON_DLL bool InterpretWithin(const PrimFunc& func, const std::vector<NDArray>& args, int64_t max_steps);
/// Whether the interpreter knows the calls of a function: those of intrinsics with a value, not of other code.
BATON_DLL bool CanInterpret(const PrimFunc& func);

/// How the threads of a block run (mark "thread_extent"): in lockstep, one statement at a time, which is what code
/// without barriers means; or one after the other, each up to the next barrier, starting with the first or the last
/// thread: what a device may do. A barrier that not all of them reach throws RuntimeError.
enum class Threads { kTogether, kApart, kApartBackwards };
struct InterpretOptions {
  Threads threads = Threads::kTogether;
  IRModule mod;  ///< whose functions can be called; null: none
  int64_t max_steps = 0;
  std::vector<Race>* races = nullptr;  ///< gets the races of kernels and parallel loops; null: none are looked for
};
BATON_DLL void Interpret(const PrimFunc& func, const std::vector<NDArray>& args, const InterpretOptions& options);

}  // namespace baton::tir
