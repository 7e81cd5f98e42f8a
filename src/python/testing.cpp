// SPDX-License-Identifier: Apache-2.0
// Functions that tests of the border call: values, callbacks and errors that cross it from this side.
#include <baton/runtime/array.h>
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

}  // namespace
}  // namespace baton::python
