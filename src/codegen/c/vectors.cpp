// SPDX-License-Identifier: Apache-2.0
// Explicit vectors: loops over lanes, which compilers make vectors of again.
#include <baton/tir/intrin.h>
#include <baton/tir/lower.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "codegen/c/function.h"

namespace baton::codegen::c {

using namespace tir;  // NOLINT: every node kind is named below

namespace {

bool Reads(const PrimExpr& e, const Var& data) {
  bool found = false;
  PostOrderVisitExpr(e, [&](const PrimExpr& x) {
    const auto* load = x.as<BufferLoadNode>();
    found = found || (load && load->buffer->data.same_as(data));
  });
  return found;
}

}  // namespace

template <class F>
void FunctionPrinter::Lanes(int lanes, F body) {
  const std::string lane = Fresh("lane"), outer = std::exchange(lane_, lane);
  Line(fmt::format("for (int64_t {} = 0; {} < {}; ++{}) {{", lane, lane, lanes, lane));
  ++indent_;
  body(lane);
  --indent_;
  Line("}");
  lane_ = outer;
}

std::string FunctionPrinter::InArray(const PrimExpr& e) {
  const std::string name = Fresh("lanes");
  Line(fmt::format("{} {}[{}];", dialect_.TypeName(e.dtype().element_of(), needs_), name, e.dtype().lanes()));
  Lanes(e.dtype().lanes(), [&](const std::string& lane) {
    const std::string v = VisitExpr(e);
    Line(fmt::format("{}[{}] = {};", name, lane, v));
  });
  return name;
}

std::string FunctionPrinter::Lane(const PrimExpr& e, const std::string& lane) {
  const std::string outer = std::exchange(lane_, lane);
  std::string text = VisitExpr(e);
  lane_ = outer;
  return text;
}

std::string FunctionPrinter::VisitExpr_(const RampNode* op) {
  if (lane_.empty()) Vectors();
  const DataType t = op->dtype.element_of(), wide = DataType::UInt(t.bits() < 32 ? 32 : t.bits());
  const std::string base = VisitExpr(op->base);
  if (is_one(op->stride) && t == DataType::Int(64)) return fmt::format("({} + {})", base, lane_);
  const std::string u = Type(wide), stride = VisitExpr(op->stride);
  return fmt::format("({})(({}){} + ({}){} * ({}){})", Type(t), u, base, u, lane_, u, stride);
}
std::string FunctionPrinter::VisitExpr_(const BroadcastNode* op) { return VisitExpr(op->value); }

std::string FunctionPrinter::VisitExpr_(const ShuffleNode* op) {
  const auto n = static_cast<int64_t>(op->indices.size());
  const auto lanes = static_cast<int64_t>(op->vectors[0].dtype().lanes());
  const auto one = [&](int64_t i) {
    return lanes == 1 ? VisitExpr(op->vectors[i]) : Lane(op->vectors[i / lanes], std::to_string(i % lanes));
  };
  if (n == 1) return one(op->indices[0]);
  if (lane_.empty()) Vectors();
  const std::string name = Fresh("picked");
  std::string values;
  for (int64_t i : op->indices) values += (values.empty() ? "" : ", ") + one(i);
  Line(fmt::format("const {} {}[{}] = {{{}}};", Type(op->dtype), name, n, values));
  return fmt::format("{}[{}]", name, lane_);
}

void FunctionPrinter::VisitStmt_(const BufferStoreNode* op) {
  if (op->indices.size() != 1) return Printer::VisitStmt_(op);
  const int lanes = std::max(op->value.dtype().lanes(), op->indices[0].dtype().lanes());
  if (lanes == 1) return Printer::VisitStmt_(op);
  if (op->indices[0].dtype().lanes() != lanes) Vectors();
  // All lanes are read before one is written.
  std::string all;
  if (op->value.dtype().lanes() == lanes && Reads(op->value, op->buffer->data)) all = InArray(op->value);
  if (op->value.dtype().lanes() == 1) all = VisitExpr(op->value);
  Lanes(lanes, [&](const std::string& lane) {
    const std::string at = Position(op->indices[0]);
    std::string value = all.empty()                      ? VisitExpr(op->value)
                        : op->value.dtype().lanes() == 1 ? all
                                                         : all + "[" + lane + "]";
    value = ToMemory(value, op->buffer->dtype);
    Line(fmt::format("{} = {};", Element(op->buffer, at, true), value));
  });
}

void FunctionPrinter::VisitStmt_(const LetStmtNode* op) {
  if (op->value.dtype().lanes() == 1) return Printer::VisitStmt_(op);
  names_[op->var.get()] = InArray(op->value);
  if (IsUnused(op->var)) Line(fmt::format("(void){};", names_.at(op->var.get())));
  VisitStmt(op->body);
}

/// Lower half and upper half are joined until one lane is left, as machine code has it.
std::string FunctionPrinter::Reduced(const tir::CallNode* op, char sign) {
  const DataType t = op->dtype;
  const int lanes = op->args[0].dtype().lanes();
  const std::string name = InArray(op->args[0]), lane = Fresh("lane"), half = Fresh("half");
  const std::string a = fmt::format("{}[{}]", name, lane), b = fmt::format("{}[{} + {}]", name, lane, half);
  if (lanes & (lanes - 1)) Vectors();
  std::string joined;
  if (sign == '+' || sign == '*') {
    const std::string type = Type(t);
    const std::string u = t.is_floating() ? type : Type(DataType::UInt(t.bits() < 32 ? 32 : t.bits()));
    joined = t.is_floating() ? fmt::format("{} {} {}", a, sign, b)
                             : fmt::format("({})(({}){} {} ({}){})", type, u, a, sign, u, b);
  } else {
    const char* least = sign == '<' ? "min_" : "max_";
    joined = fmt::format("{}({}, {})", Builtin(least + source::SuffixOf(t)), a, b);
  }
  Line(fmt::format("for (int64_t {} = {}; {} > 0; {} /= 2) {{", half, lanes / 2, half, half));
  Line(fmt::format("  for (int64_t {} = 0; {} < {}; ++{}) {} = {};", lane, lane, half, lane, a, joined));
  Line("}");
  return name + "[0]";
}

/// Sums of four products of a byte with a signed one.
std::string FunctionPrinter::Dot4(const tir::CallNode* op) {
  const std::string lane = lane_.empty() ? "0" : lane_;
  std::string sum = op->dtype.lanes() == 1 ? VisitExpr(op->args[2]) : Lane(op->args[2], lane);
  sum = "(uint32_t)" + sum;
  for (int k = 0; k < 4; ++k) {
    const std::string at = fmt::format("(4 * {} + {})", lane, k);
    const std::string a = Lane(op->args[0], at), b = Lane(op->args[1], at);
    sum += fmt::format(" + (uint32_t)((int32_t){} * (int32_t){})", a, b);
  }
  return "(int32_t)(" + sum + ")";
}

std::string FunctionPrinter::Dot2(const tir::CallNode* op) {
  const std::string lane = lane_.empty() ? "0" : lane_;
  std::string sum = op->dtype.lanes() == 1 ? VisitExpr(op->args[2]) : Lane(op->args[2], lane);
  for (int k = 1; k >= 0; --k) {
    const std::string at = fmt::format("(2 * {} + {})", lane, k);
    auto wide = [&](const PrimExpr& x) {
      return Convert(Lane(x, at), runtime::DataType::BFloat16(), runtime::DataType::Float(32));
    };
    const std::string a = wide(op->args[0]), b = wide(op->args[1]);
    sum += fmt::format(" + {} * {}", a, b);
  }
  return "(" + sum + ")";
}

std::string FunctionPrinter::MaskedLoad(const tir::CallNode* op) {
  const std::string mask = VisitExpr(op->args[1]), name = Fresh("loaded");
  Line(fmt::format("{} {} = 0;", Type(op->dtype), name));
  Line(fmt::format("if ({}) {{", InBrackets(mask)));
  ++indent_;
  const std::string v = VisitExpr(op->args[0]);
  Line(fmt::format("{} = {};", name, v));
  --indent_;
  Line("}");
  return name;
}

std::string FunctionPrinter::MaskedStore(const tir::CallNode* op) {
  const auto* place = op->args[0].as<BufferLoadNode>();
  const int lanes = op->args[1].dtype().lanes();
  const auto one = [&](const std::string&) {
    Line(fmt::format("if ({}) {{", InBrackets(VisitExpr(op->args[2]))));
    ++indent_;
    const std::string at = Index(place->buffer, place->indices), v = VisitExpr(op->args[1]);
    Line(fmt::format("{} = {};", Element(place->buffer, at, true), ToMemory(v, place->buffer->dtype)));
    --indent_;
    Line("}");
  };
  if (lanes == 1) {
    one("");
  } else {
    Lanes(lanes, one);
  }
  return "0";
}

}  // namespace baton::codegen::c
