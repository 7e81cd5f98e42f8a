// SPDX-License-Identifier: Apache-2.0
// Registers by a linear scan. Jumps lead forward only, so that a value is alive at most from the first instruction
// that mentions it to the last.
#include <algorithm>
#include <map>
#include <queue>

#include "driver/vm/compile.h"

namespace baton::driver {

using vm::Opcode;
using vm::Operand;

namespace {

/// For each word whether it reads a register that no way from there on reads again: within branches values die before
/// their last mention. Empty where the sets would be large.
std::vector<bool> DeadAfter(std::vector<int32_t>& words, size_t registers) {
  constexpr size_t kMostBits = size_t{1} << 26;
  std::vector<size_t> begins, targets;
  for (size_t at = 0; at < words.size();) {
    begins.push_back(at);
    at = vm::ForEachOperand(words, at, [&](int32_t& w, Operand kind) {
      if (kind == Operand::kTarget) targets.push_back(static_cast<size_t>(w));
    });
  }
  std::vector<bool> dead;
  if (targets.empty() || targets.size() * registers > kMostBits) return dead;
  dead.resize(words.size());
  std::map<size_t, std::vector<bool>> live_at;
  for (const size_t t : targets) live_at[t];
  std::vector<bool> live(registers);
  for (size_t i = begins.size(); i-- > 0;) {
    const size_t at = begins[i];
    const auto op = static_cast<Opcode>(words[at]);
    if (op == Opcode::kJump || op == Opcode::kReturn || op == Opcode::kTailCall || op == Opcode::kTailClosure ||
        op == Opcode::kFail) {
      live.assign(registers, false);  // nothing goes on to the next
    }
    std::vector<size_t> reads;
    vm::ForEachOperand(words, at, [&](int32_t& w, Operand kind) {
      if (kind == Operand::kTarget) {
        const std::vector<bool>& there = live_at[static_cast<size_t>(w)];
        for (size_t r = 0; r < there.size(); ++r) live[r] = live[r] || there[r];
      } else if (kind == Operand::kRead) {
        reads.push_back(static_cast<size_t>(&w - words.data()));
      }
    });
    vm::ForEachOperand(words, at, [&](int32_t& w, Operand kind) {
      if (kind == Operand::kWrite) live[static_cast<size_t>(w)] = false;
    });
    for (size_t k = reads.size(); k-- > 0;) {  // of several reads of a register, the last gives it up
      const auto r = static_cast<size_t>(words[reads[k]]);
      dead[reads[k]] = !live[r];
      live[r] = true;
    }
    if (const auto t = live_at.find(at); t != live_at.end()) t->second = live;
  }
  return dead;
}

}  // namespace

int32_t AssignRegisters(std::vector<int32_t>* code, int32_t params) {
  std::vector<int32_t>& words = *code;
  // The word of each register's last mention.
  std::vector<size_t> last;
  std::vector<size_t> last_read_word;
  for (size_t at = 0; at < words.size();) {
    const size_t here = at;
    at = vm::ForEachOperand(words, at, [&](int32_t& w, Operand kind) {
      if (kind != Operand::kRead && kind != Operand::kWrite) return;
      const auto r = static_cast<size_t>(w);
      if (last.size() <= r) {
        last.resize(r + 1, 0);
        last_read_word.resize(r + 1, 0);
      }
      last[r] = here;
      if (kind == Operand::kRead) last_read_word[r] = static_cast<size_t>(&w - words.data());
    });
  }
  const std::vector<bool> dead_after = DeadAfter(words, last.size());
  std::vector<int32_t> place(last.size(), -1);
  std::priority_queue<int32_t, std::vector<int32_t>, std::greater<>> free;
  int32_t count = params;
  for (int32_t p = 0; p < params; ++p) {
    if (static_cast<size_t>(p) < last.size() && last_read_word[static_cast<size_t>(p)]) {
      place[static_cast<size_t>(p)] = p;
    } else {
      free.push(p);  // never read
    }
  }
  for (size_t at = 0; at < words.size();) {
    const size_t here = at;
    std::vector<int32_t> dead;
    at = vm::ForEachOperand(words, at, [&](int32_t& w, Operand kind) {
      const auto r = static_cast<size_t>(w);
      if (kind == Operand::kRead) {
        const bool is_last = last[r] == here && last_read_word[r] == static_cast<size_t>(&w - words.data());
        const bool gives_up = is_last || (!dead_after.empty() && dead_after[static_cast<size_t>(&w - words.data())]);
        w = gives_up ? ~place[r] : place[r];
        if (is_last) free.push(place[r]);
      } else if (kind == Operand::kWrite) {
        if (place[r] < 0) {
          if (free.empty()) free.push(count++);
          place[r] = free.top();
          free.pop();
        }
        w = place[r];
        if (last[r] == here) dead.push_back(place[r]);
      }
    });
    for (int32_t d : dead) free.push(d);
  }
  return count;
}

}  // namespace baton::driver
