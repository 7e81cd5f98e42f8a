// SPDX-License-Identifier: Apache-2.0
// Servers as functions of the registry: their options, and the socket that another process serves on.
#include <baton/runtime/array.h>
#include <baton/runtime/map.h>
#include <baton/runtime/module.h>
#include <baton/runtime/registry.h>
#include <baton/support/machine.h>
#include <baton/support/text.h>
#include <sys/mman.h>

#include <algorithm>

#include "rpc/confine/confine.h"
#include "rpc/confine/usage.h"
#include "rpc/errors.h"
#include "rpc/places.h"
#include "rpc/worker.h"

namespace baton::rpc {
using namespace runtime;  // NOLINT
using support::Cat;
namespace {

ServerOptions ReadOptions(const Map<Any, Any>& given) {
  ServerOptions o;
  for (const auto& [key, value] : given) {
    const std::string name = key.As<std::string>();
    if (name == "policy") {
      o.policy = value.As<std::string>();
    } else if (name == "allow") {
      const Array<String> allow = value.As<Array<String>>();
      for (const String& one : allow) o.allow.push_back(one);
    } else if (name == "load") {
      const bool word = value.Is<std::string>();
      Key rule;
      rule.Narrow(Cat("load=", word ? value.As<std::string>() : value.As<bool>() ? "any" : "none"));
      o.load = rule.load;
    } else if (name == "signers") {
      o.signers = ReadSigners(value.As<std::string>());
    } else if (name == "max_sessions") {
      o.max_sessions = value.As<int>();
    } else if (name == "warm") {
      o.warm = value.As<int>();
    } else if (name == "idle_seconds") {
      o.idle_seconds = value.As<double>();
    } else if (name == "disk_bytes") {
      o.disk_bytes = static_cast<uint64_t>(value.As<int64_t>());
    } else if (name == "memory_bytes") {
      o.memory_bytes = static_cast<uint64_t>(value.As<int64_t>());
    } else if (name == "files") {
      o.files = static_cast<uint64_t>(value.As<int64_t>());
    } else if (name == "threads") {
      o.threads = static_cast<uint64_t>(value.As<int64_t>());
    } else if (name == "key_sessions") {
      o.key_sessions = value.As<int>();
    } else if (name == "module") {
      o.module_path = value.As<std::string>();
    } else if (name == "quiet") {
      o.quiet = value.As<bool>();
    } else if (name == "sandbox") {
      o.sandbox = value.As<bool>();
    } else if (name == "cpu_seconds") {
      o.cpu_seconds = static_cast<uint64_t>(value.As<int64_t>());
    } else if (name == "lifeline") {
      o.lifeline = value.As<int>();
    } else if (name == "door") {
      o.door = value.As<int>();
    } else if (name == "fork") {
      o.fork = value.As<PackedFunc>();
    } else {
      throw ValueError(Cat("a server has no option `", name, "`"));
    }
  }
  if (o.load == Load::kSigned && o.signers.empty()) {
    throw ValueError("modules are to be signed, but by which keys? --signers FILE names the public keys");
  }
  if (!o.policy.empty() && o.policy != "trusted" && o.policy != "session") {
    throw ValueError(Cat("policy `", o.policy, "` is unknown; there are session and trusted"));
  }
  if (o.sandbox && o.memory_bytes == 0) o.memory_bytes = support::Machine().memory / 2;
  if (o.key_sessions <= 0) o.key_sessions = std::max(1, o.max_sessions - std::max(1, o.max_sessions / 4));
  return o;
}

/// A listening socket for another process of this program, which serves on it.
class ServerModule final : public ModuleNode {
 public:
  explicit ServerModule(const Address& address) : listener_(address) {
    census_ = static_cast<Census*>(SharedMemory(sizeof(Census)));
  }
  ~ServerModule() override { munmap(census_, sizeof(Census)); }
  const char* type_key() const override { return "rpc.server"; }
  PackedFunc GetFunction(std::string_view name, const ObjectPtr<Object>& self) override {
    if (name == "url") return PackedFunc([this, self](Args, RetValue* rv) { *rv = listener_.address().Text(); });
    if (name == "port") return PackedFunc([this, self](Args, RetValue* rv) { *rv = listener_.address().port; });
    if (name == "close") return PackedFunc([this, self](Args, RetValue*) { listener_.Close(); });
    if (name == "abandon") return PackedFunc([this, self](Args, RetValue*) { listener_.Abandon(); });
    if (name == "begun") return PackedFunc([this, self](Args, RetValue* rv) { *rv = census_->begun.load(); });
    if (name == "active") return PackedFunc([this, self](Args, RetValue* rv) { *rv = census_->active.load(); });
    if (name == "evict") return PackedFunc([this, self](Args, RetValue*) { census_->evict.fetch_add(1); });
    if (name == "serve") {
      return PackedFunc([this, self](Args args, RetValue*) {
        ServerOptions options = ReadOptions(args[0].As<Map<Any, Any>>());
        options.census = census_;
        ServeForever(&listener_, options);
      });
    }
    return PackedFunc();
  }

 private:
  Listener listener_;
  Census* census_;
};

BATON_REGISTER_GLOBAL("rpc.ServerListen").set_body(PackedFunc([](Args args, RetValue* rv) {
  *rv = MakeModule<ServerModule>(Address::Parse(args[0].As<std::string>()));
}));
/// (in, out, options): serves the session at the other end of two descriptors, in this process.
BATON_REGISTER_GLOBAL("rpc.ServePipes").set_body(PackedFunc([](Args args, RetValue*) {
  const ServerOptions options = ReadOptions(args[2].As<Map<Any, Any>>());
  if (options.sandbox && options.policy == "session") return ServeOne(args[0].As<int>(), args[1].As<int>(), options);
  auto channel = ChannelOfPipes(args[0].As<int>(), args[1].As<int>());
  channel->own_user = true;
  channel->peer = "standard input";
  const std::string folder = MakeServerFolder();
  if (options.load == Load::kSigned) LoadVerifier();
  ServeSession(std::move(channel), options, folder);
  RemoveFolder(folder);
}));

}  // namespace
}  // namespace baton::rpc
