// SPDX-License-Identifier: Apache-2.0
// One side of a session: calls of functions at the other side, and answers to its calls, on one connection.
//
// Calls nest: while a side waits for a reply it answers the peer's calls, which come from within it. One thread at a
// time uses the connection; others wait for their turn.
#pragma once

#include <baton/runtime/module.h>
#include <baton/runtime/packed_func.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "rpc/channel.h"
#include "rpc/frame.h"
#include "rpc/handles.h"
#include "rpc/value.h"

namespace baton::rpc {

inline constexpr uint16_t kMajor = 1, kMinor = 0;
inline constexpr double kLingerSeconds = 30;  ///< how long a session waits for its client to come back

/// The kinds of calls. `kCall` is all that a server may ask of its client.
enum class Op : uint32_t {
  kCall = 0,        ///< (arguments...) of the function with the handle
  kGetFunction,     ///< (name): a registered function
  kModuleFunction,  ///< (name, whether of imports too) of the module with the handle
  kAlloc,           ///< (device, bytes): a handle of memory
  kWrite,           ///< (offset, bytes) of the array with the handle; DATA follows
  kRead,            ///< (offset, bytes) of the array or text with the handle; DATA follows the reply
  kCopy,            ///< (from, offset, to, offset, bytes)
  kSync,            ///< (device)
  kExists,          ///< (device)
  kUpload,          ///< (name, bytes, SHA-256): whether the content is known, which is then under that name
  kPut,             ///< the same; DATA follows
  kDownload,        ///< (name): bytes; DATA follows the reply
  kRemove,          ///< (name)
  kLoadModule,      ///< (name)
  kSystemLib,       ///< (prefix)
  kTime,  ///< (function, device, number, repeat, min_repeat_ms, cooldown_ms, repeats_to_cooldown, preparation,
          ///< arguments...)
  kEnd
};

/// Bytes that follow a call or its reply.
struct Bulk {
  const void* send = nullptr;   ///< what follows the call
  void* receive = nullptr;      ///< where what follows the reply goes; its size is the reply, which must be `size`
  std::string* take = nullptr;  ///< the same for a size that the reply tells, up to `size`
  size_t size = 0;
};

/// Sent bytes that may be asked for again, by their place in the stream of frames.
class KeptBytes {
 public:
  void Add(const void* data, size_t size);
  /// Forgets the bytes before a place. False for one that is not kept.
  bool DropTo(uint64_t place);
  bool Forgot(uint64_t place) const { return place < from_; }
  /// The bytes that are kept, in one or two parts.
  int Parts(iovec parts[2]);
  void Clear() { from_ = to_ = 0; }

 private:
  std::vector<char> ring_;
  uint64_t from_ = 0, to_ = 0;
};

class Endpoint : public ValueMapper, public std::enable_shared_from_this<Endpoint> {
 public:
  explicit Endpoint(std::shared_ptr<Channel> channel) : channel_(std::move(channel)) {}
  ~Endpoint() override;

  /// Calls the peer and waits. Throws what the peer throws, Timeout, SessionLost.
  runtime::Any Call(Op op, uint64_t handle, const BatonValue* args, int count, Bulk bulk = {});
  template <class... A>
  runtime::Any Ask(Op op, uint64_t handle, const A&... args) {
    const runtime::Any held[] = {runtime::Any(args)..., runtime::Any()};
    return Call(op, handle, &held[0].raw(), sizeof...(A));
  }
  /// Sends a call without waiting; `Finish` waits for its result, `Forget` gives it up.
  uint64_t CallLater(Op op, uint64_t handle, const BatonValue* args, int count);
  runtime::Any Finish(uint64_t id);
  void Forget(uint64_t id) noexcept;
  /// Says that a handle of the peer is not referred to any more; does not wait.
  void ReleaseLater(uint64_t handle) noexcept;
  /// Sends BYE, if it can at once, and ends the connection.
  void Close() noexcept;
  bool lost() const { return lost_.load(std::memory_order_relaxed); }
  /// Refuses arrays of this side among the arguments of a function that writes into them.
  void CheckArguments(const BatonValue* args, int count);
  void SetCallSeconds(double seconds) { call_seconds_ = seconds; }
  double call_seconds() const { return call_seconds_; }
  std::shared_ptr<Channel> channel() const {
    std::lock_guard lock(channel_mutex_);
    return channel_;
  }
  size_t num_exported() const { return exported_.size(); }
  /// Of frames, since the greeting.
  uint64_t bytes_sent() const { return sent_; }
  uint64_t bytes_taken() const { return taken_; }

