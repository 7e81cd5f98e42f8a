// SPDX-License-Identifier: Apache-2.0
// The planned workspace: shared by life times, and as a parameter.
#include <baton/arith/analyzer.h>
#include <baton/codegen/codegen.h>
#include <baton/runtime/ndarray.h>
#include <baton/tir/functor.h>
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
  CHECK(*as_const_int(WorkspaceBytes(moved)) == 2 * kCount * 4);
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

TEST_CASE(
    "tir.WorkspaceToParameter: open allocations of serial loops move; those of branches and parallel loops stay") {
  const DataType f32 = DataType::Float(32);
  const Var py("y", DataType::Handle()), n("n", DataType::Int(64));
  const Buffer y = Buffer::Make({n}, f32, "y");
  // For each image: row = n + 2; a buffer of `row` elements, of which the last one goes to y[image].
  const auto image = [&](const PrimExpr& extent, const Var& i, const Var& row) {
    const Buffer b = Buffer::Make({extent}, f32, "b");
    const PrimExpr last = extent - PrimExpr(int64_t{1});
    const Stmt fill = BufferStore(BufferStoreNode{.buffer = b, .value = cast(f32, i + row), .indices = {last}});
    const Stmt take = BufferStore(BufferStoreNode{.buffer = y, .value = BufferLoad(b, {last}), .indices = {i}});
    return Stmt(Allocate(AllocateNode{.buffer = b, .body = SeqStmt::Flatten({fill, take})}));
  };
  const auto function = [&](ForKind kind, bool branch, bool of_loop) {
    const Var i("i", DataType::Int(64)), row("row", DataType::Int(64));
    Stmt s = image(of_loop ? PrimExpr(row + i) : PrimExpr(row), i, row);
    if (branch) s = IfThenElse(IfThenElseNode{.condition = n > PrimExpr(int64_t{3}), .then_case = s});
    s = LetStmt(LetStmtNode{.var = row, .value = n + PrimExpr(int64_t{2}), .body = s});
    s = For(ForNode{.loop_var = i, .min = PrimExpr(int64_t{0}), .extent = n, .kind = kind, .body = s});
    return PrimFunc({py, n}, s, {{py, y}});
  };
  const PrimFunc moved = WorkspaceToParameter(function(ForKind::kSerial, false, false));
  CHECK(moved->params.size() == 3);
  arith::Analyzer analyzer;
  const PrimExpr bytes = WorkspaceBytes(moved);
  CHECK(*as_const_int(analyzer.Simplify(Substitute(bytes, VarMap{{n.get(), PrimExpr(int64_t{10})}}))) == 64);
  CHECK(*as_const_int(analyzer.Simplify(Substitute(bytes, VarMap{{n.get(), PrimExpr(int64_t{15})}}))) == 128);
  for (const PrimFunc& f : {function(ForKind::kParallel, false, false), function(ForKind::kSerial, true, false),
                            function(ForKind::kSerial, false, true)}) {
    CHECK(WorkspaceToParameter(f).same_as(f));
    CHECK(is_zero(WorkspaceBytes(f)));
  }
}
