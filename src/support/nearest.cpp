// SPDX-License-Identifier: Apache-2.0
#include <baton/support/nearest.h>

#include <algorithm>

namespace baton::support {
namespace {

/// Edit distance, given up beyond `limit`.
size_t Distance(std::string_view a, std::string_view b, size_t limit) {
  if ((a.size() > b.size() ? a.size() - b.size() : b.size() - a.size()) > limit) return limit + 1;
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j < row.size(); ++j) row[j] = j;
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diag = row[0], best = row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
      size_t next = std::min({row[j + 1] + 1, row[j] + 1, diag + (lower(a[i]) != lower(b[j]))});
      diag = row[j + 1];
      row[j + 1] = next;
      best = std::min(best, next);
    }
    if (best > limit) return limit + 1;
  }
  return row.back();
}

}  // namespace

std::vector<std::string> Nearest(std::string_view name, const std::vector<std::string>& known) {
  name = name.substr(0, 100);
  size_t limit = std::max<size_t>(1, name.size() / 3);
  // The nearest three, the first of equals first: kept in order, since a sort is 3 KB of code.
  constexpr size_t kMax = 3;
  const std::string* best[kMax] = {};
  size_t distance[kMax], n = 0;
  for (const std::string& k : known) {
    size_t d = Distance(name, k, limit);
    // A name that lacks its prefix ("conv2d" for "nn.conv2d") is near.
    if (d > limit && name.size() > 2 && k.size() > name.size() && k[k.size() - name.size() - 1] == '.' &&
        k.ends_with(name))
      d = 1;
    if (d > limit || (n == kMax && d >= distance[n - 1])) continue;
    size_t at = n < kMax ? n++ : n - 1;
    for (; at > 0 && distance[at - 1] > d; --at) {
      best[at] = best[at - 1];
      distance[at] = distance[at - 1];
    }
    best[at] = &k;
    distance[at] = d;
  }
  std::vector<std::string> out;
  for (size_t i = 0; i < n; ++i) out.push_back(*best[i]);
  return out;
}

std::string DidYouMean(std::string_view name, const std::vector<std::string>& known) {
  std::string s;
  for (const std::string& n : Nearest(name, known)) s += (s.empty() ? "; did you mean `" : ", `") + n + "`";
  return s.empty() ? s : s + "?";
}

}  // namespace baton::support
