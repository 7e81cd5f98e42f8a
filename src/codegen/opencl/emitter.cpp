// SPDX-License-Identifier: Apache-2.0
// The text of a kernel. Expressions become text; what has to be computed in order, or under a condition (values of Let,
// the branches of if_then_else), becomes statements before the one that the expression stands in.
#include "codegen/opencl/emitter.h"

#include <baton/support/stack.h>
#include <baton/tir/functor.h>
#include <baton/tir/intrin.h>
#include <baton/tir/lower.h>
#include <fmt/format.h>

#include <cmath>
#include <unordered_map>
#include <utility>

namespace baton::codegen::opencl {

using namespace tir;  // NOLINT: every node kind is named below

namespace {

/// Bytes of an array that a work-item may keep to itself.
constexpr int64_t kMaxPrivateBytes = 16 << 10;

/// A literal divisor that neither traps nor wraps.
bool Plain(const PrimExpr& divisor) {
  const int64_t* c = as_const_int(divisor);
  return c && *c != 0 && *c != -1;
}
int Log2(const PrimExpr& e) {
  const int64_t* c = as_const_int(e);
  return c && *c > 0 && (*c & (*c - 1)) == 0 ? __builtin_ctzll(static_cast<uint64_t>(*c)) : -1;
}

class Emitter : public ExprFunctor<std::string(const PrimExpr&)>, public StmtFunctor<void(const Stmt&)> {
 public:
  Emitter(std::string function, Needs* needs) : function_(std::move(function)), needs_(needs) {}

  std::string Kernel(const KernelBody& k, const std::vector<Var>& sizes, std::vector<const Object*>* args) {
    indent_ = 1;
    for (const Var& v : sizes) names_[v.get()] = Fresh(v->name_hint.str());
    if (k.index.defined()) {
      const std::string i = Fresh(k.index->name_hint.str());
      names_[k.index.get()] = i;
      Line(fmt::format("const long {} = get_global_id(0);", i));
      Line(fmt::format("if ({} >= {}) return;", i, Position(k.items)));
    }
    for (const auto& [var, value] : k.lets) Define(var, VisitExpr(value));
    VisitStmt(k.body);
    std::string head = fmt::format("__kernel void {}(", k.name), pointers;
    for (size_t i = 0; i < buffers_.size(); ++i) {
      const BufferUse& u = used_.at(buffers_[i]);
      head += fmt::format("{}__global uchar* a{}, const long o{}", i ? ", " : "", i, i);
      const char* qualifier = u.written ? "" : "const ";
      pointers += fmt::format("  __global {}{}* restrict {} = (__global {}{}*)(a{} + o{});\n", qualifier, u.type,
                              u.name, qualifier, u.type, i, i);
    }
    for (size_t i = 0; i < sizes.size(); ++i) {
      head += fmt::format("{}const long {}", i || !buffers_.empty() ? ", " : "", names_.at(sizes[i].get()));
    }
    *args = buffers_;
    return head + ") {\n" + pointers + text_ + "}\n";
  }

 private:
  struct BufferUse {
    std::string name, type;
    bool written = false;
  };

  [[noreturn]] void No(const std::string& what) const {
    throw UnsupportedError(fmt::format("`{}` cannot be compiled for OpenCL: {}", function_, what));
  }
  void Line(const std::string& s) { text_ += std::string(static_cast<size_t>(2 * indent_), ' ') + s + "\n"; }
  std::string Fresh(const std::string& hint) {
    std::string base;
    for (char c : hint) base += isalnum(static_cast<unsigned char>(c)) || c == '_' ? c : '_';
    if (base.empty() || !isalpha(static_cast<unsigned char>(base[0]))) base = "v" + base;
    // A name with a number is no word of the language, no function of it, and none of ours.
    return fmt::format("{}_{}", base.substr(0, 40), counter_++);
  }
  std::string Type(DataType t) {
    if (t.lanes() != 1) Vectors();
    return TypeName(t, needs_);
  }
  [[noreturn]] void Vectors() const {
    No("it was written for a processor's vectors; write it for this target, as in te.create_prim_func(..., "
       "target=\"opencl\") "
       "(loops that are only marked as vectors are taken as they are)");
  }
  std::string VisitExpr_(const RampNode*) override { Vectors(); }
  std::string VisitExpr_(const BroadcastNode*) override { Vectors(); }
  std::string VisitExpr_(const ShuffleNode*) override { Vectors(); }
  std::string Builtin(const std::string& name) {
    needs_->builtins.insert(name);
    return "baton_" + name;
  }
  std::string Name(const VarNode* v) {
    auto it = names_.find(v);
    if (it == names_.end()) throw InternalError("variable `" + v->name_hint.str() + "` has no value in " + function_);
    return it->second;
  }
  void Define(const Var& v, const std::string& value) {
    const std::string name = Fresh(v->name_hint.str());
    Line(fmt::format("const {} {} = {};", Type(v.dtype()), name, value));
    names_[v.get()] = name;
  }

