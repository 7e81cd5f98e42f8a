// SPDX-License-Identifier: Apache-2.0
// The built-in lowering of loop programs, up to what code generators take.
#pragma once

#include <baton/ir/target.h>
#include <baton/tir/stmt.h>

namespace baton::tir {

/// Simplify, vectorise, unroll, flatten, lower intrinsics: everything between a schedule and the code generator.
BATON_DLL PrimFunc LowerPipeline(const PrimFunc& func, const Target& target);

}  // namespace baton::tir
