// SPDX-License-Identifier: Apache-2.0
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include <cstdlib>

// Every module that a pass makes is checked for well-formedness.
[[maybe_unused]] static const int verify_passes = setenv("BATON_VERIFY_PASSES", "1", 0);
// Code is made anew, whatever this machine compiled before.
[[maybe_unused]] static const int no_kernel_cache = setenv("BATON_CACHE", "0", 1);
