// SPDX-License-Identifier: Apache-2.0
// Intrinsics: functions of floats and bits, masked accesses, sums over lanes.
#include <fmt/format.h>

#include "tir/literals.h"

namespace baton {
namespace {
using literals::AsFloat;
using literals::AsInt;
using literals::Fail;
using literals::FloatLit;
using literals::IntLit;
using literals::Literal;
using literals::Match;
using literals::TypeName;
using literals::Wrap;
}  // namespace

namespace {
enum class Domain { kFloat, kNumber, kInt, kTest };
double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double Rsqrt(double x) { return 1 / std::sqrt(x); }
double Exp2(double x) { return std::exp2(x); }

PrimExpr Unary(const char* name, Domain domain, double (*fn)(double), PrimExpr x) {
  if (!x.defined()) Fail(fmt::format("the operand of `{}` is null", name + 4));
  DataType t = x.dtype();
  bool ok = domain == Domain::kInt      ? t.is_integral() || t.is_bool()
            : domain == Domain::kNumber ? t.is_integral() || t.is_floating()
                                        : t.is_floating();
  if (!ok)
    Fail(fmt::format("`{}` takes {}, got {}", name + 4, domain == Domain::kInt ? "integers" : "floats", TypeName(x)));
  if (fn) {
    if (PrimExpr l = Literal(x); l.defined() && AsFloat(l))
      return tir::broadcast_to(FloatLit(l.dtype(), fn(AsFloat(l)->value)), t.lanes());
  }
  return tir::call_intrin(domain == Domain::kTest ? DataType::Bool(t.lanes()) : t, name, {std::move(x)});
}
PrimExpr FloatTest(const char* name, bool (*fn)(double), PrimExpr x) {
  if (x.defined() && x.dtype().is_integral()) return tir::make_int(DataType::Bool(x.dtype().lanes()), fn(0.0));
  if (x.defined()) {
    if (PrimExpr l = Literal(x); l.defined() && AsFloat(l)) {
      return tir::make_int(DataType::Bool(x.dtype().lanes()), fn(AsFloat(l)->value));
    }
  }
  return Unary(name, Domain::kTest, nullptr, std::move(x));
}
}  // namespace

#define BATON_TIR_UNARY(name, fn) \
  PrimExpr name(PrimExpr x) { return Unary("tir." #name, Domain::kFloat, fn, std::move(x)); }
BATON_TIR_UNARY(exp, std::exp)
BATON_TIR_UNARY(exp2, Exp2)
BATON_TIR_UNARY(log, std::log)
BATON_TIR_UNARY(log2, std::log2)
BATON_TIR_UNARY(log10, std::log10)
BATON_TIR_UNARY(log1p, std::log1p)
BATON_TIR_UNARY(sqrt, std::sqrt)
BATON_TIR_UNARY(rsqrt, Rsqrt)
BATON_TIR_UNARY(sin, std::sin)
BATON_TIR_UNARY(cos, std::cos)
BATON_TIR_UNARY(tan, std::tan)
BATON_TIR_UNARY(sinh, std::sinh)
BATON_TIR_UNARY(cosh, std::cosh)
BATON_TIR_UNARY(tanh, std::tanh)
BATON_TIR_UNARY(asin, std::asin)
BATON_TIR_UNARY(acos, std::acos)
BATON_TIR_UNARY(atan, std::atan)
BATON_TIR_UNARY(asinh, std::asinh)
BATON_TIR_UNARY(acosh, std::acosh)
BATON_TIR_UNARY(atanh, std::atanh)
BATON_TIR_UNARY(erf, std::erf)
BATON_TIR_UNARY(sigmoid, Sigmoid)
// Rounding leaves integers as they are.
#define BATON_TIR_ROUND(name, fn)                                 \
  PrimExpr name(PrimExpr x) {                                     \
    if (x.defined() && x.dtype().is_integral()) return x;         \
    return Unary("tir." #name, Domain::kFloat, fn, std::move(x)); \
  }
BATON_TIR_ROUND(floor, std::floor)
BATON_TIR_ROUND(ceil, std::ceil)
BATON_TIR_ROUND(trunc, std::trunc)
BATON_TIR_ROUND(round, std::round)
BATON_TIR_ROUND(nearbyint, std::nearbyint)
PrimExpr fabs(PrimExpr x) { return Unary("tir.fabs", Domain::kFloat, std::fabs, std::move(x)); }
PrimExpr isnan(PrimExpr x) {
  return FloatTest("tir.isnan", [](double v) { return std::isnan(v); }, std::move(x));
}
PrimExpr isinf(PrimExpr x) {
  return FloatTest("tir.isinf", [](double v) { return std::isinf(v); }, std::move(x));
}
PrimExpr isfinite(PrimExpr x) {
  return FloatTest("tir.isfinite", [](double v) { return std::isfinite(v); }, std::move(x));
}
PrimExpr popcount(PrimExpr x) { return Unary("tir.popcount", Domain::kInt, nullptr, std::move(x)); }
PrimExpr bitwise_not(PrimExpr x) {
  if (x.defined() && x.dtype().is_bool()) return !x;
  return Unary("tir.bitwise_not", Domain::kInt, nullptr, std::move(x));
}
PrimExpr abs(PrimExpr x) {
  if (x.defined() && x.dtype().is_floating()) return fabs(x);
  if (!x.defined() || !x.dtype().is_integral()) Fail(fmt::format("`abs` takes numbers, got {}", TypeName(x)));
  if (x.dtype().is_uint()) return x;
  return max(x, -x);
}

namespace {
PrimExpr FloatBinary(const char* name, double (*fn)(double, double), PrimExpr a, PrimExpr b) {
  Match(name + 4, &a, &b);
  if (!a.dtype().is_floating()) Fail(fmt::format("`{}` takes floats, got {}", name + 4, TypeName(a)));
  PrimExpr la = Literal(a), lb = Literal(b);
  if (la.defined() && lb.defined())
    return tir::broadcast_to(FloatLit(la.dtype(), fn(AsFloat(la)->value, AsFloat(lb)->value)), a.dtype().lanes());
  DataType t = a.dtype();
  return tir::call_intrin(t, name, {std::move(a), std::move(b)});
}
PrimExpr BitBinary(const char* name, int kind, PrimExpr a, PrimExpr b) {
  Match(name + 4, &a, &b);
  if (!a.dtype().is_integral() && !(a.dtype().is_bool() && kind < 3))
    Fail(fmt::format("`{}` takes integers, got {}", name + 4, TypeName(a)));
  PrimExpr la = Literal(a), lb = Literal(b);
  if (la.defined() && lb.defined()) {
    int64_t x = AsInt(la)->value, y = AsInt(lb)->value;
    bool shift_ok = y >= 0 && y < a.dtype().bits();
    std::optional<int64_t> v;
    if (kind == 0) v = Wrap(la.dtype(), x & y);
    if (kind == 1) v = Wrap(la.dtype(), x | y);
    if (kind == 2) v = Wrap(la.dtype(), x ^ y);
    if (kind == 3 && shift_ok) v = Wrap(la.dtype(), static_cast<__int128>(x) << y);
    if (kind == 4 && shift_ok) v = Wrap(la.dtype(), x >> y);
    if (v) return tir::broadcast_to(IntLit(la.dtype(), *v), a.dtype().lanes());
  }
  DataType t = a.dtype();
  return tir::call_intrin(t, name, {std::move(a), std::move(b)});
}
}  // namespace
PrimExpr pow(PrimExpr x, PrimExpr y) {
  if (x.defined() && x.dtype().is_integral()) {
    Match("pow", &x, &y);
    return tir::call_intrin(x.dtype(), "tir.pow", {x, y});
  }
  return FloatBinary("tir.pow", std::pow, std::move(x), std::move(y));
}
PrimExpr fmod(PrimExpr x, PrimExpr y) {
  if (x.defined() && x.dtype().is_integral()) return truncmod(std::move(x), std::move(y));
  return FloatBinary("tir.fmod", std::fmod, std::move(x), std::move(y));
}
PrimExpr atan2(PrimExpr y, PrimExpr x) { return FloatBinary("tir.atan2", std::atan2, std::move(y), std::move(x)); }
PrimExpr fma(PrimExpr a, PrimExpr b, PrimExpr c) {
  Match("fma", &a, &b);
  Match("fma", &a, &c);
  Match("fma", &b, &c);
  if (!a.dtype().is_floating()) return a * b + c;
  DataType t = a.dtype();
  return tir::call_intrin(t, "tir.fma", {std::move(a), std::move(b), std::move(c)});
}
PrimExpr dot4(PrimExpr a, PrimExpr b, PrimExpr sum) {
  const int lanes = sum.dtype().lanes();
  if (sum.dtype().element_of() != DataType::Int(32) || a.dtype() != DataType::UInt(8, 4 * lanes) ||
      b.dtype() != DataType::Int(8, 4 * lanes)) {
    Fail(fmt::format("`dot4` takes uint8 and int8 with four lanes for each of the int32 sum, got {}, {} and {}",
                     TypeName(a), TypeName(b), TypeName(sum)));
  }
  const DataType t = sum.dtype();
  return tir::call_intrin(t, "tir.dot4", {std::move(a), std::move(b), std::move(sum)});
}
PrimExpr bitwise_and(PrimExpr a, PrimExpr b) { return BitBinary("tir.bitwise_and", 0, std::move(a), std::move(b)); }
PrimExpr bitwise_or(PrimExpr a, PrimExpr b) { return BitBinary("tir.bitwise_or", 1, std::move(a), std::move(b)); }
PrimExpr bitwise_xor(PrimExpr a, PrimExpr b) { return BitBinary("tir.bitwise_xor", 2, std::move(a), std::move(b)); }
PrimExpr shift_left(PrimExpr a, PrimExpr b) { return BitBinary("tir.shift_left", 3, std::move(a), std::move(b)); }
PrimExpr shift_right(PrimExpr a, PrimExpr b) { return BitBinary("tir.shift_right", 4, std::move(a), std::move(b)); }

namespace tir {
namespace {
/// Those that programs use are operators from the beginning, so that a saved program can be read by a process that has
/// made none.
const bool registered_intrinsics = [] {
  for (const char* name : {"address_of",  "atan2",        "bitwise_and",
                           "bitwise_not", "bitwise_or",   "bitwise_xor",
                           "call_extern", "call_packed",  "tvm_call_trace_packed",
                           "ceil",        "cos",          "dot4",
                           "erf",         "exp",          "exp2",
                           "fabs",        "floor",        "fma",
                           "fmod",        "if_then_else", "index_error",
                           "isfinite",    "isinf",        "isnan",
                           "ldexp",       "load_handle",  "log",
                           "log10",       "log1p",        "log2",
                           "masked_load", "masked_store", "memcpy",
                           "popcount",    "pow",          "prefetch",
                           "ptr_offset",  "reinterpret",  "rsqrt",
                           "shift_left",  "shift_right",  "sigmoid",
                           "sin",         "sqrt",         "tan",
                           "sinh",        "cosh",         "asin",
                           "acos",        "atan",         "asinh",
                           "acosh",       "atanh",        "trunc",
                           "round",       "nearbyint",    "tanh",
                           "vector_max",  "vector_min",   "vector_prod",
                           "vector_sum",  "ret"}) {
    Op::GetOrCreate(std::string("tir.") + name);
  }
  return true;
}();
}  // namespace
PrimExpr call_intrin(DataType ret, const char* name, Array<PrimExpr> args) {
  return Call(ret, Op::GetOrCreate(name), std::move(args));
}
std::string_view IntrinName(const CallNode* call) {
  const auto* op = call->op.as<OpNode>();
  return op ? op->name.view() : std::string_view();
}
namespace {
const BufferLoadNode* NeedLoad(const PrimExpr& e, const char* what) {
  const auto* l = e.as<BufferLoadNode>();
  if (!l) Fail(fmt::format("`{}` takes a BufferLoad that names the place", what));
  return l;
}
}  // namespace
PrimExpr masked_load(PrimExpr load, PrimExpr mask) {
  NeedLoad(load, "masked_load");
  DataType t = load.dtype();
  return call_intrin(t, "tir.masked_load", {std::move(load), broadcast_to(std::move(mask), t.lanes())});
}
PrimExpr masked_store(PrimExpr address, PrimExpr value, PrimExpr mask) {
  NeedLoad(address, "masked_store");
  DataType t = address.dtype();
  if (!(value.dtype() == t))
    Fail(fmt::format("masked_store of {} where {} is wanted", TypeName(value), DataType2String(t)));
  return call_intrin(DataType::Int(32), "tir.masked_store",
                     {std::move(address), std::move(value), broadcast_to(std::move(mask), t.lanes())});
}
PrimExpr vector_sum(PrimExpr v) {
  return v.dtype().is_scalar() ? v : call_intrin(v.dtype().element_of(), "tir.vector_sum", {v});
}
PrimExpr vector_prod(PrimExpr v) {
  return v.dtype().is_scalar() ? v : call_intrin(v.dtype().element_of(), "tir.vector_prod", {v});
}
PrimExpr vector_min(PrimExpr v) {
  return v.dtype().is_scalar() ? v : call_intrin(v.dtype().element_of(), "tir.vector_min", {v});
}
PrimExpr vector_max(PrimExpr v) {
  return v.dtype().is_scalar() ? v : call_intrin(v.dtype().element_of(), "tir.vector_max", {v});
}
PrimExpr prefetch(PrimExpr address, int64_t locality) {
  NeedLoad(address, "prefetch");
  return call_intrin(DataType::Int(32), "tir.prefetch", {std::move(address), make_int(DataType::Int(64), locality)});
}
PrimExpr vector_slice(PrimExpr v, int64_t begin, int64_t count) {
  Array<int64_t> idx;
  for (int64_t i = 0; i < count; ++i) idx.push_back(begin + i);
  return Shuffle({std::move(v)}, idx);
}
PrimExpr address_of(PrimExpr load) {
  NeedLoad(load, "address_of");
  return call_intrin(DataType::Handle(), "tir.address_of", {std::move(load)});
}
PrimExpr call_extern(DataType ret, String name, Array<PrimExpr> args) {
  args.insert(0, StringImm(std::move(name)));
  return call_intrin(ret, "tir.call_extern", std::move(args));
}
}  // namespace tir
}  // namespace baton
