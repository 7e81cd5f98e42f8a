// SPDX-License-Identifier: Apache-2.0
// Loss functions.
#include "common.h"

namespace baton::onnx {
namespace {

/// `log_probability` is [N, C, d...], labels are [N, d...].
Value Loss(Ctx& c, const Value& log_probability, const Value& labels, const Value& weight) {
  std::string reduction = c.Str("reduction", "mean");
  bool ignores = c.HasAttr("ignore_index");
  double ignored = static_cast<double>(c.Int("ignore_index", 0));
  Value at = labels;
  Value counts;
  DataType t = log_probability.dtype;
  Value zero = c.Scalar(t, 0);
  if (ignores) {
    counts = c.Call("not_equal", {labels, c.Scalar(labels.dtype, ignored)});
    at = c.Where(counts, labels, c.Scalar(labels.dtype, 0));
  }
  Value picked = c.Squeeze(c.Call("gather", {log_probability, c.Unsqueeze(at, {1})}, {{"axis", 1}}), {1});
  Value loss = c.Call("negative", {picked});
  Value weights;
  if (weight) {
    weights = Take(c, weight, at, 0);
    if (ignores) weights = c.Where(counts, weights, zero);
    loss = c.Mul(loss, weights);
  } else if (ignores) {
    weights = c.Cast(counts, t);
  }
  if (ignores) loss = c.Where(counts, loss, zero);
  Dims all = Iota(c.Rank(loss));
  if (reduction == "none") return loss;
  Value sum = Reduce(c, "sum", loss, all, false);
  if (reduction == "sum") return sum;
  if (reduction != "mean") c.Fail("`reduction` is `" + reduction + "`");
  if (weights) return c.Div(sum, Reduce(c, "sum", weights, all, false));
  return Reduce(c, "mean", loss, all, false);
}

Values NegativeLogLikelihoodLoss(Ctx& c) { return {Loss(c, c.T(0), c.T(1), c.Opt(2))}; }

Values SoftmaxCrossEntropyLoss(Ctx& c) {
  Value log_probability = LogSoftmax(c, c.T(0), 1);
  return {Loss(c, log_probability, c.T(1), c.Opt(2)), log_probability};
}

}  // namespace

void AddLosses(OpTable* table) {
  for (const OpRow& row : {OpRow{"", "NegativeLogLikelihoodLoss", NegativeLogLikelihoodLoss},
                           {"", "SoftmaxCrossEntropyLoss", SoftmaxCrossEntropyLoss}}) {
    table->push_back(row);
  }
}

}  // namespace baton::onnx
