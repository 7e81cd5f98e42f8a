// SPDX-License-Identifier: Apache-2.0
// The planned workspace: shared by life times, and as a parameter.
#include <baton/codegen/codegen.h>
#include <baton/runtime/ndarray.h>
#include <baton/tir/interpreter.h>
#include <baton/tir/lower.h>
#include <baton/tir/op.h>
#include <baton/tir/printer.h>
#include <doctest/doctest.h>

using namespace baton;
using namespace baton::tir;

namespace {
constexpr int64_t kCount = 32768;  // 128 KiB of float32

/// y = ((x + 1) * 2 + 3): each step into a buffer of its own, so that the first and the third can share a place.
PrimFunc Steps() {
  DataType f32 = DataType::Float(32);
  Buffer x = Buffer::Make({PrimExpr(kCount)}, f32, "x"), y = Buffer::Make({PrimExpr(kCount)}, f32, "y");
  Buffer a = Buffer::Make({PrimExpr(kCount)}, f32, "a"), b = Buffer::Make({PrimExpr(kCount)}, f32, "b"),
         c = Buffer::Make({PrimExpr(kCount)}, f32, "c");
  Var px("x", DataType::Handle()), py("y", DataType::Handle());
  auto step = [](const Buffer& to, const Buffer& from, auto fn) {
    Var i("i");
    Stmt s = BufferStore(BufferStoreNode{.buffer = to, .value = fn(BufferLoad(from, {i})), .indices = {i}});
    return Stmt(For(ForNode{.loop_var = i, .min = 0, .extent = PrimExpr(kCount), .kind = ForKind::kSerial, .body = s}));
  };
  Stmt body = SeqStmt::Flatten(
      {step(a, x, [](PrimExpr v) { return v + 1.0f; }), step(b, a, [](PrimExpr v) { return v * 2.0f; }),
       step(c, b, [](PrimExpr v) { return v + 3.0f; }), step(y, c, [](PrimExpr v) { return v; })});
  for (const Buffer& t : {a, b, c}) body = Allocate(AllocateNode{.buffer = t, .body = body});
  return PrimFunc({px, py}, body, {{px, x}, {py, y}});
}
}  // namespace

TEST_CASE("tir.StorageRewrite: buffers that do not live at once share the arena; it can be a parameter") {
  PrimFunc f = LowerPipeline(Steps(), Target::Host());
  const auto* arena = f->body.as<AllocateNode>();
  REQUIRE(arena);
  CHECK(*as_const_int(arena->buffer->shape[0]) == 2 * kCount * 4);
  // Once more changes nothing.
  CHECK(AsText(LowerPipeline(f, Target::Host())) == AsText(f));

  NDArray x = NDArray::Empty({kCount}, DataType::Float(32)), y = NDArray::Zeros({kCount}, DataType::Float(32));
  for (int64_t i = 0; i < kCount; ++i) x.SetDouble(i, static_cast<double>(i % 100));
  auto right = [&](const NDArray& got) {
    for (int64_t i = 0; i < kCount; ++i) {
      if (got.GetDouble(i) != (static_cast<double>(i % 100) + 1) * 2 + 3) return false;
    }
    return true;
  };
  Interpret(f, {x, y});
  CHECK(right(y));

  PrimFunc moved = WorkspaceToParameter(f);
  CHECK(moved->params.size() == 3);
  CHECK(moved->GetAttr<int64_t>(tir::attr::kWorkspaceBytes) == 2 * kCount * 4);
  CHECK_FALSE(static_cast<bool>(moved->body.as<AllocateNode>()));
  IRModule mod(Map<GlobalVar, BaseFunc>{{GlobalVar("own"), f}, {GlobalVar("given"), moved}});
  runtime::Module code = codegen::LoadObjects(codegen::CompileToObjects(mod, Target::Host(), 1));
  auto* own = reinterpret_cast<int32_t (*)(void*, void*)>(code->GetSymbol("own"));
  auto* given = reinterpret_cast<int32_t (*)(void*, void*, void*)>(code->GetSymbol("given"));
  REQUIRE(static_cast<bool>(own));
  REQUIRE(static_cast<bool>(given));
  y = NDArray::Zeros({kCount}, DataType::Float(32));
  CHECK(own(x.data(), y.data()) == 0);
  CHECK(right(y));
  y = NDArray::Zeros({kCount}, DataType::Float(32));
  NDArray workspace = NDArray::Empty({2 * kCount * 4}, DataType::UInt(8));
  CHECK(given(x.data(), y.data(), workspace.data()) == 0);
  CHECK(right(y));
}
