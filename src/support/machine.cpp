// SPDX-License-Identifier: Apache-2.0
#include <baton/support/machine.h>
#include <baton/support/text.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#define BATON_X86 1
#elif defined(__aarch64__) || defined(__arm__) || defined(__riscv)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#define BATON_HWCAP 1
#endif

namespace baton::support {
namespace {

/// A small file of /proc or /sys; empty when it cannot be read. Not ReadFile: these say they have no size.
std::string Slurp(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return "";
  std::string out;
  char buffer[4096];
  for (;;) {
    const ssize_t n = read(fd, buffer, sizeof(buffer));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0 || out.size() > (1 << 20)) break;
    out.append(buffer, static_cast<size_t>(n));
  }
  close(fd);
  return out;
}

struct Feature {
  const char* name;
#ifdef BATON_X86
  uint8_t leaf;  // 7: leaf 7; 0x71: leaf 7.1; 1: leaf 1; 0x81: leaf 0x80000001
  char reg;
  uint8_t bit;
  uint8_t state;  // which registers the system must save: 0 none, 1 ymm, 2 zmm, 3 tiles
#elif defined(BATON_HWCAP)
  unsigned long cap, cap2;
#endif
};

constexpr Feature kFeatures[] = {
#ifdef BATON_X86
    {"sse2", 1, 'd', 26, 0},
    {"sse3", 1, 'c', 0, 0},
    {"pclmul", 1, 'c', 1, 0},
    {"ssse3", 1, 'c', 9, 0},
    {"fma", 1, 'c', 12, 1},
    {"cx16", 1, 'c', 13, 0},
    {"sse4.1", 1, 'c', 19, 0},
    {"sse4.2", 1, 'c', 20, 0},
    {"movbe", 1, 'c', 22, 0},
    {"popcnt", 1, 'c', 23, 0},
    {"aes", 1, 'c', 25, 0},
    {"avx", 1, 'c', 28, 1},
    {"f16c", 1, 'c', 29, 1},
    {"lzcnt", 0x81, 'c', 5, 0},
    {"bmi", 7, 'b', 3, 0},
    {"avx2", 7, 'b', 5, 1},
    {"bmi2", 7, 'b', 8, 0},
    {"avx512f", 7, 'b', 16, 2},
    {"avx512dq", 7, 'b', 17, 2},
    {"adx", 7, 'b', 19, 0},
    {"avx512ifma", 7, 'b', 21, 2},
    {"avx512cd", 7, 'b', 28, 2},
    {"sha", 7, 'b', 29, 0},
    {"avx512bw", 7, 'b', 30, 2},
    {"avx512vl", 7, 'b', 31, 2},
    {"avx512vbmi", 7, 'c', 1, 2},
    {"avx512vbmi2", 7, 'c', 6, 2},
    {"gfni", 7, 'c', 8, 0},
    {"vaes", 7, 'c', 9, 1},
    {"vpclmulqdq", 7, 'c', 10, 1},
    {"avx512vnni", 7, 'c', 11, 2},
    {"avx512bitalg", 7, 'c', 12, 2},
    {"avx512vpopcntdq", 7, 'c', 14, 2},
    {"avx512vp2intersect", 7, 'd', 8, 2},
    {"amx-bf16", 7, 'd', 22, 3},
    {"avx512fp16", 7, 'd', 23, 2},
    {"amx-tile", 7, 'd', 24, 3},
    {"amx-int8", 7, 'd', 25, 3},
    {"avxvnni", 0x71, 'a', 4, 1},
    {"avx512bf16", 0x71, 'a', 5, 2},
    {"amx-fp16", 0x71, 'a', 21, 3},
    {"avxifma", 0x71, 'a', 23, 1},
    {"avxvnniint8", 0x71, 'd', 4, 1},
    {"avxneconvert", 0x71, 'd', 5, 1},
#elif defined(__aarch64__)
    {"neon", HWCAP_ASIMD, 0}, {"fullfp16", HWCAP_ASIMDHP, 0}, {"dotprod", HWCAP_ASIMDDP, 0}, {"lse", HWCAP_ATOMICS, 0},
    {"sve", HWCAP_SVE, 0},    {"sve2", 0, HWCAP2_SVE2},       {"i8mm", 0, HWCAP2_I8MM},      {"bf16", 0, HWCAP2_BF16},
#elif defined(__arm__)
    {"neon", HWCAP_NEON, 0},
    {"vfp4", HWCAP_VFPv4, 0},
#elif defined(__riscv)
    {"v", 1 << ('v' - 'a'), 0},
#else
    {"generic"},
#endif
};
constexpr size_t kCount = sizeof(kFeatures) / sizeof(kFeatures[0]);
static_assert(kCount <= 64);

uint64_t Detect() {
  uint64_t mask = 0;
#ifdef BATON_X86
  unsigned r[4][4] = {};  // leaves 1, 7, 7.1, 0x80000001; registers a, b, c, d
  const auto ask = [&](int row, unsigned leaf, unsigned sub) {
    __get_cpuid_count(leaf, sub, &r[row][0], &r[row][1], &r[row][2], &r[row][3]);
  };
  ask(0, 1, 0);
  ask(1, 7, 0);
  if (r[1][0] >= 1) ask(2, 7, 1);
  ask(3, 0x80000001u, 0);
  uint64_t saved = 0;
  if (r[0][2] & (1u << 27)) {
    unsigned low, high;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    saved = uint64_t(high) << 32 | low;
  }
  const bool state[4] = {true, (saved & 0x6) == 0x6, (saved & 0xe6) == 0xe6, (saved & 0x60000) == 0x60000};
  for (size_t i = 0; i < kCount; ++i) {
    const Feature& f = kFeatures[i];
    const int row = f.leaf == 1 ? 0 : f.leaf == 7 ? 1 : f.leaf == 0x71 ? 2 : 3;
    if (state[f.state] && (r[row][f.reg - 'a'] >> f.bit & 1)) mask |= uint64_t(1) << i;
  }
#elif defined(BATON_HWCAP)
  const unsigned long cap = getauxval(AT_HWCAP), cap2 = getauxval(AT_HWCAP2);
  for (size_t i = 0; i < kCount; ++i) {
    if ((kFeatures[i].cap & cap) || (kFeatures[i].cap2 & cap2)) mask |= uint64_t(1) << i;
  }
#endif
  return mask;
}

uint64_t Mask() {
  static const uint64_t mask = Detect();
  return mask;
}

int IndexOf(std::string_view name) {
  for (size_t i = 0; i < kCount; ++i) {
    if (name == kFeatures[i].name) return static_cast<int>(i);
  }
  return -1;
}

/// "48K" of the cache with that level which holds data.
size_t CacheSize(int level) {
  for (int i = 0; i < 8; ++i) {
    const std::string dir = Cat("/sys/devices/system/cpu/cpu0/cache/index", i, "/");
    const std::string l = Slurp(dir + "level");
    if (l.empty()) break;
    if (atoi(l.c_str()) != level || Slurp(dir + "type").compare(0, 1, "I") == 0) continue;
    const std::string size = Slurp(dir + "size");
    char* end = nullptr;
    const size_t n = strtoul(size.c_str(), &end, 10);
    return n << (*end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0);
  }
#ifdef _SC_LEVEL1_DCACHE_SIZE
  const long n = sysconf(level == 1   ? _SC_LEVEL1_DCACHE_SIZE
                         : level == 2 ? _SC_LEVEL2_CACHE_SIZE
                                      : _SC_LEVEL3_CACHE_SIZE);
  return n > 0 ? size_t(n) : 0;
#else
  return 0;
#endif
}

/// The folder of this process in a control group hierarchy: "" is version 2, else a controller of version 1.
std::string GroupPath(const char* controller) {
  const std::string all = Slurp("/proc/self/cgroup");
  size_t at = 0;
  while (at < all.size()) {
    size_t end = all.find('\n', at);
    if (end == std::string::npos) end = all.size();
    const std::string line = all.substr(at, end - at);
    at = end + 1;
    const size_t a = line.find(':'), b = a == std::string::npos ? a : line.find(':', a + 1);
    if (b == std::string::npos) continue;
    const std::string names = Cat(",", line.substr(a + 1, b - a - 1), ",");
    const bool match = *controller == '\0' ? names == ",," : names.find(Cat(",", controller, ",")) != std::string::npos;
    if (match) return line.substr(b + 1);
  }
  return "/";
}

/// Calls `f(folder)` for the group of this process and all groups above it.
template <class F>
void ForGroups(const char* root, const char* controller, F f) {
  std::string path = GroupPath(controller);
  for (int i = 0; i < 64; ++i) {
    f(std::string(root) + (path == "/" ? "" : path));
    const size_t slash = path.rfind('/');
    if (slash == std::string::npos || path == "/") break;
    path = slash == 0 ? "/" : path.substr(0, slash);
  }
}

/// Processors that the quotas of the control groups amount to, rounded up; INT_MAX without a quota.
int QuotaCpus() {
  int cpus = INT_MAX;
  const auto take = [&](double quota, double period) {
    if (quota > 0 && period > 0) {
      const double n = quota / period;
      const int up = n < 1 ? 1 : n > 1e6 ? INT_MAX : int(n) + (n > int(n));
      if (up < cpus) cpus = up;
    }
  };
  ForGroups("/sys/fs/cgroup", "", [&](const std::string& dir) {
    const std::string max = Slurp(dir + "/cpu.max");  // "200000 100000" or "max 100000"
    char* end = nullptr;
    const double quota = strtod(max.c_str(), &end);
    if (end != max.c_str()) take(quota, strtod(end, nullptr));
  });
  for (const char* root : {"/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"}) {
    ForGroups(root, "cpu", [&](const std::string& dir) {
      take(atof(Slurp(dir + "/cpu.cfs_quota_us").c_str()), atof(Slurp(dir + "/cpu.cfs_period_us").c_str()));
    });
  }
  return cpus;
}

size_t MemoryLimit() {
  const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  size_t memory = pages > 0 && page > 0 ? size_t(pages) * size_t(page) : 0;
  const auto take = [&](const std::string& text) {
    if (text.empty() || text[0] < '0' || text[0] > '9') return;  // "max"
    const unsigned long long n = strtoull(text.c_str(), nullptr, 10);
    if (n > 0 && n < memory) memory = size_t(n);
  };
  ForGroups("/sys/fs/cgroup", "", [&](const std::string& dir) { take(Slurp(dir + "/memory.max")); });
  ForGroups("/sys/fs/cgroup/memory", "memory",
            [&](const std::string& dir) { take(Slurp(dir + "/memory.limit_in_bytes")); });
  return memory;
}

std::string ModelName() {
  const std::string info = Slurp("/proc/cpuinfo");
  const size_t at = info.find("model name");
  if (at == std::string::npos) return "";
  size_t from = info.find(':', at), to = info.find('\n', at);
  if (from == std::string::npos || to == std::string::npos || from > to) return "";
  for (++from; from < to && info[from] == ' ';) ++from;
  return info.substr(from, to - from);
}

}  // namespace

