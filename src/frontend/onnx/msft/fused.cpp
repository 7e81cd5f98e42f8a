// SPDX-License-Identifier: Apache-2.0
// Operators that ONNX Runtime's optimiser fuses from two or three of ONNX's.
#include <algorithm>
#include <cmath>

#include "frontend/onnx/import/importer_impl.h"
#include "frontend/onnx/ops/windows.h"
#include "msft.h"

namespace baton::onnx {
namespace {

// ---- activations

Values Gelu(Ctx& c) { return {GeluOf(c, c.T(0))}; }
Values BiasGelu(Ctx& c) { return {GeluOf(c, c.Add(c.T(0), c.T(1)))}; }
Values FastGelu(Ctx& c) {
  Value x = c.T(0);
  return {GeluOf(c, c.Has(1) ? c.Add(x, c.T(1)) : x, true)};
}
Values QuickGelu(Ctx& c) { return {c.Call("nn.swish", {c.T(0)}, {{"alpha", c.Float("alpha", 1.702F)}})}; }
Values ScaledSiLU(Ctx& c) {
  Value x = c.T(0);
  double alpha = c.Float("alpha", 1.0);
  return {Silu(c, c.Has(1) ? c.Mul(x, c.Cast(c.Reshape(c.T(1), {}), x.dtype)) : c.Mul(x, alpha))};
}
Values GatedAdd(Ctx& c) { return {c.Add(c.T(0), c.Mul(c.T(1), c.T(2)))}; }

/// (X + bias) in two halves of the last axis: the first times gelu of the second.
Values BiasSplitGelu(Ctx& c) {
  Value x = c.Add(c.T(0), c.T(1));
  const int last = c.Rank(x) - 1;
  const int64_t n = c.Dim(x, last);
  if (n % 2 != 0) c.Fail("the last axis has " + std::to_string(n) + " elements, which cannot be halved");
  return {c.Mul(c.Slice(x, last, 0, n / 2), GeluOf(c, c.Slice(x, last, n / 2, n)))};
}

// ---- sums

Values BiasAdd(Ctx& c) { return {c.Add(c.Add(c.T(0), c.T(1)), c.T(2))}; }

Values BiasDropout(Ctx& c) {
  c.Ignore("seed");
  Value x = c.Add(c.T(0), c.T(1));
  if (c.Has(4) && c.KnownScalar(c.T(4)) != 0) {
    const bool never = c.Has(3) && c.KnownScalar(c.T(3)) == 0;
    if (!never) c.Unsupported("`training_mode`, which draws random numbers; export the model for inference");
  }
  Value y = c.Has(2) ? c.Add(x, c.T(2)) : x;
  if (!c.Wants(1)) return {y};
  return {y, c.Full(DataType::Bool(), 1, c.Lengths(y))};
}

/// softmax(data + bias) over all elements of the axes from `axis` on; the bias broadcasts as in NumPy.
Values BiasSoftmax(Ctx& c) {
  c.Ignore("is_inner_broadcast");
  c.Ignore("softmax_axis");
  c.Ignore("broadcast_axis");
  Value x = c.Add(c.T(0), c.T(1));
  const int rank = c.Rank(x), axis = c.Axis(c.Int("axis", 1), rank);
  if (axis == rank - 1) return {Softmax(c, x, axis)};
  const Dims shape = c.Lengths(x);
  const size_t at = static_cast<size_t>(axis);
  Value flat = c.Reshape(x, {c.Volume(shape, 0, at), c.Volume(shape, at, shape.size())});
  return {c.Reshape(Softmax(c, flat, 1), shape)};
}

// ---- products

/// The last two axes exchanged; a vector stays.
Value Turned(Ctx& c, const Value& v) {
  Dims perm = Iota(c.Rank(v));
  if (perm.size() > 1) std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  return c.Transpose(v, perm);
}

/// The first axis behind the batch: (rows, batch..., columns) to (batch..., rows, columns).
Value BatchFirst(Ctx& c, const Value& v) {
  const int64_t rank = c.Rank(v);
  if (rank < 3) return v;
  Dims perm = Iota(rank - 2, 1);
  perm.push_back(0);
  perm.push_back(rank - 1);
  return c.Transpose(v, perm);
}

Value Product(Ctx& c) {
  Value a = c.T(0), b = c.T(1);
  if (c.Int("transBatchA", 0) != 0) a = BatchFirst(c, a);
  if (c.Int("transBatchB", 0) != 0) b = BatchFirst(c, b);
  if (c.Int("transA", 0) != 0) a = Turned(c, a);
  if (c.Int("transB", 0) != 0) b = Turned(c, b);
  const double alpha = c.Float("alpha", 1.0);
  Value y = c.MatMul(a, b);
  return alpha == 1.0 ? y : c.Mul(y, alpha);
}

/// The attributes `activation_alpha` and so on, as far as they are there.
std::vector<float> ActivationParams(Ctx& c) {
  std::vector<float> params;
  for (const char* name : {"activation_alpha", "activation_beta", "activation_gamma"}) {
    if (c.HasAttr(name)) params.push_back(static_cast<float>(c.Float(name, 0)));
  }
  return params;
}

Values FusedMatMul(Ctx& c) { return {Product(c)}; }

Values FusedMatMulActivation(Ctx& c) {
  Value y = Product(c);
  const std::string activation = c.Str("activation", "");
  if (activation == "Softmax") return {Softmax(c, y, c.Axis(c.Int("activation_axis", -1), c.Rank(y)))};
  c.Ignore("activation_axis");
  return {Activate(c, y, activation, ActivationParams(c))};
}

Values FusedGemm(Ctx& c) {
  Values in = {c.T(0), c.T(1)};
  if (c.Has(2)) in.push_back(c.T(2));
  Value y = AsOnnx(c, "Gemm", 13, in)[0];
  c.Ignore("leaky_relu_alpha");
  return {Activate(c, y, c.Str("activation", ""), ActivationParams(c))};
}

Values GemmFastGelu(Ctx& c) {
  Value y = c.MatMul(c.T(0), c.T(1));
  return {GeluOf(c, c.Has(2) ? c.Add(y, c.T(2)) : y, true)};
}

/// Conv, then a sum, then an activation; all on plain images.
Value ConvThen(Ctx& c, const Value& x, const Value& sum) {
  Value y = ConvOf(c, x, c.T(1), DataType::Void());
  if (c.Has(2)) y = AddBias(c, y, c.T(2));
  if (sum) y = c.Add(y, sum);
  return Activate(c, y, c.Str("activation", ""), c.Floats("activation_params"));
}
Values FusedConv(Ctx& c) { return {ConvThen(c, c.T(0), c.Opt(3))}; }

Dims LastToFirst(int64_t rank) {
  Dims perm = {0, rank - 1};
  for (int64_t i = 1; i + 1 < rank; ++i) perm.push_back(i);
  return perm;
}
Dims FirstToLast(int64_t rank) {
  Dims perm = {0};
  for (int64_t i = 2; i < rank; ++i) perm.push_back(i);
  perm.push_back(1);
  return perm;
}
/// Images with their channels last; the weight is as in ONNX.
Values NhwcFusedConv(Ctx& c) {
  Value x = c.T(0), z = c.Opt(3);
  const int rank = c.Rank(x);
  if (rank < 3) c.Fail("the data must have spatial axes");
  Value y = ConvThen(c, c.Transpose(x, LastToFirst(rank)), z ? c.Transpose(z, LastToFirst(rank)) : z);
  return {c.Transpose(y, FirstToLast(rank))};
}
Values NhwcMaxPool(Ctx& c) {
  Value x = c.T(0);
  const int rank = c.Rank(x);
  if (rank < 3) c.Fail("the data must have spatial axes");
  return {c.Transpose(AsOnnx(c, "MaxPool", 12, {c.Transpose(x, LastToFirst(rank))})[0], FirstToLast(rank))};
}

}  // namespace

Values AsOnnx(Ctx& c, const char* op, int since, Values inputs) {
  Ctx inner(c.importer(), c.node(), since, std::move(inputs));
  Values out = FindOperator("", op)->import(inner);
  const std::vector<std::string> unread = inner.Unread();
  for (const Attribute& a : c.node().attributes) {
    if (std::ranges::find(unread, a.name) == unread.end()) c.Ignore(std::string(a.name).c_str());
  }
  return out;
}

Value Activate(Ctx& c, const Value& v, const std::string& name, const std::vector<float>& params) {
  auto param = [&](size_t i, double otherwise) {
    return i < params.size() ? static_cast<double>(params[i]) : otherwise;
  };
  if (name.empty()) return v;
  if (name == "Relu") return c.Call("nn.relu", {v});
  if (name == "Tanh") return c.Call("tanh", {v});
  if (name == "Sigmoid") return Sigmoid(c, v);
  if (name == "Gelu") return GeluOf(c, v);
  if (name == "Abs" || name == "Exp") return c.Call(name == "Abs" ? "abs" : "exp", {v});
  if (name == "Clip") return Clip(c, v, param(0, -3.4028234663852886e+38), param(1, 3.4028234663852886e+38));
  if (name == "LeakyRelu") return LeakyReluOf(c, v, param(0, 0.01));
  if (name == "Elu") return c.Call("nn.elu", {v}, {{"alpha", param(0, 1.0)}});
  if (name == "Selu")
    return c.Call("nn.selu", {v},
                  {{"alpha", param(0, 1.67326319217681884765625)}, {"gamma", param(1, 1.05070102214813232421875)}});
  if (name == "ThresholdedRelu") return c.Call("nn.thresholded_relu", {v}, {{"alpha", param(0, 1.0)}});
  if (name == "HardSigmoid") return c.Call("nn.hard_sigmoid", {v}, {{"alpha", param(0, 0.2)}, {"beta", param(1, 0.5)}});
  if (name == "HardSwish")
    return c.Mul(v, c.Call("nn.hard_sigmoid", {v}, {{"alpha", param(0, 1.0 / 6)}, {"beta", param(1, 0.5)}}));
  if (name == "ScaledTanh") return c.Mul(c.Call("tanh", {c.Mul(v, param(1, 1.0))}), param(0, 1.0));
  if (name == "Softplus" || name == "Softsign") return AsOnnx(c, name.c_str(), 1, {v})[0];
  c.Unsupported("`activation` \"" + name + "\"");
}

Value GeluOf(Ctx& c, const Value& v, bool tanh) {
  return c.Call("nn.gelu", {v}, {{"approximate", std::string(tanh ? "tanh" : "none")}});
}

Value Silu(Ctx& c, const Value& v) { return c.Mul(v, Sigmoid(c, v)); }

void AddMsftFused(OpTable* table) {
  for (const OpRow& row : {
           OpRow{kMsft, "Gelu", Gelu},
           {kMsft, "BiasGelu", BiasGelu},
           {kMsft, "FastGelu", FastGelu},
           {kMsft, "QuickGelu", QuickGelu},
           {kMsft, "ScaledSiLU", ScaledSiLU},
           {kMsft, "GatedAdd", GatedAdd},
           {kMsft, "BiasSplitGelu", BiasSplitGelu},
           {kMsft, "BiasAdd", BiasAdd},
           {kMsft, "BiasDropout", BiasDropout, TypeOfFirst},
           {kMsft, "BiasSoftmax", BiasSoftmax},
           {kMsft, "FusedMatMul", FusedMatMul},
           {kMsft, "TransposeMatMul", FusedMatMul},
           {kMsft, "FusedMatMulActivation", FusedMatMulActivation},
           {kMsft, "FusedGemm", FusedGemm},
           {kMsft, "GemmFastGelu", GemmFastGelu},
           {kMsft, "FusedConv", FusedConv},
           {kMsft, "NhwcConv", NhwcFusedConv},
           {kMsft, "NhwcFusedConv", NhwcFusedConv},
           {kMsft, "NhwcMaxPool", NhwcMaxPool},
       }) {
    table->push_back(row);
  }
}

}  // namespace baton::onnx
