// SPDX-License-Identifier: Apache-2.0
#include <baton/runtime/error.h>
#include <baton/runtime/threading.h>
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

using namespace baton::runtime::threading;

namespace {

struct Threads {
  explicit Threads(int n) { SetNumThreads(n); }
  ~Threads() { SetNumThreads(0); }
};

struct Counts {
  std::vector<std::atomic<int>> hits;
  explicit Counts(size_t n) : hits(n) {}
  static int Task(int id, int n, void* p) {
    Counts* c = static_cast<Counts*>(p);
    CHECK(n == int(c->hits.size()));
    c->hits[id].fetch_add(1);
    return 0;
  }
  bool All(int times) const {
    for (const auto& h : hits) {
      if (h.load() != times) return false;
    }
    return true;
  }
};

}  // namespace

TEST_CASE("each task runs exactly once, whatever the numbers of tasks and threads") {
  for (int threads : {1, 2, 3, 7}) {
    Threads t(threads);
    CHECK(NumThreads() == threads);
    for (int tasks : {1, 2, 3, 8, 100}) {
      Counts c(tasks);
      for (int round = 0; round < 50; ++round) CHECK(Launch(Counts::Task, &c, tasks) == 0);
      CHECK(c.All(50));
    }
    Counts all(threads);
    CHECK(BatonBackendParallelLaunch(Counts::Task, &all, 0) == 0);
    CHECK(all.All(1));
  }
}

TEST_CASE("writes of the tasks are seen by the caller, and those before by the tasks") {
  Threads t(4);
  std::vector<int64_t> data(1000);
  int64_t offset = 0;
  for (int round = 0; round < 300; ++round) {
    offset = round;
    ParallelFor(1000, 1, [&](int64_t b, int64_t e) {
      for (int64_t i = b; i < e; ++i) data[i] = i + offset;
    });
    int64_t sum = 0;
    for (int64_t v : data) sum += v;
    REQUIRE(sum == 499500 + 1000 * offset);
  }
  int calls = 0;
  ParallelFor(0, 1, [&](int64_t, int64_t) { ++calls; });
  CHECK(calls == 0);
  ParallelFor(10, 100, [&](int64_t b, int64_t e) { calls += int(e - b); });  // below the grain: on this thread
  CHECK(calls == 10);
}

TEST_CASE("a nested region runs on its own thread with the same number of tasks") {
  Threads t(3);
  std::atomic<int> inner{0};
  struct Ctx {
    std::atomic<int>* inner;
  } ctx{&inner};
  CHECK_FALSE(InParallelRegion());
  Launch(
      [](int, int, void* p) {
        CHECK(InParallelRegion());
        return BatonBackendParallelLaunch(
            [](int, int n, void* q) {
              CHECK(n == 3);
              static_cast<Ctx*>(q)->inner->fetch_add(1);
              return 0;
            },
            p, 0);
      },
      &ctx, 0);
  CHECK(inner.load() == 9);
  CHECK_FALSE(InParallelRegion());
}

TEST_CASE("the failure of the lowest task comes out, as exception, code or pending error") {
  Threads t(4);
  for (int round = 0; round < 20; ++round) {
    std::string got;
    try {
      ParallelFor(100, 1, [](int64_t b, int64_t) {
        if (b >= 25) throw std::out_of_range("part from " + std::to_string(b));
      });
    } catch (const std::out_of_range& e) {
      got = e.what();
    }
    CHECK(got == "part from 25");
    CHECK(BatonBackendParallelLaunch([](int id, int, void*) { return id < 2 ? 0 : id * 10; }, nullptr, 4) == 20);
    CHECK(BatonBackendParallelLaunch(
              [](int id, int, void*) {
                return id < 2 ? 0 : BatonBackendSetError(("task " + std::to_string(id)).c_str());
              },
              nullptr, 4) == -1);
    CHECK(std::string(BatonErrorMessage()) == "task 2");
    BatonErrorPut(nullptr);
    Counts c(4);
    CHECK(Launch(Counts::Task, &c, 4) == 0);  // and the pool still works
  }
}

TEST_CASE("several callers at once: each gets all its tasks run") {
  Threads t(2);
  std::vector<std::thread> callers;
  std::atomic<int> bad{0};
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([&] {
      for (int round = 0; round < 500; ++round) {
        std::atomic<int> sum{0};
        Launch(
            [](int id, int, void* p) {
              static_cast<std::atomic<int>*>(p)->fetch_add(id + 1);
              return 0;
            },
            &sum, 5);
        if (sum.load() != 15) ++bad;
      }
    });
  }
  for (auto& c : callers) c.join();
  CHECK(bad.load() == 0);
}

TEST_CASE("workers that fell asleep wake, and many more threads than processors get on") {
  Threads t(16);
  for (int round = 0; round < 5; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(round));
    Counts c(16);
    CHECK(Launch(Counts::Task, &c, 0) == 0);
    CHECK(c.All(1));
  }
}

TEST_CASE("more tasks than units: each runs once") {
  Threads t(3);
  Counts c(20000);
  for (int round = 0; round < 3; ++round) CHECK(Launch(Counts::Task, &c, 20000) == 0);
  CHECK(c.All(3));
}

TEST_CASE("a thread within a long task holds up none of the others' tasks") {
  Threads t(2);
  // Task 0 waits until all the others have run, those of its own thread too.
  std::atomic<int> ended{0};
  Launch(
      [](int id, int n, void* p) {
        auto* e = static_cast<std::atomic<int>*>(p);
        if (id == 0) {
          while (e->load() < n - 1) std::this_thread::yield();
        }
        e->fetch_add(1);
        return 0;
      },
      &ended, 8);
  CHECK(ended.load() == 8);
}

#if !defined(__SANITIZE_THREAD__)  // which does not follow threads into a child
TEST_CASE("a forked child has a pool of its own") {
  Threads t(3);
  Counts before(3);
  Launch(Counts::Task, &before, 0);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    std::atomic<int> sum{0};
    Launch(
        [](int id, int, void* p) {
          static_cast<std::atomic<int>*>(p)->fetch_add(id + 1);
          return 0;
        },
        &sum, 0);
    _exit(sum.load() == 6 && NumThreads() == 3 ? 0 : 1);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  Counts after(3);
  CHECK(Launch(Counts::Task, &after, 0) == 0);
  CHECK(after.All(1));
}
#endif

TEST_CASE("the environment sets the number of threads; nonsense in it is an error") {
  const char* old = getenv("BATON_NUM_THREADS");
  const std::string saved = old ? old : "";
  setenv("OMP_NUM_THREADS", "5,2", 1);
  unsetenv("BATON_NUM_THREADS");
  SetNumThreads(0);
  CHECK(NumThreads() == 5);
  setenv("BATON_NUM_THREADS", "3", 1);
  SetNumThreads(0);
  CHECK(NumThreads() == 3);
  for (const char* bad : {"x", "0", "-1", "3x", "1e3", "99999"}) {
    setenv("BATON_NUM_THREADS", bad, 1);
    SetNumThreads(0);
    CAPTURE(bad);
    CHECK_THROWS_AS(NumThreads(), baton::RuntimeError);
  }
  unsetenv("OMP_NUM_THREADS");
  old ? setenv("BATON_NUM_THREADS", saved.c_str(), 1) : unsetenv("BATON_NUM_THREADS");
  SetNumThreads(0);
  CHECK(NumThreads() >= 1);
  CHECK_THROWS_AS(SetNumThreads(-1), baton::RuntimeError);
  CHECK_THROWS_AS(SetNumThreads(100000), baton::RuntimeError);
}
