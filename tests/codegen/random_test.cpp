// SPDX-License-Identifier: Apache-2.0
// A property: for generated PrimFuncs the machine code gives what the interpreter gives, bit for bit.
#include <baton/codegen/codegen.h>
#include <baton/runtime/ndarray.h>
#include <baton/tir/functor.h>
#include <baton/tir/interpreter.h>
#include <baton/tir/lower.h>
#include <baton/tir/op.h>
#include <baton/tir/printer.h>
#include <baton/tir/verify.h>
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

using namespace baton;
using namespace baton::tir;

namespace {

const std::vector<DataType> kTypes = {DataType::Float(32), DataType::Float(64), DataType::Int(8),  DataType::Int(16),
                                      DataType::Int(32),   DataType::Int(64),   DataType::UInt(8), DataType::UInt(16),
                                      DataType::UInt(32),  DataType::Bool()};
constexpr int64_t kN = 40;

class Generator {
 public:
  explicit Generator(uint64_t seed) : seed_(seed) {
    for (size_t i = 0; i < 12; ++i) Rnd(2);
  }
  uint64_t Rnd(uint64_t n) {
    seed_ = seed_ * 6364136223846793005ull + 1442695040888963407ull;
    return (seed_ >> 33) % n;
  }
  DataType AnyType() { return kTypes[Rnd(kTypes.size())]; }

  PrimFunc Function() {
    Array<Var> params;
    Map<Var, Buffer> map;
    auto param = [&](DataType t, const std::string& name) {
      Buffer b = Buffer::Make({PrimExpr(kN)}, t, String(name));
      Var p(String(name), DataType::Handle());
      params.push_back(p);
      map.Set(p, b);
      return b;
    };
    for (int i = 0; i < 4; ++i) in_.push_back(param(AnyType(), "x" + std::to_string(i)));
    Array<Stmt> seq;
    for (int i = 0; i < 2; ++i) {
      Buffer out = param(AnyType(), "y" + std::to_string(i));
      index_ = Var("i");
      ForKind kind = static_cast<ForKind>(Rnd(4));
      Var inner("j");
      PrimExpr at = kind == ForKind::kVectorized || kind == ForKind::kUnrolled ? index_ * 8 + inner : PrimExpr(index_);
      if (!at.same_as(index_))
        position_ = at;
      else
        position_ = index_;
      Stmt body = Store(out);
      if (position_.same_as(index_)) {
        seq.push_back(Loop(index_, kN, kind, body));
      } else {
        body = Loop(inner, 8, kind, body);
        seq.push_back(Loop(index_, kN / 8, Rnd(2) ? ForKind::kParallel : ForKind::kSerial, body));
      }
    }
    return PrimFunc(params, SeqStmt::Flatten(seq), map);
  }
  const std::vector<Buffer>& inputs() const { return in_; }

