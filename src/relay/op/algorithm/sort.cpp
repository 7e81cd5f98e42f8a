// SPDX-License-Identifier: Apache-2.0
// Sorting along an axis, on the host. Equal elements keep their order.
#include <baton/relay/op/algorithm.h>
#include <host/functions.h>

#include "../common.h"
#include "../dyn/dyn.h"
#include "../gradient.h"

namespace baton::relay {
namespace op {
extern const Op topk;
}
namespace {

struct TopKAttrs : AttrsNode<TopKAttrs> {
  static constexpr auto _type_key = "relay.attrs.TopKAttrs";
  int64_t k = 1;
  int64_t axis = -1;
  String ret_type = "both";
  bool is_ascend = false;
  DataType dtype = DataType::Int(32);
  static constexpr void Describe(auto& d) {
    d(F<&TopKAttrs::k>, "How many; less than 1: all.");
    d(F<&TopKAttrs::axis>, "Dimension to choose along.");
    d(F<&TopKAttrs::ret_type>, "\"both\", \"values\" or \"indices\".");
    d(F<&TopKAttrs::is_ascend>, "Whether the smallest are wanted, not the largest. NaN counts as largest.");
    d(F<&TopKAttrs::dtype>, "Dtype of the indices.");
  }
};
struct DynTopKAttrs : AttrsNode<DynTopKAttrs> {
  static constexpr auto _type_key = "relay.attrs.DynTopKAttrs";
  int64_t axis = -1;
  String ret_type = "both";
  bool is_ascend = false;
  DataType dtype = DataType::Int(32);
  static constexpr void Describe(auto& d) {
    d(F<&DynTopKAttrs::axis>, "Dimension to choose along.");
    d(F<&DynTopKAttrs::ret_type>, "\"both\", \"values\" or \"indices\".");
    d(F<&DynTopKAttrs::is_ascend>, "Whether the smallest are wanted, not the largest. NaN counts as largest.");
    d(F<&DynTopKAttrs::dtype>, "Dtype of the indices.");
  }
};

struct SortAttrs : AttrsNode<SortAttrs> {
  static constexpr auto _type_key = "relay.attrs.SortAttrs";
  int64_t axis = -1;
  bool is_ascend = true;
  static constexpr void Describe(auto& d) {
    d(F<&SortAttrs::axis>, "Dimension to sort along.");
    d(F<&SortAttrs::is_ascend>, "Whether the smallest comes first. NaN counts as largest.");
  }
};

struct ArgsortAttrs : AttrsNode<ArgsortAttrs> {
  static constexpr auto _type_key = "relay.attrs.ArgsortAttrs";
  int64_t axis = -1;
  bool is_ascend = true;
  DataType dtype = DataType::Int(32);
  static constexpr void Describe(auto& d) {
    d(F<&ArgsortAttrs::axis>, "Dimension to sort along.");
    d(F<&ArgsortAttrs::is_ascend>, "Whether the smallest comes first. NaN counts as largest.");
    d(F<&ArgsortAttrs::dtype>, "Dtype of the result.");
  }
};

struct SearchSortedAttrs : AttrsNode<SearchSortedAttrs> {
  static constexpr auto _type_key = "relay.attrs.SearchSortedAttrs";
  bool right = false;
  DataType dtype = DataType::Int(32);
  static constexpr void Describe(auto& d) {
    d(F<&SearchSortedAttrs::right>, "Whether equal values lie before the place.");
    d(F<&SearchSortedAttrs::dtype>, "Dtype of the result.");
  }
};

Type SortType(const SortAttrs& a, const TypeArgs& in) {
  in.MinRank(0, 1, "R1");
  in.Axis(a.axis, in.ndim(0));
  return in.type(0);
}

void IndexDtype(const TypeArgs& in, DataType t, const char* rule = "R2") {
  if (!t.is_integral() && !t.is_floating())
    in.Fail(rule, "dtype is " + DataType2String(t) + ", where a number's is wanted");
}
Type ArgsortType(const ArgsortAttrs& a, const TypeArgs& in) {
  in.MinRank(0, 1, "R1");
  IndexDtype(in, a.dtype);
  in.Axis(a.axis, in.ndim(0));
  return TensorType(in.shape(0), a.dtype);
}

Type TopKType(const TopKAttrs& a, const TypeArgs& in) {
  in.MinRank(0, 1, "R1");
  IndexDtype(in, a.dtype);
  if (a.ret_type != "both" && a.ret_type != "values" && a.ret_type != "indices") {
    in.Fail("R3", "ret_type is \"" + a.ret_type.str() + "\"; it is \"both\", \"values\" or \"indices\"");
  }
  int64_t axis = in.Axis(a.axis, in.ndim(0)), n = in.dim(0, axis);
  if (n >= 0 && a.k > n)
    in.Fail("R4", "k is " + Str(a.k) + " and " + in.Show(0) + " has " + Str(n) + " elements on axis " + Str(axis));
  Shape out = in.shape(0);
  if (a.k >= 1) out.Set(axis, PrimExpr(a.k));
  Type values = TensorType(out, in.dtype(0)), indices = TensorType(out, a.dtype);
  return a.ret_type == "both"     ? Type(TupleType(Array<Type>{values, indices}))
         : a.ret_type == "values" ? values
                                  : indices;
}

Type SearchSortedType(const SearchSortedAttrs& a, const TypeArgs& in) {
  in.MinRank(0, 1, "R1");
  in.SameDtype(0, 1, "R2");
  IndexDtype(in, a.dtype, "R4");
  bool fits = in.ndim(0) == 1 || in.ndim(0) == in.ndim(1);
  for (int64_t d = 0; fits && in.ndim(0) > 1 && d + 1 < in.ndim(0); ++d) fits = in.Same(in.shape(0)[d], in.shape(1)[d]);
  if (!fits) in.Fail("R3", in.Show(1) + " has no sequence in " + in.Show(0) + " for each of its rows");
  return TensorType(in.shape(1), a.dtype);
}

// ---- dyn.topk
struct DynTopK {
  static constexpr const char* kName = "dyn.topk";
  using Attributes = DynTopKAttrs;
  static const Op& Static() { return op::topk; }
  static bool ShapeLike(int i) { return i == 1; }
  static void Check(const Attributes&, const TypeArgs& in) {
    in.MinRank(0, 1, "R2");
    CheckCount(in, 1);
  }
  static Attrs StaticAttrs(const Attributes& a, const HostValues& v) {
    if (v[0].numel() != 1) throw CompileError("[dyn.topk R1] `k` has " + Str(v[0].numel()) + " numbers");
    return MakeAttrs<TopKAttrs>([&](TopKAttrs* s) {
      s->k = v[0].GetInt(0);
      s->axis = a.axis, s->ret_type = a.ret_type, s->is_ascend = a.is_ascend, s->dtype = a.dtype;
    });
  }
  static Type Unknown(const Attributes& a, const TypeArgs& in) {
    if (a.ret_type != "both" && a.ret_type != "values" && a.ret_type != "indices")
      in.Fail("R3", "ret_type is \"" + a.ret_type.str() + "\"; it is \"both\", \"values\" or \"indices\"");
    Shape out = in.shape(0);
    out.Set(in.Axis(a.axis, in.ndim(0)), UnknownDim());
    Type values = TensorType(out, in.dtype(0)), indices = TensorType(out, a.dtype);
    if (a.ret_type == "both") return TupleType(Array<Type>{values, indices});
    return a.ret_type == "values" ? values : indices;
  }
};

}  // namespace

namespace gradient {
namespace {

/// The adjoint of each chosen element goes to where it was.
Expr PutBack(const At& at, const Expr& index, const Expr& grad, int64_t axis) {
  return MakeCall<ScatterElementsAttrs>(op::scatter_elements, {ZerosLike(at.arg(0)), index, grad},
                                        [&](ScatterElementsAttrs* s) { s->axis = axis, s->reduction = "add"; });
}
Grads SortBack(const Call& call, const Expr& grad) {
  At at(call, grad);
  const auto& a = at.attrs<SortAttrs>();
  Expr index = MakeCall<ArgsortAttrs>(op::argsort, {at.arg(0)}, [&](ArgsortAttrs* b) {
    b->axis = a.axis, b->is_ascend = a.is_ascend, b->dtype = DataType::Int(64);
  });
  return {PutBack(at, index, grad, at.Axis(a.axis))};
}
Grads TopKBack(const Call& call, const Expr& grad) {
  At at(call, grad);
  const auto& a = at.attrs<TopKAttrs>();
  if (a.ret_type == "indices") return {Expr()};
  bool both = a.ret_type == "both";
  // Indices of a narrow dtype do not hold every place.
  Expr index = both && a.dtype == DataType::Int(64) ? Item(call, 1)
                                                    : MakeCall<TopKAttrs>(op::topk, {at.arg(0)}, [&](TopKAttrs* b) {
                                                        b->k = a.k, b->axis = a.axis, b->is_ascend = a.is_ascend;
                                                        b->ret_type = "indices", b->dtype = DataType::Int(64);
                                                      });
  return {PutBack(at, index, both ? Item(grad, 0) : grad, at.Axis(a.axis))};
}

}  // namespace
}  // namespace gradient

const Op op::sort = DefineOp({
    .name = "sort",
    .doc = "Elements in order along an axis; stable, NaN counts as largest.",
    .inputs = {{"data", "R1: rank 1 or more."}},
    .output = "Shape and dtype of `data`.",
    .attrs = TypeOf<SortAttrs>,
    .type_rel = Rel<"sort", SortType>,
    .host = host::Sort,
    .gradient = gradient::SortBack,
    .source = "NumPy",
    .traits = {.values = Values::kSelects},
});
const Op op::argsort = DefineOp({
    .name = "argsort",
    .doc = "Places of the elements in order along an axis; stable, NaN counts as largest.",
    .inputs = {{"data", "R1: rank 1 or more."}},
    .output = "Shape of `data`. R2: a number's dtype.",
    .attrs = TypeOf<ArgsortAttrs>,
    .type_rel = Rel<"argsort", ArgsortType>,
    .host = host::Argsort,
    .source = "NumPy",
});
const Op op::topk = DefineOp({
    .name = "topk",
    .doc = "The k largest or smallest along an axis, in order; of equal ones the first.",
    .inputs = {{"data", "R1: rank 1 or more. R4: k elements or more."}},
    .output = "A tuple of values and indices, or one of them. R2: a number's dtype. R3: a known ret_type.",
    .attrs = TypeOf<TopKAttrs>,
    .type_rel = Rel<"topk", TopKType>,
    .host = host::TopK,
    .gradient = gradient::TopKBack,
    .source = "ONNX TopK-11",
    .traits = {.precision = Precision::kFollow, .values = Values::kExact},
});
const Op op::dyn_topk = DefineDyn<DynTopK>(
    "topk of a number known at run time.",
    {{"data", "R2: rank 1 or more."}, {"k", "How many; less than 1: all. R1: one integer, rank 0 or 1."}},
    "As topk's, not known on the axis. R3: a known ret_type.");
const Op op::searchsorted = DefineOp({
    .name = "searchsorted",
    .doc = "Where values would go in a sorted sequence.",
    .inputs = {{"sorted_sequence", "R1: rank 1 or more."},
               {"values", "R2: dtype of sorted_sequence. R3: any shape for rank 1, else the same rows."}},
    .output = "Shape of `values`. R4: a number's dtype.",
    .attrs = TypeOf<SearchSortedAttrs>,
    .type_rel = Rel<"searchsorted", SearchSortedType>,
    .host = host::SearchSorted,
    .source = "NumPy",
});

}  // namespace baton::relay
