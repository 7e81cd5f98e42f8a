// SPDX-License-Identifier: Apache-2.0
/// \file importer.h
/// The interface of an operator's import function: the node with its operands and attributes, and a builder of Relay
/// calls that knows the type of every value and evaluates small constants.
#pragma once

#include <baton/frontend/onnx.h>
#include <baton/relay/expr.h>
#include <baton/runtime/any.h>
#include <baton/runtime/data_type.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "frontend/onnx/reader/proto.h"
#include "host.h"

namespace baton::onnx {

class Importer;

/// The meaning of a value's numbers, where they are not numbers to the model.
struct Form {
  enum Kind : uint8_t {
    kLabels,  ///< places in `texts`
    kHashes,  ///< TextHash of strings that an input has
    kMaps,    ///< each row is a map from `texts`, or else `numbers`, to the row's elements
  };
  Kind kind = kLabels;
  std::vector<std::string> texts;
  std::vector<int64_t> numbers;
  /// For Python, which shows such values: an object with `kind`, and `texts` or `numbers`.
  std::string Json() const;
};
/// FNV-1a of 64 bits, which Python computes too.
int64_t TextHash(std::string_view text);

/// A value of the graph while it is imported. Cheap to copy.
class Value {
 public:
  enum Kind : uint8_t {
    kAbsent,  ///< an optional input or output left out
    kTensor,
    kTuple,     ///< a sequence of known length, or several results of a Relay call
    kNothing,   ///< an ONNX optional without a value
    kSequence,  ///< of a length known when it runs; `items` has what is known of all its elements, if anything is
    kOptional,  ///< with a value or without, known when it runs; `items` has what is known of the value
    kText,      ///< a tensor of strings that come when it runs
    kPoison,    ///< the result of a node that could not be imported; errors about it were reported
    kOpaque,    ///< a Relay value that is none of these (a sequence of unknown length)
  };
  Kind kind = kAbsent;
  DataType dtype;
  bool ranked = false;
  /// Lengths; -1 where unknown.
  std::vector<int64_t> dims;
  /// Elements of a tuple where they are known one by one; what is known of those of a sequence or optional.
  std::vector<Value> items;
  /// The elements, where they are known now.
  std::shared_ptr<const Host> host;
  /// A parameter of the module whose elements are known: read where a shape depends on them, not used in computations.
  bool weight = false;
  /// For integers of rank 0 or 1 whose elements are known in part: null for the others.
  std::shared_ptr<const std::vector<PrimExpr>> partial;
  /// Null for what is as it looks.
  std::shared_ptr<const Form> form;
  /// The source of a matrix that DequantizeLinear made of constants of few bits: null for others.
  std::shared_ptr<const struct FewBits> few_bits;
  /// Null for constants not yet asked for.
  relay::Expr expr;

  explicit operator bool() const { return kind != kAbsent; }
  bool constant() const { return host != nullptr; }
  int rank() const { return ranked ? static_cast<int>(dims.size()) : -1; }
  /// All lengths are known.
  bool fixed() const {
    if (!ranked) return false;
    for (int64_t d : dims) {
      if (d < 0) return false;
    }
    return true;
  }
};

/// (numbers - zero) * scale: numbers (K, N) of constants of 4 bits, scale and zero (K / block, N), rounded up.
struct FewBits {
  Value numbers, scale, zero;  ///< zero: absent for none
  int64_t block = 0;
};

using Values = std::vector<Value>;
using AttrList = std::initializer_list<std::pair<const char*, Any>>;
using Dims = std::vector<int64_t>;

/// A node on its way into Relay.
class Ctx {
 public:
  Ctx(Importer* importer, const Node& node, int since, Values inputs);

  const Node& node() const { return node_; }
  /// The version that defined the operator as this model means it.
  int since() const { return since_; }

