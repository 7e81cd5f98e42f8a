// SPDX-License-Identifier: Apache-2.0
// Arrays as modules of others save them.
#pragma once

#include <baton/runtime/ndarray.h>
#include <baton/support/bytes.h>

#include <vector>

namespace baton::vm {

/// u64 number of arrays; of each its dtype as text, u64 number of dimensions, i64 each, its bytes.
void WriteArrays(support::ByteWriter* w, const std::vector<runtime::NDArray>& arrays);
/// Throws std::runtime_error for what WriteArrays did not write.
std::vector<runtime::NDArray> ReadArrays(support::ByteReader* r);

}  // namespace baton::vm
