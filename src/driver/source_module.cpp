// SPDX-License-Identifier: Apache-2.0
// Modules that are source text: kept, shown and written to files; a compiler of the program's own makes code of them.
#include <baton/runtime/array.h>
#include <baton/runtime/error.h>
#include <baton/runtime/module.h>
#include <baton/runtime/registry.h>

#include <fstream>
#include <string>

namespace baton::driver {
namespace {

using runtime::Args;
using runtime::Array;
using runtime::MakeModule;
using runtime::MakeTyped;
using runtime::ModuleNode;
using runtime::ObjectPtr;
using runtime::PackedFunc;
using runtime::RetValue;
using runtime::RuntimeError;
using runtime::String;

class SourceModule final : public ModuleNode {
 public:
  SourceModule(std::string source, std::string format, Array<String> names)
      : source_(std::move(source)), format_(std::move(format)), names_(std::move(names)) {}

  const char* type_key() const final { return "c"; }
  PackedFunc GetFunction(std::string_view name, const ObjectPtr<runtime::Object>&) final {
    if (name == "get_symbol" && !names_.empty()) return MakeTyped([first = names_[0]] { return first; }, "get_symbol");
    if (name == "get_func_names") return MakeTyped([names = names_] { return names; }, "get_func_names");
    return PackedFunc();
  }
  std::string GetSource(std::string_view) final { return source_; }
  void SaveToFile(const std::string& path, std::string_view format) final {
    if (!format.empty() && format != format_)
      throw UnsupportedError("a module of source `" + format_ + "` is not written as `" + std::string(format) + "`");
    std::ofstream out(path, std::ios::binary);
    if (!(out << source_) || !out.flush()) throw RuntimeError("`" + path + "` cannot be written");
  }

 private:
  std::string source_, format_;
  Array<String> names_;
};

/// (source, format, names of its functions, names of its constants): the module of a source.
BATON_REGISTER_GLOBAL("runtime.CSourceModuleCreate").set_body([](Args args, RetValue* rv) {
  Array<String> names =
      args.size() > 2 && args[2].type_code() != kBatonNull ? args[2].As<Array<String>>() : Array<String>();
  *rv = MakeModule<SourceModule>(args[0].As<std::string>(), args[1].As<std::string>(), std::move(names));
});
BATON_REGISTER_GLOBAL("runtime.SourceModuleCreate").set_body([](Args args, RetValue* rv) {
  *rv = MakeModule<SourceModule>(args[0].As<std::string>(), args[1].As<std::string>(), Array<String>());
});

}  // namespace
}  // namespace baton::driver
