// SPDX-License-Identifier: Apache-2.0
// One fusion group as a kernel generator writes it, compiled and run, beside its tensor expressions evaluated one by
// one.
#pragma once

#include <baton/codegen/codegen.h>
#include <baton/ir/structural.h>
#include <baton/relay/lower.h>
#include <baton/relay/op.h>
#include <baton/relay/op/make.h>
#include <baton/relay/op/nn.h>
#include <baton/relay/transform.h>
#include <baton/tir/interpreter.h>
#include <baton/tir/lower.h>
#include <baton/tir/printer.h>
#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "../../te/reference.h"

namespace baton::kernel_test {

using relay::Call;
using relay::Expr;
using relay::Function;
using relay::Var;

inline Var Input(const char* name, const std::vector<int64_t>& shape, DataType t = DataType::Float(32)) {
  Array<PrimExpr> dims;
  for (int64_t d : shape) dims.push_back(PrimExpr(d));
  return Var(name, TensorType(dims, t));
}

inline NDArray Fill(const std::vector<int64_t>& shape, DataType t, uint32_t seed) {
  NDArray a = NDArray::Empty(shape, t);
  uint32_t x = seed * 2654435761u + 12345;
  for (int64_t i = 0; i < a.numel(); ++i) {
    x = x * 1664525u + 1013904223u;
    double v = static_cast<double>(x >> 8) / (1 << 24) - 0.5;
    if (t.bits() == 8)
      a.ptr<uint8_t>()[i] = static_cast<uint8_t>(x >> 24);  // the ends of the range among them
    else if (t.bits() == 64)
      a.ptr<double>()[i] = v;
    else
      a.ptr<float>()[i] = static_cast<float>(v);
  }
  return a;
}

struct Group {
  Function func;
  tir::PrimFunc loops;
  bool generated = false;  ///< by a kernel generator
};

/// The group that `body` becomes; it must be one.
inline Group MakeGroup(const Array<Var>& params, const Expr& body, const Target& target = Target::Host()) {
  IRModule mod = IRModule::FromExpr(Function(params, body));
  mod = relay::transform::InferType()(mod);
  mod = relay::transform::FuseOps(2)(mod);
  mod = relay::transform::InferType()(mod);
  Function main = Downcast<Function>(mod->Lookup("main"));
  const auto* call = main->body.as<relay::CallNode>();
  REQUIRE(call);
  Group g;
  g.func = Downcast<Function>(call->op);
  for (const Expr& a : call->args) REQUIRE(a.as<relay::VarNode>());
  g.loops = relay::LowerPrimitive(g.func, "kernel", target);
  // A generator's buffers are flat, those of the general schedule have the tensors' shapes.
  g.generated = true;
  for (const auto& [param, buffer] : g.loops->buffer_map) g.generated = g.generated && buffer->shape.size() == 1;
  return g;
}

using Symbol = int (*)(void*, void*, void*, void*, void*, void*, void*, void*);

class Compiled {
 public:
  explicit Compiled(const tir::PrimFunc& f, const Target& target = Target::Host()) {
    GlobalVar var{String("kernel")};
    Map<GlobalVar, BaseFunc> functions;
    functions.Set(var, WithAttr(tir::LowerPipeline(f, target), attr::kGlobalSymbol, Any(String("kernel"))));
    code_ = codegen::LoadObjects(codegen::CompileToObjects(IRModule(functions), target, 1));
    symbol_ = reinterpret_cast<Symbol>(code_->GetSymbol("kernel"));
    REQUIRE((symbol_ != nullptr));
  }
  void Run(const std::vector<NDArray>& a) const {
    void* p[8] = {};
    REQUIRE(a.size() <= 8);
    for (size_t i = 0; i < a.size(); ++i) p[i] = a[i].data();
    REQUIRE(symbol_(p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7]) == 0);
  }

 private:
  runtime::Module code_;
  Symbol symbol_;
};

inline std::vector<int64_t> ShapeOf(const Expr& e) {
  std::vector<int64_t> s;
  relay::StaticShape(e->checked_type().as<TensorTypeNode>()->shape, &s);
  return s;
}

/// Compiles the group, runs it on numbers, and compares with its definition to `tolerance` of the largest result.
inline void Check(const Array<Var>& params, const Expr& body, double tolerance = 1e-4, bool wants_kernel = true,
                  bool interpret = false) {
  Group g = MakeGroup(params, body);
  CHECK(g.generated == wants_kernel);
  std::vector<NDArray> args;
  Array<te::Tensor> inputs;
  Array<te::Tensor> outputs = relay::ToTensorExpressions(g.func, &inputs);
  te_test::Reference reference;
  for (size_t i = 0; i < g.func->params.size(); ++i) {
    const Var& p = g.func->params[static_cast<int64_t>(i)];
    args.push_back(Fill(ShapeOf(p), p->checked_type().as<TensorTypeNode>()->dtype, static_cast<uint32_t>(i + 1)));
    reference.Set(inputs[static_cast<int64_t>(i)], args.back());
  }
  const te_test::Values& want = reference.Of(outputs[0]);
  DataType t = outputs[0]->dtype;
  double scale = 1e-6;
  for (double v : want.v) scale = std::max(scale, std::fabs(v));
  for (int way = 0; way < (interpret ? 2 : 1); ++way) {
    NDArray out = NDArray::Empty(want.shape, t);
    memset(out.data(), 0x7f, out.nbytes());  // nothing may be left as it was
    std::vector<NDArray> all = args;
    all.push_back(out);
    if (way == 0) {
      Compiled(g.loops).Run(all);
    } else {
      tir::Interpret(g.loops, all);
    }
    double worst = 0;
    for (size_t i = 0; i < want.v.size(); ++i) {
      double d = std::fabs(out.GetDouble(static_cast<int64_t>(i)) - want.v[i]);
      if (!(d <= worst)) worst = d;
    }
    INFO("way " << way << " " << baton::AsText(g.func));
    CHECK(worst <= tolerance * scale);
  }
}

}  // namespace baton::kernel_test
