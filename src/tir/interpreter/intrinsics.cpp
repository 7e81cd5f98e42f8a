// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "tir/interpreter/interpreter_impl.h"

namespace baton::tir::interpreter {

Scalar Interpreter::EvalCall(const CallNode* c, int lane) {
  std::string_view name = IntrinName(c);
  if (name.substr(0, 4) == "tir.") name.remove_prefix(4);
  DataType t = c->dtype, s = t.element_of();
  auto f = [&](int i) { return Float(c->args[i], lane); };
  auto n = [&](int i) { return Int(c->args[i], lane); };
  if (name == "if_then_else") {
    bool cond = Int(c->args[0], c->args[0].dtype().lanes() > 1 ? lane : 0) != 0;
    return Eval(c->args[cond ? 1 : 2], lane);
  }
  if (name == "likely") return Eval(c->args[0], lane);
  if (name == "masked_load") {
    if (!n(1)) return {0, 0};
    const auto* l = c->args[0].as<BufferLoadNode>();
    return Load(l->buffer, Position(l->buffer, l->indices, lane));
  }
  if (name == "masked_store") {
    const auto* l = c->args[0].as<BufferLoadNode>();
    int lanes = c->args[1].dtype().lanes();
    std::vector<Scalar> v;
    for (int i = 0; i < lanes; ++i) v.push_back(Eval(c->args[1], i));
    for (int i = 0; i < lanes; ++i) {
      if (Int(c->args[2], i)) Store(l->buffer, Position(l->buffer, l->indices, i), v[static_cast<size_t>(i)]);
    }
    return {0, 0};
  }
  if (c->op.as<GlobalVarNode>()) return CallFunction(c, lane);
  // Threads in lockstep, or a single thread, need no wait.
  if (name == "prefetch" || name == "tvm_storage_sync") return {0, 0};
  if (name == "tvm_thread_allreduce")
    throw RuntimeError("tvm_thread_allreduce stands in no kernel, or in a branch or loop that not all threads take");
  bool is_float = IsFloat(t);
  if (name == "vector_sum")
    return Halves(c->args[0],
                  [&](Scalar a, Scalar b) { return is_float ? OfFloat(a.f + b.f, s) : OfInt(a.i + b.i, s); });
  if (name == "vector_prod")
    return Halves(c->args[0],
                  [&](Scalar a, Scalar b) { return is_float ? OfFloat(a.f * b.f, s) : OfInt(a.i * b.i, s); });
  if (name == "vector_max" || name == "vector_min") {
    bool max = name == "vector_max";
    return Halves(c->args[0], [&](Scalar a, Scalar b) {
      if (is_float) return std::isnan(a.f) || (!std::isnan(b.f) && (max ? a.f > b.f : a.f < b.f)) ? a : b;
      bool less = s.is_uint() ? static_cast<uint64_t>(a.i) < static_cast<uint64_t>(b.i) : a.i < b.i;
      return less == max ? b : a;
    });
  }
  if (name == "isnan") return {std::isnan(f(0)), 0};
  if (name == "isinf") return {std::isinf(f(0)), 0};
  if (name == "isfinite") return {std::isfinite(f(0)), 0};
  if (name == "reinterpret") return Reinterpret(Eval(c->args[0], lane), c->args[0].dtype().element_of(), s);
  return is_float ? EvalFloatCall(name, c, lane) : EvalIntCall(name, c, lane);
}

Scalar Interpreter::EvalFloatCall(std::string_view name, const CallNode* c, int lane) {
  const DataType s = c->dtype.element_of();
  auto f = [&](int i) { return Float(c->args[i], lane); };
  bool single = s.bits() < 64;
  auto out = [&](double v) { return OfFloat(v, s); };
  if (name == "fma")
    return out(single ? static_cast<double>(
                            std::fmaf(static_cast<float>(f(0)), static_cast<float>(f(1)), static_cast<float>(f(2))))
                      : std::fma(f(0), f(1), f(2)));
  if (name == "ldexp") return out(std::isnan(f(1)) ? f(1) : std::ldexp(f(0), static_cast<int>(f(1))));
  if (name == "pow") return out(std::pow(f(0), f(1)));
  if (name == "fmod") return out(std::fmod(f(0), f(1)));
  if (name == "atan2") return out(std::atan2(f(0), f(1)));
  if (name == "sigmoid") return out(1 / (1 + std::exp(-f(0))));
  if (name == "rsqrt") return out(1 / Round(std::sqrt(f(0)), s));
  using Fn = double (*)(double);
  static const std::unordered_map<std::string_view, Fn> unary = {{"exp", std::exp},
                                                                 {"exp2", std::exp2},
                                                                 {"log", std::log},
                                                                 {"log2", std::log2},
                                                                 {"log10", std::log10},
                                                                 {"log1p", std::log1p},
                                                                 {"sqrt", std::sqrt},
                                                                 {"sin", std::sin},
                                                                 {"cos", std::cos},
                                                                 {"tan", std::tan},
                                                                 {"sinh", std::sinh},
                                                                 {"cosh", std::cosh},
                                                                 {"tanh", std::tanh},
                                                                 {"asin", std::asin},
                                                                 {"acos", std::acos},
                                                                 {"atan", std::atan},
                                                                 {"asinh", std::asinh},
                                                                 {"acosh", std::acosh},
                                                                 {"atanh", std::atanh},
                                                                 {"erf", std::erf},
                                                                 {"floor", std::floor},
                                                                 {"ceil", std::ceil},
                                                                 {"trunc", std::trunc},
                                                                 {"round", std::round},
                                                                 {"nearbyint", std::nearbyint},
                                                                 {"fabs", std::fabs},
                                                                 {"abs", std::fabs}};
  if (auto it = unary.find(name); it != unary.end()) return out(it->second(f(0)));
  throw UnsupportedError("the interpreter does not know the intrinsic tir." + std::string(name));
}

Scalar Interpreter::EvalIntCall(std::string_view name, const CallNode* c, int lane) {
  const DataType t = c->dtype, s = t.element_of();
  auto n = [&](int i) { return Int(c->args[i], lane); };
  if (name == "abs")
    return OfInt(t.is_uint() || n(0) >= 0 ? n(0) : static_cast<int64_t>(-static_cast<uint64_t>(n(0))), s);
  if (name == "dot4") {
    int64_t sum = n(2);
    for (int i = 4 * lane; i < 4 * lane + 4; ++i) sum += Int(c->args[0], i) * Int(c->args[1], i);
    return OfInt(sum, s);
  }
  if (name == "bitwise_and") return OfInt(n(0) & n(1), s);
  if (name == "bitwise_or") return OfInt(n(0) | n(1), s);
  if (name == "bitwise_xor") return OfInt(n(0) ^ n(1), s);
  if (name == "bitwise_not") return OfInt(t.is_bool() ? !n(0) : ~n(0), s);
  if (name == "popcount")
    return OfInt(__builtin_popcountll(static_cast<uint64_t>(n(0)) & (~uint64_t{0} >> (64 - s.bits()))), s);
  if (name == "shift_left" || name == "shift_right") {
    int64_t a = n(0), k = n(1);
    bool big = k < 0 || k >= s.bits();
    if (name == "shift_left") return OfInt(big ? 0 : static_cast<int64_t>(static_cast<uint64_t>(a) << k), s);
    if (s.is_int()) return OfInt(a >> (big ? s.bits() - 1 : k), s);
    return OfInt(big ? 0 : static_cast<int64_t>(static_cast<uint64_t>(a) >> k), s);
  }
  throw UnsupportedError("the interpreter does not know the intrinsic tir." + std::string(name));
}

}  // namespace baton::tir::interpreter
