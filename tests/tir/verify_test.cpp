// SPDX-License-Identifier: Apache-2.0
// tests/tools/test_verifier_rules.py reads this file: each rule of the verifier has its message here.
#include <baton/tir/op.h>
#include <baton/tir/stmt.h>
#include <baton/tir/verify.h>
#include <doctest/doctest.h>

using namespace baton;
using namespace baton::tir;

namespace {

struct Program {
  Buffer a = Buffer::Make({16}, DataType::Float(32), "A");
  Var p = Var("a", DataType::Handle());
  std::string Check(const Stmt& body) const { return CheckWellFormed(PrimFunc({p}, body, {{p, a}})); }
};

Stmt Loop(const Var& var, const PrimExpr& extent, const Stmt& body) {
  return For(ForNode{.loop_var = var, .min = make_int(extent.dtype(), 0), .extent = extent, .body = body});
}
Stmt Do(const PrimExpr& e) { return Evaluate(EvaluateNode{.value = e}); }
Stmt Store(const Buffer& b, const PrimExpr& value, const Array<PrimExpr>& indices) {
  return BufferStore(BufferStoreNode{.buffer = b, .value = value, .indices = indices});
}
PrimExpr Load(const Buffer& b, const Array<PrimExpr>& indices) {
  return BufferLoad(BufferLoadNode{.buffer = b, .indices = indices});
}

}  // namespace

TEST_CASE("reliability figure 33: each rule of the verifier of PrimFuncs has a program that breaks it") {
  Program f;
  Var i("i"), q("q", DataType::Handle()), x("x", DataType::Float(32));
  Var narrow("n", DataType::Int(32)), real("n", DataType::Float(32));
  const PrimExpr one = make_int(DataType::Int(64), 1), half = 0.5f, short_one = make_int(DataType::Int(32), 1);
  const Buffer other = Buffer::Make({4, 4}, DataType::Float(32), "B");
  CHECK(f.Check(Loop(i, 16, Store(f.a, half, {i}))) == "");

  CHECK(CheckWellFormed(PrimFunc({q}, Do(one), {{f.p, f.a}})) == "buffer `A` belongs to no parameter");
  CHECK(f.Check(Stmt()) == "the body is null");
  CHECK(f.Check(SeqStmt(SeqStmtNode{.seq = {Do(one), Stmt()}})) == "a statement is null");
  CHECK(f.Check(Do(i)) == "variable `i` is used where it is not bound");
  CHECK(f.Check(SeqStmt(SeqStmtNode{.seq = {Loop(i, 4, Do(i)), Do(i)}})) ==
        "variable `i` is used where it is not bound");
  CHECK(f.Check(Do(Reduce(ReduceNode{}))) == "a tir.Reduce stands in a PrimFunc; lower it first");
  CHECK(f.Check(Do(ProducerLoad(ProducerLoadNode{}))) == "a tir.ProducerLoad stands in a PrimFunc; lower it first");
  CHECK(f.Check(Store(f.a, one, {one})) == "`A` of float32 is stored a value of int64");
  CHECK(f.Check(Loop(narrow, short_one, Do(one))) == "");
  CHECK(f.Check(Loop(real, half, Do(one))) == "loop `n` runs over float32; loops run over integers");
  CHECK(f.Check(LetStmt(LetStmtNode{.var = x, .value = one, .body = Do(one)})) ==
        "let `x` has another dtype than its value");
  CHECK(f.Check(Loop(i, 4, Loop(i, 4, Do(i)))) == "`i` is bound again inside its own scope");
  CHECK(f.Check(Store(other, half, {one, one})) == "buffer `B` is written where it is not bound");
  CHECK(f.Check(Do(Load(other, {one, one}))) == "buffer `B` is read where it is not bound");
  CHECK(f.Check(Store(f.a, half, {one, one})) == "buffer `A` has 1 dimensions and is written with 2 indices");
  CHECK(f.Check(Do(Load(f.a, {}))) == "buffer `A` has 1 dimensions and is read with 0 indices");
  CHECK(f.Check(Do(Load(f.a, {short_one}))) == "");
  CHECK(f.Check(Do(Load(f.a, {half}))) == "buffer `A` is read with an index of float32; indices are integers");
}

TEST_CASE("reliability figure 33: the verifier of PrimFuncs takes what is missing anywhere") {
  Program f;
  Var i("i");
  const PrimExpr one = make_int(DataType::Int(64), 1), half = 0.5f;
  const std::string expression = "an expression is null";
  CHECK(f.Check(Do(PrimExpr())) == expression);
  CHECK(f.Check(Store(f.a, PrimExpr(), {one})) == expression);
  CHECK(f.Check(Store(f.a, half, {PrimExpr()})) == expression);
  CHECK(f.Check(Do(Load(f.a, {PrimExpr()}))) == expression);
  CHECK(f.Check(For(ForNode{.loop_var = i, .min = PrimExpr(), .extent = one, .body = Do(one)})) == expression);
  CHECK(f.Check(For(ForNode{.loop_var = i, .min = one, .extent = PrimExpr(), .body = Do(one)})) == expression);
  CHECK(f.Check(LetStmt(LetStmtNode{.var = i, .value = PrimExpr(), .body = Do(one)})) == expression);
  CHECK(f.Check(Store(Buffer(), half, {one})) == "an access without a buffer");
  CHECK(f.Check(Do(Load(Buffer(), {one}))) == "an access without a buffer");
  CHECK(f.Check(Allocate(AllocateNode{.body = Do(one)})) == "an allocation without a buffer");
}
