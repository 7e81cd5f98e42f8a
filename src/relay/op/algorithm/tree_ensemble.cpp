// SPDX-License-Identifier: Apache-2.0
// Decision trees, and the probabilities of classes from those of pairs: what scikit-learn's models need beside products
// of matrices.
#include <baton/relay/op/tensor.h>
#include <baton/topi/elemwise.h>
#include <baton/topi/reduce.h>

#include <limits>
#include <utility>

#include "../common.h"

namespace baton::relay {
namespace op {
extern const Op tree_ensemble, pairwise_coupling;
}
namespace {

struct TreeEnsembleAttrs : AttrsNode<TreeEnsembleAttrs> {
  static constexpr auto _type_key = "relay.attrs.TreeEnsembleAttrs";
  int64_t num_targets = 1;
  int64_t depth = 1;
  String aggregate = "sum";
  static constexpr void Describe(auto& d) {
    d(F<&TreeEnsembleAttrs::num_targets>, "Columns of the result.", AtLeast(1));
    d(F<&TreeEnsembleAttrs::depth>, "Steps from a root to the farthest leaf; a leaf is its own child.", AtLeast(0));
    d(F<&TreeEnsembleAttrs::aggregate>, "What joins the weights of a target: \"sum\", \"min\" or \"max\".");
  }
};

// Columns of `nodes`.
constexpr int64_t kFeature = 0, kTrue = 1, kFalse = 2, kFlags = 3, kBegin = 4, kEnd = 5, kColumns = 6;

Type TreeEnsembleType(const TreeEnsembleAttrs& a, const TypeArgs& in) {
  in.Floating(0, "R1");
  in.Rank(0, 2, "R1");
  for (size_t i : {1, 5}) {
    in.SameDtype(0, i, "R2");
    in.Rank(i, 1, "R3");
  }
  for (size_t i : {2, 3, 4}) in.Integral(i, "R2");
  for (size_t i : {3, 4}) in.Rank(i, 1, "R3");
  in.Rank(2, 2, "R3");
  if (!in.Same(in.shape(1)[0], in.shape(2)[0]) || !in.Same(in.shape(2)[1], PrimExpr(kColumns))) {
    in.Fail("R4",
            in.Show(1) + " and " + in.Show(2) + ", where a row of " + Str(kColumns) + " for each split is wanted");
  }
  if (!in.Same(in.shape(4)[0], in.shape(5)[0])) in.Fail("R4", in.Show(4) + " and " + in.Show(5) + " differ in length");
  for (auto [i, d] : {std::pair<size_t, size_t>{0, 1}, {1, 0}}) {
    if (in.dim(i, d) == 0) in.Fail("R4", in.Show(i) + " is empty");
  }
  if (a.aggregate != "sum" && a.aggregate != "min" && a.aggregate != "max")
    in.Fail("R5", "aggregate is \"" + a.aggregate.str() + "\"; it is \"sum\", \"min\" or \"max\"");
  return TensorType(Shape{in.shape(0)[0], PrimExpr(a.num_targets)}, in.dtype(0));
}

PrimExpr Within(const PrimExpr& i, const PrimExpr& n) {
  return max(min(cast(DataType::Int(64), i), n - PrimExpr(1)), PrimExpr(0));
}

Tensor LowerTreeEnsemble(const TreeEnsembleAttrs& a, const Tensors& in) {
  const Tensor& x = in[0];
  DataType t = x.dtype(), i64 = DataType::Int(64);
  const PrimExpr features = x.shape()[1], nodes = in[2].shape()[0], leaves = in[4].shape()[0];
  const bool sum = a.aggregate == "sum", least = a.aggregate == "min";
  const double limit = least ? std::numeric_limits<double>::infinity() : -std::numeric_limits<double>::infinity();
  const PrimExpr zero(0);
  return topi::Extern(
      Shape{x.shape()[0], PrimExpr(a.num_targets)}, t, in,
      [&](const Array<tir::Buffer>& buf, const tir::Buffer& out) {
        auto of = [&](const PrimExpr& node, int64_t column) {
          return tir::BufferLoad(buf[2], {node, PrimExpr(column)});
        };
        return topi::Loops({x.shape()[0]}, [&](const Shape& row) {
          tir::Buffer at = tir::Buffer::Make({1}, i64, "node", "local");
          const PrimExpr node = tir::BufferLoad(at, {zero});
          tir::Stmt start = topi::Loops({PrimExpr(a.num_targets)}, [&](const Shape& k) {
            return topi::Store(out, {row[0], k[0]}, Lit(sum ? 0.0 : limit, t));
          });
          tir::Stmt trees = topi::Loops({in[3].shape()[0]}, [&](const Shape& tree) {
            tir::Stmt root = topi::Store(at, {zero}, Within(tir::BufferLoad(buf[3], {tree[0]}), nodes));
            tir::Stmt walk = topi::Loops({PrimExpr(a.depth)}, [&](const Shape&) {
              PrimExpr v = tir::BufferLoad(buf[0], {row[0], Within(of(node, kFeature), features)});
              PrimExpr flags = cast(i64, of(node, kFlags)), split = tir::BufferLoad(buf[1], {node});
              PrimExpr missing = baton::isnan(v), goes = equal(floormod(flags, PrimExpr(2)), PrimExpr(1));
              PrimExpr holds = te::Select(flags >= PrimExpr(2), equal(v, split), v <= split);
              PrimExpr yes = (missing && goes) || (!missing && holds);
              return topi::Store(at, {zero}, Within(te::Select(yes, of(node, kTrue), of(node, kFalse)), nodes));
            });
            // The leaf's weights: a range of two lists, one entry a target.
            PrimExpr begin = max(min(cast(i64, of(node, kBegin)), leaves), zero);
            PrimExpr count = max(min(cast(i64, of(node, kEnd)), leaves) - begin, zero);
            tir::Stmt add = topi::Loops({count}, [&](const Shape& w) {
              PrimExpr entry = begin + w[0];
              Shape to{row[0], Within(tir::BufferLoad(buf[4], {entry}), PrimExpr(a.num_targets))};
              PrimExpr old = tir::BufferLoad(out, to), weight = tir::BufferLoad(buf[5], {entry});
              return topi::Store(out, to, sum ? old + weight : least ? min(old, weight) : max(old, weight));
            });
            return tir::SeqStmt::Flatten({root, walk, add});
          });
          // A target that no leaf has a weight for is 0.
          tir::Stmt done = topi::Loops({PrimExpr(a.num_targets)}, [&](const Shape& k) {
            PrimExpr v = tir::BufferLoad(out, {row[0], k[0]});
            return topi::Store(out, {row[0], k[0]}, te::Select(equal(v, Lit(limit, t)), Lit(0, t), v));
          });
          tir::AllocateNode alloc;
          alloc.buffer = at;
          alloc.body =
              tir::SeqStmt::Flatten(sum ? Array<tir::Stmt>{start, trees} : Array<tir::Stmt>{start, trees, done});
          return tir::Stmt(tir::Allocate(std::move(alloc)));
        });
      },
      "tree_ensemble");
}

// ---- pairwise_coupling
Type CouplingType(const TypeArgs& in) {
  in.Floating(0, "R1");
  in.Rank(0, 3, "R1");
  if (!in.Same(in.shape(0)[1], in.shape(0)[2]) || in.dim(0, 1) == 0)
    in.Fail("R2", in.Show(0) + ", where (N, K, K) is wanted");
  return TensorType(Shape{in.shape(0)[0], in.shape(0)[1]}, in.dtype(0));
}

/// Wu, Lin and Weng, Probability Estimates for Multi-class Classification by Pairwise Coupling (2004), algorithm 2, as
/// LIBSVM has it: Q[t][t] = sum of r[j][t]^2, Q[t][j] = -r[j][t] r[t][j]; then p is adjusted coordinate by coordinate
/// until |Qp - pQp| < 0.005 / K.
Tensor LowerCoupling(const Tensors& in) {
  const Tensor& r = in[0];
  const DataType t = r.dtype();
  const PrimExpr n = r.shape()[1], zero(0);
  constexpr int64_t kRounds = 100;
  return topi::Extern(
      Shape{r.shape()[0], n}, t, in,
      [&](const Array<tir::Buffer>& buf, const tir::Buffer& p) {
        return topi::Loops({r.shape()[0]}, [&](const Shape& row) {
          tir::Buffer q = tir::Buffer::Make({n, n}, t, "q", "local"), qp = tir::Buffer::Make({n}, t, "qp", "local");
          tir::Buffer cell = tir::Buffer::Make({3}, t, "sums", "local");  // pQp, the largest error, a step
          auto load = [](const tir::Buffer& b, const Shape& i) { return PrimExpr(tir::BufferLoad(b, i)); };
          auto pair = [&](const PrimExpr& i, const PrimExpr& j) { return load(buf[0], {row[0], i, j}); };
          auto prob = [&](const PrimExpr& i) { return load(p, {row[0], i}); };
          const PrimExpr pqp = load(cell, {zero}), error = load(cell, {PrimExpr(1)}), step = load(cell, {PrimExpr(2)});
          auto when = [](const PrimExpr& condition, const tir::Stmt& body) {
            tir::IfThenElseNode s;
            s.condition = condition, s.then_case = body;
            return tir::Stmt(tir::IfThenElse(std::move(s)));
          };
          tir::Stmt fill = topi::Loops({n}, [&](const Shape& i) {
            tir::Stmt even = topi::Store(p, {row[0], i[0]}, Lit(1, t) / cast(t, n));
            tir::Stmt none = topi::Store(q, {i[0], i[0]}, Lit(0, t));
            tir::Stmt cross = topi::Loops({n}, [&](const Shape& j) {
              PrimExpr back = pair(j[0], i[0]);
              tir::Stmt own = topi::Store(q, {i[0], i[0]}, load(q, {i[0], i[0]}) + back * back);
              tir::Stmt other = topi::Store(q, {i[0], j[0]}, Lit(0, t) - back * pair(i[0], j[0]));
              return when(not_equal(i[0], j[0]), tir::SeqStmt::Flatten({own, other}));
            });
            return tir::SeqStmt::Flatten({even, none, cross});
          });
          tir::Stmt more = topi::Store(cell, {PrimExpr(1)}, Lit(1, t));
          tir::Stmt rounds = topi::Loops({PrimExpr(kRounds)}, [&](const Shape&) {
            tir::Stmt reset = topi::Store(cell, {zero}, Lit(0, t));
            tir::Stmt product = topi::Loops({n}, [&](const Shape& i) {
              tir::Stmt begin = topi::Store(qp, {i[0]}, Lit(0, t));
              tir::Stmt add = topi::Loops({n}, [&](const Shape& j) {
                return topi::Store(qp, {i[0]}, load(qp, {i[0]}) + load(q, {i[0], j[0]}) * prob(j[0]));
              });
              tir::Stmt total = topi::Store(cell, {zero}, pqp + prob(i[0]) * load(qp, {i[0]}));
              return tir::SeqStmt::Flatten({begin, add, total});
            });
            tir::Stmt calm = topi::Store(cell, {PrimExpr(1)}, Lit(0, t));
            tir::Stmt worst = topi::Loops({n}, [&](const Shape& i) {
              return topi::Store(cell, {PrimExpr(1)}, max(error, abs(load(qp, {i[0]}) - pqp)));
            });
            tir::Stmt adjust = topi::Loops({n}, [&](const Shape& i) {
              const PrimExpr own = load(q, {i[0], i[0]}), wide = Lit(1, t) + step;
              tir::Stmt choose = topi::Store(cell, {PrimExpr(2)}, (pqp - load(qp, {i[0]})) / own);
              tir::Stmt move = topi::Store(p, {row[0], i[0]}, prob(i[0]) + step);
              tir::Stmt sum =
                  topi::Store(cell, {zero}, (pqp + step * (step * own + Lit(2, t) * load(qp, {i[0]}))) / wide / wide);
              tir::Stmt scale = topi::Loops({n}, [&](const Shape& j) {
                tir::Stmt product_too =
                    topi::Store(qp, {j[0]}, (load(qp, {j[0]}) + step * load(q, {i[0], j[0]})) / wide);
                return tir::SeqStmt::Flatten({product_too, topi::Store(p, {row[0], j[0]}, prob(j[0]) / wide)});
              });
              return tir::SeqStmt::Flatten({choose, move, sum, scale});
            });
            const PrimExpr least = Lit(0.005, t) / cast(t, n);
            return when(error >= least,
                        tir::SeqStmt::Flatten({reset, product, calm, worst, when(error >= least, adjust)}));
          });
          tir::Stmt body = tir::SeqStmt::Flatten({fill, more, rounds});
          for (const tir::Buffer& b : {cell, qp, q}) {
            tir::AllocateNode alloc;
            alloc.buffer = b, alloc.body = body;
            body = tir::Allocate(std::move(alloc));
          }
          return body;
        });
      },
      "pairwise_coupling");
}

}  // namespace

const Op op::tree_ensemble = DefineOp({
    .name = "tree_ensemble",
    .doc =
        "For each row of data the joined weights of the leaves that it reaches in an ensemble of decision trees. At a "
        "node the row goes to the true child where data[feature] <= split (== split with flag 2), or where it is NaN "
        "and flag 1 is set; else to the false child. A target without a weight is 0.",
    .inputs = {{"data", "(N, F). R1: floating dtype, rank 2. R4: F > 0."},
               {"splits", "(M) values that are compared with. R2: dtype of data. R3: rank 1. R4: M > 0."},
               {"nodes",
                "(M, 6): feature, true child, false child, flags, begin and end of the leaf's weights. "
                "R2: integers. R3: rank 2. R4: a row for each split."},
               {"roots", "(T) nodes. R2: integers. R3: rank 1."},
               {"leaf_targets", "(W) columns. R2: integers. R3: rank 1."},
               {"leaf_weights", "(W). R2: dtype of data. R3: rank 1. R4: as many as leaf_targets."}},
    .output = "(N, num_targets), dtype of data. R5: a known aggregate.",
    .attrs = TypeOf<TreeEnsembleAttrs>,
    .type_rel = Rel<"tree_ensemble", TreeEnsembleType>,
    .lower = LowerTreeEnsemble,
    .gradient = NoGradient("it is constant but for steps"),
    .pattern = OpPattern::kOpaque,
    .source = "ONNX ai.onnx.ml TreeEnsemble-5",
});
const Op op::pairwise_coupling = DefineOp({
    .name = "pairwise_coupling",
    .doc = "Probabilities of K classes from those of all pairs: data[n, i, j] is that of class i where it is i or j.",
    .inputs = {{"data", "(N, K, K). R1: floating dtype, rank 3. R2: square, K > 0."}},
    .output = "(N, K); rows add up to 1.",
    .type_rel = Rel<"pairwise_coupling", CouplingType>,
    .lower = LowerCoupling,
    .gradient = NoGradient("it is found by iteration"),
    .pattern = OpPattern::kOpaque,
    .source = "Wu, Lin and Weng 2004, as LIBSVM",
});

}  // namespace baton::relay
