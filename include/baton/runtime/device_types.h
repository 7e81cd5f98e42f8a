// SPDX-License-Identifier: Apache-2.0
// The kinds of devices that there are, whether or not this machine has one.
#pragma once

#include <baton/support/export.h>

#include <cstdint>
#include <string>

namespace baton::runtime {

/// Whether a number stands for a kind of device: one that has a name, or that somebody registered.
BATON_DLL bool IsDeviceType(int64_t type);
/// Those with a name, for people: "1 (cpu), 2 (cuda), ...".
BATON_DLL std::string DeviceTypes();

}  // namespace baton::runtime
