// SPDX-License-Identifier: Apache-2.0
#include <baton/arith/analyzer.h>
#include <baton/support/json.h>
#include <baton/support/stack.h>
#include <baton/tir/functor.h>
#include <baton/tir/lower.h>
#include <baton/tir/op.h>
#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "codegen/kernels/kernel.h"

namespace baton::codegen::kernels {

using tir::Buffer;
using tir::PrimFunc;
using tir::Stmt;
using tir::Var;

namespace {

bool ReadsMemory(const PrimExpr& e) {
  bool found = false;
  tir::PostOrderVisitExpr(e, [&](const PrimExpr& x) { found = found || x.as<tir::BufferLoadNode>(); });
  return found;
}

/// A number that follows from sizes as JSON: a literal, or its operands and operators in the order in which a stack
/// machine takes them (src/device/formula.h). False otherwise.
class FormulaWriter {
 public:
  explicit FormulaWriter(const std::vector<Var>& sizes) : sizes_(sizes) {}

  /// Whether `e` follows from sizes.
  bool Knows(const PrimExpr& e) const {
    if (tir::as_const_int(e)) return true;
    std::vector<std::string> tokens;
    return Tokens(e, &tokens);
  }
  void Write(const PrimExpr& e, support::JsonWriter* w) const {
    if (const int64_t* n = tir::as_const_int(e)) return w->Int(*n);
    std::vector<std::string> tokens;
    if (!Tokens(e, &tokens)) throw InternalError("a number that does not follow from sizes");
    w->BeginArray();
    for (const std::string& t : tokens) w->String(t);
    w->EndArray();
  }

 private:
  bool Tokens(const PrimExpr& e, std::vector<std::string>* out) const {
    return support::WithStack([&] {
      if (const int64_t* n = tir::as_const_int(e)) {
        out->push_back(std::to_string(*n));
        return true;
      }
      for (size_t i = 0; i < sizes_.size(); ++i) {
        if (!sizes_[i].same_as(e)) continue;
        out->push_back("s" + std::to_string(i));
        return true;
      }
      if (const auto* c = e.as<tir::CastNode>()) {
        return c->dtype.is_int() && c->value.dtype().is_int() && Tokens(c->value, out);
      }
      if (const auto* s = e.as<tir::SelectNode>()) {
        const bool known = Tokens(s->condition, out) && Tokens(s->true_value, out) && Tokens(s->false_value, out);
        out->push_back("?");
        return known;
      }
      return Binary<tir::AddNode>(e, "+", out) || Binary<tir::SubNode>(e, "-", out) ||
             Binary<tir::MulNode>(e, "*", out) || Binary<tir::DivNode>(e, "/", out) ||
             Binary<tir::ModNode>(e, "%", out) || Binary<tir::FloorDivNode>(e, "//", out) ||
             Binary<tir::FloorModNode>(e, "%%", out) || Binary<tir::MinNode>(e, "min", out) ||
             Binary<tir::MaxNode>(e, "max", out) || Binary<tir::EQNode>(e, "==", out) ||
             Binary<tir::NENode>(e, "!=", out) || Binary<tir::LTNode>(e, "<", out) ||
             Binary<tir::LENode>(e, "<=", out) || Binary<tir::GTNode>(e, ">", out) ||
             Binary<tir::GENode>(e, ">=", out) || Binary<tir::AndNode>(e, "&", out) || Binary<tir::OrNode>(e, "|", out);
    });
  }
  template <class N>
  bool Binary(const PrimExpr& e, const char* op, std::vector<std::string>* out) const {
    const auto* n = e.as<N>();
    if (!n || !(n->a.dtype().is_int() || n->a.dtype().is_bool()) || !Tokens(n->a, out) || !Tokens(n->b, out)) {
      return false;
    }
    out->push_back(op);
    return true;
  }

  const std::vector<Var>& sizes_;
};

/// A function cut into kernels.
class Cutter {
 public:
  Cutter(const KernelMaker& maker, std::string name) : maker_(maker), name_(std::move(name)), symbol_(name_) {
    for (char& c : symbol_) c = isalnum(static_cast<unsigned char>(c)) ? c : '_';
  }

