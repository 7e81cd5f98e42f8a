// SPDX-License-Identifier: Apache-2.0
// Gradients of matrix products: products of the adjoint with the other operand.
#include <baton/relay/op/algorithm.h>
#include <baton/relay/op/nn.h>

#include <algorithm>
#include <string>

#include "rule.h"

namespace baton::relay::gradient {
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

Grads Dense(const Call& call, const Expr& grad) {
  At at(call, grad);
  DataType t = at.out()->dtype;
  Expr w = As(at.arg(1), at.dtype(1), t), x = As(at.arg(0), at.dtype(0), t);
  Expr dx = MatMul(Rows(grad, at.out()), w, false, false);
  if (at.ndim(0) != 2) dx = ShapeLike(dx, at.arg(0));
  Expr dw = MatMul(Rows(grad, at.out()), Rows(x, at.type(0)), true, false);
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
Grads BatchMatmul(const Call& call, const Expr& grad) {
  At at(call, grad);
  const auto& a = at.attrs<BatchMatmulAttrs>();
  DataType t = at.out()->dtype;
  return Finish(at, Adjoints(As(at.arg(0), at.dtype(0), t), As(at.arg(1), at.dtype(1), t), grad, a.transpose_a,
                             a.transpose_b, BatchMul));
}
Grads Matmul(const Call& call, const Expr& grad) {
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
Grads Einsum(const Call& call, const Expr& grad) {
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

Grads Det(const Call& call, const Expr& grad) {
  int64_t stack = At(call, grad).ndim(0) - 2;
  return {Multiply(ExpandDims(grad, stack, 2), MakeCall(op::cofactor, {call->args[0]}))};
}

const bool registered_matrix = [] {
  DefineGradients({{"linalg.det", Det},
                   {"nn.dense", Dense},
                   {"nn.matmul", Matmul},
                   {"nn.batch_matmul", BatchMatmul},
                   {"einsum", Einsum}});
  DefineNoGradients({{"nn.contrib_dense_pack", "its weight is in panels; differentiate before PackDense"}});
  return true;
}();

}  // namespace
}  // namespace baton::relay::gradient
