// SPDX-License-Identifier: Apache-2.0
// Elementary functions in float64 arithmetic, as expressions of scalars: of float64, and of float32 where float32
// arithmetic has too few digits. A kernel has no library of functions to call.
#pragma once

#include <baton/tir/expr.h>
#include <baton/tir/op.h>

namespace baton::codegen::cuda {

/// The function of a call of float64 scalars, or of float32 ones that are converted; null where there is none. Errs by
/// a few units in the last place, pow by 1e-13.
using Float64Fn = PrimExpr (*)(const Array<PrimExpr>& args, bool of_float32);

PrimExpr Exp(const Array<PrimExpr>& args, bool of_float32);
PrimExpr Exp2(const Array<PrimExpr>& args, bool of_float32);
PrimExpr Log(const Array<PrimExpr>& args, bool of_float32);
PrimExpr Log2(const Array<PrimExpr>& args, bool of_float32);
PrimExpr Log10(const Array<PrimExpr>& args, bool of_float32);
PrimExpr Log1p(const Array<PrimExpr>& args, bool of_float32);
PrimExpr Sin(const Array<PrimExpr>& args, bool of_float32);
PrimExpr Cos(const Array<PrimExpr>& args, bool of_float32);
PrimExpr Tan(const Array<PrimExpr>& args, bool of_float32);
PrimExpr Sinh(const Array<PrimExpr>& args, bool of_float32);
PrimExpr Cosh(const Array<PrimExpr>& args, bool of_float32);
PrimExpr Tanh(const Array<PrimExpr>& args, bool of_float32);
PrimExpr Asin(const Array<PrimExpr>& args, bool of_float32);
PrimExpr Acos(const Array<PrimExpr>& args, bool of_float32);
PrimExpr Atan(const Array<PrimExpr>& args, bool of_float32);
PrimExpr Atan2(const Array<PrimExpr>& args, bool of_float32);
PrimExpr Asinh(const Array<PrimExpr>& args, bool of_float32);
PrimExpr Acosh(const Array<PrimExpr>& args, bool of_float32);
PrimExpr Atanh(const Array<PrimExpr>& args, bool of_float32);
PrimExpr Erf(const Array<PrimExpr>& args, bool of_float32);
PrimExpr Pow(const Array<PrimExpr>& args, bool of_float32);

}  // namespace baton::codegen::cuda
