// SPDX-License-Identifier: Apache-2.0
// Makes allocations fail: malloc and its relatives, and the blocks of objects.
#pragma once

#include <cstdint>

namespace faults {

/// What one run came to.
struct Outcome {
  bool failed = false;         ///< the run ended with an error
  bool out_of_memory = false;  ///< of kind MemoryError
  char text[200] = {};         ///< the error
};

/// From here to the end of its life allocations are counted, and the `nth` of this thread fails (0 is the first; -1
/// none), and with `for_good` all after it.
class Failing {
 public:
  Failing(int64_t nth, bool for_good);
  ~Failing() { End(); }
  /// Allocations work again.
  void End();
  static bool happened();        ///< one has failed
  static int64_t allocations();  ///< that were asked for
  static int64_t live();         ///< allocated less freed
};

/// Blocks of objects are seen as well; not so under sanitizers, where all memory is malloc's.
bool SeesMalloc();

/// Runs `run` once with enough memory, and then with each of its allocations failing, once and for good: all of the
/// first 400, a sample of the others. Each such run has to end with a MemoryError and leave nothing behind, and
/// afterwards `run` works. `absorbs`: some may succeed instead, since they make do with less.
void EachAllocation(const char* what, void (*run)(), bool absorbs = false);

}  // namespace faults
