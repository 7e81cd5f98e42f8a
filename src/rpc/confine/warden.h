// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <vector>

#include "rpc/confine/descriptor.h"
#include "rpc/confine/terms.h"
#include "rpc/confine/usage.h"

struct seccomp_notif;

namespace baton::rpc {

/// Memory of a session's process before its client has it do anything; comes on top of what the session may use.
inline constexpr uint64_t kOwnBytes = 32 << 20;

/// The supervisor's eye on a session. It trusts nothing that the session's process says, but for the pulse.
class Warden {
 public:
  /// `calls`: where calls that need consent are heard of, none for a session that is not confined. `pulse` outlives it.
  Warden(pid_t pid, std::string folder, const SessionTerms& terms, Descriptor calls, const SessionPulse* pulse);

  /// The session begins, with terms that its greeting may have made shorter.
  void Begin(const SessionTerms& terms);
  int calls() const { return calls_.get(); }
  /// Answers calls that wait. Returns the names of those that were refused for the first time.
  std::vector<std::string> Answer();
  /// Returns why the session has to end now; empty: it may go on. `client_here`: its connection lives.
  std::string Check(bool client_here);

 private:
  int ErrorFor(const seccomp_notif& call);
  int ErrorForName();
  std::string CheckTime(bool client_here);
  std::string CheckUsage();

  pid_t pid_;
  SessionTerms terms_;
  Descriptor calls_;
  const SessionPulse* pulse_;
  FileUsage usage_;
  int64_t began_ms_, gone_ms_ = 0;
  uint64_t processor_ = 0, written_ = 0;
  uint64_t names_left_, names_given_ = 0;
  uint64_t refused_ = 0;
  std::set<int> told_;
};

}  // namespace baton::rpc
