// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <baton/tir/race.h>

#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tir/thread_axes.h"

namespace baton::tir::interpreter {

/// The last accesses of each word of memory in a kernel. Blocks are never ordered. Threads of a block are ordered by a
/// barrier of the memory's scope, and those of a warp by one of scope "warp". Reports do not depend on the order in
/// which threads are interpreted, as long as it takes the same branches.
class RaceFinder {
 public:
  explicit RaceFinder(std::vector<Race>* found) : found_(found) {}

  /// A kernel begins: nothing before it races with it. `extents`: a number an axis.
  void BeginKernel(const std::vector<KernelAxis>& axes, const std::vector<int64_t>& extents);
  /// The rounds of a parallel loop are blocks of one thread.
  void BeginLoop(const Var& var, int64_t begin);
  void BeginBlock(int64_t block);
  /// All threads of the block wait: "shared", "global" or "warp".
  void Wait(const std::string& scope);
  /// `root` and `byte` name an element of memory that threads share; `index` is its number in the buffer.
  struct Element {
    const void* root;
    int64_t byte;
    bool of_block;  ///< memory of scope "shared"
    const Buffer& buffer;
    int64_t index;
    std::vector<int64_t> shape;
  };
  void Access(const Element& element, bool writes, int64_t thread, const Object* place);

 private:
  struct By {
    int64_t block = -1, thread = 0, epoch = 0, warp_epoch = 0;
    const Object* place = nullptr;
  };
  /// Two readers that no barrier orders are enough: a write races with both, or it is by one of them.
  struct Word {
    By writer, readers[2];
  };
  struct KeyHash {
    size_t operator()(const std::pair<const void*, int64_t>& key) const {
      return std::hash<const void*>()(key.first) * 31 + std::hash<int64_t>()(key.second);
    }
  };
  using Words = std::unordered_map<std::pair<const void*, int64_t>, Word, KeyHash>;

  bool Ordered(const By& before, const By& now) const;
  void Report(const Element& element, const By& first, bool first_writes, const By& second, bool second_writes);
  std::string ThreadText(const By& by) const;

  std::vector<Race>* const found_;
  std::set<std::tuple<const Object*, const Object*, const Object*>> seen_;  // two places and a buffer
  Words global_, shared_;
  std::vector<std::pair<std::string, int64_t>> blocks_, threads_;  // axes with their extents
  std::vector<int64_t> warp_of_;
  int64_t first_round_ = 0;
  int64_t block_ = 0, shared_epoch_ = 0, global_epoch_ = 0, warp_epoch_ = 0;
};

}  // namespace baton::tir::interpreter
