// SPDX-License-Identifier: Apache-2.0
// Values on devices: what running a planned program asks of them.
#pragma once

#include <baton/relay/expr.h>

namespace baton::relay {

/// The device that all arrays of a value lie on, those that references hold included; `none` if it has no array. Throws
/// RuntimeError if they lie on several.
BATON_DLL Device DeviceOfValue(const ObjectRef& value, Device none = Device{kDLCPU, 0});
/// The value with all its arrays on a device of this type, copied if they are elsewhere. Closures stay as they are.
/// Throws RuntimeError if the machine has no such device.
BATON_DLL ObjectRef MoveValue(const ObjectRef& value, int64_t device_type);
/// "cuda", "cpu".
BATON_DLL std::string DeviceTypeName(int64_t device_type);

/// Bytes of the tensors of a value of this type; -1 where they are not known before a program runs.
BATON_DLL int64_t BytesOfValue(const Type& type);
/// The same as text: "48"; a term for each tensor of open extents, "12 * ? + 16"; "" where the type does not say (data
/// types, functions).
BATON_DLL std::string BytesFormula(const Type& type);

}  // namespace baton::relay