 private:
  static Stmt Loop(const Var& v, int64_t n, ForKind kind, Stmt body) {
    return For(ForNode{.loop_var = v, .min = 0, .extent = n, .kind = kind, .body = body});
  }
  Stmt Store(const Buffer& out) {
    Stmt s = BufferStore(BufferStoreNode{.buffer = out, .value = Expr(out->dtype, 4), .indices = {position_}});
    switch (Rnd(4)) {
      case 0: {
        Stmt other = BufferStore(BufferStoreNode{.buffer = out, .value = Expr(out->dtype, 2), .indices = {position_}});
        return IfThenElse(IfThenElseNode{.condition = Expr(DataType::Bool(), 2), .then_case = s, .else_case = other});
      }
      case 1: {  // through a register
        Buffer r = Buffer::Make({PrimExpr(1)}, out->dtype, "r", "local");
        Stmt init = BufferStore(BufferStoreNode{.buffer = r, .value = Expr(out->dtype, 2), .indices = {PrimExpr(0)}});
        Var k("k");
        Stmt step =
            BufferStore(BufferStoreNode{.buffer = r,
                                        .value = Combine(out->dtype, BufferLoad(r, {PrimExpr(0)}), Expr(out->dtype, 2)),
                                        .indices = {PrimExpr(0)}});
        Stmt done =
            BufferStore(BufferStoreNode{.buffer = out, .value = BufferLoad(r, {PrimExpr(0)}), .indices = {position_}});
        return Allocate(
            AllocateNode{.buffer = r, .body = SeqStmt::Flatten({init, Loop(k, 3, ForKind::kSerial, step), done})});
      }
      case 2: {
        Var v("v", out->dtype);
        lets_.push_back(v);
        Stmt body = BufferStore(BufferStoreNode{.buffer = out, .value = Expr(out->dtype, 3), .indices = {position_}});
        lets_.pop_back();
        return LetStmt(LetStmtNode{.var = v, .value = Expr(out->dtype, 3), .body = body});
      }
      default:
        return s;
    }
  }
  PrimExpr Combine(DataType t, PrimExpr a, PrimExpr b) {
    if (t.is_bool()) return Rnd(2) ? a && b : a || b;
    switch (Rnd(4)) {
      case 0:
        return a + b;
      case 1:
        return min(a, b);
      case 2:
        return max(a, b);
      default:
        return a - b;
    }
  }
  PrimExpr Leaf(DataType t) {
    if (Rnd(3) == 0) {
      if (t.is_bool()) return make_int(t, static_cast<int64_t>(Rnd(2)));
      if (t.is_floating()) return make_const(t, (static_cast<double>(Rnd(400)) - 200) / 16);
      return make_int(t, static_cast<int64_t>(Rnd(t.is_uint() ? 100 : 200)) - (t.is_uint() ? 0 : 100));
    }
    for (const Var& v : lets_) {
      if (v.dtype() == t) return v;
    }
    if (t == DataType::Int(64) && Rnd(3) == 0) return position_;
    PrimExpr load = BufferLoad(in_[Rnd(in_.size())], {Index()});
    return cast(t, load);
  }
  PrimExpr Index() {
    switch (Rnd(5)) {
      case 0:
        return PrimExpr(kN - 1) - position_;
      case 1:
        return floordiv(position_, 2);
      case 2:
        return floormod(position_ * 3, kN);
      case 3:
        return PrimExpr(static_cast<int64_t>(Rnd(kN)));
      default:
        return position_;
    }
  }
  PrimExpr Expr(DataType t, int depth) {
    if (depth == 0) return Leaf(t);
    auto sub = [&](DataType s) { return Expr(s, depth - 1); };
    if (Rnd(8) == 0) return cast(t, sub(AnyType()));
    if (Rnd(8) == 0) return tir::Select(sub(DataType::Bool()), sub(t), sub(t));
    if (Rnd(8) == 0) {
      // The load of the branch would leave the buffer where the condition is false.
      PrimExpr shifted = position_ - 7;
      return if_then_else(shifted >= 0, cast(t, BufferLoad(in_[0], {shifted})), sub(t));
    }
    if (Rnd(10) == 0) {
      Var v("v", t);
      PrimExpr value = sub(t);
      lets_.push_back(v);
      PrimExpr body = sub(t);
      lets_.pop_back();
      return Let(v, value, body);
    }
    if (t.is_bool()) {
      DataType s = AnyType();
      if (s.is_bool()) {
        switch (Rnd(3)) {
          case 0:
            return sub(t) && sub(t);
          case 1:
            return sub(t) || sub(t);
          default:
            return !sub(t);
        }
      }
      PrimExpr a = sub(s), b = sub(s);
      switch (Rnd(6)) {
        case 0:
          return a < b;
        case 1:
          return a <= b;
        case 2:
          return a > b;
        case 3:
          return a >= b;
        case 4:
          return equal(a, b);
        default:
          return not_equal(a, b);
      }
    }
    PrimExpr a = sub(t), b = sub(t);
    if (t.is_floating()) {
      switch (Rnd(11)) {
        case 0:
          return a + b;
        case 1:
          return a - b;
        case 2:
          return a * b;
        case 3:
          return a / b;
        case 4:
          return min(a, b);
        case 5:
          return max(a, b);
        case 6:
          return fabs(a);
        case 7:
          return sqrt(fabs(a));
        case 8:
          return floor(a) + trunc(b);
        case 9:
          return fma(a, b, sub(t));
        default:
          return nearbyint(a) - ceil(b);
      }
    }
    switch (Rnd(12)) {
      case 0:
        return a + b;
      case 1:
        return a - b;
      case 2:
        return a * b;
      case 3:
        return truncdiv(a, b);
      case 4:
        return truncmod(a, b);
      case 5:
        return floordiv(a, b);
      case 6:
        return floormod(a, b);
      case 7:
        return min(a, b);
      case 8:
        return max(a, b);
      case 9:
        return bitwise_xor(a, bitwise_and(b, sub(t)));
      case 10:
        return t.is_uint() ? bitwise_or(a, b) : abs(a);
      default:
        return Rnd(2) ? shift_left(a, bitwise_and(b, make_int(t, 7))) : shift_right(a, bitwise_and(b, make_int(t, 7)));
    }
  }

