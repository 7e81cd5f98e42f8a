// SPDX-License-Identifier: Apache-2.0
// The sizes of a region with dynamic shapes: which word of `s` (runtime/dynamic_shapes.h) holds what, and the function
// that computes them.
#pragma once

#include <baton/ir/type.h>
#include <baton/relay/expr.h>
#include <baton/runtime/executor.h>
#include <baton/tir/stmt.h>

#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace baton::driver {

/// Attribute of a function with symbolic extents, by the name of the dimension: [min, max, multiple].
inline constexpr const char* kDynamicDims = "dynamic_dims";

/// Attribute of a function with sizes that depend on values of its inputs, an array for each such value: [variable,
/// number of the input (tuples flattened), element, whether it may be negative].
inline constexpr const char* kValueDims = "value_dims";

/// Attribute of a function whose types have `?`, by the name of an input: what callers call its extents.
inline constexpr const char* kInputExtents = "input_extents";
/// The types of a function's parameters, with symbols of these names.
std::vector<Type> InputTypesOf(const relay::Function& f);

/// Tensor types of a value, tuples flattened; false for other types, and for shapes with unknown extents.
bool FlattenSymbolic(const Type& type, std::vector<TensorType>* out);
/// Whether an extent of the shape is not a literal.
bool IsDynamic(const TensorType& t);
/// The conditions on dimensions, as `sizes` says them: "/layer.3/Add: extents seq and past + 1 must be equal".
std::vector<std::string> GuardTexts(const relay::Function& main);
/// Variables that the inputs of `main` fix by an extent alone, in order, then those of values. False if another
/// one is in the extents of inputs, or in assumptions of types; `*why` says which.
bool BoundDims(const relay::Function& main, std::vector<tir::Var>* dims, std::string* why);

class SizeWords {
 public:
  SizeWords() = default;
  /// The dimensions of a function; its inputs must bind all of them.
  void AddDims(const relay::Function& main);
  bool empty() const { return dims_.empty(); }

  /// The word that holds an extent, -1 for a literal.
  int32_t WordOf(const PrimExpr& extent);
  /// The word with the bytes of a tensor.
  int32_t BytesOf(const TensorType& t) { return Formula(BytesFormula(t)); }
  static PrimExpr BytesFormula(const TensorType& t);
  /// The word with a number of bytes.
  int32_t Bytes(const PrimExpr& formula);
  /// An input or an output, in their order.
  runtime::TensorInfo AddTensor(const std::string& name, const TensorType& t);
  /// A buffer in the arena: its index.
  size_t AddBuffer(int32_t first, int32_t last, int32_t bytes);
  runtime::DynamicBuffer& buffer(size_t i) { return shapes_.buffers[i]; }

  /// The value of a word, for code that takes `s`.
  PrimExpr Load(const tir::Var& s, int32_t word) const;
  PrimExpr LoadVar(const tir::Var& s, const tir::Var& dim) const { return Load(s, WordOfVar(dim)); }
  int32_t WordOfVar(const tir::Var& dim) const;
  /// The place of a buffer in the arena.
  PrimExpr LoadOffset(const tir::Var& s, size_t buffer) const { return Load(s, shapes_.buffers[buffer].offset); }
  /// Gives offsets their words; after it no more words are made.
  void Finish(const std::string& symbol);
  const runtime::DynamicShapes& shapes() const { return shapes_; }
  /// The function `sizes`, as code generators take it. After Finish.
  tir::PrimFunc Function() const;

 private:
  int32_t Formula(const PrimExpr& formula);

  std::vector<tir::Var> dims_;
  std::unordered_map<const Object*, int32_t> dim_words_;
  /// An element of an input, whose word is a formula: the variable itself.
  struct Value {
    tir::Var var;
    int64_t input = 0, element = 0;
    DataType dtype;
    bool negative = false;
  };
  void AddValues(const relay::Function& main);
  std::string OfValues(const PrimExpr& formula) const;
  tir::Stmt ReadValues(const std::vector<tir::Var>& pointers, tir::Stmt body) const;

  std::vector<Value> values_;
  std::vector<PrimExpr> formulas_;       // of the words behind the dimensions
  std::unordered_set<int32_t> extents_;  // words that are lengths of tensors
  struct Guard {
    PrimExpr a, b;  // equal, or `text` is the error
    std::string text;
  };
  std::vector<Guard> guards_;
  runtime::DynamicShapes shapes_;
};

/// The conditions on the inputs of a function, and the shapes of its results where known, as a function
/// `symbol` that computes it. Null where inputs are not named: some are not tensors, or have unknown extents.
struct EntryShapes {
  std::vector<runtime::TensorInfo> inputs, outputs;
  runtime::DynamicShapes shapes;
  tir::PrimFunc sizes;
};
EntryShapes ShapesOfEntry(const relay::Function& main, const std::vector<std::string>& outputs,
                          const std::string& symbol);

}  // namespace baton::driver
