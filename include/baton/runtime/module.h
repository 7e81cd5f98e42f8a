// SPDX-License-Identifier: Apache-2.0
// Module: compiled code from a loaded file, the JIT, or source text.
#pragma once

#include <baton/runtime/executor.h>
#include <baton/runtime/packed_func.h>
#include <baton/runtime/string.h>

#include <string>
#include <string_view>
#include <vector>

namespace baton::runtime {

class Module;

/// Base of all kinds of modules. Thread-safe once it is built.
class BATON_DLL ModuleNode : public Object {
 public:
  static constexpr const char* _type_key = "runtime.Module";
  static constexpr uint32_t _type_index = TypeIndex::kRuntimeModule;
  static constexpr uint32_t _type_child_slots = 0;

  virtual ~ModuleNode() = default;
  /// The kind: "library", "llvm", "executor", ...
  virtual const char* type_key() const = 0;
  /// A function of this module, null if there is none. The function keeps `self` alive.
  virtual PackedFunc GetFunction(std::string_view name, const ObjectPtr<Object>& self) = 0;
  /// Address of a symbol of the compiled code, null if there is none. Valid as long as the module.
  virtual void* GetSymbol(const char* name);
  /// Returns the description of the model in this module, null if it holds no model. Lives as long as the module.
  virtual const ExecutableDesc* GetExecutable() const;
  /// Source or text in a format ("ll", "asm", "json", ...); throws UnsupportedError for an unknown format.
  virtual std::string GetSource(std::string_view format);
  /// Writes the module to a file, whole or not at all; throws UnsupportedError if this kind cannot be saved.
  virtual void SaveToFile(const std::string& path, std::string_view format);

  const std::vector<Module>& imports() const { return imports_; }
  void Import(Module other);
  /// The function that code of this module calls by a name: of an import, else registered. It stays as long as this.
  Object* Resolve(const char* name);
  /// Number of such look-ups so far.
  int64_t num_lookups() const { return static_cast<int64_t>(resolved_.size()); }

  BATON_DECLARE_BASE_OBJECT_INFO(ModuleNode, Object)

 protected:
  std::vector<Module> imports_;

 private:
  std::vector<ObjectRef> resolved_;  // what code holds pointers to
};

class BATON_DLL Module : public ObjectRef {
 public:
  Module() = default;
  explicit Module(ObjectPtr<Object> n) : ObjectRef(std::move(n)) {}
  using ContainerType = ModuleNode;
  ModuleNode* get() const { return static_cast<ModuleNode*>(data_.get()); }
  ModuleNode* operator->() const { return get(); }

  /// A function by name, from the imports too if asked for; null if there is none. A module that holds a model has a
  /// function "default", too: it takes devices (none: the CPU) and gives a new executor.
  PackedFunc GetFunction(std::string_view name, bool query_imports = false) const;
  /// Loads by content, not by file name. Throws RuntimeError if the file is not a module.
  static Module LoadFromFile(const std::string& path);
};

/// The PackedFunc of a function in compiled code. `spec`: its BatonFunctionSpec; `owner` keeps the code loaded.
BATON_DLL PackedFunc MakeNativeFunction(const void* spec, ObjectPtr<Object> owner);
/// The prefix of the symbols of such descriptions.
inline constexpr const char* kFunctionSpecPrefix = "baton_spec_";
/// The variable of compiled code that holds its ModuleNode.
inline constexpr const char* kModuleSymbol = "baton_module";

/// Makes a module of a node class: `MakeModule<MyNode>(arguments of its constructor)`.
template <class N, class... A>
Module MakeModule(A&&... args) {
  N* n = new N(std::forward<A>(args)...);
  ObjectAccess::Init(n, ModuleNode::RuntimeTypeIndex(),
                     [](Object* o) { delete static_cast<N*>(static_cast<ModuleNode*>(o)); });
  return Module(ObjectPtr<Object>(n));
}

}  // namespace baton::runtime

namespace baton {
using runtime::Module;
using runtime::ModuleNode;
}  // namespace baton
