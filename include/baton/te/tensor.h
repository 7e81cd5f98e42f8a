// SPDX-License-Identifier: Apache-2.0
// Tensor expressions: what an operator computes, element by element.
#pragma once

#include <baton/tir/expr.h>

namespace baton::te {

using tir::IterVar;
using tir::Var;

struct OperationNode : Node<OperationNode, Object> {
  static constexpr const char* _type_key = "te.Operation";
  static constexpr bool _type_is_value = false;
  static constexpr bool _type_final = false;
  static constexpr bool _type_abstract = true;
  static constexpr uint32_t _type_child_slots = 6;
  String name;
  String tag;
  Map<String, runtime::Any> attrs;
  static constexpr void Describe(auto& d) {
    d(F<&OperationNode::name>, "Name in text.");
    d(F<&OperationNode::tag>, "Kind of computation, for schedules.");
    d(F<&OperationNode::attrs>, "Further hints.");
  }
};
class Operation : public ObjectRef {
 public:
  BATON_DEFINE_OBJECT_REF_METHODS(Operation, ObjectRef, OperationNode)
};

/// One output of an operation.
struct TensorNode : Node<TensorNode, Object> {
  static constexpr const char* _type_key = "te.Tensor";
  static constexpr bool _type_is_value = false;
  Array<PrimExpr> shape;
  DataType dtype;
  Operation op;
  int64_t value_index = 0;
  static constexpr void Describe(auto& d) {
    d(F<&TensorNode::shape>, "Dimensions, in elements.");
    d(F<&TensorNode::dtype>, "Type of an element.");
    d(F<&TensorNode::op>, "What computes it.");
    d(F<&TensorNode::value_index>, "Which output of it.");
  }
};
/// Index variables of a Compute body.
class Indices {
 public:
  explicit Indices(const Array<Var>& vars) : vars_(vars) {}
  Var operator[](int64_t i) const { return vars_[i]; }
  size_t size() const { return vars_.size(); }
  operator Array<PrimExpr>() const { return Array<PrimExpr>(vars_.begin(), vars_.end()); }  // NOLINT
  const Array<Var>& vars() const { return vars_; }

 private:
  Array<Var> vars_;
};
class BATON_DLL Tensor : public RefTo<TensorNode, ObjectRef> {
 public:
  using RefTo::RefTo;
  const Array<PrimExpr>& shape() const { return (*this)->shape; }
  DataType dtype() const { return (*this)->dtype; }
  int64_t ndim() const { return static_cast<int64_t>((*this)->shape.size()); }
  /// The element at these indices.
  PrimExpr operator()(const Array<PrimExpr>& indices) const;
  PrimExpr operator()(const Indices& i) const { return (*this)(static_cast<Array<PrimExpr>>(i)); }
  template <class... A>
    requires(sizeof...(A) > 0 && (std::is_convertible_v<A, PrimExpr> && ...))
  PrimExpr operator()(const A&... i) const {
    return (*this)(Array<PrimExpr>{PrimExpr(i)...});
  }
};

struct PlaceholderOpNode : Node<PlaceholderOpNode, OperationNode> {
  static constexpr const char* _type_key = "te.PlaceholderOp";
  Array<PrimExpr> shape;
  DataType dtype;
  static constexpr void Describe(auto& d) {
    d(F<&PlaceholderOpNode::shape>, "Dimensions, in elements.");
    d(F<&PlaceholderOpNode::dtype>, "Type of an element.");
  }
};
class PlaceholderOp : public RefTo<PlaceholderOpNode, Operation> {
 public:
  using RefTo::RefTo;
};

struct ComputeOpNode : Node<ComputeOpNode, OperationNode> {
  static constexpr const char* _type_key = "te.ComputeOp";
  Array<IterVar> axis;
  Array<PrimExpr> body;
  static constexpr void Describe(auto& d) {
    d(F<&ComputeOpNode::axis>, "One variable a dimension of the output.", runtime::kBinds);
    d(F<&ComputeOpNode::body>, "Value of an element of each output; a Reduce stands only at the root.");
  }
};
class ComputeOp : public RefTo<ComputeOpNode, Operation> {
 public:
  using RefTo::RefTo;
};

/// An operation that is a statement over whole buffers (sorting, scans, kernels).
struct ExternOpNode : Node<ExternOpNode, OperationNode> {
  static constexpr const char* _type_key = "te.ExternOp";
  static constexpr const char* _doc = "An operation that is a statement over whole buffers (sorting, scans, kernels).";
  Array<Tensor> inputs;
  Array<tir::Buffer> input_buffers;
  Array<tir::Buffer> output_buffers;
  ObjectRef body;
  static constexpr void Describe(auto& d) {
    d(F<&ExternOpNode::inputs>, "What it reads.");
    d(F<&ExternOpNode::input_buffers>, "Buffers that stand for them in body.", runtime::kBinds);
    d(F<&ExternOpNode::output_buffers>, "Buffers it writes.", runtime::kBinds);
    d(F<&ExternOpNode::body>, "A tir.Stmt.");
  }
};
class ExternOp : public RefTo<ExternOpNode, Operation> {
 public:
  using RefTo::RefTo;
};

BATON_DLL Tensor placeholder(Array<PrimExpr> shape, DataType dtype = DataType::Float(32), String name = "placeholder");
inline Tensor Placeholder(Array<PrimExpr> shape, DataType dtype, String name) {
  return placeholder(shape, dtype, name);
}

BATON_DLL Tensor ComputeImpl(const Array<PrimExpr>& shape, const Array<Var>& vars, PrimExpr body, String name,
                             String tag);
BATON_DLL Array<Var> MakeIndexVars(size_t n);
/// A tensor whose element at i is f(i).
template <class Fn>
inline Tensor Compute(const Array<PrimExpr>& shape, Fn f, String name = "compute", String tag = "") {
  Array<Var> vars = MakeIndexVars(shape.size());
  return ComputeImpl(shape, vars, f(Indices(vars)), name, tag);
}
/// Several tensors of one shape from one (tuple-valued) body, as argmax gives value and index.
BATON_DLL Array<Tensor> ComputeMany(const Array<PrimExpr>& shape, const Array<Var>& vars, const Array<PrimExpr>& bodies,
                                    String name, String tag = "");

/// A variable that a reduction runs over: [min, min + extent).
BATON_DLL IterVar ReduceAxis(PrimExpr min, PrimExpr extent, String name = "k");
BATON_DLL PrimExpr Sum(PrimExpr source, const Array<IterVar>& axis);
BATON_DLL PrimExpr Prod(PrimExpr source, const Array<IterVar>& axis);
BATON_DLL PrimExpr MaxOf(PrimExpr source, const Array<IterVar>& axis);
BATON_DLL PrimExpr MinOf(PrimExpr source, const Array<IterVar>& axis);
BATON_DLL PrimExpr AnyOf(PrimExpr source, const Array<IterVar>& axis);
BATON_DLL PrimExpr AllOf(PrimExpr source, const Array<IterVar>& axis);
inline PrimExpr Select(PrimExpr c, PrimExpr t, PrimExpr f) { return tir::Select(c, t, f); }
/// A literal of a dtype.
BATON_DLL PrimExpr Const(double value, DataType dtype);
BATON_DLL PrimExpr ConstInt(int64_t value, DataType dtype = DataType::Int(64));

}  // namespace baton::te
