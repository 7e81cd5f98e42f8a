// SPDX-License-Identifier: Apache-2.0
// Linear models and support vector machines of ai.onnx.ml, and what classifiers make of their scores. Where the text of
// the operators is silent, ONNX Runtime's results count.
#include <algorithm>

#include "ml.h"

namespace baton::onnx {

DataType ScoreType(DataType input) { return input.is_float() && input.bits() == 64 ? input : DataType::Float(32); }

namespace {

/// sqrt(2) erfinv(2 v - 1), by Winitzki's formula.
Value Probit(Ctx& c, const Value& v) {
  const DataType t = v.dtype;
  Value x = c.Sub(c.Mul(v, 2), 1);
  Value log = c.Call("log", {c.Mul(c.Sub(c.Scalar(t, 1), x), c.Add(x, 1))});
  Value half = c.Add(c.Mul(log, 0.5), 2 / (3.14159265358979323846 * 0.147));
  Value root = c.Call("sqrt", {c.Sub(c.Call("sqrt", {c.Sub(c.Mul(half, half), c.Mul(log, 1 / 0.147))}), half)});
  return c.Mul(c.Mul(c.Call("sign", {x}), root), 1.41421356);
}

/// Softmax that leaves zeros out.
Value SoftmaxZero(Ctx& c, const Value& v) {
  const DataType t = v.dtype;
  Value most = Reduce(c, "max", v, {1}, true);
  Value zero = c.Call("less_equal", {c.Call("abs", {v}), c.Scalar(t, 1e-7)});
  Value e = c.Where(zero, c.Mul(v, c.Call("exp", {c.Call("negative", {most})})), c.Call("exp", {c.Sub(v, most)}));
  Value sum = Reduce(c, "sum", e, {1}, true);
  Value none = c.Call("equal", {sum, c.Scalar(t, 0)});
  return c.Where(none, c.Scalar(t, 0.5), c.Div(e, c.Where(none, c.Scalar(t, 1), sum)));
}

Classes ClassesOf(Ctx& c, const char* ints) {
  Classes out;
  out.texts = c.Strs("classlabels_strings");
  out.numbers = c.Ints(ints);
  return out;
}

/// A matrix of an attribute's floats, (rows, columns).
Value Matrix(Ctx& c, DataType t, const std::vector<float>& v, int64_t rows) {
  if (rows < 1 || v.empty() || static_cast<int64_t>(v.size()) % rows != 0) c.Fail("its coefficients do not fit");
  return c.Reshape(FloatList(c, t, v), {rows, static_cast<int64_t>(v.size()) / rows});
}

/// Operand 0 as (N, F) in the type of scores.
Value Features(Ctx& c) {
  Value x = c.T(0);
  x = c.Cast(x, ScoreType(x.dtype));
  if (c.Rank(x) == 1) x = c.Unsqueeze(x, {0});
  if (c.Rank(x) != 2) c.Fail("its operand must have one or two axes");
  return x;
}

/// x times the rows of `weights`.
Value MatProduct(Ctx& c, const Value& x, const Value& weights) { return c.MatMul(x, c.Transpose(weights, {1, 0})); }

Values LinearRegressor(Ctx& c) {
  Value x = Features(c);
  const int64_t targets = c.Int("targets", 1);
  std::vector<float> bias = c.Floats("intercepts");
  Value y = MatProduct(c, x, Matrix(c, x.dtype, c.Floats("coefficients"), targets));
  if (!bias.empty()) y = c.Add(y, FloatList(c, x.dtype, bias));
  return {c.Cast(PostTransform(c, y, c.Str("post_transform", "NONE")), DataType::Float(32))};
}

Values LinearClassifier(Ctx& c) {
  Value x = Features(c);
  Classes classes = ClassesOf(c, "classlabels_ints");
  c.Int("multi_class", 0);  // how it was trained
  const std::string transform = c.Str("post_transform", "NONE");
  std::vector<float> weights = c.Floats("coefficients"), bias = c.Floats("intercepts");
  const int64_t features = c.Dim(x, 1);
  if (features < 1 || static_cast<int64_t>(weights.size()) % features != 0) c.Fail("its coefficients do not fit");
  const int64_t rows = static_cast<int64_t>(weights.size()) / features;
  Value y = MatProduct(c, x, Matrix(c, x.dtype, weights, rows));
  if (!bias.empty()) y = c.Add(y, FloatList(c, x.dtype, bias));
  if (rows > 1) return ManyScores(c, classes, y, transform);
  Value above = c.Squeeze(c.Call("greater", {y, c.Scalar(y.dtype, 0)}), {1});
  if (classes.size() == 2) {
    if (transform == "LOGISTIC") y = Sigmoid(c, y);
    Value scores =
        transform == "PROBIT" ? PostTransform(c, y, transform) : c.Concat({c.Sub(c.Scalar(y.dtype, 1), y), y}, 1);
    return {LabelAt(c, classes, c.Cast(above, DataType::Int(64))), c.Cast(scores, DataType::Float(32))};
  }
  if (!classes.texts.empty()) c.Unsupported("one label that is a string");
  return {c.Cast(above, DataType::Int(64)), c.Cast(PostTransform(c, y, transform), DataType::Float(32))};
}

// ---- support vector machines
struct Kernel {
  std::string type;
  double gamma = 0, coef0 = 0, degree = 0;
};
Kernel KernelOf(Ctx& c) {
  Kernel k;
  k.type = c.Str("kernel_type", "LINEAR");
  std::vector<float> params = c.Floats("kernel_params");
  if (params.size() >= 3) k.gamma = params[0], k.coef0 = params[1], k.degree = params[2];
  if (k.type != "LINEAR" && k.type != "POLY" && k.type != "RBF" && k.type != "SIGMOID")
    c.Fail("`kernel_type` is `" + k.type + "`");
  return k;
}

/// (N, S): the kernel of each row of x and each row of `vectors`.
Value Evaluate(Ctx& c, const Kernel& k, const Value& x, const Value& vectors) {
  if (k.type == "RBF") {
    // The differences themselves: expanding the square would lose digits.
    Value apart = c.Sub(c.Unsqueeze(x, {1}), c.Unsqueeze(vectors, {0}));
    return c.Call("exp", {c.Mul(Reduce(c, "sum", c.Mul(apart, apart), {2}, false), -k.gamma)});
  }
  Value dot = MatProduct(c, x, vectors);
  if (k.type == "LINEAR") return dot;
  Value s = c.Add(c.Mul(dot, k.gamma), k.coef0);
  return k.type == "SIGMOID" ? c.Call("tanh", {s}) : c.Call("power", {s, c.Scalar(s.dtype, k.degree)});
}

double FirstOf(const std::vector<float>& v) { return v.empty() ? 0.0 : static_cast<double>(v[0]); }

Values SVMRegressor(Ctx& c) {
  Value x = Features(c);
  const Kernel kernel = KernelOf(c);
  const int64_t supports = c.Int("n_supports", 0);
  std::vector<float> weights = c.Floats("coefficients"), vectors = c.Floats("support_vectors");
  Value y;
  if (supports > 0) {
    if (static_cast<int64_t>(weights.size()) != supports) c.Fail("its coefficients do not fit");
    y = MatProduct(c, Evaluate(c, kernel, x, Matrix(c, x.dtype, vectors, supports)), Matrix(c, x.dtype, weights, 1));
  } else {
    y = MatProduct(c, x, Matrix(c, x.dtype, weights, 1));
  }
  y = c.Add(y, FirstOf(c.Floats("rho")));
  if (c.Int("one_class", 0) != 0) {
    Value inside = c.Call("greater", {y, c.Scalar(y.dtype, 0)});
    y = c.Where(inside, c.Scalar(y.dtype, 1), c.Scalar(y.dtype, -1));
  }
  return {c.Cast(PostTransform(c, y, c.Str("post_transform", "NONE")), DataType::Float(32))};
}

/// Decisions of all pairs of classes: (N, pairs), with the votes (N, classes).
struct Pairs {
  Value scores, votes;
  std::vector<std::pair<int64_t, int64_t>> of;
};
Pairs Decide(Ctx& c, const Value& kernels, const Dims& count, const std::vector<float>& weights, int64_t supports,
             const std::vector<float>& rho) {
  const auto classes = static_cast<int64_t>(count.size());
  Pairs out;
  for (int64_t i = 0; i < classes; ++i) {
    for (int64_t j = i + 1; j < classes; ++j) out.of.emplace_back(i, j);
  }
  const auto pairs = static_cast<int64_t>(out.of.size());
  if (static_cast<int64_t>(weights.size()) != supports * (classes - 1) || static_cast<int64_t>(rho.size()) != pairs)
    c.Fail("its coefficients do not fit");
  c.Reserve(pairs, 4 * supports + 8 * classes);
  Dims first(count.size() + 1, 0);
  for (size_t i = 0; i < count.size(); ++i) first[i + 1] = first[i] + count[i];
  std::vector<float> table(static_cast<size_t>(pairs * supports), 0.0f);
  std::vector<float> wins(static_cast<size_t>(pairs * classes), 0.0f), losses(wins.size(), 0.0f);
  for (int64_t p = 0; p < pairs; ++p) {
    const auto [i, j] = out.of[static_cast<size_t>(p)];
    auto copy = [&](int64_t from_row, int64_t of_class) {
      for (int64_t s = first[static_cast<size_t>(of_class)]; s < first[static_cast<size_t>(of_class) + 1]; ++s)
        table[static_cast<size_t>(p * supports + s)] = weights[static_cast<size_t>(from_row * supports + s)];
    };
    copy(j - 1, i);
    copy(i, j);
    wins[static_cast<size_t>(p * classes + i)] = 1;
    losses[static_cast<size_t>(p * classes + j)] = 1;
  }
  const DataType t = kernels.dtype;
  out.scores = c.Add(MatProduct(c, kernels, Matrix(c, t, table, pairs)), FloatList(c, t, rho));
  Value won = c.Cast(c.Call("greater", {out.scores, c.Scalar(t, 0)}), t);
  out.votes = c.Add(c.MatMul(won, Matrix(c, t, wins, pairs)),
                    c.MatMul(c.Sub(c.Scalar(t, 1), won), Matrix(c, t, losses, pairs)));
  return out;
}

/// (N, classes) probabilities from the decisions of the pairs.
Value Coupled(Ctx& c, const Pairs& pairs, int64_t classes, const std::vector<float>& a, const std::vector<float>& b) {
  const DataType t = pairs.scores.dtype;
  const size_t n = pairs.of.size();
  if (a.size() != n || b.size() != n) c.Fail("`prob_a` and `prob_b` do not fit");
  Value s = c.Add(c.Mul(pairs.scores, FloatList(c, t, a)), FloatList(c, t, b));
  Value first = Clip(c, c.Sub(c.Scalar(t, 1), Sigmoid(c, s)), 1e-7, 1 - 1e-7);
  std::vector<float> spread(n * static_cast<size_t>(classes * classes), 0.0f);
  std::vector<float> rest(static_cast<size_t>(classes * classes), 0.0f);
  for (size_t p = 0; p < n; ++p) {
    const auto [i, j] = pairs.of[p];
    spread[p * rest.size() + static_cast<size_t>(i * classes + j)] = 1;
    spread[p * rest.size() + static_cast<size_t>(j * classes + i)] = -1;
    rest[static_cast<size_t>(j * classes + i)] = 1;
  }
  Value square = c.Add(c.MatMul(first, Matrix(c, t, spread, static_cast<int64_t>(n))), FloatList(c, t, rest));
  return c.Call("pairwise_coupling", {c.Reshape(square, {-1, classes, classes})});
}

Values SVMClassifier(Ctx& c) {
  Value x = Features(c);
  const Classes labels = ClassesOf(c, "classlabels_ints");
  Kernel kernel = KernelOf(c);
  const std::string transform = c.Str("post_transform", "NONE");
  Dims count = c.Ints("vectors_per_class");
  std::vector<float> weights = c.Floats("coefficients"), vectors = c.Floats("support_vectors"), rho = c.Floats("rho");
  std::vector<float> prob_a = c.Floats("prob_a"), prob_b = c.Floats("prob_b");
  int64_t supports = 0;
  for (int64_t n : count) {
    if (n < 0 || n > (int64_t{1} << 32)) c.Fail("`vectors_per_class` holds " + std::to_string(n));
    supports += n;
  }
  const auto classes = std::max<int64_t>(labels.size(), 1);
  if (supports == 0) {  // as LIBLINEAR trains
    Value y = c.Add(MatProduct(c, x, Matrix(c, x.dtype, weights, classes)), FirstOf(rho));
    if (classes > 1) return ManyScores(c, labels, y, transform);
    Value above = c.Squeeze(c.Call("greater", {y, c.Scalar(y.dtype, 0)}), {1});
    return {c.Cast(above, DataType::Int(64)), c.Cast(PostTransform(c, y, transform), DataType::Float(32))};
  }
  if (classes < 2 || static_cast<int64_t>(count.size()) != classes)
    c.Fail("`vectors_per_class` does not fit the labels");
  Value kernels = Evaluate(c, kernel, x, Matrix(c, x.dtype, vectors, supports));
  const Pairs pairs = Decide(c, kernels, count, weights, supports, rho);
  Value best = c.Call("argmax", {pairs.votes}, {{"axis", IntsAny({1})}});
  Value label = LabelAt(c, labels, c.Cast(best, DataType::Int(64))), scores;
  if (!prob_a.empty()) {
    scores = PostTransform(c, Coupled(c, pairs, classes, prob_a, prob_b), transform);
  } else if (pairs.of.size() == 1) {
    Value s = pairs.scores, both = c.Concat({c.Call("negative", {s}), s}, 1);
    scores = transform == "PROBIT" ? PostTransform(c, s, transform) : PostTransform(c, both, transform);
  } else {
    scores = PostTransform(c, pairs.scores, transform);
  }
  return {label, c.Cast(scores, DataType::Float(32))};
}

}  // namespace

Value PostTransform(Ctx& c, const Value& scores, const std::string& name) {
  if (name == "NONE" || name.empty()) return scores;
  if (name == "LOGISTIC") return Sigmoid(c, scores);
  if (name == "SOFTMAX") return Softmax(c, scores, 1);
  if (name == "SOFTMAX_ZERO") return SoftmaxZero(c, scores);
  if (name == "PROBIT") return Probit(c, scores);
  c.Fail("`post_transform` is `" + name + "`");
}

Value LabelAt(Ctx& c, const Classes& classes, const Value& places) {
  if (!classes.texts.empty()) return Labelled(places, classes.texts);
  if (classes.numbers.empty()) return places;
  bool counted = true;
  for (size_t i = 0; i < classes.numbers.size(); ++i)
    counted = counted && classes.numbers[i] == static_cast<int64_t>(i);
  return counted ? places : Take(c, c.Int64s(classes.numbers), places, 0);
}

Values BinaryScores(Ctx& c, const Classes& classes, const Value& score, bool positive,
                    const std::string& post_transform) {
  const DataType t = score.dtype;
  Value above = c.Squeeze(c.Call("greater", {score, c.Scalar(t, positive ? 0.5 : 0.0)}), {1});
  Value label = LabelAt(c, classes, c.Cast(above, DataType::Int(64))), scores;
  if (post_transform == "PROBIT") {
    scores = PostTransform(c, score, post_transform);
  } else if (post_transform == "LOGISTIC") {
    scores = Sigmoid(c, c.Concat({c.Call("negative", {score}), score}, 1));
  } else {
    Value other = positive ? c.Sub(c.Scalar(t, 1), score) : c.Call("negative", {score});
    scores = c.Concat({other, score}, 1);
  }
  return {label, c.Cast(scores, DataType::Float(32))};
}

Values ManyScores(Ctx& c, const Classes& classes, const Value& scores, const std::string& post_transform) {
  if (classes.size() != 0 && classes.size() < c.Dim(scores, 1)) c.Fail("it has more scores than labels");
  Value best = c.Cast(c.Call("argmax", {scores}, {{"axis", IntsAny({1})}}), DataType::Int(64));
  return {LabelAt(c, classes, best), c.Cast(PostTransform(c, scores, post_transform), DataType::Float(32))};
}

void AddMlModels(OpTable* table) {
  for (const OpRow& row : {
           OpRow{kMl, "LinearClassifier", LinearClassifier},
           {kMl, "LinearRegressor", LinearRegressor},
           {kMl, "SVMClassifier", SVMClassifier},
           {kMl, "SVMRegressor", SVMRegressor},
       }) {
    table->push_back(row);
  }
}

}  // namespace baton::onnx