  void WriteObject(const BatonValue& value, support::ByteWriter* out) final;
  runtime::Any ReadObject(Tag tag, support::ByteReader* in) final;

 protected:
  /// The answer to a call from the peer.
  struct Incoming {
    Op op;
    uint64_t handle;
    uint64_t id;
    std::vector<runtime::Any> args;
    size_t data_left = 0;            ///< bytes of DATA that follow the call and are not read yet
    std::string reply_data;          ///< bytes that follow the reply
    const void* reply_at = nullptr;  ///< or they lie here, kept by `keep`
    size_t reply_size = 0;
    runtime::ObjectRef keep;
    runtime::Args Rest(size_t from) const;
  };
  virtual runtime::Any Answer(Incoming* call) = 0;
  /// Calls the function of a handle that this side gave away.
  runtime::Any CallExported(const Incoming& call);
  /// An object of the peer as one of this side.
  virtual runtime::NDArray ImportArray(uint64_t handle, const TensorHead& head, runtime::Device device) = 0;
  /// Tells an array of the peer's, which is written as its handle, from one of this side.
  virtual bool IsTheirs(const DLTensor* t, uint64_t* handle) = 0;
  /// Whether an array of this side stays here when it is given away; else its elements travel.
  virtual bool KeepsArrays() const = 0;
  /// Space at the peer for elements that are too many for a call; its handle.
  virtual uint64_t Stage(const void* data, size_t bytes);

  /// From here on both sides count the bytes of frames. `credit`: a sender waits while too many of them are under way;
  /// `resumable`: what the peer has not taken is kept, for a connection in place of one that is lost.
  void Begin(bool credit, bool resumable);
  /// A new connection in place of one that was lost, greeted; `taken` is what this side has taken, `peer_taken` what
  /// the peer has. Throws SessionLost when there is none.
  virtual std::shared_ptr<Channel> Reconnect(uint64_t taken, uint64_t* peer_taken, Deadline deadline);
  /// Bytes that were read from the connection before it came here.
  void Prefill(std::string bytes) {
    end_ = bytes.size();
    buffer_ = std::move(bytes);
  }
  void SendFrame(FrameType type, uint64_t id, uint64_t ack, const void* payload, size_t size);
  /// The next frame, its payload in `payload`. `deadline` bounds the time until it begins, and that until it is whole.
  FrameHeader ReceiveFrame(std::string* payload, Deadline deadline);
  /// A frame that has come, if one has.
  bool TryFrame(FrameHeader* header, std::string* payload);
  void SendData(uint64_t id, const void* data, size_t size);
  /// Reads a DATA frame of call `id` into `to` of `size` bytes; gives how many came.
  size_t ReceiveData(uint64_t id, void* to, size_t size);
  /// Answers a call; what fails becomes an ERROR frame.
  void Serve(const FrameHeader& header, const std::string& payload);
  void TakeReleases(const std::string& payload);
  [[noreturn]] void Lose(const char* kind, std::string_view why);
  /// Whether the caller of what runs now has given it up; asked by functions that poll.
  void PollCancel();

  std::shared_ptr<Channel> channel_;
  HandleTable exported_;
  std::recursive_timed_mutex mutex_;
  std::string hidden_folder_;                               ///< of this side's files: errors leave its name out
  bool writes_arguments_ = false;                           ///< said of functions that are given away now
  uint64_t serving_ = 0;                                    ///< the peer's call that is being answered, 0 if none
  std::vector<std::pair<FrameHeader, std::string>> early_;  ///< frames that PollCancel read

