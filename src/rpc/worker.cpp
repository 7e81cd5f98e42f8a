// SPDX-License-Identifier: Apache-2.0
#include "rpc/worker.h"

#include <baton/runtime/array.h>
#include <baton/runtime/bytes.h>
#include <baton/runtime/device_types.h>
#include <baton/runtime/interrupt.h>
#include <baton/runtime/map.h>
#include <baton/runtime/module.h>
#include <baton/runtime/registry.h>
#include <baton/support/file.h>
#include <baton/support/machine.h>
#include <baton/support/sha256.h>
#include <baton/support/text.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <thread>

#include "rpc/confine/process.h"
#include "rpc/control.h"
#include "rpc/endpoint.h"
#include "rpc/errors.h"
#include "rpc/files.h"
#include "rpc/places.h"
#include "rpc/watch.h"

namespace baton::rpc {
using namespace runtime;  // NOLINT
using support::Cat;

namespace {

constexpr double kHelloSeconds = 2;
constexpr double kGoneSeconds = 2;  // of a session whose client is gone for good

constexpr const char* kCheckSignals = "runtime.CheckSignals";
constexpr size_t kMostFile = sizeof(size_t) > 4 ? static_cast<size_t>(uint64_t{1} << 32) : SIZE_MAX / 2;

/// Waits; ends at once when the caller gives up.
void Rest(int milliseconds) {
  for (const Deadline end = Deadline::In(milliseconds * 1e-3); milliseconds > 0 && !end.Passed(); CheckInterrupt()) {
    usleep(static_cast<useconds_t>(end.Left(20)) * 1000);
  }
}

/// The name of the only compiled function of a library; empty where there is none, or several.
std::string OnlyFunction(const std::string& path) {
  const support::MappedFile file(path);
  const std::string head = Cat(std::string_view("\0", 1), kFunctionSpecPrefix);
  std::string only;
  for (size_t at = file.text().find(head); at != std::string_view::npos; at = file.text().find(head, at)) {
    at += head.size();
    const std::string_view name = file.text().substr(at, file.text().find('\0', at) - at);
    if (!only.empty() && only != name) return "";
    only = name;
  }
  return only;
}

/// The digest of a compiled model whose signature is beside it and of one of the keys; else empty. The signed text
/// is the digest at the end of the file (baton/driver/signature.py), and what is loaded has that digest.
std::string SignedDigest(const std::string& path, const std::vector<std::string>& signers) {
  constexpr size_t kDigest = 32;
  constexpr std::string_view kMagic = "BATONART";
  std::string digest, signature;
  {
    const support::MappedFile file(path);
    const std::string_view text = file.text();
    if (text.size() > kDigest + kMagic.size() && text.substr(text.size() - kMagic.size()) == kMagic) {
      digest = text.substr(text.size() - kMagic.size() - kDigest, kDigest);
    }
  }
  const std::string beside = Cat(path, ".sig");
  if (access(beside.c_str(), R_OK) == 0) signature = ReadSignature(support::ReadFile(beside, 1024));
  if (digest.empty() || signature.empty()) return "";
  for (const std::string& key : signers) {
    if (VerifySignature(key, Cat("baton compiled model, SHA-256: ", digest), signature)) return digest;
  }
  return "";
}

class Worker final : public Endpoint {
 public:
  Worker(std::unique_ptr<Channel> channel, const ServerOptions& options, std::string folder)
      : Endpoint(std::move(channel)), options_(options), files_(std::move(folder), options.disk_bytes) {
    hidden_folder_ = files_.folder();
    Prefill(options.first);
  }

  void Run() {
    ReadPolicy();
    Greet();
    FrameHeader h;
    std::string payload;
    for (;;) {
      Pulse(NowMs());
      h = ReceiveFrame(&payload, Deadline::In(options_.idle_seconds));
      Pulse(0);
      switch (h.type) {
        case FrameType::kCall:
          ++calls_;
          Serve(h, payload);
          break;
        case FrameType::kRelease:
          TakeReleases(payload);
          break;
        case FrameType::kCancel:
        case FrameType::kPing:
          break;
        case FrameType::kBye:
          return;
        default:
          Lose(kProtocolError, "a frame that does not belong here");
      }
    }
  }
  uint64_t calls() const { return calls_; }
  const char* policy() const { return trusted_ ? "trusted" : "session"; }

