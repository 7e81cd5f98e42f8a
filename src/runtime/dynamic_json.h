// SPDX-License-Identifier: Apache-2.0
// Dynamic shapes as JSON, in the manifest of an artifact and in a program of the virtual machine.
#pragma once

#include <baton/runtime/dynamic_shapes.h>
#include <baton/runtime/object.h>
#include <baton/support/json.h>

#include <vector>

namespace baton::runtime {

/// Throws ValueError for what WriteDynamicShapes does not write; CheckDynamicShapes asks for the rest.
BATON_DLL DynamicShapes ReadDynamicShapes(const support::Json& j);

template <class Ints>
void WriteInts(support::JsonWriter* w, const Ints& ints) {
  w->BeginArray();
  for (int64_t n : ints) w->Int(n);
  w->EndArray();
}

inline void WriteDynamicShapes(support::JsonWriter* w, const DynamicShapes& shapes) {
  w->BeginObject();
  w->Key("sizes");
  w->String(shapes.sizes);
  w->Key("facts");
  WriteInts(w, std::vector<int64_t>{shapes.words, shapes.reads_values});
  w->Key("dims");
  w->BeginArray();
  for (const Dim& d : shapes.dims) {
    w->BeginObject();
    w->Key("name");
    w->String(d.name);
    w->Key("bounds");
    WriteInts(w, std::vector<int64_t>{d.min, d.max, d.multiple});
    w->EndObject();
  }
  w->EndArray();
  w->Key("extents");
  w->BeginArray();
  for (const std::vector<int32_t>& words : shapes.extents) WriteInts(w, words);
  w->EndArray();
  w->Key("buffers");  // first and last step, words of size and offset
  std::vector<int64_t> buffers;
  for (const DynamicBuffer& b : shapes.buffers) buffers.insert(buffers.end(), {b.first, b.last, b.bytes, b.offset});
  WriteInts(w, buffers);
  w->EndObject();
}

}  // namespace baton::runtime
