// SPDX-License-Identifier: Apache-2.0
// What a program sees of a session: a module of functions, remote modules, functions and arrays, and devices.
#include <baton/runtime/array.h>
#include <baton/runtime/bytes.h>
#include <baton/runtime/device_types.h>
#include <baton/runtime/interrupt.h>
#include <baton/runtime/map.h>
#include <baton/runtime/registry.h>
#include <baton/support/file.h>
#include <baton/support/sha256.h>
#include <baton/support/text.h>
#include <unistd.h>

#include <map>
#include <memory>

#include "rpc/endpoint.h"
#include "rpc/errors.h"

namespace baton::rpc {
using namespace runtime;  // NOLINT
using support::Cat;
namespace {

constexpr double kHandshakeSeconds = 5;
constexpr double kRefusedSeconds = 1;  // as long as a server takes that is started anew
constexpr size_t kMostDownload = sizeof(size_t) > 4 ? static_cast<size_t>(uint64_t{1} << 36) : SIZE_MAX / 2;

class Client;

/// The sessions of this process by their number, which is part of their devices' types and is not used again.
struct Sessions {
  std::mutex mutex;
  std::map<int, std::weak_ptr<Endpoint>> all;
  int next = 0;

  static Sessions& Get() {
    static auto* sessions = new Sessions;
    return *sessions;
  }
  std::shared_ptr<Client> Find(Device d);
};

/// The owner of an array's memory at the peer.
struct ArrayOwner {
  std::shared_ptr<Endpoint> endpoint;
  uint64_t handle;
  std::vector<int64_t> shape;
};

class Client final : public Endpoint {
 public:
  explicit Client(std::unique_ptr<Channel> channel) : Endpoint(std::move(channel)) {}
  ~Client() override {
    Sessions& sessions = Sessions::Get();
    std::lock_guard lock(sessions.mutex);
    sessions.all.erase(index_);
  }

  static std::shared_ptr<Client> Open(const Address& address, const Map<Any, Any>& options, double connect_seconds) {
    const Deadline deadline = Deadline::In(connect_seconds > 0 ? connect_seconds : kHandshakeSeconds);
    return OpenOn(rpc::Connect(address, deadline), address, options, deadline);
  }
  static std::shared_ptr<Client> OpenOn(std::unique_ptr<Channel> channel, const Address& address,
                                        const Map<Any, Any>& options, Deadline deadline) {
    auto client = std::make_shared<Client>(std::move(channel));
    client->address_ = address;
    Map<Any, Any> said = options;
    // Connections within a machine do not get lost: what ends there is the peer.
    const bool resumes = address.kind == Address::kTls && LingerOf(options) > 0;
    said.Set(Any("features"), Any(resumes ? "credit resume" : "credit"));
    const std::string hello = WriteHello(said);
    client->SendFrame(FrameType::kHello, 0, 0, hello.data(), hello.size());
    std::string payload;
    const FrameHeader h = client->ReceiveFrame(&payload, deadline);
    if (h.type == FrameType::kError) ThrowRemoteError(payload);
    if (h.type != FrameType::kHello) Throw(kProtocolError, "the server did not greet");
    const Any info = ReadHello(payload);
    const bool resumable = resumes && HasFeature(info, "resume");
    if (resumable) client->session_ = TextOption(info, "resume");
    client->linger_ = LingerOf(options);
    client->info_ = info;
    client->Begin(HasFeature(info, "credit"), resumable);
    Sessions& sessions = Sessions::Get();
    std::lock_guard lock(sessions.mutex);
    if (sessions.next >= (INT32_MAX / kRemoteDevice) - 1) Throw(kRpcError, "too many sessions in one process");
    client->index_ = sessions.next++;
    sessions.all[client->index_] = client;
    return client;
  }

