// SPDX-License-Identifier: Apache-2.0
// The functions, for the definitions of their operators. The operator's documentation says what they compute and its
// attributes are their parameters, by the same names.
#pragma once

#include <baton/host/function.h>

namespace baton::host {

using Code = Arrays(const Params& params, const Arrays& in);

BATON_DLL Code Sort, Argsort, TopK, SearchSorted;
BATON_DLL Code Unique, Argwhere, Nonzero, Compress;
BATON_DLL Code Det, Cofactor;
BATON_DLL Code IncompleteGamma, OrthogonalPolynomial;
BATON_DLL Code RandomUniform, RandomNormal, Bernoulli, Multinomial;
BATON_DLL Code ThreefryGenerate, ThreefrySplit;
BATON_DLL Code RoiAlign, RoiPool;
BATON_DLL Code ValidCounts, NonMaxSuppression, AllClassNonMaxSuppression, MultiBoxPrior, MultiBoxTransformLoc;
BATON_DLL Code ShapeOf, ReshapeTensor;
BATON_DLL Code OnnxCast, TfIdf;
// Nodes of ONNX that operators of Relay are said by.
Code OnnxSlice, OnnxPad, OnnxSqueeze, OnnxUnsqueeze, OnnxResize;

}  // namespace baton::host
