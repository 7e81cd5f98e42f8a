// SPDX-License-Identifier: Apache-2.0
// Named parameters in Relay's binary file format (".params").
#pragma once

#include <baton/runtime/map.h>
#include <baton/runtime/ndarray.h>
#include <baton/runtime/string.h>

#include <string>
#include <string_view>

namespace baton::runtime {

/// The bytes of a parameter file, in the order of the map; equal maps give equal bytes.
BATON_DLL std::string SaveParams(const Map<String, NDArray>& params);
/// Reads such bytes, all on the CPU. Every length is checked against the remaining bytes; errors are RuntimeErrors that
/// name `what` and the position.
BATON_DLL Map<String, NDArray> LoadParams(std::string_view bytes, const char* what = "parameters");

}  // namespace baton::runtime
