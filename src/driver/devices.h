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

/// The targets of code.
struct Targets {
  Target host;
  std::vector<DeviceTarget> devices;  ///< of a program that is planned; none: the host runs all of it

  bool planned() const { return !devices.empty(); }
  /// The targets for passes over Relay: each region has its own.
  const Target& first() const { return planned() ? devices[0].target : host; }
  /// Of one device; one that is not the host has the host beside it.
  static Targets Of(const Target& target);
  static Targets Of(const Map<String, Target>& devices);
};

/// The program, checked, as passes take it: without what says that it is for one device, where it is. Throws ValueError
/// where it names devices for which there is no target.
IRModule ForTheseTargets(const IRModule& mod, const Targets& targets);

}  // namespace baton::driver
