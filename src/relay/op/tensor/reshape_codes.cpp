// SPDX-License-Identifier: Apache-2.0
#include "reshape_codes.h"

#include <baton/arith/extent.h>

namespace baton::relay {
namespace {

using Codes = std::vector<Extent>;
Codes ToCodes(const ExtentArray& a) { return Codes(a.begin(), a.end()); }
std::string ShowCodes(const Codes& codes) {
  ExtentArray list;
  for (const Extent& e : codes) list.push_back(e);
  return ShowExtents(list);
}

/// Product of the literals; -1 where there are others (and no 0).
int64_t LiteralProduct(const std::vector<PrimExpr>& dims) { return ProductOf(Dims(Shape(dims))); }

/// Reads the codes of `newshape` from the left.
class ReshapeReader {
 public:
  ReshapeReader(const Shape& in, const Codes& codes, bool allowzero, const ReshapeChecks& checks)
      : in_(in), codes_(codes), allowzero_(allowzero), checks_(checks), copied_(in.size()) {}

  Shape Read() {
    for (at_ = 0; at_ < codes_.size(); ++at_) One(codes_[at_]);
    Agree();
    return out_;
  }

 private:
  void Put(const PrimExpr& d, bool copy) {
    out_.push_back(d);
    from_input_.push_back(copy);
  }
  std::string Text() const { return "newshape " + ShowCodes(codes_); }
  [[noreturn]] void Fail(const char* rule, const std::string& text) const {
    checks_.Fail(rule, text);
    __builtin_unreachable();
  }
  size_t Take(int64_t code) {
    if (next_ >= in_.size())
      Fail("R2", Text() + " has code " + Str(code) + " where `data`: " + ShowShape(in_) + " has no dimension left");
    return next_++;
  }

  void One(const Extent& code) {
    const int64_t c = code.literal();
    if (!code.is_literal() || c > 0 || (c == 0 && allowzero_)) {
      Put(code.expr(), false);
      ++next_;
    } else if (c == 0) {
      const size_t d = Take(c);
      copied_[d] = true;
      Put(in_[d], true);
    } else if (c == -1) {
      if (infer_ >= 0) Fail("R1", Text() + " has more than one -1");
      infer_ = static_cast<int64_t>(out_.size());
      Put(1, false);
      ++next_;
    } else if (c == -2) {
      while (next_ < in_.size()) {
        copied_[next_] = true;
        Put(in_[next_++], true);
      }
    } else if (c == -3) {
      PrimExpr a = in_[Take(c)], b = in_[Take(c)];
      Put(HasUnknown({a, b}) ? UnknownDim() : a * b, false);
    } else if (c == -4) {
      SplitOne();
    } else {
      Fail("R1", Text() + " has " + Str(c) + "; codes are 0, -1, -2, -3, -4 and extents");
    }
  }

  void SplitOne() {
    if (at_ + 2 >= codes_.size()) Fail("R1", Text() + ": code -4 needs two numbers after it");
    const PrimExpr whole = in_[Take(-4)];
    const Extent a = codes_[++at_], b = codes_[++at_];
    auto infers = [](const Extent& e) { return e.is_literal() && e.literal() == -1; };
    auto wrong = [](const Extent& e) { return e.is_literal() && (e.literal() < -1 || e.literal() == 0); };
    if (wrong(a) || wrong(b) || (infers(a) && infers(b))) {
      Fail("R1", Text() + ": -4 is followed by " + arith::ExtentText(a.expr()) + ", " + arith::ExtentText(b.expr()) +
                     "; they are extents, one of them may be -1");
    }
    const PrimExpr k = (infers(a) ? b : a).expr();
    const int64_t n = DimOf(whole);
    if (n >= 0 && DimOf(k) > 0 && n % DimOf(k) != 0)
      Fail("R3", Text() + " splits an extent of " + Str(n) + " by " + Str(DimOf(k)));
    const PrimExpr rest = whole.as<tir::AnyNode>() ? UnknownDim() : floordiv(whole, k);
    if ((infers(a) || infers(b)) && n < 0 && !whole.as<tir::AnyNode>() && !checks_.Same(rest * k, whole))
      Fail("R3", Text() + " splits an extent of " + arith::ExtentText(whole) + " by " + arith::ExtentText(k));
    Put(infers(a) ? rest : a.expr(), false);
    Put(infers(b) ? rest : b.expr(), false);
  }

