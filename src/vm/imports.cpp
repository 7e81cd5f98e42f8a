// SPDX-License-Identifier: Apache-2.0
#include <baton/runtime/array.h>
#include <baton/runtime/bytes.h>
#include <baton/runtime/error.h>
#include <baton/runtime/registry.h>
#include <baton/support/bytes.h>
#include <baton/support/file.h>
#include <baton/support/sha256.h>
#include <baton/support/text.h>
#include <baton/vm/imports.h>
#include <dlfcn.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "vm/json_plugin.h"

namespace baton::vm {
namespace {

using runtime::Module;
using runtime::ModuleNode;
using runtime::PackedFunc;
using runtime::RuntimeError;
using support::Cat;

constexpr std::string_view kMagic = "BATONIMP";
constexpr uint32_t kVersion = 1;
constexpr size_t kDigest = 32;
constexpr const char* kWhat = "the modules that the compiled module imports";

void WriteIndices(support::ByteWriter* w, const std::vector<uint32_t>& indices) {
  w->Write<uint64_t>(indices.size());
  for (const uint32_t i : indices) w->Write<uint32_t>(i);
}

/// Numbers of modules that are at least `first` and less than `end`: so there is no circle.
std::vector<uint32_t> ReadIndices(support::ByteReader* r, uint64_t first, uint64_t end) {
  std::vector<uint32_t> out(r->ReadCount(sizeof(uint32_t), "imports"));
  for (uint32_t& i : out) {
    i = r->Read<uint32_t>("import");
    if (i < first || i >= end)
      r->Fail(Cat("an import of module ", i, ", where one of ", first, " to ", end, " is due"));
  }
  return out;
}

std::vector<SavedImport> ReadRows(std::string_view data, std::vector<uint32_t>* own) {
  if (data.size() < kMagic.size() + kDigest || data.substr(0, kMagic.size()) != kMagic) {
    throw RuntimeError(Cat(kWhat, ": the data does not begin as it should; compile the model again"));
  }
  const std::string_view body = data.substr(0, data.size() - kDigest);
  const support::Sha256::Digest digest = support::Sha256Of(body.data(), body.size());
  if (data.substr(body.size()) != std::string_view(reinterpret_cast<const char*>(digest.data()), kDigest)) {
    throw RuntimeError(
        Cat(kWhat, ": their digest does not match: the data is cut or damaged; compile or copy it again"));
  }
  support::ByteReader r(body.data(), body.size(), kWhat);
  r.Skip(kMagic.size(), "magic");
  if (const uint32_t version = r.Read<uint32_t>("version"); version != kVersion) {
    r.Fail(Cat("version ", version, ", this runtime reads version ", kVersion));
  }
  const uint64_t count = r.ReadCount(3 * sizeof(uint64_t), "modules");
  std::vector<SavedImport> rows(count);
  for (uint64_t i = 0; i < count; ++i) {
    rows[i].key = std::string(r.ReadString("key"));
    rows[i].imports = ReadIndices(&r, i + 1, count);
    rows[i].data = std::string(r.ReadString("data"));
  }
  *own = ReadIndices(&r, 0, count);
  r.ExpectEnd();
  return rows;
}

/// Our code, from a file in memory.
Module LoadLibrary(const std::string& data) {
  const int fd = memfd_create("baton-import", MFD_CLOEXEC);
  if (fd < 0) throw RuntimeError("no file in memory can be made");
  struct Closed {
    int fd;
    ~Closed() { close(fd); }
  } closed{fd};
  for (size_t at = 0; at < data.size();) {
    const ssize_t n = write(fd, data.data() + at, data.size() - at);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) throw RuntimeError("no memory for the file that it is loaded from");
    at += static_cast<size_t>(n);
  }
  return Module::LoadFromFile(Cat("/proc/self/fd/", fd));
}

Module LoadRow(const SavedImport& row) {
  if (row.key == kLibraryKey) return LoadLibrary(row.data);
  const std::string name = "runtime.module.loadbinary_" + row.key;
  const PackedFunc* load = runtime::Registry::Get(name);
  if (!load && LoadShippedPlugin(row.key)) load = runtime::Registry::Get(name);
  if (!load) {
    throw RuntimeError(Cat("no function `", name, "` is registered; load the library, or import the package, of `",
                           row.key, "` first"));
  }
  const runtime::Any made = (*load)(runtime::Bytes(row.data));
  if (!made.Is<Module>() || made.is_null()) {
    throw RuntimeError(
        Cat("`", name, "` gave ", runtime::ValueKindName(made.raw()), ", where a runtime.Module is wanted"));
  }
  return made.As<Module>();
}

/// A module whose functions and bytes another language gives.
class GivenModule final : public ModuleNode {
 public:
  GivenModule(std::string key, PackedFunc get, PackedFunc save, PackedFunc source)
      : key_(std::move(key)), get_(std::move(get)), save_(std::move(save)), source_(std::move(source)) {}
  const char* type_key() const override { return key_.c_str(); }
  PackedFunc GetFunction(std::string_view name, const ObjectPtr<runtime::Object>&) override {
    const runtime::Any found = get_(std::string(name));
    if (found.is_null()) return PackedFunc();
    if (!found.Is<PackedFunc>()) {
      throw RuntimeError(Cat("a module of kind `", key_, "` gave ", runtime::ValueKindName(found.raw()),
                             " for its function `", name, "`"));
    }
    return found.As<PackedFunc>();
  }
  std::string GetSource(std::string_view format) override {
    if (!source_.defined()) return ModuleNode::GetSource(format);
    return source_(std::string(format)).As<std::string>();
  }
  void SaveToFile(const std::string& path, std::string_view format) override {
    if (!save_.defined()) return ModuleNode::SaveToFile(path, format);
    support::WriteFileAtomic(path, save_().As<std::string>());
  }

