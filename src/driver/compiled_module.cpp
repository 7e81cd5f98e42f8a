// SPDX-License-Identifier: Apache-2.0
#include "driver/compiled_module.h"

#include <baton/codegen/backend.h>
#include <baton/ir/structural.h>
#include <baton/runtime/bytes.h>
#include <baton/support/file.h>
#include <baton/support/json.h>
#include <baton/support/with.h>
#include <baton/tir/expr.h>
#include <baton/tir/printer.h>
#include <baton/vm/imports.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <utility>

#include "driver/archive.h"
#include "driver/c_functions.h"
#include "driver/changing_weights.h"
#include "driver/save_imports.h"
#include "driver/step_functions.h"
#include "driver/vm/compile.h"
#include "driver/write_artifact.h"

namespace baton::driver {
namespace {

/// PrimFuncs for people, one after the other.
void AppendTir(const IRModule& mod, std::string* out) {
  if (!mod.defined()) return;
  for (const auto& [var, func] : mod->functions) {
    if (!out->empty()) *out += "\n";
    *out += tir::AsText(func);
    if (out->back() != '\n') *out += "\n";
  }
}

/// The module, and behind it what became of the regions of a planned program: those are optimised one by one.
std::string RelayText(const IRModule& mod, const LoweredProgram* program) {
  if (!program || program->program.devices.empty()) return AsText(mod);
  IRModule all = mod.Copy();
  for (const auto& [symbol, graph] : program->graphs) all.CopyOnWrite()->Update(GlobalVar(String(symbol)), graph);
  return AsText(all);
}

/// As in the manifest of an artifact.
std::string ProgramJson(const vm::Program& program) {
  std::string data, out;
  support::JsonWriter w(&out);
  w.BeginObject();
  w.Key("program");
  w.String(program.Save(&data));
  w.EndObject();
  return out;
}

/// Code of each of a program's devices.
std::vector<std::string> EmitForDevices(const LoweredProgram& made) {
  std::vector<std::string> code(made.program.devices.size());
  for (const DeviceKernels& d : made.devices) {
    code[d.device] = codegen::BackendOf(d.target).emit(d.mod, d.target, {}).text;
  }
  return code;
}

/// The program with the code of its devices.
vm::Program WithCode(const Stages& stages, const LoweredProgram& made) {
  vm::Program program = made.program;
  const std::vector<std::string> code = stages.device_code.empty() ? EmitForDevices(made) : stages.device_code;
  for (size_t d = 0; d < code.size(); ++d) program.devices[d].code = code[d];
  return program;
}

std::string DeviceText(const Stages& stages, const LoweredProgram& made, const std::string& format,
                       codegen::DebugLevel debug) {
  for (const DeviceKernels& d : made.devices) {
    const codegen::Backend& backend = codegen::BackendOf(d.target);
    if (!backend.HasFormat(format)) continue;
    if (format == backend.formats[0] && !stages.device_code.empty()) return stages.device_code[d.device];
    return backend.print(d.mod, d.target, format, debug);
  }
  throw UnsupportedError("the program has no part that runs on " + format);
}

}  // namespace

void Emit(const Target& host, Stages* stages) {
  const codegen::DebugLevel debug = DebugOptions::FromContext().level;
  const bool steps = stages->lowering.defined() && debug != codegen::DebugLevel::kNone;
  const IRModule tir = steps ? WithStepFunctions(stages->tir) : stages->tir;
  stages->objects = codegen::BackendOf(host).emit(tir, host, {.debug = debug}).objects;
  if (stages->lowering.defined()) stages->device_code = EmitForDevices(*stages->lowering.Made());
}

std::string StageText(const Stages& stages, const Target& host, const std::string& format, codegen::DebugLevel debug) {
  const std::shared_ptr<const LoweredProgram> made = stages.lowering.defined() ? stages.lowering.Made() : nullptr;
  const bool program = made && !made->is_function();
  if (format == "relay" && stages.relay.defined()) return RelayText(stages.relay, made.get());
  if (format == "tir") {
    std::string text;
    AppendTir(stages.loops.defined() ? stages.loops : stages.tir, &text);
    for (const DeviceKernels& d : made ? made->devices : std::vector<DeviceKernels>()) AppendTir(d.mod, &text);
    return text;
  }
  if (program && format == "vm") return made->program.Disassemble();
  if (program && format == "json") return ProgramJson(WithCode(stages, *made));
  const codegen::Backend& backend = codegen::BackendOf(host);
  if (program && !backend.HasFormat(format) && codegen::IsDeviceFormat(format)) {
    return DeviceText(stages, *made, format, debug);
  }
  if (format.empty()) return backend.print(stages.tir, host, backend.formats[0], debug);
  if (backend.HasFormat(format)) return backend.print(stages.tir, host, format, debug);
  std::string known = stages.relay.defined() ? "relay, " : "";
  if (program) known += "vm, ";
  known += "tir, ";
  if (program) known += "json, ";
  known += backend.formats.front() + (backend.formats.size() > 1 ? ", " + backend.formats.back() : "");
  if (program && !made->program.devices.empty()) known += ", and the kind of a device's target";
  throw UnsupportedError("no source in format \"" + format + "\"; there are " + known);
}

namespace {

class CompiledModule : public runtime::ModuleNode {
 public:
  CompiledModule(Stages stages, Target host)
      : stages_(std::move(stages)),
        host_(std::move(host)),
        made_(stages_.lowering.defined() ? stages_.lowering.Made() : nullptr) {
    if (!made_) return;
    if (runs_here()) LoadCode();
    constants_ = PackConstants(made_->host.constants, WeightsChange() ? &remade_ : nullptr);
    desc_ = made_->desc;
    if (desc_.target.empty()) desc_.target = host_.str();
    desc_.features = stages_.objects.features;
    desc_.constants = constants_.ptr<uint8_t>();
    desc_.constants_bytes = made_->host.constants.bytes;
  }

