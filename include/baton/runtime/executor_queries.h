// SPDX-License-Identifier: Apache-2.0
// Common to all executors: trees of results, and whose an array is.
#pragma once

#include <baton/runtime/array.h>
#include <baton/runtime/ndarray.h>

#include <vector>

namespace baton::runtime {

/// Whether nothing but the array leads to its elements: it is neither a view nor memory of another library.
BATON_DLL bool OwnsElements(const NDArray& a);

/// Throws RuntimeError unless `tree` (ExecutableDesc::result_tree) is empty, or one tree of so many outputs.
BATON_DLL void CheckResultTree(const std::vector<int64_t>& tree, size_t outputs);
/// The result of a model, built from its flat outputs; `tree` has been checked.
BATON_DLL ObjectRef ResultValue(const std::vector<int64_t>& tree, const std::vector<NDArray>& outputs);

}  // namespace baton::runtime
