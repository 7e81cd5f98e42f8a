// SPDX-License-Identifier: Apache-2.0
// The C interface: sizes and offsets that other languages rely on, and calls with what they should not be called with.
#include <baton/runtime/array.h>
#include <baton/runtime/ndarray.h>
#include <baton/runtime/registry.h>
#include <doctest/doctest.h>

#include <cstddef>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

using namespace baton::runtime;

namespace {

// A change here changes the ABI: raise BATON_ABI_VERSION with it.
static_assert(BATON_ABI_VERSION == 1);
static_assert(sizeof(BatonValue) == 16 && alignof(BatonValue) == 8);
static_assert(offsetof(BatonValue, type_code) == 0 && offsetof(BatonValue, zero) == 4);
static_assert(offsetof(BatonValue, v_int64) == 8 && offsetof(BatonValue, v_float64) == 8);
static_assert(offsetof(BatonValue, v_handle) == 8 && offsetof(BatonValue, v_dtype) == 8);
static_assert(offsetof(BatonValue, v_device) == 8 && offsetof(BatonValue, v_str) == 8);
static_assert(offsetof(BatonValue, v_bytes) == 8 && offsetof(BatonValue, v_tensor) == 8);
static_assert(offsetof(BatonValue, v_obj) == 8);
static_assert(sizeof(BatonByteArray) == 16 && offsetof(BatonByteArray, size) == 8);
static_assert(sizeof(DLTensor) == 48 && offsetof(DLTensor, device) == 8 && offsetof(DLTensor, ndim) == 16);
static_assert(offsetof(DLTensor, dtype) == 20 && offsetof(DLTensor, shape) == 24);
static_assert(offsetof(DLTensor, strides) == 32 && offsetof(DLTensor, byte_offset) == 40);
static_assert(sizeof(DLDataType) == 4 && sizeof(DLDevice) == 8);
static_assert(kBatonNull == 0 && kBatonInt == 1 && kBatonBool == 2 && kBatonFloat == 3 && kBatonHandle == 4);
static_assert(kBatonDType == 5 && kBatonDevice == 6 && kBatonStr == 7 && kBatonBytes == 8 && kBatonTensor == 9);
static_assert(kBatonObject == 64);
static_assert(sizeof(Object) == 16);

BatonValue Int(int64_t x) { return BatonValue{kBatonInt, 0, {.v_int64 = x}}; }
BatonValue Obj(BatonObject* o) { return BatonValue{kBatonObject, 0, {.v_obj = o}}; }

std::string Pending() {
  std::string text = std::string(BatonErrorKind()) + ": " + BatonErrorMessage();
  BatonErrorPut(nullptr);
  return text;
}

int Add(void*, const BatonValue* args, int n, BatonValue* ret) {
  if (n != 2) {
    BatonErrorSet("TypeError", "two, please");
    return -1;
  }
  *ret = Int(args[0].v_int64 + args[1].v_int64);
  return 0;
}

}  // namespace

TEST_CASE("PF-022 the ABI carries a version, and objects begin as the header says") {
  CHECK(BatonAbiVersion() == BATON_ABI_VERSION);
  Array<int64_t> a{1};
  const auto* words = reinterpret_cast<const uint32_t*>(a.get());
  CHECK(words[0] == a.type_index());
  CHECK(words[1] == 1);
  BatonObjectRetain(reinterpret_cast<BatonObject*>(ObjectAccess::Get(a)));
  CHECK(words[1] == 2);
  BatonObjectRelease(reinterpret_cast<BatonObject*>(ObjectAccess::Get(a)));
  CHECK(words[1] == 1);
}

TEST_CASE("PF-016 PF-029 functions over the C interface") {
  int freed = 0;
  BatonObject *f = nullptr, *found = nullptr;
  REQUIRE(BatonFuncCreate(Add, &freed, [](void* self) { ++*static_cast<int*>(self); }, &f) == 0);
  REQUIRE(BatonFuncRegisterGlobal("test.c_api.add", f, 0) == 0);
  REQUIRE(BatonFuncGetGlobal("test.c_api.add", &found) == 0);
  BatonValue args[] = {Int(40), Int(2)}, ret;
  REQUIRE(BatonFuncCall(found, args, 2, &ret) == 0);
  CHECK(ret.type_code == kBatonInt);
  CHECK(ret.v_int64 == 42);
  CHECK(BatonFuncCall(found, args, 1, &ret) == -1);
  CHECK(Pending() == "TypeError: two, please");
  CHECK(BatonFuncGetGlobal("test.c_api.none", &found) == 0);
  CHECK(found == nullptr);
  // The registry, `f`, and the first `found` hold it.
  BatonObjectRelease(f);
  BatonObjectRelease(f);
  Registry::Remove("test.c_api.add");
}

