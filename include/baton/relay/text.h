// SPDX-License-Identifier: Apache-2.0
// Relay's text form, version 0.0.5: printing and parsing. parse(print(m)) is structurally equal to m.
#pragma once

#include <baton/relay/expr.h>

#include <string>
#include <string_view>

namespace baton::relay {

struct TextOptions {
  /// Begin with the version, and end with the section that holds what is said by number (`meta[relay.Constant][0]`):
  /// needed to read the text back.
  bool meta_data = true;
  /// Gets the objects that are said by number, by type key, as lists; the text then has no such section. Types
  /// that are many levels deep are said by number then, so that the text of nested functions has no more than a line's
  /// worth of each.
  Map<String, Any>* objects = nullptr;
  /// Say types of calls and constants that are known, and names of their spans, as comments.
  bool types = false;
  /// Gives what is to be said of a call, as a comment behind it; nothing if the text is empty. Null for no comments.
  std::string (*annotate)(const CallNode* call, void* context) = nullptr;
  void* annotate_context = nullptr;
};

/// Text of a module, a function, an expression, a type or a pattern. Deterministic; takes any depth.
BATON_DLL std::string PrintText(const ObjectRef& obj, const TextOptions& options = {});

/// Reads a module; a text that is one expression gives a module whose `main` it is. `source_name` is what errors and
/// spans call the text. Throws CompileError with all that is wrong (the first 20), each with place and caret.
/// Braces, brackets and parentheses may lie 50,000 deep within each other; sequences and chains are not bounded.
/// The functions and data types of `mod` (may be null) come first, and the text may use them. `objects` are those of a
/// text that was printed with TextOptions::objects.
BATON_DLL IRModule ParseModule(std::string_view text, const std::string& source_name = "<text>",
                               const IRModule& mod = IRModule(), const Map<String, Any>& objects = {});
/// Reads one expression, which may use the functions and data types of `mod` (may be null).
BATON_DLL RelayExpr ParseExpr(std::string_view text, const std::string& source_name = "<text>",
                              const IRModule& mod = IRModule());

}  // namespace baton::relay
