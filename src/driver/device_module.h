// SPDX-License-Identifier: Apache-2.0
// A compiled model for several devices, or for one that is not the host.
#pragma once

#include <baton/runtime/module.h>

#include <string>
#include <vector>

#include "driver/lower_devices.h"

namespace baton::driver {

/// The module of a planned, fused program for which CanLowerGraph(main, &why, true) holds.
runtime::Module MakeDeviceModule(const IRModule& mod, const std::vector<DeviceTarget>& targets, int64_t fallback);
/// The program as an optimised, planned and fused module, as MakeDeviceModule takes it. Throws ValueError where the
/// program names devices for which there is no target.
IRModule OptimizeForDevices(const IRModule& mod, const std::vector<DeviceTarget>& targets, int64_t fallback,
                            bool named = false);
/// A program for one device without what says so. Throws for one that names others.
IRModule ForOneDevice(const IRModule& mod, int64_t device);
/// The targets by the names of their devices, checked, in the order of the devices' numbers.
std::vector<DeviceTarget> CheckDeviceTargets(const Map<String, Target>& targets);
/// The device that takes what no annotation decides: the host, if it is among them.
int64_t FallbackDevice(const std::vector<DeviceTarget>& targets);
/// The text of the first device that has code of its own. Throws UnsupportedError that names `format` where none has.
std::string CodeOfDevice(const std::vector<vm::GraphDevice>& devices, const std::string& format);
/// A stage of a device program as text: "tir", the kind of a device's target, "json" (the steps), "llvm", "asm".
std::string DeviceText(const LoweredDevices& lowered, const Target& host, const std::string& stage);

}  // namespace baton::driver
