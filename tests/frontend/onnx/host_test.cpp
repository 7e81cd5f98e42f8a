// SPDX-License-Identifier: Apache-2.0
// Values of calls of constants: those that the program would compute, and none for what is left to constant folding.
#include "frontend/onnx/import/host.h"

#include <baton/relay/op.h>
#include <baton/relay/transform.h>
#include <baton/runtime/array.h>
#include <doctest/doctest.h>

#include "frontend/onnx/import/elements.h"
#include "frontend/onnx/import/importer_impl.h"

namespace baton::onnx {
namespace {

using Dims = std::vector<int64_t>;

HostPtr I(Dims values) { return HostFromInts(DataType::Int(64), {static_cast<int64_t>(values.size())}, values); }
HostPtr I(Dims shape, Dims values) { return HostFromInts(DataType::Int(64), shape, values); }
Any A(Dims v) { return Array<int64_t>(v); }

Dims Ints(const HostPtr& h) {
  REQUIRE(h != nullptr);
  Dims out;
  for (int64_t i = 0; i < h->size(); ++i) out.push_back(h->IntAt(i));
  return out;
}

/// The value of a call; `tuple`: of an operator that takes its operands as one.
HostPtr EvaluateCall(const char* name, const std::vector<HostPtr>& args, const NamedAttrs& attrs, bool tuple = false) {
  Array<relay::Expr> exprs;
  Values values;
  for (const HostPtr& h : args) {
    exprs.push_back(relay::Constant(ToNDArray(h)));
    values.emplace_back();
    values.back().kind = Value::kTensor;
    values.back().dtype = h->dtype;
    values.back().ranked = true;
    values.back().dims = h->dims;
    values.back().host = h;
  }
  if (tuple) exprs = {relay::Tuple(exprs)};
  const Op op = Op::Get(name);
  const char* (*key)() = relay::DefOf(op)->attrs;
  relay::Call call(op, exprs, key ? MakeAttrs(key(), attrs) : Attrs(), Array<baton::Type>());
  const auto type = Downcast<TensorType>(relay::transform::InferTypeOf(call));
  Value result;
  result.kind = Value::kTensor;
  result.dtype = type->dtype;
  result.ranked = true;
  for (const PrimExpr& d : type->shape) result.dims.push_back(relay::DimOf(d));
  result.partial = ElementsOfCall(call, values, tuple, result);
  return ValueOfCall(call, values, result);
}

TEST_CASE("onnx host: arithmetic") {
  CHECK(Ints(EvaluateCall("add", {I({1, 2}), I({10, 20})}, {})) == Dims{11, 22});
  CHECK(Ints(EvaluateCall("multiply", {I({2, 1}, {3, 4}), I({1, 2}, {5, 6})}, {})) == Dims{15, 18, 20, 24});
  CHECK(Ints(EvaluateCall("divide", {I({-7}), I({2})}, {})) == Dims{-3});
  CHECK(Ints(EvaluateCall("floor_divide", {I({-7}), I({2})}, {})) == Dims{-4});
  CHECK(Ints(EvaluateCall("floor_mod", {I({-7}), I({2})}, {})) == Dims{1});
  CHECK(Ints(EvaluateCall("mod", {I({-7}), I({2})}, {})) == Dims{-1});
  CHECK(Ints(EvaluateCall("less", {I({1, 3}), I({2})}, {})) == Dims{1, 0});
  CHECK(Ints(EvaluateCall("where", {EvaluateCall("less", {I({1, 3}), I({2})}, {}), I({7}), I({8})}, {})) == Dims{7, 8});
}

TEST_CASE("onnx host: integers wrap as those of a program do") {
  CHECK(Ints(EvaluateCall("add", {I({INT64_MAX}), I({1})}, {})) == Dims{INT64_MIN});
  CHECK(Ints(EvaluateCall("multiply", {I({INT64_MAX}), I({2})}, {})) == Dims{-2});
}

TEST_CASE("onnx host: layers and large results are left to constant folding") {
  CHECK(EvaluateCall("nn.dense", {I({0, 1}, {}), I({0, 1}, {})}, {}) == nullptr);
  CHECK(EvaluateCall("broadcast_to", {I({1})}, {{"shape", A({1 << 20})}}) == nullptr);
}

TEST_CASE("onnx host: places") {
  HostPtr m = I({2, 3}, {0, 1, 2, 3, 4, 5});
  CHECK(Ints(EvaluateCall("transpose", {m}, {{"axes", A({1, 0})}})) == Dims{0, 3, 1, 4, 2, 5});
  CHECK(Ints(EvaluateCall("take", {m, I({1})}, {{"axis", int64_t{0}}})) == Dims{3, 4, 5});
  CHECK(Ints(EvaluateCall("take", {m, I({-1})}, {{"axis", int64_t{1}}, {"mode", "negative"}})) == Dims{2, 5});
  CHECK(Ints(EvaluateCall("take", {m, I({2})}, {{"axis", int64_t{0}}})) == Dims{3, 4, 5});
  CHECK(Ints(EvaluateCall("strided_slice", {I({0, 1, 2, 3})},
                          {{"begin", A({3})}, {"end", A({-5})}, {"strides", A({-2})}})) == Dims{3, 1});
  CHECK(Ints(EvaluateCall("concatenate", {m, m}, {{"axis", int64_t{1}}}, true)) ==
        Dims{0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5});
  CHECK(Ints(EvaluateCall("sum", {m}, {{"axis", A({1})}, {"keepdims", false}})) == Dims{3, 12});
  CHECK(Ints(EvaluateCall("prod", {I({2, 3, 4})}, {{"axis", A({0})}, {"keepdims", false}})) == Dims{24});
  CHECK(Ints(EvaluateCall("max", {m}, {{"axis", A({0})}, {"keepdims", true}})) == Dims{3, 4, 5});
}

TEST_CASE("onnx host: types") {
  HostPtr f = HostFromFloats(DataType::Float(32), {3}, {1.9, -1.9, 0});
  CHECK(Ints(EvaluateCall("cast", {f}, {{"dtype", DataType::Int(32)}})) == Dims{1, -1, 0});
  CHECK(Ints(EvaluateCall("cast", {f}, {{"dtype", DataType::Bool()}})) == Dims{1, 1, 0});
  CHECK(Ints(EvaluateCall("cast", {I({300, -1})}, {{"dtype", DataType::UInt(8)}})) == Dims{44, 255});
  CHECK(HostFromFloats(DataType::Float(16), {1}, {0.1})->FloatAt(0) == doctest::Approx(0.0999755859375));
  CHECK(HostFromFloats(DataType::BFloat16(), {1}, {3.14159})->FloatAt(0) == 3.140625);
}

}  // namespace
}  // namespace baton::onnx
