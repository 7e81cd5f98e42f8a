// SPDX-License-Identifier: Apache-2.0
// Matrix products. The loops here are the plain definition; kernel generators replace them where they are faster.
#include <baton/relay/op/nn.h>
#include <baton/tir/functor.h>
#include <baton/topi/elemwise.h>
#include <baton/topi/reduce.h>
#include <relay/kernel/generators.h>

#include <algorithm>
#include <string>

#include "../common.h"
#include "../gradient.h"
#include "../qnn/integers.h"
#include "../reference/reference.h"
#include "flops.h"

namespace baton::relay {
namespace {

struct EinsumAttrs : AttrsNode<EinsumAttrs> {
  static constexpr auto _type_key = "relay.attrs.EinsumAttrs";
  String equation;
  static constexpr void Describe(auto& d) {
    d(F<&EinsumAttrs::equation>, "As NumPy's: \"ij,jk->ik\", with `...` for broadcast dimensions.", kRequired);
  }
};

DataType OrElse(DataType t, DataType default_value) { return t.is_void() ? default_value : t; }
/// Element type of a product's sum, and of its result.
DataType ResultDtype(const TypeArgs& in, DataType out_dtype) {
  in.Number(0, "R1");
  in.Number(1, "R1");
  if (out_dtype.is_void()) in.SameDtype(0, 1, "R1");
  return OrElse(out_dtype, in.dtype(0));
}
void CheckUnits(const TypeArgs& in, const PrimExpr& units, int64_t have) {
  if (HasValue(units) && ValueOf(units) >= 0 && have >= 0 && ValueOf(units) != have) {
    in.Fail("R3", in.Show(1) + " gives " + Str(have) + " outputs and units = " + Str(ValueOf(units)));
  }
}
Tensor Rounded(const Tensor& sum, DataType t) { return topi::Cast(sum, t); }

// ---- dense
void GuessDense(const DenseAttrs& a, Array<Type>* types) {
  const auto* x = AsTensor((*types)[0]);
  if (x && !x->shape.empty() && HasValue(a.units)) Guess(types, 1, {a.units, x->shape.back()}, x->dtype);
}
Type DenseType(const DenseAttrs& a, const TypeArgs& in) {
  DataType t = ResultDtype(in, a.out_dtype);
  in.MinRank(0, 1, "R2");
  in.Rank(1, 2, "R2");
  if (!in.Same(in.shape(0).back(), in.shape(1)[1])) {
    in.Fail("R2", in.Show(0) + " ends with " + Str(DimOf(in.shape(0).back())) + " elements and " + in.Show(1) +
                      " takes " + Str(in.dim(1, 1)));
  }
  CheckUnits(in, a.units, in.dim(1, 0));
  Shape out = in.shape(0);
  out.Set(in.ndim(0) - 1, in.shape(1)[0]);
  return TensorType(out, t);
}
Tensor LowerDense(const DenseAttrs& a, const Tensors& in) {
  const Tensor &x = in[0], &w = in[1];
  DataType t = OrElse(a.out_dtype, x.dtype()), acc = Wide(t);
  Shape out = x.shape();
  out.Set(x.ndim() - 1, w.shape()[0]);
  Array<te::IterVar> k{te::ReduceAxis(0, w.shape()[1], "k")};
  return Rounded(te::Compute(
                     out,
                     [&](Indices i) {
                       Shape at = i;
                       at.Set(x.ndim() - 1, k[0]->var);
                       return te::Sum(cast(acc, x(at)) * cast(acc, w(i[x.ndim() - 1], k[0]->var)), k);
                     },
                     "dense", "dense"),
                 t);
}

// ---- matmul, by NumPy's rules
/// The operands with vectors made matrices, and the dimensions that the result drops again.
struct Product {
  bool row_a, col_b;  ///< tensor_a is a vector (a row), tensor_b is one (a column)
  PrimExpr m, k, k_b, n;
  Shape batch_a, batch_b;
  Product(const Shape& a, const Shape& b, bool ta, bool tb) : row_a(a.size() == 1), col_b(b.size() == 1) {
    m = row_a ? PrimExpr(1) : a[a.size() - (ta ? 1 : 2)];
    k = row_a ? a[0] : a[a.size() - (ta ? 2 : 1)];
    k_b = col_b ? b[0] : b[b.size() - (tb ? 1 : 2)];
    n = col_b ? PrimExpr(1) : b[b.size() - (tb ? 2 : 1)];
    if (!row_a) batch_a = Shape(a.begin(), a.begin() + (a.size() - 2));
    if (!col_b) batch_b = Shape(b.begin(), b.begin() + (b.size() - 2));
  }
  Shape Out(const Shape& batch) const {
    Shape out = batch;
    if (!row_a) out.push_back(m);
    if (!col_b) out.push_back(n);
    return out;
  }
};
void GuessMatmul(const MatmulAttrs& a, Array<Type>* types) {
  const auto* x = AsTensor((*types)[0]);
  if (!x || x->shape.empty() || !HasValue(a.units)) return;
  const size_t n = x->shape.size();
  const PrimExpr k = n > 1 && a.transpose_a ? x->shape[n - 2] : x->shape[n - 1];
  Guess(types, 1, a.transpose_b ? Shape{a.units, k} : Shape{k, a.units}, x->dtype);
}
Type MatmulType(const MatmulAttrs& a, const TypeArgs& in) {
  DataType t = ResultDtype(in, a.out_dtype);
  in.MinRank(0, 1, "R2");
  in.MinRank(1, 1, "R2");
  Product p(in.shape(0), in.shape(1), a.transpose_a, a.transpose_b);
  if (!in.Same(p.k, p.k_b)) {
    in.Fail("R2", in.Show(0) + " and " + in.Show(1) + ": the sum runs over " + Str(DimOf(p.k)) + " and " +
                      Str(DimOf(p.k_b)) + " elements, which have to agree");
  }
  CheckUnits(in, a.units, DimOf(p.n));
  return TensorType(p.Out(BroadcastShapes(in, p.batch_a, p.batch_b, "R2")), t);
}
/// The element [batch..., r, c] of an operand, batch aligned to the last of the result's, whose extents are `dims`.
PrimExpr MatrixAt(const Tensor& x, const Shape& batch, const Shape& dims, const PrimExpr& r, const PrimExpr& c,
                  bool transpose) {
  size_t n = x.shape().size() - 2;
  Shape at;
  for (size_t d = 0; d < n; ++d)
    at.push_back(topi::BroadcastIndex(x.shape()[d], batch[batch.size() - n + d], dims[dims.size() - n + d]));
  at.push_back(transpose ? c : r);
  at.push_back(transpose ? r : c);
  return x(at);
}
Tensor LowerMatmul(const MatmulAttrs& a, const Tensors& in) {
  const Tensor &x = in[0], &y = in[1];
  DataType t = OrElse(a.out_dtype, x.dtype()), acc = Wide(t);
  Product p(x.shape(), y.shape(), a.transpose_a, a.transpose_b);
  Shape batch = topi::BroadcastShape(p.batch_a, p.batch_b);
  Array<te::IterVar> k{te::ReduceAxis(0, p.k, "k")};
  return Rounded(te::Compute(
                     p.Out(batch),
                     [&](Indices i) {
                       Shape b;
                       for (size_t d = 0; d < batch.size(); ++d) b.push_back(i[d]);
                       PrimExpr r = p.row_a ? PrimExpr(0) : PrimExpr(i[batch.size()]),
                                c = p.col_b ? PrimExpr(0) : PrimExpr(i[i.size() - 1]), s = k[0]->var;
                       PrimExpr u = p.row_a ? x(s) : MatrixAt(x, b, batch, r, s, a.transpose_a),
                                v = p.col_b ? y(s) : MatrixAt(y, b, batch, s, c, a.transpose_b);
                       return te::Sum(cast(acc, u) * cast(acc, v), k);
                     },
                     "matmul", "matmul"),
                 t);
}

// ---- batch_matmul
Type BatchMatmulType(const BatchMatmulAttrs& a, const TypeArgs& in) {
  DataType t = ResultDtype(in, a.out_dtype);
  in.Rank(0, 3, "R2");
  in.Rank(1, 3, "R2");
  Product p(in.shape(0), in.shape(1), a.transpose_a, a.transpose_b);
  if (!in.Same(p.k, p.k_b)) {
    in.Fail("R2", in.Show(0) + " and " + in.Show(1) + ": the sum runs over " + Str(DimOf(p.k)) + " and " +
                      Str(DimOf(p.k_b)) + " elements, which have to agree");
  }
  return TensorType(p.Out(BroadcastShapes(in, p.batch_a, p.batch_b, "R3")), t);
}
Tensor LowerBatchMatmul(const BatchMatmulAttrs& a, const Tensors& in) {
  MatmulAttrs m;
  m.out_dtype = a.out_dtype, m.transpose_a = a.transpose_a, m.transpose_b = a.transpose_b;
  return LowerMatmul(m, in);
}

// ---- einsum
/// An equation read for operands of given ranks: letters are numbers; those of `...` come first in the result.
struct Equation {
  std::vector<Ints> terms;  ///< the index of each dimension of each operand
  Ints out;
  Ints summed;
  int64_t count = 0;
  int64_t dots = 0;  ///< indices 0 .. dots - 1 stand for `...`, aligned to the last
};
Equation ReadEquation(std::string_view text, const Ints& ranks, const char* op) {
  auto fail = [&](const std::string& why) {
    throw CompileError(std::string("[") + op + " R1] equation \"" + std::string(text) + "\" " + why);
  };
  std::string s;
  for (char c : text) {
    if (c != ' ') s += c;
  }
  std::string left = s, right;
  size_t arrow = s.find("->");
  bool explicit_out = arrow != std::string::npos;
  if (explicit_out) left = s.substr(0, arrow), right = s.substr(arrow + 2);
  std::vector<std::string> parts{""};
  for (char c : left) {
    if (c == ',') {
      parts.push_back("");
    } else {
      parts.back() += c;
    }
  }
  if (parts.size() != ranks.size()) fail("has " + Str(parts.size()) + " operands, the call has " + Str(ranks.size()));
  // Letters of a term before and behind `...`.
  struct Term {
    std::string before, behind;
    bool dots = false;
  };
  auto read = [&](const std::string& p) {
    Term t;
    for (size_t i = 0; i < p.size(); ++i) {
      char c = p[i];
      if (c == '.') {
        if (t.dots || p.substr(i, 3) != "...") fail("has dots that are no `...`, or two of them in one term");
        t.dots = true;
        i += 2;
      } else if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
        (t.dots ? t.behind : t.before) += c;
      } else {
        fail("has the character `" + std::string(1, c) + "`");
      }
    }
    return t;
  };
  Equation e;
  std::vector<Term> terms;
  for (size_t k = 0; k < parts.size(); ++k) {
    terms.push_back(read(parts[k]));
    int64_t rest = ranks[k] - static_cast<int64_t>(terms[k].before.size() + terms[k].behind.size());
    if (rest < 0 || (rest > 0 && !terms[k].dots))
      fail("term \"" + parts[k] + "\" does not fit an operand of rank " + Str(ranks[k]));
    if (terms[k].dots && rest > e.dots) e.dots = rest;
  }
  int64_t number[128];
  int64_t uses[128] = {};
  for (int64_t& n : number) n = -1;
  e.count = e.dots;
  for (size_t k = 0; k < terms.size(); ++k) {
    Ints at;
    auto letter = [&](char c) {
      int64_t& n = number[static_cast<int>(c)];
      if (n < 0) n = e.count++;
      ++uses[static_cast<int>(c)];
      at.push_back(n);
    };
    for (char c : terms[k].before) letter(c);
    int64_t rest = ranks[k] - static_cast<int64_t>(terms[k].before.size() + terms[k].behind.size());
    for (int64_t d = 0; d < rest; ++d) at.push_back(e.dots - rest + d);
    for (char c : terms[k].behind) letter(c);
    e.terms.push_back(at);
  }
  std::vector<bool> kept(e.count);
  auto keep = [&](int64_t n) {
    e.out.push_back(n);
    kept[n] = true;
  };
  if (explicit_out) {
    Term t = read(right);
    auto letter = [&](char c) {
      int64_t n = number[static_cast<int>(c)];
      if (n < 0) fail("has `" + std::string(1, c) + "` in the result alone");
      if (kept[n]) fail("has `" + std::string(1, c) + "` twice in the result");
      keep(n);
    };
    for (char c : t.before) letter(c);
    if (t.dots) {
      for (int64_t d = 0; d < e.dots; ++d) keep(d);
    }
    for (char c : t.behind) letter(c);
  } else {
    for (int64_t d = 0; d < e.dots; ++d) keep(d);
    for (int c = 0; c < 128; ++c) {  // letters that occur once, in the alphabet's order (capitals first, as NumPy)
      if (uses[c] == 1) keep(number[c]);
    }
  }
  for (int64_t n = 0; n < e.count; ++n) {
    if (!kept[n]) e.summed.push_back(n);
  }
  return e;
}
/// Extent of each index, by broadcasting over all its uses.
template <class Fail>
Shape Extents(const Equation& e, const std::vector<Shape>& shapes, Fail fail) {
  std::vector<PrimExpr> extent(e.count, PrimExpr(1));
  for (size_t k = 0; k < shapes.size(); ++k) {
    for (size_t d = 0; d < shapes[k].size(); ++d) {
      PrimExpr& have = extent[e.terms[k][d]];
      const PrimExpr& n = shapes[k][d];
      int64_t x = DimOf(have), y = DimOf(n);
      if (x == 1 || (x < 0 && y > 1)) {
        have = n;
      } else if (x >= 0 && y >= 0 && y != 1 && x != y) {
        fail(k, d, x, y);
      } else if (x < 0 && y < 0 && !tir::ExprDeepEqual(have, n)) {
        have = tir::Select(equal(n, PrimExpr(1)), have, n);
      }
    }
  }
  return Shape(extent);
}
Type EinsumType(const EinsumAttrs& a, const TypeArgs& in) {
  std::vector<const TensorTypeNode*> parts = in.Fields(0);
  if (parts.empty()) in.Fail("R2", "the tuple is empty, where one tensor or more is wanted");
  Ints ranks;
  std::vector<Shape> shapes;
  for (const TensorTypeNode* t : parts) {
    if (t->dtype != parts[0]->dtype || !(t->dtype.is_floating() || t->dtype.is_integral()))
      in.Fail("R2", "operands are numbers of one dtype");
    ranks.push_back(t->shape.size());
    shapes.push_back(t->shape);
  }
  Equation e = ReadEquation(a.equation.view(), ranks, in.op());
  Shape extent = Extents(e, shapes, [&](size_t k, size_t d, int64_t x, int64_t y) {
    in.Fail("R3", "dimension " + Str(d) + " of operand " + Str(k) + " is " + Str(y) + ", where \"" + a.equation.str() +
                      "\" has " + Str(x) + " for its letter");
  });
  for (size_t k = 0; k < shapes.size(); ++k) {
    for (size_t d = 0; d < shapes[k].size(); ++d) {
      const PrimExpr &n = shapes[k][d], &all = extent[e.terms[k][d]];
      if (DimOf(n) == 1 || tir::ExprDeepEqual(n, all)) continue;
      if (!in.Same(n, DimOf(n) < 0 ? tir::Select(equal(n, PrimExpr(1)), PrimExpr(1), all) : all))
        in.Fail("R3", "dimension " + Str(d) + " of operand " + Str(k) + " does not fit its letter's others");
    }
  }
  Shape out;
  for (int64_t n : e.out) out.push_back(TypeDim(extent[n]));
  return TensorType(out, parts[0]->dtype);
}
/// One product and sum over `summed`; operands[k]'s dimensions carry the indices terms[k].
Tensor Contract(const Tensors& in, const std::vector<Ints>& terms, const Ints& out, const Ints& summed,
                const Shape& extent, DataType acc) {
  Shape shape;
  for (int64_t n : out) shape.push_back(extent[n]);
  Array<te::IterVar> k;
  for (int64_t n : summed) k.push_back(te::ReduceAxis(0, extent[n], "k" + Str(n)));
  return te::Compute(
      shape,
      [&](Indices i) {
        std::vector<PrimExpr> index(extent.size());
        for (size_t d = 0; d < out.size(); ++d) index[out[d]] = i[d];
        for (size_t d = 0; d < summed.size(); ++d) index[summed[d]] = k[d]->var;
        PrimExpr v;
        for (size_t t = 0; t < in.size(); ++t) {
          Shape at;
          for (size_t d = 0; d < terms[t].size(); ++d) {
            const PrimExpr &n = in[t].shape()[d], &i = index[terms[t][d]];
            const bool either = DimOf(n) < 0 && !tir::ExprDeepEqual(n, extent[terms[t][d]]);
            at.push_back(tir::is_one(n) ? PrimExpr(0) : either ? te::Select(equal(n, PrimExpr(1)), PrimExpr(0), i) : i);
          }
          PrimExpr u = cast(acc, in[t](at));
          v = v.defined() ? v * u : u;
        }
        return k.empty() ? v : te::Sum(v, k);
      },
      "einsum");
}
Tensor LowerEinsum(const EinsumAttrs& a, const Tensors& in) {
  Ints ranks;
  std::vector<Shape> shapes;
  for (const Tensor& t : in) ranks.push_back(t.ndim()), shapes.push_back(t.shape());
  Equation e = ReadEquation(a.equation.view(), ranks, "einsum");
  Shape extent = Extents(e, shapes, [](size_t, size_t, int64_t, int64_t) {
    throw InternalError("einsum is lowered with extents that do not fit");
  });
  DataType acc = Wide(in[0].dtype());
  // Operands join one by one from the left; an index is summed once neither a later operand nor the result has it.
  Tensor have = in[0];
  Ints have_term = e.terms[0];
  for (size_t k = 1; k <= in.size(); ++k) {
    bool last = k + 1 >= in.size();
    std::vector<bool> later(extent.size()), here(extent.size());
    for (int64_t n : e.out) later[n] = true;
    for (size_t m = k + 1; m < in.size(); ++m) {
      for (int64_t n : e.terms[m]) later[n] = true;
    }
    std::vector<Ints> terms{have_term};
    Tensors operands{have};
    if (k < in.size()) terms.push_back(e.terms[k]), operands.push_back(in[k]);
    for (const Ints& t : terms) {
      for (int64_t n : t) here[n] = true;
    }
    Ints out, summed;
    for (int64_t n = 0; n < static_cast<int64_t>(extent.size()); ++n) {
      if (here[n]) (later[n] ? out : summed).push_back(n);
    }
    if (last) out = e.out;
    have = Contract(operands, terms, out, summed, extent, acc);
    have_term = out;
    if (last) break;
  }
  return Rounded(have, in[0].dtype());
}

ScaleAxes DenseScaleAxes(const Attrs&, int64_t rank, const std::vector<int64_t>&) {
  return {.channel = {rank - 1}, .input = {1}, .output = {0}};
}

}  // namespace

