// SPDX-License-Identifier: Apache-2.0
// Registers by a linear scan. Jumps lead forward only, so that a value is alive at most from the first instruction
// that mentions it to the last.
#include <algorithm>
#include <queue>

#include "driver/vm/compile.h"

namespace baton::driver {

using vm::Operand;

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
        w = is_last ? ~place[r] : place[r];
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
