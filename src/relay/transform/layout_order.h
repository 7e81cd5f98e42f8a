// SPDX-License-Identifier: Apache-2.0
// Orders of a value's dimensions, as ConvertLayout carries them through a program.
#pragma once

#include <baton/relay/op/transform.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <string>
#include <vector>

namespace baton::relay::transform {

/// Another order of a value's dimensions: `to` has the letters of `from`, and may have parts of one, "NCHW16c".
struct Order {
  std::string from, to;
  size_t rank() const { return from.size(); }
  /// Where dimension d of the plain value is in the other: its whole, where it is split.
  int64_t At(int64_t d) const { return Index(from[static_cast<size_t>(d)]); }
  /// Where the part of dimension d is that it is split into; -1 where it is whole.
  int64_t PartAt(int64_t d) const {
    return Index(static_cast<char>(std::tolower(static_cast<unsigned char>(from[static_cast<size_t>(d)]))));
  }
  /// Elements of that part.
  int64_t Factor(int64_t d) const {
    int64_t n = 0;
    for (char c : to) {
      if (c >= '0' && c <= '9') {
        n = n * 10 + (c - '0');
      } else if (std::isupper(static_cast<unsigned char>(c))) {
        n = 0;
      } else {
        if (c == std::tolower(static_cast<unsigned char>(from[static_cast<size_t>(d)]))) return n;
        n = 0;
      }
    }
    return 1;
  }
  bool split() const { return to.find_first_of("0123456789") != std::string::npos; }
  int64_t Index(char letter) const {
    int64_t at = 0;
    for (char c : to) {
      if (c == letter) return at;
      at += !(c >= '0' && c <= '9');
    }
    return -1;
  }
  bool Same(const Order& o) const {
    if (rank() != o.rank()) return false;
    if (split() || o.split()) return from == o.from && to == o.to;
    for (size_t d = 0; d < rank(); ++d) {
      if (At(static_cast<int64_t>(d)) != o.At(static_cast<int64_t>(d))) return false;
    }
    return true;
  }
  bool plain() const { return from == to; }
  /// The layout of a value whose plain layout is this one.
  std::string Of(const std::string& layout) const {
    if (split()) return layout == from ? to : "";
    std::string out = layout;
    for (size_t d = 0; d < rank(); ++d) out[static_cast<size_t>(At(static_cast<int64_t>(d)))] = layout[d];
    return out;
  }
};

/// Whether `to` is `from` with dimensions in two parts, the smaller behind: "NCHW16c".
inline bool IsSplit(const Order& order) {
  std::string whole;
  std::vector<char> parts;
  bool number = false;
  for (char c : order.to) {
    const bool digit = c >= '0' && c <= '9', part = std::islower(static_cast<unsigned char>(c));
    if (part != number && !digit) return false;
    number = digit;
    if (part) parts.push_back(c);
    if (!part && !digit) whole += c;
  }
  std::string a = order.from, b = whole;
  std::sort(a.begin(), a.end()), std::sort(b.begin(), b.end()), std::sort(parts.begin(), parts.end());
  if (a != b || std::unique(a.begin(), a.end()) != a.end() || parts.empty() || number) return false;
  for (size_t i = 0; i < parts.size(); ++i) {
    const char upper = static_cast<char>(std::toupper(static_cast<unsigned char>(parts[i])));
    if ((i > 0 && parts[i] == parts[i - 1]) || whole.find(upper) == std::string::npos) return false;
  }
  return true;
}
inline bool IsOrder(const Order& order) {
  std::string a = order.from, b = order.to;
  std::sort(a.begin(), a.end()), std::sort(b.begin(), b.end());
  return a == b && std::unique(a.begin(), a.end()) == a.end() && a.find_first_of("0123456789") == std::string::npos;
}

/// The layout of an operand that is broadcast to a value in this order: where a dimension that is split has one
/// element, as "NCHW1c". Empty if the parts do not divide it.
inline std::string Divided(const TensorTypeNode* type, const Order& order) {
  if (!order.split()) return order.to;
  std::string to;
  for (char c : order.to) {
    if (c >= '0' && c <= '9') continue;
    if (std::islower(static_cast<unsigned char>(c))) {
      const auto d = static_cast<int64_t>(order.from.find(static_cast<char>(std::toupper(c))));
      const int64_t at = d - static_cast<int64_t>(order.rank() - type->shape.size());
      const int64_t extent = at < 0 ? 1 : DimOf(type->shape[at]), factor = order.Factor(d);
      if (extent != 1 && (extent < 0 || extent % factor != 0)) return "";
      to += std::to_string(extent == 1 ? 1 : factor);
    }
    to += c;
  }
  return to;
}

/// A pair of numbers a dimension for a value in another order; false where a part that is split would get some.
inline bool PadsInOrder(const Array<Array<int64_t>>& now, const Order& order, Array<Array<int64_t>>* out) {
  if (now.size() != order.rank()) return false;
  const auto rank = static_cast<int64_t>(now.size());
  std::vector<Array<int64_t>> at(static_cast<size_t>(
      std::count_if(order.to.begin(), order.to.end(), [](unsigned char c) { return std::isalpha(c) != 0; })));
  for (int64_t d = 0; d < rank; ++d) {
    at[static_cast<size_t>(order.At(d))] = now[d];
    if (order.PartAt(d) < 0) continue;
    if (now[d][0] != 0 || now[d][1] != 0) return false;
    at[static_cast<size_t>(order.PartAt(d))] = {0, 0};
  }
  *out = Array<Array<int64_t>>(at.begin(), at.end());
  return true;
}

/// strided_slice's numbers for a value of this shape in another order; false where they cannot be said: a part that is
/// split is cut at its borders alone, without steps.
inline bool SliceInOrder(const StridedSliceAttrs& a, const Array<PrimExpr>& shape, const Order& order,
                         StridedSliceAttrs* out) {
  const auto rank = static_cast<int64_t>(order.rank());
  const auto count = static_cast<int64_t>(a.begin.size());
  const bool sizes = a.slice_mode == "size";
  if (!a.begin.is_literal() || !a.end.is_literal() || static_cast<int64_t>(shape.size()) != rank || count > rank)
    return false;
  struct Cut {
    int64_t at, begin, end, stride;
  };
  std::vector<Cut> cuts;
  bool leading = !a.axes.defined();  // the first dimensions in order
  for (int64_t i = 0; i < count; ++i) {
    int64_t d = a.axes.defined() ? a.axes[i] : i;
    d = d < 0 ? d + rank : d;
    Cut c{order.At(d), a.begin[i].literal(), i < static_cast<int64_t>(a.end.size()) ? a.end[i].literal() : -1,
          a.strides.size() == 1                        ? a.strides[0]
          : i < static_cast<int64_t>(a.strides.size()) ? a.strides[i]
                                                       : 1};
    leading = leading && c.at == i;
    if (order.PartAt(d) >= 0) {
      const int64_t extent = DimOf(shape[d]), factor = order.Factor(d);
      if (!sizes && extent >= 0) c.end = std::min(c.end, extent);
      const bool rest = sizes && c.end == -1;
      if ((c.stride != 1 && !sizes) || c.begin < 0 || c.begin % factor != 0 ||
          (!rest && (c.end < 0 || c.end % factor != 0)))
        return false;
      c.begin /= factor, c.end = rest ? -1 : c.end / factor;
    }
    cuts.push_back(c);
  }
  const bool all = count == rank && !order.split() && !a.axes.defined();
  if (!leading) std::sort(cuts.begin(), cuts.end(), [](const Cut& x, const Cut& y) { return x.at < y.at; });
  Array<int64_t> begin, end, strides, axes;
  for (const Cut& c : cuts)
    begin.push_back(c.begin), end.push_back(c.end), strides.push_back(c.stride), axes.push_back(c.at);
  *out = a;
  out->begin = begin, out->end = end, out->strides = a.strides.size() == 1 ? a.strides : strides;
  if (!all && !leading) out->axes = axes;
  return true;
}

}  // namespace baton::relay::transform
