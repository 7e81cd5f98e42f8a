// SPDX-License-Identifier: Apache-2.0
// Steps that reason about int64, on functions as programs write them.
#pragma once

#include <baton/tir/stmt.h>

#include <functional>

namespace baton::tir {

/// A step on a function whose loops run over narrow integers: it gets them in int64, and what it gives is made narrow
/// again.
PrimFunc OnCanonicalForm(const PrimFunc& f, const std::function<PrimFunc(PrimFunc)>& step);

}  // namespace baton::tir
