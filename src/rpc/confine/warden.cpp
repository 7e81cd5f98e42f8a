// SPDX-License-Identifier: Apache-2.0
#include "rpc/confine/warden.h"

#include <baton/support/text.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#include <cerrno>

#include "rpc/confine/calls.h"
#include "rpc/confine/confine.h"
#include "rpc/confine/process.h"

namespace baton::rpc {
using support::Cat;
namespace {

constexpr int64_t kGraceMs = 2000;  // a session has it to end by itself, with its own words
constexpr uint64_t kRefusals = 10000;
constexpr int kAnswersAtOnce = 64;

std::string MiB(uint64_t bytes) { return Cat(bytes >> 20, " MiB"); }

}  // namespace

Warden::Warden(pid_t pid, std::string folder, const SessionTerms& terms, Descriptor calls, const SessionPulse* pulse)
    : pid_(pid),
      terms_(terms),
      calls_(std::move(calls)),
      pulse_(pulse),
      usage_(pid, std::move(folder)),
      began_ms_(NowMs()),
      names_left_(terms.files) {}

void Warden::Begin(const SessionTerms& terms) {
  terms_ = terms;
  began_ms_ = NowMs();
}

std::vector<std::string> Warden::Answer() {
  std::vector<std::string> refused;
  for (int i = 0; i < kAnswersAtOnce; ++i) {
    pollfd p{calls_.get(), POLLIN, 0};
    if (poll(&p, 1, 0) <= 0 || !(p.revents & POLLIN)) break;
    seccomp_notif call{};
    if (ioctl(calls_.get(), SECCOMP_IOCTL_NOTIF_RECV, &call) != 0) break;
    seccomp_notif_resp answer{};
    answer.id = call.id;
    // Calls are decided by registers, which the session cannot change meanwhile.
    if (const int error = ErrorFor(call)) {
      answer.error = -error;
      if (error == EPERM && told_.insert(call.data.nr).second) refused.push_back(NameOfCall(call.data.nr));
    } else {
      answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
    }
    ioctl(calls_.get(), SECCOMP_IOCTL_NOTIF_SEND, &answer);
  }
  return refused;
}

/// 0 to let a call through.
int Warden::ErrorFor(const seccomp_notif& call) {
  if (call.data.nr == SYS_clone) return StatusOf(pid_).threads >= terms_.threads ? EAGAIN : 0;
  for (const CallRow& row : SessionCalls()) {
    const bool names = row.check == Check::kAsk || row.check == Check::kOpenFirst || row.check == Check::kOpenSecond;
    if (row.number == call.data.nr && names) return ErrorForName();
  }
  ++refused_;
  return EPERM;
}

int Warden::ErrorForName() {
  if (names_left_ == 0) {
    usage_.Measure(BytesWritten(pid_));
    names_left_ = usage_.names() < terms_.files ? terms_.files - usage_.names() : 0;
  }
  if (names_left_ == 0) return EDQUOT;
  --names_left_;
  ++names_given_;
  return 0;
}

std::string Warden::Check(bool client_here) {
  std::string why = CheckTime(client_here);
  if (why.empty() && terms_.confined) why = CheckUsage();
  return why;
}

std::string Warden::CheckTime(bool client_here) {
  const int64_t now = NowMs();
  const auto passed = [now](int64_t since, double seconds) {
    return now - since > static_cast<int64_t>(seconds * 1000) + kGraceMs;
  };
  if (client_here) gone_ms_ = 0;
  if (!client_here && gone_ms_ == 0) gone_ms_ = now;
  if (gone_ms_ != 0 && passed(gone_ms_, terms_.linger_seconds)) return "its client is gone";
  if (terms_.wall_seconds > 0 && passed(began_ms_, terms_.wall_seconds)) {
    return Cat("it lasted longer than ", static_cast<int64_t>(terms_.wall_seconds), " s");
  }
  const int64_t waits = pulse_->waits_since_ms.load(std::memory_order_relaxed);
  if (terms_.idle_seconds > 0 && waits > 0 && passed(waits, terms_.idle_seconds)) {
    return Cat("its client called nothing for ", static_cast<int64_t>(terms_.idle_seconds), " s");
  }
  return "";
}

std::string Warden::CheckUsage() {
  const uint64_t processor = ProcessorTime(pid_);
  if (processor == processor_) return "";  // it did nothing since
  processor_ = processor;
  if (refused_ > kRefusals)
    return Cat("it made more than ", kRefusals, " calls of the system that no session may make");
  const uint64_t written = BytesWritten(pid_);
  if (written != written_ || names_given_ > 0) {
    written_ = written;
    names_given_ = 0;
    usage_.Measure(written);
    names_left_ = usage_.names() < terms_.files ? terms_.files - usage_.names() : 0;
    if (usage_.too_deep()) return "it nests folders too deep";
    if (terms_.disk_bytes && usage_.bytes() > terms_.disk_bytes) {
      return Cat("its files take ", MiB(usage_.bytes()), ", and may take ", MiB(terms_.disk_bytes), " (--disk)");
    }
  }
  const ProcessStatus status = StatusOf(pid_);
  const uint64_t memory = status.memory_bytes + usage_.nameless_bytes();
  if (terms_.memory_bytes && memory > terms_.memory_bytes + kOwnBytes) {
    return Cat("it uses ", MiB(memory), " of memory, and may use ", MiB(terms_.memory_bytes), " (--memory)");
  }
  if (status.threads > terms_.threads) return Cat("it has ", status.threads, " threads, and may have ", terms_.threads);
  return "";
}

}  // namespace baton::rpc
