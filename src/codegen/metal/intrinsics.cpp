// SPDX-License-Identifier: Apache-2.0
// Metal's own column, beside that of all languages.
#include <fmt/format.h>

#include "codegen/metal/metal.h"

namespace baton::codegen::metal {

using namespace tir;  // NOLINT: intrinsics are named below

namespace {

using source::IntrinText;
using source::TextCall;

std::string Abs(const TextCall& c) {
  const DataType t = c.op->dtype;
  if (t.is_floating()) return c.Of("fabs");
  if (t.is_uint() || t.is_bool()) return c.args[0];
  return fmt::format("({})abs({})", c.Type(), c.args[0]);
}
std::string Popcount(const TextCall& c) { return c.Of("popcount"); }
std::string Reinterpret(const TextCall& c) {
  const DataType to = c.op->dtype, from = c.op->args[0].dtype();
  return source::IsHalf(to) && source::IsHalf(from) ? c.args[0] : fmt::format("as_type<{}>({})", c.Type(), c.args[0]);
}

std::string Barrier(source::Printer&, const CallNode* op) {
  return kernels::BarrierOf(op, {.shared = "threadgroup_barrier(mem_flags::mem_threadgroup)",
                                 .global = "threadgroup_barrier(mem_flags::mem_device)",
                                 .warp = "simdgroup_barrier(mem_flags::mem_threadgroup)"});
}

const IntrinColumn<IntrinText>& Column() {
  static const IntrinColumn<IntrinText> column = {
      {intrin::abs, {Abs}},
      {intrin::popcount, {Popcount}},
      {intrin::reinterpret, {Reinterpret}},
      {intrin::tvm_storage_sync, {nullptr, nullptr, Barrier}},
      {intrin::call_extern, {nullptr, kernels::kHostFunction}},
      {intrin::call_packed, {nullptr, kernels::kHostFunction}},
      {intrin::tvm_call_trace_packed, {nullptr, kernels::kHostFunction}},
  };
  return column;
}

const bool registered_column = (RegisterIntrinColumn("metal", [] { return source::WithCommon(Column()); }), true);

}  // namespace

const IntrinText* OwnText(const IntrinDef* row) { return Column().Find(row); }

}  // namespace baton::codegen::metal
