// SPDX-License-Identifier: Apache-2.0
// Decision trees, and the probabilities of classes from those of pairs: what scikit-learn's models need beside products
// of matrices.
#include <baton/relay/op/tensor.h>
#include <baton/topi/elemwise.h>
#include <baton/topi/reduce.h>
#include <tir/parallel_if.h>

#include <algorithm>
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
  int64_t flags = 3;
  String aggregate = "sum";
  static constexpr void Describe(auto& d) {
    d(F<&TreeEnsembleAttrs::num_targets>, "Columns of the result.", AtLeast(1));
    d(F<&TreeEnsembleAttrs::depth>, "Steps from a root to the farthest leaf; a leaf is its own child.", AtLeast(0));
    d(F<&TreeEnsembleAttrs::flags>, "Bits that flags of nodes may have; others are not looked at.", AtLeast(0),
      AtMost(3));
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
  in.Rank(4, 1, "R3");
  in.Rank(2, 2, "R3");
  if (in.ndim(3) != 1 && !(in.ndim(3) == 2 && in.Same(in.shape(3)[1], PrimExpr(2))))
    in.Fail("R3", in.Show(3) + ", where (T) or (T, 2) is wanted");
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

/// Rows that walk a tree side by side: each step of one waits for memory, and eight hide that. Rows of a chunk meet a
/// tree while it is in the first cache; chunks are what threads take.
constexpr int64_t kLanes = 8, kChunk = 32;
/// Steps from which another thread is worth waking.
constexpr int64_t kParallelSteps = 1 << 15;

/// The loops of an ensemble over its buffers.
class Ensemble {
 public:
  Ensemble(const TreeEnsembleAttrs& a, const Array<tir::Buffer>& in, const tir::Buffer& out)
      : a_(a), x_(in[0]), splits_(in[1]), nodes_(in[2]), roots_(in[3]), targets_(in[4]), weights_(in[5]), out_(out) {
    limit_ = a.aggregate == "min" ? std::numeric_limits<double>::infinity() : -std::numeric_limits<double>::infinity();
  }

  tir::Stmt Loops() const {
    const PrimExpr rows = x_->shape[0], chunks = floordiv(rows + PrimExpr(kChunk - 1), PrimExpr(kChunk));
    tir::Var chunk("chunk");
    tir::ForNode n;
    n.loop_var = chunk, n.min = 0, n.extent = chunks, n.kind = tir::ForKind::kParallel, n.body = Chunk(chunk);
    const PrimExpr steps = rows * roots_->shape[0] * PrimExpr(std::max<int64_t>(a_.depth, 1));
    return tir::ParallelIf(PrimExpr(kParallelSteps) <= steps && PrimExpr(1) < chunks, tir::For(std::move(n)));
  }

 private:
  static PrimExpr Load(const tir::Buffer& b, const Shape& at) { return tir::BufferLoad(b, at); }
  /// An index within a list, whatever the table says.
  static PrimExpr Within(const PrimExpr& i, const PrimExpr& n) {
    const DataType whole = DataType::UInt(i.dtype().bits());
    return cast(DataType::Int(64), min(cast(whole, i), cast(whole, n - PrimExpr(1))));
  }
  static tir::Stmt When(const PrimExpr& condition, tir::Stmt yes, tir::Stmt no = {}) {
    tir::IfThenElseNode s;
    s.condition = condition, s.then_case = std::move(yes), s.else_case = std::move(no);
    return tir::IfThenElse(std::move(s));
  }
  /// The same for each lane, written out: what lanes hold stays in registers.
  template <class Body>
  static tir::Stmt Each(int64_t lanes, Body body) {
    Array<tir::Stmt> all;
    for (int64_t i = 0; i < lanes; ++i) all.push_back(body(i));
    return tir::SeqStmt::Flatten(all);
  }

  tir::Stmt Chunk(const PrimExpr& chunk) const {
    const PrimExpr n = x_->shape[0], first = chunk * PrimExpr(kChunk), rows = min(PrimExpr(kChunk), n - first);
    const PrimExpr targets(a_.num_targets), zero(0);
    const bool sum = a_.aggregate == "sum";
    tir::Stmt start = topi::Loops({rows, targets}, [&](const Shape& i) {
      return topi::Store(out_, {first + i[0], i[1]}, Lit(sum ? 0.0 : limit_, out_->dtype));
    });
    const PrimExpr blocks = floordiv(rows, PrimExpr(kLanes)), rest = floormod(rows, PrimExpr(kLanes));
    const PrimExpr last = first + blocks * PrimExpr(kLanes);
    tir::Stmt trees = topi::Loops({roots_->shape[0]}, [&](const Shape& tree) {
      tir::Stmt whole = topi::Loops({blocks}, [&](const Shape& b) {
        return Walk(tree[0], kLanes, first + b[0] * PrimExpr(kLanes), PrimExpr(kLanes));
      });
      // Of few rows that are left each walks alone; more walk with copies of the last one beside them.
      constexpr int64_t kAlone = 2;
      tir::Stmt alone = topi::Loops({rest}, [&](const Shape& r) { return Walk(tree[0], 1, last + r[0], PrimExpr(1)); });
      tir::Stmt left = When(rest <= PrimExpr(kAlone), alone, Walk(tree[0], kLanes, last, rest));
      return tir::SeqStmt::Flatten({whole, left});
    });
    if (sum) return tir::SeqStmt::Flatten({start, trees});
    // A target that no leaf has a weight for is 0.
    tir::Stmt done = topi::Loops({rows, targets}, [&](const Shape& i) {
      const PrimExpr v = Load(out_, {first + i[0], i[1]});
      return topi::Store(out_, {first + i[0], i[1]},
                         te::Select(equal(v, Lit(limit_, out_->dtype)), Lit(0, v.dtype()), v));
    });
    return tir::SeqStmt::Flatten({start, trees, done});
  }

  /// A tree's root, and the number of steps to its farthest leaf.
  PrimExpr Root(const PrimExpr& tree, int64_t column) const {
    if (roots_->shape.size() == 1) return column == 0 ? Load(roots_, {tree}) : PrimExpr(a_.depth);
    return Load(roots_, {tree, PrimExpr(column)});
  }

  /// The first `count` of `lanes` rows from `row` on go through a tree.
  tir::Stmt Walk(const PrimExpr& tree, int64_t lanes, const PrimExpr& row, const PrimExpr& count) const {
    const PrimExpr nodes = nodes_->shape[0], zero(0);
    tir::AllocateNode alloc;
    alloc.buffer = tir::Buffer::Make({lanes}, nodes_->dtype, "node", "local");
    auto node = [&](int64_t i) { return cast(DataType::Int(64), Load(alloc.buffer, {PrimExpr(i)})); };
    auto put = [&](int64_t i, const PrimExpr& v) {
      return topi::Store(alloc.buffer, {PrimExpr(i)}, cast(nodes_->dtype, Within(v, nodes)));
    };
    tir::Stmt root = Each(lanes, [&](int64_t i) { return put(i, cast(nodes_->dtype, Root(tree, 0))); });
    const PrimExpr depth = max(min(cast(DataType::Int(64), Root(tree, 1)), PrimExpr(a_.depth)), zero);
    tir::Stmt steps = topi::Loops({depth}, [&](const Shape&) {
      return Each(lanes, [&](int64_t i) { return put(i, Next(node(i), row + min(PrimExpr(i), count - PrimExpr(1)))); });
    });
    tir::Stmt add = Each(lanes, [&](int64_t i) {
      tir::Stmt one = Add(node(i), row + PrimExpr(i));
      return tir::is_const_int(count, lanes) ? one : When(PrimExpr(i) < count, one);
    });
    alloc.body = tir::SeqStmt::Flatten({root, steps, add});
    return tir::Allocate(std::move(alloc));
  }

  /// The child that a row goes to.
  PrimExpr Next(const PrimExpr& node, const PrimExpr& row) const {
    auto of = [&](const PrimExpr& column) { return Load(nodes_, {node, column}); };
    const PrimExpr v = Load(x_, {row, Within(of(PrimExpr(kFeature)), x_->shape[1])}), split = Load(splits_, {node});
    PrimExpr yes = v <= split;
    if (a_.flags != 0) {
      const PrimExpr flags = of(PrimExpr(kFlags));
      if ((a_.flags & 2) != 0) yes = te::Select(flags >= PrimExpr(2), equal(v, split), yes);
      if ((a_.flags & 1) != 0) yes = yes || (baton::isnan(v) && equal(floormod(flags, PrimExpr(2)), PrimExpr(1)));
    }
    return of(te::Select(yes, PrimExpr(kTrue), PrimExpr(kFalse)));
  }

  /// Joins the leaf's weights, a range of two lists with one entry a target, to the row's.
  tir::Stmt Add(const PrimExpr& node, const PrimExpr& row) const {
    const PrimExpr leaves = targets_->shape[0], zero(0);
    auto of = [&](int64_t column) { return cast(DataType::Int(64), Load(nodes_, {node, PrimExpr(column)})); };
    const PrimExpr begin = max(min(of(kBegin), leaves), zero), count = max(min(of(kEnd), leaves) - begin, zero);
    return topi::Loops({count}, [&](const Shape& w) {
      const PrimExpr entry = begin + w[0], weight = Load(weights_, {entry});
      const Shape to{row, a_.num_targets == 1 ? zero : Within(Load(targets_, {entry}), PrimExpr(a_.num_targets))};
      const PrimExpr old = Load(out_, to);
      return topi::Store(out_, to,
                         a_.aggregate == "sum"   ? old + weight
                         : a_.aggregate == "min" ? min(old, weight)
                                                 : max(old, weight));
    });
  }

  const TreeEnsembleAttrs& a_;
  const tir::Buffer &x_, &splits_, &nodes_, &roots_, &targets_, &weights_, &out_;
  double limit_;
};

Tensor LowerTreeEnsemble(const TreeEnsembleAttrs& a, const Tensors& in) {
  return topi::Extern(
      Shape{in[0].shape()[0], PrimExpr(a.num_targets)}, in[0].dtype(), in,
      [&](const Array<tir::Buffer>& buf, const tir::Buffer& out) { return Ensemble(a, buf, out).Loops(); },
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
    .inputs =
        {{"data", "(N, F). R1: floating dtype, rank 2. R4: F > 0."},
         {"splits", "(M) values that are compared with. R2: dtype of data. R3: rank 1. R4: M > 0."},
         {"nodes",
          "(M, 6): feature, true child, false child, flags, begin and end of the leaf's weights. "
          "R2: integers. R3: rank 2. R4: a row for each split."},
         {"roots",
          "(T) nodes, or (T, 2): nodes and the steps from each to its farthest leaf, at most depth. R2: integers. "
          "R3: rank 1, or 2 columns."},
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
