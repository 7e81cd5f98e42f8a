// SPDX-License-Identifier: Apache-2.0
#include "rpc/confine/process.h"

#include <baton/support/text.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

#include "rpc/confine/descriptor.h"

namespace baton::rpc {
namespace {

/// The number behind "\nNAME:" in a text of such lines.
uint64_t NumberOf(const std::string& text, std::string_view name) {
  const size_t at = text.find(support::Cat("\n", name, ":"));
  return at == std::string::npos ? 0 : strtoull(text.c_str() + at + name.size() + 2, nullptr, 10);
}

}  // namespace

int64_t NowMs() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<int64_t>(t.tv_sec) * 1000 + t.tv_nsec / 1000000;
}

std::string ReadProc(pid_t pid, const char* name, size_t most) {
  const Descriptor file(open(support::Cat("/proc/", pid, "/", name).c_str(), O_RDONLY | O_CLOEXEC));
  std::string text(file ? most : 0, '\0');
  size_t size = 0;
  for (ssize_t n = 0; size < text.size() && (n = read(file.get(), text.data() + size, text.size() - size)) > 0;) {
    size += static_cast<size_t>(n);
  }
  text.resize(size);
  return text;
}

ProcessStatus StatusOf(pid_t pid) {
  const std::string text = ReadProc(pid, "status");
  ProcessStatus status;
  status.data_bytes = NumberOf(text, "VmData") << 10;
  for (const char* part : {"RssAnon", "RssShmem", "VmSwap", "VmPTE"}) status.memory_bytes += NumberOf(text, part) << 10;
  status.threads = NumberOf(text, "Threads");
  return status;
}

uint64_t BytesWritten(pid_t pid) { return NumberOf(ReadProc(pid, "io"), "wchar"); }

uint64_t ProcessorTime(pid_t pid) {
  clockid_t clock{};
  timespec time{};
  if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &time) != 0) return 0;
  return static_cast<uint64_t>(time.tv_sec) * 1000000000u + static_cast<uint64_t>(time.tv_nsec);
}

}  // namespace baton::rpc