  /// Makes the parts that hold the module itself.
  void Connect(const runtime::Module& self) {
    if (is_program()) {
      auto exe = std::make_shared<vm::Executable>();
      exe->program = WithCode(stages_, *made_);
      exe->code = code_;
      exe->constants = desc_.constants;
      exe->constants_bytes = desc_.constants_bytes;
      exe->constants_owner = constants_;
      exe->device_code = vm::DeviceModulesOf(self, exe->program.devices);
      exe->steps = desc_.steps;
      executable_ = std::move(exe);
    }
  }

  const char* type_key() const override { return is_program() ? "vm" : made_ ? "aot" : "llvm"; }
  void* GetSymbol(const char* name) override {
    LoadWaiting();
    if (const runtime::Module& code = Code(); code.defined()) return code->GetSymbol(name);
    CheckCode();
    if (!made_) return nullptr;
    throw UnsupportedError("code for `" + host_.str() +
                           "` does not run on this machine; save it and load it there, or `baton.rpc.deploy`");
  }
  const runtime::ExecutableDesc* GetExecutable() const override { return made_ && !is_program() ? &desc_ : nullptr; }
  PackedFunc GetFunction(std::string_view name, const ObjectPtr<Object>& self) override {
    if (name == "archive") {
      return PackedFunc([self, this](runtime::Args, runtime::RetValue* rv) { *rv = Archive(); });
    }
    if (name == "repack" && made_) {
      return PackedFunc([self, this](runtime::Args, runtime::RetValue* rv) { *rv = Repack(); });
    }
    if (is_program()) return OfProgram(name, self);
    return made_ ? OfModel(name, self) : OfFunctions(name, self);
  }
  std::string GetSource(std::string_view format) override { return StageText(stages_, host_, std::string(format)); }
  void SaveToFile(const std::string& path, std::string_view format) override;

