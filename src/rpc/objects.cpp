// SPDX-License-Identifier: Apache-2.0
// Functions, modules, arrays and other objects on their way, and errors.
#include <baton/runtime/array.h>
#include <baton/runtime/bytes.h>
#include <baton/runtime/map.h>
#include <baton/runtime/module.h>
#include <baton/support/text.h>

#include <cstring>

#include "rpc/endpoint.h"
#include "rpc/errors.h"

namespace baton::rpc {
using namespace runtime;  // NOLINT
using support::ByteReader;
using support::ByteWriter;
using support::Cat;
namespace {

enum class Kind : uint8_t { kObject = 0, kArray = 1, kStr = 2, kBytes = 3, kFunction = 4, kModule = 5 };
constexpr uint32_t kWritesArguments = 1;  // of a function: arrays that it is given are where its results go
constexpr uint64_t kMostText = sizeof(size_t) > 4 ? uint64_t{1} << 32 : SIZE_MAX / 2;

void WriteRef(Tag tag, uint64_t handle, Kind kind, ByteWriter* out) {
  out->Write(static_cast<uint8_t>(tag));
  out->Write(handle);
  out->Write(static_cast<uint8_t>(kind));
}

int CallRemote(void* self, const BatonValue* args, int count, BatonValue* ret) {
  auto* f = static_cast<RemoteFunction*>(static_cast<PackedFuncObj*>(self));
  try {
    const std::shared_ptr<Endpoint> endpoint = f->endpoint;
    if (f->writes_arguments) endpoint->CheckArguments(args, count);
    Any value = endpoint->Call(Op::kCall, f->handle, args, count);
    *ret = value.Release();
    return 0;
  } catch (...) {
    return CatchToSlot("remote function");
  }
}

PackedFunc MakeRemoteFunction(std::shared_ptr<Endpoint> endpoint, uint64_t handle, bool writes_arguments) {
  auto* f = new RemoteFunction;
  f->endpoint = std::move(endpoint);
  f->handle = handle;
  f->writes_arguments = writes_arguments;
  f->call = CallRemote;
  f->self = static_cast<PackedFuncObj*>(f);
  ObjectAccess::Init(f, PackedFuncObj::RuntimeTypeIndex(), [](Object* o) { delete static_cast<RemoteFunction*>(o); });
  return PackedFunc(ObjectPtr<Object>(f));
}

class RemoteModule final : public ModuleNode {
 public:
  RemoteModule(std::shared_ptr<Endpoint> endpoint, uint64_t handle) : endpoint_(std::move(endpoint)), handle_(handle) {}
  ~RemoteModule() override { endpoint_->ReleaseLater(handle_); }
  const char* type_key() const override { return "rpc"; }
  PackedFunc GetFunction(std::string_view name, const ObjectPtr<Object>&) override {
    return endpoint_->Ask(Op::kModuleFunction, handle_, std::string(name), true).As<PackedFunc>();
  }
  const std::shared_ptr<Endpoint>& endpoint() const { return endpoint_; }
  uint64_t handle() const { return handle_; }

