// SPDX-License-Identifier: Apache-2.0
// Regions for other compilers: parts between annotation.compiler_begin and annotation.compiler_end.
#pragma once

#include <baton/relay/expr.h>
#include <baton/support/pointer_map.h>

#include <string_view>
#include <vector>

namespace baton::relay {

/// Functions that only wrap a region, and compute nothing: functions for one compiler, composites, fusion groups.
bool IsOpaqueFunction(const FunctionNode* f);
/// The compiler that an annotation names; empty for any other expression.
std::string_view BeginsRegion(const ExprNode* e);
std::string_view EndsRegion(const ExprNode* e);

/// The regions of a function. A region is what a compiler_end is computed of, up to the next compiler_begin; those that
/// share a node are one.
class CompilerRegions {
 public:
  struct Region {
    std::string_view compiler;
    std::vector<const CallNode*> begins, ends;  ///< inputs first
  };

  /// Throws CompileError where annotations of several compilers are within each other.
  explicit CompilerRegions(const Function& f);

  /// Joins neighbours of one compiler where no value would have to leave the joined region and come back.
  void Merge();
  /// Throws CompileError where a region needs its own result.
  void CheckOrder() const;

  /// Number of the region that an end belongs to.
  int Of(const CallNode* end) const { return Find(*number_.Find(end)); }
  /// Whether a begin takes the result of the region that it belongs to, since both became one.
  bool IsInner(const CallNode* begin) const;
  const Region& operator[](int id) const { return regions_[id]; }
  size_t size() const { return regions_.size(); }
  int Find(int id) const;

 private:
  struct Units;
  void Union(int a, int b);
  void Collect();

  std::vector<const ExprNode*> nodes_;  ///< inputs first
  PointerMap<int> number_;              ///< region of its parts, and of ends
  PointerMap<int> begin_of_;            ///< region of a begin
  std::vector<Region> regions_;
  mutable std::vector<int> parent_;  ///< regions that are one: a forest
};

}  // namespace baton::relay
