// SPDX-License-Identifier: Apache-2.0
#include "op_versions.h"

#include <algorithm>
#include <iterator>
#include <tuple>

namespace baton::onnx {
namespace {

struct Row {
  std::string_view domain, op, versions;
};

constexpr Row kRows[] = {
#include "op_versions.inc"
};

}  // namespace

OpVersion FindOpVersion(std::string_view domain, std::string_view op, int64_t opset) {
  OpVersion found;
  const Row* row = std::lower_bound(std::begin(kRows), std::end(kRows), std::tie(domain, op),
                                    [](const Row& r, const auto& key) { return std::tie(r.domain, r.op) < key; });
  if (row == std::end(kRows) || row->domain != domain || row->op != op) return found;
  bool minus = false;
  int number = 0;
  auto finish = [&] {
    if (number == 0) return;
    if (found.first == 0) found.first = number;
    if (number <= opset) {
      found.since = number;
      found.deprecated = minus;
    }
    number = 0;
    minus = false;
  };
  for (char c : row->versions) {
    if (c >= '0' && c <= '9') {
      number = number * 10 + (c - '0');
      continue;
    }
    finish();
    if (c == '-') minus = true;
    if (c == '*') found.has_body = true;
  }
  finish();
  return found;
}

}  // namespace baton::onnx