  void Run(const PrimFunc& f, std::string* text, support::JsonWriter* w) {
    w->BeginObject();
    w->Key("name");
    w->String(name_);
    for (const Var& p : f->params) {
      if (f->buffer_map.count(p)) continue;
      if (!p.dtype().is_int()) {
        No(
            fmt::format("parameter `{}` is neither a buffer nor a size of an integer type; "
                        "other numbers must be known when it is compiled",
                        p->name_hint.str()));
      }
      sizes_.push_back(p);
    }
    const size_t given = sizes_.size();
    std::vector<std::pair<int64_t, int64_t>> read;  // parameter and dimension of sizes that are not given
    int64_t buffers = 0;
    for (const Var& p : f->params) {
      if (!f->buffer_map.count(p)) continue;
      const Buffer& b = f->buffer_map.at(p);
      for (size_t d = 0; d < b->shape.size(); ++d) Read(b->shape[d], buffers, static_cast<int64_t>(d), &read);
      ++buffers;
    }
    Order(f, w);
    w->Key("params");
    w->BeginArray();
    for (const Var& p : f->params) {
      if (!f->buffer_map.count(p)) continue;
      const Buffer& b = f->buffer_map.at(p);
      place_[b->data.get()] = static_cast<int64_t>(place_.size());
      Param(p, b, w);
    }
    w->EndArray();
    w->Key("sizes");
    w->Int(static_cast<int64_t>(given));
    w->Key("read");
    w->BeginArray();
    for (const auto& [param, dim] : read) {
      w->BeginArray();
      w->Int(param);
      w->Int(dim);
      w->EndArray();
    }
    w->EndArray();
    Cut(f->body, {});
    Flush();
    const FormulaWriter formulas(sizes_);
    w->Key("workspace");
    w->BeginArray();
    for (const PrimExpr& bytes : workspace_) formulas.Write(bytes, w);
    w->EndArray();
    w->Key("kernels");
    w->BeginArray();
    for (const KernelBody& k : kernels_) {
      std::vector<const Object*> args;
      *text += "\n" + maker_.make(k, sizes_, name_, &args);
      w->BeginObject();
      w->Key("name");
      w->String(k.name);
      if (k.axes.empty()) {
        w->Key("items");
        formulas.Write(k.items, w);
      } else {
        Extents("groups", k, 0, formulas, w);
        Extents("threads", k, 3, formulas, w);
      }
      w->Key("args");
      w->BeginArray();
      for (const Object* a : args) {
        auto it = place_.find(a);
        if (it == place_.end()) throw InternalError("a buffer of `" + name_ + "` has no memory");
        if (const auto own = of_threads_.find(a); own != of_threads_.end() && !k.axes.empty()) {
          No(
              fmt::format("`{}` of scope \"{}\" is allocated outside of the kernel; memory of "
                          "threads and blocks is allocated within their axes",
                          own->second->name.str(), own->second->scope().str()));
        }
        w->Int(it->second);
      }
      w->EndArray();
      w->EndObject();
    }
    w->EndArray();
    w->EndObject();
  }

 private:
  using Lets = std::vector<std::pair<Var, PrimExpr>>;

  [[noreturn]] void No(const std::string& what) const {
    throw UnsupportedError(fmt::format("`{}` cannot be compiled for {}: {}", name_, maker_.language, what));
  }

  /// A size that is alone in a shape, and not a parameter, is read from the tensor.
  void Read(const PrimExpr& extent, int64_t param, int64_t dim, std::vector<std::pair<int64_t, int64_t>>* read) {
    const auto* var = extent.as<tir::VarNode>();
    if (!var || std::any_of(sizes_.begin(), sizes_.end(), [&](const Var& v) { return v.get() == var; })) return;
    sizes_.push_back(GetRef<Var>(var));
    read->push_back({param, dim});
  }
  /// The arguments in order: buffers by number, sizes as -1 - number. Left out where sizes are behind all buffers.
  void Order(const PrimFunc& f, support::JsonWriter* w) const {
    std::vector<int64_t> order;
    int64_t buffers = 0, sizes = 0;
    bool mixed = false;
    for (const Var& p : f->params) {
      const bool buffer = f->buffer_map.count(p);
      mixed = mixed || (buffer && sizes > 0);
      order.push_back(buffer ? buffers++ : -1 - sizes++);
    }
    if (!mixed) return;
    w->Key("order");
    w->BeginArray();
    for (int64_t a : order) w->Int(a);
    w->EndArray();
  }
  /// The extents of the three axes from `first` on, 1 for those that the kernel lacks.
  static void Extents(const char* key, const KernelBody& k, int first, const FormulaWriter& formulas,
                      support::JsonWriter* w) {
    w->Key(key);
    w->BeginArray();
    for (int axis = first; axis < first + 3; ++axis) {
      PrimExpr extent(int64_t{1});
      for (const tir::KernelAxis& a : k.axes) {
        if (a.axis == axis) extent = a.extent;
      }
      formulas.Write(extent, w);
    }
    w->EndArray();
  }

