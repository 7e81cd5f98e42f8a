// SPDX-License-Identifier: Apache-2.0
#include "rpc/audit.h"

#include <baton/support/text.h>
#include <limits.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>

namespace baton::rpc {
using support::Cat;
namespace {

constexpr size_t kMostBytes = 64 << 10;  // that a session prints
constexpr size_t kMostLine = 512;
constexpr size_t kMostShown = PIPE_BUF;  // a pipe that can be written to takes so much at once

int lost_lines = 0;

}  // namespace

std::string Shown(std::string_view text) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string shown;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= ' ' && byte < 0x7f) {
      shown += c;
    } else if (c == '\t') {
      shown += ' ';
    } else {
      shown += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return shown;
}

void Say(std::string_view line) {
  const auto write_line = [](std::string_view what) {
    constexpr std::string_view kHead = "baton-rpc: ";
    const std::string text = Cat(kHead, what.substr(0, kMostShown - kHead.size() - 1), "\n");
    pollfd to{2, POLLOUT, 0};
    return poll(&to, 1, 0) > 0 && (to.revents & POLLOUT) && write(2, text.data(), text.size()) >= 0;
  };
  if (lost_lines > 0 && write_line(Cat(lost_lines, " lines before this one were not taken"))) lost_lines = 0;
  if (lost_lines > 0 || !write_line(line)) ++lost_lines;
}

void SessionOutput::Line(int pid, std::string_view line) {
  if (!line.empty()) Say(Cat("session ", pid, " says: ", Shown(line)));
}

void SessionOutput::Pass(int pid, bool ended) {
  char piece[4096];
  for (ssize_t n = 0; pipe_ && (n = read(pipe_.get(), piece, sizeof piece)) != 0;) {
    if (n < 0) break;  // for now there is no more
    bytes_ += static_cast<size_t>(n);
    rest_.append(piece, static_cast<size_t>(n));
    for (size_t end; (end = rest_.find('\n')) != std::string::npos || rest_.size() > kMostLine;) {
      if (end > kMostLine) end = kMostLine;
      Line(pid, std::string_view(rest_).substr(0, end));
      rest_.erase(0, end + (end < rest_.size() && rest_[end] == '\n'));
    }
    if (bytes_ > kMostBytes) {
      pipe_.Close();
      Say(Cat("session ", pid, " has printed more than ", kMostBytes >> 10, " KiB; the rest is not shown"));
    }
  }
  if (ended) {
    Line(pid, rest_);
    rest_.clear();
    pipe_.Close();
  }
}

}  // namespace baton::rpc
