// SPDX-License-Identifier: Apache-2.0
// Named parameters in the binary format that Relay users have files of (".params").
#pragma once

#include <baton/runtime/map.h>
#include <baton/runtime/ndarray.h>
#include <baton/runtime/string.h>

#include <string>
#include <string_view>

namespace baton::runtime {

/// The bytes of a parameter file, in the order of the map; equal maps give equal bytes.
BATON_DLL std::string SaveParams(const Map<String, NDArray>& params);
/// Reads such bytes, all on the CPU. No length is believed beyond the bytes that remain; faults are RuntimeErrors that
/// name `what` and the place.
BATON_DLL Map<String, NDArray> LoadParams(std::string_view bytes, const char* what = "parameters");

}  // namespace baton::runtime
