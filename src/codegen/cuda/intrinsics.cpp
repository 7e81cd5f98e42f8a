// SPDX-License-Identifier: Apache-2.0
// CUDA's own column, beside that of all languages, and the functions that PTX has no library for.
#include "codegen/cuda/cuda.h"
#include "codegen/cuda/float64_math.h"

namespace baton::codegen::cuda {

using namespace tir;  // NOLINT: intrinsics are named below

namespace {

using source::IntrinText;

/// A barrier of a block orders its accesses of all memory.
std::string Barrier(source::Printer&, const CallNode* op) {
  return kernels::BarrierOf(op, {.shared = "__syncthreads()", .global = "__syncthreads()", .warp = "__syncwarp()"});
}

const IntrinColumn<IntrinText>& Column() {
  static const IntrinColumn<IntrinText> column = {
      {intrin::abs, {source::PlainAbs}},
      {intrin::popcount, {source::PlainPopcount}},
      {intrin::reinterpret, {source::PlainReinterpret}},
      {intrin::tvm_storage_sync, {nullptr, nullptr, Barrier}},
      {intrin::call_extern, {nullptr, kernels::kHostFunction}},
      {intrin::call_packed, {nullptr, kernels::kHostFunction}},
      {intrin::tvm_call_trace_packed, {nullptr, kernels::kHostFunction}},
  };
  return column;
}

const bool registered_column = (RegisterIntrinColumn("cuda", [] { return source::WithCommon(Column()); }), true);

}  // namespace

const IntrinText* OwnText(const IntrinDef* row) { return Column().Find(row); }

Float64Fn Float64Of(const IntrinDef* row) {
  static const IntrinColumn<Float64Fn> column = {
      {intrin::exp, Exp},     {intrin::exp2, Exp2},   {intrin::log, Log},     {intrin::log2, Log2},
      {intrin::log10, Log10}, {intrin::log1p, Log1p}, {intrin::sin, Sin},     {intrin::cos, Cos},
      {intrin::tan, Tan},     {intrin::sinh, Sinh},   {intrin::cosh, Cosh},   {intrin::tanh, Tanh},
      {intrin::asin, Asin},   {intrin::acos, Acos},   {intrin::atan, Atan},   {intrin::atan2, Atan2},
      {intrin::asinh, Asinh}, {intrin::acosh, Acosh}, {intrin::atanh, Atanh}, {intrin::erf, Erf},
      {intrin::pow, Pow},
  };
  const Float64Fn* fn = column.Find(row);
  return fn ? *fn : nullptr;
}
PrimExpr RemainderCall(const PrimExpr& a, const PrimExpr& b) { return Call(a.dtype(), intrin::fmod, {a, b}); }

}  // namespace baton::codegen::cuda
