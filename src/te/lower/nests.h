// SPDX-License-Identifier: Apache-2.0
// Loop nests of stages: pure stores, transposed tiles, reductions.
#pragma once

#include <vector>

#include "te/lower/loops.h"
#include "te/lower/stages.h"

namespace baton::te::lower {

/// Where a tensor lies, seen from inside a group's shared loops.
struct Home {
  Buffer buffer;
  size_t drop = 0;  // leading indices that the buffer does not have
  Array<PrimExpr> shape;
};
/// Index of a stage's element in its home.
PrimExpr HomeIndex(const Home& h, const std::vector<PrimExpr>& index);

/// The loops and the store of a nest whose rounds each store an element of their own, which no other round reads: a
/// stage, though it is written as a statement. False of other nests.
bool AsStore(const Stmt& nest, std::vector<Axis>* axes, Store* store);

class NestEmitter {
 public:
  /// `work_items`: for a device of many threads. Each stage is a nest whose data axes are one parallel loop, no
  /// vectors. `plain`: for one thread and no vectors.
  NestEmitter(Names* names, bool work_items, bool plain)
      : names_(names), work_items_(work_items), plain_(plain), scalar_reduce_(work_items) {}

  /// Loops over the axes around `body`; the outermost are joined and parallel if the work is worth it. Each task has
  /// memory of its own for `scratch`, which is for one round.
  Stmt OuterLoops(const std::vector<Axis>& axes, Stmt body, const Work& work, const std::vector<Buffer>& scratch = {});
  /// Loops over `axes` of pure stores.
  Stmt EmitStores(std::vector<Axis> axes, std::vector<Store> stores, const Work& work, bool outer, int depth = 0);
  /// Loops over `axes` of a reduction whose results go to `index` of `homes`.
  Stmt EmitReduce(const Stage& s, const std::vector<Home>& homes, const std::vector<PrimExpr>& index,
                  std::vector<Axis> axes, std::vector<PrimExpr> values, PrimExpr condition, const Work& work,
                  bool outermost, int depth = 0);
  Names* names() { return names_; }
  bool work_items() const { return work_items_; }
  bool plain() const { return plain_; }
  /// Whether reductions are scalar because the loops around them are vectors, or there are none.
  bool scalar_reduce() const { return scalar_reduce_ || plain_; }
  void set_scalar_reduce(bool on) { scalar_reduce_ = on; }

 private:
  /// Reads that run along another axis than the store: both sides in whole vectors by way of square tiles that are
  /// transposed in registers. False where that is not the case at hand.
  bool EmitTiled(const std::vector<Axis>& axes, const std::vector<Store>& stores, const Work& work, bool outer,
                 int depth, Stmt* out);
  /// The loops of EmitTiled: `ai` is the axis along which the reads `bad` are contiguous.
  Stmt EmitTiles(const std::vector<Axis>& axes, size_t ai, const Store& store, const std::vector<PrimExpr>& bad,
                 int64_t tile, const Work& work);
  /// The parallel loop over axes whose extents are not literals: each task has a run of neighbouring rounds, which it
  /// finds by one division and walks through by nested loops.
  Stmt Chunks(const std::vector<Axis>& axes, Stmt body, const Work& work, const std::vector<Buffer>& scratch);

  Names* names_;
  bool work_items_;
  bool plain_;
  bool scalar_reduce_;
};

}  // namespace baton::te::lower
