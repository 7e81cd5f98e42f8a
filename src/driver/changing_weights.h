// SPDX-License-Identifier: Apache-2.0
// Weights that change after compilation, as those of a module that is trained: constants that are made again.
#pragma once

namespace baton::driver {

/// Whether the module that is compiled in this PassContext can make constants with sources again (`repack`).
bool WeightsChange();

}  // namespace baton::driver
