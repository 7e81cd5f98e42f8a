// SPDX-License-Identifier: Apache-2.0
// Text of objects in pieces. The text of a large program is ten times its size, so it is never held in memory as a
// whole.
#pragma once

#include <baton/runtime/object.h>
#include <baton/support/export.h>

#include <string_view>

namespace baton {

/// Receives a text in pieces of whole characters.
struct TextSink {
  void (*write)(std::string_view piece, void* context);
  void* context;
};
/// Writes the text of AsText to `sink`.
BATON_DLL void WriteText(const runtime::ObjectRef& obj, bool show_meta_data, const TextSink& sink);
/// A streaming printer for some kinds of objects. `accepts` is asked in order of registration; an object that none
/// accepts is written in one piece.
struct TextWriter {
  bool (*accepts)(const runtime::Object* obj);
  void (*write)(const runtime::ObjectRef& obj, bool show_meta_data, const TextSink& sink);
};
BATON_DLL void RegisterTextWriter(TextWriter writer);

}  // namespace baton
