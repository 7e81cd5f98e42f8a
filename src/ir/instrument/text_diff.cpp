// SPDX-License-Identifier: Apache-2.0
#include "ir/instrument/text_diff.h"

#include <algorithm>
#include <vector>

namespace baton {
namespace {

std::vector<std::string_view> Lines(std::string_view text) {
  std::vector<std::string_view> out;
  while (!text.empty()) {
    size_t end = std::min(text.find('\n'), text.size());
    out.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

struct Edit {
  char kind;  ///< ' ', '-' or '+'
  std::string_view line;
};

/// Myers' greedy algorithm on the lines between the common prefix and suffix.
std::vector<Edit> Edits(const std::vector<std::string_view>& a, const std::vector<std::string_view>& b) {
  constexpr int kMax = 2000;
  size_t head = 0, tail = 0;
  while (head < a.size() && head < b.size() && a[head] == b[head]) ++head;
  while (tail < a.size() - head && tail < b.size() - head && a[a.size() - 1 - tail] == b[b.size() - 1 - tail]) ++tail;
  std::vector<Edit> out;
  for (size_t i = 0; i < head; ++i) out.push_back({' ', a[i]});
  const int n = static_cast<int>(a.size() - head - tail), m = static_cast<int>(b.size() - head - tail);
  auto at = [&](const std::vector<std::string_view>& v, int i) { return v[head + static_cast<size_t>(i)]; };
  std::vector<std::vector<int>> trace;
  std::vector<int> v(static_cast<size_t>(2 * std::min(n + m, kMax) + 3), 0);
  const int offset = static_cast<int>(v.size() / 2);
  int found = -1;
  for (int d = 0; d <= std::min(n + m, kMax) && found < 0; ++d) {
    trace.push_back(v);
    for (int k = -d; k <= d; k += 2) {
      auto V = [&](int i) -> int& { return v[static_cast<size_t>(offset + i)]; };
      int x = k == -d || (k != d && V(k - 1) < V(k + 1)) ? V(k + 1) : V(k - 1) + 1, y = x - k;
      while (x < n && y < m && at(a, x) == at(b, y)) ++x, ++y;
      V(k) = x;
      if (x >= n && y >= m) {
        found = d;
        break;
      }
    }
  }
  std::vector<Edit> middle;
  if (found < 0) {
    for (int i = 0; i < n; ++i) middle.push_back({'-', at(a, i)});
    for (int i = 0; i < m; ++i) middle.push_back({'+', at(b, i)});
  } else {
    int x = n, y = m;
    for (int d = found; d > 0; --d) {
      const std::vector<int>& w = trace[static_cast<size_t>(d)];
      auto W = [&](int i) { return w[static_cast<size_t>(offset + i)]; };
      int k = x - y, prev = k == -d || (k != d && W(k - 1) < W(k + 1)) ? k + 1 : k - 1;
      int px = W(prev), py = px - prev;
      while (x > px && y > py) --x, --y, middle.push_back({' ', at(a, x)});
      if (x > px) {
        --x, middle.push_back({'-', at(a, x)});
      } else {
        --y, middle.push_back({'+', at(b, y)});
      }
    }
    while (x > 0) --x, middle.push_back({' ', at(a, x)});
    std::reverse(middle.begin(), middle.end());
  }
  out.insert(out.end(), middle.begin(), middle.end());
  for (size_t i = a.size() - tail; i < a.size(); ++i) out.push_back({' ', a[i]});
  return out;
}

}  // namespace

std::string DiffLines(std::string_view before, std::string_view after, int context) {
  if (before == after) return "";
  std::vector<Edit> edits = Edits(Lines(before), Lines(after));
  const size_t around = static_cast<size_t>(std::max(context, 0));
  std::string out;
  size_t i = 0, line_a = 1, line_b = 1;
  while (i < edits.size()) {
    // The next group: from `around` lines before a change to `around` after its last that has another near.
    size_t change = i;
    while (change < edits.size() && edits[change].kind == ' ') ++change;
    if (change == edits.size()) break;
    size_t begin = change - std::min(around, change - i), end = change;
    for (size_t j = change, equal = 0; j < edits.size() && equal <= 2 * around; ++j) {
      equal = edits[j].kind == ' ' ? equal + 1 : 0;
      if (!equal) end = j + 1;
    }
    end = std::min(edits.size(), end + around);
    line_a += begin - i, line_b += begin - i;
    size_t na = 0, nb = 0;
    std::string body;
    for (size_t j = begin; j < end; ++j) {
      na += edits[j].kind != '+', nb += edits[j].kind != '-';
      body += edits[j].kind;
      body += edits[j].line;
      body += '\n';
    }
    out += "@@ -" + std::to_string(line_a) + "," + std::to_string(na) + " +" + std::to_string(line_b) + "," +
           std::to_string(nb) + " @@\n" + body;
    line_a += na, line_b += nb;
    i = end;
  }
  return out;
}

}  // namespace baton