bool HasCpuFeature(std::string_view name) {
  const int i = IndexOf(name);
  return i >= 0 && (Mask() >> i & 1);
}

bool IsKnownCpuFeature(std::string_view name) { return IndexOf(name) >= 0; }

std::vector<std::string> CpuFeatures() {
  std::vector<std::string> out;
  for (size_t i = 0; i < kCount; ++i) {
    if (Mask() >> i & 1) out.push_back(kFeatures[i].name);
  }
  return out;
}

int AvailableCpus() {
  int cpus = 0;
  // The mask grows until the kernel's fits: it may know of more than 1,024 processors.
  for (size_t n = 1024; n <= (1 << 20); n *= 2) {
    cpu_set_t* set = CPU_ALLOC(n);
    if (!set) break;
    const size_t size = CPU_ALLOC_SIZE(n);
    CPU_ZERO_S(size, set);
    const bool ok = sched_getaffinity(0, size, set) == 0;
    if (ok) cpus = CPU_COUNT_S(size, set);
    CPU_FREE(set);
    if (ok || errno != EINVAL) break;
  }
  if (cpus < 1) cpus = int(sysconf(_SC_NPROCESSORS_ONLN));
  const int quota = QuotaCpus();
  if (quota < cpus) cpus = quota;
  return cpus < 1 ? 1 : cpus;
}