  void Param(const Var& p, const Buffer& b, support::JsonWriter* w) {
    w->BeginObject();
    w->Key("name");
    w->String(p->name_hint.str());
    w->Key("dtype");
    w->String(DataType2String(b->dtype));
    if (b->dtype.is_bool() && maker_.wide_truth) {  // not a byte
      w->Key("memory");
      w->String("uint32");
    }
    w->Key("shape");
    w->BeginArray();
    const FormulaWriter formulas(sizes_);
    for (const PrimExpr& d : b->shape) {
      if (!formulas.Knows(d)) {
        No(fmt::format("a dimension of `{}` is not known; give the shape when it is compiled", p->name_hint.str()));
      }
      formulas.Write(d, w);
    }
    w->EndArray();
    w->EndObject();
  }

  void Workspace(const Buffer& b) {
    PrimExpr bytes(int64_t{b->dtype.bytes()});
    for (const PrimExpr& d : b->shape) bytes = bytes * cast(DataType::Int(64), d);
    bytes = arith::Analyzer().Simplify(bytes);
    if (!FormulaWriter(sizes_).Knows(bytes)) {
      No(fmt::format("the size of `{}` is not known", b->name.str()));
    }
    if (const String scope = b->scope(); scope == tir::kShared || scope == "local" || scope == "warp") {
      of_threads_[b->data.get()] = b;
    }
    place_[b->data.get()] = -1 - static_cast<int64_t>(workspace_.size());
    workspace_.push_back(bytes);
  }

  /// Code left to one work-item in order, gathered until a parallel loop comes.
  void Serial(const Stmt& s, const Lets& lets) {
    if (!serial_.empty() && serial_lets_ != lets.size()) Flush();
    serial_.push_back(s);
    serial_lets_ = lets.size();
    pending_ = lets;
  }
  void Flush() {
    if (serial_.empty()) return;
    Stmt body = tir::SeqStmt::Flatten(serial_);
    serial_ = {};
    // Large arrays of a single work-item lie in the workspace.
    struct Hoist : tir::StmtMutator {
      Cutter* c;
      explicit Hoist(Cutter* c) : c(c) {}
      using StmtMutator::VisitStmt_;
      Stmt VisitStmt_(const tir::AllocateNode* op) final {
        c->Workspace(op->buffer);
        return VisitStmt(op->body);
      }
    } hoist(this);
    Add(PrimExpr(int64_t{1}), Var(), pending_, hoist(body));
  }
  void Add(const PrimExpr& items, const Var& index, const Lets& lets, const Stmt& body) {
    kernels_.push_back({fmt::format("k_{}_{}", symbol_, kernels_.size()), items, index, lets, body});
  }

  void Cut(const Stmt& s, const Lets& lets) {
    if (const auto* seq = s.as<tir::SeqStmtNode>()) {
      for (const Stmt& x : seq->seq) Cut(x, lets);
    } else if (const auto* a = s.as<tir::AllocateNode>()) {
      Workspace(a->buffer);
      Cut(a->body, lets);
    } else if (const auto* attr = s.as<tir::AttrStmtNode>()) {
      tir::ThreadAxis(attr) < 0 ? Cut(attr->body, lets) : Threads(s, lets);
    } else if (const auto* let = s.as<tir::LetStmtNode>(); let && !ReadsMemory(let->value)) {
      Flush();
      Lets more = lets;
      more.push_back({let->var, let->value});
      Cut(let->body, more);
      Flush();
    } else if (const auto* e = s.as<tir::EvaluateNode>(); e && !tir::HasSideEffect(e->value)) {
      return;
    } else if (const auto* f = s.as<tir::ForNode>(); f && f->kind == tir::ForKind::kParallel && Parallel(f, lets)) {
      return;
    } else {
      Serial(s, lets);
    }
  }

