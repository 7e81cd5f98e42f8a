// SPDX-License-Identifier: Apache-2.0
#include "strided_view.h"

#include <baton/arith/extent.h>
#include <baton/relay/op.h>
#include <baton/tir/op.h>

#include <algorithm>

namespace baton::relay::transform {

PrimExpr EvenQuotient(const PrimExpr& x, const PrimExpr& y) {
  const int64_t a = DimOf(x), b = DimOf(y);
  if (b == 1) return x;
  if (a >= 0 && b >= 0) return b > 0 && a % b == 0 ? PrimExpr(a / b) : PrimExpr();
  if (arith::ExtentsEqual(x, y) == arith::Fact::kYes) return PrimExpr(int64_t{1});
  const PrimExpr quotient = arith::CanonicalExtent(floordiv(x, y));
  return arith::ExtentsEqual(quotient * y, x) == arith::Fact::kYes ? quotient : PrimExpr();
}

StridedView::StridedView(const Expr& source) : source_(source) {
  for (const PrimExpr& extent : source->checked_type().as<TensorTypeNode>()->shape) {
    dims_.emplace_back();
    if (DimOf(extent) == 1) continue;
    dims_.back().push_back(factors_.size());
    memory_.push_back(factors_.size());
    factors_.push_back({extent});
  }
}

std::vector<size_t> StridedView::Flat() const {
  std::vector<size_t> all;
  for (const auto& d : dims_) all.insert(all.end(), d.begin(), d.end());
  return all;
}

bool StridedView::Transpose(const std::vector<int64_t>& axes) {
  std::vector<std::vector<size_t>> moved;
  for (int64_t a : axes) moved.push_back(dims_[static_cast<size_t>(a)]);
  dims_ = std::move(moved);
  return true;
}

bool StridedView::Reshape(const Array<PrimExpr>& shape) {
  std::vector<size_t> rest = Flat();
  std::reverse(rest.begin(), rest.end());
  dims_.assign(shape.size(), {});
  for (size_t d = 0; d < shape.size(); ++d) {
    PrimExpr left = shape[static_cast<int64_t>(d)];
    while (DimOf(left) != 1) {
      if (rest.empty()) return false;
      const size_t f = rest.back();
      const PrimExpr extent = factors_[f].extent;
      if (PrimExpr more = EvenQuotient(left, extent); more.defined()) {
        left = more;
        rest.pop_back();
      } else if (PrimExpr inner = EvenQuotient(extent, left); inner.defined()) {
        // The factor's outer part belongs here, its inner part to the next dimension.
        factors_[f].extent = left;
        const size_t added = factors_.size();
        factors_.push_back({inner, factors_[f].repeats, factors_[f].letter});
        auto in_memory = std::find(memory_.begin(), memory_.end(), f);
        if (in_memory != memory_.end()) memory_.insert(in_memory + 1, added);
        rest.back() = added;
        left = PrimExpr(int64_t{1});
      } else {
        return false;
      }
      dims_[d].push_back(f);
    }
  }
  return rest.empty();
}

bool StridedView::BroadcastTo(const Array<PrimExpr>& shape) {
  if (shape.size() < dims_.size()) return false;
  dims_.insert(dims_.begin(), shape.size() - dims_.size(), {});
  for (size_t d = 0; d < dims_.size(); ++d) {
    const PrimExpr& extent = shape[static_cast<int64_t>(d)];
    if (!dims_[d].empty() || DimOf(extent) == 1) continue;
    dims_[d].push_back(factors_.size());
    factors_.push_back({extent, true});
  }
  return true;
}

void StridedView::Repeat(size_t at, const PrimExpr& extent) {
  dims_.insert(dims_.begin() + static_cast<std::ptrdiff_t>(at), std::vector<size_t>{});
  if (DimOf(extent) == 1) return;
  dims_[at].push_back(factors_.size());
  factors_.push_back({extent, true});
}

void StridedView::Name(size_t begin, size_t end, char letter) {
  for (size_t d = begin; d < end; ++d) {
    for (size_t f : dims_[d]) factors_[f].letter = letter;
  }
}

bool StridedView::Repeats(size_t begin, size_t end) const {
  for (size_t d = begin; d < end; ++d) {
    if (std::any_of(dims_[d].begin(), dims_[d].end(), [&](size_t f) { return factors_[f].repeats; })) return true;
  }
  return false;
}

PrimExpr StridedView::DropRepeated(char letter) {
  PrimExpr all = PrimExpr(int64_t{1});
  bool behind = false;
  for (size_t f : Flat()) {
    if (factors_[f].letter != letter) continue;
    if (behind && !factors_[f].repeats) return PrimExpr();
    behind = factors_[f].repeats;
    if (!behind) continue;
    all = all * factors_[f].extent;
    factors_[f].letter = 0;
  }
  return all;
}

StridedView::Named StridedView::Collected(std::string_view letters, const std::vector<size_t>& order) const {
  Named out;
  std::vector<PrimExpr> extents;
  std::string found;
  std::vector<size_t> by_letter;  // factors as `order` has them, for the comparison with their order in the value
  for (size_t f : order) {
    const char letter = factors_[f].letter;
    if (found.empty() || found.back() != letter) {
      if (letters.find(letter) == std::string_view::npos || found.find(letter) != std::string::npos) return out;
      found += letter;
      extents.emplace_back(int64_t{1});
    }
    extents.back() = extents.back() * factors_[f].extent;
  }
  for (char letter : letters) {
    by_letter.clear();
    for (size_t f : order) {
      if (factors_[f].letter == letter) by_letter.push_back(f);
    }
    size_t next = 0;
    for (size_t f : Flat()) {
      if (factors_[f].letter == letter && (next >= by_letter.size() || by_letter[next++] != f)) return out;
    }
  }
  std::string missing;
  for (char letter : letters) {
    if (found.find(letter) == std::string::npos) missing += letter, extents.insert(extents.begin(), int64_t{1});
  }
  out.layout = missing + found;
  for (const PrimExpr& e : extents) out.shape.push_back(DimOf(e) >= 0 ? e : arith::CanonicalExtent(e));
  return out;
}

StridedView::Named StridedView::InValue(std::string_view letters) const { return Collected(letters, Flat()); }

}  // namespace baton::relay::transform