  /// Lets functions that poll notice that their caller gave up, until `UnwatchCancels`.
  void WatchCancels() {
    if (const PackedFunc* before = Registry::Get(kCheckSignals)) inner_ = *before;
    Registry::Register(kCheckSignals, true).set_body(PackedFunc([this](Args, RetValue*) {
      if (inner_.defined()) inner_();
      if (serving_ && !polling_ && std::this_thread::get_id() == thread_) {
        polling_ = true;
        try {
          PollCancel();
        } catch (...) {
          polling_ = false;
          throw;
        }
        polling_ = false;
      }
    }));
  }
  void UnwatchCancels() {
    if (inner_.defined()) {
      Registry::Register(kCheckSignals, true).set_body(inner_);
    } else {
      Registry::Remove(kCheckSignals);
    }
  }

 protected:
  bool KeepsArrays() const final { return true; }
  bool IsTheirs(const DLTensor*, uint64_t*) final { return false; }
  NDArray ImportArray(uint64_t, const TensorHead&, Device) final {
    Throw(kProtocolError, "a client's arrays travel with their elements");
  }
  Device DeviceIn(Device d) final {
    if (d.device_type <= 0 || d.device_type >= kRemoteDevice)
      throw ValueError("a device of a type that does not exist");
    if (options_.devices.empty()) return d;
    const std::string shown = Device2String(d), name = shown.substr(0, shown.find('('));
    for (const std::string& one : options_.devices) {
      if (one == name || one == Cat(name, ":", d.device_id)) return d;
    }
    Throw(kDenied, Cat("the policy of this session does not give it ", shown));
  }

  Any Answer(Incoming* c) final {
    const Args a = c->Rest(0);
    switch (c->op) {
      case Op::kCall:
        return CallExported(*c);
      case Op::kGetFunction:
        return GetFunction(a[0].As<std::string>());
      case Op::kModuleFunction:
        return ModuleFunction(c->handle, a[0].As<std::string>(), a[1].As<bool>());
      case Op::kAlloc:
        return Alloc(a[0].As<Device>(), a[1].As<int64_t>());
      case Op::kWrite:
        return Write(c, a[0].As<int64_t>(), a[1].As<int64_t>());
      case Op::kRead:
        return Read(c, a[0].As<int64_t>(), a[1].As<int64_t>());
      case Op::kCopy: {
        const NDArray to = ArrayOf(c->handle), from = ArrayOf(static_cast<uint64_t>(a[0].As<int64_t>()));
        const int64_t bytes = a[1].As<int64_t>();
        Bytes8(to, bytes).CopyFrom(Bytes8(from, bytes));
        return Any();
      }
      case Op::kSync:
        DeviceAPI::Get(a[0].As<Device>())->Sync(a[0].As<Device>());
        return Any();
      case Op::kExists:
        return (*Registry::Get("runtime.DeviceExists"))(a[0].As<Device>());
      case Op::kUpload:
        return Any(
            files_.Take(a[0].As<std::string>(), static_cast<uint64_t>(a[1].As<int64_t>()), a[2].As<std::string>()));
      case Op::kPut:
        return Put(c, a);
      case Op::kDownload: {
        c->reply_data = support::ReadFile(files_.PathOf(a[0].As<std::string>()), kMostFile);
        c->reply_size = c->reply_data.size();
        return Any(static_cast<int64_t>(c->reply_size));
      }
      case Op::kRemove:
        if (unlink(files_.PathOf(a[0].As<std::string>()).c_str()) != 0) {
          ThrowSystem("FileNotFoundError", Cat("`", a[0].As<std::string>(), "` cannot be removed"));
        }
        return Any();
      case Op::kLoadModule:
        return LoadModule(a[0].As<std::string>());
      case Op::kSystemLib:
        if (!options_.module_path.empty()) return Any(Module::LoadFromFile(options_.module_path));
        return GlobalFunction("runtime.SystemLib")(a[0].As<std::string>());
      case Op::kTime:
        return Time(c, a);
      default:
        Throw(kProtocolError, "a call of a kind that does not exist");
    }
  }

 private:
  void Pulse(int64_t waits_since) {
    if (pulse_) pulse_->waits_since_ms.store(waits_since, std::memory_order_relaxed);
  }
  void ReadPolicy() { trusted_ = options_.policy.empty() ? channel_->own_user : options_.policy == "trusted"; }