 private:
  /// Code for another kind of machine is for saving.
  bool runs_here() const {
    return host_->mtriple.empty() && !stages_.tir->functions.empty() && stages_.objects.missing.empty();
  }
  /// Throws UnsupportedError where no code was made of the source.
  void CheckCode() const {
    if (!stages_.objects.missing.empty())
      throw UnsupportedError("the module is source alone: " + stages_.objects.missing);
  }
  /// Loads a model's code, unless it calls a C function that is not there yet: it can be saved all the same.
  void LoadCode() {
    absent_ = AbsentCFunction(stages_.tir);
    if (!absent_.empty()) return;
    code_ = codegen::LoadObjects(stages_.objects);
    if (!is_program()) FindsHere(code_);  // its executors keep this module
    if (executable_) executable_->code = code_;
  }
  /// Loads what waits for a C function. Throws RuntimeError where that is not there yet.
  void LoadWaiting() {
    std::lock_guard lock(mutex_);
    if (absent_.empty()) return;
    LoadCode();
    ThrowIfAbsent(absent_);
  }
  /// A program's functions are loaded when the first of them is asked for: what they call may come with a library
  /// later, and their source shows before.
  const runtime::Module& Code() {
    std::lock_guard lock(mutex_);
    if (code_.defined() || made_ || !runs_here()) return code_;
    runtime::Module code = codegen::LoadObjects(stages_.objects);
    FindsHere(code);
    return code_ = std::move(code);
  }
  /// Code looks its functions up in what this module imports.
  void FindsHere(const runtime::Module& code) {
    if (void* place = code->GetSymbol(runtime::kModuleSymbol)) *static_cast<runtime::ModuleNode**>(place) = this;
  }
  /// A program's machines keep its code, and not this module: the code imports what this module does.
  void ShareImports() {
    std::lock_guard lock(mutex_);
    if (!code_.defined()) return;
    for (const runtime::Module& m : OfOthers()) {
      const auto& known = code_->imports();
      if (std::none_of(known.begin(), known.end(), [&](const auto& k) { return k.get() == m.get(); })) code_->Import(m);
    }
  }
  /// Returns its imports without the code of a program's devices, which is part of the program.
  std::vector<runtime::Module> OfOthers() const {
    std::vector<runtime::Module> out;
    for (const runtime::Module& m : imports()) {
      const auto is_own = [&](const runtime::Module& d) { return d.get() == m.get(); };
      if (!executable_ || std::none_of(executable_->device_code.begin(), executable_->device_code.end(), is_own)) {
        out.push_back(m);
      }
    }
    return out;
  }
  bool is_program() const { return made_ && !made_->is_function(); }
  /// Makes constants that have a source again, in their places. Returns how many there are.
  int64_t Repack() {
    for (const RemadeConstant& c : remade_) {
      const NDArray made = c.source().As<NDArray>().Contiguous();
      memcpy(constants_.ptr<uint8_t>() + c.offset, made.data(), made.nbytes());
    }
    return static_cast<int64_t>(remade_.size());
  }
  PackedFunc OfModel(std::string_view name, const ObjectPtr<Object>& self);
  PackedFunc OfProgram(std::string_view name, const ObjectPtr<Object>& self);
  PackedFunc OfFunctions(std::string_view name, const ObjectPtr<Object>& self);
  void SaveLibrary(const std::string& path) const;
  Map<String, runtime::Bytes> Archive() const;
  void SaveSource(const std::string& path, const codegen::Backend& backend) const;

