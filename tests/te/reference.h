// SPDX-License-Identifier: Apache-2.0
// Runs tensor expressions three ways: element by element as they are written (the reference), lowered by the general
// schedule in the interpreter, and lowered as machine code.
#pragma once

#include <baton/codegen/codegen.h>
#include <baton/runtime/ndarray.h>
#include <baton/te/lower.h>
#include <baton/tir/functor.h>
#include <baton/tir/interpreter.h>
#include <baton/tir/lower.h>
#include <baton/tir/op.h>
#include <baton/tir/printer.h>
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

namespace baton::te_test {

using te::Tensor;

/// Values of a tensor as doubles.
struct Values {
  std::vector<int64_t> shape;
  std::vector<double> v;
};

/// Evaluates tensor expressions as they are defined. Slow, and knows nothing of schedules.
class Reference {
 public:
  void Set(const Tensor& t, const NDArray& a) {
    Values x{a.shape(), {}};
    for (int64_t i = 0; i < a.numel(); ++i) x.v.push_back(a.GetDouble(i));
    done_[{t->op.get(), t->value_index}] = x;
  }
  const Values& Of(const Tensor& t) {
    auto key = std::make_pair(static_cast<const Object*>(t->op.get()), t->value_index);
    auto it = done_.find(key);
    if (it != done_.end()) return it->second;
    const auto* op = t->op.as<te::ComputeOpNode>();
    REQUIRE(op);
    std::vector<Values> outs(op->body.size());
    int64_t n = 1;
    std::vector<int64_t> shape;
    for (const PrimExpr& d : t.shape()) shape.push_back(*tir::as_const_int(d)), n *= shape.back();
    for (Values& o : outs) o.shape = shape, o.v.resize(static_cast<size_t>(n));
    std::unordered_map<const Object*, double> env;
    for (int64_t i = 0; i < n; ++i) {
      int64_t rest = i;
      for (size_t d = shape.size(); d-- > 0;)
        env[op->axis[d]->var.get()] = static_cast<double>(rest % shape[d]), rest /= shape[d];
      for (size_t o = 0; o < outs.size(); ++o)
        outs[o].v[static_cast<size_t>(i)] = Root(op->body[static_cast<int64_t>(o)], env);
    }
    for (size_t o = 0; o < outs.size(); ++o) done_[{t->op.get(), static_cast<int64_t>(o)}] = outs[o];
    return done_[key];
  }

