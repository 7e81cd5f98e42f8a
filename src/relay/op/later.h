// SPDX-License-Identifier: Apache-2.0
// Weights that are not in memory while nothing reads them: they lie in the model's file, or are computed from such.
#pragma once

#include <baton/runtime/ndarray.h>
#include <baton/runtime/packed_func.h>

#include <utility>
#include <vector>

namespace baton::relay {

/// Reads an array that may be away, and leaves it as it was.
template <class F>
auto Reading(const NDArray& from, F f) {
  const bool away = from.Away();
  auto result = f(from);
  if (away) from.GiveBack();
  return result;
}

/// Notes that `made` is f(from), of an array that has a source.
template <class F>
void MakeAgain(const NDArray& made, const NDArray& from, F f) {
  made.SetSource(
      runtime::PackedFunc([from, f = std::move(f)](runtime::Args, runtime::RetValue* rv) { *rv = Reading(from, f); }));
}

/// f(from), an array of this type: made when its elements are asked for, where `from` can be made again.
template <class F>
NDArray MadeOf(const NDArray& from, F f, const std::vector<int64_t>& shape, DataType dtype) {
  if (!from.HasSource()) return f(from);
  from.GiveBack();
  return NDArray::Later(
      shape, dtype,
      runtime::PackedFunc([from, f = std::move(f)](runtime::Args, runtime::RetValue* rv) { *rv = Reading(from, f); }));
}

}  // namespace baton::relay
