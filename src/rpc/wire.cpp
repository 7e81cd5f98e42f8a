// SPDX-License-Identifier: Apache-2.0
// Authenticated connections that carry messages, for programs in Python (tracker, proxy): modules whose functions they
// call. A message is its length in 32 bits, little endian, and its bytes.
#include <baton/runtime/array.h>
#include <baton/runtime/bytes.h>
#include <baton/runtime/interrupt.h>
#include <baton/runtime/module.h>
#include <baton/runtime/registry.h>
#include <baton/support/text.h>

#include <atomic>
#include <mutex>

#include "rpc/channel.h"
#include "rpc/errors.h"

namespace baton::rpc {
using namespace runtime;  // NOLINT
using support::Cat;
namespace {

constexpr size_t kMessageLimit = size_t(1) << 20;
constexpr double kHandshakeSeconds = 2;

class ConnectionModule final : public ModuleNode {
 public:
  explicit ConnectionModule(std::unique_ptr<Channel> channel) : channel_(std::move(channel)) {}
  const char* type_key() const override { return "rpc.connection"; }
  PackedFunc GetFunction(std::string_view name, const ObjectPtr<Object>& self) override {
    if (name == "send") return PackedFunc([this, self](Args args, RetValue*) { Send(args); });
    if (name == "recv")
      return PackedFunc([this, self](Args args, RetValue* rv) { *rv = Receive(args[0].As<double>()); });
    if (name == "close") return PackedFunc([this, self](Args, RetValue*) { channel_->Shutdown(); });
    if (name == "peer") return PackedFunc([this, self](Args, RetValue* rv) { *rv = channel_->peer; });
    if (name == "key_id") return PackedFunc([this, self](Args, RetValue* rv) { *rv = channel_->key_id; });
    if (name == "fileno") return PackedFunc([this, self](Args, RetValue* rv) { *rv = channel_->fd(); });
    if (name == "readable") return PackedFunc([this, self](Args, RetValue* rv) { *rv = channel_->Readable(); });
    return PackedFunc();
  }

 private:
  void Send(Args args) {
    const Bytes held = args[0].As<Bytes>();
    const std::string_view text = held.view();
    if (text.size() > kMessageLimit) {
      Throw("ValueError", Cat("a message of ", text.size(), " bytes: the limit is ", kMessageLimit));
    }
    std::lock_guard lock(send_);
    if (broken_) Throw(kSessionLost, "the connection was given up after a message that was not sent whole");
    const uint32_t size = static_cast<uint32_t>(text.size());
    unsigned char head[4] = {static_cast<unsigned char>(size), static_cast<unsigned char>(size >> 8),
                             static_cast<unsigned char>(size >> 16), static_cast<unsigned char>(size >> 24)};
    iovec parts[2] = {{head, 4}, {const_cast<char*>(text.data()), text.size()}};
    broken_ = true;  // until it is known to be whole
    channel_->Write(parts, 2, Deadline::In(args[1].As<double>()));
    broken_ = false;
  }
  /// The next message; null at the end of the connection. A Timeout between messages loses nothing, and one within a
  /// message goes on with it when called again.
  Any Receive(double seconds) {
    std::lock_guard lock(receive_);
    const Deadline deadline = Deadline::In(seconds);
    while (have_ < 4) {
      const size_t n = channel_->Read(head_ + have_, 4 - have_, deadline);
      if (n == 0 && have_ == 0) return Any();
      if (n == 0) Throw(kSessionLost, "the connection ended within a message");
      have_ += n;
      if (have_ < 4) continue;
      const size_t size = head_[0] | head_[1] << 8 | head_[2] << 16 | static_cast<size_t>(head_[3]) << 24;
      if (size > kMessageLimit) {
        channel_->Shutdown();
        Throw(kProtocolError, Cat("a message of ", size, " bytes: the limit is ", kMessageLimit));
      }
      body_.assign(size, '\0');
    }
    while (have_ < 4 + body_.size()) {
      const size_t n = channel_->Read(body_.data() + have_ - 4, 4 + body_.size() - have_, deadline);
      if (n == 0) Throw(kSessionLost, "the connection ended within a message");
      have_ += n;
    }
    have_ = 0;
    return Bytes(std::move(body_));
  }