const CpuInfo& Machine() {
  static const CpuInfo info = [] {
    CpuInfo m;
    m.avx2 = HasCpuFeature("avx2");
    m.fma = HasCpuFeature("fma");
    m.f16c = HasCpuFeature("f16c");
    m.avx512f = HasCpuFeature("avx512f");
    m.avx512bw = HasCpuFeature("avx512bw");
    m.avx512vl = HasCpuFeature("avx512vl");
    m.avx512dq = HasCpuFeature("avx512dq");
    m.avx512vnni = HasCpuFeature("avx512vnni");
    m.avx512bf16 = HasCpuFeature("avx512bf16");
    m.avx512fp16 = HasCpuFeature("avx512fp16");
    m.avxvnni = HasCpuFeature("avxvnni");
    m.amx_tile = HasCpuFeature("amx-tile");
    m.amx_bf16 = HasCpuFeature("amx-bf16");
    m.amx_int8 = HasCpuFeature("amx-int8");
    m.l1d = CacheSize(1);
    m.l2 = CacheSize(2);
    m.l3 = CacheSize(3);
    m.page_size = size_t(sysconf(_SC_PAGESIZE));
    m.memory = MemoryLimit();
    m.num_cpus = AvailableCpus();
    m.model_name = ModelName();
    return m;
  }();
  return info;
}

bool EnableAmx() {
#if defined(__x86_64__) && defined(__linux__)
  // arch_prctl(ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA); a second request is harmless.
  static const bool enabled = HasCpuFeature("amx-tile") && syscall(SYS_arch_prctl, 0x1023, 18) == 0;
  return enabled;
#else
  return false;
#endif
}

}  // namespace baton::support
