// SPDX-License-Identifier: Apache-2.0
// The block layout of ONNX Runtime's optimiser at its highest level: images as (N, C / block, H, W, block), which its
// files call (N, C, H, W). Such a tensor is a plain image of the padded channels here, and weights are put in order.
#include <baton/support/machine.h>

#include <unordered_map>

#include "frontend/onnx/import/importer_impl.h"
#include "frontend/onnx/ops/windows.h"
#include "msft.h"

namespace baton::onnx {
namespace {

/// Channels of a block as far as the file shows them, else 0: a number of channels that 16 does not divide means 8, a
/// padding of 8 or more means 16.
int64_t BlockInFile(const Graph& graph) {
  std::unordered_map<std::string_view, int64_t> outputs;  ///< channels of the results of convolutions
  std::unordered_map<std::string_view, const Tensor*> weights;
  for (const Tensor& t : graph.initializers) weights[t.name] = &t;
  for (const Node& n : graph.nodes) {
    if (n.domain != kNchwc) continue;
    if (n.op_type == "Conv" && n.inputs.size() > 1) {
      auto w = weights.find(n.inputs[1]);
      if (w == weights.end() || w->second->dims.empty()) continue;
      const int64_t channels = w->second->dims[0];
      if (channels % 16 != 0) return 8;
      if (!n.outputs.empty()) outputs[n.outputs[0]] = channels;
    } else if (n.op_type == "ReorderOutput" && !n.inputs.empty()) {
      auto o = outputs.find(n.inputs[0]);
      const Attribute* a = n.Find("channels");
      if (o != outputs.end() && a != nullptr && o->second - a->i >= 8) return 16;
    }
  }
  return 0;
}

/// Such a file is for machines like the one that wrote it, as ONNX Runtime warns; where it does not show the size of
/// its blocks, that of ONNX Runtime on this machine is meant.
int64_t BlockSize(Ctx& c) {
  const int64_t shown = BlockInFile(c.importer()->model().graph);
  if (shown != 0) return shown;
  return support::HasCpuFeature("sse2") && !support::HasCpuFeature("avx512f") ? 8 : 16;
}

/// A weight (O, I, H, W) whose elements are in the order (O / block, I, H, W, block), or with blocks of I before them.
Value InOrder(Ctx& c, const Value& w, int64_t block, bool inputs_too) {
  const Dims s = c.Fixed(w);
  if (s.size() != 4) c.Fail("the weight has " + std::to_string(s.size()) + " axes, not four");
  if (s[0] % block != 0 || (inputs_too && s[1] % block != 0))
    c.Fail("a weight of " + std::to_string(s[0]) + " by " + std::to_string(s[1]) + " channels has no blocks of " +
           std::to_string(block));
  Value y;
  if (inputs_too) {
    y = c.Reshape(w, {s[0] / block, s[1] / block, s[2], s[3], block, block});
    y = c.Transpose(y, {0, 5, 1, 4, 2, 3});
  } else {
    y = c.Transpose(c.Reshape(w, {s[0] / block, s[1], s[2], s[3], block}), {0, 4, 1, 2, 3});
  }
  return c.Reshape(y, s);
}

Values Conv(Ctx& c) {
  const int64_t block = BlockSize(c);
  Value w = c.T(1);
  // The first convolution takes a plain image of few channels, a depthwise one has a kernel for each channel.
  const bool blocked = c.Dim(w, 1) >= block;
  Value y = ConvOf(c, c.T(0), InOrder(c, w, block, blocked), DataType::Void());
  if (c.Has(2)) y = AddBias(c, y, c.T(2));
  if (c.Has(3)) y = c.Add(y, c.T(3));
  return {Activate(c, y, c.Str("activation", ""), c.Floats("activation_params"))};
}

Values ReorderInput(Ctx& c) {
  Value x = c.T(0);
  if (c.Rank(x) != 4) c.Fail("the data have " + std::to_string(c.Rank(x)) + " axes, not four");
  if (c.Int("channels_last", 0) != 0) x = c.Transpose(x, {0, 3, 1, 2});
  const int64_t block = BlockSize(c), channels = c.Dim(x, 1), more = (block - channels % block) % block;
  if (more == 0) return {x};
  std::vector<Array<int64_t>> width(4, Array<int64_t>({0, 0}));
  width[1] = Array<int64_t>({0, more});
  return {c.Call("nn.pad", {x, c.Scalar(x.dtype, 0)},
                 {{"pad_width", Array<Array<int64_t>>(width)}, {"pad_mode", "constant"}})};
}

Values ReorderOutput(Ctx& c) {
  Value y = c.T(0);
  if (const int64_t channels = c.Int("channels", 0); channels > 0) y = c.Slice(y, 1, 0, channels);
  return {c.Int("channels_last", 0) != 0 ? c.Transpose(y, {0, 2, 3, 1}) : y};
}

Values MaxPool(Ctx& c) { return AsOnnx(c, "MaxPool", 12, {c.T(0)}); }
Values AveragePool(Ctx& c) { return AsOnnx(c, "AveragePool", 19, {c.T(0)}); }
Values GlobalMaxPool(Ctx& c) { return AsOnnx(c, "GlobalMaxPool", 1, {c.T(0)}); }
Values GlobalAveragePool(Ctx& c) { return AsOnnx(c, "GlobalAveragePool", 1, {c.T(0)}); }

/// Resize with scales that are integers; by nearest elements it repeats them.
Values Upsample(Ctx& c) {
  Dims scales = c.Ints("scales");
  if (scales.empty()) scales = Dims(4, 1);
  std::vector<double> factors(scales.begin(), scales.end());
  const bool plain = c.Str("mode", "nearest") == "nearest" || !c.HasAttr("coordinate_transformation_mode");
  Value none, given = c.Constant(HostFromFloats(DataType::Float(32), {static_cast<int64_t>(scales.size())}, factors));
  // Version 10 counts from the first element and rounds down, which is what an Upsample without attributes means.
  return plain ? AsOnnx(c, "Resize", 10, {c.T(0), given}) : AsOnnx(c, "Resize", 13, {c.T(0), none, given});
}

}  // namespace

void AddMsftNchwc(OpTable* table) {
  for (const OpRow& row : {
           OpRow{kNchwc, "Conv", Conv},
           {kNchwc, "ReorderInput", ReorderInput},
           {kNchwc, "ReorderOutput", ReorderOutput},
           {kNchwc, "MaxPool", MaxPool},
           {kNchwc, "AveragePool", AveragePool},
           {kNchwc, "GlobalMaxPool", GlobalMaxPool},
           {kNchwc, "GlobalAveragePool", GlobalAveragePool},
           {kNchwc, "Upsample", Upsample},
       }) {
    table->push_back(row);
  }
}

}  // namespace baton::onnx
