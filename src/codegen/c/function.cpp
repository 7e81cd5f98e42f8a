// SPDX-License-Identifier: Apache-2.0
#include "codegen/c/function.h"

#include <baton/runtime/scalar.h>
#include <baton/tir/lower.h>
#include <fmt/format.h>
#include <tir/index_error.h>

#include <utility>

namespace baton::codegen::c {

using namespace tir;  // NOLINT: every node kind is named below

const source::Dialect kDialect = {
    .language = "C",
    .syntax = &source::kSyntaxSuffixed,
    .ints = {"int8_t", "int16_t", "int32_t", "int64_t"},
    .uints = {"uint8_t", "uint16_t", "uint32_t", "uint64_t"},
    .floats = {"uint16_t", "uint16_t", "float", "double"},
    .truth = "uint8_t",
    .mend = nullptr,
    .wide = {"INT64_C(", ")"},
    .unsigned_wide = {"UINT64_C(", ")"},
    .least = {"INT32_MIN", "INT64_MIN"},
    .most = {"INT32_MAX", "INT64_MAX", "UINT32_MAX", "UINT64_MAX"},
    .suffixed = true,
    .narrow = false,
    .intrin = OwnText,
    .builtins = Builtins,
};

namespace {

/// Bytes of a local array; larger ones are allocated.
constexpr int64_t kMaxStackBytes = 64 << 10;

/// Variables that are read, and those of buffers that are read from.
struct UsedVars : StmtExprVisitor {
  std::unordered_set<const VarNode*>* used;
  explicit UsedVars(std::unordered_set<const VarNode*>* used) : used(used) {}
  using StmtExprVisitor::VisitExpr_;
  void VisitExpr_(const VarNode* op) final { used->insert(op); }
  void VisitExpr_(const BufferLoadNode* op) final {
    used->insert(op->buffer->data.get());
    StmtExprVisitor::VisitExpr_(op);
  }
};

}  // namespace

FunctionPrinter::FunctionPrinter(const IRModule& mod, const Symbols& symbols, const std::string& symbol,
                                 FileNeeds* needs)
    : Printer(kDialect, symbol, needs), mod_(mod), symbols_(symbols), file_(needs) {}

FunctionText FunctionPrinter::Print(const PrimFunc& f) {
  indent_ = 1;
  UsedVars(&used_).VisitStmt(f->body);
  std::vector<std::string> names;
  for (const Var& p : f->params) {
    const std::string name = Fresh(p->name_hint.str());
    names.push_back(name);
    names_[p.get()] = name;
    out_.head += fmt::format("{}{} {}", out_.head.empty() ? "" : ", ", Type(p.dtype()), name);
    if (!f->buffer_map.count(p)) continue;
    const Buffer& b = f->buffer_map.at(p);
    names_[b->data.get()] = name;
    params_[b->data.get()] = {name, b->name.str(), {}};
  }
  out_.head = fmt::format("int32_t {}({})", symbols_.at(function_), out_.head.empty() ? "void" : out_.head);
  VisitStmt(f->body);
  std::string first;
  if (has_status_) first += "  int32_t status;\n";
  for (size_t i = 0; i < names.size(); ++i) {
    const Var& p = f->params[static_cast<int64_t>(i)];
    const VarNode* data = f->buffer_map.count(p) ? f->buffer_map.at(p)->data.get() : nullptr;
    if (data) {
      const Param& param = params_.at(data);
      for (const auto& [type, view] : param.views) {
        const std::string element = view.written ? type : "const " + type;
        first += fmt::format("  {}*{} const {} = ({}*){};\n", element, param.views.size() == 1 ? " restrict" : "",
                             view.name, element, names[i]);
      }
      if (!param.views.empty()) continue;
    }
    if (!used_.count(p.get()) && !(data && used_.count(data))) first += fmt::format("  (void){};\n", names[i]);
  }
  out_.body = "{\n" + first + text_ + "  return 0;\n}\n";
  return std::move(out_);
}

std::string FunctionPrinter::Element(const Buffer& b, const std::string& index, bool write) {
  const std::string type = dialect_.MemoryTypeName(b->dtype.element_of(), needs_);
  if (auto it = locals_.find(b->data.get()); it != locals_.end()) {
    if (it->second.type == type) return fmt::format("{}[{}]", it->second.name, index);
    return fmt::format("(({}*){})[{}]", type, it->second.name, index);
  }
  if (auto it = params_.find(b->data.get()); it != params_.end()) {
    View& view = it->second.views[type];
    if (view.name.empty()) view.name = Fresh(it->second.hint);
    view.written |= write;
    return fmt::format("{}[{}]", view.name, index);
  }
  return fmt::format("(({}{}*){})[{}]", write ? "" : "const ", type, Name(b->data.get()), index);
}

std::string FunctionPrinter::FloatToInt(const std::string& v, DataType from, DataType to) {
  return fmt::format("{}({})", Builtin("sat_" + source::SuffixOf(to) + "_" + source::SuffixOf(from)), v);
}
std::string FunctionPrinter::HalfLiteral(double value, DataType t) {
  uint16_t bits = 0;
  runtime::StoreDouble(&bits, t, 0, value);
  return fmt::format("(uint16_t)0x{:04x}u", bits);
}

std::string FunctionPrinter::Type(DataType t) {
  if (t.lanes() != 1 && lane_.empty()) Vectors();
  return dialect_.TypeName(t.element_of(), needs_);
}
std::string FunctionPrinter::VisitExpr_(const VarNode* op) {
  const std::string name = Name(op);
  if (op->dtype.lanes() == 1) return name;
  if (lane_.empty()) Vectors();
  if (const auto it = of_lane_.find(op); it != of_lane_.end()) {
    if (it->second != lane_) Vectors();
    return name;
  }
  return fmt::format("{}[{}]", name, lane_);
}
std::string FunctionPrinter::VisitExpr_(const StringImmNode* op) { return Quoted(op->value.str()); }
std::string FunctionPrinter::VisitExpr_(const CastNode* op) {
  const DataType from = op->value.dtype(), to = op->dtype;
  if (from.is_handle() == to.is_handle()) return Printer::VisitExpr_(op);
  const std::string v = VisitExpr(op->value);
  return from.is_handle() ? fmt::format("({})(intptr_t){}", Type(to), v) : fmt::format("(void*)(intptr_t){}", v);
}
std::string FunctionPrinter::VisitExpr_(const tir::LetNode* op) {
  if (op->value.dtype().lanes() > 1) of_lane_[op->var.get()] = lane_;
  return Printer::VisitExpr_(op);
}

void FunctionPrinter::ReturnIf(const std::string& condition, const std::string& number) {
  if (heap_.empty()) return Line(fmt::format("if ({}) return {};", condition, number));
  Line(fmt::format("if ({}) {{", condition));
  for (size_t i = heap_.size(); i-- > 0;) Line(fmt::format("  free({});", heap_[i]));
  Line(fmt::format("  return {};", number));
  Line("}");
}

void FunctionPrinter::VisitStmt_(const AllocateNode* op) {
  const Buffer& b = op->buffer;
  const std::string type = dialect_.MemoryTypeName(b->dtype.element_of(), needs_);
  int64_t count = 1;
  bool constant = true;
  for (const PrimExpr& d : b->shape) {
    const int64_t* n = as_const_int(d);
    constant = constant && n;
    if (n) count *= *n;
  }
  count *= b->dtype.lanes();
  const std::string name = Fresh(b->name.str());
  locals_[b->data.get()] = {name, type};
  names_[b->data.get()] = name;
  const int64_t bytes = b->dtype.element_of().bytes();
  if (constant && count * bytes <= kMaxStackBytes) {
    // Pieces of one size side by side: in blocks, so that the compiler may lay those of others over them.
    Line("{");
    ++indent_;
    Line(fmt::format("{} {}[{}];", type, name, count > 0 ? count : 1));
    if (!used_.count(b->data.get())) Line(fmt::format("(void){};", name));
    VisitStmt(op->body);
    --indent_;
    Line("}");
    return;
  }
  std::string size = fmt::format("(size_t){}", bytes * b->dtype.lanes());
  for (const PrimExpr& d : b->shape) size += fmt::format(" * (size_t)({})", VisitExpr(d));
  file_->errors = true;
  Line(fmt::format("{}* const {} = ({}*)malloc({} + 1);", type, name, type, size));
  ReturnIf(name + " == NULL", fmt::format("baton_error({})", Quoted("no memory for the workspace of " + function_)));
  heap_.push_back(name);
  VisitStmt(op->body);
  heap_.pop_back();
  Line(fmt::format("free({});", name));
}

void FunctionPrinter::VisitStmt_(const AssertStmtNode* op) {
  const std::string condition = VisitExpr(op->condition);
  std::string number;
  if (const auto* index = tir::IndexErrorOf(op)) {
    const std::string at = VisitExpr(index->args[1]), extent = VisitExpr(index->args[2]);
    file_->index_errors = true;
    number = fmt::format("baton_index_error({}, {}, {})", Quoted(index->args[0].as<StringImmNode>()->value.str()), at,
                         extent);
  } else {
    const auto* text = op->message.as<StringImmNode>();
    file_->errors = true;
    number = fmt::format("baton_error({})", Quoted(text ? text->value.str() : "an assertion failed"));
  }
  ReturnIf("!" + condition, number);
  VisitStmt(op->body);
}

void FunctionPrinter::VisitStmt_(const EvaluateNode* op) {
  if (!HasSideEffect(op->value)) return;
  const auto* call = op->value.as<tir::CallNode>();
  const std::string text = VisitExpr(op->value);
  if (text != "0") Line(call && call->dtype.is_void() ? text + ";" : fmt::format("(void){};", text));
}

FunctionText PrintFunction(const IRModule& mod, const Symbols& symbols, const std::string& symbol, const PrimFunc& f,
                           FileNeeds* needs) {
  // Half floats are bits in memory here, whatever passes ran.
  return FunctionPrinter(mod, symbols, symbol, needs).Print(tir::ComputeHalfInFloat(f));
}

}  // namespace baton::codegen::c