namespace gradient {
namespace {

/// Leading dimensions as one; `e` itself if it is a matrix.
Expr Rows(const Expr& e, const TensorTypeNode* type) {
  if (type->shape.size() == 2) return e;
  int64_t last = DimOf(type->shape.back());
  Ints dims;
  // A matrix of no elements has no extent to infer.
  if (StaticShape(type->shape, &dims) && ProductOf(dims) == 0) {
    int64_t rows = 1;
    for (size_t d = 0; d + 1 < dims.size(); ++d) rows *= dims[d];
    return MakeCall<ReshapeAttrs>(op::reshape, {e},
                                  [&](ReshapeAttrs* a) { a->newshape = {rows, last}, a->allowzero = true; });
  }
  if (last < 0) throw CompileError("[gradient] a product needs a known extent of the dimension that it sums over");
  return Reshape(e, {-1, last});
}
Expr As(const Expr& e, DataType from, DataType to) { return from == to ? e : Cast(e, to); }

Expr Transposed(const Expr& matrix) {
  return MakeCall<TransposeAttrs>(op::transpose, {matrix}, [](TransposeAttrs*) {});
}
/// nn.dense of a and the transpose of b: a @ b.
Expr DenseOf(const Expr& a, const Expr& b, const PrimExpr& units) {
  return MakeCall<DenseAttrs>(op::dense, {a, Transposed(b)}, [&](DenseAttrs* d) { d->units = units; });
}
Grads DenseBack(const Call& call, const Expr& grad) {
  At at(call, grad);
  DataType t = at.out()->dtype;
  Expr w = As(at.arg(1), at.dtype(1), t), x = As(at.arg(0), at.dtype(0), t);
  // Literal extents alone are units; others follow from the operands.
  const auto extent = [](const PrimExpr& dim) { return dim.as<IntImmNode>() ? dim : PrimExpr(); };
  Expr dx = DenseOf(grad, w, extent(at.type(1)->shape[1]));
  if (at.ndim(0) != 2) dx = ShapeLike(dx, at.arg(0));
  Expr dw = DenseOf(Transposed(Rows(grad, at.out())), Rows(x, at.type(0)), extent(at.type(0)->shape.back()));
  return {As(dx, t, at.dtype(0)), As(dw, t, at.dtype(1))};
}

/// A product over stacks of matrices, operands transposed or not: adjoints before broadcasting is undone.
struct Product {
  Expr da, db;
};
Product Adjoints(const Expr& a, const Expr& b, const Expr& g, bool ta, bool tb,
                 Expr (*mul)(const Expr&, const Expr&, bool, bool)) {
  return {ta ? mul(b, g, tb, true) : mul(g, b, false, !tb), tb ? mul(g, a, true, ta) : mul(a, g, !ta, false)};
}
Expr BatchMul(const Expr& a, const Expr& b, bool ta, bool tb) {
  return MakeCall<BatchMatmulAttrs>(op::batch_matmul, {a, b},
                                    [&](BatchMatmulAttrs* m) { m->transpose_a = ta, m->transpose_b = tb; });
}
/// The type of the product of which `like` is one operand that was broadcast: its matrices, the result's stack.
TensorType Stacked(const TensorTypeNode* like, const TensorTypeNode* out) {
  Array<PrimExpr> shape(out->shape.begin(), out->shape.end() - 2);
  shape.push_back(like->shape[like->shape.size() - 2]);
  shape.push_back(like->shape.back());
  return TensorType(shape, like->dtype);
}
Grads Finish(const At& at, const Product& p) {
  DataType t = at.out()->dtype;
  Grads out;
  for (int i = 0; i < 2; ++i) {
    TensorType full = Stacked(at.type(i), at.out());
    out.push_back(As(Collapse(i ? p.db : p.da, full.get(), at.arg(i)), t, at.dtype(i)));
  }
  return out;
}
Grads BatchMatmulBack(const Call& call, const Expr& grad) {
  At at(call, grad);
  const auto& a = at.attrs<BatchMatmulAttrs>();
  DataType t = at.out()->dtype;
  return Finish(at, Adjoints(As(at.arg(0), at.dtype(0), t), As(at.arg(1), at.dtype(1), t), grad, a.transpose_a,
                             a.transpose_b, BatchMul));
}
Grads MatmulBack(const Call& call, const Expr& grad) {
  At at(call, grad);
  const auto& m = at.attrs<MatmulAttrs>();
  DataType t = at.out()->dtype;
  Expr a = As(at.arg(0), at.dtype(0), t), b = As(at.arg(1), at.dtype(1), t);
  bool va = at.ndim(0) == 1, vb = at.ndim(1) == 1;
  if (!va && !vb) return Finish(at, Adjoints(a, b, grad, m.transpose_a, m.transpose_b, MatMul));
  // Operands of rank 1 as matrices: (1, K) by (K, 1).
  Expr g = grad;
  if (vb) g = ExpandDims(g, static_cast<int64_t>(at.out()->shape.size()));
  if (va) g = ExpandDims(g, static_cast<int64_t>(at.out()->shape.size()) - (vb ? 0 : 1));
  Product p = Adjoints(va ? ExpandDims(a, 0) : a, vb ? ExpandDims(b, 1) : b, g, !va && m.transpose_a,
                       !vb && m.transpose_b, MatMul);
  Array<PrimExpr> stack(at.out()->shape.begin(), at.out()->shape.end() - (va ? 0 : 1) - (vb ? 0 : 1));
  Grads out;
  for (int i = 0; i < 2; ++i) {
    Array<PrimExpr> full = stack;
    for (const PrimExpr& d : at.type(i)->shape) {
      if (static_cast<int64_t>(full.size()) < static_cast<int64_t>(stack.size()) + 2) full.push_back(d);
    }
    Expr d = i ? p.db : p.da;
    if (i ? vb : va) {
      d = Squeeze(d, {static_cast<int64_t>(stack.size()) + (i ? 1 : 0)});
    } else {  // the matrices of the other operand alone
      full = stack;
      full.push_back(at.type(i)->shape[at.ndim(i) - 2]);
      full.push_back(at.type(i)->shape.back());
    }
    out.push_back(As(Collapse(d, TensorType(full, t).get(), at.arg(i)), t, at.dtype(i)));
  }
  return out;
}

// ---- einsum
struct Equation {
  std::vector<std::string> in;
  std::string out;
};
Equation ReadEquation(const At& at) {
  Equation e;
  std::string text;
  for (char c : at.attrs<EinsumAttrs>().equation.str()) {
    if (c != ' ') text += c;
  }
  if (text.find('.') != std::string::npos) at.Fail("an equation with `...` has no rule; name the dimensions");
  size_t arrow = text.find("->");
  std::string left = text.substr(0, arrow);
  for (size_t b = 0;;) {
    size_t c = left.find(',', b);
    e.in.push_back(left.substr(b, c == std::string::npos ? c : c - b));
    if (c == std::string::npos) break;
    b = c + 1;
  }
  if (arrow != std::string::npos) {
    e.out = text.substr(arrow + 2);
  } else {  // letters that occur once, in order
    std::string all;
    for (const std::string& s : e.in) all += s;
    std::sort(all.begin(), all.end());
    for (char c : all) {
      if (std::count(all.begin(), all.end(), c) == 1) e.out += c;
    }
  }
  return e;
}
/// The largest extent of a dimension: an extent of 1 is repeated.
int64_t ExtentOf(const At& at, const Equation& e, const TupleTypeNode* types, char name) {
  int64_t n = 1;
  for (size_t i = 0; i < e.in.size(); ++i) {
    const Ints dims = at.Known(AsTensor(types->fields[i])->shape);
    for (size_t d = 0; d < e.in[i].size(); ++d) {
      if (e.in[i][d] == name && dims[d] != 1) n = dims[d];
    }
  }
  return n;
}
Grads EinsumBack(const Call& call, const Expr& grad) {
  At at(call, grad);
  Equation e = ReadEquation(at);
  const auto* types = at.arg(0)->checked_type().as<TupleTypeNode>();
  Array<Expr> out;
  for (size_t i = 0; i < e.in.size(); ++i) {
    const std::string& own = e.in[i];
    const auto* type = AsTensor(types->fields[i]);
    std::string known = e.out, eq = e.out, wanted;
    Array<Expr> args{grad};
    for (size_t j = 0; j < e.in.size(); ++j) {
      if (j == i) continue;
      known += e.in[j], eq += "," + e.in[j];
      const auto* lit = at.arg(0).as<TupleNode>();
      args.push_back(lit ? lit->fields[j] : Item(at.arg(0), j));
    }
    Ints dims, fresh;
    if (!StaticShape(type->shape, &dims)) at.Fail("it needs known extents");
    for (size_t d = 0; d < own.size(); ++d) {
      if (std::count(own.begin(), own.end(), own[d]) > 1)
        at.Fail("an operand that names a dimension twice has no rule");
      if (known.find(own[d]) == std::string::npos) {
        fresh.push_back(d);  // summed over in this operand alone
      } else {
        wanted += own[d];
      }
    }
    Expr g =
        MakeCall<EinsumAttrs>(op::einsum, {Tuple(args)}, [&](EinsumAttrs* a) { a->equation = eq + "->" + wanted; });
    Ints repeated;  // extents of 1 that another operand's repeat
    bool spread = false;
    for (size_t d = 0, k = 0; d < own.size(); ++d) {
      if (wanted.find(own[d]) == std::string::npos) continue;
      if (dims[d] == 1 && ExtentOf(at, e, types, own[d]) != 1) repeated.push_back(k);
      spread = spread || (dims[d] != 1 && e.out.find(own[d]) == std::string::npos);
      ++k;
    }
    if (!repeated.empty()) g = Sum(g, repeated, true);
    if (!fresh.empty()) {
      g = MakeCall<ExpandDimsAttrs>(op::expand_dims, {g}, [&](ExpandDimsAttrs* a) { a->axes = ToArray(fresh); });
    }
    // A dimension that the others have with extent 1, or not at all.
    if (!fresh.empty() || spread) {
      g = MakeCall<InitOpAttrs>(op::broadcast_to, {g}, [&](InitOpAttrs* a) { a->shape = ToArray(dims); });
    }
    out.push_back(g);
  }
  return {Tuple(out)};
}

}  // namespace
}  // namespace gradient