  Stages stages_;
  Target host_;
  std::shared_ptr<const LoweredProgram> made_;
  std::mutex mutex_;      // of functions that are loaded
  runtime::Module code_;  // null for another kind of machine
  NDArray constants_;
  std::vector<RemadeConstant> remade_;  // of weights that change
  runtime::ExecutableDesc desc_;
  std::string absent_;                          // a C function that code waits for
  std::shared_ptr<vm::Executable> executable_;  // of a program
};

/// The executor's factory comes from the runtime, which asks for GetExecutable.
PackedFunc CompiledModule::OfModel(std::string_view name, const ObjectPtr<Object>& self) {
  if (name == "guards") {
    return PackedFunc([self, this](runtime::Args, runtime::RetValue* rv) { *rv = stages_.lowering->guards; });
  }
  return nullptr;
}

PackedFunc CompiledModule::OfProgram(std::string_view name, const ObjectPtr<Object>& self) {
  if (name == "default") {
    return PackedFunc([self, this](runtime::Args args, runtime::RetValue* rv) {
      CheckCode();
      LoadWaiting();
      if (!stages_.tir->functions.empty() && !code_.defined()) {
        throw RuntimeError("the program was compiled for " + host_.str() + ", which is not this machine");
      }
      runtime::CheckFeatures(stages_.objects.features, "the program");
      ShareImports();
      std::vector<Device> devices;
      for (int i = 0; i < args.size(); ++i) devices.push_back(args[i].As<Device>());
      *rv = vm::CreateExecutor(executable_, devices);
    });
  }
  if (name == "called_back") {  // functions of this process, which a file cannot name
    return PackedFunc([self, this](runtime::Args, runtime::RetValue* rv) {
      Array<String> names;
      for (const vm::PackedSlot& s : made_->program.packed) {
        if (s.maker.empty()) names.push_back(String(s.name));
      }
      *rv = names;
    });
  }
  if (name == "why") return PackedFunc([self, this](runtime::Args, runtime::RetValue* rv) { *rv = made_->why; });
  return nullptr;
}

PackedFunc CompiledModule::OfFunctions(std::string_view name, const ObjectPtr<Object>& self) {
  const runtime::Module& code = Code();
  if (!code.defined()) {
    for (const auto& [var, func] : stages_.loops->functions) {
      if (name == "main" || func->GetAttr<String>(attr::kGlobalSymbol, var->name_hint).view() == name) CheckCode();
    }
    return nullptr;
  }
  void* spec = code->GetSymbol((runtime::kFunctionSpecPrefix + std::string(name)).c_str());
  // A single function is what calling the module means, whatever its name.
  if (!spec && name == "main" && stages_.loops->functions.size() == 1) {
    const auto [var, func] = *stages_.loops->functions.begin();
    const std::string own = func->GetAttr<String>(attr::kGlobalSymbol, var->name_hint).str();
    if (own != name) return OfFunctions(own, self);
  }
  if (!spec) return nullptr;
  runtime::CheckFeatures(stages_.objects.features, "`" + std::string(name) + "`");
  return runtime::MakeNativeFunction(spec, self);
}

void CompiledModule::SaveLibrary(const std::string& path) const {
  CheckCode();
  const SavedImports carried = SaveImports(OfOthers());
  codegen::ObjectCode objects = stages_.objects;
  if (!carried.data.empty()) objects.objects.push_back(codegen::DataObject(vm::kImportsSymbol, carried.data, host_));
  const std::string elf = codegen::LinkShared(objects, host_);
  if (!made_) {
    static const uint8_t nothing = 0;
    runtime::ExecutableDesc desc;
    desc.entry = "";  // functions, no model
    desc.features = stages_.objects.features;
    desc.target = host_.str();
    desc.constants = &nothing;
    runtime::WriteArtifact(path, elf.data(), elf.size(), desc, {}, {}, carried.rows);
    return;
  }
  runtime::ExecutableDesc desc = desc_;
  std::string own;  // constants of a program, behind those of kernels
  if (is_program()) {
    desc.program = executable_->program.Save(&own, desc_.constants_bytes);
    desc.constants_bytes += own.size();
  }
  runtime::WriteArtifact(path, elf.data(), elf.size(), desc, made_->guards, own, carried.rows);
}

/// Returns the files of an archive by their names, from which LoadArchive makes the module again: its code as an object
/// file, or as source where that is what the target makes, constants, manifest, imports, data.s, the digests of them
/// all.
Map<String, runtime::Bytes> CompiledModule::Archive() const {
  Map<String, runtime::Bytes> files;
  const codegen::Backend& backend = codegen::BackendOf(host_);
  if (backend.print_code) {
    files.Set("code." + backend.formats[0], runtime::Bytes(backend.print_code(stages_.tir)));
  } else {
    files.Set("code.o", runtime::Bytes(codegen::LinkObject(stages_.objects)));
  }
  const SavedImports carried = SaveImports(OfOthers());
  if (!carried.data.empty()) files.Set("imports.bin", runtime::Bytes(carried.data));
  runtime::ExecutableDesc desc = desc_;
  std::string constants;
  if (made_) {
    constants.assign(reinterpret_cast<const char*>(desc_.constants), desc_.constants_bytes);
    std::string own;
    if (is_program()) desc.program = executable_->program.Save(&own, desc_.constants_bytes);
    constants += own;
    desc.constants_bytes = constants.size();
  } else {
    desc.entry = "";
    desc.features = stages_.objects.features;
    desc.target = host_.str();
  }
  files.Set("constants.bin", runtime::Bytes(constants));
  files.Set("manifest.json", runtime::Bytes(runtime::ManifestOf(
                                 desc, made_ ? made_->guards : std::vector<std::string>(), nullptr, carried.rows)));
  files.Set(kDataFile, runtime::Bytes(DataSource(!carried.data.empty())));
  files.Set(kDigestsFile, runtime::Bytes(DigestsOf(files)));
  return files;
}

/// Functions as one file; a model as files side by side, named as `path` is.
void CompiledModule::SaveSource(const std::string& path, const codegen::Backend& backend) const {
  if (!made_) {
    return support::WriteFileAtomic(path,
                                    backend.print(stages_.tir, host_, backend.formats[0], codegen::DebugLevel::kNone));
  }
  if (is_program()) {
    throw UnsupportedError(
        "a program is saved as a shared library (.so), not as source, which would lose its bytecode: " + made_->why);
  }
  if (!OfOthers().empty()) {
    throw UnsupportedError("a module that imports others is saved as a shared library (.so), which carries them");
  }
  const size_t folder = path.rfind('/') + 1, dot = path.rfind('.');  // npos + 1 is 0
  const std::string stem = path.substr(0, dot == path.npos || dot < folder ? path.size() : dot);
  std::string name;
  for (const char c : stem.substr(folder)) name += isalnum(static_cast<unsigned char>(c)) ? c : '_';
  if (name.empty() || isdigit(static_cast<unsigned char>(name[0]))) name = "model_" + name;
  const codegen::StaticModel model{
      name, stages_.tir, desc_, {made_->host.constants.list.begin(), made_->host.constants.list.end()}};
  for (const auto& [ending, text] : backend.print_model(model)) support::WriteFileAtomic(stem + "." + ending, text);
}

void CompiledModule::SaveToFile(const std::string& path, std::string_view format) {
  if (format.empty() || format == "lib" || format == "so") return SaveLibrary(path);
  if (format == "obj" || format == "o") {
    if (!OfOthers().empty()) {
      throw UnsupportedError(
          "a module that imports others is saved as a shared library (.so), which carries them, not as an object file");
    }
    if (is_program()) {
      throw UnsupportedError(
          "a program with control flow, dynamic shapes or several devices is saved as a shared library (.so), not as "
          "an object file: its bytecode would be lost");
    }
    CheckCode();
    support::WriteFileAtomic(path, codegen::LinkObject(stages_.objects));
    return;
  }
  if (const codegen::Backend& backend = codegen::BackendOf(host_);
      format == backend.formats[0] && backend.print_model) {
    return SaveSource(path, backend);
  }
  for (const auto& [name, stage] :
       {std::pair{"relay", "relay"}, {"tir", "tir"}, {"ll", "llvm"}, {"llvm", "llvm"}, {"s", "asm"}, {"asm", "asm"}}) {
    if (format == name && (format != "relay" || stages_.relay.defined())) {
      support::WriteFileAtomic(path, GetSource(stage));
      return;
    }
  }
  throw UnsupportedError("no file format \"" + std::string(format) + "\"; there are lib, " +
                         (is_program() ? "" : "obj, ") + (stages_.relay.defined() ? "relay, " : "") +
                         (codegen::BackendOf(host_).print_model ? "c, tir" : "llvm, asm, tir"));
}

}  // namespace

runtime::Module MakeCompiledModule(Stages stages, const Target& host) {
  runtime::Module made = runtime::MakeModule<CompiledModule>(std::move(stages), host);
  static_cast<CompiledModule*>(made.get())->Connect(made);
  return made;
}

}  // namespace baton::driver
