// SPDX-License-Identifier: Apache-2.0
// Inputs that give their memory to results of programs. A kernel may write over an input whose register gives it up,
// and which nothing else refers to: that the machine asks when it runs. Here is asked whether such a kernel is on an
// input's way.
#include <baton/vm/program.h>

#include <map>
#include <set>

#include "driver/donations.h"
#include "driver/vm/compile.h"

namespace baton::driver {
namespace {

using vm::Opcode;
using vm::Operand;

/// Follows a value from a function's parameter to where its register gives it up.
class Way {
 public:
  explicit Way(const vm::Program& p) : program_(p) {}

  bool EndsInKernel(int32_t function, int32_t param) {
    if (!seen_.insert({function, param}).second) return false;
    std::set<int32_t> held{param};
    std::map<size_t, std::set<int32_t>> held_at;  // targets of jumps, which lead forward
    std::vector<int32_t> code = program_.functions[static_cast<size_t>(function)].code;
    for (size_t at = 0; at < code.size();) {
      held.merge(held_at[at]);
      const int32_t* words = code.data() + at;
      const auto op = static_cast<Opcode>(words[0]);
      const bool moved = op == Opcode::kMove && words[2] < 0 && held.count(~words[2]);
      if (Ends(words, held)) return true;
      at = vm::ForEachOperand(code, at, [&](int32_t& w, Operand kind) {
        if (kind == Operand::kTarget) held_at[static_cast<size_t>(w)].insert(held.begin(), held.end());
        if (kind == Operand::kRead && w < 0) held.erase(~w);
        if (kind == Operand::kWrite) held.erase(w < 0 ? ~w : w);
      });
      if (moved) held.insert(words[1]);
      if (op == Opcode::kJump) held.clear();
    }
    return false;
  }

 private:
  bool Ends(const int32_t* words, const std::set<int32_t>& held) {
    auto gives = [&](int32_t operand) { return operand < 0 && held.count(~operand) > 0; };
    const auto op = static_cast<Opcode>(words[0]);
    if (op == Opcode::kKernel) {
      const std::vector<int32_t>& over = program_.kernels[static_cast<size_t>(words[1])].over;
      for (size_t i = 0; i < over.size(); i += 2) {
        if (gives(words[4 + over[i]])) return true;
      }
    } else if (op == Opcode::kCall || op == Opcode::kTailCall) {
      const int32_t first = op == Opcode::kCall ? 4 : 3;
      for (int32_t i = 0; i < words[first - 1]; ++i) {
        if (gives(words[first + i]) && EndsInKernel(words[1], i)) return true;
      }
    }
    return false;
  }

  const vm::Program& program_;
  std::set<std::pair<int32_t, int32_t>> seen_;
};

}  // namespace

void MarkDonations(const Array<runtime::String>& names, vm::Program* program) {
  for (vm::Entry& e : program->entries) {
    if (e.name != "main") continue;
    for (const runtime::String& name : names) {
      int32_t input = -1;
      for (size_t i = 0; i < e.inputs.size(); ++i) {
        if (e.inputs[i].name == name.str()) input = static_cast<int32_t>(i);
      }
      const std::string which = "donate: input `" + name.str() + "` ";
      if (input < 0) throw CompileError(which + "is not there");
      if (!Way(*program).EndsInKernel(e.function, input)) {
        throw CompileError(which +
                           "cannot give its memory to an output: no part of the program reads it last and writes as "
                           "many bytes in its place; leave it out of donate=");
      }
      e.donated.push_back(input);
    }
  }
}

}  // namespace baton::driver
