// SPDX-License-Identifier: Apache-2.0
// Loops of the general schedule: axes and stores, how accesses move with an axis, and what is done to axes because of
// it.
#pragma once

#include <baton/arith/analyzer.h>
#include <baton/te/tensor.h>
#include <baton/tir/functor.h>
#include <baton/tir/op.h>
#include <baton/tir/stmt.h>

#include <functional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace baton::te::lower {

using arith::Analyzer;
using arith::LinearForm;
using tir::Buffer;
using tir::ForKind;
using tir::Stmt;

inline constexpr int64_t kVectorBytes = 64;
/// Work below which a parallel launch does not pay: about six microseconds of one core, in additions of one element.
inline constexpr double kParallelWork = 400000;

/// Value of a size that is a literal; a typical one where it is not known.
int64_t SizeOf(const PrimExpr& e);
/// Elements of a tensor, with typical sizes for dimensions that are not known. At most 1e15.
int64_t NumElements(const Array<PrimExpr>& shape);
PrimExpr Product(const Array<PrimExpr>& shape, size_t begin = 0);
/// Index into the flat buffer.
PrimExpr FlatIndex(const Array<PrimExpr>& shape, const Array<PrimExpr>& indices);

/// Work of a nest, in additions of one element.
struct Work {
  double guess = 0;  ///< with typical sizes for extents that are not known
  PrimExpr exact;    ///< the work of a call, where it depends on extents that are not known; else null

  Work() = default;
  Work(double known) : guess(known) {}  // NOLINT: a number is work that is known
  /// `cost` in each round of loops with these extents.
  static Work Of(double cost, const Array<PrimExpr>& extents);
  Work operator+(const Work& other) const;
  Work operator*(double share) const;
  bool MayPay() const { return exact.defined() || guess >= kParallelWork; }
  /// Whether a parallel launch pays, asked where MayPay() says yes.
  PrimExpr Pays() const {
    return exact.defined() ? PrimExpr(static_cast<int64_t>(kParallelWork)) <= exact : PrimExpr(1);
  }
};

/// A loop variable of a stage.
struct Axis {
  Var var;
  PrimExpr extent;
  bool reduce = false;
};

/// A store with its place, values still over axis variables.
struct Store {
  Buffer buffer;
  PrimExpr index;
  PrimExpr value;
};

/// Names that are used once in a function.
class Names {
 public:
  std::string Unique(const std::string& base) {
    int n = seen_[base]++;
    return n ? base + "_" + std::to_string(n) : base;
  }

 private:
  std::unordered_map<std::string, int> seen_;
};

// ---- Statements

Stmt AllocateStmt(const Buffer& b, Stmt body);
Stmt MakeFor(const Var& v, const PrimExpr& extent, ForKind kind, Stmt body);
/// A parallel loop, if `work` pays for it.
Stmt MakeParallel(const Var& v, const PrimExpr& extent, const Work& work, Stmt body);
Stmt MakeLet(const Var& v, const PrimExpr& value, Stmt body);
Stmt MakeStore(const Buffer& b, const PrimExpr& index, const PrimExpr& value);
Stmt Guard(PrimExpr cond, Stmt body);
/// The loop over `axis` with `lanes` rounds at a time, and what is left under a mask. `body` takes the index. `work`:
/// of the loop, if it may be parallel.
Stmt VectorLoop(const Axis& axis, int64_t lanes, const std::function<Stmt(const PrimExpr&)>& body,
                const Work& work = Work());
/// Emits the parts of a cut loop nest: axes of the part, the map from the old variables to the new ones, and its share
/// of the rounds.
using EmitPart = std::function<Stmt(const std::vector<Axis>&, const tir::VarMap&, double)>;
/// The parts of `axes` when axis `i` is cut.
Stmt EmitParts(const std::vector<Axis>& axes, size_t i, const std::vector<int64_t>& cuts, const EmitPart& emit);
/// The two parts of `axes` when axis `i`, whose extent is no literal, is cut into whole tiles and what is left.
Stmt EmitTilesAndRest(const std::vector<Axis>& axes, size_t i, int64_t tile, const EmitPart& emit);

// ---- Accesses

/// Bytes of the widest type that a vector of this computation holds; index arithmetic does not count.
int64_t WidestBytes(const std::vector<PrimExpr>& values);

/// How an expression's loads move with a variable: loads that are neither constant nor contiguous in it.
struct Strides {
  int bad = 0;  // loads with another stride, or one that is not linear
  int contiguous = 0;
};
Strides StridesOf(const std::vector<PrimExpr>& values, const Var& v, Analyzer* an);
/// False where a vector would only be taken apart again: stores that do not move by one, types without vectors.
bool Vectorizable(const std::vector<Store>& stores, const Axis& axis, Analyzer* an);

std::vector<PrimExpr> ValuesOf(const std::vector<Store>& stores);

// ---- Axes

/// Joins neighbouring axes where every access moves through them as through one.
void Collapse(std::vector<Axis>* axes, std::vector<Store>* stores);
/// An axis that is only read as x // c and x % c is two axes: packed layouts, and reshapes.
void SplitAxes(std::vector<Axis>* axes, std::vector<Store>* stores, Analyzer* an);
/// Places where conditions of the values begin or end to hold for certain along an axis; `an` knows the other
/// variables.
std::vector<int64_t> CutPoints(const std::vector<PrimExpr>& values, const Axis& axis, Analyzer* an);

}  // namespace baton::te::lower