 private:
  std::string key_;
  PackedFunc get_, save_, source_;
};

/// (key, function of a name to a function or null, function that gives bytes or null, function of a format to a text or
/// null): a module of that kind.
BATON_REGISTER_GLOBAL("vm.CreateModule")
    .set_body_typed([](std::string key, PackedFunc get, PackedFunc save, PackedFunc source) {
      if (key.empty() || key == kLibraryKey)
        throw runtime::ValueError(Cat("`", key, "` is not a kind of modules of others"));
      if (!get.defined()) throw runtime::TypeError("a module takes a function that gives its functions");
      return runtime::MakeModule<GivenModule>(std::move(key), std::move(get), std::move(save), std::move(source));
    });
/// The modules in what PackImports gave.
BATON_REGISTER_GLOBAL("vm.LoadImports").set_body_typed([](runtime::Bytes data) {
  const std::vector<Module> made = LoadImports(data.view());
  return runtime::Array<Module>(made.begin(), made.end());
});

}  // namespace

std::string PackImports(const std::vector<SavedImport>& rows, const std::vector<uint32_t>& own) {
  support::ByteWriter w;
  w.WriteBytes(kMagic.data(), kMagic.size());
  w.Write<uint32_t>(kVersion);
  w.Write<uint64_t>(rows.size());
  for (const SavedImport& row : rows) {
    w.WriteString(row.key);
    WriteIndices(&w, row.imports);
    w.WriteString(row.data);
  }
  WriteIndices(&w, own);
  const support::Sha256::Digest digest = support::Sha256Of(w.bytes().data(), w.size());
  w.WriteBytes(digest.data(), digest.size());
  return w.Take();
}

std::vector<Module> LoadImports(std::string_view data) {
  std::vector<uint32_t> own;
  std::vector<SavedImport> rows;
  try {
    rows = ReadRows(data, &own);
  } catch (const runtime::Error&) {
    throw;
  } catch (const std::exception& e) {
    throw RuntimeError(e.what());
  }
  std::vector<Module> made(rows.size());
  for (size_t i = rows.size(); i-- > 0;) {  // imports are behind what imports them
    try {
      made[i] = LoadRow(rows[i]);
      for (const uint32_t import : rows[i].imports) made[i]->Import(made[import]);
    } catch (const std::exception& e) {
      throw RuntimeError(Cat("cannot load import `", rows[i].key, "` (", i + 1, " of ", rows.size(), "): ", e.what()));
    }
  }
  std::vector<Module> out;
  for (const uint32_t i : own) out.push_back(made[i]);
  return out;
}

void ImportCarried(const Module& code) {
  void* at = code->GetSymbol(kImportsSymbol);
  if (!at) return;
  Dl_info info;
  void* entry = nullptr;
  if (!dladdr1(at, &info, &entry, RTLD_DL_SYMENT) || !entry || info.dli_saddr != at) {
    throw RuntimeError(Cat(kWhat, ": their size cannot be read"));
  }
  const auto size = static_cast<const ElfW(Sym)*>(entry)->st_size;
  for (const Module& m : LoadImports({static_cast<const char*>(at), static_cast<size_t>(size)})) code->Import(m);
}

}  // namespace baton::vm
