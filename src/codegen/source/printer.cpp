// SPDX-License-Identifier: Apache-2.0
#include "codegen/source/printer.h"

#include <baton/support/stack.h>
#include <baton/tir/intrin.h>
#include <baton/tir/lower.h>
#include <fmt/format.h>

#include <cmath>
#include <utility>

namespace baton::codegen::source {

using namespace tir;  // NOLINT: every node kind is named below

namespace {

/// A literal divisor that neither traps nor wraps.
bool Plain(const PrimExpr& divisor) {
  const int64_t* c = as_const_int(divisor);
  return c && *c != 0 && *c != -1;
}
/// Whether the text of an expression surely has the expression's type: it is not a literal, and chooses between none.
bool IsVariable(const PrimExpr& e) { return !e.as<IntImmNode>() && !e.as<SelectNode>() && !AsChoice(e); }
int Log2(const PrimExpr& e) {
  const int64_t* c = as_const_int(e);
  return c && *c > 0 && (*c & (*c - 1)) == 0 ? __builtin_ctzll(static_cast<uint64_t>(*c)) : -1;
}

}  // namespace

Printer::Printer(const Dialect& dialect, std::string function, Needs* needs)
    : dialect_(dialect), function_(std::move(function)), needs_(needs) {
  needs_->function = function_;
}

std::string Printer::HalfLiteral(double, DataType) { No("a literal of a half float"); }
std::string Printer::CallFunction(const tir::CallNode*) { No("it calls functions of the host"); }
bool Printer::IsUnused(const Var&) const { return false; }

void Printer::No(const std::string& what) const {
  throw UnsupportedError(fmt::format("`{}` cannot be compiled for {}: {}", function_, dialect_.language, what));
}
std::string Printer::WhyNoVectors() const { return "it was written for a processor's vectors"; }
void Printer::Line(const std::string& s) { text_ += std::string(static_cast<size_t>(2 * indent_), ' ') + s + "\n"; }

std::string Printer::Fresh(const std::string& hint) {
  std::string base;
  for (char c : hint) base += isalnum(static_cast<unsigned char>(c)) || c == '_' ? c : '_';
  if (base.empty() || !isalpha(static_cast<unsigned char>(base[0]))) base = "v" + base;
  // No word or function of the language has a name with a number, nor has ours.
  return fmt::format("{}_{}", base.substr(0, 40), counter_++);
}
std::string Printer::Type(DataType t) {
  if (t.lanes() != 1) Vectors();
  return dialect_.TypeName(t, needs_);
}
std::string Printer::Builtin(const std::string& name) {
  needs_->builtins.insert(name);
  return "baton_" + name;
}
std::string Printer::Name(const VarNode* v) {
  auto it = names_.find(v);
  if (it == names_.end()) throw InternalError("variable `" + v->name_hint.str() + "` has no value in " + function_);
  return it->second;
}
void Printer::Define(const Var& v, const std::string& value) {
  const std::string name = Fresh(v->name_hint.str()), type = Type(v.dtype());
  Line(v.dtype().is_handle() ? fmt::format("{} const {} = {};", type, name, value)
                             : dialect_.syntax->constant(type, name, value) + ";");
  if (IsUnused(v)) Line(fmt::format("(void){};", name));
  names_[v.get()] = name;
}
bool Printer::HoldsData(const PrimExpr& e) const {
  bool data = false;
  tir::PostOrderVisitExpr(e, [&](const PrimExpr& x) { data = data || x.as<BufferLoadNode>() || data_.count(x.get()); });
  return data;
}
void Printer::DefineValue(const Var& v, const PrimExpr& value) {
  if (dialect_.narrow && v.dtype() == DataType::Int(64) && HoldsData(value)) data_.insert(v.get());
  Define(v, VisitExpr(value));
}

std::string Printer::Index(const Buffer& b, const Array<PrimExpr>& indices) {
  if (indices.size() != 1) throw InternalError("buffer `" + b->name.str() + "` is not flat in " + function_);
  const std::string at = Position(indices[0]);
  return dialect_.narrow && !indices[0].dtype().is_int() ? dialect_.syntax->cast(dialect_.ints[2], at) : at;
}
std::string Printer::Position(const PrimExpr& e) {
  const bool outer = std::exchange(index_, true);
  std::string text = Beside(e);
  index_ = outer;
  return text;
}

/// An int64 beside another or as a whole index, where a literal's type does not matter.
std::string Printer::Beside(const PrimExpr& e) {
  const int64_t* n = e.as<IntImmNode>() && e.dtype() == DataType::Int(64) ? as_const_int(e) : nullptr;
  if (!n || !dialect_.suffixed || *n <= INT32_MIN || *n > INT32_MAX) return VisitExpr(e);
  return *n < 0 ? fmt::format("({})", *n) : fmt::format("{}", *n);
}

// ---- Expressions

std::string Printer::VisitExpr(const PrimExpr& e) {
  return support::WithStack([&] { return ExprFunctor::VisitExpr(e); });
}
std::string Printer::VisitExprDefault_(const Object* op) {
  No(fmt::format("there is no {} for {}", dialect_.language, op->GetTypeKey()));
}
std::string Printer::VisitExpr_(const VarNode* op) { return Name(op); }
std::string Printer::VisitExpr_(const RampNode*) { Vectors(); }
std::string Printer::VisitExpr_(const BroadcastNode*) { Vectors(); }
std::string Printer::VisitExpr_(const ShuffleNode*) { Vectors(); }

std::string Printer::VisitExpr_(const IntImmNode* op) {
  const DataType t = op->dtype;
  if (t.is_bool()) return op->value ? "true" : "false";
  const char* const* around = t.is_uint() ? dialect_.unsigned_wide : dialect_.wide;
  const auto wide = [&](const std::string& digits) { return around[0] + digits + around[1]; };
  if (t.is_uint() && t.bits() == 64) return wide(fmt::format("{}", static_cast<uint64_t>(op->value)));
  if (dialect_.narrow && t == DataType::Int(64) && (op->value < -INT32_MAX || op->value > INT32_MAX)) {
    No(fmt::format("the number {} is beyond 32 bits", op->value));
  }
  if (t.is_uint()) return dialect_.syntax->cast(Type(t), fmt::format("{}u", static_cast<uint64_t>(op->value)));
  if (op->value == INT64_MIN) return dialect_.least[1];
  if (t.bits() == 64) {
    const std::string digits = wide(fmt::format("{}", op->value));
    return op->value < 0 ? "(" + digits + ")" : digits;
  }
  if (op->value == INT32_MIN) return dialect_.least[0];
  const std::string digits = op->value < 0 ? fmt::format("({})", op->value) : fmt::format("{}", op->value);
  return t.bits() == 32 ? digits : dialect_.syntax->cast(Type(t), digits);
}

std::string Printer::VisitExpr_(const FloatImmNode* op) {
  const DataType t = op->dtype;
  const bool wide = t.bits() == 64;
  if (IsHalf(t)) return HalfLiteral(op->value, t);
  if (!std::isfinite(wide ? op->value : static_cast<float>(op->value))) {
    return dialect_.syntax->not_finite(op->value, wide ? Type(t) : "", needs_);
  }
  std::string s = wide ? fmt::format("{:.17g}", op->value) : fmt::format("{:.9g}", static_cast<float>(op->value));
  if (s.find_first_of(".e") == s.npos) s += ".0";
  if (!wide) s += "f";
  return op->value < 0 || std::signbit(op->value) ? "(" + s + ")" : s;
}
std::string Printer::VisitExpr_(const tir::LetNode* op) {
  DefineValue(op->var, op->value);
  return VisitExpr(op->body);
}
std::string Printer::VisitExpr_(const BufferLoadNode* op) {
  const std::string at = Index(op->buffer, op->indices);
  Type(op->dtype);
  const std::string element = Element(op->buffer, at, false);
  return op->dtype.is_bool() ? fmt::format("({} != 0)", element) : element;
}

std::string Printer::Convert(const std::string& v, DataType from, DataType to) {
  if (from == to) return v;
  const DataType f32 = DataType::Float(32);
  if (IsHalf(from)) {
    return Convert(fmt::format("{}({})", Builtin(from.is_bfloat16() ? "bf16_to_f32" : "f16_to_f32"), v), f32, to);
  }
  if (IsHalf(to)) {
    return fmt::format("{}({})", Builtin(to.is_bfloat16() ? "f32_to_bf16" : "f32_to_f16"), Convert(v, from, f32));
  }
  if (to.is_bool()) return fmt::format("({} != 0)", v);
  const std::string type = Type(to);
  if (from.is_floating() && !to.is_floating()) {
    // NumPy wraps narrow types through wider ones.
    if (to.bits() < 32) return dialect_.syntax->cast(type, FloatToInt(v, from, DataType::Int(32)));
    return FloatToInt(v, from, to);
  }
  return dialect_.syntax->cast(type, "(" + v + ")");
}
std::string Printer::VisitExpr_(const CastNode* op) {
  return Convert(VisitExpr(op->value), op->value.dtype().element_of(), op->dtype.element_of());
}
std::string Printer::ToMemory(const std::string& value, DataType t) const {
  return t.is_bool() ? dialect_.syntax->cast(dialect_.truth, dialect_.syntax->choose(value, "1", "0")) : value;
}

std::string Printer::InBrackets(const std::string& condition) const {
  int depth = 0;
  bool whole = dialect_.suffixed && condition.starts_with('(') && condition.ends_with(')');
  for (size_t i = 0; whole && i + 1 < condition.size(); ++i) {
    depth += condition[i] == '(' ? 1 : condition[i] == ')' ? -1 : 0;
    whole = depth > 0;
  }
  return whole ? condition.substr(1, condition.size() - 2) : condition;
}

/// Sums of integers wrap, which C leaves open for signed ones; indices do not come near their limits.
std::string Printer::Arithmetic(const PrimExpr& ea, const PrimExpr& eb, char op) {
  const DataType t = ea.dtype();
  const std::string type = Type(t);
  const bool plain = index_ && t.bits() == 64 && !t.is_floating();
  // Sizes and indices fit in 32 bits, data of int32 as well; sums and products of data may not.
  if (dialect_.narrow && t == DataType::Int(64) && !index_ && (HoldsData(ea) || HoldsData(eb)))
    dialect_.Lack(t, *needs_);
  const std::string a = plain && IsVariable(eb) ? Beside(ea) : VisitExpr(ea),
                    b = plain && IsVariable(ea) ? Beside(eb) : VisitExpr(eb);
  if (t.is_bool() && dialect_.syntax->wraps) return fmt::format("({} {} {})", a, op == '*' ? "&&" : "!=", b);
  if (t.is_bool()) return fmt::format("(({} {} {}) & 1)", a, op, b);
  if (t.is_floating() || plain || dialect_.syntax->wraps) return fmt::format("({} {} {})", a, op, b);
  const std::string u = dialect_.TypeName(DataType::UInt(t.bits() < 32 ? 32 : t.bits()), needs_);
  return fmt::format("({})(({}){} {} ({}){})", type, u, a, op, u, b);
}
std::string Printer::VisitExpr_(const AddNode* op) { return Arithmetic(op->a, op->b, '+'); }
std::string Printer::VisitExpr_(const SubNode* op) { return Arithmetic(op->a, op->b, '-'); }
std::string Printer::VisitExpr_(const MulNode* op) { return Arithmetic(op->a, op->b, '*'); }

std::string Printer::Call(const std::string& f, const PrimExpr& a, const PrimExpr& b) {
  const std::string x = VisitExpr(a), y = VisitExpr(b);
  return fmt::format("{}({}, {})", f, x, y);
}
std::string Printer::Math(const char* name, DataType t) const { return dialect_.syntax->math(name, t, needs_); }
std::string Printer::Divide(const PrimExpr& a, const PrimExpr& b, const char* name, char op) {
  const DataType t = a.dtype();
  const std::string type = Type(t);
  if (Plain(b)) {
    const std::string x = VisitExpr(a), y = IsVariable(a) ? Beside(b) : VisitExpr(b);
    return dialect_.syntax->cast(type, fmt::format("({} {} {})", x, op, y));
  }
  return Call(Builtin(std::string(name) + "_" + SuffixOf(t)), a, b);
}
std::string Printer::VisitExpr_(const DivNode* op) {
  if (op->dtype.is_floating()) return Arithmetic(op->a, op->b, '/');
  return Divide(op->a, op->b, "div", '/');
}
std::string Printer::VisitExpr_(const ModNode* op) {
  if (op->dtype.is_floating()) return Call(Math("fmod", op->dtype), op->a, op->b);
  return Divide(op->a, op->b, "mod", '%');
}
std::string Printer::VisitExpr_(const FloorDivNode* op) {
  const DataType t = op->dtype;
  if (t.is_floating()) return fmt::format("{}({})", Math("floor", t), Arithmetic(op->a, op->b, '/'));
  if (int k = Log2(op->b); k >= 0 && t.bits() >= 32) return fmt::format("({} >> {})", VisitExpr(op->a), k);
  if (t.is_uint()) return Divide(op->a, op->b, "div", '/');
  return Call(Builtin("floordiv_" + SuffixOf(t)), op->a, op->b);
}
std::string Printer::VisitExpr_(const FloorModNode* op) {
  const DataType t = op->dtype;
  if (t.is_uint()) return Divide(op->a, op->b, "mod", '%');
  if (int k = t.is_int() ? Log2(op->b) : -1; k >= 0 && t.bits() >= 32) {
    return fmt::format("({} & {})", VisitExpr(op->a), VisitExpr(make_int(t.element_of(), (int64_t{1} << k) - 1)));
  }
  return Call(Builtin("floormod_" + SuffixOf(t)), op->a, op->b);
}
std::string Printer::Extreme(PrimExpr ea, PrimExpr eb, const char* name, char op) {
  const DataType t = ea.dtype();
  // As machine code has it, where it matters for zeros of different signs.
  const auto* many = ea.as<BroadcastNode>();
  if (dialect_.suffixed && t.is_floating() && (many ? many->value : ea).as<FloatImmNode>()) std::swap(ea, eb);
  if (t.is_floating()) return Call(Builtin(std::string(name) + "_" + SuffixOf(t)), ea, eb);
  if (t.is_bool()) return Binary(ea, eb, op == '<' ? "&" : "|");
  return Call(dialect_.suffixed ? Builtin(std::string(name) + "_" + SuffixOf(t)) : name, ea, eb);
}
std::string Printer::VisitExpr_(const MinNode* op) { return Extreme(op->a, op->b, "min", '<'); }
std::string Printer::VisitExpr_(const MaxNode* op) { return Extreme(op->a, op->b, "max", '>'); }
std::string Printer::Binary(const PrimExpr& ea, const PrimExpr& eb, const char* op) {
  const std::string a = Beside(ea), b = Beside(eb);
  return fmt::format("({} {} {})", a, op, b);
}
std::string Printer::VisitExpr_(const EQNode* op) { return Binary(op->a, op->b, "=="); }
std::string Printer::VisitExpr_(const NENode* op) { return Binary(op->a, op->b, "!="); }
std::string Printer::VisitExpr_(const LTNode* op) { return Binary(op->a, op->b, "<"); }
std::string Printer::VisitExpr_(const LENode* op) { return Binary(op->a, op->b, "<="); }
std::string Printer::VisitExpr_(const GTNode* op) { return Binary(op->a, op->b, ">"); }
std::string Printer::VisitExpr_(const GENode* op) { return Binary(op->a, op->b, ">="); }
std::string Printer::VisitExpr_(const AndNode* op) { return Binary(op->a, op->b, "&&"); }
std::string Printer::VisitExpr_(const OrNode* op) { return Binary(op->a, op->b, "||"); }
std::string Printer::VisitExpr_(const NotNode* op) { return "(!" + VisitExpr(op->a) + ")"; }
std::string Printer::VisitExpr_(const SelectNode* op) {
  const std::string c = VisitExpr(op->condition), t = VisitExpr(op->true_value), f = VisitExpr(op->false_value);
  return dialect_.syntax->choose(c, t, f);
}

/// Only the branch that is taken is evaluated: the other may read outside of a buffer.
std::string Printer::IfThenElse(const tir::CallNode* op) {
  const std::string c = VisitExpr(op->args[0]), name = Fresh("chosen");
  Line(dialect_.syntax->variable(Type(op->dtype), name, "") + ";");
  for (int branch : {1, 2}) {
    Line(branch == 1 ? fmt::format("if ({}) {{", InBrackets(c)) : "} else {");
    ++indent_;
    const std::string v = VisitExpr(op->args[branch]);
    Line(fmt::format("{} = {};", name, v));
    --indent_;
  }
  Line("}");
  return name;
}

std::string Printer::VisitExpr_(const tir::CallNode* op) {
  if (op->op.as<GlobalVarNode>()) return CallFunction(op);
  if (IsChoice(op)) return IfThenElse(op);
  if (PlaceOf(op) == PlaceUse::kHint) return "0";
  const IntrinText* form = dialect_.TextOf(IntrinOf(op));
  if (form && form->refused) No(form->refused);
  if (form && form->written) return form->written(*this, op);
  TextCall call{dialect_, op, {}, needs_};
  for (const PrimExpr& a : op->args) call.args.push_back(VisitExpr(a));
  if (!op->dtype.is_void()) Type(op->dtype);
  if (std::string text = form ? form->text(call) : ""; !text.empty()) return text;
  No(fmt::format("the intrinsic {} of {} has no {}", IntrinName(op), DataType2String(op->dtype), dialect_.language));
}

// ---- Statements

void Printer::VisitStmt(const Stmt& s) {
  support::WithStack([&] { StmtFunctor::VisitStmt(s); });
}
void Printer::VisitStmtDefault_(const Object* op) {
  No(fmt::format("there is no {} for {}", dialect_.language, op->GetTypeKey()));
}
void Printer::Block(const Stmt& body) {
  ++indent_;
  VisitStmt(body);
  --indent_;
  Line("}");
}
void Printer::VisitStmt_(const BufferStoreNode* op) {
  const std::string at = Index(op->buffer, op->indices), value = VisitExpr(op->value);
  Type(op->value.dtype());
  const std::string stored = ToMemory(value, op->buffer->dtype);
  Line(fmt::format("{} = {};", Element(op->buffer, at, true), stored));
}
void Printer::VisitStmt_(const ForNode* op) {
  const std::string begin = Position(op->min), extent = Position(op->extent), i = Fresh(op->loop_var->name_hint.str());
  const std::string type = Type(op->loop_var.dtype());
  names_[op->loop_var.get()] = i;
  const std::string end = is_zero(op->min) ? extent : fmt::format("{} + {}", begin, extent);
  Line(fmt::format("for ({}; {} < {}; {}) {{", dialect_.syntax->variable(type, i, begin), i, end,
                   dialect_.syntax->step(i)));
  Block(op->body);
}
void Printer::VisitStmt_(const tir::WhileNode* op) {
  Line(dialect_.syntax->forever);
  ++indent_;
  Line(dialect_.syntax->when(fmt::format("!({})", VisitExpr(op->condition)), "break;"));
  --indent_;
  Block(op->body);
}
void Printer::VisitStmt_(const IfThenElseNode* op) {
  Line(fmt::format("if ({}) {{", InBrackets(VisitExpr(op->condition))));
  if (!op->else_case.defined()) return Block(op->then_case);
  ++indent_;
  VisitStmt(op->then_case);
  --indent_;
  Line("} else {");
  Block(op->else_case);
}
void Printer::VisitStmt_(const SeqStmtNode* op) {
  for (const Stmt& s : op->seq) VisitStmt(s);
}
void Printer::VisitStmt_(const EvaluateNode* op) {
  if (HasSideEffect(op->value)) Line(VisitExpr(op->value) + ";");
}
void Printer::VisitStmt_(const LetStmtNode* op) {
  DefineValue(op->var, op->value);
  VisitStmt(op->body);
}
void Printer::VisitStmt_(const AttrStmtNode* op) {
  tir::CheckNoThreadAxes(op);
  VisitStmt(op->body);
}

}  // namespace baton::codegen::source
