// SPDX-License-Identifier: Apache-2.0
// Modules out of archives (`.tar`) and object files: what they hold is linked to an artifact, which the runtime loads.
#include "driver/archive.h"

#include <baton/codegen/backend.h>
#include <baton/runtime/bytes.h>
#include <baton/runtime/registry.h>
#include <baton/support/json.h>
#include <baton/support/sha256.h>
#include <baton/vm/imports.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <utility>
#include <vector>

#include "driver/lower_graph.h"
#include "runtime/artifact_format.h"

namespace baton::driver {
namespace {

using runtime::Bytes;
using support::Json;

/// The name of a file that goes with this.
class TemporaryFile {
 public:
  TemporaryFile() : path_((std::filesystem::temp_directory_path() / "baton-archive-XXXXXX").string()) {
    const int fd = mkstemp(path_.data());
    if (fd < 0)
      throw RuntimeError("cannot make a temporary file " + path_ + "; set TMPDIR to a folder that can be written");
    close(fd);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() { unlink(path_.c_str()); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// Code and what the manifest says of it.
struct Archive {
  const Map<String, Bytes>& files;

  /// The target whose source is among the files; this machine where none is.
  Target Taker() const {
    for (const TargetKind* kind : TargetKinds()) {
      const Target target = Target::Make(kind->name);
      const codegen::Backend& backend = codegen::BackendOf(target);
      if (backend.compile && files.count(String("code." + backend.formats[0]))) return target;
    }
    return Target::Host();
  }
  std::string File(const char* name) const { return files.count(name) ? std::string(files.at(name).view()) : ""; }
  runtime::ExecutableDesc Desc(std::vector<std::string>* guards, std::string* imports) const {
    runtime::ExecutableDesc desc;
    desc.entry = "";  // functions, no model
    desc.target = Taker().str();
    const std::string text = File("manifest.json");
    if (text.empty()) return desc;
    try {
      const Json manifest = Json::Parse(text, "manifest.json");
      desc = runtime::artifact::ReadDesc(manifest);
      if (const Json* forms = manifest.Find("forms")) desc.forms = forms->AsString();
      if (const Json* steps = manifest.Find("steps")) desc.steps = steps->AsString();
      if (const Json* rows = manifest.Find("imports")) *imports = rows->Dump();
      if (const Json* list = manifest.Find("guards")) {
        for (const Json& g : list->AsArray()) guards->push_back(g.AsString());
      }
    } catch (const std::exception& e) {
      throw RuntimeError(std::string("the archive's manifest is damaged: ") + e.what());
    }
    return desc;
  }
  codegen::ObjectCode Code(const Target& target) const {
    codegen::ObjectCode code;
    const codegen::Backend& backend = codegen::BackendOf(target);
    const std::string source = "code." + backend.formats[0];
    if (const std::string object = File("code.o"); !object.empty()) {
      if (!object.starts_with(runtime::artifact::kElfMagic)) throw RuntimeError("`code.o` is no object file");
      code.objects.push_back(object);
    } else if (backend.compile && files.count(String(source))) {
      code.objects.push_back(backend.compile(File(source.c_str()), target));
    } else {
      throw RuntimeError("the archive has neither `code.o` nor `" + source + "`: it is none that export_library wrote");
    }
    return code;
  }
};

/// Throws RuntimeError for files whose digests are not those that they came with. Code alone comes without.
void CheckDigests(const Map<String, Bytes>& files) {
  if (files.size() == 1 && !files.count("manifest.json") && !files.count(kDigestsFile)) return;
  if (!files.count(kDigestsFile)) {
    throw RuntimeError(std::string("the archive has no `") + kDigestsFile +
                       "`, the digests of its files: it is cut, or of an older Baton; write it again");
  }
  const std::string said(files.at(kDigestsFile).view()), due = DigestsOf(files);
  if (said == due) return;
  for (const auto& [name, data] : files) {
    if (name == kDigestsFile) continue;
    const std::string line = support::Sha256Hex(data.view()) + "  " + name.str() + "\n";
    if (said.find(line) == said.npos) {
      throw RuntimeError("the archive is damaged: the digest of `" + name.str() + "` is not the one that `" +
                         kDigestsFile + "` says; copy or write it again");
    }
  }
  throw RuntimeError(std::string("the archive is damaged: `") + kDigestsFile +
                     "` names files that are not there; copy or write it again");
}

runtime::Module LoadArchive(const Map<String, Bytes>& files) {
  CheckDigests(files);
  const Archive archive{files};
  std::vector<std::string> guards;
  std::string rows;
  runtime::ExecutableDesc desc = archive.Desc(&guards, &rows);
  const Target target = Target::Make(desc.target);
  codegen::ObjectCode code = archive.Code(target);
  if (const std::string imports = archive.File("imports.bin"); !imports.empty()) {
    code.objects.push_back(codegen::DataObject(vm::kImportsSymbol, imports, target));
  }
  const std::string constants = archive.File("constants.bin");
  if (constants.size() != desc.constants_bytes) {
    throw RuntimeError("the archive is damaged: `constants.bin` has " + std::to_string(constants.size()) +
                       " bytes, its manifest says " + std::to_string(desc.constants_bytes));
  }
  static const uint8_t nothing = 0;
  desc.constants = constants.empty() ? &nothing : reinterpret_cast<const uint8_t*>(constants.data());
  const std::string elf = codegen::LinkShared(code, target);
  const TemporaryFile file;
  runtime::WriteArtifact(file.path(), elf.data(), elf.size(), desc, guards, {}, rows);
  return runtime::Module::LoadFromFile(file.path());
}

/// The module of an archive's files by their names, as the function "archive" of a compiled module gives them; "code.o"
/// alone is an object file of functions.
BATON_REGISTER_GLOBAL("driver.LoadArchive").set_body_typed([](Map<String, Bytes> files) { return LoadArchive(files); });

}  // namespace

std::string DigestsOf(const Map<String, Bytes>& files) {
  std::vector<std::pair<std::string, std::string>> rows;
  for (const auto& [name, data] : files) {
    if (name != kDigestsFile) rows.emplace_back(name.str(), support::Sha256Hex(data.view()));
  }
  std::sort(rows.begin(), rows.end());
  std::string out;
  for (const auto& [name, digest] : rows) out += digest + "  " + name + "\n";
  return out;
}

std::string DataSource(bool has_imports) {
  std::string out =
      "/* A module's data, for a program that its code is linked into: cc -rdynamic main.c code.o data.s -lbaton_vm "
      "-lbaton_runtime */\n\t.section .rodata\n";
  const auto add = [&](const std::string& symbol, const char* file, const char* end) {
    out += "\t.balign 64\n\t.globl " + symbol + "\n\t.type " + symbol + ", %object\n" + symbol + ":\n\t.incbin \"" +
           file + "\"\n\t.size " + symbol + ", . - " + symbol + "\n" + end;
  };
  add("baton_constants", "constants.bin", "\t.byte 0\n");  // no label without a byte
  add("baton_manifest", "manifest.json", "\t.byte 0\n");
  if (has_imports) add(vm::kImportsSymbol, "imports.bin", "");
  return out + "\t.section .note.GNU-stack, \"\", %progbits\n";
}

}  // namespace baton::driver
