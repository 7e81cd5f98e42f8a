// SPDX-License-Identifier: Apache-2.0
// Reads artifacts; artifact_format.h says what is in them.
#include <baton/runtime/c_backend_api.h>
#include <baton/runtime/executor_queries.h>
#include <baton/runtime/module.h>
#include <baton/runtime/ndarray.h>
#include <baton/runtime/registry.h>
#include <baton/support/bytes.h>
#include <baton/support/file.h>
#include <baton/support/json.h>
#include <baton/support/machine.h>
#include <baton/support/sha256.h>
#include <baton/support/text.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstring>

#include "runtime/artifact_format.h"
#include "runtime/dynamic_json.h"

namespace baton::runtime {
using namespace artifact;  // NOLINT: its format
using support::Cat;
using support::Json;
namespace {

[[noreturn]] void Throw(const std::string& path, std::string_view why) {
  throw RuntimeError(Cat("cannot load `", path, "`: ", why));
}

// --- manifest -------------------------------------------------------------------------------------------------------

std::vector<int64_t> ReadInts(const Json& list) {
  std::vector<int64_t> out;
  for (const Json& n : list.AsArray()) out.push_back(n.AsInt());
  return out;
}

std::vector<TensorInfo> ReadTensors(const Json& list) {
  std::vector<TensorInfo> out;
  for (const Json& j : list.AsArray()) {
    TensorInfo t;
    t.name = j.At("name").AsString();
    t.shape = ReadInts(j.At("shape"));
    t.dtype = String2DataType(j.At("dtype").AsString());
    if (const Json* extents = j.Find("extents")) {
      for (const Json& e : extents->AsArray()) t.extents.push_back(e.AsString());
      for (int64_t d : t.shape) {
        if (d < -1) throw ValueError("a negative extent");
      }
    } else {
      TensorBytes(t.shape, t.dtype);  // refuses what overflows
    }
    out.push_back(std::move(t));
  }
  return out;
}

}  // namespace

DynamicShapes ReadDynamicShapes(const Json& j) {
  DynamicShapes shapes;
  shapes.sizes = j.At("sizes").AsString();
  const std::vector<int64_t> facts = ReadInts(j.At("facts")), buffers = ReadInts(j.At("buffers"));
  if (shapes.sizes.empty() || facts.size() != 2 || buffers.size() % 4) throw ValueError("dynamic shapes are cut");
  const auto word = [](int64_t n) {
    return n < -1 || n > INT32_MAX ? -2 : static_cast<int32_t>(n);
  };  // -2: refused later
  shapes.words = word(facts[0]);
  shapes.reads_values = facts[1] != 0;
  for (const Json& d : j.At("dims").AsArray()) {
    const std::vector<int64_t> bounds = ReadInts(d.At("bounds"));
    if (bounds.size() != 3) throw ValueError("a dimension has three bounds");
    shapes.dims.push_back({d.At("name").AsString(), bounds[0], bounds[1], bounds[2]});
  }
  for (const Json& words : j.At("extents").AsArray()) {
    shapes.extents.emplace_back();
    for (int64_t n : ReadInts(words)) shapes.extents.back().push_back(word(n));
  }
  for (size_t i = 0; i < buffers.size(); i += 4) {
    shapes.buffers.push_back({word(buffers[i]), word(buffers[i + 1]), word(buffers[i + 2]), word(buffers[i + 3])});
  }
  return shapes;
}

namespace {

ExecutableDesc ReadDesc(const Json& j) {
  ExecutableDesc d;
  d.entry = j.At("entry").AsString();
  d.target = j.At("target").AsString();
  for (const Json& f : j.At("features").AsArray()) d.features.push_back(f.AsString());
  d.inputs = ReadTensors(j.At("inputs"));
  d.outputs = ReadTensors(j.At("outputs"));
  if (const Json* tree = j.Find("results")) {
    d.result_tree = ReadInts(*tree);
    CheckResultTree(d.result_tree, d.outputs.size());
  }
  if (const Json* dynamic = j.Find("dynamic")) {
    d.dynamic = ReadDynamicShapes(*dynamic);
    CheckDynamicShapes(d.dynamic, d.inputs, d.outputs);
  }
  const int64_t arena = j.At("arena_bytes").AsInt(), constants = j.At("constants_bytes").AsInt();
  const int64_t alignment = j.At("io_alignment").AsInt();
  if (arena < 0 || constants < 0) throw ValueError("a negative size");
  if (alignment < 1 || alignment > 64 || (alignment & (alignment - 1))) throw ValueError("a wrong alignment");
  d.arena_bytes = static_cast<uint64_t>(arena);
  d.constants_bytes = static_cast<uint64_t>(constants);
  d.io_alignment = static_cast<uint32_t>(alignment);
  if (const Json* program = j.Find("program")) d.program = program->AsString();
  return d;
}

/// A verified artifact: nothing of it has run yet.
struct Artifact {
  support::MappedFile file;
  std::string_view manifest;
  ExecutableDesc desc;
};

Artifact OpenArtifact(const std::string& path) {
  Artifact a;
  try {
    a.file = support::MappedFile(path);
  } catch (const std::runtime_error& e) {
    throw RuntimeError(e.what());
  }
  const uint8_t* data = a.file.data();
  const size_t size = a.file.size();
  if (size == 0) Throw(path, "the file is empty");
  const bool elf = size >= 4 && std::memcmp(data, kElfMagic, 4) == 0;
  if (!elf) Throw(path, "it is not a compiled model (no ELF file)");
  if (size < kTrailer || std::memcmp(data + size - 8, kMagic, 8) != 0) {
    Throw(path, "the end of a compiled model is missing: the file is cut, was stripped, or is another shared library");
  }
  const support::Sha256::Digest digest = support::Sha256Of(data, size - kDigest - 8);
  if (std::memcmp(digest.data(), data + size - kDigest - 8, kDigest) != 0) {
    Throw(path, "its digest does not match its contents: the file is damaged; compile or copy it again");
  }
  // From here on the file is what was written, so faults below are of another version, or made on purpose.
  support::ByteReader trailer(data + size - kTrailer, kTrailer, path.c_str());
  const uint64_t constants_at = trailer.Read<uint64_t>("constants"),
                 constants_size = trailer.Read<uint64_t>("constants");
  const uint64_t manifest_at = trailer.Read<uint64_t>("manifest"), manifest_size = trailer.Read<uint64_t>("manifest");
  const uint32_t version = trailer.Read<uint32_t>("version");
  if (version != kFormatVersion) {
    Throw(path, Cat("its format has version ", version, ", this runtime reads version ", kFormatVersion,
                    "; compile the model again"));
  }
  const uint64_t body = size - kTrailer;
  if (constants_at > body || constants_size > body - constants_at || constants_at % 64 || manifest_at > body ||
      manifest_size > body - manifest_at) {
    Throw(path, "its sections lie outside of the file");
  }
  a.manifest = a.file.text().substr(manifest_at, manifest_size);
  try {
    const Json j = Json::Parse(a.manifest, "manifest");
    if (j.At("format").AsInt() != kFormatVersion) throw ValueError("another format version");
    const std::string& arch = j.At("arch").AsString();
    if (arch != kArch) throw ValueError(Cat("compiled for ", arch, ", this machine is ", kArch));
    a.desc = ReadDesc(j);
    if (a.desc.constants_bytes != constants_size) throw ValueError("the size of the constants differs");
  } catch (const std::exception& e) {
    Throw(path, e.what());
  }
  a.desc.constants = data + constants_at;
  return a;
}

// --- module ---------------------------------------------------------------------------------------------------------

class LibraryModule final : public ModuleNode {
 public:
  LibraryModule(const std::string& path, Artifact artifact) : artifact_(std::move(artifact)), path_(path) {
    CheckFeatures(artifact_.desc.features, Cat("`", path, "`"));
    // Through the descriptor: a path may name another file by now, and the loader knows libraries by path, so that a
    // model compiled anew under the same name would be answered with the old one. It stays open so that its number is
    // not reused.
    fd_ = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd_ >= 0) handle_ = dlopen(Cat("/proc/self/fd/", fd_).c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle_) {
      const char* why = dlerror();
      const std::string text = why ? why : "it cannot be opened";
      if (fd_ >= 0) close(fd_);
      Throw(path, text);
    }
    if (void* api = dlsym(handle_, "baton_backend_api")) {
      *static_cast<const BatonBackendApi**>(api) = BatonBackendGetApi();
    }
    if (void* self = dlsym(handle_, kModuleSymbol)) *static_cast<ModuleNode**>(self) = this;
    if (artifact_.desc.program.empty() && !artifact_.desc.entry.empty() &&
        !dlsym(handle_, artifact_.desc.entry.c_str())) {
      const std::string text = Cat("it has no symbol `", artifact_.desc.entry, "`");
      dlclose(handle_);
      close(fd_);
      Throw(path, text);
    }
  }
  ~LibraryModule() override {
    dlclose(handle_);
    close(fd_);
  }
  const char* type_key() const override { return "library"; }
  PackedFunc GetFunction(std::string_view name, const ObjectPtr<Object>& self) override {
    if (name == "get_manifest") {
      return PackedFunc([text = std::string(artifact_.manifest)](Args, RetValue* rv) { *rv = text; });
    }
    const void* spec = dlsym(handle_, Cat(kFunctionSpecPrefix, name).c_str());
    return spec ? MakeNativeFunction(spec, self) : PackedFunc();
  }
  void* GetSymbol(const char* name) override { return dlsym(handle_, name); }
  const ExecutableDesc* GetExecutable() const override {
    return artifact_.desc.entry.empty() ? nullptr : &artifact_.desc;
  }
  std::string GetSource(std::string_view format) override {
    if (format.empty() || format == "json") return std::string(artifact_.manifest);
    return ModuleNode::GetSource(format);
  }
  void SaveToFile(const std::string& path, std::string_view) override {
    support::WriteFileAtomic(path, artifact_.file.text(), true);
  }

