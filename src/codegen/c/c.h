// SPDX-License-Identifier: Apache-2.0
// C99 of PrimFuncs.
#pragma once

#include <baton/codegen/backend.h>
#include <baton/ir/module.h>
#include <baton/tir/stmt.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "codegen/source/dialect.h"

namespace baton::codegen::c {

extern const source::Dialect kDialect;
/// Null for intrinsics that all languages have. The column is in intrinsics.cpp.
const source::IntrinText* OwnText(const tir::IntrinDef* row);
const std::map<std::string, std::string>& Builtins();

/// The definitions that the functions of a file need before them.
struct FileNeeds : source::Needs {
  bool errors = false;                         ///< they report errors
  bool index_errors = false;                   ///< they report indices out of range
  bool packed = false;                         ///< they call functions by name
  bool tensors = false;                        ///< with tensors
  std::map<std::string, std::string> externs;  ///< declarations of C functions by name
  std::map<std::string, std::string> slots;    ///< variables that keep functions, by the functions' names
};

/// The names of a module's functions in C, by their symbols: another where the symbol is not a word of C.
using Symbols = std::map<std::string, std::string>;
/// A name that C takes: `name` with `_` in the place of what it does not take.
std::string Word(const std::string& name);
/// A text as a literal of C.
std::string Quoted(const std::string& text);
/// Symbol of a function: its global_symbol attribute, else the variable's name.
std::string SymbolOf(const GlobalVar& var, const BaseFunc& func);

struct FunctionText {
  std::string head;             ///< "int32_t f(void* x_0)"
  std::string body;             ///< in braces
  std::set<std::string> calls;  ///< symbols of functions of the module
};
/// Throws UnsupportedError that names the function for what C cannot do.
FunctionText PrintFunction(const IRModule& mod, const Symbols& symbols, const std::string& symbol,
                           const tir::PrimFunc& f, FileNeeds* needs);

/// A file of C99 with the functions of a module. `closed`: others see none of it, and it knows no runtime.
std::string PrintModule(const IRModule& mod, bool closed = false);
/// A static model as a file and its header.
SourceFiles PrintModel(const StaticModel& model);

/// The object file of a text by the system's compiler. Throws UnsupportedError that says what to install where there is
/// none, and InternalError with the compiler's words where it refuses the text.
std::string CompileC(const std::string& text, const Target& target);
/// Why there is no compiler for a target, and what to do; "" where there is one.
std::string WhyNoCompiler(const Target& target);
/// Features of the processor that its code may use.
std::vector<std::string> FeaturesOf(const Target& target);

}  // namespace baton::codegen::c
