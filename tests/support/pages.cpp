// SPDX-License-Identifier: Apache-2.0
#include <baton/support/pages.h>
#include <doctest/doctest.h>

#include <atomic>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

using namespace baton::support;  // NOLINT

namespace {

struct Piece {
  unsigned char* at = nullptr;
  size_t bytes = 0;
  unsigned char mark = 0;

  void Fill(size_t from) { std::memset(at + from, mark, bytes - from); }
  bool Holds(unsigned char what, size_t n) const {
    return n == 0 || (at[0] == what && std::memcmp(at, at + 1, n - 1) == 0);
  }
};

/// Pieces that come, grow and go at random; false if one of them did not hold what it should.
bool Churn(uint32_t seed, int steps) {
  std::mt19937 random(seed);
  std::vector<Piece> pieces;
  // Around the size from which on pages are mapped, and sizes that are no whole pages.
  auto size = [&] { return size_t{random() % 5 << 19} + random() % 70000 + 1; };
  for (int i = 0; i < steps; ++i) {
    const uint32_t what = random() % 3;
    if (what == 0 || pieces.empty()) {
      Piece p{.bytes = size(), .mark = static_cast<unsigned char>(1 + random() % 255)};
      p.at = static_cast<unsigned char*>(NewPages(p.bytes));
      if (!p.Holds(0, p.bytes)) return false;
      p.Fill(0);
      pieces.push_back(p);
      continue;
    }
    const size_t k = random() % pieces.size();
    Piece& p = pieces[k];
    if (!p.Holds(p.mark, p.bytes)) return false;
    if (what == 1 && p.bytes < (16 << 20)) {
      const size_t old = p.bytes;
      p.bytes = 2 * old + random() % 5000;
      p.at = static_cast<unsigned char*>(EnlargePages(p.at, old, p.bytes));
      if (!p.Holds(p.mark, old)) return false;
      p.Fill(old);
    } else {
      DeletePages(p.at, p.bytes);
      pieces[k] = pieces.back();
      pieces.pop_back();
    }
  }
  for (const Piece& p : pieces) {
    if (!p.Holds(p.mark, p.bytes)) return false;
    DeletePages(p.at, p.bytes);
  }
  return true;
}

}  // namespace

TEST_CASE("pages that are used again are zeroed, grow with their content and belong to one piece") {
  for (uint32_t seed = 0; seed < 8; ++seed) CHECK(Churn(seed, 150));
}

TEST_CASE("pages are used again from several threads") {
  std::atomic<int> right{0};
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 4; ++t) threads.emplace_back([&, t] { right += Churn(100 + t, 120); });
  for (std::thread& t : threads) t.join();
  CHECK(right == 4);
}