 private:
  using Env = std::unordered_map<const Object*, double>;
  double Root(const PrimExpr& e, Env& env) {
    const auto* r = e.as<tir::ReduceNode>();
    if (!r) return Eval(e, env);
    std::vector<double> acc;
    for (const PrimExpr& i : r->combiner->identity_element) acc.push_back(Eval(i, env));
    Loop(r, 0, env, &acc);
    return acc[static_cast<size_t>(r->value_index)];
  }
  void Loop(const tir::ReduceNode* r, size_t axis, Env& env, std::vector<double>* acc) {
    if (axis < r->axis.size()) {
      tir::IterVar v = r->axis[static_cast<int64_t>(axis)];
      int64_t min = static_cast<int64_t>(Eval(v->dom->min, env)), n = static_cast<int64_t>(Eval(v->dom->extent, env));
      for (int64_t i = min; i < min + n; ++i) env[v->var.get()] = static_cast<double>(i), Loop(r, axis + 1, env, acc);
      return;
    }
    if (r->condition.defined() && Eval(r->condition, env) == 0) return;
    for (size_t i = 0; i < acc->size(); ++i) {
      env[r->combiner->lhs[static_cast<int64_t>(i)].get()] = (*acc)[i];
      env[r->combiner->rhs[static_cast<int64_t>(i)].get()] = Eval(r->source[static_cast<int64_t>(i)], env);
    }
    std::vector<double> next;
    for (const PrimExpr& x : r->combiner->result) next.push_back(Eval(x, env));
    *acc = next;
  }
  double Eval(const PrimExpr& e, Env& env) {
    if (const auto* i = e.as<IntImmNode>()) return static_cast<double>(i->value);
    if (const auto* f = e.as<FloatImmNode>()) return f->value;
    if (e.as<tir::VarNode>()) return env.at(e.get());
    if (const auto* c = e.as<tir::CastNode>()) {
      double v = Eval(c->value, env);
      return c->dtype.is_integral() ? std::trunc(v) : c->dtype.is_bool() ? v != 0 : v;
    }
    if (const auto* s = e.as<tir::SelectNode>())
      return Eval(s->condition, env) != 0 ? Eval(s->true_value, env) : Eval(s->false_value, env);
    if (const auto* n = e.as<tir::NotNode>()) return Eval(n->a, env) == 0;
    if (const auto* l = e.as<tir::ProducerLoadNode>()) {
      const Values& x = Of(Downcast<Tensor>(l->producer));
      int64_t at = 0;
      for (size_t d = 0; d < x.shape.size(); ++d) {
        int64_t i = static_cast<int64_t>(Eval(l->indices[static_cast<int64_t>(d)], env));
        if (i < 0 || i >= x.shape[d]) FAIL("index " << i << " of a dimension of " << x.shape[d]);
        at = at * x.shape[d] + i;
      }
      return x.v[static_cast<size_t>(at)];
    }
    if (const auto* c = e.as<tir::CallNode>()) {
      std::string n(tir::IntrinName(c));
      if (n == "tir.if_then_else") return Eval(c->args[0], env) != 0 ? Eval(c->args[1], env) : Eval(c->args[2], env);
      double x = Eval(c->args[0], env);
      if (n == "tir.exp") return std::exp(x);
      if (n == "tir.log") return std::log(x);
      if (n == "tir.tanh") return std::tanh(x);
      if (n == "tir.erf") return std::erf(x);
      if (n == "tir.sigmoid") return 1 / (1 + std::exp(-x));
      if (n == "tir.sqrt") return std::sqrt(x);
      if (n == "tir.rsqrt") return 1 / std::sqrt(x);
      if (n == "tir.fabs") return std::fabs(x);
      if (n == "tir.pow") return std::pow(x, Eval(c->args[1], env));
      FAIL("reference does not know " << n);
    }
    tir::NodeKind k = tir::KindOf(e.get());
    const auto* b = static_cast<const tir::AddNode*>(e.get());
    double x = Eval(b->a, env), y = Eval(b->b, env);
    switch (k) {
      case tir::NodeKind::kAdd:
        return x + y;
      case tir::NodeKind::kSub:
        return x - y;
      case tir::NodeKind::kMul:
        return x * y;
      case tir::NodeKind::kDiv:
        return e.dtype().is_floating() ? x / y : std::trunc(x / y);
      case tir::NodeKind::kMod:
        return std::fmod(x, y);
      case tir::NodeKind::kFloorDiv:
        return std::floor(x / y);
      case tir::NodeKind::kFloorMod:
        return x - std::floor(x / y) * y;
      case tir::NodeKind::kMin:
        return x < y ? x : y;
      case tir::NodeKind::kMax:
        return x > y ? x : y;
      case tir::NodeKind::kEQ:
        return x == y;
      case tir::NodeKind::kNE:
        return x != y;
      case tir::NodeKind::kLT:
        return x < y;
      case tir::NodeKind::kLE:
        return x <= y;
      case tir::NodeKind::kGT:
        return x > y;
      case tir::NodeKind::kGE:
        return x >= y;
      case tir::NodeKind::kAnd:
        return x != 0 && y != 0;
      case tir::NodeKind::kOr:
        return x != 0 || y != 0;
      default:
        FAIL("reference does not know " << e.get()->GetTypeKey());
    }
    return 0;
  }
  std::map<std::pair<const Object*, int64_t>, Values> done_;
};

/// Compiles one function and calls it with pointers.
class Compiled {
 public:
  explicit Compiled(const tir::PrimFunc& f, const Target& target = Target::Host()) {
    tir::PrimFunc lowered = tir::LowerPipeline(f, target);
    IRModule mod(Map<GlobalVar, BaseFunc>{{GlobalVar("f"), WithAttr(lowered, attr::kGlobalSymbol, String("f"))}});
    code_ = codegen::LoadObjects(codegen::CompileToObjects(mod, target, 1));
    fn_ = code_->GetSymbol("f");
    REQUIRE(fn_);
  }
  int operator()(const std::vector<NDArray>& a) const {
    std::vector<void*> p;
    for (const NDArray& x : a) p.push_back(x.data());
    p.resize(6);
    // Further arguments are ignored by the callee.
    return reinterpret_cast<int32_t (*)(void*, void*, void*, void*, void*, void*)>(fn_)(p[0], p[1], p[2], p[3], p[4],
                                                                                        p[5]);
  }

