// SPDX-License-Identifier: Apache-2.0
// Ranks and dtypes of nodes that wait for run time.
#include <algorithm>
#include <map>

#include "importer_impl.h"
#include "frontend/onnx/ops/common.h"

namespace baton::onnx {
namespace {

Value OfShape(DataType dtype, Dims dims) {
  Value v;
  v.kind = Value::kTensor;
  v.dtype = dtype;
  v.ranked = true;
  v.dims = std::move(dims);
  return v;
}
Value OfRank(DataType dtype, int64_t rank) {
  return OfShape(dtype, Dims(static_cast<size_t>(std::max<int64_t>(rank, 0)), -1));
}

int64_t IntOf(const Node& n, std::string_view name, int64_t otherwise) {
  const Attribute* a = n.Find(name);
  return a == nullptr ? otherwise : a->i;
}

/// The known lengths of a shape operand; -1 for unknown ones.
Dims Lengths(const Value& v, int64_t n) {
  Dims out(static_cast<size_t>(n), -1);
  for (size_t i = 0; i < out.size(); ++i) {
    int64_t d = -1;
    if (v.partial != nullptr && i < v.partial->size()) d = (*v.partial)[i];
    if (v.host != nullptr && !v.host->is_string && static_cast<int64_t>(i) < v.host->size())
      d = v.host->IntAt(static_cast<int64_t>(i));
    if (d > 0) out[i] = d;
  }
  return out;
}

/// Number of elements of an operand of rank 1 that lists axes; -1 if unknown, or more than a tensor has axes.
int64_t Count(const Values& in, size_t i) {
  if (i >= in.size() || in[i].kind != Value::kTensor || !in[i].ranked) return -1;
  if (in[i].dims.empty()) return 1;
  return in[i].dims.size() == 1 && in[i].dims[0] <= kMostRank ? in[i].dims[0] : -1;
}

}  // namespace

Values OutputTypes(const Node& node, const Values& in) {
  static const std::map<std::string_view, int> kKinds = {
      // The rank of the first operand, all lengths open.
      {"Slice", 1},
      {"Pad", 1},
      {"Tile", 1},
      {"Resize", 1},
      {"Upsample", 1},
      {"CenterCropPad", 1},
      {"MaxUnpool", 1},
      // The first operand's shape.
      {"CumSum", 2},
      {"CumProd", 2},
      {"Trilu", 2},
      {"Clip", 2},
      {"Dropout", 2},
      {"Softmax", 2},
      {"LogSoftmax", 2},
      {"Hardmax", 2},
      {"ScatterElements", 2},
      {"ScatterND", 2},
      {"QuantizeLinear", 1},
      {"TensorScatter", 2},
      {"InstanceNormalization", 2},
      {"GroupNormalization", 2},
      // Others.
      {"Reshape", 10},
      {"Expand", 11},
      {"ConstantOfShape", 12},
      {"Range", 13},
      {"Unsqueeze", 14},
      {"Squeeze", 15},
      {"Split", 16},
      {"TopK", 17},
      {"OneHot", 18},
      {"Flatten", 19},
      {"Conv", 1},
      {"MaxPool", 1},
      {"AveragePool", 1},
      {"ConvTranspose", 1},
      {"Gather", 20},
      {"MatMul", 21},
      {"Concat", 1},
      {"DepthToSpace", 1},
      {"SpaceToDepth", 1},
      {"Col2Im", 22},
      {"AffineGrid", 23},
      {"DFT", 1},
      {"EyeLike", 24},
      {"STFT", 25},
      {"GatherElements", 26},
      {"ArgMax", 27},
      {"ArgMin", 27},
  };
  if (!node.domain.empty() || in.empty() || in[0].kind != Value::kTensor || !in[0].ranked) return {};
  const Value& x = in[0];
  int64_t rank = static_cast<int64_t>(x.dims.size());
  std::string_view op = node.op_type;
  if (op.substr(0, 6) == "Reduce") {
    bool keep = IntOf(node, "keepdims", 1) != 0;
    if (keep) return {OfRank(x.dtype, rank)};
    int64_t axes = Count(in, 1);
    if (in.size() > 1 && axes > 0) return {OfRank(x.dtype, rank - axes)};
    return {};
  }
  auto it = kKinds.find(op);
  if (it == kKinds.end()) return {};
  switch (it->second) {
    case 1:
      return {
          OfRank(op == "QuantizeLinear" ? (in.size() > 2 && in[2] ? in[2].dtype : DataType::UInt(8)) : x.dtype, rank)};
    case 2:
      return {OfShape(x.dtype, x.dims)};
    case 10: {
      int64_t n = Count(in, 1);
      if (n < 0) return {};
      return {OfShape(x.dtype, Lengths(in[1], n))};
    }
    case 11: {
      int64_t n = Count(in, 1);
      if (n < 0) return {};
      Dims want = Lengths(in[1], n), out(static_cast<size_t>(std::max(n, rank)), -1);
      for (size_t i = 0; i < out.size(); ++i) {
        // From the end: a length above 1 on either side is the result's.
        int64_t w = i < want.size() ? want[want.size() - 1 - i] : 1,
                d = i < x.dims.size() ? x.dims[x.dims.size() - 1 - i] : 1;
        out[out.size() - 1 - i] = w > 1 ? w : d > 1 ? d : w == 1 && d == 1 ? 1 : -1;
      }
      return {OfShape(x.dtype, out)};
    }
    case 12: {
      int64_t n = Count(in, 0);
      const Attribute* value = node.Find("value");
      DataType t =
          value == nullptr || value->tensors.empty() ? DataType::Float(32) : FromOnnxType(value->tensors[0].data_type);
      if (n < 0 || t.is_void()) return {};
      return {OfShape(t, Lengths(x, n))};
    }
    case 13:
      return {OfRank(x.dtype, 1)};
    case 14:
    case 15: {
      int64_t n = Count(in, 1);
      if (n < 0 || in.size() < 2) return {};
      return {OfRank(x.dtype, op == "Unsqueeze" ? rank + n : rank - n)};
    }
    case 16: {
      Values out;
      for (size_t i = 0; i < node.outputs.size(); ++i) out.push_back(OfRank(x.dtype, rank));
      return out;
    }
    case 17:
      return {OfRank(x.dtype, rank), OfRank(DataType::Int(64), rank)};
    case 18:
      if (in.size() < 3) return {};
      return {OfRank(in[2].dtype, rank + 1)};
    case 19:
      return {OfRank(x.dtype, 2)};
    case 20:
      if (in.size() < 2 || !in[1].ranked) return {};
      return {OfRank(x.dtype, rank + static_cast<int64_t>(in[1].dims.size()) - 1)};
    case 21: {
      if (in.size() < 2 || !in[1].ranked) return {};
      int64_t other = static_cast<int64_t>(in[1].dims.size());
      if (rank < 2 || other < 2) return {};
      Value v = OfRank(x.dtype, std::max(rank, other));
      v.dims[v.dims.size() - 2] = x.dims[x.dims.size() - 2];
      v.dims.back() = in[1].dims.back();
      return {v};
    }
    case 22: {
      int64_t n = Count(in, 1);
      if (n < 0) return {};
      return {OfRank(x.dtype, n + 2)};
    }
    case 23: {
      int64_t n = Count(in, 1);
      if (n < 0) return {};
      return {OfRank(x.dtype, n)};
    }
    case 24:
      return {OfRank(node.Find("dtype") ? FromOnnxType(static_cast<int32_t>(IntOf(node, "dtype", 1))) : x.dtype, rank)};
    case 25:
      return {OfRank(x.dtype, 4)};
    case 26:
      if (in.size() < 2 || !in[1].ranked) return {};
      return {OfShape(x.dtype, in[1].dims)};
    case 27:
      return {OfRank(DataType::Int(64), IntOf(node, "keepdims", 1) != 0 ? rank : rank - 1)};
    default:
      return {};
  }
}

}  // namespace baton::onnx