  // Operands.
  size_t num_inputs() const { return inputs_.size(); }
  bool Has(size_t i) const { return i < inputs_.size() && inputs_[i].kind != Value::kAbsent; }
  /// Operand `i`; an error if the model has none.
  const Value& In(size_t i) const;
  /// Operand `i` as a tensor of numbers; other kinds are refused.
  Value T(size_t i) const;
  /// Operand `i` as a tensor, of texts too.
  Value Texts(size_t i) const;
  /// Operand `i` or an absent value.
  Value Opt(size_t i) const;
  size_t num_outputs() const { return node_.outputs.size(); }
  bool Wants(size_t i) const { return i < node_.outputs.size() && !node_.outputs[i].empty(); }

  // Attributes. Each one read is marked; one that no importer asked for is an error.
  bool HasAttr(const char* name) const;
  int64_t Int(const char* name, int64_t default_value);
  int64_t Int(const char* name);
  double Float(const char* name, double default_value);
  std::string Str(const char* name, const char* default_value);
  Dims Ints(const char* name);
  std::vector<float> Floats(const char* name);
  std::vector<std::string> Strs(const char* name);
  const Tensor* TensorAttr(const char* name);
  const SparseTensor* SparseAttr(const char* name);
  const Graph* GraphAttr(const char* name);
  const Type* TypeAttr(const char* name);
  /// Marks an attribute as read that does not affect results.
  void Ignore(const char* name);
  /// Attributes not yet asked for.
  std::vector<std::string> Unread() const;

  /// The operator, or this use of it, is not supported.
  [[noreturn]] void Unsupported(const std::string& why) const;
  /// The model is wrong here.
  [[noreturn]] void Fail(const std::string& why) const;

  // Building.
  Value Call(const char* op, const Values& args, AttrList attrs = {});
  Value CallTuple(const char* op, const Values& tuple, AttrList attrs = {});
  /// A call whose attributes are in a list made at run time of the importer.
  Value CallWith(const char* op, const Values& args, const std::vector<std::pair<const char*, Any>>& attrs);
  Value Tuple(const Values& items);
  Value Item(const Value& tuple, size_t i);
  Value Constant(std::shared_ptr<const Host> host);
  Value Scalar(DataType dtype, double value);
  Value Int64s(const Dims& values);
  Value Int64(int64_t value);
  /// The tensor of an attribute or initializer.
  Value FromTensor(const Tensor& t);
  /// A tensor of which the type alone is known; -1 is a length that is not.
  Value Unknown(DataType dtype, const Dims& dims);

  // Known facts of values.
  bool Known(const Value& v) const { return v.host != nullptr; }
  /// Elements of a constant integer tensor.
  Dims KnownInts(const Value& v) const;
  double KnownScalar(const Value& v) const;
  /// The same, or lengths that are symbols, where some elements are known. Needs the value where none is known.
  std::vector<std::optional<int64_t>> PartlyKnownLengths(const Value& v) const;
  /// Rank of `v`; the node is unsupported where it is unknown.
  int Rank(const Value& v) const;
  /// Length of axis `i` (negative from the end); the node is unsupported where it is unknown.
  int64_t Dim(const Value& v, int i) const;
  /// Lengths of `v`; the node is unsupported where one is unknown.
  const Dims& Fixed(const Value& v) const;
  /// 0 <= axis < rank, or the model is wrong.
  int Axis(int64_t axis, int rank) const;

  // Lengths that may be symbols. Assumptions about them are noted in the module.
  /// Lengths of `v`, literals or symbols; the node waits for run time where one is neither.
  const Dims& Lengths(const Value& v) const;
  /// Length of axis `i`, likewise.
  int64_t Length(const Value& v, int i) const;
  /// Elements of an integer operand, likewise.
  Dims KnownLengths(const Value& v) const;
  static bool IsSymbol(int64_t length);
  /// Whether all lengths are literals or symbols.
  static bool Sized(const Value& v);
  int64_t Plus(int64_t a, int64_t b) const;
  int64_t Minus(int64_t a, int64_t b) const;
  int64_t Times(int64_t a, int64_t b) const;
  /// Rounded down; `b` is not 0.
  int64_t Over(int64_t a, int64_t b) const;
  int64_t Most(int64_t a, int64_t b) const;
  /// Product of dims[begin..end).
  int64_t Volume(const Dims& dims, size_t begin, size_t end) const;
  int64_t Volume(const Dims& dims) const { return Volume(dims, 0, dims.size()); }
  /// False where both are never equal; else they are assumed to be.
  bool AssumeEqual(int64_t a, int64_t b) const;
  /// The shape that both broadcast to; false where they never do.
  bool Broadcast(const Dims& a, const Dims& b, Dims* out) const;

