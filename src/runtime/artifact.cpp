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
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

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

support::Sha256::Digest artifact::EntryNumbers(const ExecutableDesc& desc) {
  support::Sha256 sha;
  const auto number = [&sha](int64_t n) { sha.Update(&n, sizeof n); };
  const auto text = [&](const std::string& s) {
    number(static_cast<int64_t>(s.size()));
    sha.Update(s);
  };
  for (const std::vector<TensorInfo>* tensors : {&desc.inputs, &desc.outputs}) {
    number(static_cast<int64_t>(tensors->size()));
    for (const TensorInfo& t : *tensors) {
      number(t.dtype.code() << 16 | t.dtype.bits());
      number(static_cast<int64_t>(t.shape.size()));
      for (const int64_t d : t.shape) number(d);
    }
  }
  const DynamicShapes& open = desc.dynamic;
  text(open.sizes);
  number(open.words);
  number(open.reads_values);
  for (const Dim& d : open.dims) {
    for (const int64_t n : {d.min, d.max, d.multiple}) number(n);
  }
  for (const std::vector<int32_t>& words : open.extents) {
    number(static_cast<int64_t>(words.size()));
    for (const int32_t w : words) number(w);
  }
  for (const DynamicBuffer& b : open.buffers) sha.Update(&b, sizeof b);
  for (const int64_t n : desc.result_tree) number(n);
  for (const uint64_t n : {desc.arena_bytes, desc.constants_bytes, uint64_t{desc.io_alignment}}) {
    number(static_cast<int64_t>(n));
  }
  for (const std::string* s : {&desc.entry, &desc.program, &desc.state}) text(*s);
  return sha.Finish();
}

ExecutableDesc artifact::ReadDesc(const Json& j) {
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
  for (auto [key, text] : {std::pair{"program", &d.program}, {"state", &d.state}, {"steps", &d.steps}}) {
    if (const Json* found = j.Find(key)) *text = found->AsString();
  }
  return d;
}

namespace {

/// The descriptor of a file; closed with it.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  Descriptor(Descriptor&& o) noexcept : fd_(o.fd_) { o.fd_ = -1; }
  Descriptor& operator=(Descriptor&& o) noexcept {
    std::swap(fd_, o.fd_);
    return *this;
  }
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  explicit operator bool() const { return fd_ >= 0; }
  int get() const { return fd_; }
  std::string path() const { return Cat("/proc/self/fd/", fd_); }

