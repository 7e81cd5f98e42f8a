// SPDX-License-Identifier: Apache-2.0
// WGSL's own column, beside that of all languages.
#include <fmt/format.h>

#include "codegen/webgpu/webgpu.h"

namespace baton::codegen::webgpu {

using namespace tir;  // NOLINT: intrinsics are named below

namespace {

using source::IntrinText;
using source::TextCall;

std::string Abs(const TextCall& c) { return c.op->dtype.is_bool() ? c.args[0] : c.Of("abs"); }
std::string Popcount(const TextCall& c) { return c.Of("countOneBits"); }
std::string Reinterpret(const TextCall& c) { return fmt::format("bitcast<{}>({})", c.Type(), c.args[0]); }
/// A test of a float's bits without its sign: compilers may take it that there is no NaN.
template <char kOperator>
std::string Bits(const TextCall& c) {
  const char* op = kOperator == '=' ? "==" : kOperator == '<' ? "<" : ">";
  if (c.op->args[0].dtype().bits() != 32) return "";
  return fmt::format("((bitcast<u32>({}) & 0x7fffffffu) {} 0x7f800000u)", c.args[0], op);
}
std::string Xor(const TextCall& c) {
  return fmt::format("({} {} {})", c.args[0], c.op->dtype.is_bool() ? "!=" : "^", c.args[1]);
}

std::string Sigmoid(const TextCall& c) { return fmt::format("(1.0f / (1.0f + exp(-{})))", c.args[0]); }
std::string Rsqrt(const TextCall& c) { return c.Of("inverseSqrt"); }

std::string Barrier(source::Printer&, const CallNode* op) {
  return kernels::BarrierOf(op, {.shared = "workgroupBarrier()", .global = "storageBarrier()"});
}

const IntrinColumn<IntrinText>& Column() {
  static const IntrinColumn<IntrinText> column = {
      {intrin::abs, {Abs}},
      {intrin::popcount, {Popcount}},
      {intrin::reinterpret, {Reinterpret}},
      {intrin::isnan, {Bits<'>'>}},
      {intrin::isinf, {Bits<'='>}},
      {intrin::isfinite, {Bits<'<'>}},
      {intrin::bitwise_xor, {Xor}},
      {intrin::sigmoid, {Sigmoid}},
      {intrin::rsqrt, {Rsqrt}},
      {intrin::tvm_storage_sync, {nullptr, nullptr, Barrier}},
      {intrin::call_extern, {nullptr, kernels::kHostFunction}},
      {intrin::call_packed, {nullptr, kernels::kHostFunction}},
      {intrin::tvm_call_trace_packed, {nullptr, kernels::kHostFunction}},
  };
  return column;
}

const bool registered_column = (RegisterIntrinColumn("webgpu", [] { return source::WithCommon(Column()); }), true);

}  // namespace

const IntrinText* OwnText(const IntrinDef* row) { return Column().Find(row); }

}  // namespace baton::codegen::webgpu
