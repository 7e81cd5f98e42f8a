// SPDX-License-Identifier: Apache-2.0
// Operators of explicit memory and of the virtual machine, by which passes make allocations and calls of kernels
// explicit. Here are their types; their meaning is in the machine.
#include <baton/relay/op/annotation.h>
#include <baton/relay/op/make.h>
#include <baton/relay/op/transform.h>
#include <host/functions.h>
#include <relay/types/builtin_types.h>

#include "../common.h"

namespace baton::relay {
namespace {

struct ShapeFuncAttrs : AttrsNode<ShapeFuncAttrs> {
  static constexpr auto _type_key = "relay.attrs.ShapeFuncAttrs";
  Array<int64_t> is_input = {};
  static constexpr void Describe(auto& d) {
    d(F<&ShapeFuncAttrs::is_input>, "For each input: 1 if its value counts, 0 if its shape does.");
  }
};

struct ReshapeTensorAttrs : AttrsNode<ReshapeTensorAttrs> {
  static constexpr auto _type_key = "relay.attrs.ReshapeTensorAttrs";
  Array<int64_t> newshape;
  static constexpr void Describe(auto& d) {
    d(F<&ReshapeTensorAttrs::newshape>, "Extents, -1 where not known.", kRequired);
  }
};

struct AllocTensorAttrs : AttrsNode<AllocTensorAttrs> {
  static constexpr auto _type_key = "relay.attrs.AllocTensorAttrs";
  DataType dtype = DataType::Float(32);
  Array<int64_t> const_shape = NoInts();
  Array<int64_t> assert_shape = NoInts();
  static constexpr void Describe(auto& d) {
    d(F<&AllocTensorAttrs::dtype>, "Dtype of the tensor.");
    d(F<&AllocTensorAttrs::const_shape>, "Its extents where they are known.");
    d(F<&AllocTensorAttrs::assert_shape>, "Extents that the operand `shape` is known to have; -1 for any.");
  }
};

Type Unit() { return TupleType::Empty(); }

Type VmShapeOfType(const ShapeOfAttrs& a, const TypeArgs& in) {
  if (!a.dtype.is_integral())
    in.Fail("R1", "dtype is " + DataType2String(a.dtype) + ", where an integer one is wanted");
  return TensorType(Shape{PrimExpr(in.ndim(0))}, a.dtype);
}
Type UnitType(const TypeArgs&) { return Unit(); }
Type ReshapeTensorType(const ReshapeTensorAttrs& a, const TypeArgs& in) {
  in.Integral(1, "R1");
  in.Rank(1, 1, "R1");
  if (in.dim(1, 0) >= 0 && in.dim(1, 0) != static_cast<int64_t>(a.newshape.size())) {
    in.Fail("R1", in.Show(1) + " and newshape " + ShowInts(ToInts(a.newshape)) + " differ in length");
  }
  int64_t have = ProductOf(Dims(in.shape(0))), want = ProductOf(ToInts(a.newshape));
  if (have >= 0 && want >= 0 && have != want)
    in.Fail("R2", in.Show(0) + " has " + Str(have) + " elements and newshape " + ShowInts(ToInts(a.newshape)) + " " +
                      Str(want));
  return TensorType(MakeShape(ToInts(a.newshape)), in.dtype(0));
}
Type AllocStorageType(const TypeArgs& in) {
  for (int i = 0; i < 2; ++i) {
    in.Integral(i, "R1");
    in.Rank(i, 0, "R1");
  }
  return StorageType();
}
Type AllocTensorType(const AllocTensorAttrs& a, const TypeArgs& in) {
  const auto* storage = in.type(0).as<TypeCallNode>();
  if (!storage)
    in.Fail("R1", "`storage` is " + ShowType(in.type(0)) + ", where what memory.alloc_storage gives is wanted");
  in.Rank(1, 0, "R2");
  in.Rank(2, 1, "R2");
  in.Integral(2, "R2");
  for (const Array<int64_t>& said : {a.assert_shape, a.const_shape}) {
    if (said.defined() && in.dim(2, 0) >= 0 && in.dim(2, 0) != static_cast<int64_t>(said.size()))
      in.Fail("R4", in.Show(2) + " and the known extents " + ShowInts(ToInts(said)) + " differ in length");
  }
  if (a.assert_shape.defined()) return TensorType(MakeShape(ToInts(a.assert_shape)), a.dtype);
  if (a.const_shape.defined()) return TensorType(MakeShape(ToInts(a.const_shape)), a.dtype);
  if (const runtime::NDArray* v = in.Constant(2)) {
    Ints shape = v->ToInts();
    for (int64_t d : shape) {
      if (d < 0) in.Fail("R4", "`shape` is " + ShowInts(shape));
    }
    return TensorType(MakeShape(shape), a.dtype);
  }
  int64_t n = in.dim(2, 0);
  if (n < 0) in.Fail("R3", in.Show(2) + ": the rank of the tensor is not known; give assert_shape");
  return TensorType(MakeShape(Ints(n, -1)), a.dtype);
}
Type AppendType(const TypeArgs& in) {
  in.MinRank(0, 1, "R1");
  in.SameDtype(0, 1, "R2");
  bool fits = in.ndim(0) == in.ndim(1);
  for (int64_t d = 1; fits && d < in.ndim(0); ++d) fits = in.Same(in.shape(0)[d], in.shape(1)[d]);
  if (!fits) in.Fail("R2", in.Show(0) + " takes no rows of " + in.Show(1));
  Shape out = in.shape(0);
  out.Set(0, TypeDim(in.shape(0)[0] + in.shape(1)[0]));
  return TensorType(out, in.dtype(0));
}
Expr DecomposeAppend(const Call&, const Array<Expr>& args) {
  return MakeCall<ConcatenateAttrs>(op::concatenate, {Tuple(args)}, [](ConcatenateAttrs* a) { a->axis = 0; });
}

}  // namespace

const Op op::vm_shape_of = DefineOp({
    .name = "vm.shape_of",
    .doc = "shape_of, outside fusion; folding answers it where the type says the shape.",
    .inputs = {{"data", "Its shape counts alone."}},
    .output = "Rank 1. R1: an integer dtype.",
    .attrs = TypeOf<ShapeOfAttrs>,
    .type_rel = Rel<"vm.shape_of", VmShapeOfType>,
    .host = host::ShapeOf,
    .fold = Fold::kNever,
    .source = "Relay",
    .traits = {.value_of_types = ShapeOfTypes, .shape_only = true},
});
const Op op::vm_shape_func = DefineOp({
    .name = "vm.shape_func",
    .doc = "Runs a function's shape function: computes its outputs' shapes into tensors.",
    .inputs = {{"func", "A primitive function."},
               {"inputs", "A tuple of shapes or values."},
               {"outputs", "A tuple of tensors to write."}},
    .output = "The unit tuple.",
    .attrs = TypeOf<ShapeFuncAttrs>,
    .type_rel = Rel<"vm.shape_func", UnitType>,
    .fold = Fold::kNever,
    .source = "Relay",
});
const Op op::vm_invoke_tvm_op = DefineOp({
    .name = "vm.invoke_tvm_op",
    .doc = "Runs a compiled function on tensors that are there.",
    .inputs = {{"func", "A primitive function."},
               {"inputs", "A tuple of tensors."},
               {"outputs", "A tuple of tensors to write."}},
    .output = "The unit tuple.",
    .type_rel = Rel<"vm.invoke_tvm_op", UnitType>,
    .gradient = NoGradient("it calls compiled code; differentiate before lowering"),
    .fold = Fold::kNever,
    .source = "Relay",
});
const Op op::vm_reshape_tensor = DefineOp({
    .name = "vm.reshape_tensor",
    .doc = "The same memory under another shape.",
    .inputs = {{"data", "Any tensor."}, {"shape", "R1: integers, rank 1, as long as newshape."}},
    .output = "Shape newshape, dtype of `data`. R2: as many elements.",
    .attrs = TypeOf<ReshapeTensorAttrs>,
    .type_rel = Rel<"vm.reshape_tensor", ReshapeTensorType>,
    .host = host::ReshapeTensor,
    .gradient = NoGradient("it belongs to lowered programs; differentiate before lowering"),
    .fold = Fold::kNever,
    .source = "Relay",
});
const Op op::memory_alloc_storage = DefineOp({
    .name = "memory.alloc_storage",
    .doc = "Memory of a size.",
    .inputs = {{"size", "In bytes. R1: an integer scalar."}, {"alignment", "In bytes. R1: an integer scalar."}},
    .output = "Storage.",
    .attrs = TypeOf<AllocStorageAttrs>,
    .type_rel = Rel<"memory.alloc_storage", AllocStorageType>,
    .fold = Fold::kNever,
    .source = "Relay",
});
const Op op::memory_alloc_tensor = DefineOp({
    .name = "memory.alloc_tensor",
    .doc = "A tensor in storage.",
    .inputs = {{"storage", "R1: what memory.alloc_storage gives."},
               {"offset", "In bytes. R2: a scalar."},
               {"shape", "R2: integers, rank 1. R3: a known rank. R4: no extent is negative."}},
    .output = "A tensor of dtype `dtype`. R4: const_shape and assert_shape are as long as `shape`.",
    .attrs = TypeOf<AllocTensorAttrs>,
    .type_rel = Rel<"memory.alloc_tensor", AllocTensorType>,
    .fold = Fold::kNever,
    .source = "Relay",
});
const Op op::memory_append = DefineOp({
    .name = "memory.append",
    .doc =
        "The rows of `state`, then those of `rows`. Where `state` is memory that a session keeps, the rows are written "
        "behind it and nothing else is moved.",
    .inputs = {{"state", "R1: rank 1 or more."}, {"rows", "R2: dtype of `state`, and its shape but for dimension 0."}},
    .output = "As `state`, longer in dimension 0.",
    .type_rel = Rel<"memory.append", AppendType>,
    .decompose = DecomposeAppend,
    .fold = Fold::kNever,
    .source = "NumPy concatenate",
    .traits = {.appends = true},
});
const Op op::memory_kill = DefineOp({
    .name = "memory.kill",
    .doc = "Ends the life of a tensor.",
    .inputs = {{"data", "Any tensor."}},
    .output = "The unit tuple.",
    .type_rel = Rel<"memory.kill", UnitType>,
    .fold = Fold::kNever,
    .source = "Relay",
});

}  // namespace baton::relay