  Device DeviceOf(int type, int id) const {
    if (type <= 0 || type >= kRemoteDevice) throw ValueError(Cat("there is no device of type ", type));
    return {static_cast<DLDeviceType>(kRemoteDevice * (index_ + 1) + type), id};
  }
  bool Owns(Device d) const { return d.device_type >= kRemoteDevice && d.device_type / kRemoteDevice - 1 == index_; }
  static Device There(Device d) { return {static_cast<DLDeviceType>(d.device_type % kRemoteDevice), d.device_id}; }
  const Any& info() const { return info_; }
  static double LingerOf(const Map<Any, Any>& options) {
    for (const auto& [key, value] : options) {
      if (key.As<std::string>() == "linger") return value.As<double>();
    }
    return 0;
  }

  Device DeviceOut(Device d) final {
    if (Owns(d)) return There(d);
    if (d.device_type >= kRemoteDevice) throw ValueError(Cat(Device2String(d), " is a device of another session"));
    return d;
  }
  Device DeviceIn(Device d) final { return DeviceOf(d.device_type, d.device_id); }

  bool Exists(Device d) {
    if (d.device_type % kRemoteDevice == kDLCPU) return true;
    {
      std::lock_guard lock(known_mutex_);
      for (const auto& [device, exists] : known_) {
        if (device == d) return exists;
      }
    }
    const bool exists = Ask(Op::kExists, 0, d).As<bool>();
    std::lock_guard lock(known_mutex_);
    known_.emplace_back(d, exists);
    return exists;
  }
  void Write(uint64_t handle, const void* data, size_t bytes) {
    const Any args[] = {Any(int64_t{0}), Any(static_cast<int64_t>(bytes))};
    Call(Op::kWrite, handle, &args[0].raw(), 2, {data, nullptr, nullptr, bytes});
  }
  void Read(uint64_t handle, void* data, size_t bytes) {
    const Any args[] = {Any(int64_t{0}), Any(static_cast<int64_t>(bytes))};
    Call(Op::kRead, handle, &args[0].raw(), 2, {nullptr, data, nullptr, bytes});
  }
  /// Puts a file on the remote; its bytes are not sent when the server has them.
  void Upload(const std::string& name, std::string_view bytes) {
    const auto digest = support::Sha256Of(bytes.data(), bytes.size());
    const Any args[] = {Any(name), Any(static_cast<int64_t>(bytes.size())),
                        Any(Bytes(std::string(reinterpret_cast<const char*>(digest.data()), digest.size())))};
    if (Call(Op::kUpload, 0, &args[0].raw(), 3).As<bool>()) return;
    Call(Op::kPut, 0, &args[0].raw(), 3, {bytes.data(), nullptr, nullptr, bytes.size()});
  }
  std::string Download(const std::string& name) {
    std::string out;
    const Any args[] = {Any(name)};
    Call(Op::kDownload, 0, &args[0].raw(), 1, {nullptr, nullptr, &out, kMostDownload});
    return out;
  }