  // ---- Memory

  std::string Pointer(const Buffer& b, bool write) {
    if (auto it = names_.find(b->data.get()); it != names_.end()) return it->second;  // private
    auto [it, fresh] = used_.try_emplace(b->data.get());
    if (fresh) {
      it->second.name = Fresh(b->name.str());
      it->second.type = MemoryTypeName(b->dtype.element_of(), needs_);
      buffers_.push_back(b->data.get());
    }
    it->second.written |= write;
    return it->second.name;
  }
  std::string Index(const Buffer& b, const Array<PrimExpr>& indices) {
    if (indices.size() != 1) throw InternalError("buffer `" + b->name.str() + "` is not flat in " + function_);
    return Position(indices[0]);
  }
  /// A number that does not come near the limits of its type.
  std::string Position(const PrimExpr& e) {
    const bool outer = std::exchange(index_, true);
    std::string text = VisitExpr(e);
    index_ = outer;
    return text;
  }

  // ---- Expressions

  std::string VisitExpr(const PrimExpr& e) override {
    return support::WithStack([&] { return ExprFunctor::VisitExpr(e); });
  }
  std::string VisitExprDefault_(const Object* op) override { No("there is no OpenCL C for " + op->GetTypeKey()); }
  std::string VisitExpr_(const VarNode* op) override { return Name(op); }
  std::string VisitExpr_(const IntImmNode* op) override {
    const DataType t = op->dtype;
    if (t.is_bool()) return op->value ? "true" : "false";
    if (t.is_uint() && t.bits() == 64) return fmt::format("{}UL", static_cast<uint64_t>(op->value));
    if (t.is_uint()) return fmt::format("({}){}u", Type(t), static_cast<uint64_t>(op->value));
    if (op->value == INT64_MIN) return "(-9223372036854775807L - 1L)";
    if (t.bits() == 64) return op->value < 0 ? fmt::format("({}L)", op->value) : fmt::format("{}L", op->value);
    if (op->value == INT32_MIN) return "(-2147483647 - 1)";
    const std::string digits = op->value < 0 ? fmt::format("({})", op->value) : fmt::format("{}", op->value);
    return t.bits() == 32 ? digits : fmt::format("({}){}", Type(t), digits);
  }
  std::string VisitExpr_(const FloatImmNode* op) override {
    const DataType t = op->dtype;
    const bool wide = t.bits() == 64;
    std::string s;
    if (std::isnan(op->value)) {
      s = "NAN";
    } else if (std::isinf(wide ? op->value : static_cast<float>(op->value))) {
      s = op->value < 0 ? "(-INFINITY)" : "INFINITY";
    } else {
      s = wide ? fmt::format("{:.17g}", op->value) : fmt::format("{:.9g}", static_cast<float>(op->value));
      if (s.find_first_of(".e") == s.npos) s += ".0";
      if (!wide) s += "f";
      return op->value < 0 || std::signbit(op->value) ? "(" + s + ")" : s;
    }
    if (IsHalf(t)) No("a literal of a half float");
    return wide ? "(" + Type(t) + ")" + s : s;
  }
  std::string VisitExpr_(const tir::LetNode* op) override {
    Define(op->var, VisitExpr(op->value));
    return VisitExpr(op->body);
  }
  std::string VisitExpr_(const BufferLoadNode* op) override {
    const std::string at = Index(op->buffer, op->indices);
    if (op->dtype.lanes() != 1) Type(op->dtype);
    const std::string p = Pointer(op->buffer, false);
    return op->dtype.is_bool() ? fmt::format("({}[{}] != 0)", p, at) : fmt::format("{}[{}]", p, at);
  }

