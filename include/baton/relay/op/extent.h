// SPDX-License-Identifier: Apache-2.0
// Extents in attributes: numbers, or expressions of the symbols that types have.
#pragma once

#include <baton/ir/op.h>

namespace baton::relay {

/// A number, or an expression of symbols. Numbers stay plain numbers: in JSON, to Python and in text.
class Extent {
 public:
  Extent() = default;
  Extent(int64_t v) : literal_(v) {}  // NOLINT
  explicit Extent(const PrimExpr& e) {
    const auto* i = e.as<IntImmNode>();
    literal_ = i ? i->value : 0;
    if (!i) expr_ = e;
  }
  bool is_literal() const { return !expr_.defined(); }
  /// The number; 0 for an expression.
  int64_t literal() const { return literal_; }
  PrimExpr expr() const { return expr_.defined() ? expr_ : PrimExpr(literal_); }
  /// Null for a number.
  const PrimExpr& borrowed() const { return expr_; }

 private:
  int64_t literal_ = 0;
  PrimExpr expr_;
};

/// A list of extents; those that are all numbers are as Array<int64_t>.
class ExtentArray : public Array<Extent> {
 public:
  ExtentArray() = default;
  explicit ExtentArray(runtime::ObjectPtr<runtime::Object> n) : Array(std::move(n)) {}
  ExtentArray(std::initializer_list<int64_t> v) : ExtentArray(Array<int64_t>(v)) {}
  ExtentArray(const Array<int64_t>& o)
      : Array(runtime::ObjectPtr<runtime::Object>(  // NOLINT
            const_cast<runtime::ArrayObj*>(o.get()))) {}
  explicit ExtentArray(const Array<PrimExpr>& o) {
    for (const PrimExpr& e : o) push_back(Extent(e));
  }
  /// Whether all are numbers.
  bool is_literal() const {
    for (const Extent& e : *this) {
      if (!e.is_literal()) return false;
    }
    return true;
  }
};

}  // namespace baton::relay

namespace baton::runtime {
template <>
struct HasOwnTraits<relay::Extent> : std::true_type {};
template <>
struct ValueTraits<relay::Extent> {
  static std::string Name() { return "int"; }
  static bool Is(const BatonValue& v) {
    return v.type_code == kBatonInt || v.type_code == kBatonBool || (IsExpr(v) && !AsExpr(v).as<IntImmNode>());
  }
  static relay::Extent From(const BatonValue& v) {
    return IsExpr(v) ? relay::Extent(AsExpr(v)) : relay::Extent(ValueTraits<int64_t>::From(v));
  }
  static void To(const relay::Extent& x, BatonValue* v) {
    if (x.is_literal()) {
      ValueTraits<int64_t>::To(x.literal(), v);
    } else {
      ValueTraits<PrimExpr>::To(x.borrowed(), v);
    }
  }

 private:
  static bool IsExpr(const BatonValue& v) {
    return v.type_code == kBatonObject && ValueTraits<PrimExpr>::Is(v) && AsExpr(v).dtype().is_integral();
  }
  static PrimExpr AsExpr(const BatonValue& v) { return ValueTraits<PrimExpr>::From(v); }
};

template <>
struct HasOwnTraits<relay::ExtentArray> : std::true_type {};
template <>
struct ValueTraits<relay::ExtentArray> {
  static std::string Name() { return "Array<int>"; }
  static bool Is(const BatonValue& v) { return ValueTraits<Array<relay::Extent>>::Is(v); }
  static relay::ExtentArray From(const BatonValue& v) {
    const Array<relay::Extent> list = ValueTraits<Array<relay::Extent>>::From(v);
    return relay::ExtentArray(ObjectPtr<Object>(const_cast<ArrayObj*>(list.get())));
  }
  static void To(const relay::ExtentArray& x, BatonValue* v) { ValueTraits<ObjectRef>::To(x, v); }
};
}  // namespace baton::runtime