  uint64_t seed_;
  std::vector<Buffer> in_;
  std::vector<Var> lets_;
  Var index_;
  PrimExpr position_;
};

bool Same(const NDArray& a, const NDArray& b, int64_t* at) {
  for (int64_t i = 0; i < a.numel(); ++i) {
    *at = i;
    if (a.dtype().is_floating()) {
      double x = a.GetDouble(i), y = b.GetDouble(i);
      if (!(x == y || (std::isnan(x) && std::isnan(y)))) return false;
    } else if (a.GetInt(i) != b.GetInt(i)) {
      return false;
    }
  }
  return true;
}

}  // namespace

TEST_CASE("codegen: generated programs give what the interpreter gives") {
  Target host = Target::Host();
  constexpr int kPrograms = 120;
  std::vector<PrimFunc> written, lowered;
  std::vector<std::vector<Buffer>> inputs;
  Map<GlobalVar, BaseFunc> functions;
  for (int i = 0; i < kPrograms; ++i) {
    Generator g(static_cast<uint64_t>(i) * 7919 + 13);
    PrimFunc f = g.Function();
    REQUIRE(CheckWellFormed(f) == "");
    written.push_back(f);
    lowered.push_back(LowerPipeline(f, host));
    CHECK_MESSAGE(CheckWellFormed(lowered.back()) == "", AsText(f), AsText(lowered.back()));
    functions.Set(GlobalVar(String("f" + std::to_string(i))), lowered.back());
  }
  runtime::Module code = codegen::LoadObjects(codegen::CompileToObjects(IRModule(functions), host, 2));
  for (int i = 0; i < kPrograms; ++i) {
    const PrimFunc& f = written[static_cast<size_t>(i)];
    std::vector<NDArray> args;
    uint64_t seed = static_cast<uint64_t>(i) + 1;
    for (const Var& p : f->params) {
      Buffer b = f->buffer_map.at(p);
      NDArray a = NDArray::Empty({kN}, b->dtype);
      for (int64_t k = 0; k < kN; ++k) {
        seed = seed * 6364136223846793005ull + 1442695040888963407ull;
        int64_t v = static_cast<int64_t>(seed >> 33) % 257 - 128;
        if (b->dtype.is_floating())
          a.SetDouble(k, static_cast<double>(v) / 8);
        else
          a.SetInt(k, b->dtype.is_bool()   ? v & 1
                      : b->dtype.is_uint() ? (v + 128) % 251
                      : v < -127           ? 0
                      : v > 127            ? 1
                                           : v);
      }
      args.push_back(a);
    }
    auto copies = [&] {
      std::vector<NDArray> c;
      for (const NDArray& a : args) c.push_back(a.Copy());
      return c;
    };
    std::vector<NDArray> as_written = copies(), as_lowered = copies(), compiled = copies();
    Interpret(f, as_written);
    Interpret(lowered[static_cast<size_t>(i)], as_lowered);
    auto* fn = reinterpret_cast<int32_t (*)(void*, void*, void*, void*, void*, void*)>(
        code->GetSymbol(("f" + std::to_string(i)).c_str()));
    REQUIRE(static_cast<bool>(fn));
    CHECK(fn(compiled[0].data(), compiled[1].data(), compiled[2].data(), compiled[3].data(), compiled[4].data(),
             compiled[5].data()) == 0);
    for (size_t k = 4; k < 6; ++k) {
      int64_t at = 0;
      bool lowered_same = Same(as_written[k], as_lowered[k], &at);
      CHECK_MESSAGE(lowered_same, "program ", i, " output ", k - 4, " at ", at, ": lowering changes the result\n",
                    AsText(f), AsText(lowered[static_cast<size_t>(i)]));
      bool compiled_same = Same(as_lowered[k], compiled[k], &at);
      CHECK_MESSAGE(compiled_same, "program ", i, " output ", k - 4, " at ", at, ": machine code differs\n",
                    AsText(lowered[static_cast<size_t>(i)]));
    }
  }
}
