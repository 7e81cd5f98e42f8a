// SPDX-License-Identifier: Apache-2.0
// The global table from name to PackedFunc. Safe to read while written.
#pragma once

#include <baton/runtime/packed_func.h>
#include <baton/runtime/string.h>

#include <string>
#include <string_view>
#include <vector>

namespace baton::runtime {

class BATON_DLL Registry {
 public:
  /// Sets the body; a second one for the same name is an error unless overriding was asked for.
  Registry& set_body(PackedFunc f);
  template <class F>
  Registry& set_body_typed(F f) {
    return set_body(MakeTyped(std::move(f), name_.c_str()));
  }
  Registry& describe(const char* doc) {
    doc_ = doc;
    return *this;
  }
  const std::string& name() const { return name_; }

  /// Makes an entry. A taken name is an error unless `can_override`.
  static Registry& Register(const std::string& name, bool can_override = false);
  static bool Remove(const std::string& name);
  /// The function, or null. The pointer stays valid until the entry is removed.
  static const PackedFunc* Get(const std::string& name);
  static std::vector<std::string> ListNames();

 private:
  std::string name_;
  std::string doc_;
  PackedFunc func_;
  bool can_override_ = false;
  friend struct RegistryTable;
};

/// A global function that `library`, beside this one, registers: the library is loaded where the function is
/// not there yet. `why`: how the error begins, "the model has control flow".
BATON_DLL const PackedFunc& FunctionBeside(const std::string& name, const char* library, std::string_view why);

}  // namespace baton::runtime

namespace baton {
using runtime::Registry;
}

#define BATON_CONCAT_(a, b) a##b
#define BATON_CONCAT(a, b) BATON_CONCAT_(a, b)
/// Registers a global function: BATON_REGISTER_GLOBAL("name").set_body_typed(f);
#define BATON_REGISTER_GLOBAL(Name)                                                                  \
  [[maybe_unused]] static ::baton::runtime::Registry& BATON_CONCAT(baton_registered_, __COUNTER__) = \
      ::baton::runtime::Registry::Register(Name)
