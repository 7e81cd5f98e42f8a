// SPDX-License-Identifier: Apache-2.0
// Parts of a value along one axis, for passes that make it longer and shorter.
#pragma once

#include <baton/relay/expr.h>

#include <vector>

namespace baton::relay {

/// A value of this dtype and these extents with zeros behind it along `axis`, up to `length`; the value where it has
/// them.
Expr FilledUp(const Expr& value, DataType dtype, const std::vector<int64_t>& shape, size_t axis, int64_t length);
/// The first `length` elements along `axis`.
Expr FirstOf(const Expr& value, int64_t axis, int64_t length);

}  // namespace baton::relay