 private:
  runtime::Module code_;
  void* fn_;
};

/// Numbers in [-2, 2] (integers in [lo, hi]) that do not repeat soon.
inline NDArray Random(const std::vector<int64_t>& shape, DataType dtype, uint64_t seed, int64_t lo = -3,
                      int64_t hi = 3) {
  NDArray a = NDArray::Empty(shape, dtype);
  for (int64_t i = 0; i < a.numel(); ++i) {
    seed = seed * 6364136223846793005ull + 1442695040888963407ull;
    if (dtype.is_floating())
      a.SetDouble(i, static_cast<double>(static_cast<int64_t>(seed >> 33) % 4001 - 2000) / 1000.0);
    else
      a.SetInt(i, dtype.is_bool() ? (seed >> 40) & 1
                                  : lo + static_cast<int64_t>((seed >> 33) % static_cast<uint64_t>(hi - lo + 1)));
  }
  return a;
}

/// All three ways agree to `tolerance` (absolute and relative); returns the lowered function's text.
inline std::string CheckLowering(const std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs,
                                 double tolerance = 1e-5, int64_t lo = -3, int64_t hi = 3) {
  Target target = Target::Host();
  tir::PrimFunc f = te::LowerToPrimFunc(inputs, outputs, "f", target);
  std::string text = tir::AsText(f);
  INFO(text);
  Reference ref;
  std::vector<NDArray> args, interpreted, compiled;
  auto shape_of = [](const Tensor& t) {
    std::vector<int64_t> s;
    for (const PrimExpr& d : t.shape()) s.push_back(*tir::as_const_int(d));
    return s;
  };
  uint64_t seed = 1;
  for (const Tensor& t : inputs) {
    args.push_back(Random(shape_of(t), t.dtype(), seed++, lo, hi));
    ref.Set(t, args.back());
  }
  interpreted = compiled = args;
  for (const Tensor& t : outputs) {
    for (auto* list : {&interpreted, &compiled}) {
      NDArray a = NDArray::Empty(shape_of(t), t.dtype());
      memset(a.data(), 0x5a, a.nbytes());
      list->push_back(a);
    }
  }
  tir::PrimFunc lowered = tir::LowerPipeline(f, target);
  tir::Interpret(lowered, interpreted);
  CHECK(Compiled(f)(compiled) == 0);
  for (size_t o = 0; o < outputs.size(); ++o) {
    const Values& want = ref.Of(outputs[o]);
    const NDArray &a = interpreted[inputs.size() + o], &b = compiled[inputs.size() + o];
    int bad = 0;
    for (int64_t i = 0; i < a.numel() && bad < 3; ++i) {
      double w = want.v[static_cast<size_t>(i)], x = a.GetDouble(i), y = b.GetDouble(i);
      auto near = [&](double g) {
        return (std::isnan(w) && std::isnan(g)) || g == w || std::fabs(g - w) <= tolerance * (1 + std::fabs(w));
      };
      if (!near(x) || !near(y)) {
        ++bad;
        CHECK_MESSAGE(near(x), "output ", o, " element ", i, ": interpreted ", x, ", reference ", w);
        CHECK_MESSAGE(near(y), "output ", o, " element ", i, ": compiled ", y, ", reference ", w);
      }
      // Apart from libm, both compute the same operations in the same order.
      if (!(x == y || (std::isnan(x) && std::isnan(y))) && std::fabs(x - y) > 1e-6 * (1 + std::fabs(y))) {
        ++bad;
        CHECK_MESSAGE(x == y, "output ", o, " element ", i, ": interpreted and compiled differ");
      }
    }
  }
  return text;
}

}  // namespace baton::te_test
