// SPDX-License-Identifier: Apache-2.0
#include "rpc/endpoint.h"

#include <baton/runtime/array.h>
#include <baton/runtime/interrupt.h>
#include <baton/support/text.h>
#include <unistd.h>

#include <cstring>

#include "rpc/errors.h"

namespace baton::rpc {
using namespace runtime;  // NOLINT
using support::ByteReader;
using support::ByteWriter;
using support::Cat;

namespace {
constexpr int kMaxNesting = 32;
constexpr size_t kReleaseBatch = 64;
constexpr size_t kLaterCalls = 64, kLaterBytes = 64 << 10;  // on their way: fewer bytes than a socket holds

/// Waits for a lock a while.
bool TryLock(std::recursive_timed_mutex* mutex) {
#ifdef __SANITIZE_THREAD__  // its library does not see pthread_mutex_clocklock, which waits
  if (mutex->try_lock()) return true;
  usleep(1000);
  return false;
#else
  return mutex->try_lock_for(std::chrono::milliseconds(50));
#endif
}
}  // namespace

/// The connection for a thread, and its nesting.
struct Endpoint::Lock {
  explicit Lock(Endpoint* e) : e_(e) {
    const Deadline deadline = Deadline::In(e->call_seconds_);
    struct Waits {
      std::atomic<int>& n;
      ~Waits() { --n; }
    } waits{e->waiting_};
    ++waits.n;
    while (!TryLock(&e->mutex_)) {
      runtime::CheckInterrupt();
      if (deadline.Passed()) Throw(kTimeout, "another thread's call keeps the session busy");
    }
    if (e->depth_ >= kMaxNesting) {
      e->mutex_.unlock();
      Throw(kRpcError, Cat("calls back and forth within each other: at most ", kMaxNesting, " deep"));
    }
    ++e->depth_;
  }
  ~Lock() {
    --e_->depth_;
    e_->mutex_.unlock();
  }
  Endpoint* e_;
};

Endpoint::~Endpoint() { Close(); }

Args Endpoint::Incoming::Rest(size_t from) const {
  static_assert(sizeof(Any) == sizeof(BatonValue));
  return from < args.size() ? Args(&args[from].raw(), static_cast<int>(args.size() - from)) : Args(nullptr, 0);
}

/// While bytes of this thread's call go out, calls of others pass between two of their frames, each of them whole: the
/// peer answers it within the call whose bytes it reads.
void Endpoint::LetOthers() {
  if (waiting_ == 0 || depth_ != 1 || letting_) return;
  const int before = waiting_;
  letting_ = true;
  --depth_;
  mutex_.unlock();
  for (int i = 0; i < 100 && waiting_ >= before; ++i) usleep(20);
  mutex_.lock();
  ++depth_;
  letting_ = false;
}

void Endpoint::Close() noexcept {
  const auto line = channel();
  if (!lost_.exchange(true) && mutex_.try_lock()) {
    try {
      unsigned char head[kHeaderBytes];
      EncodeHeader({}, head);  // BYE
      iovec part{head, kHeaderBytes};
      line->Write(&part, 1, Deadline::In(0.1));
    } catch (...) {
      // The peer sees the end of the connection.
    }
    mutex_.unlock();
  }
  channel()->Shutdown();
}

// ---- Calls of the peer.

uint64_t Endpoint::WriteCall(Op op, uint64_t handle, const BatonValue* args, int count, const Bulk& bulk,
                             std::vector<ObjectRef>* staged) {
  ByteWriter out;
  out.Write(static_cast<uint32_t>(op));
  out.Write(handle);
  out.Write(static_cast<uint64_t>(bulk.send ? bulk.size : 0));
  out.Write(static_cast<uint32_t>(count));
  std::vector<ObjectRef>* outer = staged_;
  staged_ = staged;
  try {
    for (int i = 0; i < count; ++i) WriteValue(args[i], &out, this);
  } catch (...) {
    staged_ = outer;
    throw;
  }
  staged_ = outer;
  if (out.size() > kMaxPayload) {
    throw ValueError(Cat("the arguments of a call take ", out.size(), " bytes, at most ", kMaxPayload,
                         "; large arrays and texts travel apart, but not many small ones"));
  }
  const uint64_t id = ++last_id_;
  SendFrame(FrameType::kCall, id, serving_, out.bytes().data(), out.size());
  if (bulk.send) SendData(id, bulk.send, bulk.size);
  return id;
}

Any Endpoint::Call(Op op, uint64_t handle, const BatonValue* args, int count, Bulk bulk) {
  Lock lock(this);
  FlushReleases();
  std::vector<ObjectRef> staged;
  return Await(WriteCall(op, handle, args, count, bulk, &staged), bulk);
}

Any Endpoint::Await(uint64_t id, const Bulk& bulk) {
  Deadline deadline = Deadline::In(call_seconds_);
  std::string payload;
  for (;;) {
    FrameHeader h;
    try {
      h = ReceiveFrame(&payload, deadline);
    } catch (const Error& e) {
      if (!lost_) {  // its reply may still come
        abandoned_.push_back(id);
        SendFrame(FrameType::kCancel, id, 0, nullptr, 0);
        if (bulk.take || bulk.receive) Lose(e.kind().c_str(), e.message());
      }
      if (e.kind() == kTimeout && !lost_) {
        Throw(kTimeout, Cat("no reply within ", static_cast<int64_t>(call_seconds_),
                            " s; the call was given up. A longer "
                            "time: connect(..., call_timeout=)"));
      }
      throw;
    }
    if (h.id == id) {
      if (h.type == FrameType::kReply) return TakeReply(payload, id, bulk);
      if (h.type == FrameType::kError) ThrowRemoteError(payload);
      if (h.type == FrameType::kPing) deadline = Deadline::In(call_seconds_);
    }
    Dispatch(h, &payload);
  }
}

/// Handles messages while a side waits for something else.
void Endpoint::Dispatch(const FrameHeader& h, std::string* payload) {
  switch (h.type) {
    case FrameType::kReply:
    case FrameType::kError: {
      const auto it = later_.find(h.id);
      if (it != later_.end() && !it->second.here) {
        later_bytes_ -= it->second.bytes;
        --later_count_;
        it->second = {0, true, h.type, std::move(*payload)};
        break;
      }
      if (!Abandoned(h.id, true)) Lose(kProtocolError, "a reply to a call that was not made");
      if (h.type == FrameType::kReply) TakeReply(*payload, h.id, {});  // what is in it is released
      break;
    }
    case FrameType::kCall:
      return Serve(h, *payload);
    case FrameType::kRelease:
      return TakeReleases(*payload);
    case FrameType::kPing:
    case FrameType::kCancel:
      break;  // of a call that is answered
    case FrameType::kBye:
      Lose(kSessionLost, "the peer ended the session");
    default:
      Lose(kProtocolError, "a frame that does not belong here");
  }
}

// ---- Calls whose result is asked for later.

uint64_t Endpoint::CallLater(Op op, uint64_t handle, const BatonValue* args, int count) {
  Lock lock(this);
  FlushReleases();
  std::string payload;
  // So few are on their way that a peer which reads nothing does not block this side.
  while (later_count_ >= kLaterCalls || later_bytes_ >= kLaterBytes) {
    const FrameHeader h = ReceiveFrame(&payload, Deadline::In(call_seconds_));
    Dispatch(h, &payload);
  }
  std::vector<ObjectRef> staged;
  const uint64_t before = sent_;
  const uint64_t id = WriteCall(op, handle, args, count, {}, &staged);
  const size_t bytes = static_cast<size_t>(sent_ - before);
  later_[id].bytes = bytes;
  later_bytes_ += bytes;
  ++later_count_;
  return id;
}

Any Endpoint::Finish(uint64_t id) {
  Lock lock(this);
  const Deadline deadline = Deadline::In(call_seconds_);
  std::string payload;
  for (;;) {
    const auto it = later_.find(id);
    if (it == later_.end()) Throw(kRpcError, "the result of this call was asked for already");
    if (it->second.here) {
      const Later got = std::move(it->second);
      later_.erase(it);
      if (got.type == FrameType::kError) ThrowRemoteError(got.payload);
      return TakeReply(got.payload, id, {});
    }
    const FrameHeader h = ReceiveFrame(&payload, deadline);
    Dispatch(h, &payload);
  }
}

void Endpoint::Forget(uint64_t id) noexcept {
  try {
    std::lock_guard lock(release_mutex_);
    forgotten_.push_back(id);  // the next call gives it up: here no lock may be waited for
  } catch (...) {
    // Its result stays until the session ends.
  }
}

void Endpoint::GiveUp(uint64_t id) {
  const auto it = later_.find(id);
  if (it == later_.end()) return;
  const Later call = std::move(it->second);
  later_.erase(it);
  if (!call.here) {
    later_bytes_ -= call.bytes;
    --later_count_;
    abandoned_.push_back(id);
    SendFrame(FrameType::kCancel, id, 0, nullptr, 0);
  } else if (call.type == FrameType::kReply) {
    TakeReply(call.payload, id, {});
  }
}

Any Endpoint::TakeReply(const std::string& payload, uint64_t id, const Bulk& bulk) {
  Any value;
  try {
    ByteReader in(payload.data(), payload.size(), "reply");
    value = ReadValue(&in, this);
    in.ExpectEnd();
  } catch (const Error& e) {
    if (e.kind() == kSessionLost || e.kind() == kTimeout || e.ends_work()) throw;
    Lose(kProtocolError, Cat("a reply that cannot be read: ", e.message()));
  } catch (const std::exception& e) {
    Lose(kProtocolError, Cat("a reply that cannot be read: ", e.what()));
  }
  if (bulk.receive || bulk.take) TakeBulk(value, id, bulk);
  return value;
}

void Endpoint::TakeBulk(const Any& reply, uint64_t id, const Bulk& bulk) {
  const int64_t size = reply.Is<int64_t>() ? reply.As<int64_t>() : -1;
  if (size < 0 || static_cast<uint64_t>(size) > bulk.size ||
      (bulk.receive && static_cast<uint64_t>(size) != bulk.size)) {
    Lose(kProtocolError, "other bytes follow a reply than were asked for");
  }
  char* to = static_cast<char*>(bulk.receive);
  const size_t all = static_cast<size_t>(size);
  for (size_t have = 0; have < all;) {
    if (bulk.take) {  // grows with what comes, not with what was announced
      const size_t left = all - have, need = have + (left < kChunk ? left : kChunk);
      if (bulk.take->size() < need) bulk.take->resize(2 * have < need ? need : 2 * have < all ? 2 * have : all);
      to = bulk.take->data();
    }
    have += ReceiveData(id, to + have, (bulk.take ? bulk.take->size() : all) - have);
  }
  if (bulk.take) bulk.take->resize(all);
}

bool Endpoint::Abandoned(uint64_t id, bool forget) {
  for (size_t i = 0; i < abandoned_.size(); ++i) {
    if (abandoned_[i] != id) continue;
    if (forget) abandoned_.erase(abandoned_.begin() + static_cast<std::ptrdiff_t>(i));
    return true;
  }
  return false;
}

// ---- Answers.

void Endpoint::Serve(const FrameHeader& header, const std::string& payload) {
  const uint64_t outer = serving_;
  std::vector<ObjectRef> kept, *outer_staged = staged_;  // until the reply is on its way
  Incoming call{Op::kCall, 0, header.id, {}};
  std::string reply;
  FrameType type = FrameType::kReply;
  try {
    if (depth_ >= kMaxNesting)
      Throw(kRpcError, Cat("calls back and forth within each other: at most ", kMaxNesting, " deep"));
    ByteReader in(payload.data(), payload.size(), "call");
    call.op = static_cast<Op>(in.Read<uint32_t>("op"));
    call.handle = in.Read<uint64_t>("handle");
    call.data_left = in.Read<uint64_t>("bytes");
    if (header.ack && Abandoned(header.ack, false))
      Throw(kTimeout, "the call within which this one is made was given up");
    const uint32_t count = in.Read<uint32_t>("count");
    if (count > in.remaining()) in.Fail("more arguments than bytes");
    for (uint32_t i = 0; i < count; ++i) call.args.push_back(ReadValue(&in, this));
    in.ExpectEnd();
    serving_ = header.id;
    ++depth_;
    Any value;
    try {
      value = Answer(&call);
    } catch (...) {
      --depth_;
      serving_ = outer;
      throw;
    }
    --depth_;
    serving_ = outer;
    ByteWriter out;
    staged_ = &kept;
    WriteValue(value.raw(), &out, this);
    if (out.size() > kMaxPayload)
      throw ValueError(Cat("the result takes ", out.size(), " bytes, at most ", kMaxPayload));
    reply = out.Take();
  } catch (...) {
    if (lost_) throw;
    type = FrameType::kError;
    reply = WriteError(hidden_folder_);
    call.reply_size = 0;
  }
  staged_ = outer_staged;
  writes_arguments_ = false;
  std::string nothing(call.data_left ? (call.data_left < kChunk ? call.data_left : kChunk) : 0, '\0');
  while (call.data_left > 0)
    call.data_left -=
        ReceiveData(header.id, nothing.data(), nothing.size() < call.data_left ? nothing.size() : call.data_left);
  SendFrame(type, header.id, 0, reply.data(), reply.size());
  if (call.reply_size) SendData(header.id, call.reply_at ? call.reply_at : call.reply_data.data(), call.reply_size);
}

Any Endpoint::CallExported(const Incoming& call) {
  const ObjectRef object = exported_.Get(call.handle);
  if (!object.defined() || !object.get()->IsInstance<PackedFuncObj>()) {
    Throw(kProtocolError, "a call of a function that was not handed over, or was released");
  }
  const PackedFunc f{ObjectPtr<Object>(const_cast<Object*>(object.get()))};
  const Args args = call.Rest(0);
  return f.CallPacked(args.values, args.num_args);
}

void Endpoint::PollCancel() {
  FrameHeader h;
  std::string payload;
  // At most a few: a peer that sends on and on is served in turn.
  for (int i = 0; i < 16 && !held_ && early_.size() < 64 && TryFrame(&h, &payload); ++i) {
    if (h.type == FrameType::kData) Lose(kProtocolError, "bytes that belong to no call");
    if (h.type == FrameType::kCancel && h.id == serving_) Throw(kTimeout, "the caller has given the call up");
    if (h.type == FrameType::kBye) Lose(kSessionLost, "the peer ended the session");
    // Bytes that follow this call are read with it.
    uint64_t follow = 0;
    if (h.type == FrameType::kCall && payload.size() >= 20) std::memcpy(&follow, payload.data() + 12, sizeof follow);
    held_ = follow != 0;
    early_.emplace_back(h, std::move(payload));
  }
}

// ---- Releases.

void Endpoint::ReleaseLater(uint64_t handle) noexcept {
  if (lost_) return;
  try {
    bool many = false;
    {
      std::lock_guard lock(release_mutex_);
      released_.push_back(handle);
      many = released_.size() >= kReleaseBatch;
    }
    if (many && mutex_.try_lock()) {
      try {
        FlushReleases();
      } catch (...) {
        // The next call says what is wrong.
      }
      mutex_.unlock();
    }
  } catch (...) {
    // Without memory the peer keeps the object until the session ends.
  }
}

void Endpoint::FlushReleases() {
  std::vector<uint64_t> forgotten;
  {
    std::lock_guard lock(release_mutex_);
    forgotten.swap(forgotten_);
  }
  for (const uint64_t id : forgotten) GiveUp(id);
  for (;;) {
    std::vector<uint64_t> batch;
    {
      std::lock_guard lock(release_mutex_);
      if (released_.empty()) return;
      const size_t n = released_.size() < 4096 ? released_.size() : 4096;
      batch.assign(released_.end() - static_cast<std::ptrdiff_t>(n), released_.end());
      released_.resize(released_.size() - n);
    }
    ByteWriter out;
    for (const uint64_t handle : batch) out.Write(handle);
    SendFrame(FrameType::kRelease, 0, 0, out.bytes().data(), out.size());
  }
}

void Endpoint::TakeReleases(const std::string& payload) {
  ByteReader in(payload.data(), payload.size(), "release");
  if (payload.size() % 8) Lose(kProtocolError, "a list of handles that is cut");
  while (in.remaining()) exported_.Release(in.Read<uint64_t>("handle"));
}

}  // namespace baton::rpc