  std::unique_ptr<Channel> channel_;
  std::mutex send_, receive_;
  bool broken_ = false;
  unsigned char head_[4];
  size_t have_ = 0;  // bytes of the message that is on its way, its length among them
  std::string body_;
};

class ListenerModule final : public ModuleNode {
 public:
  explicit ListenerModule(const Address& address) : listener_(address) {}
  const char* type_key() const override { return "rpc.listener"; }
  PackedFunc GetFunction(std::string_view name, const ObjectPtr<Object>& self) override {
    if (name == "accept")
      return PackedFunc([this, self](Args args, RetValue* rv) { *rv = Accept(args[0].As<double>()); });
    if (name == "close") return PackedFunc([this, self](Args, RetValue*) { closed_ = true; });
    if (name == "url") return PackedFunc([this, self](Args, RetValue* rv) { *rv = listener_.address().Text(); });
    if (name == "port") return PackedFunc([this, self](Args, RetValue* rv) { *rv = listener_.address().port; });
    if (name == "fileno") return PackedFunc([this, self](Args, RetValue* rv) { *rv = listener_.fd(); });
    return PackedFunc();
  }

 private:
  /// The descriptor of a connection whose peer is not known yet, for `rpc.WireAuthenticate`; -1 when none came.
  int64_t Accept(double seconds) {
    const Deadline deadline = Deadline::In(seconds);
    while (!closed_) {
      const int fd = listener_.AcceptFd(deadline.Left(50));
      if (fd >= 0) return fd;
      runtime::CheckInterrupt();
      if (deadline.Passed()) return -1;
    }
    listener_.Close();
    Throw(kSessionLost, "the listener is closed");
  }

 public:
  Listener listener_;
  std::atomic<bool> closed_{false};
};

BATON_REGISTER_GLOBAL("rpc.WireConnect").set_body(PackedFunc([](Args args, RetValue* rv) {
  const Deadline deadline = Deadline::In(args[1].As<double>());
  *rv = MakeModule<ConnectionModule>(Connect(Address::Parse(args[0].As<std::string>()), deadline));
}));
BATON_REGISTER_GLOBAL("rpc.WireListen").set_body(PackedFunc([](Args args, RetValue* rv) {
  *rv = MakeModule<ListenerModule>(Address::Parse(args[0].As<std::string>()));
}));
/// (listener, descriptor): the connection, when its peer has proved itself. Takes 2 s at most; owns the descriptor.
BATON_REGISTER_GLOBAL("rpc.WireAuthenticate").set_body(PackedFunc([](Args args, RetValue* rv) {
  const Module m = args[0].As<Module>();
  if (!m.defined() || std::string_view(m->type_key()) != "rpc.listener") throw TypeError("expected a listener");
  auto* listener = static_cast<ListenerModule*>(m.get());
  *rv = MakeModule<ConnectionModule>(
      listener->listener_.Authenticate(args[1].As<int>(), Deadline::In(kHandshakeSeconds)));
}));
/// (name, path, policy, allowed functions, limits as of a token): writes a new key; gives its id.
BATON_REGISTER_GLOBAL("rpc.KeyNew").set_body(PackedFunc([](Args args, RetValue* rv) {
  Key key = Key::New(args[0].As<std::string>());
  key.policy = args[2].As<std::string>();
  const Array<String> allow = args[3].As<Array<String>>();
  for (const String& one : allow) key.allow.push_back(one);
  if (args.size() > 4) {
    const Array<String> limits = args[4].As<Array<String>>();
    for (const String& one : limits) key.Narrow(one);
  }
  key.Save(args[1].As<std::string>());
  *rv = key.id;
}));
/// (file of a key or token, path, caveats): writes a token that may do less; gives its id.
BATON_REGISTER_GLOBAL("rpc.KeyNarrow").set_body(PackedFunc([](Args args, RetValue* rv) {
  Key key = Key::Read(args[0].As<std::string>());
  const Array<String> caveats = args[2].As<Array<String>>();
  // The server knows the rights of the key: here the caveats are only held against their form.
  if (!key.token) key.policy = "trusted";
  for (const String& one : caveats) key = key.Narrowed(one);
  key.Save(args[1].As<std::string>());
  *rv = key.id;
}));
/// (path): [id, name, policy, allowed functions...] of a key file.
BATON_REGISTER_GLOBAL("rpc.KeyShow").set_body(PackedFunc([](Args args, RetValue* rv) {
  const Key key = Key::Read(args[0].As<std::string>());
  Array<String> out{key.id, key.name, key.policy};
  for (const std::string& one : key.allow) out.push_back(one);
  *rv = out;
}));
BATON_REGISTER_GLOBAL("rpc.RuntimeDir").set_body(PackedFunc([](Args, RetValue* rv) { *rv = RuntimeDir(); }));

}  // namespace
}  // namespace baton::rpc
