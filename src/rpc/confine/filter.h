// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace baton::rpc {

struct FilterKind {
  bool front = false;    ///< of a process that passes bytes on
  bool devices = false;  ///< lets ioctl of GPU drivers and shared mappings of files through
  bool asks = true;      ///< with a supervisor: it answers `Check::kAsk`, threads, and calls that have no row
};

/// Restricts this process, all threads, to the calls of calls.h. Returns the descriptor on which a supervisor hears of
/// calls, -1 without one. Throws RPCError. With a supervisor the process can still send the descriptor: SealFilter ends
/// that.
int InstallFilter(FilterKind kind);
void SealFilter();

/// Has the process answer the calls of `Check::kEmulate`: what it may open it may ask about. Call before InstallFilter.
void EmulateQueries();

}  // namespace baton::rpc
