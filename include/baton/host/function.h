// SPDX-License-Identifier: Apache-2.0
// Functions over arrays of the host: what operators compute whose result's length depends on values, or that loops do
// not express well. They take arrays and plain parameters, so a compiled program calls them without the compiler.
#pragma once

#include <baton/runtime/array.h>
#include <baton/runtime/ndarray.h>
#include <baton/support/json.h>

#include <string>
#include <string_view>
#include <vector>

namespace baton::host {

using Arrays = runtime::Array<runtime::NDArray>;

/// Parameters by name: numbers, strings, lists of them, data types by name; null is "not given". Asking for one that is
/// missing or of another kind is a RuntimeError that names function and parameter.
class BATON_DLL Params {
 public:
  Params(std::string function, support::Json values);
  /// Reads what Dump wrote.
  static Params Parse(std::string function, std::string_view json);
  std::string Dump() const { return values_.Dump(true, true); }

  /// The operator's name, which errors begin with.
  const std::string& function() const { return function_; }
  bool Has(const char* name) const;
  int64_t Int(const char* name) const;
  bool Bool(const char* name) const;
  double Double(const char* name) const;
  const std::string& Text(const char* name) const;
  DataType Dtype(const char* name) const;
  std::vector<int64_t> Ints(const char* name) const;
  std::vector<double> Doubles(const char* name) const;
  /// For what may be of several kinds.
  const support::Json& At(const char* name) const;
  [[noreturn]] void Fail(const std::string& what) const;

 private:
  std::string function_;
  support::Json values_;
};

/// Gives its results, freshly allocated. The arrays are dense and on the CPU.
using Function = Arrays (*)(const Params& params, const Arrays& in);

/// Registers the global function "host.<operator>": given parameters as JSON, it gives the function over arrays.
struct BATON_DLL Register {
  /// `arrays`: how many the function takes.
  Register(const char* op, int arrays, Function function);
};

}  // namespace baton::host
