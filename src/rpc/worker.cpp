// SPDX-License-Identifier: Apache-2.0
#include "rpc/worker.h"

#include <baton/runtime/array.h>
#include <baton/runtime/bytes.h>
#include <baton/runtime/device_types.h>
#include <baton/runtime/map.h>
#include <baton/runtime/module.h>
#include <baton/runtime/registry.h>
#include <baton/support/file.h>
#include <baton/support/machine.h>
#include <baton/support/sha256.h>
#include <baton/support/text.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <thread>

#include "rpc/endpoint.h"
#include "rpc/errors.h"

namespace baton::rpc {
using namespace runtime;  // NOLINT
using support::Cat;

bool Policy::Allows(std::string_view name) const {
  if (trusted) return true;
  for (const std::string& one : allow) {
    if (one == name) return true;
    const std::string_view head(one.data(), one.empty() ? 0 : one.size() - 1);
    if (!one.empty() && one.back() == '*' && name.substr(0, head.size()) == head) return true;
  }
  return false;
}

namespace {

constexpr double kHelloSeconds = 2;
constexpr size_t kMostFile = sizeof(size_t) > 4 ? static_cast<size_t>(uint64_t{1} << 32) : SIZE_MAX / 2;

class Worker final : public Endpoint {
 public:
  Worker(std::unique_ptr<Channel> channel, const ServerOptions& options, std::string folder)
      : Endpoint(std::move(channel)), options_(options), folder_(std::move(folder)) {}

