// SPDX-License-Identifier: Apache-2.0
#include <baton/frontend/onnx.h>
#include <baton/relay/expr.h>
#include <baton/relay/op.h>
#include <doctest/doctest.h>

#include <string>

#include "proto_writer.h"

namespace baton::onnx {
namespace {

using namespace testing;  // NOLINT: the writer's short names are the language of these tests
using frontend::FromOnnxBytes;
using frontend::OnnxOptions;

relay::Function Main(const frontend::OnnxModule& m) { return Downcast<relay::Function>(m.mod->Lookup("main")); }

std::string OpName(const relay::Expr& e) {
  const auto* call = e.as<relay::CallNode>();
  const auto* op = call ? call->op.as<OpNode>() : nullptr;
  return op ? std::string(op->name) : "";
}

std::string ErrorOf(const Proto& model, const OnnxOptions& options = {}, std::string* kind = nullptr) {
  try {
    FromOnnxBytes(model.bytes, options);
  } catch (const Error& e) {
    if (kind != nullptr) *kind = e.kind();
    return e.what();
  }
  return "";
}

bool Has(const std::string& text, std::string_view part) {
  INFO("in: ", text, "\nlooked for: ", std::string(part));
  bool has = text.find(part) != std::string::npos;
  CHECK(has);
  return has;
}

TEST_CASE("onnx import: names, types and places are kept") {
  auto m = FromOnnxBytes(ModelP(GraphP({.nodes = {NodeP("Add", {"x", "w"}, {"y"}, {}, "add_1")},
                                        .inputs = {ValueP("x", {2, 3})},
                                        .outputs = {ValueP("y", {2, 3})},
                                        .initializers = {FloatsP("w", {3}, {1, 2, 3})}}))
                             .bytes);
  relay::Function main = Main(m);
  REQUIRE(main->params.size() == 1);
  CHECK(std::string(main->params[0]->name_hint()) == "x");
  CHECK(OpName(main->body) == "add");
  const auto* call = main->body.as<relay::CallNode>();
  CHECK(std::string(call->span->source_name->name) == "node `add_1` (Add)");
  CHECK(call->args[1].as<relay::ConstantNode>() != nullptr);
  const auto* type = call->checked_type_.as<TensorTypeNode>();
  REQUIRE(type != nullptr);
  CHECK(relay::DimOf(type->shape[1]) == 3);
  CHECK(m.params.empty());
}

TEST_CASE("onnx import: weights as parameters") {
  OnnxOptions options;
  options.freeze_params = false;
  auto m = FromOnnxBytes(ModelP(GraphP({.nodes = {NodeP("Add", {"x", "w"}, {"y"})},
                                        .inputs = {ValueP("x", {2, 3})},
                                        .outputs = {ValueP("y", {2, 3})},
                                        .initializers = {FloatsP("w", {3}, {1, 2, 3})}}))
                             .bytes,
                         options);
  CHECK(Main(m)->params.size() == 2);
  REQUIRE(m.params.size() == 1);
  CHECK(m.params[String("w")].GetDouble(2) == 3.0);
}

TEST_CASE("onnx import: every unsupported node in one error") {
  std::string kind;
  std::string what = ErrorOf(
      ModelP(GraphP({.nodes = {NodeP("Foo", {"x"}, {"a"}, {}, "foo"), NodeP("Relu", {"a"}, {"b"}, {}, "relu"),
                               NodeP("Gelu", {"x"}, {"c"}, {}, "gelu"), NodeP("Bar", {"b"}, {"y"}, {}, "bar", "com.x"),
                               NodeP("Abs", {"x"}, {"z"}, {AttrInt("mystery", 1)}, "abs")},
                     .inputs = {ValueP("x", {2})},
                     .outputs = {ValueP("y", {2})}})),
      {}, &kind);
  CHECK(kind == "UnsupportedError");
  Has(what, "4 parts of the model are not supported");
  Has(what, "node `foo` (Foo) of `ai.onnx` 17: no such operator is known");
  Has(what, "node `gelu` (Gelu) of `ai.onnx` 17: the operator came with version 20");
  Has(what, "node `bar` (com.x.Bar) of `com.x` 0");
  Has(what, "node `abs` (Abs) of `ai.onnx` 17: attribute `mystery`");
}

TEST_CASE("onnx import: operands that must be known and are not become dyn.onnx") {
  auto m = FromOnnxBytes(ModelP(GraphP({.nodes = {NodeP("ReduceSum", {"x", "axes"}, {"y"}, {AttrInt("keepdims", 1)})},
                                        .inputs = {ValueP("x", {2, 3}), ValueP("axes", {1}, 7)},
                                        .outputs = {ValueP("y", {-1, -1})}}))
                             .bytes);
  CHECK(OpName(Main(m)->body) == "dyn.onnx");
  const relay::OpDef* def = relay::DefOf(Op::Get("dyn.onnx"));
  REQUIRE(def != nullptr);
  const auto* call = Main(m)->body.as<relay::CallNode>();
  int64_t axis = 1;
  Array<NDArray> values({NDArray(), NDArray::FromBytes(&axis, {1}, DataType::Int(64))});
  relay::Expr fixed = def->static_form(GetRef<relay::Call>(call), values);
  REQUIRE(fixed.defined());
  CHECK(OpName(fixed) == "sum");
  CHECK(relay::DimOf(fixed->checked_type_.as<TensorTypeNode>()->shape[1]) == 1);
  CHECK(!def->static_form(GetRef<relay::Call>(call), Array<NDArray>({NDArray(), NDArray()})).defined());
}

TEST_CASE("onnx import: functions are inlined with their attributes") {
  Proto leaky = NodeP("LeakyRelu", {"a"}, {"b"}, {Proto().Str(1, "alpha").Int(20, 1).Str(21, "slope")});
  Proto f = Proto()
                .Str(1, "F")
                .Str(4, "a")
                .Str(5, "b")
                .Str(6, "slope")
                .Msg(7, leaky)
                .Str(10, "d")
                .Msg(9, Proto().Str(1, "").Int(2, 17));
  Proto model = ModelP(GraphP({.nodes = {NodeP("F", {"x"}, {"y"}, {AttrFloat("slope", 0.25f)}, "", "d")},
                               .inputs = {ValueP("x", {2})},
                               .outputs = {ValueP("y", {2})}}));
  model.Msg(8, Proto().Str(1, "d").Int(2, 1)).Msg(25, f);
  auto m = FromOnnxBytes(model.bytes);
  CHECK(OpName(Main(m)->body) == "nn.leaky_relu");
}

TEST_CASE("onnx import: the model's mistakes are told by node") {
  std::string kind;
  std::string what = ErrorOf(ModelP(GraphP({.nodes = {NodeP("Add", {"x", "w"}, {"y"}, {}, "add_1")},
                                            .inputs = {ValueP("x", {2, 3})},
                                            .outputs = {ValueP("y", {2, 3})},
                                            .initializers = {FloatsP("w", {4}, {1, 2, 3, 4})}})),
                             {}, &kind);
  CHECK(kind == "CompileError");
  Has(what, "`<model>`: node `add_1` (Add): ");
  Has(what, "broadcast");
  Has(ErrorOf(ModelP(GraphP({}), 99)), "newer than the newest known (28)");
  OnnxOptions options;
  options.inputs.push_back({"z", frontend::OnnxInput::kTensor, {{1}}});
  Has(ErrorOf(ModelP(GraphP({.inputs = {ValueP("x", {1})}, .outputs = {ValueP("x", {1})}})), options),
      "`z`, which is no input; did you mean `x`?");
}

TEST_CASE("onnx import: a subgraph with inputs that nothing gives") {
  Proto body = GraphP({.nodes = {NodeP("Add", {"h", "e"}, {"k"})},
                       .inputs = {ValueP("h", {2}), ValueP("e", {2})},
                       .outputs = {ValueP("k", {2})}},
                      "body");
  Proto scan = NodeP("Scan", {"x"}, {"y"}, {AttrGraph("body", body), AttrInt("num_scan_inputs", 1)});
  Has(ErrorOf(ModelP(GraphP({.nodes = {scan}, .inputs = {ValueP("x", {3, 2})}, .outputs = {ValueP("y", {2})}}))),
      "subgraph `body` takes 2 inputs and is given 1");
}

TEST_CASE("onnx import: functions that multiply cannot unfold without end") {
  // Each function calls the next ten times: 10^9 nodes from a kilobyte.
  Proto model = ModelP(GraphP({.nodes = {NodeP("F0", {"x"}, {"y"}, {}, "", "d")},
                               .inputs = {ValueP("x", {2})},
                               .outputs = {ValueP("y", {2})}}));
  model.Msg(8, Proto().Str(1, "d").Int(2, 1));
  for (int i = 0; i < 10; ++i) {
    Proto f = Proto()
                  .Str(1, "F" + std::to_string(i))
                  .Str(4, "a")
                  .Str(5, "b9")
                  .Str(10, "d")
                  .Msg(9, Proto().Str(1, "").Int(2, 17))
                  .Msg(9, Proto().Str(1, "d").Int(2, 1));
    for (int k = 0; k < 10; ++k) {
      std::string in = k == 0 ? "a" : "b" + std::to_string(k - 1), out = "b" + std::to_string(k);
      std::string op = i == 9 ? "Neg" : "F" + std::to_string(i + 1);
      f.Msg(7, Proto().Str(1, in).Str(2, out).Str(4, op).Str(7, i == 9 ? "" : "d"));
    }
    model.Msg(25, f);
  }
  Has(ErrorOf(model), "unfold to more nodes");
}

}  // namespace
}  // namespace baton::onnx
