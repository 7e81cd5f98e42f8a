// SPDX-License-Identifier: Apache-2.0
// Runs many mutants through a reader: an error of ours is an answer, anything else is a defect. tests/fuzz/run.py says
// by the environment which, and what is kept of one that kills the process.
#pragma once

#include <baton/runtime/error.h>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "mutate.h"

namespace baton::fuzz {

using Corpus = std::vector<std::string>;

inline size_t FromEnv(const char* name, size_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : static_cast<size_t>(std::strtoull(text, nullptr, 10));
}

/// Ends the process by SIGPROF where one mutant takes longer than that, in seconds of processor time; 0: never.
inline void Watch(size_t seconds) {
  itimerval timer{};
  timer.it_value.tv_sec = static_cast<time_t>(seconds);
  setitimer(ITIMER_PROF, &timer, nullptr);
}

/// A file whose content is replaced again and again.
class Kept {
 public:
  explicit Kept(const std::string& path)
      : fd_(path.empty() ? -1 : open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {}
  Kept(const Kept&) = delete;
  ~Kept() {
    if (fd_ >= 0) close(fd_);
  }
  void Write(const std::string& content) const {
    if (fd_ < 0) return;
    if (pwrite(fd_, content.data(), content.size(), 0) < 0 || ftruncate(fd_, static_cast<off_t>(content.size())) != 0) {
      std::perror("fuzz: the mutant under way cannot be kept");
    }
  }

 private:
  int fd_;
};

/// Runs `use` on mutants BATON_FUZZ_FIRST, ... of BATON_FUZZ_COUNT. The mutant under way stands in BATON_FUZZ_KEEP, so
/// that one that kills the process is not lost.
template <typename Mutate, typename Use>
void Fuzz(const char* kind, const Corpus& corpus, Mutate&& mutate, Use&& use) {
  REQUIRE(!corpus.empty());
  size_t first = FromEnv("BATON_FUZZ_FIRST", 0), total = FromEnv("BATON_FUZZ_COUNT", 400);
  size_t seconds = FromEnv("BATON_FUZZ_SECONDS", 0), refused = 0, wrongs = 0;
  const char* keep = std::getenv("BATON_FUZZ_KEEP");
  const Kept mutant_file(keep ? keep : ""), index_file(keep ? std::string(keep) + ".index" : "");
  for (size_t i = first; i < first + total; ++i) {
    Random random(i);
    std::string mutant = mutate(corpus[i % corpus.size()], corpus, &random);
    mutant_file.Write(mutant);
    index_file.Write(std::to_string(i));
    std::string wrong;
    Watch(seconds);
    try {
      use(mutant);
    } catch (const InternalError& e) {
      wrong = e.what();
    } catch (const Error&) {
      ++refused;
    } catch (const std::exception& e) {
      wrong = e.what();
    }
    Watch(0);
    wrongs += !wrong.empty();
    INFO("mutant ", i, " of ", std::string(kind), ": ", wrong);
    CHECK(wrong.empty());
  }
  if (keep != nullptr) {
    std::printf("fuzz: %s: from %zu: %zu mutants, %zu accepted, %zu refused, %zu wrong\n", kind, first, total,
                total - refused - wrongs, refused, wrongs);
  }
  // Mutants that are all refused, or none, would show little.
  if (total >= 400) {
    CHECK(refused * 20 > total);
    CHECK(refused < total);
  }
}

}  // namespace baton::fuzz
