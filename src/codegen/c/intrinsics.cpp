// SPDX-License-Identifier: Apache-2.0
// C's own column, beside that of all languages.
#include <baton/tir/intrin.h>
#include <fmt/format.h>

#include "codegen/c/function.h"

namespace baton::codegen::c {

using namespace tir;  // NOLINT: intrinsics are named below

namespace {

using source::IntrinText;
using source::TextCall;

std::string PtrOffset(const TextCall& c) { return fmt::format("(void*)((uint8_t*){} + {})", c.args[0], c.args[1]); }
std::string LoadHandle(const TextCall& c) { return fmt::format("((void**){})[{}]", c.args[0], c.args[1]); }
std::string Memcpy(const TextCall& c) {
  return fmt::format("memcpy({}, {}, (size_t){})", c.args[0], c.args[1], c.args[2]);
}
}  // namespace

/// Calls that are written statement by statement.
struct Forms {
  using Form = std::string (*)(source::Printer&, const CallNode*);
  static FunctionPrinter& Of(source::Printer& p) { return static_cast<FunctionPrinter&>(p); }

  static std::string AddressOf(source::Printer& p, const CallNode* op) { return Of(p).AddressOf(op); }
  static std::string MaskedLoad(source::Printer& p, const CallNode* op) { return Of(p).MaskedLoad(op); }
  static std::string MaskedStore(source::Printer& p, const CallNode* op) { return Of(p).MaskedStore(op); }
  static std::string Dot4(source::Printer& p, const CallNode* op) { return Of(p).Dot4(op); }
  static std::string Dot2(source::Printer& p, const CallNode* op) { return Of(p).Dot2(op); }
  static std::string Extern(source::Printer& p, const CallNode* op) { return Of(p).CallExtern(op); }
  template <bool kTraced>
  static std::string Packed(source::Printer& p, const CallNode* op) {
    return Of(p).CallPacked(op, kTraced);
  }
  template <char kSign>
  static std::string Reduce(source::Printer& p, const CallNode* op) {
    return Of(p).Reduced(op, kSign);
  }
};

namespace {

constexpr IntrinText Written(Forms::Form form) { return {.written = form}; }

const IntrinColumn<IntrinText>& Column() {
  static const IntrinColumn<IntrinText> column = {
      {intrin::abs, {source::PlainAbs}},
      {intrin::popcount, {source::PlainPopcount}},
      {intrin::reinterpret, {source::PlainReinterpret}},
      {intrin::ptr_offset, {PtrOffset}},
      {intrin::load_handle, {LoadHandle}},
      {intrin::memcpy, {Memcpy}},
      {intrin::address_of, Written(Forms::AddressOf)},
      {intrin::masked_load, Written(Forms::MaskedLoad)},
      {intrin::masked_store, Written(Forms::MaskedStore)},
      {intrin::vector_sum, Written(Forms::Reduce<'+'>)},
      {intrin::vector_prod, Written(Forms::Reduce<'*'>)},
      {intrin::vector_min, Written(Forms::Reduce<'<'>)},
      {intrin::vector_max, Written(Forms::Reduce<'>'>)},
      {intrin::dot4, Written(Forms::Dot4)},
      {intrin::dot2, Written(Forms::Dot2)},
      {intrin::call_extern, Written(Forms::Extern)},
      {intrin::call_packed, Written(Forms::Packed<false>)},
      {intrin::tvm_call_trace_packed, Written(Forms::Packed<true>)},
  };
  return column;
}

const bool registered_column = (RegisterIntrinColumn("c", [] { return source::WithCommon(Column()); }), true);

}  // namespace

bool IsStackTensor(const CallNode* op) { return op->op == intrin::tvm_stack_make_array; }
const IntrinText* OwnText(const IntrinDef* row) { return Column().Find(row); }

}  // namespace baton::codegen::c
