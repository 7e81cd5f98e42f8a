// SPDX-License-Identifier: Apache-2.0
// Reports of device planning about its decisions.
#pragma once

#include <baton/relay/expr.h>
#include <baton/support/pointer_map.h>

#include <string>
#include <vector>

namespace baton::relay::transform {

/// Attributes of planned functions: device types of the parameters and of the result. One that is a function itself
/// counts by the device of its result.
constexpr const char* kParamDevices = "param_device_types";
constexpr const char* kResultDevice = "result_device_type";

/// The device of each expression and the reason, and the copies.
struct PlacementReport {
  struct Place {
    std::string function, expression, place;
    int64_t device;
    std::string because;
  };
  struct Copy {
    std::string expression, place;
    int64_t from, to, bytes;  ///< bytes: -1 if they are not known before it runs
    std::string formula;      ///< as relay::BytesFormula has it
    std::string because;
    std::string function = {};
  };
  std::vector<Place> places;
  std::vector<Copy> copies;
};

/// Plans a typed module; `report` may be null.
IRModule PlanModuleDevices(const IRModule& mod, int64_t default_device, PlacementReport* report);

/// A planned module with the device of each of its expressions that has one. Constants that are wanted elsewhere than
/// on the host, and not by an operator, say so by an annotation.
struct PlacedModule {
  IRModule mod;
  PointerMap<int64_t> device;
};
PlacedModule PlaceModule(const IRModule& planned, int64_t default_device);

}  // namespace baton::relay::transform