 private:
  struct Lock;
  uint64_t WriteCall(Op op, uint64_t handle, const BatonValue* args, int count, const Bulk& bulk,
                     std::vector<runtime::ObjectRef>* staged);
  runtime::Any Await(uint64_t id, const Bulk& bulk);
  runtime::Any TakeReply(const std::string& payload, uint64_t id, const Bulk& bulk);
  void TakeBulk(const runtime::Any& size, uint64_t id, const Bulk& bulk);
  void FlushReleases();
  bool Abandoned(uint64_t id, bool forget);
  FrameHeader NextFrame(std::string* payload, Deadline deadline);
  void Fill(size_t want, Deadline deadline, bool within);
  void Took(size_t bytes);
  void AwaitCredit(size_t bytes);
  void Resume(const runtime::Error& why, Deadline deadline);
  void Lost() noexcept;
  void LetOthers();
  void Dispatch(const FrameHeader& header, std::string* payload);
  void GiveUp(uint64_t id);
  void WriteTensorValue(const BatonValue& value, support::ByteWriter* out);
  void KeepStaged(uint64_t handle);
  void WriteText(std::string_view text, bool is_bytes, const runtime::ObjectRef& owner, support::ByteWriter* out);

  /// A call that was sent and whose result is asked for later.
  struct Later {
    size_t bytes = 0;
    bool here = false;
    FrameType type = FrameType::kReply;
    std::string payload;
  };

  double call_seconds_ = 60;
  uint64_t last_id_ = 0;
  int depth_ = 0;
  std::vector<uint64_t> abandoned_;
  std::atomic<bool> lost_{false};
  std::mutex release_mutex_;
  std::vector<uint64_t> released_, forgotten_;
  bool held_ = false;  ///< the last of `early_` is a call that bytes follow
  std::string buffer_;
  size_t at_ = 0, end_ = 0;  ///< what of it was read and not taken yet
  mutable std::mutex channel_mutex_;
  bool begun_ = false, credit_ = false, resumable_ = false;
  uint64_t sent_ = 0, acked_ = 0, taken_ = 0, told_ = 0;
  KeptBytes kept_;
  std::atomic<int> waiting_{0};  ///< threads that wait for their turn
  bool letting_ = false;         ///< calls pass between the bytes of another
  std::map<uint64_t, Later> later_;
  size_t later_bytes_ = 0, later_count_ = 0;           ///< of those whose result is not here
  std::vector<runtime::ObjectRef>* staged_ = nullptr;  ///< what the call that is being written keeps at the peer
};

/// A function of the peer, called like any other.
struct RemoteFunction : runtime::PackedFuncObj {
  std::shared_ptr<Endpoint> endpoint;
  uint64_t handle = 0;
  bool writes_arguments = false;  ///< its results go into arrays that it is given
  ~RemoteFunction();
  static RemoteFunction* Of(const runtime::Object* o);
};

/// Any other object of the peer: it can be given back, and kept.
struct RemoteObject : runtime::Object {
  static constexpr const char* _type_key = "rpc.RemoteObject";
  std::shared_ptr<Endpoint> endpoint;
  uint64_t handle = 0;
  ~RemoteObject();
  BATON_DECLARE_FINAL_OBJECT_INFO(RemoteObject, runtime::Object)
};

/// A session of this client's on a connection that is there: what `rpc.Connect` gives.
runtime::Module SessionOn(std::unique_ptr<Channel> channel);

/// The endpoint of a module of a peer (its functions run there), and its handle; null for another object.
std::shared_ptr<Endpoint> EndpointOfModule(const runtime::Object* o, uint64_t* handle);

/// The error in flight as the payload of an ERROR frame; and the exception that such a payload means here.
std::string WriteError(const std::string& hidden_folder = {});
[[noreturn]] void ThrowRemoteError(const std::string& payload);

/// HELLO: magic, version, options.
std::string WriteHello(const runtime::Any& options);
/// Options of the peer. Throws VersionError, ProtocolError.
runtime::Any ReadHello(const std::string& payload);
/// Options of a greeting; absent or of another kind: false, "", -1.
bool HasFeature(const runtime::Any& options, std::string_view word);
std::string TextOption(const runtime::Any& options, std::string_view name);
int64_t NumberOption(const runtime::Any& options, std::string_view name);
/// A HELLO on a connection that has no endpoint. An ERROR that comes instead is thrown.
void WriteGreeting(Channel* channel, const runtime::Any& options, Deadline deadline);
runtime::Any ReadGreeting(Channel* channel, Deadline deadline);
inline constexpr std::string_view kGone = "the session is not there any more";

}  // namespace baton::rpc
