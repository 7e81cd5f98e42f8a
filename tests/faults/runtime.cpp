// SPDX-License-Identifier: Apache-2.0
// Memory runs out in objects, containers, calls, errors, tensors, parameters and pool threads.
#include <baton/runtime/array.h>
#include <baton/runtime/map.h>
#include <baton/runtime/ndarray.h>
#include <baton/runtime/params.h>
#include <baton/runtime/registry.h>
#include <baton/runtime/threading.h>
#include <doctest/doctest.h>

#include <cstring>
#include <stdexcept>
#include <string>

#include "allocation.h"

using namespace baton::runtime;

namespace {

void Need(bool ok, const char* what) {
  if (!ok) throw std::logic_error(what);
}
/// What a C program would do: the error's kind decides.
void NeedCode(int code) {
  if (code == 0) return;
  Need(*BatonErrorKind() != '\0', "a failed call left no error");
  ThrowFromSlot();
}
struct Handle {
  BatonObject* p = nullptr;
  ~Handle() { BatonObjectRelease(p); }
};
BatonValue ObjectValue(BatonObject* o) { return BatonValue{kBatonObject, 0, {.v_obj = o}}; }

int Join(void*, const BatonValue* args, int n, BatonValue* ret) {
  std::string all;
  for (int i = 0; i < n; ++i) all += args[i].type_code == kBatonStr ? args[i].v_str : "?";
  BatonObject* made = nullptr;
  if (int code = BatonStringCreate(all.data(), all.size(), &made)) return code;
  *ret = ObjectValue(made);
  return 0;
}

}  // namespace

TEST_CASE("reliability 13: objects and containers without memory") {
  faults::EachAllocation("containers", [] {
    Array<Any> a;
    for (int i = 0; i < 40; ++i) a.push_back(Any("text number " + std::to_string(i)));
    Array<Any> b = a;
    b.Set(3, Any(3.5));
    Map<String, Any> m;
    for (int i = 0; i < 20; ++i) m.Set("key " + std::to_string(i), Any(Array<int64_t>{i, i + 1}));
    Map<String, Any> n = m;
    n.Set("one more", Any(b));
    Need(a.size() == 40 && m.size() == 20 && n.size() == 21, "sizes");
  });
}

TEST_CASE("reliability 13: a change that fails for want of memory leaves the container as it was") {
  Array<int64_t> a{1, 2, 3};
  Map<String, int64_t> m{{"a", 1}, {"b", 2}};
  const Array<int64_t> held_a = a;
  const Map<String, int64_t> held_m = m;
  for (int k = 0; k < 6; ++k) {
    faults::Failing fail(k, true);
    try {
      a.push_back(4);
    } catch (const std::bad_alloc&) {
    }
    try {
      m.Set("c", 3);
    } catch (const std::bad_alloc&) {
    }
    fail.End();
    CHECK((a.size() == 3 || (a.size() == 4 && a[3] == 4)));
    CHECK((m.size() == 2 || (m.size() == 3 && m.at("c") == 3)));
    CHECK(held_a.size() == 3);
    CHECK(held_m.size() == 2);
    a = held_a, m = held_m;
  }
}

TEST_CASE("reliability 13: functions over the C interface without memory") {
  Handle join;
  REQUIRE(BatonFuncCreate(Join, nullptr, nullptr, &join.p) == 0);
  REQUIRE(BatonFuncRegisterGlobal("test.faults.join", join.p, 1) == 0);
  faults::EachAllocation("C functions", [] {
    Handle f, s, array, found;
    BatonValue names{}, ret{};
    NeedCode(BatonFuncCreate(Join, nullptr, nullptr, &f.p));
    NeedCode(BatonFuncGetGlobal("test.faults.join", &found.p));
    const BatonValue args[] = {BatonValue{kBatonStr, 0, {.v_str = "a text that is too long for a small string"}},
                               BatonValue{kBatonStr, 0, {.v_str = ", and another one"}}};
    NeedCode(BatonFuncCall(found.p, args, 2, &ret));
    s.p = ret.v_obj;
    NeedCode(BatonArrayCreate(args, 2, &array.p));
    NeedCode(BatonFuncListGlobalNames(&names));
    BatonObjectRelease(names.v_obj);
  });
  Registry::Remove("test.faults.join");
}

TEST_CASE("reliability 13: the registry without memory has the old function or the new one") {
  Handle f, g;
  REQUIRE(BatonFuncCreate(Join, nullptr, nullptr, &f.p) == 0);
  REQUIRE(BatonFuncCreate(Join, nullptr, nullptr, &g.p) == 0);
  for (bool known : {true, false}) {
    int errors = 0;
    for (int k = 0; k < 12; ++k) {
      const std::string name = "test.faults.a name that needs memory " + std::to_string(k);
      if (known) REQUIRE(BatonFuncRegisterGlobal(name.c_str(), f.p, 1) == 0);
      faults::Failing fail(k, true);
      const int code = BatonFuncRegisterGlobal(name.c_str(), g.p, 1);
      fail.End();
      Handle found;
      REQUIRE(BatonFuncGetGlobal(name.c_str(), &found.p) == 0);
      CHECK(found.p == (code == 0 ? g.p : known ? f.p : nullptr));
      errors += code != 0;
      if (code != 0) CHECK(std::string(BatonErrorKind()) == "MemoryError");
      BatonErrorPut(nullptr);
      Registry::ListNames();
      Registry::Remove(name);
    }
    if (faults::SeesMalloc()) CHECK(errors > 2);
  }
}

