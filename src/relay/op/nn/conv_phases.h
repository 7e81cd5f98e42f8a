// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <baton/relay/op.h>

namespace baton::relay {

/// A transposed convolution over N spatial dimensions as convolutions, whose kernels are fast: results that are as many
/// elements apart as the stride is (a phase) see the same elements of the window, so each phase is a convolution of
/// step 1 by these, and the results interleave. Null where extents of space are not known. `types`: of the arguments
/// and the result, as FTVMLegalize has them.
template <int N>
Expr ConvTransposeByPhases(const Attrs& attrs, const Array<Expr>& args, const Array<Type>& types);

}  // namespace baton::relay
