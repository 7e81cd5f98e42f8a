// SPDX-License-Identifier: Apache-2.0
// Text of objects piece by piece: that of a large program, which is ten times its size, is never whole in memory.
#pragma once

#include <baton/runtime/object.h>
#include <baton/support/export.h>

#include <string_view>

namespace baton {

/// Takes a text in pieces of whole characters.
struct TextSink {
  void (*write)(std::string_view piece, void* context);
  void* context;
};
/// What AsText gives, written to `sink`.
BATON_DLL void WriteText(const runtime::ObjectRef& obj, bool show_meta_data, const TextSink& sink);
/// A printer for some kinds of objects that can do so, of those that AsText knows. `accepts` is asked in order of
/// registration; what none accepts is written whole.
struct TextWriter {
  bool (*accepts)(const runtime::Object* obj);
  void (*write)(const runtime::ObjectRef& obj, bool show_meta_data, const TextSink& sink);
};
BATON_DLL void RegisterTextWriter(TextWriter writer);

}  // namespace baton
