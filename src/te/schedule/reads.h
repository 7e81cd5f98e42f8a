// SPDX-License-Identifier: Apache-2.0
// Reads of expressions.
#pragma once

#include <baton/te/schedule.h>

#include <functional>
#include <vector>

namespace baton::te {

/// The elements of tensors that the expressions of a body read, once each.
std::vector<tir::ProducerLoad> Loads(const Array<PrimExpr>& body);
/// The expressions of a body, of a reduction its sources and its condition.
std::vector<PrimExpr> Parts(const Array<PrimExpr>& body);
using LoadFn = std::function<PrimExpr(const Tensor& tensor, const Array<PrimExpr>& indices)>;
/// A body's expression with each element that it reads replaced by `f(tensor, indices)`.
PrimExpr ReplaceLoads(const PrimExpr& e, const LoadFn& f);
PrimExpr MakeReduce(const tir::CommReducer& combiner, const Array<PrimExpr>& source, const Array<IterVar>& axis,
                    const PrimExpr& condition, int64_t value_index = 0);

}  // namespace baton::te
