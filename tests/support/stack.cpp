// SPDX-License-Identifier: Apache-2.0
#include <baton/support/stack.h>
#include <doctest/doctest.h>

#include <stdexcept>
#include <string>

#include "on_stack.h"

using baton::support::RunOnFreshStack;
using baton::support::StackNearEnd;
using baton::support::WithStack;
using on_stack::kDeep;

namespace {

/// A frame of about 200 bytes that the optimiser cannot turn into a loop.
[[gnu::noinline]] int64_t Naive(int n) {
  volatile char fat[128];
  fat[n % 128] = char(n);
  return WithStack([&]() -> int64_t { return n == 0 ? 0 : 1 + Naive(n - 1) + (fat[n % 128] - char(n)); });
}

[[gnu::noinline]] void NaiveThrow(int n) {
  WithStack([&] {
    if (n == 0) throw std::runtime_error("at the bottom");
    NaiveThrow(n - 1);
  });
}

[[gnu::noinline]] int Endless(int n) {
  volatile char fat[60000];  // one page of each frame is touched
  fat[0] = char(n);
  return WithStack([&] { return n < 0 ? 0 : 1 + Endless(n + 1) + (fat[0] - char(n)); });
}

}  // namespace

TEST_CASE("a naive recursion 1,000,000 deep passes with 8 MiB and with 512 KiB of stack") {
  CHECK(Naive(kDeep) == kDeep);
  on_stack::OnStack(8 << 20, [] { CHECK(Naive(kDeep) == kDeep); });
  on_stack::OnStack(512 << 10, [] { CHECK(Naive(kDeep) == kDeep); });
}

TEST_CASE("an exception crosses every stack, and the stacks are usable after it") {
  on_stack::OnStack(512 << 10, [] {
    for (int round = 0; round < 2; ++round) {
      std::string got;
      try {
        NaiveThrow(kDeep / 4);
      } catch (const std::runtime_error& e) {
        got = e.what();
      }
      CHECK(got == "at the bottom");
    }
    CHECK(Naive(kDeep / 10) == kDeep / 10);
  });
}

TEST_CASE("a fresh stack is on the same thread, has room, and gives results back") {
  static thread_local int local;
  local = 7;
  struct {
    int seen;
    bool near_end;
  } out{0, true};
  RunOnFreshStack(
      [](void* p) {
        auto* o = static_cast<decltype(out)*>(p);
        o->seen = local;
        local = 8;
        o->near_end = StackNearEnd(32 << 20);
      },
      &out);
  CHECK(out.seen == 7);
  CHECK(local == 8);
  CHECK_FALSE(out.near_end);
  // Results that are values, references and nothing; here on this stack, and on the far side of a switch.
  struct Fresh {
    static std::string Value(int n) {
      return WithStack([&] { return n == 0 ? std::string("a string longer than any small buffer") : Value(n - 1); });
    }
    static int& Ref(int n, int& r) {
      return WithStack([&]() -> int& { return n == 0 ? r : Ref(n - 1, r); });
    }
  };
  CHECK(Fresh::Value(kDeep / 20) == "a string longer than any small buffer");
  int x = 0;
  CHECK(&Fresh::Ref(kDeep / 20, x) == &x);
}

#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
TEST_CASE("a recursion without an end is an error, not a crash") {
  CHECK_THROWS_AS(Endless(0), std::runtime_error);
  CHECK(Naive(1000) == 1000);
}
#endif
