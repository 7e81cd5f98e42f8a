// SPDX-License-Identifier: Apache-2.0
#include "codegen/cache/build_identity.h"

#include <baton/support/sha256.h>
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/stat.h>

#include <cstdint>
#include <cstring>

namespace baton::codegen::cache {
namespace {

struct Search {
  uintptr_t address;
  std::string id;
};

/// The GNU build id in a segment of notes; "" if there is none.
std::string IdIn(const uint8_t* notes, size_t size) {
  const auto padded = [](size_t n) { return (n + 3) & ~size_t{3}; };
  while (size >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) note;
    std::memcpy(&note, notes, sizeof note);
    const size_t name = padded(note.n_namesz), text = padded(note.n_descsz);
    if (size - sizeof note < name || size - sizeof note - name < text) break;
    const uint8_t* at = notes + sizeof note;
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && std::memcmp(at, "GNU", 4) == 0) {
      return support::ToHex(at + name, note.n_descsz);
    }
    notes = at + name + text;
    size -= sizeof note + name + text;
  }
  return "";
}

int Look(dl_phdr_info* library, size_t, void* data) {
  auto* search = static_cast<Search*>(data);
  bool here = false;
  for (int i = 0; i < library->dlpi_phnum; ++i) {
    const auto& p = library->dlpi_phdr[i];
    const uintptr_t begin = library->dlpi_addr + p.p_vaddr;
    here = here || (p.p_type == PT_LOAD && search->address >= begin && search->address - begin < p.p_memsz);
  }
  if (!here) return 0;
  for (int i = 0; i < library->dlpi_phnum && search->id.empty(); ++i) {
    const auto& p = library->dlpi_phdr[i];
    if (p.p_type != PT_NOTE) continue;
    search->id = IdIn(reinterpret_cast<const uint8_t*>(library->dlpi_addr + p.p_vaddr), p.p_memsz);
  }
  return 1;
}

/// The identity of the library that has an address.
std::string IdentityOf(const void* address) {
  Search search{reinterpret_cast<uintptr_t>(address), ""};
  dl_iterate_phdr(Look, &search);
  if (!search.id.empty()) return search.id;
  Dl_info info;
  struct stat st;
  if (!dladdr(address, &info) || !info.dli_fname || stat(info.dli_fname, &st) != 0) return "";
  return std::to_string(st.st_size) + " bytes of " + std::to_string(st.st_mtim.tv_sec) + "." +
         std::to_string(st.st_mtim.tv_nsec);
}

}  // namespace

std::string BuildIdentity(const void* in_llvm) {
  static const char here = 0;
  const std::string own = IdentityOf(&here), llvm = IdentityOf(in_llvm);
  if (own.empty() || llvm.empty()) return "";
  return own == llvm ? own : own + " " + llvm;
}

}  // namespace baton::codegen::cache
