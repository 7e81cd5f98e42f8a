// SPDX-License-Identifier: Apache-2.0
// Programs on several devices, or on one that is not the host.
#pragma once

#include <baton/ir/module.h>
#include <baton/ir/target.h>
#include <baton/relay/expr.h>

#include <vector>

namespace baton::driver {

/// A kind of device and what code is made of for it.
struct DeviceTarget {
  int64_t type = 1;
  Target target;
};

/// The targets by the names of their devices, checked, in the order of the devices' numbers.
std::vector<DeviceTarget> CheckDeviceTargets(const Map<String, Target>& targets);
/// The target of a device alone, as CheckDeviceTargets takes it.
Map<String, Target> OfItsDevice(const Target& target);
/// The device that takes what no annotation decides: the host, if it is among them.
int64_t FallbackDevice(const std::vector<DeviceTarget>& targets);
/// The target of code for the host: one of these, else this machine's.
Target HostOf(const std::vector<DeviceTarget>& targets);

/// The program, planned: each value has a device. Its parts are optimised when they have become regions, each for its
/// device. Throws ValueError where the program names devices for which there is no target.
IRModule OptimizeForDevices(const IRModule& mod, const std::vector<DeviceTarget>& targets, int64_t fallback);
/// A program for one device without what says so. Throws for one that names others.
IRModule ForOneDevice(const IRModule& mod, int64_t device);

}  // namespace baton::driver
