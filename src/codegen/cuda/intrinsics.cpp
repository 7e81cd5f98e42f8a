// SPDX-License-Identifier: Apache-2.0
// CUDA's own column, beside that of all languages.
#include <baton/tir/op.h>

#include "codegen/cuda/cuda.h"

namespace baton::codegen::cuda {

using namespace tir;  // NOLINT: intrinsics are named below

namespace {

using source::IntrinText;

/// A barrier of a block orders its accesses of all memory.
std::string BlockBarrier(source::Printer&, const CallNode* op) {
  const auto* scope = op->args.empty() ? nullptr : op->args[0].as<StringImmNode>();
  if (scope && (scope->value == "shared" || scope->value == "global")) return "__syncthreads()";
  if (scope && scope->value == "warp") return "__syncwarp()";
  throw UnsupportedError(
      "tvm_storage_sync: threads wait for each other in the scopes \"shared\", \"global\" and \"warp\"" +
      (scope ? ", not in \"" + scope->value.str() + "\"" : std::string()));
}

const IntrinColumn<IntrinText>& Column() {
  static const IntrinColumn<IntrinText> column = {
      {intrin::abs, {source::PlainAbs}},
      {intrin::popcount, {source::PlainPopcount}},
      {intrin::reinterpret, {source::PlainReinterpret}},
      {intrin::tvm_storage_sync, {nullptr, nullptr, BlockBarrier}},
      {intrin::call_extern, {nullptr, kernels::kHostFunction}},
      {intrin::call_packed, {nullptr, kernels::kHostFunction}},
      {intrin::tvm_call_trace_packed, {nullptr, kernels::kHostFunction}},
  };
  return column;
}

std::vector<Op> AllIntrinsics() {
  std::vector<Op> all = source::CommonColumn().intrins();
  for (const Op& op : Column().intrins()) all.push_back(op);
  return all;
}
const bool registered_column = (RegisterIntrinColumn("cuda", AllIntrinsics), true);

}  // namespace

const IntrinText* OwnText(const IntrinDef* row) { return Column().Find(row); }

}  // namespace baton::codegen::cuda