  std::string Convert(const std::string& v, DataType from, DataType to) {
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
      // Out of range gives the nearest limit and NaN gives 0. NumPy wraps narrow types through wider ones.
      if (to.bits() < 32) return fmt::format("({})convert_int_sat({})", type, v);
      return fmt::format("convert_{}_sat({})", type, v);
    }
    return fmt::format("({})({})", type, v);
  }
  std::string VisitExpr_(const CastNode* op) override {
    return Convert(VisitExpr(op->value), op->value.dtype(), op->dtype);
  }

  /// Sums of integers wrap, which C leaves open for signed ones; indices do not come near their limits.
  std::string Arithmetic(const PrimExpr& ea, const PrimExpr& eb, char op) {
    const DataType t = ea.dtype();
    const std::string a = VisitExpr(ea), b = VisitExpr(eb);
    const std::string type = Type(t);
    if (t.is_bool()) return fmt::format("(({} {} {}) & 1)", a, op, b);
    if (t.is_floating() || (index_ && t.bits() == 64)) return fmt::format("({} {} {})", a, op, b);
    const std::string u = TypeName(DataType::UInt(t.bits() < 32 ? 32 : t.bits()), needs_);
    return fmt::format("({})(({}){} {} ({}){})", type, u, a, op, u, b);
  }
  std::string VisitExpr_(const AddNode* op) override { return Arithmetic(op->a, op->b, '+'); }
  std::string VisitExpr_(const SubNode* op) override { return Arithmetic(op->a, op->b, '-'); }
  std::string VisitExpr_(const MulNode* op) override { return Arithmetic(op->a, op->b, '*'); }

  std::string Call(const std::string& f, const PrimExpr& a, const PrimExpr& b) {
    const std::string x = VisitExpr(a), y = VisitExpr(b);
    return fmt::format("{}({}, {})", f, x, y);
  }
  std::string Divide(const PrimExpr& a, const PrimExpr& b, const char* name, char op) {
    const DataType t = a.dtype();
    Type(t);
    if (Plain(b)) {
      const std::string x = VisitExpr(a), y = VisitExpr(b);
      return fmt::format("({})({} {} {})", Type(t), x, op, y);
    }
    return Call(Builtin(std::string(name) + "_" + SuffixOf(t)), a, b);
  }
  std::string VisitExpr_(const DivNode* op) override {
    if (op->dtype.is_floating()) return Arithmetic(op->a, op->b, '/');
    return Divide(op->a, op->b, "div", '/');
  }
  std::string VisitExpr_(const ModNode* op) override {
    if (op->dtype.is_floating()) return Call("fmod", op->a, op->b);
    return Divide(op->a, op->b, "mod", '%');
  }
  std::string VisitExpr_(const FloorDivNode* op) override {
    const DataType t = op->dtype;
    if (t.is_floating()) return fmt::format("floor({})", Arithmetic(op->a, op->b, '/'));
    if (int k = Log2(op->b); k >= 0 && t.bits() >= 32) return fmt::format("({} >> {})", VisitExpr(op->a), k);
    if (t.is_uint()) return Divide(op->a, op->b, "div", '/');
    return Call(Builtin("floordiv_" + SuffixOf(t)), op->a, op->b);
  }
  std::string VisitExpr_(const FloorModNode* op) override {
    const DataType t = op->dtype;
    if (t.is_uint()) return Divide(op->a, op->b, "mod", '%');
    if (int k = t.is_int() ? Log2(op->b) : -1; k >= 0 && t.bits() >= 32) {
      return fmt::format("({} & {})", VisitExpr(op->a), VisitExpr(make_int(t, (int64_t{1} << k) - 1)));
    }
    return Call(Builtin("floormod_" + SuffixOf(t)), op->a, op->b);
  }
  std::string Extreme(const PrimExpr& ea, const PrimExpr& eb, const char* name, char op) {
    const DataType t = ea.dtype();
    if (t.is_floating()) return Call(Builtin(std::string(name) + "_" + SuffixOf(t)), ea, eb);
    if (t.is_bool()) {
      const std::string a = VisitExpr(ea), b = VisitExpr(eb);
      return fmt::format("({} {} {})", a, op == '<' ? '&' : '|', b);
    }
    return fmt::format("{}", Call(name, ea, eb));
  }
  std::string VisitExpr_(const MinNode* op) override { return Extreme(op->a, op->b, "min", '<'); }
  std::string VisitExpr_(const MaxNode* op) override { return Extreme(op->a, op->b, "max", '>'); }
#define BATON_OPENCL_COMPARE(Node, Op)                            \
  std::string VisitExpr_(const Node* op) override {               \
    const std::string a = VisitExpr(op->a), b = VisitExpr(op->b); \
    return fmt::format("({} " Op " {})", a, b);                   \
  }
  BATON_OPENCL_COMPARE(EQNode, "==")
  BATON_OPENCL_COMPARE(NENode, "!=")
  BATON_OPENCL_COMPARE(LTNode, "<")
  BATON_OPENCL_COMPARE(LENode, "<=")
  BATON_OPENCL_COMPARE(GTNode, ">")
  BATON_OPENCL_COMPARE(GENode, ">=")
  BATON_OPENCL_COMPARE(AndNode, "&&")
  BATON_OPENCL_COMPARE(OrNode, "||")
#undef BATON_OPENCL_COMPARE
  std::string VisitExpr_(const NotNode* op) override { return "(!" + VisitExpr(op->a) + ")"; }
  std::string VisitExpr_(const SelectNode* op) override {
    const std::string c = VisitExpr(op->condition), t = VisitExpr(op->true_value), f = VisitExpr(op->false_value);
    return fmt::format("({} ? {} : {})", c, t, f);
  }