  /// A kernel of thread axes: `s` is the outermost mark.
  void Threads(const Stmt& s, const Lets& lets) {
    Flush();
    KernelBody kernel{.lets = lets, .body = s, .axes = tir::AxesOf(s)};
    kernel.name = fmt::format("k_{}_{}", symbol_, kernels_.size());
    const FormulaWriter formulas(sizes_);
    for (tir::KernelAxis& axis : kernel.axes) {
      axis.extent = arith::Analyzer().Simplify(axis.extent);
      if (formulas.Knows(axis.extent)) continue;
      No(fmt::format("the extent of {} does not follow from the sizes of its arguments",
                     tir::ThreadAxisName(axis.axis)));
    }
    kernels_.push_back(std::move(kernel));
  }

  /// Parallel loops directly within each other are one; false where a bound is not known.
  bool Parallel(const tir::ForNode* f, const Lets& lets) {
    constexpr int64_t kMost = int64_t{1} << 40;
    int64_t literal = 1;         // the literal bounds
    PrimExpr items(int64_t{1});  // all of them
    const FormulaWriter formulas(sizes_);
    std::vector<const tir::ForNode*> loops;
    for (const auto* at = f; at && at->kind == tir::ForKind::kParallel; at = at->body.as<tir::ForNode>()) {
      const int64_t *n = tir::as_const_int(at->extent), *begin = tir::as_const_int(at->min);
      if (!begin || (n ? *n < 0 || (*n > 0 && literal > kMost / *n) : !formulas.Knows(at->extent))) break;
      if (n) literal *= *n;
      items = items * cast(DataType::Int(64), at->extent);
      loops.push_back(at);
    }
    if (loops.empty()) return false;
    Flush();
    if (literal == 0) return true;
    items = arith::Analyzer().Simplify(items);
    Var index("item");
    Lets more = lets;
    PrimExpr rest = index;
    Lets own;
    for (size_t i = loops.size(); i-- > 0;) {
      PrimExpr at = i == 0 ? rest : truncmod(rest, loops[i]->extent);
      if (i > 0) rest = truncdiv(rest, loops[i]->extent);
      own.push_back({loops[i]->loop_var, at + loops[i]->min});
    }
    more.insert(more.end(), own.rbegin(), own.rend());
    Add(items, index, more, loops.back()->body);
    return true;
  }

  const KernelMaker& maker_;
  std::string name_, symbol_;
  std::unordered_map<const Object*, int64_t> place_;  // data variable -> parameter, or -1 - (number in the workspace)
  std::vector<PrimExpr> workspace_;                   // bytes of each piece
  std::unordered_map<const Object*, Buffer> of_threads_;  // pieces whose scope is a thread's or a block's
  std::vector<Var> sizes_;                                // parameters behind the buffers
  Array<Stmt> serial_;
  size_t serial_lets_ = 0;
  Lets pending_;
  std::vector<KernelBody> kernels_;
};

}  // namespace

Program CutProgram(const KernelMaker& maker, const IRModule& mod) {
  Program program;
  support::JsonWriter w(&program.functions);
  w.BeginArray();
  for (const auto& [var, func] : mod->functions) {
    const auto* f = func.as<tir::PrimFuncNode>();
    if (!f)
      throw runtime::TypeError("@" + var->name_hint.str() + " is no PrimFunc; a model of Relay is for relay.build");
    const std::string name = func->GetAttr<String>(baton::attr::kGlobalSymbol, var->name_hint).str();
    Cutter(maker, name).Run(GetRef<PrimFunc>(f), &program.text, &w);
  }
  w.EndArray();
  return program;
}

std::string EmitText(const Language& language, const IRModule& mod) {
  Needs needs;
  const Program program = CutProgram(
      {language.dialect.language,
       [&](const KernelBody& k, const std::vector<Var>& sizes, const std::string& function,
           std::vector<const Object*>* args) { return EmitKernel(language, k, sizes, function, &needs, args); },
       language.wide_truth},
      mod);
  std::string out = fmt::format("// baton-{} {{\"needs\":[", language.device);
  std::string extensions;
  for (const char* extension : {needs.fp64 ? language.fp64 : nullptr, needs.fp16 ? language.fp16 : nullptr}) {
    if (extension) extensions += fmt::format("{}\"{}\"", extensions.empty() ? "" : ",", extension);
  }
  out += extensions;
  out += "],\"functions\":" + program.functions + "}\n" + language.prelude(needs);
  return out + "\n" + language.dialect.Definitions(needs.builtins) + program.text;
}

}  // namespace baton::codegen::kernels
