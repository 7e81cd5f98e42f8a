// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "rpc/confine/descriptor.h"

namespace baton::rpc {

/// Text of a peer's or a session's as it may be shown: a printable line, other bytes as \xNN.
std::string Shown(std::string_view text);
/// Writes a line to standard error, behind "baton-rpc: ".
void Say(std::string_view line);

/// The end of a pipe that a session's process prints into. Its lines are shown behind the process's number, so that
/// none can pass for another, up to a number of bytes.
class SessionOutput {
 public:
  SessionOutput() = default;
  explicit SessionOutput(Descriptor pipe) : pipe_(std::move(pipe)) {}
  int fd() const { return pipe_.get(); }
  /// Shows what has come; the rest of a line too when the process has ended.
  void Pass(int pid, bool ended);

 private:
  void Line(int pid, std::string_view line);
  Descriptor pipe_;
  std::string rest_;
  size_t bytes_ = 0;
};

}  // namespace baton::rpc
