// SPDX-License-Identifier: Apache-2.0
// The built-in lowering of loop programs, up to what code generators take; and their interpreter.
#pragma once

#include <baton/ir/target.h>
#include <baton/runtime/ndarray.h>
#include <baton/tir/stmt.h>

#include <vector>

namespace baton::tir {

/// Simplify, vectorise, unroll, flatten, lower intrinsics: everything between a schedule and the code generator.
BATON_DLL PrimFunc LowerPipeline(const PrimFunc& func, const Target& target);

/// Runs a function on host arrays, one a parameter, before or after LowerPipeline, without compiling it. Throws
/// RuntimeError when it takes more than `max_steps` evaluations of a node (0: no limit).
BATON_DLL void Interpret(const PrimFunc& func, const std::vector<NDArray>& args, int64_t max_steps = 0);

}  // namespace baton::tir
