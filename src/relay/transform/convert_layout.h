// SPDX-License-Identifier: Apache-2.0
// What AlterOpLayout takes from ConvertLayout.
#pragma once

#include <baton/relay/transform.h>

namespace baton::relay::transform {

/// Replaces calls by what the function registered as FTVMAlterOpLayout makes of them, f(attrs, arguments, types of
/// arguments, type of result), with transforms where layouts changed; permutations are carried through what follows.
/// The very same function where none is registered.
Function AlterRegistered(const Function& f);

}  // namespace baton::relay::transform