 protected:
  Any Answer(Incoming* call) final {
    if (call->op != Op::kCall) Throw(kDenied, "a client answers calls of the functions that it gave, and no more");
    return CallExported(*call);
  }
  bool KeepsArrays() const final { return false; }
  bool IsTheirs(const DLTensor* t, uint64_t* handle) final {
    if (t->device.device_type < kRemoteDevice) return false;
    if (!Owns(t->device))
      throw ValueError(Cat("an array on ", Device2String(t->device), ", of another session; copy it first"));
    if (t->byte_offset || !IsContiguous(t)) throw ValueError("a remote array with an offset or strides");
    *handle = reinterpret_cast<uint64_t>(t->data);
    return true;
  }
  NDArray ImportArray(uint64_t handle, const TensorHead& head, Device device) final {
    if (device.device_type <= 0 || device.device_type >= kRemoteDevice) Throw(kProtocolError, "an array on no device");
    auto* owner = new ArrayOwner{shared_from_this(), handle, head.shape};
    auto* managed = new DLManagedTensor;
    managed->dl_tensor = {reinterpret_cast<void*>(handle),
                          DeviceOf(device.device_type, device.device_id),
                          static_cast<int32_t>(head.shape.size()),
                          head.dtype,
                          owner->shape.data(),
                          nullptr,
                          0};
    managed->manager_ctx = owner;
    managed->deleter = [](DLManagedTensor* m) {
      auto* o = static_cast<ArrayOwner*>(m->manager_ctx);
      o->endpoint->ReleaseLater(o->handle);
      delete o;
      delete m;
    };
    try {
      return NDArray::FromDLPack(managed);
    } catch (...) {
      managed->deleter(managed);
      throw;
    }
  }
  /// Comes back to the session after its connection was lost.
  std::shared_ptr<Channel> Reconnect(uint64_t taken, uint64_t* peer_taken, Deadline deadline) final {
    deadline = deadline.Earlier(Deadline::In(linger_));
    const Deadline refused = Deadline::In(kRefusedSeconds);
    int denied = 0;  // a handshake that is cut looks like one that is refused
    for (useconds_t pause = 5000;; pause = pause < 250000 ? 2 * pause : pause) {
      try {
        std::shared_ptr<Channel> fresh = rpc::Connect(address_, deadline.Earlier(Deadline::In(kHandshakeSeconds)));
        Map<Any, Any> said;
        said.Set(Any("resume"), Any(Bytes(session_)));
        said.Set(Any("taken"), Any(static_cast<int64_t>(taken)));
        WriteGreeting(fresh.get(), said, deadline);
        const Any info = ReadGreeting(fresh.get(), deadline);  // comes when what runs there lets it
        *peer_taken = static_cast<uint64_t>(NumberOption(info, "taken"));
        return fresh;
      } catch (const Error& e) {
        // A server that says that the session is gone knows; and where no process listens there is none.
        const bool over = std::string_view(e.message()).find(kGone) != std::string_view::npos ||
                          (std::string_view(e.message()).find("refused") != std::string_view::npos && refused.Passed());
        if (over || deadline.Passed() || (e.kind() != kSessionLost && e.kind() != kTimeout && ++denied > 5)) {
          Throw(kSessionLost, Cat("the connection was lost, and the session does not go on: ", e.message()));
        }
      }
      CheckInterrupt();
      usleep(pause);
    }
  }
  uint64_t Stage(const void* data, size_t bytes) final {
    const uint64_t handle =
        static_cast<uint64_t>(Ask(Op::kAlloc, 0, DeviceOf(kDLCPU, 0), static_cast<int64_t>(bytes)).As<int64_t>());
    try {
      Write(handle, data, bytes);
    } catch (...) {
      ReleaseLater(handle);
      throw;
    }
    return handle;
  }

