// SPDX-License-Identifier: Apache-2.0
// What type relations assume of extents, for sizes known later.
#pragma once

#include <baton/tir/expr.h>

#include <string>

namespace baton::relay {

/// Attribute of a function: an array of [a, b, text] for extents that must be equal.
constexpr const char* kExtentGuards = "extent_guards";
/// Adds `a == b` for a call to a list of guards: canonical, without repetition, unless one of both is not known.
void AddExtentGuard(Array<Any>* guards, const PrimExpr& a, const PrimExpr& b, const std::string& where);

}  // namespace baton::relay
