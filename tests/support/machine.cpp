// SPDX-License-Identifier: Apache-2.0
#include <baton/support/machine.h>
#include <doctest/doctest.h>
#include <sched.h>

#include <fstream>
#include <string>
#include <thread>

using namespace baton::support;

TEST_CASE("the features agree with what the kernel says") {
  std::ifstream in("/proc/cpuinfo");
  std::string line, flags;
  while (std::getline(in, line)) {
    if (line.rfind("flags", 0) == 0) flags = line + " ";
  }
  if (!flags.empty()) {
    const char* names[][2] = {{"avx2", " avx2 "},
                              {"fma", " fma "},
                              {"avx512f", " avx512f "},
                              {"avx512bw", " avx512bw "},
                              {"avx512vl", " avx512vl "},
                              {"avx512vnni", " avx512_vnni "},
                              {"avx512bf16", " avx512_bf16 "},
                              {"avx512fp16", " avx512_fp16 "},
                              {"sha", " sha_ni "},
                              {"amx-tile", " amx_tile "},
                              {"amx-bf16", " amx_bf16 "},
                              {"amx-int8", " amx_int8 "},
                              {"avxvnni", " avx_vnni "},
                              {"lzcnt", " abm "},
                              {"bmi2", " bmi2 "},
                              {"f16c", " f16c "}};
    for (const auto& n : names) {
      CAPTURE(n[0]);
      CHECK(HasCpuFeature(n[0]) == (flags.find(n[1]) != std::string::npos));
    }
  }
  CHECK_FALSE(HasCpuFeature("no-such-feature"));
  CHECK_FALSE(IsKnownCpuFeature("no-such-feature"));
  CHECK(CpuFeatures() == CpuFeatures());
}

TEST_CASE("sizes and counts are plausible") {
  const CpuInfo& m = Machine();
  CHECK(m.page_size >= 4096);
  CHECK(m.memory > (64u << 20));
  CHECK(m.num_cpus >= 1);
  if (m.l2) CHECK(m.l2 > m.l1d);
  CHECK(&Machine() == &m);
}

TEST_CASE("the affinity mask bounds the number of processors") {
  std::thread([] {  // the mask is the thread's own
    cpu_set_t set;
    REQUIRE(sched_getaffinity(0, sizeof(set), &set) == 0);
    for (int i = 0, seen = 0; i < CPU_SETSIZE; ++i) {
      if (CPU_ISSET(i, &set) && seen++) CPU_CLR(i, &set);
    }
    REQUIRE(sched_setaffinity(0, sizeof(set), &set) == 0);
    CHECK(AvailableCpus() == 1);
  })
      .join();
  CHECK(AvailableCpus() == Machine().num_cpus);
}
