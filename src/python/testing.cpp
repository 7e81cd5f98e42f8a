// SPDX-License-Identifier: Apache-2.0
// Functions that tests of the border call: values, callbacks and errors that cross it from this side.
#include <baton/runtime/array.h>
#include <baton/runtime/device_api.h>
#include <baton/runtime/registry.h>

#include <thread>

namespace baton::python {
namespace {

using namespace runtime;  // NOLINT

PackedFunc kept;

BATON_REGISTER_GLOBAL("testing.nop").set_body([](Args, RetValue*) {});
BATON_REGISTER_GLOBAL("testing.echo").set_body([](Args args, RetValue* rv) {
  if (args.size()) *rv = args[0];
});
BATON_REGISTER_GLOBAL("testing.kind_of").set_body([](Args args, RetValue* rv) { *rv = ValueKindName(args[0].raw()); });
BATON_REGISTER_GLOBAL("testing.add").set_body_typed([](int64_t a, int64_t b) { return a + b; });
BATON_REGISTER_GLOBAL("testing.is_string").set_body_typed([](String s) { return static_cast<int64_t>(s.size()); });
BATON_REGISTER_GLOBAL("testing.object_use_count").set_body_typed([](ObjectRef x) { return x.get()->use_count() - 1; });
/// Calls a function with the other arguments.
BATON_REGISTER_GLOBAL("testing.call").set_body([](Args args, RetValue* rv) {
  *rv = args[0].As<PackedFunc>().CallPacked(args.values + 1, args.size() - 1);
});
BATON_REGISTER_GLOBAL("testing.call_times").set_body_typed([](PackedFunc f, int64_t n) {
  Any last;
  for (int64_t i = 0; i < n; ++i) last = f(i);
  return last;
});
BATON_REGISTER_GLOBAL("testing.catch").set_body_typed([](PackedFunc f) {
  try {
    f();
    return Array<String>{};
  } catch (const Error& e) {
    return Array<String>{e.kind(), e.message()};
  }
});
BATON_REGISTER_GLOBAL("testing.error_trace").set_body([](Args args, RetValue* rv) {
  try {
    args[0].As<PackedFunc>()();
  } catch (const Error& e) {
    *rv = e.get()->trace;
  }
});
/// Catches what the function throws and throws it again.
BATON_REGISTER_GLOBAL("testing.rethrow").set_body_typed([](PackedFunc f) {
  try {
    return f();
  } catch (const Error& e) {
    throw Error(e.object());
  }
});
BATON_REGISTER_GLOBAL("testing.raise").set_body([](Args args, RetValue*) {
  Error e(args[0].As<std::string>(), args[1].As<std::string>());
  if (args.size() > 2) e.get()->payload = args[2].As<ObjectRef>();
  throw e;
});
BATON_REGISTER_GLOBAL("testing.keep").set_body_typed([](PackedFunc f) { kept = f; });
BATON_REGISTER_GLOBAL("testing.kept").set_body_typed([] { return kept; });
/// Calls a function on a new thread and waits; its error is thrown here.
BATON_REGISTER_GLOBAL("testing.call_on_thread").set_body_typed([](PackedFunc f) {
  Any result;
  ObjectPtr<ErrorObj> error;
  std::thread t([&] {
    try {
      result = f();
    } catch (const Error& e) {
      error = e.object();
    }
  });
  t.join();
  if (error) throw Error(error);
  return result;
});
/// Drops the function that is kept on a thread that does not hold Python's lock.
BATON_REGISTER_GLOBAL("testing.drop_on_thread").set_body_typed([] { std::thread([] { kept = PackedFunc(); }).join(); });
/// Keeps a thread of C++ running that calls the function until the process ends.
BATON_REGISTER_GLOBAL("testing.call_for_ever").set_body_typed([](PackedFunc f) {
  std::thread([f] {
    for (;;) {
      try {
        f();
      } catch (const Error&) {
      }
    }
  }).detach();
});
BATON_REGISTER_GLOBAL("testing.fill").set_body_typed([](PackedFunc f, DLTensor* t) { f(t); });

/// A function that calls another.
BATON_REGISTER_GLOBAL("testing.test_wrap_callback").set_body_typed([](PackedFunc f) {
  return PackedFunc([f](Args, RetValue*) { f(); });
});
/// "Kind: what happened" as an error of that kind; without a kind it is an InternalError.
[[noreturn]] void Raise(const std::string& text) {
  const size_t colon = text.find(": ");
  const bool kind = colon != std::string::npos && colon > 0 &&
                    text.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.") == colon;
  throw Error(kind ? text.substr(0, colon) : "InternalError", kind ? text.substr(colon + 2) : text);
}
BATON_REGISTER_GLOBAL("testing.test_raise_error_callback").set_body_typed([](std::string text) {
  return PackedFunc([text](Args, RetValue*) { Raise(text); });
});
BATON_REGISTER_GLOBAL("testing.test_check_eq_callback").set_body_typed([](std::string text) {
  return MakeTyped(
      [text](int64_t x, int64_t y) {
        if (x != y) Raise(text);
      },
      "test_check_eq_callback");
});
BATON_REGISTER_GLOBAL("testing.ErrorTest").set_body_typed([](int64_t x, int64_t y) {
  if (x != y) Raise("ValueError: expected x and y to be equal, got " + std::to_string(x) + " and " + std::to_string(y));
  if (x == 1) Raise("InternalError: x is 1");
});
/// The device, if it is of this type and number.
BATON_REGISTER_GLOBAL("testing.device_test").set_body_typed([](Device d, int64_t type, int64_t id) {
  if (d.device_type != type || d.device_id != id) {
    Raise("ValueError: the device is " + Device2String(d) + ", not number " + std::to_string(id) + " of type " +
          std::to_string(type));
  }
  return d;
});
BATON_REGISTER_GLOBAL("testing.identity_cpp").set_body([](Args args, RetValue* rv) { *rv = args[0]; });

}  // namespace
}  // namespace baton::python
