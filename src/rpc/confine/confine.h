// SPDX-License-Identifier: Apache-2.0
// Puts the process of a session behind walls that hold for whatever its client has it run.
#pragma once

#include <functional>
#include <initializer_list>
#include <string>

#include "rpc/confine/terms.h"

namespace baton::rpc {

/// Whether this system can confine a session: Landlock and seccomp with a listener (Linux 5.13 and newer).
bool ConfinementWorks();

/// Confines this process, which has one thread: files in `folder` and the system's libraries, the calls of calls.h,
/// no capabilities, its own limits. `hand_over` sends the descriptor on which the supervisor hears of calls that
/// need its consent, and says whether that worked. Throws RPCError, which says what is missing.
void EnterConfinement(const std::string& folder, const SessionTerms& terms, const std::string& module_path,
                      const std::function<bool(int calls)>& hand_over);

/// Confines a process that passes bytes on: no files, programs, sockets or processes. Does without what the system
/// lacks: such a server was told to (`--no-sandbox`), or serves this machine alone.
void ConfineFront();

/// Leaves the environment, and the memory that it came in, without what may be secret: variables that compute
/// libraries and this runtime read stay. Call before other threads run.
void ClearEnvironment();

/// The name of a system call of this machine; its number where it has none here.
std::string NameOfCall(int number);

/// Closes all descriptors but 0, 1, 2 and those of `kept`.
void CloseOthers(std::initializer_list<int> kept);

}  // namespace baton::rpc
