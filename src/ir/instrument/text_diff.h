// SPDX-License-Identifier: Apache-2.0
// Differences of texts, line by line.
#pragma once

#include <string>
#include <string_view>

namespace baton {

/// Lines that differ, as `diff -u` shows them: with `context` equal lines around, groups begun by `@@ -l,n +l,n @@`.
/// "" where the texts are equal. Time: lines times differences; texts that differ in more than 2,000 lines are shown as
/// removed and added as a whole.
std::string DiffLines(std::string_view before, std::string_view after, int context = 3);

}  // namespace baton
