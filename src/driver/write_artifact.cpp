// SPDX-License-Identifier: Apache-2.0
#include "driver/write_artifact.h"

#include <baton/runtime/error.h>
#include <baton/runtime/executor.h>
#include <baton/support/bytes.h>
#include <baton/support/file.h>
#include <baton/support/json.h>
#include <baton/support/sha256.h>

#include <cstring>

#include "runtime/artifact_format.h"
#include "runtime/dynamic_json.h"

namespace baton::runtime {
using namespace artifact;  // NOLINT: its format
namespace {

void WriteTensors(support::JsonWriter* w, const std::vector<TensorInfo>& tensors) {
  w->BeginArray();
  for (const TensorInfo& t : tensors) {
    w->BeginObject();
    w->Key("name");
    w->String(t.name);
    w->Key("shape");
    w->BeginArray();
    for (int64_t d : t.shape) w->Int(d);
    w->EndArray();
    w->Key("dtype");
    w->String(DataType2String(t.dtype));
    if (!t.extents.empty()) {
      w->Key("extents");
      w->BeginArray();
      for (const std::string& e : t.extents) w->String(e);
      w->EndArray();
    }
    w->EndObject();
  }
  w->EndArray();
}

/// The machine that an ELF file is for.
const char* ArchOf(const uint8_t* elf, size_t bytes) {
  if (bytes < 20) return kArch;
  switch (elf[18] | elf[19] << 8) {  // e_machine
    case 62:
      return "x86_64";
    case 183:
      return "aarch64";
    case 40:
      return "arm";
    case 243:
      return elf[4] == 2 ? "riscv64" : "riscv32";
    default:
      return kArch;
  }
}

}  // namespace

std::string ManifestOf(const ExecutableDesc& desc, const std::vector<std::string>& guards, const char* arch,
                       std::string_view imports) {
  std::string out;
  support::JsonWriter w(&out);
  w.BeginObject();
  w.Key("format");
  w.Int(kFormatVersion);
  w.Key("arch");
  w.String(arch ? arch : kArch);
  if (!desc.forms.empty()) {
    w.Key("forms");
    w.String(desc.forms);
  }
  w.Key("entry");
  w.String(desc.entry);
  w.Key("target");
  w.String(desc.target);
  w.Key("features");
  w.BeginArray();
  for (const std::string& f : desc.features) w.String(f);
  w.EndArray();
  w.Key("inputs");
  WriteTensors(&w, desc.inputs);
  w.Key("outputs");
  WriteTensors(&w, desc.outputs);
  if (!desc.result_tree.empty()) {
    w.Key("results");
    w.BeginArray();
    for (int64_t n : desc.result_tree) w.Int(n);
    w.EndArray();
  }
  if (desc.dynamic.defined()) {
    w.Key("dynamic");
    WriteDynamicShapes(&w, desc.dynamic);
  }
  if (!guards.empty()) {
    w.Key("guards");
    w.BeginArray();
    for (const std::string& guard : guards) w.String(guard);
    w.EndArray();
  }
  w.Key("arena_bytes");
  w.Int(static_cast<int64_t>(desc.arena_bytes));
  w.Key("constants_bytes");
  w.Int(static_cast<int64_t>(desc.constants_bytes));
  w.Key("io_alignment");
  w.Int(desc.io_alignment);
  if (!desc.state.empty()) {
    w.Key("state");
    w.String(desc.state);
  }
  if (!desc.program.empty()) {
    w.Key("program");
    w.String(desc.program);
  }
  if (!desc.steps.empty()) {
    w.Key("steps");
    w.String(desc.steps);
  }
  if (!imports.empty()) {
    w.Key("imports");
    w.Value(support::Json::Parse(imports, "imports"));
  }
  w.EndObject();
  return out;
}

namespace {

/// Writes a digest where the code has `none`; code that was made elsewhere has no such place.
void PutDigest(const char* none, const support::Sha256::Digest& digest, std::string* code) {
  const std::string_view place(none, kDigest);
  const size_t at = code->find(place);
  if (at == std::string::npos) return;
  if (code->find(place, at + 1) != std::string::npos) throw InternalError("WriteArtifact: two places for a digest");
  std::memcpy(code->data() + at, digest.data(), kDigest);
}

/// The code with the digests of its manifest, and of the numbers in it.
std::string WithManifest(std::string_view elf, const std::string& manifest, const ExecutableDesc& desc) {
  std::string out(elf);
  PutDigest(kNoManifest, support::Sha256Of(manifest.data(), manifest.size()), &out);
  PutDigest(kNoNumbers, EntryNumbers(desc), &out);
  return out;
}

}  // namespace

void WriteArtifact(const std::string& path, const void* elf, size_t elf_bytes, const ExecutableDesc& desc,
                   const std::vector<std::string>& guards, std::string_view last_constants, std::string_view imports) {
  if (elf_bytes < 4 || std::memcmp(elf, kElfMagic, 4) != 0) throw InternalError("WriteArtifact: not an ELF file");
  const std::string manifest = ManifestOf(desc, guards, ArchOf(static_cast<const uint8_t*>(elf), elf_bytes), imports);
  const std::string code = WithManifest({static_cast<const char*>(elf), elf_bytes}, manifest, desc);
  support::AtomicFile file(path, true);
  support::Sha256 sha;
  uint64_t at = 0;
  const auto put = [&](const void* data, size_t size) {
    file.Write(data, size);
    sha.Update(data, size);
    at += size;
  };
  const auto align = [&] {
    static constexpr char kZeros[64] = {};
    if (at % 64) put(kZeros, 64 - at % 64);
  };
  put(code.data(), code.size());
  align();
  const uint64_t constants_at = at;
  put(desc.constants, desc.constants_bytes - last_constants.size());
  put(last_constants.data(), last_constants.size());
  align();
  const uint64_t manifest_at = at;
  put(manifest.data(), manifest.size());
  support::ByteWriter trailer;
  trailer.Write<uint64_t>(constants_at);
  trailer.Write<uint64_t>(desc.constants_bytes);
  trailer.Write<uint64_t>(manifest_at);
  trailer.Write<uint64_t>(manifest.size());
  trailer.Write<uint32_t>(kFormatVersion);
  trailer.Write<uint32_t>(0);
  put(trailer.bytes().data(), trailer.size());
  const support::Sha256::Digest digest = sha.Finish();
  file.Write(digest.data(), digest.size());
  file.Write(kMagic, 8);
  file.Commit();
}

}  // namespace baton::runtime