TEST_CASE("PF-029 bad handles and names are errors, never crashes") {
  BatonObject* out = nullptr;
  BatonValue ret, arg = Int(1);
  Array<int64_t> array{1, 2};
  auto* not_a_function = reinterpret_cast<BatonObject*>(ObjectAccess::Get(array));
  CHECK(BatonFuncCall(nullptr, nullptr, 0, &ret) == -1);
  CHECK(Pending().find("not a function") != std::string::npos);
  CHECK(BatonFuncCall(not_a_function, nullptr, 0, &ret) == -1);
  CHECK(Pending().find("not a function") != std::string::npos);
  CHECK(BatonFuncGetGlobal(nullptr, &out) == -1);
  CHECK(Pending() == "ValueError: BatonFuncGetGlobal: the name is null");
  CHECK(BatonFuncRegisterGlobal("test.c_api.odd", not_a_function, 0) == -1);
  CHECK(Pending() == "TypeError: BatonFuncRegisterGlobal: `test.c_api.odd` is given a runtime.Array, not a function");
  CHECK(BatonFuncRegisterGlobal("test.c_api.odd", nullptr, 0) == -1);
  CHECK(Pending().find("is given null") != std::string::npos);
  CHECK(Registry::Get("test.c_api.odd") == nullptr);
  CHECK(BatonFuncRegisterGlobal(nullptr, nullptr, 0) == -1);
  Pending();
  CHECK(BatonFuncCreate(nullptr, nullptr, nullptr, &out) == -1);
  CHECK(Pending() == "ValueError: BatonFuncCreate: the callback is null");
  CHECK(BatonArrayCreate(nullptr, 3, &out) == -1);
  Pending();
  const BatonValue* items;
  size_t n;
  CHECK(BatonArrayView(nullptr, &items, &n) == -1);
  CHECK(Pending() == "TypeError: BatonArrayView: not an Array");
  const char* text;
  CHECK(BatonStringView(not_a_function, &text, &n) == -1);
  Pending();
  DLTensor* t;
  CHECK(BatonTensorView(not_a_function, &t) == -1);
  CHECK(BatonTensorView(nullptr, &t) == -1);
  Pending();
  CHECK(BatonModuleLoad(nullptr, &out) == -1);
  CHECK(BatonModuleLoad("/no/such/file", &out) == -1);
  CHECK(Pending().find("/no/such/file") != std::string::npos);
  CHECK(BatonModuleGetFunction(not_a_function, "f", 0, &out) == -1);
  CHECK(Pending() == "TypeError: BatonModuleGetFunction: expected runtime.Module, got runtime.Array");
  CHECK(BatonOpaqueCreate(nullptr, nullptr, nullptr, &out) == -1);
  CHECK(BatonOpaqueCreate("runtime.Array", nullptr, nullptr, &out) == -1);
  CHECK(Pending().find("no extension type") != std::string::npos);
  BatonErrorPut(not_a_function);
  CHECK(Pending() == "TypeError: BatonErrorPut takes an error object");
  BatonObjectRetain(nullptr);
  BatonObjectRelease(nullptr);
  CHECK(BatonTypeIndex2Key(1u << 30) == nullptr);
  // A null object among the arguments, and fewer arguments than are counted.
  PackedFunc echo([](Args args, RetValue* rv) { *rv = args[0]; });
  auto* f = reinterpret_cast<BatonObject*>(ObjectAccess::Get(echo));
  arg = Obj(nullptr);
  CHECK(BatonFuncCall(f, &arg, 1, &ret) == -1);
  CHECK(Pending() == "ValueError: BatonFuncCall: argument 0 is an object handle that is null");
  CHECK(BatonFuncCall(f, nullptr, 1, &ret) == -1);
  CHECK(BatonFuncCall(f, nullptr, -1, &ret) == -1);
  Pending();
}

