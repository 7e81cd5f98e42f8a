// SPDX-License-Identifier: Apache-2.0
// Local identities as rows of tables: a pattern, its replacement, and how exact it is.
#pragma once

#include <baton/relay/dataflow_pattern.h>
#include <baton/relay/op.h>
#include <relay/pattern/matcher.h>

#include <memory>
#include <string>
#include <vector>

namespace baton::relay::transform {

/// How a row may change values of floating tensors. On integers and bools all rows are exact.
enum class Exactness : int32_t {
  kExact = 0,         ///< nothing
  kButNanOrZero = 1,  ///< where either side is NaN, and the sign of zeros
  kReassociates = 2,  ///< rounding: as exact in real numbers
};

/// Dtypes that a row holds for, of the first argument of the matched call.
enum RowDomain : uint32_t { kFloats = 1, kInts = 2, kBools = 4, kNumbers = 3, kAll = 7 };

/// A match, as rows see it.
class Found {
 public:
  Found(const PatternTable& table, const PatternMatcher& matcher, const ExprNode* root)
      : table_(table), matcher_(matcher), root_(root) {}
  /// The match of a pattern of the row; null if the pattern was not involved.
  Expr operator[](const DFPattern& p) const;
  const CallNode* Call(const DFPattern& p) const { return (*this)[p].as<CallNode>(); }
  const CallNode* root() const { return static_cast<const CallNode*>(root_); }
  template <class A>
  const A& Attrs(const DFPattern& p) const {
    return AttrsAs<A>(Call(p)->attrs);
  }
  template <class A>
  const A& RootAttrs() const {
    return AttrsAs<A>(root()->attrs);
  }

 private:
  const PatternTable& table_;
  const PatternMatcher& matcher_;
  const ExprNode* root_;
};

struct SimplifyRow {
  const char* text;  ///< "x + 0 -> x": its name
  Exactness floats;
  uint32_t domain;
  /// Whether it holds for extents that are not known. Others see only tensors whose extents are numbers, and a result
  /// of another type than the call's is not taken.
  bool any_shape;
  DFPattern pattern;
  Expr (*make)(const Found&);  ///< null: it does not apply after all
  bool of_relay = false;   ///< Relay 0.8's pass did it: programs that ask for "relay" have it whatever its exactness
  bool but_relay = false;  ///< Relay 0.8's pass left it as it was: programs that ask for "relay" do not have it
};

std::vector<SimplifyRow> ArithmeticRows();
std::vector<SimplifyRow> LogicRows();
std::vector<SimplifyRow> ShapeRows();
std::vector<SimplifyRow> SliceRows();
std::vector<SimplifyRow> ReduceRows();

// ---- For rows.
/// Any operator whose definition has a trait.
DFPattern AnyOpWith(bool (*has)(const OpDef& def));
/// A call that gives a tensor of one number: `full`, `zeros`, `ones` and their like.
const DFPattern& Filled();
/// The number that all elements of a constant (or of `full`, `zeros`, `ones`) are; false if they differ.
bool Splat(const Expr& e, double* value);
/// The same of a constant alone, with one element where shapes are not known.
bool IsSplat(const Expr& e, double value);
/// The same, and the sign of zero too.
bool IsSplatBits(const Expr& e, double value);
const TensorTypeNode* TensorOf(const Expr& e);
std::vector<int64_t> ShapeOf(const Expr& e);  ///< of a tensor whose extents are numbers
bool HasStaticShape(const Expr& e);
DataType DtypeOf(const Expr& e);
/// A tensor of the type of `like`, every element `value`.
Expr FullLike(const Expr& like, double value);
/// A reshape to extents that are numbers, 0 among them.
Expr ReshapeToShape(const Expr& x, const std::vector<int64_t>& shape);

using E = Exactness;
/// Patterns of rows: any two expressions.
inline const DFPattern& X() {
  static const DFPattern p = IsWildcard();
  return p;
}
inline const DFPattern& Y() {
  static const DFPattern p = IsWildcard();
  return p;
}
inline DFPattern Of(const char* op, const DFPattern& a) { return IsOp(op)({a}); }
inline DFPattern Of(const char* op, const DFPattern& a, const DFPattern& b) { return IsOp(op)({a, b}); }
/// Replacements that several rows share.
inline Expr JustX(const Found& f) { return f[X()]; }

}  // namespace baton::relay::transform
