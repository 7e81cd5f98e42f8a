// SPDX-License-Identifier: Apache-2.0
// Frames on the connection of an endpoint: reading and writing them, credit, and a new connection in place of a lost
// one.
//
// Both sides count the bytes of their frames, CREDIT apart, from the end of the greeting on. CREDIT says how many were
// taken: a sender lets no more than a window of DATA run ahead of it, and keeps what the peer has not said to have
// taken. A new connection begins with what either side has taken; what follows is sent again from there, so that each
// frame arrives once, wherever the connection was cut.
#include <baton/support/text.h>

#include <cstring>

#include "rpc/endpoint.h"
#include "rpc/errors.h"

namespace baton::rpc {
using namespace runtime;  // NOLINT
using support::Cat;

namespace {
constexpr size_t kBuffer = 64 << 10;
constexpr size_t kPiece = 256 << 10;  // of DATA: others wait no longer than one takes
constexpr double kFrameSeconds = 30;  // for a frame that has begun
constexpr uint64_t kWindow = 8 << 20, kTell = 1 << 20;
constexpr size_t kMostEarly = 4096;
}  // namespace

void KeptBytes::Add(const void* data, size_t size) {
  const size_t have = static_cast<size_t>(to_ - from_);
  if (have + size > ring_.size()) {
    size_t room = ring_.empty() ? 4096 : ring_.size();
    while (room < have + size) room *= 2;
    std::vector<char> larger(room);
    iovec parts[2];
    const int count = Parts(parts);
    uint64_t place = from_;
    for (int i = 0; i < count; ++i) {
      for (size_t done = 0; done < parts[i].iov_len;) {  // where they lie in the larger ring
        const size_t at = static_cast<size_t>(place % room);
        const size_t left = parts[i].iov_len - done, n = left < room - at ? left : room - at;
        std::memcpy(larger.data() + at, static_cast<char*>(parts[i].iov_base) + done, n);
        done += n;
        place += n;
      }
    }
    ring_.swap(larger);
  }
  const char* from = static_cast<const char*>(data);
  while (size > 0) {
    const size_t at = static_cast<size_t>(to_ % ring_.size()), room = ring_.size() - at;
    const size_t n = size < room ? size : room;
    std::memcpy(ring_.data() + at, from, n);
    from += n;
    size -= n;
    to_ += n;
  }
}

bool KeptBytes::DropTo(uint64_t place) {
  if (place < from_ || place > to_) return false;
  from_ = place;
  return true;
}

int KeptBytes::Parts(iovec parts[2]) {
  if (from_ == to_) return 0;
  const size_t size = static_cast<size_t>(to_ - from_), at = static_cast<size_t>(from_ % ring_.size());
  const size_t first = size < ring_.size() - at ? size : ring_.size() - at;
  parts[0] = {ring_.data() + at, first};
  parts[1] = {ring_.data(), size - first};
  return first < size ? 2 : 1;
}

void Endpoint::Begin(bool credit, bool resumable) {
  begun_ = true;
  credit_ = credit;
  resumable_ = resumable;
  sent_ = acked_ = taken_ = told_ = 0;
  kept_.Clear();
}

void Endpoint::Lost() noexcept {
  lost_ = true;
  channel()->Shutdown();
}

void Endpoint::Lose(const char* kind, std::string_view why) {
  Lost();
  Throw(kind, why);
}

std::shared_ptr<Channel> Endpoint::Reconnect(uint64_t, uint64_t*, Deadline) {
  Throw(kSessionLost, "the session is over");
}

/// Goes on with a new connection after `why`, or throws.
void Endpoint::Resume(const Error& why, Deadline deadline) {
  if (lost_ || !resumable_ || why.kind() != kSessionLost) {
    Lost();
    throw why;
  }
  channel()->Shutdown();
  at_ = end_ = 0;  // it comes again
  for (;;) {
    uint64_t peer_taken = 0;
    std::shared_ptr<Channel> fresh;
    try {
      fresh = Reconnect(taken_, &peer_taken, deadline);
    } catch (...) {
      Lost();
      throw;
    }
    {
      std::lock_guard lock(channel_mutex_);
      channel_.swap(fresh);
    }
    if (lost_) Lose(kSessionLost, "the session was closed");
    // A connection that its client gave up may come late, behind the one that it took instead.
    if (KeepsArrays() && kept_.Forgot(peer_taken)) continue;
    if (!kept_.DropTo(peer_taken)) Lose(kProtocolError, "the peer took bytes that were not sent");
    acked_ = peer_taken;
    told_ = taken_;
    try {
      iovec parts[2];
      const int count = kept_.Parts(parts);
      if (count) channel_->Write(parts, count, Deadline::In(call_seconds_));
      return;
    } catch (const Error& e) {
      if (e.kind() != kSessionLost) {
        Lost();
        throw;
      }
    }
  }
}

void Endpoint::SendFrame(FrameType type, uint64_t id, uint64_t ack, const void* payload, size_t size) {
  if (lost_) Throw(kSessionLost, "the session is over");
  if (credit_ && type == FrameType::kData) AwaitCredit(kHeaderBytes + size);
  unsigned char head[kHeaderBytes];
  EncodeHeader({static_cast<uint32_t>(size), type, 0, 0, id, ack}, head);
  sent_ += kHeaderBytes + size;
  if (resumable_) {
    kept_.Add(head, kHeaderBytes);
    kept_.Add(payload, size);
  }
  iovec parts[2] = {{head, kHeaderBytes}, {const_cast<void*>(payload), size}};
  try {
    channel_->Write(parts, size ? 2 : 1, Deadline::In(call_seconds_));
  } catch (const Error& e) {
    Resume(e, Deadline::In(call_seconds_));  // half a frame may be on its way
  } catch (...) {
    Lost();
    throw;
  }
}

/// Waits until the peer has taken so much that `bytes` more may be under way.
void Endpoint::AwaitCredit(size_t bytes) {
  std::string payload;
  const Deadline deadline = Deadline::In(call_seconds_);
  while (sent_ + bytes - acked_ > kWindow) {
    try {
      const FrameHeader h = NextFrame(&payload, deadline);
      if (h.type == FrameType::kCredit) continue;
      if (h.type == FrameType::kData || early_.size() >= kMostEarly) Throw(kProtocolError, "the peer gives no credit");
      early_.emplace_back(h, std::move(payload));
    } catch (const Error& e) {
      Lose(e.kind().c_str(), e.message());
    }
  }
}

/// Counts what was taken; says so to the peer now and then.
void Endpoint::Took(size_t bytes) {
  taken_ += bytes;
  if (!credit_ || taken_ - told_ < kTell) return;
  told_ = taken_;
  unsigned char head[kHeaderBytes];
  EncodeHeader({0, FrameType::kCredit, 0, 0, taken_, 0}, head);
  iovec part{head, kHeaderBytes};
  try {
    channel_->Write(&part, 1, Deadline::In(call_seconds_));
  } catch (const Error& e) {
    if (e.kind() == kSessionLost) return;  // the next read finds it, too
    Lost();
    throw;
  }
}

/// Makes `want` bytes lie in the buffer. `within`: of a frame that has begun, so that the session ends with a failure.
void Endpoint::Fill(size_t want, Deadline deadline, bool within) {
  while (end_ - at_ < want) {
    const size_t have = end_ - at_;
    std::memmove(buffer_.data(), buffer_.data() + at_, have);
    at_ = 0;
    end_ = have;
    const size_t room = want > kBuffer ? want : kBuffer;
    if (buffer_.size() < room) buffer_.resize(room);
    try {
      const size_t n = channel_->Read(buffer_.data() + have, buffer_.size() - have, deadline);
      if (n == 0)
        Throw(kSessionLost, have || within ? "the connection ended within a message" : "the peer closed the session");
      end_ += n;
    } catch (const Error& e) {
      if (e.kind() == kSessionLost) {
        Resume(e, deadline);
      } else {
        if (have || within) Lost();
        throw;
      }
    }
  }
}

/// The next frame of the connection, CREDIT as well, which is made use of here.
FrameHeader Endpoint::NextFrame(std::string* payload, Deadline deadline) {
  if (lost_) Throw(kSessionLost, "the session is over");
  Fill(kHeaderBytes, deadline, false);
  FrameHeader h;
  const auto decode = [&] {
    try {
      h = DecodeHeader(reinterpret_cast<const unsigned char*>(buffer_.data()) + at_);
    } catch (const Error& e) {
      Lose(kProtocolError, e.message());
    }
  };
  decode();
  if (h.type == FrameType::kCredit) {
    at_ += kHeaderBytes;
    if (!credit_ || h.length || h.id < acked_ || h.id > sent_) Lose(kProtocolError, "credit for what was not sent");
    acked_ = h.id;
    if (resumable_) kept_.DropTo(acked_);
    return h;
  }
  if (h.type == FrameType::kData) {  // its payload is read in place
    at_ += kHeaderBytes;
    payload->clear();
    Took(kHeaderBytes);
    return h;
  }
  const size_t length = h.length;
  Fill(kHeaderBytes + length, begun_ ? Deadline::In(kFrameSeconds) : deadline,
       true);  // a greeting has its own deadline
  decode();    // a new connection begins with the same frame, if the peer is what it should be
  if (h.length != length) Lose(kProtocolError, "a frame changed its length");
  payload->assign(buffer_, at_ + kHeaderBytes, length);
  at_ += kHeaderBytes + length;
  Took(kHeaderBytes + length);
  return h;
}

FrameHeader Endpoint::ReceiveFrame(std::string* payload, Deadline deadline) {
  if (!early_.empty()) {
    FrameHeader h = early_.front().first;
    *payload = std::move(early_.front().second);
    early_.erase(early_.begin());
    if (early_.empty()) held_ = false;
    return h;
  }
  for (;;) {
    const FrameHeader h = NextFrame(payload, deadline);
    if (h.type != FrameType::kCredit) return h;
  }
}

bool Endpoint::TryFrame(FrameHeader* header, std::string* payload) {
  while (!lost_ && (end_ > at_ || channel_->Readable())) {
    *header = NextFrame(payload, Deadline::In(kFrameSeconds));
    if (header->type != FrameType::kCredit) return true;
  }
  return false;
}

void Endpoint::SendData(uint64_t id, const void* data, size_t size) {
  const char* at = static_cast<const char*>(data);
  while (size > 0) {
    const size_t n = size < kPiece ? size : kPiece;
    SendFrame(FrameType::kData, id, 0, at, n);
    at += n;
    size -= n;
    if (size) LetOthers();
  }
}

size_t Endpoint::ReceiveData(uint64_t id, void* to, size_t size) {
  std::string payload;
  FrameHeader h;
  for (;;) {
    h = ReceiveFrame(&payload, Deadline::In(call_seconds_));
    const bool small = h.type == FrameType::kCall || h.type == FrameType::kRelease || h.type == FrameType::kCancel;
    if (!small || !KeepsArrays()) break;
    Dispatch(h, &payload);  // calls of other threads pass between the pieces of one
  }
  if (h.type != FrameType::kData || h.id != id || h.length > size || h.length == 0) {
    Lose(kProtocolError, "the bytes that belong to a call did not follow it");
  }
  const Deadline deadline = Deadline::In(kFrameSeconds);
  char* out = static_cast<char*>(to);
  for (size_t have = 0; have < h.length;) {
    size_t n = end_ - at_;
    if (n > 0) {
      if (n > h.length - have) n = h.length - have;
      std::memcpy(out + have, buffer_.data() + at_, n);
      at_ += n;
    } else {
      try {
        n = channel_->Read(out + have, h.length - have, deadline);
        if (n == 0) Throw(kSessionLost, "the connection ended within a message");
      } catch (const Error& e) {
        Resume(e, deadline);
        continue;
      }
    }
    have += n;
    Took(n);
  }
  return h.length;
}

}  // namespace baton::rpc