 private:
  int index_ = -1;
  Any info_;
  Address address_;
  std::string session_;  ///< what names it when it is resumed
  double linger_ = 0;
  std::mutex known_mutex_;
  std::vector<std::pair<Device, bool>> known_;
};

std::shared_ptr<Client> Sessions::Find(Device d) {
  std::lock_guard lock(mutex);
  const auto it = all.find(d.device_type / kRemoteDevice - 1);
  return it == all.end() ? nullptr : std::static_pointer_cast<Client>(it->second.lock());
}

/// Memory of devices at the peers. The "address" of memory there is its handle.
class RemoteDeviceApi final : public DeviceAPI {
 public:
  bool Exists(Device d) override {
    const auto client = Sessions::Get().Find(d);
    return client && !client->lost() && client->Exists(d);
  }
  void* Alloc(Device d, size_t bytes, size_t) override {
    const auto client = Of(d);
    const int64_t handle = client->Ask(Op::kAlloc, 0, d, static_cast<int64_t>(bytes)).As<int64_t>();
    if (handle == 0) Throw(kProtocolError, "memory without a handle");
    // The session stays as long as its memory is referred to.
    std::lock_guard lock(mutex_);
    owners_.emplace(std::pair{d.device_type / kRemoteDevice, handle}, client);
    return reinterpret_cast<void*>(handle);
  }
  void Free(Device d, void* data) noexcept override {
    std::shared_ptr<Endpoint> owner;
    const int64_t handle = reinterpret_cast<int64_t>(data);
    {
      std::lock_guard lock(mutex_);
      const auto it = owners_.find(std::pair{d.device_type / kRemoteDevice, handle});
      if (it == owners_.end()) return;
      owner = std::move(it->second);
      owners_.erase(it);
    }
    owner->ReleaseLater(static_cast<uint64_t>(handle));
  }
  void Copy(const void* from, Device from_device, void* to, Device to_device, size_t bytes) override {
    if (bytes == 0) return;
    const bool reads = from_device.device_type >= kRemoteDevice, writes = to_device.device_type >= kRemoteDevice;
    const uint64_t source = reinterpret_cast<uint64_t>(from), target = reinterpret_cast<uint64_t>(to);
    if (reads && writes && from_device.device_type / kRemoteDevice == to_device.device_type / kRemoteDevice) {
      Of(to_device)->Ask(Op::kCopy, target, static_cast<int64_t>(source), static_cast<int64_t>(bytes));
    } else if (reads && to_device.device_type == kDLCPU) {
      Of(from_device)->Read(source, to, bytes);
    } else if (writes && from_device.device_type == kDLCPU) {
      Of(to_device)->Write(target, from, bytes);
    } else {  // from one session to another, or between a remote and a local device: by way of this CPU
      std::string host(bytes, '\0');
      DeviceAPI* local = DeviceAPI::Get(reads ? to_device : from_device);
      if (reads) {
        Copy(from, from_device, host.data(), Cpu(), bytes);
        local->Copy(host.data(), Cpu(), to, to_device, bytes);
      } else {
        local->Copy(from, from_device, host.data(), Cpu(), bytes);
        Copy(host.data(), Cpu(), to, to_device, bytes);
      }
    }
  }
  void Sync(Device d) override { Of(d)->Ask(Op::kSync, 0, d); }

 private:
  static std::shared_ptr<Client> Of(Device d) {
    auto client = Sessions::Get().Find(d);
    if (!client || client->lost()) Throw(kSessionLost, Cat("the session of ", Device2String(d), " is over"));
    return client;
  }
  std::mutex mutex_;
  std::map<std::pair<int, int64_t>, std::shared_ptr<Endpoint>> owners_;
};

/// (function, arguments...): sends a call; gives a function that waits for its result, once.
void CallLater(Client* c, Args a, RetValue* rv) {
  const PackedFunc f = a[0].As<PackedFunc>();
  const RemoteFunction* remote = RemoteFunction::Of(f.get());
  if (!remote || remote->endpoint.get() != c) throw TypeError("expected a function of this session");
  if (remote->writes_arguments) c->CheckArguments(a.values + 1, a.size() - 1);
  struct Call {
    std::shared_ptr<Endpoint> endpoint;
    uint64_t id;
    ~Call() { endpoint->Forget(id); }
  };
  auto call =
      std::make_shared<Call>(remote->endpoint, c->CallLater(Op::kCall, remote->handle, a.values + 1, a.size() - 1));
  *rv = PackedFunc([call](Args, RetValue* result) { *result = call->endpoint->Finish(call->id); });
}

/// The session as a module, for programs that call its functions.
class SessionModule final : public ModuleNode {
 public:
  explicit SessionModule(std::shared_ptr<Client> client) : client_(std::move(client)) {}
  const char* type_key() const override { return "rpc.session"; }
  PackedFunc GetFunction(std::string_view name, const ObjectPtr<Object>& self) override {
    static constexpr struct {
      std::string_view name;
      void (*run)(Client*, Args, RetValue*);
    } kFunctions[] = {
        {"get_function",
         [](Client* c, Args a, RetValue* rv) { *rv = c->Ask(Op::kGetFunction, 0, a[0].As<std::string>()); }},
        {"load_module",
         [](Client* c, Args a, RetValue* rv) { *rv = c->Ask(Op::kLoadModule, 0, a[0].As<std::string>()); }},
        {"system_lib",
         [](Client* c, Args a, RetValue* rv) { *rv = c->Ask(Op::kSystemLib, 0, a[0].As<std::string>()); }},
        {"remove", [](Client* c, Args a, RetValue*) { c->Ask(Op::kRemove, 0, a[0].As<std::string>()); }},
        {"upload_file",
         [](Client* c, Args a, RetValue*) {
           const support::MappedFile file(a[1].As<std::string>());
           c->Upload(a[0].As<std::string>(), file.text());
         }},
        {"upload",
         [](Client* c, Args a, RetValue*) {
           const Bytes held = a[1].As<Bytes>();
           c->Upload(a[0].As<std::string>(), held.view());
         }},
        {"download", [](Client* c, Args a, RetValue* rv) { *rv = Bytes(c->Download(a[0].As<std::string>())); }},
        {"device", [](Client* c, Args a, RetValue* rv) { *rv = c->DeviceOf(a[0].As<int>(), a[1].As<int>()); }},
        {"info", [](Client* c, Args, RetValue* rv) { *rv = c->info(); }},
        {"peer", [](Client* c, Args, RetValue* rv) { *rv = c->channel()->peer; }},
        {"lost", [](Client* c, Args, RetValue* rv) { *rv = c->lost(); }},
        {"call_later", CallLater},
        {"close", [](Client* c, Args, RetValue*) { c->Close(); }},
        {"set_call_timeout", [](Client* c, Args a, RetValue*) { c->SetCallSeconds(a[0].As<double>()); }},
        {"num_exported", [](Client* c, Args, RetValue* rv) { *rv = static_cast<int64_t>(c->num_exported()); }}};
    for (const auto& f : kFunctions) {
      if (f.name == name) {
        return PackedFunc([this, self, run = f.run](Args args, RetValue* rv) { run(client_.get(), args, rv); });
      }
    }
    return PackedFunc();
  }