TEST_CASE("PF-029 the pending error is each thread's own") {
  BatonErrorSet("ValueError", "here");
  std::string other = "?";
  std::thread([&] {
    other = BatonErrorMessage();
    BatonErrorSet("TypeError", "there");
  }).join();
  CHECK(other == "");
  CHECK(Pending() == "ValueError: here");
}

TEST_CASE("PF-030 arrays and strings over the C interface keep zero bytes and order") {
  BatonObject *s = nullptr, *array = nullptr;
  REQUIRE(BatonStringCreate("a\0b", 3, &s) == 0);
  BatonByteArray raw{"x\0y", 3};
  BatonValue in[] = {Obj(s), BatonValue{kBatonBytes, 0, {.v_bytes = &raw}}, Int(-1)};
  REQUIRE(BatonArrayCreate(in, 3, &array) == 0);
  BatonObjectRelease(s);
  const BatonValue* items = nullptr;
  size_t n = 0;
  REQUIRE(BatonArrayView(array, &items, &n) == 0);
  REQUIRE(n == 3);
  const char* text;
  REQUIRE(BatonStringView(items[0].v_obj, &text, &n) == 0);
  CHECK(std::string(text, n) == std::string("a\0b", 3));
  REQUIRE(BatonStringView(items[1].v_obj, &text, &n) == 0);
  CHECK(std::string(text, n) == std::string("x\0y", 3));
  CHECK(items[2].v_int64 == -1);
  BatonObjectRelease(array);
}

TEST_CASE("PF-029 100,000 calls with wrong handles, codes, counts: each is an error or a value, none a crash") {
  uint64_t state = 88172645463325252ull;
  auto random = [&state](uint64_t n) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return state % n;
  };
  Array<int64_t> array{1, 2};
  String text("text");
  std::vector<PackedFunc> functions;
  for (const std::string& name : Registry::ListNames()) {
    // All functions of the runtime that do nothing but look at their arguments.
    for (const char* safe : {"runtime.NDArray", "runtime.ModuleGet", "runtime.Device2String", "runtime.String2Device",
                             "runtime.SaveParams", "runtime.LoadParams", "node.ListTypes"}) {
      if (name.rfind(safe, 0) == 0 && name.find("File") == std::string::npos && name != "runtime.NDArrayEmpty") {
        functions.push_back(*Registry::Get(name));
      }
    }
  }
  functions.push_back(MakeTyped([](int64_t, String, Array<int64_t>, DLDevice) {}, "test.fuzzed"));
  REQUIRE(functions.size() > 5);
  int errors = 0, made = 0;
  for (int i = 0; i < 100'000; ++i) {
    BatonValue args[5], ret;
    const int n = static_cast<int>(random(6));
    for (int k = 0; k < n; ++k) {
      const int32_t codes[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 64, 10, 63, 65, -1, 1 << 20};
      args[k] = BatonValue{codes[random(16)], 0, {.v_int64 = static_cast<int64_t>(random(3)) - 1}};
      // A pointer that is no pointer cannot be told from one: it is null, or right.
      const bool null = random(2);
      if (args[k].type_code == kBatonObject) {
        Object* o = random(2) ? ObjectAccess::Get(array) : ObjectAccess::Get(text);
        args[k].v_obj = null ? nullptr : reinterpret_cast<BatonObject*>(o);
      } else if (args[k].type_code == kBatonStr) {
        args[k].v_str = null ? nullptr : "\xff\xfe%s";
      } else if (args[k].type_code >= kBatonBytes && args[k].type_code <= kBatonTensor) {
        args[k].v_handle = nullptr;
      }
    }
    BatonObject* callee = nullptr;
    if (random(50)) {
      callee = reinterpret_cast<BatonObject*>(ObjectAccess::Get(functions[random(functions.size())]));
    } else if (random(2)) {
      callee = reinterpret_cast<BatonObject*>(ObjectAccess::Get(array));
    }
    if (BatonFuncCall(callee, random(50) ? args : nullptr, random(100) ? n : -n, &ret) == 0) {
      ++made;
      if (ret.type_code == kBatonObject) BatonObjectRelease(ret.v_obj);
    } else {
      ++errors;
      if (std::strlen(BatonErrorMessage()) == 0) FAIL("an error without a message");
    }
  }
  BatonErrorPut(nullptr);
  CHECK(errors + made == 100'000);
  CHECK(errors > 50'000);
}
