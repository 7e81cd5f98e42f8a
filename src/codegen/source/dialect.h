// SPDX-License-Identifier: Apache-2.0
// A language of C's family as the printer sees it: a table.
#pragma once

#include <baton/runtime/data_type.h>
#include <baton/tir/expr.h>
#include <baton/tir/intrin.h>

#include <map>
#include <set>
#include <string>
#include <vector>

namespace baton::codegen::source {

/// The needs of a text beyond the language's core: extensions, and functions that are defined before it.
struct Needs {
  bool fp64 = false, fp16 = false;
  std::set<std::string> builtins;
  std::string function = {};  ///< that is written now, for errors
};

struct Dialect;
class Printer;

/// A call of an intrinsic whose arguments are texts already.
struct TextCall {
  const Dialect& dialect;
  const tir::CallNode* op;
  std::vector<std::string> args;
  Needs* needs;
  std::string Type() const;
  /// `function(arguments)`
  std::string Of(const std::string& function) const;
  /// The same of a function of mathematics, whose name says its type where the language wants it.
  std::string OfMath(const std::string& function) const;
  /// The same of a builtin.
  std::string OfBuiltin(const std::string& name) const;
};

/// An intrinsic in a language: the text of a call, "" for dtypes that it does not take; or why there is none; or what
/// writes the call itself, whose arguments are not texts yet, and returns its value.
struct IntrinText {
  std::string (*text)(const TextCall& call) = nullptr;
  const char* refused = nullptr;
  std::string (*written)(Printer& printer, const tir::CallNode* op) = nullptr;
};

/// How a language writes what all have. The functions that end in C are those of C's family.
struct Syntax {
  std::string (*cast)(const std::string& type, const std::string& value);
  std::string (*choose)(const std::string& condition, const std::string& yes, const std::string& no);
  /// The definition of a name that keeps its value.
  std::string (*constant)(const std::string& type, const std::string& name, const std::string& value);
  /// That of a variable; `value`: "" for none.
  std::string (*variable)(const std::string& type, const std::string& name, const std::string& value);
  std::string (*array)(const std::string& type, const std::string& name, int64_t count);
  /// A variable becomes one more.
  std::string (*step)(const std::string& name);
  /// A statement under a condition.
  std::string (*when)(const std::string& condition, const std::string& statement);
  const char* forever;  ///< the head of a loop without an end
  /// NaN or an infinity.
  std::string (*not_finite)(double value, const std::string& type, Needs* needs);
  /// The name of a function of mathematics for a dtype.
  std::string (*math)(const std::string& name, DataType t, Needs* needs);
  bool wraps;  ///< sums of integers with signs wrap, and truth values are not numbers
};
/// `suffixed`: functions of float32 end in f.
extern const Syntax kSyntaxC, kSyntaxSuffixed;

struct Dialect {
  const char* language;  ///< in errors
  const Syntax* syntax;
  const char* ints[4];           ///< of 8 to 64 bits; null: the language has none
  const char* uints[4];          ///< the same without a sign
  const char* floats[4];         ///< float16 and bfloat16, whose bits they may be, float32 and float64
  const char* truth;             ///< a bool in memory
  const char* mend;              ///< what to do about a dtype that it lacks
  const char* wide[2];           ///< what is around a literal of int64
  const char* unsigned_wide[2];  ///< of uint64
  const char* least[2];          ///< the smallest int32 and int64
  const char* most[4];           ///< the largest int32, int64, uint32 and uint64, for AddPlainBuiltins
  bool suffixed;                 ///< no function is overloaded
  bool narrow;                   ///< the type of int64 has 32 bits: indices and sizes alone are of it
  /// Own intrinsics; null for those that all languages have, and for unknown ones.
  const IntrinText* (*intrin)(const tir::IntrinDef* row);
  /// Definitions of builtins by name.
  const std::map<std::string, std::string>& (*builtins)();

  /// "float" for a scalar in a register; bool is a bool. Throws UnsupportedError for a dtype that the language has no
  /// values of.
  std::string TypeName(runtime::DataType t, Needs* needs) const;
  /// The same in memory. Throws for int64 too where it is narrow.
  std::string MemoryTypeName(runtime::DataType t, Needs* needs) const;
  /// Throws UnsupportedError.
  [[noreturn]] void Lack(runtime::DataType t, const Needs& needs) const;
  /// Null where there is no such intrinsic.
  const IntrinText* TextOf(const tir::IntrinDef* row) const;
  /// The definitions of functions, in an order in which each comes after what it calls.
  std::string Definitions(const std::set<std::string>& names) const;
};

inline bool IsHalf(runtime::DataType t) { return t.is_floating() && t.bits() == 16; }
/// "i32", as in the names of builtins.
std::string SuffixOf(runtime::DataType t);

/// The intrinsics that all languages have.
const tir::IntrinColumn<IntrinText>& CommonColumn();
/// Returns these and those of a language's own column.
std::vector<Op> WithCommon(const tir::IntrinColumn<IntrinText>& own);

/// Definitions of builtins of integers and floats, which differ by names of types alone. `head`: before each.
std::map<std::string, std::string> CommonBuiltins(const Dialect& dialect, const std::string& head);
/// Adds, for languages without functions for them: smaller and larger integers, "abs", "popcount", conversions of half
/// floats, casts of bits ("bits_f32_i32"), and floats to integers within their limits ("sat_i32_f32"). The texts use
/// memcpy, uint16_t, uint32_t and int32_t.
void AddPlainBuiltins(std::map<std::string, std::string>* all, const Dialect& dialect, const std::string& head);
/// Calls of them.
std::string PlainAbs(const TextCall& call);
std::string PlainPopcount(const TextCall& call);
std::string PlainReinterpret(const TextCall& call);
/// Adds `text` for each integer type as "NAME_i32". Letters in it: T the type, U its unsigned twin, V that with at
/// least 32 bits, S the suffix of names, W the bits.
void AddForInts(std::map<std::string, std::string>* all, const Dialect& dialect, const std::string& name,
                const std::string& text);

}  // namespace baton::codegen::source