  /// Only the branch that is taken is evaluated: the other may read outside of a buffer.
  std::string IfThenElse(const tir::CallNode* op) {
    const std::string c = VisitExpr(op->args[0]), name = Fresh("chosen");
    Line(fmt::format("{} {};", Type(op->dtype), name));
    for (int branch : {1, 2}) {
      Line(branch == 1 ? fmt::format("if ({}) {{", c) : "} else {");
      ++indent_;
      const std::string v = VisitExpr(op->args[branch]);
      Line(fmt::format("{} = {};", name, v));
      --indent_;
    }
    Line("}");
    return name;
  }

  std::string VisitExpr_(const tir::CallNode* op) override {
    if (op->op.as<GlobalVarNode>()) No(kHostFunction);
    if (IsChoice(op)) return IfThenElse(op);
    if (PlaceOf(op) == PlaceUse::kHint) return "0";
    const IntrinText* form = TextOf(IntrinOf(op));
    if (form && form->refused) No(form->refused);
    TextCall call{op, {}, needs_};
    for (const PrimExpr& a : op->args) call.args.push_back(VisitExpr(a));
    Type(op->dtype);
    if (std::string text = form ? form->text(call) : ""; !text.empty()) return text;
    No("the intrinsic " + std::string(IntrinName(op)) + " of " + DataType2String(op->dtype) + " has no OpenCL C");
  }

  // ---- Statements