  void Run() {
    ReadPolicy();
    Greet();
    FrameHeader h;
    std::string payload;
    for (;;) {
      h = ReceiveFrame(&payload, Deadline::In(options_.idle_seconds));
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

  /// Lets functions that poll notice that their caller gave up.
  void WatchCancels() {
    const PackedFunc* before = Registry::Get("runtime.CheckSignals");
    Registry::Register("runtime.CheckSignals", true)
        .set_body(PackedFunc([this, inner = before ? *before : PackedFunc()](Args, RetValue*) {
          if (inner.defined()) inner();
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

 protected:
  bool KeepsArrays() const final { return true; }
  bool IsTheirs(const DLTensor*, uint64_t*) final { return false; }
  NDArray ImportArray(uint64_t, const TensorHead&, Device) final {
    Throw(kProtocolError, "a client's arrays travel with their elements");
  }
  Device DeviceIn(Device d) final {
    if (d.device_type <= 0 || d.device_type >= kRemoteDevice)
      throw ValueError("a device of a type that does not exist");
    return d;
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
        return Known(a);
      case Op::kPut:
        return Put(c, a);
      case Op::kDownload: {
        c->reply_data = support::ReadFile(PathOf(a[0].As<std::string>()), kMostFile);
        c->reply_size = c->reply_data.size();
        return Any(static_cast<int64_t>(c->reply_size));
      }
      case Op::kRemove:
        if (unlink(PathOf(a[0].As<std::string>()).c_str()) != 0) {
          ThrowSystem("FileNotFoundError", Cat("`", a[0].As<std::string>(), "` cannot be removed"));
        }
        return Any();
      case Op::kLoadModule:
        if (!policy_.load) Throw(kDenied, "this server loads no modules");
        return Any(Module::LoadFromFile(PathOf(a[0].As<std::string>())));
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
  void ReadPolicy() {
    policy_.load = options_.load;
    policy_.allow = options_.allow;
    policy_.trusted = options_.policy.empty() ? channel_->own_user : options_.policy == "trusted";
  }

  void Greet() {
    std::string payload, match;
    try {
      const FrameHeader h = ReceiveFrame(&payload, Deadline::In(kHelloSeconds));
      if (h.type != FrameType::kHello) Throw(kProtocolError, "a session begins with HELLO");
      const auto wanted = ReadHello(payload).As<Map<Any, Any>>();
      for (const auto& [key, value] : wanted) {
        if (key.As<std::string>() == "session_timeout") session_seconds_ = value.As<double>();
        if (key.As<std::string>() == "call_timeout") SetCallSeconds(value.As<double>());
        if (key.As<std::string>() == "key") match = value.As<std::string>();
      }
      CheckLease(match);
      TakePlace();
      Map<Any, Any> info;
      info.Set(Any("machine"), Any(support::Machine().model_name));
      info.Set(Any("policy"), Any(policy_.trusted ? "trusted" : "session"));
      info.Set(Any("session"), Any(static_cast<int64_t>(getpid())));
      const std::string hello = WriteHello(Any(info));
      SendFrame(FrameType::kHello, 0, 0, hello.data(), hello.size());
    } catch (...) {
      const std::string why = WriteError();
      if (!lost()) SendFrame(FrameType::kError, 0, 0, why.data(), why.size());
      ThrowRemoteError(why);
    }
    Watch();
  }

  /// A server of a tracker's serves the lease that is current: `match` ends with its ticket. The file has the epoch,
  /// the SHA-256 of the ticket, and 8 bytes of the SHA-256 of both, as one may write while another reads.
  void CheckLease(std::string_view match) {
    if (options_.door < 0) return;
    unsigned char door[48];
    bool whole = false;
    for (int i = 0; i < 50 && !whole; ++i) {
      if (i) usleep(1000);
      whole = pread(options_.door, door, sizeof door, 0) == sizeof door &&
              std::memcmp(support::Sha256Of(door, 40).data(), door + 40, 8) == 0;
    }
    close(options_.door);
    match.remove_prefix(match.rfind(':') + 1);
    const auto digest = support::Sha256Of(match.data(), match.size());
    unsigned char differs = !whole || match.empty();
    for (size_t i = 0; i < 32; ++i) differs |= door[8 + i] ^ digest[i];
    if (differs) {
      Throw(kDenied,
            "a tracker leases this server out, and the lease is not the current one; "
            "baton.rpc.connect_tracker(...).request(...) gives one");
    }
  }

  void TakePlace() {
    prctl(PR_SET_NAME, "baton-session");
    Places* places = options_.places;
    if (!places) return;
    // One that ended may not be counted off yet.
    for (int i = 0; places->taken.fetch_add(1) >= options_.max_sessions; ++i) {
      places->taken.fetch_sub(1);
      if (i < 50) {
        usleep(20000);
        continue;
      }
      Throw(kSessionLost, Cat("the server has ", options_.max_sessions, " sessions already; try again later"));
    }
    places->serves[options_.place] = 1;
  }

  /// Ends the process soon after the client is gone, or its time is up, whatever runs here then.
  void Watch() {
    const int fd = channel_->fd();
    const Deadline end = Deadline::In(session_seconds_);
    const bool limited = session_seconds_ > 0;
    std::thread([fd, end, limited] {
      pollfd p{fd, POLLRDHUP, 0};
      for (;;) {
        const int ready = poll(&p, 1, limited ? end.Left(1000) : -1);
        if (ready < 0 && errno == EINTR) continue;
        if (ready != 0) break;
        if (limited && end.Passed()) _exit(3);
      }
      for (int i = 0; i < 20; ++i) usleep(100000);  // to end by itself
      _exit(4);
    }).detach();
  }

  Any GetFunction(const std::string& name) {
    if (!policy_.Allows(name)) {
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
  Any ModuleFunction(uint64_t handle, const std::string& name, bool imports) {
    const Module m = ModuleOf(handle);
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
    if (bytes < 0 || static_cast<uint64_t>(bytes) > options_.memory_bytes) {
      Throw(kOutOfMemory, Cat(bytes, " bytes: a session has at most ", options_.memory_bytes));
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

  /// The path of a file of the session. Names are names, not paths.
  std::string PathOf(const std::string& name) const {
    if (name.empty() || name.size() > 200 || name[0] == '.' || name.find('/') != std::string::npos ||
        name.find('\0') != std::string::npos) {
      throw ValueError(Cat("`", name, "` is no name of a file: it may hold no `/` and not begin with a dot"));
    }
    return Cat(folder_, "/", name);
  }
  struct File {
    std::string name, digest;
    uint64_t size;
  };
  Any Known(const Args& a) {
    const std::string name = a[0].As<std::string>(), digest = a[2].As<std::string>();
    const std::string path = PathOf(name);
    for (const File& f : files_) {
      if (f.digest != digest || f.size != static_cast<uint64_t>(a[1].As<int64_t>())) continue;
      if (f.name == name) return Any(access(path.c_str(), R_OK) == 0);
      unlink(path.c_str());
      if (link(PathOf(f.name).c_str(), path.c_str()) != 0) return Any(false);
      Remember({name, digest, f.size});
      return Any(true);
    }
    return Any(false);
  }
  void Remember(File file) {
    for (File& f : files_) {
      if (f.name == file.name) {
        f = std::move(file);
        return;
      }
    }
    files_.push_back(std::move(file));
  }
  Any Put(Incoming* c, const Args& a) {
    const std::string name = a[0].As<std::string>(), digest = a[2].As<std::string>(), path = PathOf(name);
    const uint64_t size = c->data_left;
    if (static_cast<uint64_t>(a[1].As<int64_t>()) != size)
      Throw(kProtocolError, "a file of another size than was said");
    uint64_t used = size;
    for (const File& f : files_) used += f.name == name ? 0 : f.size;
    if (size > options_.disk_bytes || used > options_.disk_bytes) {
      Throw(kOutOfMemory, Cat("the files of a session take at most ", options_.disk_bytes, " bytes"));
    }
    const std::string temporary = Cat(folder_, "/.", name);
    const int fd = open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) ThrowSystem("OSError", Cat("`", name, "` cannot be written"));
    support::Sha256 hash;
    std::string piece(size < kChunk ? size : kChunk, '\0');
    bool written = true;
    while (c->data_left > 0) {
      const size_t n = ReceiveData(c->id, piece.data(), piece.size() < c->data_left ? piece.size() : c->data_left);
      c->data_left -= n;
      hash.Update(piece.data(), n);
      written = written && write(fd, piece.data(), n) == static_cast<ssize_t>(n);
    }
    close(fd);
    const auto got = hash.Finish();
    if (std::string_view(reinterpret_cast<const char*>(got.data()), got.size()) != digest) {
      unlink(temporary.c_str());
      Throw(kProtocolError, "the bytes that came are not those of the digest");
    }
    if (!written || rename(temporary.c_str(), path.c_str()) != 0) {
      unlink(temporary.c_str());
      ThrowSystem("OSError", Cat("`", name, "` cannot be written"));
    }
    Remember({name, digest, size});
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
    if (!prepare.empty()) before = GetFunction(prepare).As<PackedFunc>();
    if (!prepare.empty() && !before.defined())
      throw ValueError(Cat("f_preproc: this server has no function `", prepare, "`"));
    const PackedFunc once =
        GlobalFunction("runtime.TimeEvaluator")(f, "", device, number, 1, min_repeat_ms).As<PackedFunc>();
    const Args rest = c->Rest(8);
    Array<double> seconds;
    for (int i = 0; i < repeat; ++i) {
      if (cooldown_ms && i && i % repeats_to_cooldown == 0) usleep(static_cast<useconds_t>(cooldown_ms) * 1000);
      if (before.defined()) before.CallPacked(rest.values, rest.num_args);
      const Array<double> times = once.CallPacked(rest.values, rest.num_args).As<Array<double>>();
      seconds.push_back(times[0]);
      SendFrame(FrameType::kPing, c->id, 0, nullptr, 0);
    }
    return Any(seconds);
  }

  const ServerOptions& options_;
  std::string folder_;
  Policy policy_;
  std::vector<File> files_;
  uint64_t calls_ = 0;
  double session_seconds_ = 0;
  bool polling_ = false;
  std::thread::id thread_ = std::this_thread::get_id();
};

}  // namespace

void ServeSession(std::unique_ptr<Channel> channel, const ServerOptions& options, const std::string& folder) {
  const std::string peer = channel->peer;
  auto worker = std::make_shared<Worker>(std::move(channel), options, folder);
  worker->WatchCancels();
  std::string end = "closed";
  try {
    worker->Run();
  } catch (const std::exception& e) {
    end = e.what();
  }
  if (!options.quiet) {
    const std::string line =
        Cat("baton-rpc: session ", getpid(), " of ", peer, ": ", worker->calls(), " calls; ", end, "\n");
    if (write(2, line.data(), line.size()) < 0) return;
  }
}

}  // namespace baton::rpc
