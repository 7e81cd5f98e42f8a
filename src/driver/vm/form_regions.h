// SPDX-License-Identifier: Apache-2.0
// Which stretches of a function become kernels. Decided by predicates; no code is made here.
#pragma once

#include <baton/support/pointer_map.h>

#include <string>
#include <utility>
#include <vector>

#include "driver/vm/function_values.h"
#include "driver/vm/open_region.h"

namespace baton::driver {

/// Whether the sizes of its tensors are known.
bool IsStatic(const relay::Expr& e);

/// A stretch of a block that is one function.
struct Region {
  using Node = const relay::ExprNode;
  struct Input {
    Node* node;
    Type type;  ///< its tensors, in order, are parameters of the body
  };
  struct Result {
    Node* node;
    int32_t first;  ///< the number of the first of its tensors among the body's results
  };
  std::vector<Node*> nodes;
  std::vector<Node*> before, behind;  ///< tuples and fields among them that are made before or behind it
  size_t end = 0;                     ///< the place in the block of the first expression that is not taken in
  std::string why;                    ///< why it ends there; "" where that expression says it
  bool refused = false;               ///< whether it ends since the extents of that expression do not follow
  int32_t device = 0;
  bool open = false;     ///< whether sizes come when it runs
  bool is_work = false;  ///< whether it computes anything; if not, no kernel begins here
  relay::Function body;  ///< its value is one tuple of tensors; null if nothing reads the results
  std::vector<Input> inputs;
  std::vector<Result> results;
};

/// Forms the regions of a function, block by block in the order of evaluation: types of results are those that later
/// regions read.
class RegionFormer {
 public:
  using Expr = relay::Expr;
  using Node = const relay::ExprNode;

  /// `values` outlives the former.
  explicit RegionFormer(const FunctionValues* values);
  /// Returns the region of what follows from `at`, as far as it is tensor work.
  Region Form(const std::vector<Node*>& list, size_t at);
  /// Returns why no region takes `n` in; "" for values that regions read and do not compute.
  std::string WhyOutside(Node* n) const;
  bool IsOpenTensors(Node* n) const;
  bool IsStaticKernel(Node* n) const;
  /// Returns the type of a value with symbols for open extents: the same where extents are known to be equal.
  Type OpenType(const Expr& e);

 private:
  Expr Resolve(const Expr& e) const { return values_->Resolve(e); }
  // ---- regions whose extents are literals: form_regions.cpp.
  bool IsRead(Node* n, const PointerSet& inside) const;
  void FinishStatic(Region* region) const;

  // ---- The same with extents that are open: open_kernels.cpp.
  bool IsOpenKernel(Node* n) const;
  void NameParameters();
  void NoteBinders(Node* n, const Type& type);
  void NameResult(Node* n, const Type& type, const OpenRegion& region);
  Type WithNames(const Type& type);
  Type Joined(const Type& a, const Type& b);
  Type TypeOfCall(const relay::CallNode* call);
  bool IsBound(const Type& type, const OpenRegion& region) const;
  bool AddOpen(OpenRegion* region, Node* n);
  bool AddAllOpen(OpenRegion* region, const std::vector<Node*>& before, Node* n);
  bool HasOpen(const std::vector<Node*>& nodes) const;
  void FinishOpen(OpenRegion* open, Region* region);

  const FunctionValues* values_;
  PointerMap<Type> open_types_;  // of values, with symbols for extents that are open
  PointerMap<Node*> binders_;    // a value that has the symbol as an extent
  std::vector<std::pair<PrimExpr, PrimExpr>> value_extents_;
  PointerSet closed_;                // calls whose extents do not follow from what they read
  PointerMap<std::string> refused_;  // why the calls in closed_ are there
  int64_t next_symbol_ = 0;
};

}  // namespace baton::driver
