// SPDX-License-Identifier: Apache-2.0
// Arithmetic of bounds and linear forms: infinities, sums of terms, division by literals.
#pragma once

#include <baton/arith/analyzer.h>
#include <baton/tir/functor.h>
#include <baton/tir/op.h>

namespace baton::arith {

inline constexpr int64_t kPosInf = ConstIntBound::kPosInf;
inline constexpr int64_t kNegInf = ConstIntBound::kNegInf;
inline int64_t Clamp(__int128 v) { return v >= kPosInf ? kPosInf : v <= kNegInf ? kNegInf : static_cast<int64_t>(v); }
inline int64_t AddInf(int64_t a, int64_t b) {
  if (a == kPosInf || b == kPosInf) return kPosInf;
  if (a == kNegInf || b == kNegInf) return kNegInf;
  return Clamp(static_cast<__int128>(a) + b);
}
inline int64_t MulInf(int64_t a, int64_t b) {
  if (a == 0 || b == 0) return 0;
  if (a == kPosInf || a == kNegInf || b == kPosInf || b == kNegInf) return (a > 0) == (b > 0) ? kPosInf : kNegInf;
  return Clamp(static_cast<__int128>(a) * b);
}
inline int64_t FloorDivC(int64_t a, int64_t c) {  // c > 0
  if (a == kPosInf || a == kNegInf) return a;
  int64_t q = a / c;
  return a % c < 0 ? q - 1 : q;
}
inline int64_t FloorModC(int64_t a, int64_t c) {
  int64_t r = a % c;
  return r < 0 ? r + c : r;
}
inline ConstIntBound Union(ConstIntBound a, ConstIntBound b) {
  return {a.min < b.min ? a.min : b.min, a.max > b.max ? a.max : b.max};
}
inline ConstIntBound Intersect(ConstIntBound a, ConstIntBound b) {
  return {a.min > b.min ? a.min : b.min, a.max < b.max ? a.max : b.max};
}
inline ConstIntBound TypeBound(DataType t) {
  if (t.is_bool()) return {0, 1};
  if (t.bits() >= 63) return t.is_uint() ? ConstIntBound{0, kPosInf} : ConstIntBound{};
  if (t.is_uint()) return {0, (int64_t{1} << t.bits()) - 1};
  return {-(int64_t{1} << (t.bits() - 1)), (int64_t{1} << (t.bits() - 1)) - 1};
}
inline bool IsIndex(const PrimExpr& e) { return e.dtype() == DataType::Int(64); }
inline void AddTerm(LinearForm* f, const PrimExpr& atom, int64_t coeff) {
  if (coeff == 0) return;
  for (size_t i = 0; i < f->terms.size(); ++i) {
    if (tir::ExprDeepEqual(f->terms[i].atom, atom)) {
      f->terms[i].coeff += coeff;
      if (f->terms[i].coeff == 0) f->terms.erase(f->terms.begin() + static_cast<std::ptrdiff_t>(i));
      return;
    }
  }
  f->terms.push_back({atom, coeff});
}
inline bool AddForm(LinearForm* f, const LinearForm& g, int64_t scale) {
  for (const auto& t : g.terms) {
    int64_t c;
    if (__builtin_mul_overflow(t.coeff, scale, &c)) return false;
    AddTerm(f, t.atom, c);
  }
  int64_t k;
  if (__builtin_mul_overflow(g.constant, scale, &k) || __builtin_add_overflow(f->constant, k, &f->constant))
    return false;
  return true;
}
/// e // c or e % c with a literal c > 0: gives e and c.
template <class N>
const N* AsDivMod(const PrimExpr& e, int64_t* c) {
  const auto* n = e.as<N>();
  if (!n) return nullptr;
  const int64_t* v = tir::as_const_int(n->b);
  if (!v || *v <= 0) return nullptr;
  *c = *v;
  return n;
}

}  // namespace baton::arith
