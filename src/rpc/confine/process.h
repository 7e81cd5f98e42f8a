// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace baton::rpc {

/// The facts of a process in /proc/PID/status.
struct ProcessStatus {
  uint64_t data_bytes = 0;    ///< mapped to be written
  uint64_t memory_bytes = 0;  ///< in use: private, shared, swapped, and tables of pages
  uint64_t threads = 0;
};

/// Milliseconds of the monotonic clock.
int64_t NowMs();
/// Zeros for a process that is gone.
ProcessStatus StatusOf(pid_t pid);
/// Bytes that a process has written with write and its kin, which sockets are not written with.
uint64_t BytesWritten(pid_t pid);
/// Nanoseconds of processor time of a process; 0 for one that is gone.
uint64_t ProcessorTime(pid_t pid);
/// A file of /proc, as a whole up to `most` bytes; empty where it cannot be read.
std::string ReadProc(pid_t pid, const char* name, size_t most = 8192);

}  // namespace baton::rpc
