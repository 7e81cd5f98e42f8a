// SPDX-License-Identifier: Apache-2.0
#include "codegen/llvm/perf.h"

#include <elf.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace baton::codegen {

PerfOptions PerfOptions::FromEnvironment() {
  PerfOptions o;
  const char* text = getenv("BATON_PERF");
  std::string_view rest = text ? text : "";
  while (!rest.empty()) {
    size_t comma = rest.find(',');
    std::string_view word = rest.substr(0, comma);
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
    if (word == "map") {
      o.map = true;
    } else if (word == "jitdump") {
      o.jitdump = true;
    } else if (word == "gdb") {
      o.gdb = true;
    } else if (!word.empty() && word != "0") {
      throw runtime::ValueError(
          fmt::format("BATON_PERF is \"{}\"; it is a list of map, jitdump and gdb, as BATON_PERF=map,gdb", text));
    }
  }
  return o;
}

std::vector<ObjectSymbol> FunctionsOf(const std::string& object) {
  std::vector<ObjectSymbol> out;
  auto read = [&]<class T>(uint64_t at, T* value) {
    if (at > object.size() || object.size() - at < sizeof(T)) return false;
    memcpy(value, object.data() + at, sizeof(T));
    return true;
  };
  Elf64_Ehdr header;
  if (!read(0, &header) || memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64) {
    return out;
  }
  auto section = [&](uint64_t i, Elf64_Shdr* s) { return read(header.e_shoff + i * sizeof(Elf64_Shdr), s); };
  for (unsigned i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr table, names;
    if (!section(i, &table) || table.sh_type != SHT_SYMTAB || !section(table.sh_link, &names)) continue;
    for (uint64_t at = 0; at + sizeof(Elf64_Sym) <= table.sh_size; at += sizeof(Elf64_Sym)) {
      Elf64_Sym sym;
      if (!read(table.sh_offset + at, &sym)) return out;
      if (ELF64_ST_TYPE(sym.st_info) != STT_FUNC || sym.st_shndx == SHN_UNDEF) continue;
      uint64_t name = names.sh_offset + sym.st_name;
      if (name >= object.size()) return out;
      bool global = ELF64_ST_BIND(sym.st_info) == STB_GLOBAL && ELF64_ST_VISIBILITY(sym.st_other) == STV_DEFAULT;
      out.push_back({object.c_str() + name, sym.st_value, sym.st_size, sym.st_shndx, global});
    }
  }
  return out;
}

std::string PerfMapLine(const ObjectCode& code, uint64_t address, uint64_t size, const std::string& symbol) {
  std::string shown = symbol;
  for (const auto& [name, display] : code.display_names) {
    if (!symbol.starts_with(name) || (symbol.size() > name.size() && symbol[name.size()] != '.')) continue;
    shown = display + " [" + symbol + "]";
  }
  return fmt::format("{:x} {:x} {}\n", address, size, shown);
}

void AppendToPerfMap(const std::string& lines) {
  if (lines.empty()) return;
  std::string path = fmt::format("/tmp/perf-{}.map", getpid());
  if (FILE* f = fopen(path.c_str(), "ae")) {
    fwrite(lines.data(), 1, lines.size(), f);
    fclose(f);
  }
}

}  // namespace baton::codegen