 private:
  Artifact artifact_;
  std::string path_;
  int fd_ = -1;
  void* handle_ = nullptr;
};

}  // namespace

void CheckFeatures(const std::vector<std::string>& features, const std::string& what) {
  for (const std::string& f : features) {
    if (support::HasCpuFeature(f)) {
      if (f.compare(0, 3, "amx") == 0 && !support::EnableAmx()) {
        throw RuntimeError(Cat(what, " uses `", f, "`, which the system does not let this process use"));
      }
      continue;
    }
    throw RuntimeError(Cat(what, " was compiled for a processor with `", f, "`, which this one (",
                           support::Machine().model_name,
                           ") does not have; compile it for this machine or a common one, "
                           "as with -mcpu=x86-64-v3"));
  }
}

const PackedFunc& ProgramFunction(const char* name);  // executor.cpp

Module LoadArtifact(const std::string& path) {
  Artifact artifact = OpenArtifact(path);
  const bool devices = artifact.desc.program.rfind("{\"devices\"", 0) == 0;
  const Module m = MakeModule<LibraryModule>(path, std::move(artifact));
  if (devices) ProgramFunction("vm.ImportDeviceCode")(m);
  return m;
}

std::string ReadManifest(const std::string& path) { return std::string(OpenArtifact(path).manifest); }

namespace {
BATON_REGISTER_GLOBAL("runtime.ReadManifest").set_body(PackedFunc([](Args args, RetValue* rv) {
  *rv = ReadManifest(args[0].As<std::string>());
}));
}  // namespace

}  // namespace baton::runtime
