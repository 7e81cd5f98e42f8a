// SPDX-License-Identifier: Apache-2.0
// Functions: packing, conversion, signatures, errors, and what a call allocates.
#include <baton/runtime/array.h>
#include <baton/runtime/map.h>
#include <baton/runtime/ndarray.h>
#include <baton/runtime/registry.h>
#include <doctest/doctest.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <string>
#include <thread>

using namespace baton::runtime;

namespace {

thread_local bool counting = false;
std::atomic<int> allocations{0};

}  // namespace

// Counts what the calls under test allocate; all else in the binary passes through.
void* operator new(size_t n) {
  if (counting) ++allocations;
  if (void* p = std::malloc(n ? n : 1)) return p;
  throw std::bad_alloc();
}
void* operator new(size_t n, const std::nothrow_t&) noexcept { return std::malloc(n ? n : 1); }
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, size_t) noexcept { std::free(p); }

namespace {

void MyAdd(Args args, RetValue* rv) {
  int a = args[0];
  int b = args[1];
  *rv = a + b;
}

template <class F>
std::string ErrorOf(F f) {
  try {
    f();
  } catch (const Error& e) {
    return e.kind() + ": " + e.message();
  }
  return "no error";
}

}  // namespace

TEST_CASE("PF-001 PF-002 PF-003 PF-004 a packed function is called as a C++ function") {
  PackedFunc myadd(MyAdd);
  int c = myadd(1, 2);
  CHECK(c == 3);
  // Erased: neither arguments nor the result are restricted.
  PackedFunc count([](Args args, RetValue* rv) { *rv = args.size(); });
  CHECK(count().As<int>() == 0);
  CHECK(count(1, "two", 3.0, nullptr, c != 3, Array<int>{1}).As<int>() == 6);
}

TEST_CASE("PF-005 numbers and handles are packed on the stack") {
  PackedFunc myadd(MyAdd);
  PackedFunc typed = MakeTyped([](int64_t a, double b, void* p, bool c) { return a + b + (p ? 1 : 0) + c; });
  DLDevice cpu{kDLCPU, 0};
  PackedFunc any([](Args, RetValue*) {});
  int64_t sum = 0;
  double dsum = 0;
  allocations = 0;
  counting = true;
  for (int i = 0; i < 100; ++i) {
    sum += myadd(i, 1).As<int64_t>();
    dsum += typed(i, 0.5, static_cast<void*>(&sum), true).As<double>();
    any(cpu, nullptr, "text", DataType::Float(32), myadd);
  }
  counting = false;
  CHECK(allocations == 0);
  CHECK(sum == 5050);
  CHECK(dsum == 5200);
}

TEST_CASE("PF-009 PF-011 every kind of value passes") {
  PackedFunc echo([](Args args, RetValue* rv) { *rv = args[0]; });
  CHECK(echo(7).As<int>() == 7);
  CHECK(echo(2.5).As<double>() == 2.5);
  CHECK(echo("text").As<std::string>() == "text");
  CHECK(echo(std::string("text")).As<String>() == "text");
  CHECK(echo(nullptr).is_null());
  CHECK(echo(true).type_code() == kBatonBool);
  CHECK(echo(static_cast<void*>(&echo)).As<void*>() == &echo);
  CHECK(echo(DataType::Int(8, 4)).As<DataType>() == DataType::Int(8, 4));
  CHECK(echo(DLDevice{kDLCUDA, 3}).As<DLDevice>().device_id == 3);
  NDArray a = NDArray::Zeros({2}, DataType::Float(32));
  CHECK(echo(a).As<NDArray>().same_as(a));
  CHECK(echo(a).As<DLTensor*>() == a.tensor());
  PackedFunc apply([](Args args, RetValue* rv) { *rv = args[0].As<PackedFunc>()(args[1]); });
  CHECK(apply(echo, 5).As<int>() == 5);
  PackedFunc shape([](Args args, RetValue* rv) { *rv = args[0].As<DLTensor*>()->shape[0]; });
  CHECK(shape(a.tensor()).As<int>() == 2);
}

TEST_CASE("PF-023 a mismatch says which argument of which function, what was wanted and what came") {
  PackedFunc f = MakeTyped([](int64_t, Array<String>) { return 1; }, "test.f");
  CHECK(ErrorOf([&] { f("one", Array<String>{}); }) ==
        "TypeError: argument 0 of `test.f`: expected int, got str \"one\"");
  CHECK(ErrorOf([&] { f(1, 2); }).find("argument 1 of `test.f`: expected") != std::string::npos);
  CHECK(ErrorOf([&] { f(1); }) ==
        "TypeError: `test.f` takes 2 arguments, got 1: its signature is (int, Array<str>) -> int");
  PackedFunc small = MakeTyped([](int8_t x) { return x; }, "test.small");
  CHECK(ErrorOf([&] {
          small(1000);
        }).find("argument 0 of `test.small`: expected int that fits 16 bits, got int 1000") != std::string::npos);
  PackedFunc myadd(MyAdd);
  CHECK(ErrorOf([&] { myadd(1); }) == "TypeError: argument 1 is missing: the call has 1");
  CHECK(ErrorOf([&] { myadd(1, "x"); }) == "TypeError: expected int, got str \"x\"");
  CHECK(ErrorOf([] { PackedFunc()(1); }) == "ValueError: call of a null PackedFunc");
}