 private:
  std::shared_ptr<Client> client_;
};

/// (function, arguments of `Op::kTime` behind it): a function that times a remote function on its arguments, there.
PackedFunc TimeEvaluator(const Args& given) {
  const PackedFunc f = given[0].As<PackedFunc>();
  const RemoteFunction* remote = RemoteFunction::Of(f.get());
  if (!remote) throw TypeError("expected a function of a remote module");
  std::vector<Any> head;
  for (int i = 0; i < given.size(); ++i) head.push_back(Any(given[i]));
  return PackedFunc([f, remote, head = std::move(head)](Args args, RetValue* rv) {
    std::vector<BatonValue> all;
    for (const Any& one : head) all.push_back(one.raw());
    all.insert(all.end(), args.values, args.values + args.num_args);
    if (remote->writes_arguments) remote->endpoint->CheckArguments(args.values, args.num_args);
    *rv = remote->endpoint->Call(Op::kTime, 0, all.data(), static_cast<int>(all.size()));
  });
}

/// Registers the devices of sessions, with the first of them.
void NeedRemoteDevices() {
  static const bool registered = [] {
    DeviceAPI::Register(kRemoteDevice, new RemoteDeviceApi);
    return true;
  }();
  (void)registered;
}

BATON_REGISTER_GLOBAL("rpc.Connect").set_body(PackedFunc([](Args args, RetValue* rv) {
  if constexpr (sizeof(void*) < sizeof(uint64_t)) {
    throw UnsupportedError("a 32-bit machine serves sessions and opens none: an address is too short for a handle");
  }
  NeedRemoteDevices();
  auto client =
      Client::Open(Address::Parse(args[0].As<std::string>()), args[1].As<Map<Any, Any>>(), args[2].As<double>());
  client->SetCallSeconds(args[3].As<double>());
  *rv = MakeModule<SessionModule>(std::move(client));
}));
BATON_REGISTER_GLOBAL("rpc.TimeEvaluator").set_body(PackedFunc([](Args args, RetValue* rv) {
  *rv = TimeEvaluator(args);
}));

}  // namespace

Module SessionOn(std::unique_ptr<Channel> channel) {
  NeedRemoteDevices();
  return MakeModule<SessionModule>(
      Client::OpenOn(std::move(channel), Address(), Map<Any, Any>(), Deadline::In(kHandshakeSeconds)));
}

}  // namespace baton::rpc
