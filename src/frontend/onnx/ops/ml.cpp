// SPDX-License-Identifier: Apache-2.0
// Operators of training, which are plain arithmetic.
#include "common.h"

namespace baton::onnx {
namespace {

constexpr const char* kTraining = "ai.onnx.preview.training";

/// Operands are R, T, then the tensors in groups: all X, all G, all states.
struct Step {
  Value rate, count;
  size_t n;
};
Step Training(Ctx& c, size_t groups) {
  Step s;
  s.rate = c.T(0);
  s.count = c.Cast(c.T(1), s.rate.dtype);
  if (c.num_inputs() < 2 || (c.num_inputs() - 2) % groups != 0) c.Fail("the number of operands does not fit");
  s.n = (c.num_inputs() - 2) / groups;
  return s;
}

Values Adagrad(Ctx& c) {
  Step s = Training(c, 3);
  double decay = c.Float("decay_factor", 0), epsilon = c.Float("epsilon", 0), norm = c.Float("norm_coefficient", 0);
  Values x, h;
  for (size_t i = 0; i < s.n; ++i) {
    Value w = c.T(2 + i), g = c.T(2 + s.n + i), state = c.T(2 + 2 * s.n + i);
    Value rate = c.Div(s.rate, c.Add(c.Mul(s.count, decay), 1));
    g = c.Add(g, c.Mul(w, norm));
    state = c.Add(state, c.Mul(g, g));
    x.push_back(c.Sub(w, c.Div(c.Mul(rate, g), c.Add(c.Call("sqrt", {state}), epsilon))));
    h.push_back(state);
  }
  x.insert(x.end(), h.begin(), h.end());
  return x;
}

Values Momentum(Ctx& c) {
  Step s = Training(c, 3);
  double alpha = c.Float("alpha", 0), beta = c.Float("beta", 0), norm = c.Float("norm_coefficient", 0);
  std::string mode = c.Str("mode", "standard");
  if (mode != "standard" && mode != "nesterov") c.Fail("`mode` is `" + mode + "`");
  Values x, v;
  for (size_t i = 0; i < s.n; ++i) {
    Value w = c.T(2 + i), g = c.T(2 + s.n + i), state = c.T(2 + 2 * s.n + i);
    g = c.Add(g, c.Mul(w, norm));
    // In the first step the gradient is not scaled.
    Value first = c.Call("greater", {s.count, c.Scalar(s.count.dtype, 0)});
    Value weight = c.Where(first, c.Scalar(g.dtype, beta), c.Scalar(g.dtype, 1));
    state = c.Add(c.Mul(state, alpha), c.Mul(g, weight));
    Value move = mode == "standard" ? state : c.Add(g, c.Mul(state, alpha));
    x.push_back(c.Sub(w, c.Mul(s.rate, move)));
    v.push_back(state);
  }
  x.insert(x.end(), v.begin(), v.end());
  return x;
}

Values Adam(Ctx& c) {
  Step s = Training(c, 4);
  double alpha = c.Float("alpha", 0.9), beta = c.Float("beta", 0.999), epsilon = c.Float("epsilon", 0);
  double norm = c.Float("norm_coefficient", 0), post = c.Float("norm_coefficient_post", 0);
  Values x, v, h;
  for (size_t i = 0; i < s.n; ++i) {
    Value w = c.T(2 + i), g = c.T(2 + s.n + i), m = c.T(2 + 2 * s.n + i), square = c.T(2 + 3 * s.n + i);
    g = c.Add(g, c.Mul(w, norm));
    m = c.Add(c.Mul(m, alpha), c.Mul(g, 1 - alpha));
    square = c.Add(c.Mul(square, beta), c.Mul(c.Mul(g, g), 1 - beta));
    auto one_less = [&](double base) {
      return c.Sub(c.Scalar(s.rate.dtype, 1), c.Call("power", {c.Scalar(s.rate.dtype, base), s.count}));
    };
    Value corrected = c.Div(c.Mul(s.rate, c.Call("sqrt", {one_less(beta)})), one_less(alpha));
    Value later = c.Call("greater", {s.count, c.Scalar(s.count.dtype, 0)});
    Value rate = c.Where(later, corrected, s.rate);
    Value next = c.Sub(w, c.Mul(rate, c.Div(m, c.Add(c.Call("sqrt", {square}), epsilon))));
    x.push_back(c.Mul(next, 1 - post));
    v.push_back(m);
    h.push_back(square);
  }
  x.insert(x.end(), v.begin(), v.end());
  x.insert(x.end(), h.begin(), h.end());
  return x;
}

}  // namespace

void AddMl(OpTable* table) {
  for (const OpRow& row : {
           OpRow{kTraining, "Adagrad", Adagrad},
           {kTraining, "Momentum", Momentum},
           {kTraining, "Adam", Adam},
       }) {
    table->push_back(row);
  }
}

}  // namespace baton::onnx