  void Greet() {
    std::string payload, match;
    try {
      const FrameHeader h = ReceiveFrame(&payload, Deadline::In(kHelloSeconds));
      if (h.type != FrameType::kHello) Throw(kProtocolError, "a session begins with HELLO");
      const Any said = ReadHello(payload);
      const auto wanted = said.As<Map<Any, Any>>();
      for (const auto& [key, value] : wanted) {
        if (key.As<std::string>() == "session_timeout") session_seconds_ = value.As<double>();
        if (key.As<std::string>() == "call_timeout") SetCallSeconds(value.As<double>());
        if (key.As<std::string>() == "key") match = value.As<std::string>();
      }
      if (options_.wall_seconds > 0 && (session_seconds_ <= 0 || options_.wall_seconds < session_seconds_)) {
        session_seconds_ = options_.wall_seconds;
      }
      if (options_.door >= 0) CheckLease(options_.door, match);
      Map<Any, Any> info;
      const bool resumable = HasFeature(said, "resume") && options_.control >= 0;
      std::string name;
      if (resumable) {
        name = RandomBytes(16);
        info.Set(Any("resume"), Any(Bytes(name)));
      }
      info.Set(Any("features"), Any(resumable ? "credit resume" : "credit"));
      prctl(PR_SET_NAME, "baton-session");
      TakePlace(options_, *channel(), name);
      if (options_.door >= 0) {
        CheckLease(options_.door, match);  // again: from here on who ends the lease sees this session
        close(options_.door);
      }
      info.Set(Any("machine"), Any(support::Machine().model_name));
      info.Set(Any("policy"), Any(policy()));
      info.Set(Any("session"), Any(static_cast<int64_t>(getpid())));
      const std::string hello = WriteHello(Any(info));
      SessionTerms terms = TermsOf(options_);
      terms.wall_seconds = session_seconds_;
      terms.linger_seconds = resumable ? kLingerSeconds : kGoneSeconds;
      Begin(terms);
      if (channel_->fd() >= 0) watch_->Start(channel_->fd(), resumable ? options_.control : -1, session_seconds_);
      SendFrame(FrameType::kHello, 0, 0, hello.data(), hello.size());
      Endpoint::Begin(HasFeature(said, "credit"), resumable);
    } catch (...) {
      const std::string why = WriteError(hidden_folder_);
      if (!lost()) SendFrame(FrameType::kError, 0, 0, why.data(), why.size());
      ThrowRemoteError(why);
    }
  }

  /// Tells the supervisor, and leaves the memory of the server's processes: code that runs here later may be hostile.
  void Begin(const SessionTerms& terms) {
    const std::string_view raw(reinterpret_cast<const char*>(&terms), sizeof terms);
    if (options_.control >= 0) {
      SendControl(options_.control, ControlMessage::kBegins, Cat(raw, policy(), "\n", channel_->peer));
    }
    pulse_ = LeaveSharedMemory(options_);
  }

  std::shared_ptr<Channel> Reconnect(uint64_t taken, uint64_t* peer_taken, Deadline) final {
    const Deadline deadline = Deadline::In(kLingerSeconds);
    for (;;) {
      std::shared_ptr<Channel> fresh = ChannelOfSocket(TakeConnection(options_.control, peer_taken, deadline));
      fresh->peer = channel_->peer;
      fresh->key_id = channel_->key_id;
      try {
        Map<Any, Any> info;
        info.Set(Any("taken"), Any(static_cast<int64_t>(taken)));
        WriteGreeting(fresh.get(), info, Deadline::In(kHelloSeconds));
      } catch (const Error&) {
        continue;  // lost again
      }
      watch_->Replace(fresh->fd());
      return fresh;
    }
  }

  Any GetFunction(const std::string& name) {
    if (!trusted_ && !AnyCovers(options_.allow, name)) {
      Throw(kDenied, Cat("the policy of this session does not let `", name,
                         "` through; the server allows it with --allow ", name));
    }
    const PackedFunc* f = Registry::Get(name);
    return f ? Any(*f) : Any();
  }
  static const PackedFunc& GlobalFunction(const char* name) {
    const PackedFunc* f = Registry::Get(name);
    if (!f) throw UnsupportedError(Cat("this server has no `", name, "`"));
    return *f;
  }

  /// A module that was loaded. One that has a single function and no "main" gives that for "main", as its `entry_func`.
  Any Loaded(const Module& m, const std::string& path) {
    entries_.erase(m.get());
    const std::string only = m.GetFunction("main", true).defined() ? "" : OnlyFunction(path);
    if (!only.empty()) entries_[m.get()] = only;
    return Any(m);
  }

