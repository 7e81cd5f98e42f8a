// SPDX-License-Identifier: Apache-2.0
// The nearest known names to a misspelt one, for errors.
#pragma once

#include <baton/support/export.h>

#include <string>
#include <string_view>
#include <vector>

namespace baton::support {

/// Up to three names within a small edit distance, nearest first, ties in the order given.
BATON_DLL std::vector<std::string> Nearest(std::string_view name, const std::vector<std::string>& known);
/// "; did you mean `a`, `b`?", or "" if nothing is near.
BATON_DLL std::string DidYouMean(std::string_view name, const std::vector<std::string>& known);

}  // namespace baton::support
