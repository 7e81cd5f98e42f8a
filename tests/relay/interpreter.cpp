// SPDX-License-Identifier: Apache-2.0
// Closures of the interpreter: what they hold, and that they end.
#include <baton/relay/evaluator.h>
#include <baton/relay/text.h>
#include <baton/relay/transform.h>
#include <baton/relay/value.h>
#include <baton/runtime/ndarray.h>
#include <doctest/doctest.h>

using namespace baton;
using namespace baton::relay;
using runtime::NDArray;

namespace {

/// What `main` gives, with @main's one parameter `x`.
ObjectRef Run(const char* text, const NDArray& x) {
  IRModule mod = relay::transform::InferType()(ParseModule(text));
  return InterpretCall(mod->GetGlobalVar("main"), Array<ObjectRef>{x}, mod);
}

}  // namespace

TEST_CASE("a recursive closure of the interpreter does not keep itself alive") {
  NDArray x = NDArray::Scalar(3, DataType::Int(64));
  const uint32_t before = x.obj()->use_count();
  {
    ObjectRef out = Run(R"(
def @main(%x: int64) -> int64 {
  let %f: fn (int64) -> int64 = fn (%n: int64) -> int64 {
    if (less(%n, 1i64)) { %x } else { let %g = fn (%m: int64) -> int64 { %f(subtract(%m, 1i64)) }; %g(%n) }
  };
  let %pair = (%f, fn (%k: int64) -> int64 { add(%k, %x) });
  add(%pair.0(%x), %pair.1(1i64))
})",
                        x);
    CHECK(Downcast<NDArray>(out).GetInt(0) == 7);
  }
  CHECK(x.obj()->use_count() == before);
}

TEST_CASE("a closure that left its function keeps what it uses, and no more") {
  NDArray x = NDArray::Scalar(5, DataType::Int(64));
  const uint32_t before = x.obj()->use_count();
  ObjectRef closure = Run(R"(
def @main(%x: int64) -> fn (int64) -> int64 {
  let %unused = (%x, %x);
  let %count: fn (int64) -> int64 = fn (%n: int64) -> int64 {
    if (less(%n, 1i64)) { %x } else { add(1i64, %count(subtract(%n, 1i64))) }
  };
  %count
})",
                          x);
  CHECK(x.obj()->use_count() == before + 1);
  CHECK(closure.as<ClosureObj>()->captured.size() == 1);
  ObjectRef out = InterpretApply(closure, {NDArray::Scalar(4, DataType::Int(64))}, IRModule(), Evaluator::Get());
  CHECK(Downcast<NDArray>(out).GetInt(0) == 9);
  closure = ObjectRef();
  CHECK(x.obj()->use_count() == before);
}

TEST_CASE("a function of the interpreter sees the variable that is bound where it was made, not where it is called") {
  NDArray x = NDArray::Scalar(1, DataType::Int(64));
  ObjectRef out = Run(R"(
def @main(%x: int64) -> int64 {
  let %add_x = fn (%n: int64) -> int64 { add(%n, %x) };
  let %apply = fn (%f: fn (int64) -> int64, %x1: int64) -> int64 { %f(%x1) };
  %apply(%add_x, 10i64)
})",
                      x);
  CHECK(Downcast<NDArray>(out).GetInt(0) == 11);
}