 private:
  std::shared_ptr<Endpoint> endpoint_;
  uint64_t handle_;
};

const RemoteModule* AsRemoteModule(const Object* o) {
  if (!o || !o->IsInstance<ModuleNode>()) return nullptr;
  const auto* m = static_cast<const ModuleNode*>(o);
  return std::string_view(m->type_key()) == "rpc" ? static_cast<const RemoteModule*>(m) : nullptr;
}

/// The same elements dense and on the CPU.
NDArray Dense(const DLTensor* t) {
  NDArray a = NDArray::Empty({t->shape, t->shape + t->ndim}, t->dtype);
  a.CopyFrom(t);
  return a;
}

}  // namespace

RemoteFunction::~RemoteFunction() { endpoint->ReleaseLater(handle); }
RemoteObject::~RemoteObject() {
  if (endpoint) endpoint->ReleaseLater(handle);
}

RemoteFunction* RemoteFunction::Of(const Object* o) {
  if (!o || !o->IsInstance<PackedFuncObj>()) return nullptr;
  auto* f = static_cast<PackedFuncObj*>(const_cast<Object*>(o));
  return f->call == CallRemote ? static_cast<RemoteFunction*>(f) : nullptr;
}

std::shared_ptr<Endpoint> EndpointOfModule(const Object* o, uint64_t* handle) {
  const RemoteModule* m = AsRemoteModule(o);
  if (!m) return nullptr;
  *handle = m->handle();
  return m->endpoint();
}

uint64_t Endpoint::Stage(const void*, size_t) { throw TypeError("an array of this side cannot be given away here"); }

void Endpoint::CheckArguments(const BatonValue* args, int count) {
  uint64_t handle = 0;
  for (int i = 0; i < count; ++i) {
    const ArgValue v(args[i]);
    if (!v.is_null() && v.Is<DLTensor*>() && !IsTheirs(v.As<DLTensor*>(), &handle)) {
      throw TypeError(Cat("argument ", i,
                          " is an array of this machine, and the remote function writes its results into its "
                          "arguments: make it there, as by baton.nd.array(x, remote.cpu())"));
    }
  }
}

void Endpoint::WriteTensorValue(const BatonValue& value, ByteWriter* out) {
  const DLTensor* t = ArgValue(value).As<DLTensor*>();
  uint64_t handle = 0;
  if (IsTheirs(t, &handle)) {
    WriteRef(Tag::kTheirs, handle, Kind::kArray, out);
    return WriteTensorHead(t, out);
  }
  if (KeepsArrays() && value.type_code == kBatonObject) {
    NDArray a = ArgValue(value).As<NDArray>();
    if (!a.contiguous()) a = Dense(t);
    WriteRef(Tag::kOurs, exported_.Add(a), Kind::kArray, out);
    WriteTensorHead(a.tensor(), out);
    out->Write(static_cast<int32_t>(a.device().device_type));
    return out->Write(static_cast<int32_t>(a.device().device_id));
  }
  if (t->device.device_type != kDLCPU) {
    throw TypeError(Cat("an array on ", Device2String(t->device), " does not travel; copy it to the CPU first"));
  }
  NDArray copy;
  if (!IsContiguous(t)) {
    copy = Dense(t);
    t = copy.tensor();
  }
  const size_t bytes = TensorBytes(t->shape, t->ndim, t->dtype);
  if (bytes <= kInlineBytes || KeepsArrays()) return WriteTensor(t, out);
  handle = Stage(static_cast<const char*>(t->data) + t->byte_offset, bytes);
  KeepStaged(handle);
  WriteRef(Tag::kTheirs, handle, Kind::kArray, out);
  WriteTensorHead(t, out);
}

void Endpoint::KeepStaged(uint64_t handle) {
  auto holder = make_object<RemoteObject>();
  holder->endpoint = shared_from_this();
  holder->handle = handle;
  if (staged_) staged_->push_back(ObjectRef(holder));
}

void Endpoint::WriteText(std::string_view text, bool is_bytes, const ObjectRef& owner, ByteWriter* out) {
  const Kind kind = is_bytes ? Kind::kBytes : Kind::kStr;
  if (KeepsArrays()) {
    WriteRef(Tag::kText, exported_.Add(owner), kind, out);
    return out->Write(static_cast<uint64_t>(text.size()));
  }
  const uint64_t handle = Stage(text.data(), text.size());
  KeepStaged(handle);
  WriteRef(Tag::kTheirs, handle, kind, out);
  out->Write(static_cast<uint64_t>(text.size()));
}

void Endpoint::WriteObject(const BatonValue& value, ByteWriter* out) {
  if (ArgValue(value).Is<DLTensor*>()) return WriteTensorValue(value, out);
  const Any held = Any::FromRaw(value);
  if (held.type_code() != kBatonObject) throw TypeError(Cat("a ", ValueKindName(value), " does not travel"));
  const Object* o = held.object();
  const ObjectRef ref = held.As<ObjectRef>();
  uint64_t handle = 0;
  if (held.Is<std::string>()) {
    const bool is_bytes = o->IsInstance<BytesObj>();
    const std::string_view text = is_bytes ? held.As<Bytes>().view() : held.As<String>().view();
    return WriteText(text, is_bytes, ref, out);
  }
  if (const RemoteFunction* f = RemoteFunction::Of(o); f && f->endpoint.get() == this) {
    return WriteRef(Tag::kTheirs, f->handle, Kind::kObject, out);
  }
  if (const auto e = EndpointOfModule(o, &handle); e && e.get() == this) {
    return WriteRef(Tag::kTheirs, handle, Kind::kObject, out);
  }
  if (const auto* r = ref.as<RemoteObject>(); r && r->endpoint.get() == this) {
    return WriteRef(Tag::kTheirs, r->handle, Kind::kObject, out);
  }
  if (o->IsInstance<PackedFuncObj>()) {
    WriteRef(Tag::kOurs, exported_.Add(ref), Kind::kFunction, out);
    return out->Write(static_cast<uint8_t>(writes_arguments_ ? kWritesArguments : 0));
  }
  if (!KeepsArrays())
    throw TypeError(
        Cat("a ", o->GetTypeKey(), " does not travel: functions, arrays, numbers, texts and lists of them do"));
  WriteRef(Tag::kOurs, exported_.Add(ref), o->IsInstance<ModuleNode>() ? Kind::kModule : Kind::kObject, out);
}

Any Endpoint::ReadObject(Tag tag, ByteReader* in) {
  const uint64_t handle = in->Read<uint64_t>("handle");
  const Kind kind = static_cast<Kind>(in->Read<uint8_t>("kind"));
  if (tag == Tag::kTheirs) {
    const ObjectRef object = exported_.Get(handle);
    if (!object.defined()) in->Fail("a handle that was not given, or was released");
    if (kind == Kind::kObject) return Any(object);
    if (!object.get()->IsInstance<NDArrayObj>()) in->Fail("a handle that is of no array");
    const NDArray a = Any(object).As<NDArray>();
    if (kind == Kind::kArray) {
      const TensorHead head = ReadTensorHead(in);
      if (head.shape == a.shape() && head.dtype == a.dtype()) return Any(a);
      return Any(a.CreateView(head.shape, head.dtype));
    }
    const uint64_t size = in->Read<uint64_t>("size");
    if ((kind != Kind::kStr && kind != Kind::kBytes) || size > a.nbytes() || a.device().device_type != kDLCPU) {
      in->Fail("a text that does not lie where it should");
    }
    if (kind == Kind::kStr) return Any(String(a.ptr<char>(), size));
    return Any(Bytes(std::string(a.ptr<char>(), size)));
  }
  if (tag == Tag::kText) {
    const uint64_t size = in->Read<uint64_t>("size");
    if (size > kMostText || KeepsArrays()) in->Fail("a text that is too long");
    std::vector<ObjectRef> held;
    std::vector<ObjectRef>* outer = staged_;
    staged_ = &held;
    KeepStaged(handle);
    staged_ = outer;
    std::string text;
    const Any args[] = {Any(int64_t{0}), Any(static_cast<int64_t>(size))};
    Call(Op::kRead, handle, &args[0].raw(), 2, {nullptr, nullptr, &text, static_cast<size_t>(size)});
    if (kind == Kind::kStr) return Any(String(text));
    return Any(Bytes(std::move(text)));
  }
  switch (kind) {
    case Kind::kFunction:
      return Any(MakeRemoteFunction(shared_from_this(), handle, in->Read<uint8_t>("flags") & kWritesArguments));
    case Kind::kModule:
      return Any(MakeModule<RemoteModule>(shared_from_this(), handle));
    case Kind::kArray: {
      const TensorHead head = ReadTensorHead(in);
      const int32_t type = in->Read<int32_t>("device"), id = in->Read<int32_t>("device");
      return Any(ImportArray(handle, head, {static_cast<DLDeviceType>(type), id}));
    }
    case Kind::kObject: {
      auto object = make_object<RemoteObject>();
      object->endpoint = shared_from_this();
      object->handle = handle;
      return Any(ObjectRef(object));
    }
    default:
      in->Fail("an object of a kind that does not exist");
  }
}

// ---- Errors.

namespace {

constexpr std::string_view kRemotePrefix = "rpc.RemoteError/";
// Errors that Python has a class for, as the remote's (python/baton/rpc/errors.py).
constexpr std::string_view kKinds[] = {
    "CompileError",      "TypeInferenceError", "ShapeError",       "CodegenError",        "RuntimeError",
    "DeviceError",       "InternalError",      "UnsupportedError", "TypeError",           "ValueError",
    "KeyError",          "IndexError",         "OSError",          "FileNotFoundError",   "OverflowError",
    "ZeroDivisionError", "AssertionError",     "ArithmeticError",  "NotImplementedError", "LookupError",
    "PermissionError",   "AttributeError"};
constexpr std::string_view kOwnKinds[] = {kTimeout,      kSessionLost, kDenied,  kProtocolError,
                                          kVersionError, kOutOfMemory, kRpcError};

void WritePart(std::string_view text, ByteWriter* out) {
  const size_t size = text.size() < kInlineBytes ? text.size() : kInlineBytes;
  out->Write(static_cast<uint32_t>(size));
  out->WriteBytes(text.data(), size);
}
std::string ReadPart(ByteReader* in) {
  const uint32_t size = in->Read<uint32_t>("text");
  return std::string(reinterpret_cast<const char*>(in->ReadBytes(size, "text")), size);
}

}  // namespace

namespace {

/// `text` without the name of a folder, wherever it precedes that of a file in it.
std::string Without(const std::string& folder, std::string text) {
  if (folder.empty()) return text;
  for (size_t at; (at = text.find(folder)) != std::string::npos;) {
    const size_t end = at + folder.size();
    text.erase(at, folder.size() + (end < text.size() && text[end] == '/'));
  }
  return text;
}

}  // namespace

std::string WriteError(const std::string& hidden_folder) {
  CatchToSlot();
  BatonObject* raw = nullptr;
  BatonErrorTake(&raw);
  const ObjectRef held = ObjectAccess::Adopt<ObjectRef>(reinterpret_cast<Object*>(raw));
  const auto* e = held.as<ErrorObj>();
  ByteWriter out;
  std::string_view kind = e->kind;
  if (kind.substr(0, kRemotePrefix.size()) == kRemotePrefix) kind.remove_prefix(kRemotePrefix.size());
  WritePart(kind, &out);
  WritePart(Without(hidden_folder, e->message), &out);
  WritePart(Without(hidden_folder, e->trace), &out);
  return out.Take();
}

void ThrowRemoteError(const std::string& payload) {
  std::string kind, message, trace;
  try {
    ByteReader in(payload.data(), payload.size(), "error");
    kind = ReadPart(&in);
    message = ReadPart(&in);
    trace = ReadPart(&in);
  } catch (const std::exception& e) {
    Throw(kProtocolError, Cat("an error that cannot be read: ", e.what()));
  }
  bool own = false, known = false;
  for (const std::string_view one : kOwnKinds) own = own || one == kind;
  for (const std::string_view one : kKinds) known = known || one == kind;
  if (kind == "MemoryError") {
    kind = kOutOfMemory;
  } else if (known) {
    kind = Cat(kRemotePrefix, kind);
  } else if (!own) {
    message = kind == kRemoteError || kind.empty() ? message : Cat(kind, ": ", message);
    kind = kRemoteError;
  }
  const Error error(kind, message);
  size_t begin = 0;
  while (begin < trace.size()) {
    size_t end = trace.find('\n', begin);
    if (end == std::string::npos) end = trace.size();
    error.get()->trace += Cat("remote: ", trace.substr(begin, end - begin), "\n");
    begin = end + 1;
  }
  throw error;
}

// ---- HELLO.

namespace {

constexpr std::string_view kMagic = "BATONRPC";

struct PlainOnly final : ValueMapper {
  void WriteObject(const BatonValue& v, ByteWriter*) final {
    throw TypeError(Cat("a ", ValueKindName(v), " as an option"));
  }
  Any ReadObject(Tag, ByteReader* in) final { in->Fail("an option that is no plain value"); }
};

}  // namespace

std::string WriteHello(const Any& options) {
  ByteWriter out;
  out.WriteBytes(kMagic.data(), kMagic.size());
  out.Write(kMajor);
  out.Write(kMinor);
  PlainOnly plain;
  WriteValue(options.raw(), &out, &plain);
  return out.Take();
}

Any ReadHello(const std::string& payload) {
  try {
    ByteReader in(payload.data(), payload.size(), "hello");
    if (std::memcmp(in.ReadBytes(kMagic.size(), "magic"), kMagic.data(), kMagic.size()) != 0) {
      Throw(kProtocolError, "the other end speaks another protocol");
    }
    const uint16_t major = in.Read<uint16_t>("version"), minor = in.Read<uint16_t>("version");
    if (major != kMajor) {
      Throw(kVersionError, Cat("the other end speaks version ", major, ".", minor, " of the protocol, this one ",
                               kMajor, ".", kMinor, "; install releases of the same time"));
    }
    PlainOnly plain;
    const Any options = ReadValue(&in, &plain);
    if (!options.Is<Map<Any, Any>>() || options.is_null()) in.Fail("options are a map");
    return options;
  } catch (const Error&) {
    throw;
  } catch (const std::exception& e) {
    Throw(kProtocolError, e.what());
  }
}

namespace {
const Any* OptionOf(const Any& options, std::string_view name) {
  if (options.is_null() || !options.Is<Map<Any, Any>>()) return nullptr;
  for (const auto& e : static_cast<const MapObj*>(options.object())->entries) {
    if (e.key.Is<std::string>() && e.key.As<std::string>() == name) return &e.value;
  }
  return nullptr;
}
}  // namespace

std::string TextOption(const Any& options, std::string_view name) {
  const Any* found = OptionOf(options, name);
  return found && !found->is_null() && found->Is<std::string>() ? found->As<std::string>() : std::string();
}

int64_t NumberOption(const Any& options, std::string_view name) {
  const Any* found = OptionOf(options, name);
  return found && !found->is_null() && found->Is<int64_t>() ? found->As<int64_t>() : -1;
}

bool HasFeature(const Any& options, std::string_view word) {
  const std::string all = Cat(" ", TextOption(options, "features"), " ");
  return all.find(Cat(" ", word, " ")) != std::string::npos;
}

void WriteGreeting(Channel* channel, const Any& options, Deadline deadline) {
  const std::string hello = WriteHello(options);
  unsigned char head[kHeaderBytes];
  EncodeHeader({static_cast<uint32_t>(hello.size()), FrameType::kHello, 0, 0, 0, 0}, head);
  iovec parts[2] = {{head, kHeaderBytes}, {const_cast<char*>(hello.data()), hello.size()}};
  channel->Write(parts, 2, deadline);
}

Any ReadGreeting(Channel* channel, Deadline deadline) {
  unsigned char head[kHeaderBytes];
  if (!channel->ReadAll(head, sizeof head, deadline)) Throw(kSessionLost, "the peer closed the connection");
  const FrameHeader h = DecodeHeader(head);
  std::string payload(h.length, '\0');
  if (h.length && !channel->ReadAll(payload.data(), payload.size(), deadline)) Throw(kSessionLost, "a greeting is cut");
  if (h.type == FrameType::kError) ThrowRemoteError(payload);
  if (h.type != FrameType::kHello) Throw(kProtocolError, "the peer did not greet");
  return ReadHello(payload);
}

}  // namespace baton::rpc
