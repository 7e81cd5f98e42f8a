// SPDX-License-Identifier: Apache-2.0
// The codes of reshape's `newshape`.
#pragma once

#include "../common.h"

namespace baton::relay {

/// The requirements of reshape on its shapes, for messages and for sizes known later.
struct ReshapeChecks {
  virtual ~ReshapeChecks() = default;
  [[noreturn]] virtual void Fail(const char* rule, const std::string& text) const = 0;
  /// False where both are never equal.
  virtual bool Same(const PrimExpr& a, const PrimExpr& b) const = 0;
};
/// In a lowering: the type relation has asked.
struct NoReshapeChecks final : ReshapeChecks {
  void Fail(const char*, const std::string& text) const final { throw InternalError(text); }
  bool Same(const PrimExpr&, const PrimExpr&) const final { return true; }
};
struct TypeReshapeChecks final : ReshapeChecks {
  explicit TypeReshapeChecks(const TypeArgs& in) : in(in) {}
  void Fail(const char* rule, const std::string& text) const final { in.Fail(rule, text); }
  bool Same(const PrimExpr& a, const PrimExpr& b) const final { return in.Same(a, b); }
  const TypeArgs& in;
};

/// Whether one of them is `?`.
bool HasUnknown(const std::vector<PrimExpr>& dims);
PrimExpr ProductExpr(const std::vector<PrimExpr>& dims);

/// The result's shape by the codes of `newshape`; extents as they come, not canonical.
Shape ReshapeShape(const Shape& in, const ExtentArray& codes, bool allowzero, const ReshapeChecks& checks);
/// The same from the right: shape and codes turned round, and the result back.
Shape ReverseReshapeShape(const Shape& in, const ExtentArray& codes, bool allowzero, const ReshapeChecks& checks);

}  // namespace baton::relay
