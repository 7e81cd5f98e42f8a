// SPDX-License-Identifier: Apache-2.0
// What the JIT tells profilers and debuggers of the code that it has loaded.
#pragma once

#include <baton/codegen/codegen.h>

#include <string>

namespace baton::codegen {

/// The value of the environment variable BATON_PERF.
struct PerfOptions {
  bool map = false, jitdump = false, gdb = false;
  /// Throws ValueError for a word that means nothing.
  static PerfOptions FromEnvironment();
};

/// Adds the functions of an ELF object to /tmp/perf-PID.map. `address_of` gives where a symbol that others can see was
/// loaded, 0 for one that is not there.
template <class F>
void WritePerfMap(const ObjectCode& code, const std::string& object, F address_of);

/// A function of an object file.
struct ObjectSymbol {
  std::string name;
  uint64_t value = 0;  ///< offset in its section
  uint64_t size = 0;
  unsigned section = 0;
  bool global = false;  ///< visible to others, so that the JIT can be asked for it
};
/// The functions that an ELF object of this machine defines, in the order of its table.
std::vector<ObjectSymbol> FunctionsOf(const std::string& object);
/// Appends lines to this process's map; failures are not errors, a profile then lacks names.
void AppendToPerfMap(const std::string& lines);
/// A line of the map. `symbol` may be of a part of a kernel ("fused_add.loop").
std::string PerfMapLine(const ObjectCode& code, uint64_t address, uint64_t size, const std::string& symbol);

template <class F>
void WritePerfMap(const ObjectCode& code, const std::string& object, F address_of) {
  std::vector<ObjectSymbol> functions = FunctionsOf(object);
  std::string lines;
  for (const ObjectSymbol& f : functions) {
    // Local functions lie at a fixed distance from any global one of their section.
    for (const ObjectSymbol& g : functions) {
      if (!g.global || g.section != f.section) continue;
      uint64_t at = address_of(g.name);
      if (at) lines += PerfMapLine(code, at - g.value + f.value, f.size, f.name);
      break;
    }
  }
  AppendToPerfMap(lines);
}

}  // namespace baton::codegen