  // Relay calls by short names; a call that would change nothing is not made.
  Value Cast(const Value& v, DataType dtype);
  Value Reshape(const Value& v, const Dims& shape);
  Value Transpose(const Value& v, const Dims& perm);
  Value Unsqueeze(const Value& v, Dims axes);
  Value Squeeze(const Value& v, Dims axes);
  Value BroadcastTo(const Value& v, const Dims& shape);
  Value Slice(const Value& v, int axis, int64_t begin, int64_t end);
  Value Concat(const Values& v, int axis);
  Value Add(const Value& a, const Value& b) { return Call("add", {a, b}); }
  Value Sub(const Value& a, const Value& b) { return Call("subtract", {a, b}); }
  Value Mul(const Value& a, const Value& b) { return Call("multiply", {a, b}); }
  Value Div(const Value& a, const Value& b) { return Call("divide", {a, b}); }
  Value Add(const Value& a, double b) { return Add(a, Scalar(a.dtype, b)); }
  Value Sub(const Value& a, double b) { return Sub(a, Scalar(a.dtype, b)); }
  Value Mul(const Value& a, double b) { return Mul(a, Scalar(a.dtype, b)); }
  Value Div(const Value& a, double b) { return Div(a, Scalar(a.dtype, b)); }
  Value Where(const Value& c, const Value& a, const Value& b) { return Call("where", {c, a, b}); }
  Value Full(DataType dtype, double value, const Dims& shape);
  /// numpy.matmul.
  Value MatMul(Value a, Value b, DataType out = DataType::Void());
  /// Lengths as an int64 vector; a constant where they are known.
  Value ShapeOf(const Value& v);

  /// About to allocate `count` elements of `bytes` each because numbers in the file say so; refuses what a file of that
  /// size may not ask for.
  void Reserve(int64_t count, int64_t bytes) const;

  Importer* importer() const { return importer_; }

 private:
  const Attribute* Take(const char* name, Attribute::Kind kind);
  Importer* importer_;
  const Node& node_;
  int since_;
  Values inputs_;
  std::vector<bool> read_;
};

/// Larger tensors are an error: no machine has the memory, and products of lengths with strides and the like stay in
/// range.
constexpr int64_t kMaxElements = int64_t{1} << 48;
/// Axes of a tensor, at most.
constexpr int64_t kMaxRank = 64;
/// The error in a shape, whose lengths may be -1; empty if there is none.
std::string ShapeFault(const Dims& dims);

/// Thrown where an importer needs a value or a length that is not known yet; the node is left for run time then.
struct NeedsValue {
  std::string what;
};
/// Thrown by Ctx::Unsupported; collected over the graph.
struct NodeUnsupported {
  std::string why;
};

using ImportOptions = frontend::OnnxOptions;

/// The module and, where weights are not frozen, their values by name.
struct Imported {
  IRModule mod;
  Map<String, NDArray> params;
};
Imported Import(const std::shared_ptr<Model>& model, const ImportOptions& options);

/// Imports one node: its results in the order of the node's outputs (it may give fewer than the operator has).
using ImportFn = Values (*)(Ctx&);

/// The types of a node's results, where it waits for values or lengths of its operands: those of Relay calls whose
/// operands are known by their types alone. The calls themselves are dropped. Throws NeedsValue where a rank is not
/// known either; may give fewer results than the node has.
using TypesFn = Values (*)(Ctx&);

struct OpRow {
  const char* domain;
  const char* op;
  ImportFn import;
  TypesFn types = nullptr;  ///< null: only what the model declares
};
/// Each file of `ops/` gives its table.
using OpTable = std::vector<OpRow>;

Any IntsAny(const Dims& v);

}  // namespace baton::onnx
