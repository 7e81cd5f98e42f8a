// SPDX-License-Identifier: Apache-2.0
#include <baton/runtime/interrupt.h>
#include <relay/expr/call_graph.h>

#include <algorithm>
#include <cstdint>

namespace baton::relay {

/// Tarjan's algorithm with an explicit stack.
std::vector<std::vector<size_t>> CallGroups(const std::vector<std::vector<size_t>>& calls) {
  const size_t n = calls.size();
  std::vector<uint32_t> index(n), low(n);
  std::vector<bool> open(n);
  std::vector<size_t> path;
  std::vector<std::vector<size_t>> out;
  uint32_t next = 1;
  struct Visit {
    size_t v, edge;
  };
  for (size_t root = 0; root < n; ++root) {
    if (index[root]) continue;
    std::vector<Visit> stack{{root, 0}};
    while (!stack.empty()) {
      baton::runtime::PollInterrupt();
      auto& [v, edge] = stack.back();
      if (edge == 0 && !index[v]) {
        index[v] = low[v] = next++;
        path.push_back(v);
        open[v] = true;
      }
      if (edge < calls[v].size()) {
        size_t w = calls[v][edge++];
        if (!index[w])
          stack.push_back({w, 0});
        else if (open[w])
          low[v] = std::min(low[v], index[w]);
        continue;
      }
      const size_t done = v;
      if (low[done] == index[done]) {
        out.emplace_back();
        for (;;) {
          size_t w = path.back();
          path.pop_back();
          open[w] = false;
          out.back().push_back(w);
          if (w == done) break;
        }
      }
      stack.pop_back();
      if (!stack.empty()) low[stack.back().v] = std::min(low[stack.back().v], low[done]);
    }
  }
  return out;
}

}  // namespace baton::relay