  void VisitStmt(const Stmt& s) override {
    support::WithStack([&] { StmtFunctor::VisitStmt(s); });
  }
  void VisitStmtDefault_(const Object* op) override { No("there is no OpenCL C for " + op->GetTypeKey()); }
  void Block(const Stmt& body) {
    ++indent_;
    VisitStmt(body);
    --indent_;
    Line("}");
  }
  void VisitStmt_(const BufferStoreNode* op) override {
    const std::string at = Index(op->buffer, op->indices);
    std::string v = VisitExpr(op->value);
    if (op->value.dtype().lanes() != 1) Type(op->value.dtype());
    if (op->buffer->dtype.is_bool()) v = fmt::format("(uchar)({} ? 1 : 0)", v);
    Line(fmt::format("{}[{}] = {};", Pointer(op->buffer, true), at, v));
  }
  void VisitStmt_(const AllocateNode* op) override {
    const Buffer& b = op->buffer;
    int64_t count = 1;
    for (const PrimExpr& d : b->shape) {
      const int64_t* n = as_const_int(d);
      if (!n) No("buffer `" + b->name.str() + "` has a size that is not known");
      count *= *n;
    }
    if (count * b->dtype.bytes() > kMaxPrivateBytes) {
      No(fmt::format("buffer `{}` of {} bytes in a loop is too large for a work-item", b->name.str(),
                     count * b->dtype.bytes()));
    }
    const std::string name = Fresh(b->name.str());
    Line(fmt::format("{} {}[{}];", MemoryTypeName(b->dtype.element_of(), needs_), name, count > 0 ? count : 1));
    names_[b->data.get()] = name;
    VisitStmt(op->body);
  }
  void VisitStmt_(const ForNode* op) override {
    const std::string begin = Position(op->min), extent = Position(op->extent),
                      i = Fresh(op->loop_var->name_hint.str());
    const std::string type = Type(op->loop_var.dtype());
    names_[op->loop_var.get()] = i;
    const std::string end = is_zero(op->min) ? extent : fmt::format("{} + {}", begin, extent);
    Line(fmt::format("for ({} {} = {}; {} < {}; ++{}) {{", type, i, begin, i, end, i));
    Block(op->body);
  }
  void VisitStmt_(const tir::WhileNode* op) override;
  void VisitStmt_(const IfThenElseNode* op) override {
    Line(fmt::format("if ({}) {{", VisitExpr(op->condition)));
    if (!op->else_case.defined()) return Block(op->then_case);
    ++indent_;
    VisitStmt(op->then_case);
    --indent_;
    Line("} else {");
    Block(op->else_case);
  }
  void VisitStmt_(const SeqStmtNode* op) override {
    for (const Stmt& s : op->seq) VisitStmt(s);
  }
  void VisitStmt_(const EvaluateNode* op) override {
    if (HasSideEffect(op->value)) Line(VisitExpr(op->value) + ";");
  }
  void VisitStmt_(const LetStmtNode* op) override {
    Define(op->var, VisitExpr(op->value));
    VisitStmt(op->body);
  }
  void VisitStmt_(const AttrStmtNode* op) override {
    tir::CheckNoThreadAxes(op);
    VisitStmt(op->body);
  }
  void VisitStmt_(const AssertStmtNode* op) override {
    if (!is_const_int(op->condition, 1)) No("it checks a condition while it runs, which a device cannot report");
    VisitStmt(op->body);
  }

  std::string function_;
  Needs* needs_;
  std::string text_;
  int indent_ = 0, counter_ = 0;
  bool index_ = false;  // inside of an index or a loop's bound
  std::unordered_map<const Object*, std::string> names_;
  std::unordered_map<const Object*, BufferUse> used_;
  std::vector<const Object*> buffers_;
};

void Emitter::VisitStmt_(const tir::WhileNode* op) {
  Line("while (1) {");
  ++indent_;
  Line(fmt::format("if (!({})) break;", VisitExpr(op->condition)));
  --indent_;
  Block(op->body);
}

}  // namespace

std::string TypeName(DataType t, Needs* needs) {
  if (t.is_bool()) return "bool";
  if (t.is_floating()) {
    if (t.bits() == 16) return "ushort";
    if (t.bits() == 32) return "float";
    if (t.bits() == 64) {
      needs->fp64 = true;
      return "double";
    }
  } else if (t.is_int() || t.is_uint()) {
    const char* names[] = {"char", "short", "int", "long"};
    for (int i = 0; i < 4; ++i) {
      if (t.bits() == 8 << i) return (t.is_uint() ? "u" : "") + std::string(names[i]);
    }
  }
  throw UnsupportedError("OpenCL has no values of dtype " + DataType2String(t));
}
std::string MemoryTypeName(DataType t, Needs* needs) { return t.is_bool() ? "uchar" : TypeName(t, needs); }

std::string EmitKernel(const KernelBody& kernel, const std::vector<Var>& sizes, const std::string& function,
                       Needs* needs, std::vector<const Object*>* args) {
  return Emitter(function, needs).Kernel(kernel, sizes, args);
}

}  // namespace baton::codegen::opencl
