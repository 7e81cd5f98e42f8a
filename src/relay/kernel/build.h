// SPDX-License-Identifier: Apache-2.0
// Short words for building statements.
#pragma once

#include <baton/tir/op.h>
#include <baton/tir/stmt.h>

namespace baton::relay::kernel {

using tir::Buffer;
using tir::ForKind;
using tir::Stmt;

inline PrimExpr I(int64_t v) { return PrimExpr(v); }

/// A literal's value, or -1.
inline int64_t Known(const PrimExpr& e) {
  const int64_t* v = tir::as_const_int(e);
  return v ? *v : -1;
}

/// for i in [0, extent): body(i). Without a loop when there is one round, and null when there is none.
template <class F>
Stmt Loop(const char* name, PrimExpr extent, F body, ForKind kind = ForKind::kSerial) {
  if (tir::is_zero(extent)) return Stmt();
  if (tir::is_one(extent)) return body(I(0));
  tir::Var i(name);
  tir::ForNode f;
  f.loop_var = i;
  f.min = I(0);
  f.extent = extent;
  f.kind = kind;
  f.body = body(i);
  return f.body.defined() ? Stmt(tir::For(std::move(f))) : Stmt();
}

inline Stmt If(PrimExpr condition, Stmt then_case, Stmt else_case = Stmt()) {
  tir::IfThenElseNode n;
  n.condition = std::move(condition), n.then_case = std::move(then_case), n.else_case = std::move(else_case);
  return tir::IfThenElse(std::move(n));
}
inline Stmt Store(const Buffer& b, PrimExpr index, PrimExpr value) {
  tir::BufferStoreNode n;
  n.buffer = b, n.value = std::move(value), n.indices = {std::move(index)};
  return tir::BufferStore(std::move(n));
}
inline Stmt With(const Buffer& b, Stmt body) {
  tir::AllocateNode n;
  n.buffer = b, n.body = std::move(body);
  return tir::Allocate(std::move(n));
}
inline Stmt Bind(const tir::Var& v, PrimExpr value, Stmt body) {
  tir::LetStmtNode n;
  n.var = v, n.value = std::move(value), n.body = std::move(body);
  return tir::LetStmt(std::move(n));
}
inline Stmt Effect(PrimExpr e) {
  tir::EvaluateNode n;
  n.value = std::move(e);
  return tir::Evaluate(std::move(n));
}

/// `lanes` consecutive elements from `base`; one element is a scalar.
inline PrimExpr Span(PrimExpr base, int64_t lanes) {
  return lanes == 1 ? base : PrimExpr(tir::Ramp(base, I(1), lanes));
}
inline PrimExpr Read(const Buffer& b, PrimExpr base, int64_t lanes = 1) {
  return tir::BufferLoad(b, {Span(base, lanes)});
}
/// `x` in dtype `t`, with its lanes.
inline PrimExpr As(DataType t, const PrimExpr& x) { return cast(t.with_lanes(x.dtype().lanes()), x); }
/// Whether kernels that compute in `wide` read operands of `t`: their own, or a narrower one that they widen.
inline bool Widens(DataType t, DataType wide) {
  if (t == wide) return true;
  const bool narrow = t == DataType::Int(8) || t == DataType::Float(16) || t == DataType::BFloat16();
  return narrow && wide == DataType::Float(32);
}
/// a * b + c, in one rounding where the processor has an instruction for it.
inline PrimExpr MultiplyAdd(bool fused, const PrimExpr& a, const PrimExpr& b, const PrimExpr& c) {
  return fused ? fma(a, b, c) : a * b + c;
}
/// `terms` elements from `at`, repeated for each of `lanes`.
inline PrimExpr Repeat(const Buffer& b, const PrimExpr& at, int64_t terms, int64_t lanes) {
  if (terms == 1) return tir::broadcast_to(Read(b, at), static_cast<int>(lanes));
  Array<int64_t> index;
  for (int64_t i = 0; i < terms * lanes; ++i) index.push_back(i % terms);
  return tir::Shuffle({Read(b, at, terms)}, index);
}
/// The sum with a step's products: one for each lane, two (tir::dot2) or four (tir::dot4).
inline PrimExpr AddTerms(bool fused, int64_t terms, const PrimExpr& a, const PrimExpr& b, const PrimExpr& sum) {
  return terms == 1 ? MultiplyAdd(fused, a, b, sum) : terms == 2 ? dot2(a, b, sum) : dot4(a, b, sum);
}
/// The first `count` lanes of `lanes`; null when that is all of them.
inline PrimExpr FirstLanes(int64_t count, int64_t lanes) {
  if (count >= lanes) return PrimExpr();
  return tir::Ramp(I(0), I(1), lanes) < PrimExpr(tir::Broadcast(I(count), lanes));
}
inline PrimExpr ReadMasked(const Buffer& b, PrimExpr base, int64_t lanes, const PrimExpr& mask) {
  PrimExpr load = Read(b, base, lanes);
  return mask.defined() ? tir::masked_load(load, mask) : load;
}
inline Stmt WriteMasked(const Buffer& b, PrimExpr base, int64_t lanes, PrimExpr value, const PrimExpr& mask) {
  if (mask.defined()) return Effect(tir::masked_store(Read(b, base, lanes), value, mask));
  return Store(b, Span(base, lanes), value);
}

/// Statements one after the other.
class Steps {
 public:
  void Add(Stmt s) {
    if (s.defined()) seq_.push_back(std::move(s));
  }
  /// Binds `value` for all that is added after it.
  PrimExpr Let(const char* name, PrimExpr value) {
    tir::Var v(name, value.dtype());
    lets_.push_back({static_cast<int64_t>(seq_.size()), v, value});
    return v;
  }
  Stmt Done() const {
    Array<Stmt> tail;
    Stmt rest;
    int64_t i = static_cast<int64_t>(seq_.size());
    std::vector<Stmt> pending;
    auto flush = [&] {
      Array<Stmt> s;
      for (size_t k = pending.size(); k-- > 0;) s.push_back(pending[k]);
      if (rest.defined()) s.push_back(rest);
      pending.clear();
      rest = s.empty() ? Stmt() : s.size() == 1 ? s[0] : tir::SeqStmt::Flatten(s);
    };
    size_t l = lets_.size();
    for (;;) {
      while (l > 0 && lets_[l - 1].at == i) {
        flush();
        --l;
        if (rest.defined()) rest = Bind(lets_[l].var, lets_[l].value, rest);
      }
      if (i == 0) break;
      pending.push_back(seq_[static_cast<size_t>(--i)]);
    }
    flush();
    return rest;
  }

 private:
  struct Binding {
    int64_t at;
    tir::Var var;
    PrimExpr value;
  };
  std::vector<Stmt> seq_;
  std::vector<Binding> lets_;
};

}  // namespace baton::relay::kernel