  Any LoadModule(const std::string& name) {
    const std::string path = files_.PathOf(name);
    if (options_.load == Load::kNone) Throw(kDenied, "this server loads no modules");
    if (options_.load == Load::kAny) return Loaded(Module::LoadFromFile(path), path);
    const std::string digest = SignedDigest(path, options_.signers);
    if (digest.empty()) {
      Throw(kDenied,
            Cat("`", name, "` is not signed by a key that this server trusts; sign it (`baton sign`) and upload `",
                name, ".sig` too"));
    }
    const auto* raw = reinterpret_cast<const uint8_t*>(digest.data());
    return Loaded(GlobalFunction("runtime.LoadArtifactOf")(path, support::ToHex(raw, digest.size())).As<Module>(),
                  path);
  }

  Module ModuleOf(uint64_t handle) const {
    const ObjectRef o = exported_.Get(handle);
    if (!o.defined() || !o.get()->IsInstance<ModuleNode>()) Throw(kProtocolError, "a handle that is of no module");
    return Any(o).As<Module>();
  }
  static bool HasCompiled(const Module& m, const std::string& name) {
    if (m->GetSymbol(Cat(kFunctionSpecPrefix, name).c_str())) return true;
    for (const Module& i : m->imports()) {
      if (HasCompiled(i, name)) return true;
    }
    return false;
  }
  Any ModuleFunction(uint64_t handle, std::string name, bool imports) {
    const Module m = ModuleOf(handle);
    if (const auto only = entries_.find(m.get()); name == "main" && only != entries_.end()) name = only->second;
    const PackedFunc f = m.GetFunction(name, imports);
    if (!f.defined()) return Any();
    // Compiled functions, and `get_output` with a second argument, write where they are told to.
    writes_arguments_ = name == "get_output" || HasCompiled(m, name);
    return Any(f);
  }

  NDArray ArrayOf(uint64_t handle) const {
    const ObjectRef o = exported_.Get(handle);
    if (!o.defined() || !o.get()->IsInstance<NDArrayObj>()) throw ValueError("the array is not there any more");
    return Any(o).As<NDArray>();
  }
  static NDArray Bytes8(const NDArray& a, int64_t bytes) {
    if (bytes < 0) throw ValueError("a negative number of bytes");
    return a.CreateView({bytes}, DataType::UInt(8));
  }
  Any Alloc(Device d, int64_t bytes) {
    const uint64_t most = TermsOf(options_).memory_bytes;
    if (bytes < 0 || (most && static_cast<uint64_t>(bytes) > most)) {
      Throw(kOutOfMemory, Cat(bytes, " bytes: a session has at most ", most));
    }
    return Any(static_cast<int64_t>(exported_.Add(NDArray::Empty({bytes}, DataType::UInt(8), d))));
  }
  Any Write(Incoming* c, int64_t offset, int64_t bytes) {
    if (offset != 0 || bytes < 0 || static_cast<uint64_t>(bytes) != c->data_left)
      Throw(kProtocolError, "a write that does not fit its bytes");
    const NDArray to = Bytes8(ArrayOf(c->handle), bytes);
    const bool direct = to.device().device_type == kDLCPU;
    const NDArray host = direct ? to : NDArray::Empty({bytes}, DataType::UInt(8));
    char* at = host.ptr<char>();
    while (c->data_left > 0) {
      const size_t n = ReceiveData(c->id, at, c->data_left);
      at += n;
      c->data_left -= n;
    }
    if (!direct) to.CopyFrom(host);
    return Any();
  }
  Any Read(Incoming* c, int64_t offset, int64_t bytes) {
    if (offset != 0 || bytes < 0) Throw(kProtocolError, "a read from elsewhere");
    const ObjectRef o = exported_.Get(c->handle);
    if (o.defined() && Any(o).Is<std::string>() && !o.get()->IsInstance<NDArrayObj>()) {
      c->reply_data = Any(o).As<std::string>();
      c->reply_size = c->reply_data.size();
    } else {
      const NDArray from = Bytes8(ArrayOf(c->handle), bytes).Contiguous();
      c->keep = from;
      c->reply_at = from.data();
      c->reply_size = static_cast<size_t>(bytes);
    }
    return Any(static_cast<int64_t>(c->reply_size));
  }