TEST_CASE("reliability 13: errors without memory are errors of memory") {
  faults::EachAllocation(
      "typed call",
      [] {
        static const PackedFunc f = TypedPackedFunc<std::string(int64_t, Array<Any>)>([](int64_t n, Array<Any> a) {
          return std::string(static_cast<size_t>(n), 'x') + std::to_string(a.size());
        });
        Need(f(int64_t{50}, Array<Any>{Any(1), Any("two"), Any(3.0)}).As<std::string>().size() == 51, "result");
        bool thrown = false;
        try {
          f(int64_t{1}, "no array");
        } catch (const Error& e) {
          if (e.kind() == "MemoryError") throw;
          Need(e.kind() == "TypeError", e.what());
          thrown = true;
        }
        Need(thrown, "a wrong argument was taken");
      },
      true);  // the trace of an error is left out where it finds no room
  // An error that cannot even be made: it still has a kind and a text, and no other error's trace.
  for (int i = 0; i < 3; ++i) {
    faults::Failing fail(0, true);
    BatonErrorSet("ValueError", "a text that is too long for a small string, so that it needs memory");
    const bool kind = !std::strcmp(BatonErrorKind(), faults::SeesMalloc() ? "MemoryError" : BatonErrorKind());
    const bool text = *BatonErrorMessage() != '\0', trace = *BatonErrorTrace() == '\0';
    fail.End();
    CHECK(kind);
    CHECK(text);
    CHECK(trace);
    BatonErrorPut(nullptr);
  }
}

TEST_CASE("reliability 13: tensors and parameters without memory") {
  faults::EachAllocation("tensors", [] {
    NDArray a = NDArray::Zeros({3, 4}, DataType::Float(32));
    NDArray b = a.Contiguous();
    DLManagedTensorVersioned* out = b.ToDLPackVersioned();
    NDArray back;
    try {
      back = NDArray::FromDLPackVersioned(out);
    } catch (...) {
      out->deleter(out);  // a failed import leaves it to the caller
      throw;
    }
    const std::string bytes = SaveParams({{"weight", a}, {"a name that is longer than a small string", back}});
    Need(LoadParams(bytes).size() == 2, "parameters");
    Need(!a.ToString().empty(), "text");
  });
}

TEST_CASE("reliability 13: a million objects are freed without memory") {
  // A chain, and a wide tree whose branches are deeper than releases nest.
  Array<Any> chain;
  for (int i = 0; i < 1000000; ++i) chain = Array<Any>{Any(chain)};
  Array<Any> wide;
  for (int i = 0; i < 2000; ++i) {
    Array<Any> branch;
    for (int d = 0; d < 40; ++d) branch = Array<Any>{Any(branch), Any(Array<Any>{Any("leaf")}), Any(Array<Any>())};
    wide.push_back(Any(branch));
  }
  for (int d = 0; d < 40; ++d) wide = Array<Any>{Any(wide)};
  int64_t live;
  {
    faults::Failing fail(0, true);
    chain = Array<Any>();
    wide = Array<Any>();
    fail.End();
    live = faults::Failing::live();
  }
  CHECK(live <= 0);
}

TEST_CASE("reliability 13: out of memory in threads of the pool reaches the caller, and the pool goes on") {
  threading::SetNumThreads(4);
  struct State {
    std::atomic<int> ran{0};
    int fail_from = 0;
  } state;
  const BatonParallelTask task = [](int i, int, void* p) -> int {
    auto* s = static_cast<State*>(p);
    s->ran++;
    if (i < s->fail_from) return 0;
    // This thread's next allocation fails, whichever thread of the pool it is.
    faults::Failing fail(0, true);
    const std::string text(static_cast<size_t>(100 + i), 'x');
    return text.back() == 'x' ? 0 : 1;
  };
  for (int from : {0, 3, 7}) {
    state.fail_from = from;
    state.ran = 0;
    bool failed = false;
    try {
      failed = threading::Launch(task, &state, 8) != 0;
    } catch (const std::bad_alloc&) {
      failed = true;
    }
    CHECK(failed);
    // Over the C interface it is an error of its kind.
    CHECK(BatonBackendParallelLaunch(task, &state, 8) == -1);
    CHECK(std::string(BatonErrorKind()) == "MemoryError");
    BatonErrorPut(nullptr);
    state.fail_from = 8;
    CHECK(threading::Launch(task, &state, 8) == 0);
  }
  threading::SetNumThreads(0);
}
