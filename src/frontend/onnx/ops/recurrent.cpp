// SPDX-License-Identifier: Apache-2.0
// RNN, GRU and LSTM: the input's part of all steps is one product, what is left is a loop of the operator
// nn.contrib_recurrence.

#include "recurrent.h"

#include <algorithm>
#include <iterator>

#include "common.h"

namespace baton::onnx {
namespace {

struct Activation {
  std::string name;
  double alpha, beta;
};

constexpr const char* kKnown[] = {"sigmoid",         "tanh",        "relu",     "affine",
                                  "scaledtanh",      "hardsigmoid", "softsign", "leakyrelu",
                                  "thresholdedrelu", "elu",         "softplus"};

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
    if (std::ranges::find(kKnown, name) == std::end(kKnown)) c.Unsupported("activation `" + name + "`");
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
  const ByteWeights* bytes;  ///< null where weights are floats
};

Recurrence Common(Ctx& c, int64_t gates, const ByteWeights* bytes = nullptr) {
  Recurrence k;
  k.bytes = bytes;
  k.x = c.T(0);
  k.w = bytes ? bytes->w : c.T(1);
  k.r = bytes ? bytes->r : c.T(2);
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
  if (!c.AssumeEqual(c.Length(k.x, 2), c.Length(k.w, 2))) c.Fail("`X` has another number of features than `W`");
  k.steps = c.Length(k.x, 0);
  k.batch = c.Length(k.x, 1);
  return k;
}

Value Part(Ctx& c, const Value& v, int64_t direction) {
  return c.Squeeze(c.Slice(v, 0, direction, direction + 1), {0});
}
Value Dense(Ctx& c, const Value& x, const Value& w) { return c.MatMul(x, c.Transpose(w, {1, 0})); }

/// x W^T + Wb + Rb for all steps at once; of Rb the last `left_out` gates stay out.
Value Project(Ctx& c, const Recurrence& k, int64_t d, int64_t gates, int64_t left_out = 0) {
  Value flat = c.Reshape(k.x, {c.Times(k.steps, k.batch), c.Length(k.w, 2)});
  Value made = k.bytes ? k.bytes->project(c, flat, d) : Dense(c, flat, Part(c, k.w, d));
  Value p = c.Reshape(made, {k.steps, k.batch, gates * k.hidden});
  if (!k.b) return p;
  Value b = Part(c, k.b, d), rb = c.Slice(b, 0, gates * k.hidden, (2 * gates - left_out) * k.hidden);
  if (left_out > 0) rb = c.Concat({rb, c.Full(rb.dtype, 0, {left_out * k.hidden})}, 0);
  return c.Add(p, c.Add(c.Slice(b, 0, 0, gates * k.hidden), rb));
}

Value Zeros(Ctx& c, const Recurrence& k) { return c.Full(k.x.dtype, 0, {k.batch, k.hidden}); }
Value StateOf(Ctx& c, const Recurrence& k, const Value& given, int64_t d) {
  return given ? Part(c, given, d) : Zeros(c, k);
}

/// One direction: states of all steps, the last state, and an LSTM's last cell. `functions` are those of all
/// directions; `operands` follow the weight.
Values Run(Ctx& c, const Recurrence& k, int64_t d, const char* cell, const std::vector<Activation>& functions,
           const Value& projected, Values operands, bool after = false, bool peepholes = false) {
  const size_t count = functions.size() / static_cast<size_t>(k.directions);
  Array<String> names;
  Array<double> alpha, beta;
  for (size_t i = 0; i < count; ++i) {
    const Activation& f = functions[static_cast<size_t>(d) * count + i];
    names.push_back(String(f.name)), alpha.push_back(f.alpha), beta.push_back(f.beta);
  }
  Values args = {projected, Part(c, k.r, d)};
  const bool bytes = k.bytes != nullptr, zeros = bytes && k.bytes->r_zero;
  if (bytes) args.push_back(Part(c, k.bytes->r_scale, d));
  if (zeros) args.push_back(Part(c, k.bytes->r_zero, d));
  args.insert(args.end(), operands.begin(), operands.end());
  if (k.lengths) args.push_back(k.lengths);
  const Value made = c.CallWith("nn.contrib_recurrence", args,
                                {{"cell", Any(String(cell))},
                                 {"functions", Any(names)},
                                 {"alpha", Any(alpha)},
                                 {"beta", Any(beta)},
                                 {"clip", Any(k.clip)},
                                 {"linear_before_reset", Any(after)},
                                 {"backward", Any(k.reverse_only || d == 1)},
                                 {"peepholes", Any(peepholes)},
                                 {"lengths", Any(static_cast<bool>(k.lengths))},
                                 {"bytes", Any(bytes)},
                                 {"zeros", Any(zeros)}});
  Values out;
  for (size_t i = 0; i < (count == 3 ? 3 : 2); ++i) out.push_back(c.Item(made, i));
  return out;
}

/// Y, then the last states, in the layout asked for.
Values Results(Ctx& c, const Recurrence& k, const std::vector<Values>& directions) {
  Values results;
  for (size_t i = 0; i < directions[0].size(); ++i) {
    const int axis = i == 0 ? 1 : 0;
    Values parts;
    for (const Values& v : directions) parts.push_back(c.Unsqueeze(v[i], {axis}));
    Value v = parts.size() == 1 ? parts[0] : c.Concat(parts, axis);
    if (k.batch_first) v = c.Transpose(v, i == 0 ? Dims{2, 0, 1, 3} : Dims{1, 0, 2});
    results.push_back(v);
  }
  return results;
}

Values RNN(Ctx& c) {
  Recurrence k = Common(c, 1);
  std::vector<Activation> f = Activations(c, k.directions, {"Tanh"});
  std::vector<Values> directions;
  for (int64_t d = 0; d < k.directions; ++d)
    directions.push_back(Run(c, k, d, "rnn", f, Project(c, k, d, 1), {StateOf(c, k, k.h0, d)}));
  return Results(c, k, directions);
}

Values GRU(Ctx& c) {
  Recurrence k = Common(c, 3);
  const bool after = c.Int("linear_before_reset", 0) != 0;
  std::vector<Activation> f = Activations(c, k.directions, {"Sigmoid", "Tanh"});
  std::vector<Values> directions;
  for (int64_t d = 0; d < k.directions; ++d) {
    Values operands = {StateOf(c, k, k.h0, d)};
    if (after) {
      // The bias of the state's product is reset with it.
      operands.push_back(k.b ? c.Slice(Part(c, k.b, d), 0, 5 * k.hidden, 6 * k.hidden)
                             : c.Full(k.x.dtype, 0, {k.hidden}));
    }
    directions.push_back(Run(c, k, d, "gru", f, Project(c, k, d, 3, after ? 1 : 0), operands, after));
  }
  return Results(c, k, directions);
}

Values LSTM(Ctx& c) { return LstmOf(c, nullptr); }

}  // namespace

Values LstmOf(Ctx& c, const ByteWeights* bytes) {
  Recurrence k = Common(c, 4, bytes);
  Value c0 = c.Opt(6), p = c.Opt(7);
  if (c.Int("input_forget", 0) != 0) c.Unsupported("`input_forget` 1");
  if (c0 && k.batch_first) c0 = c.Transpose(c0, {1, 0, 2});
  std::vector<Activation> f = Activations(c, k.directions, {"Sigmoid", "Tanh", "Tanh"});
  std::vector<Values> directions;
  for (int64_t d = 0; d < k.directions; ++d) {
    Values operands = {StateOf(c, k, k.h0, d), StateOf(c, k, c0, d)};
    if (p) operands.push_back(Part(c, p, d));
    directions.push_back(Run(c, k, d, "lstm", f, Project(c, k, d, 4), operands, false, static_cast<bool>(p)));
  }
  return Results(c, k, directions);
}

void AddRecurrent(OpTable* table) {
  for (const OpRow& row : {OpRow{"", "RNN", RNN}, {"", "GRU", GRU}, {"", "LSTM", LSTM}}) table->push_back(row);
}

}  // namespace baton::onnx