TEST_CASE("PF-024 typed functions describe their signature, made when compiled") {
  CHECK(std::string(SignatureText<void>()) == "() -> None");
  CHECK(std::string(SignatureText<int, bool, double, std::string, void*>()) == "(bool, float, str, handle) -> int");
  CHECK(std::string(SignatureText<Array<Map<String, NDArray>>, DLTensor*, DLDevice, DataType, Any, ObjectRef>()) ==
        "(DLTensor, Device, dtype, any, Object) -> Array<Map<str, runtime.NDArray>>");
  TypedPackedFunc<int(int, std::string)> typed = [](int a, const std::string& s) {
    return a + static_cast<int>(s.size());
  };
  CHECK(typed(1, "ab") == 3);
  PackedFunc packed = typed;
  CHECK(std::string(packed.get()->signature) == "(int, str) -> int");
  TypedPackedFunc<int(int, std::string)> again = packed;
  CHECK(again(2, "abc") == 5);
  int k = 5;
  PackedFunc closes = MakeTyped([k](int a) { return a * k; }, "test.closes");
  CHECK(std::string(closes.get()->signature) == "(int) -> int");
  CHECK(std::string(closes.get()->name) == "test.closes");
  CHECK(closes(3).As<int>() == 15);
  CHECK(PackedFunc(MyAdd).get()->signature == nullptr);
}

TEST_CASE("PF-025 PF-026 the registry: null for the unknown, guarded against overriding, listed") {
  CHECK(Registry::Get("test.registry.f") == nullptr);
  Registry::Register("test.registry.f").set_body_typed([] { return 1; });
  CHECK((*Registry::Get("test.registry.f"))().As<int>() == 1);
  CHECK(ErrorOf([] { Registry::Register("test.registry.f"); }) ==
        "ValueError: global function `test.registry.f` is registered already; ask for overriding to replace it");
  // A function that replaces and removes itself while it runs.
  Registry::Register("test.registry.f", true).set_body_typed([] {
    Registry::Register("test.registry.f", true).set_body_typed([] { return 3; });
    Registry::Remove("test.registry.f");
    return 2;
  });
  CHECK((*Registry::Get("test.registry.f"))().As<int>() == 2);
  CHECK(Registry::Get("test.registry.f") == nullptr);
  CHECK_FALSE(Registry::Remove("test.registry.f"));
  // Any text is a name.
  for (const char* odd : {"", " ", "a b", "\xc3\xa4\n\x01", "x.y..z", "%s%n"}) {
    Registry::Register(odd, true).set_body_typed([] { return 4; });
    CHECK((*Registry::Get(odd))().As<int>() == 4);
    CHECK(Registry::Remove(odd));
  }
}

TEST_CASE("PF-014 an error's trace names the functions that it passed, innermost first") {
  PackedFunc inner = MakeTyped([](int x) { return x; }, "test.inner");
  PackedFunc outer = MakeTyped([inner](Any x) { return inner(x); }, "test.outer");
  Registry::Register("test.trace.inner", true).set_body_typed([](int x) { return x; });
  Registry::Register("test.trace.outer", true).set_body_typed([](Any x) {
    return (*Registry::Get("test.trace.inner"))(x);
  });
  try {
    (*Registry::Get("test.trace.outer"))("no int");
    CHECK(false);
  } catch (const Error& e) {
    CHECK(e.get()->trace == "C++ test.trace.inner\nC++ test.trace.outer\n");
  }
  Registry::Remove("test.trace.inner");
  Registry::Remove("test.trace.outer");
}

TEST_CASE("PF-026 the registry is read while it is written") {
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (int i = 0; i < 300; ++i) {
      Registry::Register("test.registry.busy", true).set_body_typed([] { return 1; });
      if (i % 3 == 0) Registry::Remove("test.registry.busy");
    }
    stop = true;
  });
  int seen = 0;
  do {
    if (const PackedFunc* f = Registry::Get("test.registry.busy")) {
      PackedFunc keep = *f;
      seen += keep().As<int>();
    }
  } while (!stop);
  writer.join();
  CHECK(seen >= 0);
  Registry::Remove("test.registry.busy");
}
