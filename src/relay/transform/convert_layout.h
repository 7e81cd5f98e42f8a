// SPDX-License-Identifier: Apache-2.0
// Functions of ConvertLayout that AlterOpLayout uses.
#pragma once

#include <baton/relay/transform.h>

#include <string>

namespace baton::relay::transform {

/// Replaces calls by what the function registered as FTVMAlterOpLayout makes of them, f(attrs, arguments, types of
/// arguments, type of result), with transforms where layouts changed; other layouts are carried through what follows.
/// The very same function where none is registered.
Function AlterRegistered(const Function& f);

/// layout_transform(x), from one layout to another.
Expr LayoutTransform(const Expr& x, const std::string& from, const std::string& to);

}  // namespace baton::relay::transform
