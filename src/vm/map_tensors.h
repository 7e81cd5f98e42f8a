// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <baton/runtime/ndarray.h>
#include <baton/vm/value.h>

#include <functional>

namespace baton::vm {

/// The value with f(tensor) for each tensor in tuples, and where `in_data` says so in data; itself if nothing differs.
/// Linear, and without recursion: lists are long.
ObjectRef MapTensors(const ObjectRef& value, const std::function<NDArray(const NDArray&)>& f, bool in_data);

}  // namespace baton::vm
