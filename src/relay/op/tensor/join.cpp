// SPDX-License-Identifier: Apache-2.0
// Tensors joined and cut: concatenate, stack, split; and meshgrid, which gives several.
#include <baton/relay/op/transform.h>
#include <baton/runtime/checked.h>
#include <baton/topi/elemwise.h>

#include <algorithm>

#include "../elements.h"
#include "../gradient.h"
#include "../qnn/integers.h"
#include "../reference/reference.h"
#include "injective.h"

namespace baton::relay {
namespace {

struct MeshgridAttrs : AttrsNode<MeshgridAttrs> {
  static constexpr auto _type_key = "relay.attrs.MeshgridAttrs";
  String indexing = "ij";
  static constexpr void Describe(auto& d) {
    d(F<&MeshgridAttrs::indexing>, "\"ij\", or \"xy\": the first two dimensions change places.");
  }
};

using runtime::Checked;

Type ConcatenateType(const ConcatenateAttrs& a, const TypeArgs& in) {
  std::vector<const TensorTypeNode*> parts = in.Fields(0);
  if (parts.empty()) in.Fail("R1", "the tuple is empty, where one tensor or more is wanted");
  int64_t ndim = parts[0]->shape.size();
  if (ndim == 0) in.Fail("R2", "scalars have no dimension to join along; use stack");
  int64_t axis = in.Axis(a.axis, ndim);
  Checked sum = 0;    // of the extents that are known
  PrimExpr symbolic;  // and of the others
  Shape out = parts[0]->shape;
  for (size_t k = 0; k < parts.size(); ++k) {
    const TensorTypeNode* t = parts[k];
    if (t->dtype != parts[0]->dtype) {
      in.Fail("R3", "part " + Str(k) + " has dtype " + DataType2String(t->dtype) + " and part 0 has " +
                        DataType2String(parts[0]->dtype));
    }
    bool fits = static_cast<int64_t>(t->shape.size()) == ndim;
    for (int64_t d = 0; fits && d < ndim; ++d) {
      if (d == axis) continue;
      fits = in.Same(out[d], t->shape[d]);
      if (DimOf(out[d]) < 0 && (DimOf(t->shape[d]) >= 0 || out[d].as<tir::AnyNode>())) out.Set(d, t->shape[d]);
    }
    if (!fits) {
      in.Fail("R4", "part " + Str(k) + " has shape " + ShowShape(t->shape) + " and part 0 " +
                        ShowShape(parts[0]->shape) + ": they differ off axis " + Str(axis));
    }
    const PrimExpr& n = t->shape[axis];
    if (DimOf(n) >= 0) {
      sum = sum + DimOf(n);
    } else if (!symbolic.defined() || !symbolic.as<tir::AnyNode>()) {
      symbolic = TypeDim(symbolic.defined() ? symbolic + n : n);
    }
  }
  if (parts.size() > 1) {
    PrimExpr known = int64_t{sum};
    out.Set(axis, !symbolic.defined() ? known : sum == 0 ? symbolic : TypeDim(symbolic + known));
  }
  return TensorType(out, parts[0]->dtype);
}
/// values(k) for the first k of [first, last) with index < ends[k], which rise; the last one beyond. A binary tree of
/// conditions: each element evaluates a logarithmic number of them.
template <class F>
PrimExpr PartAt(const PrimExpr& index, const std::vector<PrimExpr>& ends, const F& value, size_t first, size_t last) {
  if (last - first == 1) return value(first);
  const size_t half = first + (last - first) / 2;
  PrimExpr low = PartAt(index, ends, value, first, half);
  return if_then_else(index < ends[half - 1], low, PartAt(index, ends, value, half, last));
}

Tensor LowerConcatenate(const ConcatenateAttrs& a, const Tensors& in) {
  int64_t axis = NormalizeAxis(a.axis, in[0].ndim(), "concatenate");
  Shape out = in[0].shape();
  std::vector<PrimExpr> begin{PrimExpr(0)};
  for (const Tensor& t : in) begin.push_back(begin.back() + t.shape()[axis]);
  out.Set(axis, begin.back());
  return te::Compute(
      out,
      [&](Indices i) {
        // Parts without elements are left out.
        std::vector<size_t> parts;
        std::vector<PrimExpr> ends;
        for (size_t k = 0; k < in.size(); ++k) {
          if (tir::is_zero(in[k].shape()[axis])) continue;
          parts.push_back(k);
          ends.push_back(begin[k + 1]);
        }
        if (parts.empty()) return tir::make_const(in[0].dtype(), 0);
        auto value = [&](size_t p) {
          Shape at = i;
          at.Set(axis, i[axis] - begin[parts[p]]);
          return in[parts[p]](at);
        };
        return PartAt(i[axis], ends, value, 0, parts.size());
      },
      "concatenate");
}

Type StackType(const StackAttrs& a, const TypeArgs& in) {
  std::vector<const TensorTypeNode*> parts = in.Fields(0);
  if (parts.empty()) in.Fail("R1", "the tuple is empty, where one tensor or more is wanted");
  Shape out = parts[0]->shape;
  for (size_t k = 1; k < parts.size(); ++k) {
    bool fits = parts[k]->shape.size() == out.size() && parts[k]->dtype == parts[0]->dtype;
    for (size_t d = 0; fits && d < out.size(); ++d) fits = in.Same(out[d], parts[k]->shape[d]);
    if (!fits) {
      in.Fail("R2", "part " + Str(k) + " is " + ShowType(GetRef<TensorType>(parts[k])) + " and part 0 " +
                        ShowType(GetRef<TensorType>(parts[0])) + ", where shape and dtype have to agree");
    }
  }
  out.insert(in.Axis(a.axis, static_cast<int64_t>(out.size()) + 1), MakeDim(parts.size()));
  return TensorType(out, parts[0]->dtype);
}
Tensor LowerStack(const StackAttrs& a, const Tensors& in) {
  int64_t axis = NormalizeAxis(a.axis, in[0].ndim() + 1, "stack");
  Shape out = in[0].shape();
  out.insert(axis, MakeDim(in.size()));
  return te::Compute(
      out,
      [&](Indices i) {
        Shape at;
        for (int64_t d = 0; d <= in[0].ndim(); ++d) {
          if (d != axis) at.push_back(i[d]);
        }
        std::vector<PrimExpr> ends;
        for (size_t k = 0; k < in.size(); ++k) ends.push_back(PrimExpr(static_cast<int64_t>(k + 1)));
        return PartAt(i[axis], ends, [&](size_t k) { return in[k](at); }, 0, in.size());
      },
      "stack");
}

/// Where each part begins and ends; -1 for an end that is not known.
struct Parts {
  Ints begin, end;
};
Parts PartsOf(const SplitAttrs& a, int64_t n, const char* op) {
  Parts p;
  auto fail = [&](const std::string& text) { throw CompileError(std::string("[") + op + " R1] " + text); };
  if (const auto* count = a.indices_or_sections.as<IntImmNode>()) {
    int64_t k = count->value;
    if (k < 1 || k > (1 << 20))
      fail("indices_or_sections is " + Str(k) + ", where a number of parts, 1 or more, is wanted");
    if (n >= 0 && n % k != 0)
      fail("an extent of " + Str(n) + " is not divisible into " + Str(k) + " equal parts; give the positions");
    for (int64_t i = 0; i < k; ++i) {
      p.begin.push_back(n < 0 ? -1 : n / k * i);
      p.end.push_back(n < 0 ? -1 : n / k * (i + 1));
    }
    return p;
  }
  if (!a.indices_or_sections.as<runtime::ArrayObj>())
    fail("indices_or_sections is a number of parts or an array of positions");
  auto positions = runtime::Any(a.indices_or_sections).As<Array<int64_t>>();
  p.begin.push_back(0);
  for (int64_t x : positions) {
    if (x < p.begin.back() || (n >= 0 && x > n)) {
      fail("positions " + ShowInts(ToInts(positions)) + " do not rise from 0 to the extent" +
           (n < 0 ? std::string() : " " + Str(n)));
    }
    p.end.push_back(x);
    p.begin.push_back(x);
  }
  p.end.push_back(n);
  return p;
}
Type SplitType(const SplitAttrs& a, const TypeArgs& in) {
  in.MinRank(0, 1, "R2");
  int64_t axis = in.Axis(a.axis, in.ndim(0));
  Parts p = PartsOf(a, in.dim(0, axis), in.op());
  Array<Type> fields;
  for (size_t k = 0; k < p.begin.size(); ++k) {
    Shape out = in.shape(0);
    const PrimExpr& whole = in.shape(0)[axis];
    if (p.end[k] >= 0) {
      out.Set(axis, PrimExpr(p.end[k] - p.begin[k]));
    } else if (p.begin[k] >= 0) {  // behind the last position
      out.Set(axis, p.begin[k] == 0 ? whole : TypeDim(whole - PrimExpr(p.begin[k])));
    } else {
      out.Set(axis, TypeDim(floordiv(whole, PrimExpr(static_cast<int64_t>(p.begin.size())))));
    }
    fields.push_back(TensorType(out, in.dtype(0)));
  }
  return TupleType(fields);
}
Tensors LowerSplit(const SplitAttrs& a, const Tensors& in) {
  int64_t axis = NormalizeAxis(a.axis, in[0].ndim(), "split");
  PrimExpr n = in[0].shape()[axis];
  Parts p = PartsOf(a, DimOf(n), "split");
  Tensors out;
  for (size_t k = 0; k < p.begin.size(); ++k) {
    PrimExpr part = floordiv(n, PrimExpr(static_cast<int64_t>(p.begin.size())));
    PrimExpr begin = p.begin[k] >= 0 ? PrimExpr(p.begin[k]) : part * PrimExpr(static_cast<int64_t>(k));
    PrimExpr extent = p.end[k] >= 0 ? PrimExpr(p.end[k] - p.begin[k]) : p.begin[k] >= 0 ? n - begin : part;
    Shape shape = in[0].shape();
    shape.Set(axis, extent);
    out.push_back(topi::Pick(
        shape, in[0],
        [&](Indices i) {
          Shape at = i;
          at.Set(axis, i[axis] + begin);
          return at;
        },
        "split"));
  }
  return out;
}

// ---- meshgrid
void CheckMeshgrid(const MeshgridAttrs& a, const TypeArgs& in) {
  if (a.indexing != "ij" && a.indexing != "xy")
    in.Fail("R1", "indexing is \"" + a.indexing.str() + "\"; it is \"ij\" or \"xy\"");
  for (const TensorTypeNode* t : in.Fields(0)) {
    if (t->shape.size() > 1)
      in.Fail("R2", "a part has shape " + ShowShape(t->shape) + ", where scalars and vectors are wanted");
  }
}
Ints MeshOrder(const MeshgridAttrs& a, size_t n) {  // dimension of the result that each part runs along
  Ints order;
  for (size_t k = 0; k < n; ++k) order.push_back(k);
  if (a.indexing == "xy" && n >= 2) std::swap(order[0], order[1]);
  return order;
}
Type MeshgridType(const MeshgridAttrs& a, const TypeArgs& in) {
  CheckMeshgrid(a, in);
  std::vector<const TensorTypeNode*> parts = in.Fields(0);
  Ints order = MeshOrder(a, parts.size());
  std::vector<PrimExpr> shape(parts.size(), PrimExpr(1));
  for (size_t k = 0; k < parts.size(); ++k)
    shape[order[k]] = parts[k]->shape.empty() ? PrimExpr(1) : parts[k]->shape[0];
  Array<Type> fields;
  for (const TensorTypeNode* t : parts) fields.push_back(TensorType(Shape(shape), t->dtype));
  return TupleType(fields);
}
Tensors LowerMeshgrid(const MeshgridAttrs& a, const Tensors& in) {
  Ints order = MeshOrder(a, in.size());
  std::vector<PrimExpr> shape(in.size(), PrimExpr(1));
  for (size_t k = 0; k < in.size(); ++k) shape[order[k]] = in[k].shape().empty() ? PrimExpr(1) : in[k].shape()[0];
  Tensors out;
  for (size_t k = 0; k < in.size(); ++k) {
    out.push_back(te::Compute(
        Shape(shape), [&](Indices i) { return in[k].shape().empty() ? in[k](Shape()) : in[k](Shape{i[order[k]]}); },
        "meshgrid"));
  }
  return out;
}

}  // namespace

namespace gradient {
namespace {

std::vector<const TensorTypeNode*> Fields(const At& at) {
  std::vector<const TensorTypeNode*> out;
  const auto* t = at.arg(0)->checked_type().as<TupleTypeNode>();
  if (!t) at.Fail("its argument is no tuple");
  for (const Type& f : t->fields) out.push_back(AsTensor(f));
  return out;
}
Grads ConcatenateBack(const Call& call, const Expr& grad) {
  At at(call, grad);
  auto fields = Fields(at);
  int64_t axis = NormalizeAxis(at.attrs<ConcatenateAttrs>().axis, fields[0]->shape.size(), "concatenate"), end = 0;
  if (fields.size() == 1) return {Tuple(Array<Expr>{grad})};
  Ints cuts;
  for (const auto* f : fields) {
    int64_t n = DimOf(f->shape[axis]);
    if (n < 0) at.Fail("it needs known extents along its axis");
    cuts.push_back(end += n);
  }
  cuts.pop_back();
  return {Split(grad, cuts, axis)};
}
Grads StackBack(const Call& call, const Expr& grad) {
  At at(call, grad);
  auto fields = Fields(at);
  int64_t axis = NormalizeAxis(at.attrs<StackAttrs>().axis, fields[0]->shape.size() + 1, "stack");
  Expr parts = Split(grad, AxesFrom(1, fields.size()), axis);
  Array<Expr> out;
  for (size_t i = 0; i < fields.size(); ++i) out.push_back(Squeeze(Item(parts, i), {axis}));
  return {Tuple(out)};
}
Grads SplitBack(const Call& call, const Expr& grad) {
  At at(call, grad);
  return {Concat(grad, at.Axis(at.attrs<SplitAttrs>().axis))};
}
Grads MeshgridBack(const Call& call, const Expr& grad) {
  At at(call, grad);
  auto fields = Fields(at);
  int64_t n = fields.size();
  bool xy = at.attrs<MeshgridAttrs>().indexing == "xy";
  Array<Expr> out;
  for (int64_t i = 0; i < n; ++i) {
    int64_t own = xy && n > 1 && i < 2 ? 1 - i : i;
    Ints others;
    for (int64_t d = 0; d < n; ++d) {
      if (d != own) others.push_back(d);
    }
    Expr g = others.empty() ? Item(grad, i) : Sum(Item(grad, i), others);
    Ints dims;
    if (!StaticShape(fields[i]->shape, &dims)) at.Fail("it needs known extents");
    out.push_back(Reshape(g, ToArray(dims)));
  }
  return {Tuple(out)};
}

}  // namespace
}  // namespace gradient

const Op op::concatenate = DefineInjective(
    "concatenate", "Tensors joined along a dimension that they have.",
    "A tuple. R1: not empty. R2: rank 1 or more. R3: one dtype. R4: the same shape off `axis`.",
    "Extents on `axis` add up.", TypeOf<ConcatenateAttrs>, Rel<"concatenate", ConcatenateType>, LowerConcatenate,
    gradient::ConcatenateBack, "NumPy; ONNX Concat-13",
    // Vectors end to end: the fields of the tuple in order.
    {.values = Values::kExact, .layout = LayoutRule::kJoins, .integers = integers::Joined, .elements = SameElements});
const Op op::stack = DefineInjective("stack", "Tensors joined along a new dimension.",
                                     "A tuple. R1: not empty. R2: one shape and dtype.", "A dimension more.",
                                     TypeOf<StackAttrs>, Rel<"stack", StackType>, LowerStack, gradient::StackBack,
                                     "NumPy", {.values = Values::kExact, .elements = SameElements});
const Op op::split = DefineInjective(
    "split", "Parts of a tensor along a dimension.", "R2: rank 1 or more.",
    "A tuple of the parts. R1: equal parts divide the extent; positions rise within it.", TypeOf<SplitAttrs>,
    Rel<"split", SplitType>, LowerSplit, gradient::SplitBack, "NumPy; ONNX Split-18",
    {.values = Values::kSelects, .layout = LayoutRule::kAxisParts, .integers = integers::Split});
const Op op::meshgrid = DefineInjective(
    "meshgrid", "Coordinates: part k repeated along all dimensions but k.", "A tuple. R2: scalars and vectors.",
    "A tuple of tensors of one shape. R1: `indexing` is \"ij\" or \"xy\".", TypeOf<MeshgridAttrs>,
    Rel<"meshgrid", MeshgridType>, LowerMeshgrid, gradient::MeshgridBack, "NumPy");

}  // namespace baton::relay