  /// A file in memory that holds these bytes and cannot be changed; none where the system has no such files.
  static Descriptor InMemory(const uint8_t* data, size_t size) {
    Descriptor file(memfd_create("baton-model", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    while (file && size > 0) {
      const ssize_t n = write(file.fd_, data, size);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return Descriptor();
      data += n, size -= static_cast<size_t>(n);
    }
    if (file) fcntl(file.fd_, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL);
    return file;
  }

 private:
  int fd_;
};

/// Profilers look for symbols in the file that code was mapped from: BATON_COPY_CODE=0 lets it run from there.
bool CopiesCode() {
  const char* copies = getenv("BATON_COPY_CODE");
  return !copies || std::strcmp(copies, "0") != 0;
}

/// Models up to this size are copied whole; of larger ones the constants stay in the file, which processes share.
constexpr size_t kCopied = 16 << 20;

/// A verified artifact: nothing of it has run yet.
struct Artifact {
  support::MappedFile file;
  Descriptor code;       ///< a copy of the code, or with it of the whole file; none where there are no files in memory
  bool in_file = false;  ///< the constants are read from the file, where they lie
  std::string_view manifest;
  ExecutableDesc desc;
};

/// `copies`: code is copied, so that a program that writes over the file does not change what runs here. `expected`:
/// the digest that the file is to have, in hexadecimal digits; "" for any.
Artifact OpenArtifact(const std::string& path, bool copies, const std::string& expected = "") {
  Artifact a;
  try {
    a.file = support::MappedFile(path);
    if (copies && a.file.size() <= kCopied) a.code = Descriptor::InMemory(a.file.data(), a.file.size());
    a.in_file = !a.code;
    if (a.code) a.file = support::MappedFile(a.code.path());
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
  // The digest is of the copies of what runs, as far as there are any.
  support::MappedFile code;
  uint64_t code_size = 0;
  if (copies && !a.code) {
    std::memcpy(&code_size, data + size - kTrailer, sizeof code_size);
    if (code_size <= size - kTrailer) a.code = Descriptor::InMemory(data, code_size);
    if (a.code) code = support::MappedFile(a.code.path());
  }
  support::Sha256 sha;
  sha.Update(code.data(), code.size());
  sha.Update(data + code.size(), size - kDigest - 8 - code.size());
  const support::Sha256::Digest digest = sha.Finish();
  if (std::memcmp(digest.data(), data + size - kDigest - 8, kDigest) != 0) {
    Throw(path, "its digest does not match its contents: the file is damaged; compile or copy it again");
  }
  if (!expected.empty() && expected != support::ToHex(digest.data(), digest.size())) {
    Throw(path, "it is another file than the one whose signature was checked");
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
    struct stat st{};
    if (artifact_.in_file && (watched_ = Descriptor(open(path.c_str(), O_RDONLY | O_CLOEXEC)))) {
      fstat(watched_.get(), &st);
      artifact_.desc.constants_file = {path_.c_str(), watched_.get(), st.st_size, st.st_mtim.tv_sec,
                                       st.st_mtim.tv_nsec};
    }
    CheckFeatures(artifact_.desc.features, Cat("`", path, "`"));
    // Through the descriptor: a path may name another file by now, and the loader knows libraries by path, so that a
    // model compiled anew under the same name would be answered with the old one. It stays open so that its number is
    // not reused.
    if (artifact_.code) handle_ = dlopen(artifact_.code.path().c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle_) {  // no files in memory here, or none that may hold code
      artifact_.code = Descriptor(open(path.c_str(), O_RDONLY | O_CLOEXEC));
      if (artifact_.code) handle_ = dlopen(artifact_.code.path().c_str(), RTLD_NOW | RTLD_LOCAL);
    }
    if (!handle_) {
      const char* why = dlerror();
      Throw(path, why ? why : "it cannot be opened");
    }
    if (void* api = dlsym(handle_, "baton_backend_api")) {
      *static_cast<const BatonBackendApi**>(api) = BatonBackendGetApi();
    }
    if (void* self = dlsym(handle_, kModuleSymbol)) *static_cast<ModuleNode**>(self) = this;
    const std::string_view manifest = artifact_.manifest;
    if (!Knows(kManifestSymbol, kNoManifest, support::Sha256Of(manifest.data(), manifest.size())) ||
        !Knows(kNumbersSymbol, kNoNumbers, EntryNumbers(artifact_.desc))) {
      dlclose(handle_);
      Throw(path, "its manifest is not the one that its code was compiled with");
    }
    if (artifact_.desc.program.empty() && !artifact_.desc.entry.empty() &&
        !dlsym(handle_, artifact_.desc.entry.c_str())) {
      const std::string text = Cat("it has no symbol `", artifact_.desc.entry, "`");
      dlclose(handle_);
      Throw(path, text);
    }
  }
  ~LibraryModule() override { dlclose(handle_); }
  const char* type_key() const override { return "library"; }
  PackedFunc GetFunction(std::string_view name, const ObjectPtr<Object>& self) override {
    if (name == "get_manifest") {
      return PackedFunc([text = Manifest()](Args, RetValue* rv) { *rv = text; });
    }
    const void* spec = dlsym(handle_, Cat(kFunctionSpecPrefix, name).c_str());
    return spec ? MakeNativeFunction(spec, self) : PackedFunc();
  }
  void* GetSymbol(const char* name) override { return dlsym(handle_, name); }
  const ExecutableDesc* GetExecutable() const override {
    return artifact_.desc.entry.empty() ? nullptr : &artifact_.desc;
  }
  std::string GetSource(std::string_view format) override {
    if (format.empty() || format == "json") return Manifest();
    return ModuleNode::GetSource(format);
  }
  void SaveToFile(const std::string& path, std::string_view) override {
    artifact_.desc.constants_file.RequireUnchanged();
    support::WriteFileAtomic(path, artifact_.file.text(), true);
  }

 private:
  std::string Manifest() const {
    artifact_.desc.constants_file.RequireUnchanged();
    return std::string(artifact_.manifest);
  }
  /// Whether the code has this digest, or none.
  bool Knows(const char* symbol, const char* none, const support::Sha256::Digest& digest) const {
    const void* known = dlsym(handle_, symbol);
    return !known || std::memcmp(known, none, kDigest) == 0 || std::memcmp(known, digest.data(), kDigest) == 0;
  }

  Artifact artifact_;
  Descriptor watched_;
  std::string path_;
  void* handle_ = nullptr;
};

}  // namespace

void FileMark::RequireUnchanged() const {
  struct stat st{};
  if (!path || (fstat(fd, &st) == 0 && st.st_size == size && st.st_mtim.tv_sec == written_s &&
                st.st_mtim.tv_nsec == written_ns)) {
    return;
  }
  throw RuntimeError(Cat("`", path,
                         "` was written to since it was loaded, and is read where it lies: load it again; "
                         "write new files under another name and rename them"));
}

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

namespace {
Module LoadOf(const std::string& path, const std::string& expected) {
  Artifact artifact = OpenArtifact(path, CopiesCode(), expected);
  const bool devices = artifact.desc.program.rfind("{\"devices\"", 0) == 0;
  const Module m = MakeModule<LibraryModule>(path, std::move(artifact));
  if (devices || m->GetSymbol("baton_imports")) ProgramFunction("vm.ImportDeviceCode")(m);
  return m;
}
}  // namespace

Module LoadArtifact(const std::string& path) { return LoadOf(path, ""); }

std::string ReadManifest(const std::string& path) { return std::string(OpenArtifact(path, false).manifest); }

namespace {
BATON_REGISTER_GLOBAL("runtime.ReadManifest").set_body(PackedFunc([](Args args, RetValue* rv) {
  *rv = ReadManifest(args[0].As<std::string>());
}));
BATON_REGISTER_GLOBAL("runtime.LoadArtifactOf").set_body(PackedFunc([](Args args, RetValue* rv) {
  *rv = LoadOf(args[0].As<std::string>(), args[1].As<std::string>());
}));
}  // namespace

}  // namespace baton::runtime
