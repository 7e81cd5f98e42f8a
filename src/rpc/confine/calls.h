// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

namespace baton::rpc {

/// On which condition a system call passes. A call without a row does not.
enum class Check : uint8_t {
  kPass,
  kAsk,         ///< when the supervisor consents: it counts names
  kEmulate,     ///< never; `emulate.cpp` answers in its place
  kMissing,     ///< never; the C library does without it (ENOSYS)
  kOwnProcess,  ///< the first argument is this process
  kSelf,        ///< the same, or 0
  kOpenFirst,   ///< open: opens contents, of a name; asks where the file may be new
  kOpenSecond,  ///< openat: the same
  kMap,         ///< mmap: private memory; of a session with devices also shared memory of a file
  kClone,       ///< a thread; the supervisor counts them
  kThreadName,  ///< prctl: names of this thread and its memory, and whether it could gain rights
  kTileState,   ///< arch_prctl: registers that the kernel gives on demand (AMX)
  kControlFd,   ///< fcntl: flags and locks; no signals
  kReadLimits,  ///< prlimit64: reads its own
  kTimeouts,    ///< setsockopt: how long a read or write waits
  kHandler,     ///< rt_sigaction: leaves the handler of kEmulate, and says that it did not
  kDevice,      ///< ioctl: of GPUs, in a session with devices
};

struct CallRow {
  int number;
  Check check;
  bool front;  ///< passes in a front, too
};

/// The calls of a session, those that are made often first.
std::span<const CallRow> SessionCalls();

}  // namespace baton::rpc