  Any Put(Incoming* c, const Args& a) {
    const std::string name = a[0].As<std::string>(), digest = a[2].As<std::string>();
    const uint64_t size = c->data_left;
    if (static_cast<uint64_t>(a[1].As<int64_t>()) != size)
      Throw(kProtocolError, "a file of another size than was said");
    files_.PathOf(name);
    files_.NeedRoom(name, size);
    // By the call's number: another call may come between the pieces of this one, and put the same name.
    const std::string temporary = Cat(files_.folder(), "/.", c->id);
    const int fd = open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) ThrowSystem("OSError", Cat("`", name, "` cannot be written"));
    support::Sha256 hash;
    std::string piece(size < kChunk ? size : kChunk, '\0');
    bool written = true;
    try {
      while (c->data_left > 0) {
        const size_t n = ReceiveData(c->id, piece.data(), piece.size() < c->data_left ? piece.size() : c->data_left);
        c->data_left -= n;
        hash.Update(piece.data(), n);
        written = written && write(fd, piece.data(), n) == static_cast<ssize_t>(n);
      }
      close(fd);
      const auto got = hash.Finish();
      if (std::string_view(reinterpret_cast<const char*>(got.data()), got.size()) != digest) {
        Throw(kProtocolError, "the bytes that came are not those of the digest");
      }
      files_.NeedRoom(name, size);
      if (!written || !files_.Add(temporary, name, size, digest)) {
        ThrowSystem("OSError", Cat("`", name, "` cannot be written"));
      }
    } catch (...) {
      unlink(temporary.c_str());
      throw;
    }
    return Any(true);
  }

  /// Times a function on arguments that are here; the network takes no part in it.
  Any Time(Incoming* c, const Args& a) {
    const PackedFunc f = a[0].As<PackedFunc>();
    const Device device = a[1].As<Device>();
    const int number = a[2].As<int>(), repeat = a[3].As<int>(), min_repeat_ms = a[4].As<int>();
    const int cooldown_ms = a[5].As<int>(), repeats_to_cooldown = a[6].As<int>();
    const std::string prepare = a[7].As<std::string>();
    if (repeat < 1 || repeats_to_cooldown < 1 || cooldown_ms < 0)
      throw ValueError("repeat and repeats_to_cooldown must be at least 1");
    PackedFunc before;
    if (prepare == "cache_flush_cpu_non_first_arg") {  // of this library, for every policy
      before = GlobalFunction(prepare.c_str());
    } else if (!prepare.empty()) {
      before = GetFunction(prepare).As<PackedFunc>();
    }
    if (!prepare.empty() && !before.defined())
      throw ValueError(Cat("f_preproc: this server has no function `", prepare, "`"));
    const PackedFunc once =
        GlobalFunction("runtime.TimeEvaluator")(f, "", device, number, 1, min_repeat_ms).As<PackedFunc>();
    const Args rest = c->Rest(8);
    Array<double> seconds;
    for (int i = 0; i < repeat; ++i) {
      if (i && i % repeats_to_cooldown == 0) Rest(cooldown_ms);
      if (before.defined()) before.CallPacked(rest.values, rest.num_args);
      const Array<double> times = once.CallPacked(rest.values, rest.num_args).As<Array<double>>();
      seconds.push_back(times[0]);
      SendFrame(FrameType::kPing, c->id, 0, nullptr, 0);
    }
    return Any(seconds);
  }

  const ServerOptions& options_;
  bool trusted_ = false;
  SessionFiles files_;
  std::map<const Object*, std::string> entries_;  // of loaded modules: the only function
  uint64_t calls_ = 0;
  double session_seconds_ = 0;
  SessionPulse* pulse_ = nullptr;
  bool polling_ = false;
  PackedFunc inner_;  // what asked before this session
  std::shared_ptr<ConnectionWatch> watch_ = std::make_shared<ConnectionWatch>();
  std::thread::id thread_ = std::this_thread::get_id();
};

}  // namespace

void ServeSession(std::unique_ptr<Channel> channel, const ServerOptions& options, const std::string& folder) {
  auto worker = std::make_shared<Worker>(std::move(channel), options, folder);
  worker->WatchCancels();
  std::string end = "closed";
  try {
    worker->Run();
  } catch (const std::exception& e) {
    end = e.what();
  }
  worker->UnwatchCancels();
  if (options.control < 0) return;
  SendControl(
      options.control, ControlMessage::kEnds,
      Cat(worker->calls(), " calls, ", worker->bytes_taken(), " bytes in, ", worker->bytes_sent(), " out; ", end));
}

}  // namespace baton::rpc
