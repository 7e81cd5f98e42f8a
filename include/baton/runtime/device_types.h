// SPDX-License-Identifier: Apache-2.0
// The kinds of devices that there are, whether or not this machine has one.
#pragma once

#include <baton/support/export.h>

#include <cstdint>
#include <string>

namespace baton::runtime {

/// Device types from here on are those of other machines: `kRemoteDevice * (session + 1) + type`, "remote[0]:cpu(0)".
/// DeviceAPI::Register(kRemoteDevice, ...) puts the one implementation for all of them in place.
inline constexpr int kRemoteDevice = 128;

/// Whether an id denotes a kind of device: a known one, or one that was registered.
BATON_DLL bool IsDeviceType(int64_t type);
/// Those with a name, for people: "1 (cpu), 2 (cuda), ...".
BATON_DLL std::string DeviceTypes();

}  // namespace baton::runtime
