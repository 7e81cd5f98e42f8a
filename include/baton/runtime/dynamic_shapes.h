// SPDX-License-Identifier: Apache-2.0
// Models with dynamic shapes: how extents, sizes and places in the arena follow from the shapes of the inputs.
//
// All of them are words of one array `s` of int64: first the dimensions that callers choose, then what the compiled
// function `sizes` makes of them (extents, bytes of buffers), then the offsets that the planner gives the buffers. The
// entry function reads `s`. A call with new dimensions costs one call of `sizes`, and a plan if the buffers have
// outgrown the plans that are kept; a call with the same dimensions costs nothing.
#pragma once

#include <baton/runtime/data_type.h>
#include <baton/runtime/plan_memory.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace baton::runtime {

/// Dimensions beyond this are refused: products of two of them still fit 64 bits.
inline constexpr int64_t kMaxExtent = int64_t{1} << 31;

/// A dimension that differs from call to call.
struct Dim {
  std::string name;
  int64_t min = 0, max = kMaxExtent, multiple = 1;
};

/// A buffer of the arena whose size follows from the dimensions.
struct DynamicBuffer {
  int32_t first = 0, last = 0;  ///< steps: that which writes it, the last that reads it
  int32_t bytes = 0;            ///< word with its size
  int32_t offset = 0;           ///< word that the planner sets
};

struct DynamicShapes {
  std::vector<Dim> dims;
  /// Symbol of a SizesFunction; empty: the model is static, and nothing else counts.
  std::string sizes;
  int32_t words = 0;          ///< of `s`
  bool reads_values = false;  ///< whether extents depend on values of inputs, which may change while shapes do not
  /// By input, then by output: the word of each extent, -1 for a literal one. For the inputs alone where what
  /// the outputs are long is not known before.
  std::vector<std::vector<int32_t>> extents;
  std::vector<DynamicBuffer> buffers;
  bool defined() const { return !sizes.empty(); }
};

/// Fills the words of `s` up to the offsets. `io` holds the data of inputs and outputs; `threads` is what kernels may
/// use. Returns 0, or another value after BatonBackendSetError where dimensions contradict what the model needs.
using SizesFunction = int32_t (*)(const int64_t* dims, void* const* io, int64_t threads, int64_t* s);

struct TensorInfo;

/// The sizes of one executor: they belong to the shapes of the latest call.
class BATON_DLL ShapeFrame {
 public:
  /// Both outlive the frame.
  ShapeFrame(const DynamicShapes* shapes, const std::vector<TensorInfo>* inputs, SizesFunction sizes);

  /// Another frame of the same model.
  std::unique_ptr<ShapeFrame> Fresh() const { return std::make_unique<ShapeFrame>(shapes_, inputs_, sizes_); }
  /// Notes the shape of an input, whose rank and literal extents fit.
  void SetInput(size_t input, const int64_t* shape);
  /// Brings all words up to date with the inputs' shapes. Throws ValueError that names input, dimension and bound. True
  /// if anything changed.
  bool Update(void* const* io);
  /// Plans memory for dimensions of these sizes, so that no later call within them has to. One a dimension, in order.
  void Reserve(const std::vector<int64_t>& dims);
  /// Forgets the plans.
  void Trim();
  const DynamicShapes& shapes() const { return *shapes_; }

  const int64_t* words() const { return s_.data(); }
  /// Bytes that the arena needs for the latest shapes, and for all plans.
  uint64_t arena_bytes() const { return arena_bytes_; }
  /// Replaces the dynamic extents of `shape`, that of input or output `tensor`.
  void FillShape(size_t tensor, std::vector<int64_t>* shape) const;
  size_t num_plans() const { return plans_.size(); }
  /// How often memory was planned.
  uint64_t planned() const { return planned_; }

 private:
  struct Axis {
    size_t input = 0, axis = 0;
    int32_t word = 0;
  };
  struct Plan {
    std::vector<PlannedBuffer> buffers;  // with room for `bytes` each
    uint64_t bytes = 0;
    uint64_t used = 0;  // when, for the choice of the one to drop
  };
  static constexpr size_t kMaxPlans = 4;

  void BindDims();
  void CallSizes(const std::vector<int64_t>& dims, void* const* io, std::vector<int64_t>* s) const;
  void CheckDerived() const;
  Plan MakePlan(const std::vector<int64_t>& s, void* const* io) const;
  void UsePlan(void* const* io);
  /// "input `x` has shape (1, 600)" and `what`.
  [[noreturn]] void Fail(size_t input, const std::string& what) const;

  const DynamicShapes* shapes_;
  const std::vector<TensorInfo>* inputs_;
  SizesFunction sizes_;
  std::vector<Axis> axes_;
  std::vector<int64_t> first_axis_;      // of each input, in `axes_`
  std::vector<int64_t> given_, latest_;  // extents of `axes_`: as set, and as of the latest update
  std::vector<int64_t> dims_, s_;
  std::vector<Plan> plans_;
  uint64_t clock_ = 0, arena_bytes_ = 0, planned_ = 0;
  bool valid_ = false;
};

/// Throws RuntimeError unless all words of the description lie within it and fit `inputs` and `outputs`.
BATON_DLL void CheckDynamicShapes(const DynamicShapes& shapes, const std::vector<TensorInfo>& inputs,
                                  const std::vector<TensorInfo>& outputs);

}  // namespace baton::runtime
