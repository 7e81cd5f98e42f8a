// SPDX-License-Identifier: Apache-2.0
// Structural equality and hash, from the field tables. Bound variables are equal up to renaming.
// Linear in the size of the graph; no recursion.
#pragma once

#include <baton/runtime/reflection.h>

namespace baton {

/// Equal iff all fields are. Bound variables are equal up to renaming; `map_free_vars` maps free ones to each other in
/// order of first sight, else a free variable is equal only to itself. GlobalVars compare by name, functions of a
/// module by name, maps by key, NDArrays by content, floats by their bits (0.0 is not -0.0; all NaN are one). Null
/// equals an empty array or map. Relay expressions compare as graphs: both sides must share the same subexpressions.
/// If they differ, `*where` (if given) gets the access path and both sides: ".functions[@main].body.args[1]: %x
/// against %y".
BATON_DLL bool StructuralEqual(const ObjectRef& a, const ObjectRef& b, bool map_free_vars = false,
                               std::string* where = nullptr);
/// Equal objects have equal hashes; the same in every process, so free variables count by their names.
BATON_DLL uint64_t StructuralHash(const ObjectRef& a, bool map_free_vars = false);

/// For hash maps keyed by structure.
struct StructuralHasher {
  size_t operator()(const ObjectRef& r) const { return StructuralHash(r); }
};
struct StructuralEq {
  bool operator()(const ObjectRef& a, const ObjectRef& b) const { return StructuralEqual(a, b); }
};

/// JSON of any object graph, versioned; shared nodes stay shared, constants keep their bits. Source locations are kept
/// (file, line and column; not the file's folder or text), unless `sources` is false.
BATON_DLL std::string SaveJSON(const ObjectRef& obj, bool sources = true);
/// Reads this format, and the JSON graphs that Relay saves. Malformed input is an error with its position.
BATON_DLL ObjectRef LoadJSON(const std::string& text);

/// Text of any object: Relay text for Relay, TIR text for TIR, else its fields.
BATON_DLL std::string AsText(const ObjectRef& obj, bool show_meta_data = true);
/// A printer for some kinds of objects; the layer of each IR registers its own. `accepts` is asked in order of
/// registration.
struct TextPrinter {
  bool (*accepts)(const runtime::Object* obj);
  std::string (*print)(const ObjectRef& obj, bool show_meta_data);
};
BATON_DLL void RegisterTextPrinter(TextPrinter printer);

}  // namespace baton
