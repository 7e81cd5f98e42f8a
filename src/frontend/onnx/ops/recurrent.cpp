// SPDX-License-Identifier: Apache-2.0
// RNN, GRU and LSTM, unrolled over the sequence.
#include <array>

#include "common.h"

namespace baton::onnx {
namespace {

/// More steps than this make the module too large; they would need a loop in Relay.
constexpr int64_t kMaxSteps = 4096;

struct Activation {
  std::string name;
  double alpha, beta;
};

Value Apply(Ctx& c, const Activation& a, const Value& v) {
  DataType t = v.dtype;
  if (a.name == "sigmoid") return c.Call("sigmoid", {v});
  if (a.name == "tanh") return c.Call("tanh", {v});
  if (a.name == "relu") return c.Call("nn.relu", {v});
  if (a.name == "affine") return c.Add(c.Mul(v, a.alpha), a.beta);
  if (a.name == "scaledtanh") return c.Mul(c.Call("tanh", {c.Mul(v, a.beta)}), a.alpha);
  if (a.name == "hardsigmoid") return Clip(c, c.Add(c.Mul(v, a.alpha), a.beta), 0, 1);
  if (a.name == "softsign") return c.Div(v, c.Add(c.Call("abs", {v}), 1));
  if (a.name == "leakyrelu") return c.Where(c.Call("less", {v, c.Scalar(t, 0)}), c.Mul(v, a.alpha), v);
  if (a.name == "thresholdedrelu") return c.Where(c.Call("greater", {v, c.Scalar(t, a.alpha)}), v, c.Scalar(t, 0));
  if (a.name == "elu") {
    return c.Where(c.Call("less", {v, c.Scalar(t, 0)}), c.Mul(c.Sub(c.Call("exp", {v}), 1), a.alpha), v);
  }
  if (a.name == "softplus") return c.Call("log", {c.Add(c.Call("exp", {v}), 1)});
  c.Unsupported("activation `" + a.name + "`");
}

std::vector<Activation> Activations(Ctx& c, int64_t directions, const std::vector<std::string>& defaults) {
  std::vector<std::string> names = c.Strs("activations");
  std::vector<float> alpha = c.Floats("activation_alpha"), beta = c.Floats("activation_beta");
  if (names.empty()) {
    for (int64_t d = 0; d < directions; ++d) names.insert(names.end(), defaults.begin(), defaults.end());
  }
  if (names.size() != defaults.size() * static_cast<size_t>(directions)) c.Fail("`activations` has the wrong length");
  std::vector<Activation> out;
  size_t next_alpha = 0, next_beta = 0;
  for (std::string name : names) {
    for (char& ch : name) ch = static_cast<char>(ch >= 'A' && ch <= 'Z' ? ch + 32 : ch);
    Activation a{name, 0, 0};
    bool takes_alpha = name == "affine" || name == "leakyrelu" || name == "thresholdedrelu" || name == "scaledtanh" ||
                       name == "hardsigmoid" || name == "elu";
    bool takes_beta = name == "affine" || name == "scaledtanh" || name == "hardsigmoid";
    a.alpha = name == "leakyrelu" ? 0.01 : name == "hardsigmoid" ? 0.2 : 1.0;
    a.beta = name == "hardsigmoid" ? 0.5 : name == "scaledtanh" ? 1.0 : 0.0;
    if (takes_alpha && next_alpha < alpha.size()) a.alpha = alpha[next_alpha++];
    if (takes_beta && next_beta < beta.size()) a.beta = beta[next_beta++];
    out.push_back(a);
  }
  return out;
}

/// Common to the three: directions, layout, initial states, lengths.
struct Recurrence {
  Value x, w, r, b, lengths, h0;
  int64_t directions, hidden, steps, batch;
  bool reverse_only, batch_first;
  double clip;
};

Recurrence Common(Ctx& c, int64_t gates) {
  Recurrence k;
  k.x = c.T(0);
  k.w = c.T(1);
  k.r = c.T(2);
  k.b = c.Opt(3);
  k.lengths = c.Opt(4);
  k.h0 = c.Opt(5);
  std::string direction = c.Str("direction", "forward");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional") {
    c.Fail("`direction` is `" + direction + "`");
  }
  k.directions = direction == "bidirectional" ? 2 : 1;
  k.reverse_only = direction == "reverse";
  k.batch_first = c.Int("layout", 0) != 0;
  c.Ignore("output_sequence");
  k.clip = c.Float("clip", 0);
  k.hidden = c.Int("hidden_size", c.Dim(k.r, -1));
  if (c.Rank(k.x) != 3 || c.Rank(k.w) != 3 || c.Rank(k.r) != 3) c.Fail("`X`, `W` and `R` must have three axes");
  if (c.Dim(k.w, 0) != k.directions || c.Dim(k.w, 1) != Checked(k.hidden) * gates || c.Dim(k.r, 2) != k.hidden) {
    c.Fail("`W` or `R` does not fit `hidden_size` and `direction`");
  }
  if (k.batch_first) {
    k.x = c.Transpose(k.x, {1, 0, 2});
    if (k.h0) k.h0 = c.Transpose(k.h0, {1, 0, 2});
  }
  k.steps = c.Dim(k.x, 0);
  k.batch = c.Dim(k.x, 1);
  if (k.steps > kMaxSteps) c.Unsupported("a sequence of more than " + std::to_string(kMaxSteps) + " steps");
  return k;
}

Value Part(Ctx& c, const Value& v, int64_t direction) {
  return c.Squeeze(c.Slice(v, 0, direction, direction + 1), {0});
}
Value Rows(Ctx& c, const Value& v, int64_t i, int64_t n) { return c.Slice(v, 0, i * n, (i + 1) * n); }
Value ClipOf(Ctx& c, const Recurrence& k, const Value& v) { return k.clip > 0 ? Clip(c, v, -k.clip, k.clip) : v; }
Value Dense(Ctx& c, const Value& x, const Value& w) { return c.MatMul(x, c.Transpose(w, {1, 0})); }

/// One direction: `step(input projection, states) -> states`; the first state is the output.
template <typename Step>
Values RunSteps(Ctx& c, const Recurrence& k, int64_t d, const Value& projected, Values states,
                std::vector<Value>* outputs, const Step& step) {
  bool backward = k.reverse_only || d == 1;
  outputs->assign(static_cast<size_t>(k.steps), Value());
  for (int64_t i = 0; i < k.steps; ++i) {
    int64_t t = backward ? k.steps - 1 - i : i;
    Values next = step(c.Squeeze(c.Slice(projected, 0, t, t + 1), {0}), states);
    Value out = next[0];
    if (k.lengths) {
      // Past a sequence's end its states do not change and its output is zero.
      Value inside = c.Call(
          "greater", {c.Cast(k.lengths, DataType::Int(64)), c.Scalar(DataType::Int(64), static_cast<double>(t))});
      inside = c.Reshape(inside, {k.batch, 1});
      out = c.Where(inside, out, c.Scalar(out.dtype, 0));
      for (size_t s = 0; s < next.size(); ++s) next[s] = c.Where(inside, next[s], states[s]);
    }
    (*outputs)[static_cast<size_t>(t)] = out;
    states = next;
  }
  return states;
}

/// Y, then the last states, in the layout asked for.
Values Results(Ctx& c, const Recurrence& k, const std::vector<std::vector<Value>>& outputs,
               const std::vector<Values>& last) {
  Values directions;
  for (const auto& o : outputs) {
    Values steps;
    for (const Value& v : o) steps.push_back(c.Unsqueeze(v, {0, 1}));
    directions.push_back(c.Concat(steps, 0));
  }
  Value y = c.Concat(directions, 1);
  Values results = {k.batch_first ? c.Transpose(y, {2, 0, 1, 3}) : y};
  for (size_t s = 0; s < last[0].size(); ++s) {
    Values parts;
    for (const Values& l : last) parts.push_back(c.Unsqueeze(l[s], {0}));
    Value v = c.Concat(parts, 0);
    results.push_back(k.batch_first ? c.Transpose(v, {1, 0, 2}) : v);
  }
  return results;
}

/// x W^T + Wb + Rb for all steps at once; without Rb where `with_r` is false.
Value Project(Ctx& c, const Recurrence& k, int64_t d, int64_t gates, bool with_r) {
  Value flat = c.Reshape(k.x, {Checked(k.steps) * k.batch, c.Dim(k.x, 2)});
  Value p = c.Reshape(Dense(c, flat, Part(c, k.w, d)), {k.steps, k.batch, gates * k.hidden});
  if (!k.b) return p;
  Value b = Part(c, k.b, d);
  p = c.Add(p, c.Slice(b, 0, 0, gates * k.hidden));
  return with_r ? c.Add(p, c.Slice(b, 0, gates * k.hidden, 2 * gates * k.hidden)) : p;
}

Value Zeros(Ctx& c, const Recurrence& k) { return c.Full(k.x.dtype, 0, {k.batch, k.hidden}); }
Value Gate(Ctx& c, const Recurrence& k, const Value& v, int64_t i) {
  return c.Slice(v, 1, i * k.hidden, (i + 1) * k.hidden);
}

Values RNN(Ctx& c) {
  Recurrence k = Common(c, 1);
  std::vector<Activation> f = Activations(c, k.directions, {"Tanh"});
  std::vector<std::vector<Value>> outputs(static_cast<size_t>(k.directions));
  std::vector<Values> last;
  for (int64_t d = 0; d < k.directions; ++d) {
    Value r = Part(c, k.r, d);
    Values states = {k.h0 ? Part(c, k.h0, d) : Zeros(c, k)};
    last.push_back(RunSteps(c, k, d, Project(c, k, d, 1, true), states, &outputs[static_cast<size_t>(d)],
                            [&](const Value& x, const Values& s) -> Values {
                              return {Apply(c, f[static_cast<size_t>(d)], ClipOf(c, k, c.Add(x, Dense(c, s[0], r))))};
                            }));
  }
  return Results(c, k, outputs, last);
}

Values GRU(Ctx& c) {
  Recurrence k = Common(c, 3);
  bool before = c.Int("linear_before_reset", 0) != 0;
  std::vector<Activation> f = Activations(c, k.directions, {"Sigmoid", "Tanh"});
  std::vector<std::vector<Value>> outputs(static_cast<size_t>(k.directions));
  std::vector<Values> last;
  for (int64_t d = 0; d < k.directions; ++d) {
    const Activation& gate = f[static_cast<size_t>(2 * d)];
    const Activation& out = f[static_cast<size_t>(2 * d + 1)];
    Value r = Part(c, k.r, d), rb;
    if (k.b) rb = c.Slice(Part(c, k.b, d), 0, 3 * k.hidden, 6 * k.hidden);
    Value rzr = c.Slice(r, 0, 0, 2 * k.hidden), rh = Rows(c, r, 2, k.hidden);
    Values states = {k.h0 ? Part(c, k.h0, d) : Zeros(c, k)};
    last.push_back(RunSteps(c, k, d, Project(c, k, d, 3, false), states, &outputs[static_cast<size_t>(d)],
                            [&](const Value& x, const Values& s) -> Values {
                              Value zr = c.Add(c.Slice(x, 1, 0, 2 * k.hidden), Dense(c, s[0], rzr));
                              if (rb) zr = c.Add(zr, c.Slice(rb, 0, 0, 2 * k.hidden));
                              zr = Apply(c, gate, ClipOf(c, k, zr));
                              Value z = Gate(c, k, zr, 0), reset = Gate(c, k, zr, 1), h = Gate(c, k, x, 2);
                              Value hb = rb ? Rows(c, rb, 2, k.hidden) : Value();
                              if (before) {
                                Value inner = Dense(c, s[0], rh);
                                if (hb) inner = c.Add(inner, hb);
                                h = c.Add(h, c.Mul(reset, inner));
                              } else {
                                h = c.Add(h, Dense(c, c.Mul(reset, s[0]), rh));
                                if (hb) h = c.Add(h, hb);
                              }
                              h = Apply(c, out, ClipOf(c, k, h));
                              return {c.Add(c.Mul(c.Sub(c.Scalar(z.dtype, 1), z), h), c.Mul(z, s[0]))};
                            }));
  }
  return Results(c, k, outputs, last);
}

Values LSTM(Ctx& c) {
  Recurrence k = Common(c, 4);
  Value c0 = c.Opt(6), p = c.Opt(7);
  if (c.Int("input_forget", 0) != 0) c.Unsupported("`input_forget` 1");
  if (c0 && k.batch_first) c0 = c.Transpose(c0, {1, 0, 2});
  std::vector<Activation> f = Activations(c, k.directions, {"Sigmoid", "Tanh", "Tanh"});
  std::vector<std::vector<Value>> outputs(static_cast<size_t>(k.directions));
  std::vector<Values> last;
  for (int64_t d = 0; d < k.directions; ++d) {
    const Activation* a = &f[static_cast<size_t>(3 * d)];
    Value r = Part(c, k.r, d), peep;
    if (p) peep = Part(c, p, d);
    Values states = {k.h0 ? Part(c, k.h0, d) : Zeros(c, k), c0 ? Part(c, c0, d) : Zeros(c, k)};
    last.push_back(RunSteps(c, k, d, Project(c, k, d, 4, true), states, &outputs[static_cast<size_t>(d)],
                            [&](const Value& x, const Values& s) -> Values {
                              // Gates in the order input, output, forget, cell.
                              Value all = c.Add(x, Dense(c, s[0], r));
                              Value i = Gate(c, k, all, 0), o = Gate(c, k, all, 1), forget = Gate(c, k, all, 2),
                                    cell = Gate(c, k, all, 3);
                              if (peep) {
                                i = c.Add(i, c.Mul(Rows(c, peep, 0, k.hidden), s[1]));
                                forget = c.Add(forget, c.Mul(Rows(c, peep, 2, k.hidden), s[1]));
                              }
                              i = Apply(c, a[0], ClipOf(c, k, i));
                              forget = Apply(c, a[0], ClipOf(c, k, forget));
                              cell = Apply(c, a[1], ClipOf(c, k, cell));
                              Value next = c.Add(c.Mul(forget, s[1]), c.Mul(i, cell));
                              if (peep) o = c.Add(o, c.Mul(Rows(c, peep, 1, k.hidden), next));
                              o = Apply(c, a[0], ClipOf(c, k, o));
                              return {c.Mul(o, Apply(c, a[2], next)), next};
                            }));
  }
  return Results(c, k, outputs, last);
}

}  // namespace

void AddRecurrent(OpTable* table) {
  for (const OpRow& row : {OpRow{"", "RNN", RNN}, {"", "GRU", GRU}, {"", "LSTM", LSTM}}) table->push_back(row);
}

}  // namespace baton::onnx
