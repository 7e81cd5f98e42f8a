// SPDX-License-Identifier: Apache-2.0
// Scan.
#include <algorithm>
#include <functional>
#include <optional>

#include "common.h"
#include "frontend/onnx/import/host_values.h"
#include "frontend/onnx/import/importer_impl.h"
#include "frontend/onnx/reader/check.h"
#include "frontend/onnx/reader/model_error.h"
#include "loops.h"

namespace baton::onnx {
namespace {

/// For the scanned operands and the collected values: axes, and whether they are taken from the end.
struct ScanAxes {
  Dims in, in_back, out, out_back;
};

/// A scan as one function for all steps, whose number is a literal, a symbol, or -1; nothing where it is better
/// unrolled.
std::optional<Values> ScanLoop(Ctx& c, const Graph& body, int64_t steps, const Values& state, const Values& inputs,
                               const ScanAxes& axes) {
  if (Unrolls(body, steps)) return std::nullopt;
  Importer* importer = c.importer();
  const Env* env = importer->env();
  const Surroundings around = importer->around();
  Value last = steps == -1 || Ctx::IsSymbol(steps) ? Value() : c.Int64(steps);
  if (!last) last = c.Reshape(Take(c, c.ShapeOf(inputs[0]), c.Int64s({axes.in[0]}), 0), {});
  // Operands that are computed, and values from outside, are passed on from step to step.
  const Outside outside(body, env);
  Values passed = state;
  for (const Value& input : inputs) {
    if (IsComputed(input)) passed.push_back(input);
  }
  passed.insert(passed.end(), outside.values.begin(), outside.values.end());
  auto step = [&](const Value& s, const Values& now) {
    Values args(now.begin(), now.begin() + static_cast<std::ptrdiff_t>(state.size()));
    size_t next = state.size();
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Value from = IsComputed(inputs[i]) ? now[next++] : inputs[i];
      const Value at = axes.in_back[i] != 0 ? c.Sub(c.Sub(last, 1), s) : s;
      args.push_back(c.Call("take", {from, at}, {{"axis", axes.in[i]}, {"mode", "clip"}}));
    }
    const Env within = outside.Within(env, now.data() + next);
    Values out = importer->Subgraph(body, &within, args, around);
    if (!AnyPoison(out))
      out.insert(out.begin() + static_cast<std::ptrdiff_t>(state.size()),
                 now.begin() + static_cast<std::ptrdiff_t>(state.size()), now.end());
    return out;
  };
  const std::vector<bool> backward(axes.out_back.begin(), axes.out_back.end());
  auto made = CountedLoop(c, steps, last, passed, axes.out.size(), backward, step);
  if (made)
    made->erase(made->begin() + static_cast<std::ptrdiff_t>(state.size()),
                made->begin() + static_cast<std::ptrdiff_t>(passed.size()));
  for (size_t k = 0; made && k < axes.out.size(); ++k) {
    Value& all = (*made)[state.size() + k];
    const int axis = c.Axis(axes.out[k], c.Rank(all));
    if (axis == 0) continue;
    Dims order;
    for (int64_t d = 1; d < c.Rank(all); ++d) order.push_back(d);
    order.insert(order.begin() + axis, 0);
    all = c.Transpose(all, order);
  }
  return made;
}

Values Scan(Ctx& c) {
  Importer* importer = c.importer();
  const Graph* body = c.GraphAttr("body");
  if (body == nullptr) c.Fail("its body is missing");
  int64_t scanned = c.Int("num_scan_inputs");
  bool old = c.since() < 9;
  size_t first = old ? 1 : 0;
  if (old && c.Has(0)) c.Unsupported("`sequence_lens`");
  if (scanned < 1 || static_cast<size_t>(scanned) + first > c.num_inputs())
    c.Fail("`num_scan_inputs` does not fit its operands");
  size_t n = c.num_inputs() - first - static_cast<size_t>(scanned);
  if (body->outputs.size() < n) c.Fail("its body does not fit its operands");
  size_t scans = body->outputs.size() - n;
  Dims in_axes = c.Ints("scan_input_axes"), out_axes = c.Ints("scan_output_axes");
  Dims in_back = old ? c.Ints("directions") : c.Ints("scan_input_directions"),
       out_back = c.Ints("scan_output_directions");
  in_axes.resize(static_cast<size_t>(scanned), 0);
  in_back.resize(static_cast<size_t>(scanned), 0);
  out_axes.resize(scans, 0);
  out_back.resize(scans, 0);
  const Env* env = importer->env();
  Surroundings around = importer->around();
  int64_t batch = old ? c.Dim(c.T(first), 0) : 1;
  if (batch > kMaxIterations) c.Unsupported("a batch of more than " + std::to_string(kMaxIterations));
  std::vector<Values> batches;
  for (int64_t b = 0; b < batch; ++b) {
    auto of_batch = [&](const Value& v) { return old ? c.Squeeze(c.Slice(v, 0, b, b + 1), {0}) : v; };
    Values state, inputs;
    for (size_t i = 0; i < n; ++i) state.push_back(old ? of_batch(c.T(first + i)) : c.In(i));
    int64_t steps = -1;  // a literal, a symbol, or -1 where the one operand's length is not known before the model runs
    for (size_t i = 0; i < static_cast<size_t>(scanned); ++i) {
      inputs.push_back(of_batch(c.T(first + n + i)));
      in_axes[i] = c.Axis(in_axes[i], c.Rank(inputs[i]));
      const auto axis = static_cast<int>(in_axes[i]);
      const int64_t length = scanned == 1 ? inputs[i].dims[static_cast<size_t>(axis)] : c.Length(inputs[i], axis);
      if (i > 0 && !c.AssumeEqual(steps, length)) c.Fail("its scanned operands differ in length");
      steps = length;
    }
    const ScanAxes axes{in_axes, in_back, out_axes, out_back};
    if (auto made = ScanLoop(c, *body, steps, state, inputs, axes)) {
      batches.push_back(*made);
      continue;
    }
    steps = c.Dim(inputs[0], static_cast<int>(in_axes[0]));
    if (steps > kMaxIterations) c.Unsupported("a scan of more than " + std::to_string(kMaxIterations) + " steps");
    std::vector<Values> kept(scans);
    for (int64_t s = 0; s < steps; ++s) {
      Values args = state;
      for (size_t i = 0; i < inputs.size(); ++i) {
        int64_t at = in_back[i] != 0 ? steps - 1 - s : s;
        args.push_back(c.Squeeze(c.Slice(inputs[i], static_cast<int>(in_axes[i]), at, at + 1), {in_axes[i]}));
      }
      Values out = importer->Subgraph(*body, env, args, around);
      if (AnyPoison(out)) return Poison(c.num_outputs());
      state.assign(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(n));
      for (size_t k = 0; k < scans; ++k) {
        int axis = c.Axis(out_axes[k], c.Rank(out[n + k]) + 1);
        Value v = c.Unsqueeze(out[n + k], {axis});
        kept[k].insert(out_back[k] != 0 ? kept[k].begin() : kept[k].end(), v);
      }
    }
    Values none;  // what a step would give, for its type
    if (steps == 0 && scans > 0) {
      Values args = state;
      for (size_t i = 0; i < inputs.size(); ++i) {
        Dims one = c.Fixed(inputs[i]);
        one.erase(one.begin() + in_axes[i]);
        args.push_back(c.Full(inputs[i].dtype, 0, one));
      }
      none = importer->Subgraph(*body, env, args, around);
      if (AnyPoison(none)) return Poison(c.num_outputs());
    }
    for (size_t k = 0; k < scans; ++k) {
      if (kept[k].empty()) {
        Dims shape = c.Fixed(none[n + k]);
        shape.insert(shape.begin() + c.Axis(out_axes[k], static_cast<int>(shape.size()) + 1), 0);
        state.push_back(c.Full(none[n + k].dtype, 0, shape));
        continue;
      }
      state.push_back(c.Concat(kept[k], c.Axis(out_axes[k], c.Rank(kept[k][0]))));
    }
    batches.push_back(state);
  }
  if (!old) return batches[0];
  Values all;
  for (size_t k = 0; k < batches[0].size(); ++k) {
    Values parts;
    for (const Values& b : batches) parts.push_back(c.Unsqueeze(b[k], {0}));
    all.push_back(c.Concat(parts, 0));
  }
  return all;
}

}  // namespace

void AddScan(OpTable* table) { table->push_back(OpRow{"", "Scan", Scan}); }

}  // namespace baton::onnx
