// SPDX-License-Identifier: Apache-2.0
// From tensor expressions to one PrimFunc.
#pragma once

#include <baton/ir/target.h>
#include <baton/te/tensor.h>
#include <baton/tir/stmt.h>

namespace baton::te {

/// Loops that compute `outputs` from `inputs` (placeholders) by the general schedule: producers that read each element
/// once are computed inline, the outermost loops are parallel when the work is worth it, the innermost are vectors.
/// Parameters: a buffer for each input in order, then for each output.
BATON_DLL tir::PrimFunc LowerToPrimFunc(const Array<Tensor>& inputs, const Array<Tensor>& outputs, const String& name,
                                        const Target& target);

}  // namespace baton::te
