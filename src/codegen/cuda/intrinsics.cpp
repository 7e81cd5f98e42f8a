// SPDX-License-Identifier: Apache-2.0
// CUDA's own column, beside that of all languages.
#include "codegen/cuda/cuda.h"

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

}  // namespace baton::codegen::cuda