const Op op::dense = DefineOp({
    .name = "nn.dense",
    .doc = "data times the transposed weight: out[..., u] = sum over k of data[..., k] * weight[u, k].",
    .inputs = {{"data", "(..., K). R1: numbers. R2: rank 1 or more."},
               {"weight",
                "(units, K). R1: dtype of data, unless out_dtype is given. R2: K of data. R3: as units says."}},
    .output = "(..., units).",
    .attrs = TypeOf<DenseAttrs>,
    .type_rel = RelGuess<"nn.dense", GuessDense, DenseType>,
    .lower = LowerDense,
    .gradient = gradient::DenseBack,
    .pattern = OpPattern::kOutEWiseFusable,
    .source = "Relay",
    .traits = {.precision = Precision::kAlways,
               .flops = MatmulFlops,
               .scale_axes = DenseScaleAxes,
               .kernel = kernel::GenerateDense,
               .integers = integers::Dense,
               .reference = reference::Dense},
});
const Op op::matmul = DefineOp({
    .name = "nn.matmul",
    .doc = "Matrix product by NumPy's rules: leading dimensions broadcast, a vector is a row on the left and a column "
           "on the right.",
    .inputs = {{"tensor_a", "(..., M, K), (..., K, M) with transpose_a, or (K,). R1: numbers."},
               {"tensor_b",
                "(..., K, N), (..., N, K) with transpose_b, or (K,). R1: dtype of tensor_a, unless out_dtype is given. "
                "R2: K of "
                "tensor_a, leading dimensions that broadcast. R3: as units says."}},
    .output = "(..., M, N), without the dimension of a vector.",
    .attrs = TypeOf<MatmulAttrs>,
    .type_rel = RelGuess<"nn.matmul", GuessMatmul, MatmulType>,
    .lower = LowerMatmul,
    .gradient = gradient::MatmulBack,
    .pattern = OpPattern::kOutEWiseFusable,
    .source = "NumPy; ONNX MatMul-13",
    .traits = {.precision = Precision::kAlways, .flops = MatmulFlops, .kernel = kernel::GenerateMatmul},
});
const Op op::batch_matmul = DefineOp({
    .name = "nn.batch_matmul",
    .doc = "Matrix products of a batch.",
    .inputs = {{"tensor_a", "(batch, M, K), (batch, K, M) with transpose_a. R1: numbers. R2: rank 3."},
               {"tensor_b",
                "(batch, N, K), (batch, K, N) without transpose_b. R1: dtype of tensor_a, unless out_dtype is given. "
                "R2: rank 3, K of tensor_a. R3: the same batch, or 1."}},
    .output = "(batch, M, N).",
    .attrs = TypeOf<BatchMatmulAttrs>,
    .type_rel = Rel<"nn.batch_matmul", BatchMatmulType>,
    .lower = LowerBatchMatmul,
    .gradient = gradient::BatchMatmulBack,
    .pattern = OpPattern::kOutEWiseFusable,
    .source = "Relay",
    .traits = {.precision = Precision::kAlways,
               .flops = MatmulFlops,
               .kernel = kernel::GenerateBatchMatmul,
               .integers = integers::BatchMatmul,
               .reference = reference::BatchMatmul},
});
const Op op::einsum = DefineOp({
    .name = "einsum",
    .doc = "Products summed over indices, in Einstein's notation.",
    .inputs = {{"data", "A tuple. R2: one tensor or more, numbers of one dtype. R3: extents that fit the equation."}},
    .output = "The indices behind `->`. R1: a valid equation.",
    .attrs = TypeOf<EinsumAttrs>,
    .type_rel = Rel<"einsum", EinsumType>,
    .lower = LowerEinsum,
    .gradient = gradient::EinsumBack,
    .pattern = OpPattern::kOpaque,
    .source = "NumPy; ONNX Einsum-12",
});

}  // namespace baton::relay