  /// Whether so many elements are as many, where dimensions that are copied may have none.
  bool SameNumber(const std::vector<PrimExpr>& have, const std::vector<PrimExpr>& want) {
    const PrimExpr a = ProductExpr(have), b = ProductExpr(want);
    if (arith::ExtentsEqual(a, b) == arith::Fact::kYes) return true;
    std::vector<PrimExpr> copied;
    for (size_t d = 0; d < in_.size(); ++d) {
      if (copied_[d]) copied.push_back(in_[d]);
    }
    const PrimExpr c = ProductExpr(copied);
    return checks_.Same(arith::CanonicalExtent(a * c), arith::CanonicalExtent(b * c));
  }

  /// Sizes that are not copied have to agree in number.
  void Agree() {
    std::vector<PrimExpr> have, want;
    for (size_t d = 0; d < in_.size(); ++d) {
      if (!copied_[d]) have.push_back(in_[d]);
    }
    bool zero = false;
    for (size_t d = 0; d < out_.size(); ++d) {
      if (static_cast<int64_t>(d) == infer_) continue;
      zero = zero || DimOf(out_[d]) == 0;
      if (!from_input_[d]) want.push_back(out_[d]);
    }
    const int64_t n = LiteralProduct(have), m = LiteralProduct(want);
    const bool unknown = HasUnknown(have) || HasUnknown(want);
    const std::string shapes = "`data`: " + ShowShape(in_);
    if (infer_ >= 0) {
      if (n >= 0 && m > 0) {
        if (n % m != 0) Fail("R3", shapes + " does not divide into " + Text());
        out_[infer_] = PrimExpr(n / m);
      } else if (m == 0) {
        if (allowzero_ || zero) Fail("R3", Text() + " has both 0 and -1: what -1 stands for is not determined");
        out_[infer_] = PrimExpr(0);
      } else if (unknown) {
        out_[infer_] = UnknownDim();
      } else {
        const PrimExpr all = ProductExpr(have), by = ProductExpr(want);
        out_[infer_] = arith::CanonicalExtent(floordiv(all, by));
        if (!checks_.Same(out_[infer_] * by, all)) Fail("R3", shapes + " does not divide into " + Text());
      }
    } else if (n >= 0 && m >= 0) {
      if (n != m && !(zero && ProductOf(Dims(in_)) == 0)) {
        Fail("R3", shapes + " has " + Str(ProductOf(Dims(in_))) + " elements and " + Text() + " another number");
      }
    } else if (!unknown && !SameNumber(have, want)) {
      Fail("R3",
           shapes + " has " + arith::ExtentText(ProductExpr(have)) + " elements and " + Text() + " another number");
    }
  }

  const Shape& in_;
  const Codes& codes_;
  const bool allowzero_;
  const ReshapeChecks& checks_;
  std::vector<PrimExpr> out_;
  std::vector<bool> copied_;      // input dimensions that the result has as they are
  std::vector<bool> from_input_;  // dimensions of the result that are such copies
  size_t next_ = 0;               // input dimension that a code refers to
  size_t at_ = 0;
  int64_t infer_ = -1;
};

}  // namespace

bool HasUnknown(const std::vector<PrimExpr>& dims) {
  for (const PrimExpr& d : dims) {
    if (d.as<tir::AnyNode>()) return true;
  }
  return false;
}
PrimExpr ProductExpr(const std::vector<PrimExpr>& dims) {
  PrimExpr all = 1;
  for (const PrimExpr& d : dims) all = all * d;
  return all;
}

Shape ReshapeShape(const Shape& in, const ExtentArray& codes, bool allowzero, const ReshapeChecks& checks) {
  const Codes list = ToCodes(codes);
  return ReshapeReader(in, list, allowzero, checks).Read();
}

Shape ReverseReshapeShape(const Shape& in, const ExtentArray& newshape, bool allowzero, const ReshapeChecks& checks) {
  const Codes codes = ToCodes(newshape);
  std::vector<Codes> tokens;  // -4 stays in front of its two extents, which change places
  for (size_t i = 0; i < codes.size(); ++i) {
    if (codes[i].is_literal() && codes[i].literal() == -4 && i + 2 < codes.size()) {
      tokens.push_back({codes[i], codes[i + 2], codes[i + 1]});
      i += 2;
    } else {
      tokens.push_back({codes[i]});
    }
  }
  Codes turned;
  for (size_t k = tokens.size(); k-- > 0;) turned.insert(turned.end(), tokens[k].begin(), tokens[k].end());
  std::vector<PrimExpr> back(in.begin(), in.end());
  const Shape turned_in(std::vector<PrimExpr>(back.rbegin(), back.rend()));
  Shape out = ReshapeReader(turned_in, turned, allowzero, checks).Read();
  back.assign(out.begin(), out.end());
  return Shape(std::vector<PrimExpr>(back.rbegin(), back.rend()));
}

}  // namespace baton::relay
