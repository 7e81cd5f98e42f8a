// SPDX-License-Identifier: Apache-2.0
#include "driver/step_functions.h"

#include <baton/runtime/step_clock.h>
#include <baton/support/json.h>
#include <baton/tir/functor.h>
#include <baton/tir/op.h>

#include <charconv>

namespace baton::driver {

/// A part of the entry as a separate function, with further parameters for buffers of sizes.
tir::PrimFunc OfSteps(const tir::Stmt& steps, const Array<tir::Var>& params, const std::string& symbol) {
  Array<tir::Var> own;
  tir::VarMap rename;
  for (const tir::Var& p : params) {
    own.push_back(tir::Var(p->name_hint, p->dtype));
    rename[p.get()] = own.back();
  }
  struct Loads final : tir::StmtExprVisitor {
    explicit Loads(const tir::VarMap& rename) : rename(rename) {}
    void VisitExpr_(const tir::BufferLoadNode* op) final {
      tir::BufferNode b = *op->buffer.get();
      b.data = Downcast<tir::Var>(rename.at(b.data.get()));
      made.emplace(op->buffer.get(), tir::Buffer(std::move(b)));
    }
    const tir::VarMap& rename;
    tir::BufferMap made;
  } sizes(rename);
  sizes(steps);
  tir::PrimFunc f(own, tir::SubstituteBuffers(steps, sizes.made, rename));
  f = WithAttr(f, attr::kGlobalSymbol, Any(symbol));
  f = WithAttr(f, "straight_line", Any(1));
  return WithAttr(f, "model_entry", Any(1));
}

namespace {

/// The one of `steps[begin..end)` with the number `step`, by halves.
tir::Stmt Choose(const Array<tir::Stmt>& steps, int64_t begin, int64_t end, const tir::Var& step) {
  if (end - begin == 1) return steps[begin];
  const int64_t middle = begin + (end - begin) / 2;
  return tir::IfThenElse(tir::LT(step, PrimExpr(middle)), Choose(steps, begin, middle, step),
                         Choose(steps, middle, end, step));
}

/// The steps of a part; none of an entry that calls parts, and of entries of one step or without a graph.
Array<tir::Stmt> StepsOf(const IRModule& mod, const tir::PrimFunc& f) {
  const auto* seq = f->body.as<tir::SeqStmtNode>();
  if (!seq) return {};
  for (const tir::Stmt& s : seq->seq) {
    const auto* evaluate = s.as<tir::EvaluateNode>();
    const auto* call = evaluate ? evaluate->value.as<tir::CallNode>() : nullptr;
    if (!call) return {};
    const auto* callee = call->op.as<GlobalVarNode>();
    if (callee && mod->Lookup(GetRef<GlobalVar>(callee))->HasNonzeroAttr("model_entry")) return {};
  }
  return seq->seq;
}

}  // namespace

IRModule WithStepFunctions(const IRModule& mod) {
  IRModule out = mod;
  for (const auto& [var, func] : mod->functions) {
    if (!func->HasNonzeroAttr("model_entry")) continue;
    const auto part = Downcast<tir::PrimFunc>(func);
    const Array<tir::Stmt> steps = StepsOf(mod, part);
    if (steps.empty()) continue;
    const std::string symbol = func->GetAttr<String>(attr::kGlobalSymbol, var->name_hint).str() + runtime::kStepsSuffix;
    Array<tir::Var> params = part->params;
    const tir::Var step("step", DataType::Int(64));
    params.push_back(step);
    const tir::PrimFunc made = OfSteps(Choose(steps, 0, static_cast<int64_t>(steps.size()), step), params, symbol);
    out.CopyOnWrite()->Update(GlobalVar(String(symbol)), made);
  }
  return out;
}

namespace {

/// Writes operands, then the operation.
class PostfixWriter final : tir::ExprVisitor {
 public:
  explicit PostfixWriter(const std::function<int32_t(const tir::Var&)>& word_of) : word_of_(word_of) {}
  std::string Of(const PrimExpr& e) {
    VisitExpr(e);
    return known_ ? out_ : std::string();
  }

 private:
  void VisitExpr(const PrimExpr& e) final {
    if (const auto* number = e.as<IntImmNode>()) return Word(std::to_string(number->value));
    if (const auto* number = e.as<FloatImmNode>()) return Number(number->value);
    if (e.as<tir::VarNode>()) return Word("s" + std::to_string(word_of_(Downcast<tir::Var>(e))));
    if (const auto* cast = e.as<tir::CastNode>()) return VisitExpr(cast->value);
    if (const auto* select = e.as<tir::SelectNode>()) {
      for (const PrimExpr* part : {&select->condition, &select->true_value, &select->false_value}) VisitExpr(*part);
      return Word("?");
    }
    const bool found = Two<tir::AddNode>(e, "+") || Two<tir::SubNode>(e, "-") || Two<tir::MulNode>(e, "*") ||
                       Two<tir::DivNode>(e, "/") || Two<tir::FloorDivNode>(e, "//") || Two<tir::FloorModNode>(e, "%") ||
                       Two<tir::MinNode>(e, "least") || Two<tir::MaxNode>(e, "most") || Two<tir::EQNode>(e, "==") ||
                       Two<tir::LTNode>(e, "<") || Two<tir::LENode>(e, "<=");
    known_ = known_ && found;
  }
  template <class N>
  bool Two(const PrimExpr& e, const char* name) {
    const auto* op = e.as<N>();
    if (!op) return false;
    VisitExpr(op->a);
    VisitExpr(op->b);
    // Of integers, whose quotients are floored where nothing is negative.
    Word(std::is_same_v<N, tir::DivNode> && e->dtype.is_int() ? "//" : name);
    return true;
  }
  void Number(double value) {
    char text[32];
    Word(std::string(text, std::to_chars(text, text + sizeof(text), value).ptr));
  }
  void Word(const std::string& word) { out_ += (out_.empty() ? "" : " ") + word; }

  const std::function<int32_t(const tir::Var&)>& word_of_;
  std::string out_;
  bool known_ = true;
};

}  // namespace

std::string Postfix(const PrimExpr& formula, const std::function<int32_t(const tir::Var&)>& word_of) {
  return PostfixWriter(word_of).Of(formula);
}

std::string StepsText(const std::vector<GraphSteps>& graphs, const std::vector<HostStep>& host) {
  if (graphs.empty() && host.empty()) return "";
  std::string out;
  support::JsonWriter w(&out);
  w.BeginObject();
  w.Key("graphs");
  w.BeginObject();
  for (const GraphSteps& g : graphs) {
    w.Key(g.symbol);
    w.BeginObject();
    w.Key("parts");
    w.BeginArray();
    for (const auto& [symbol, count] : g.parts) {
      w.BeginArray();
      w.String(symbol);
      w.Int(static_cast<int64_t>(count));
      w.EndArray();
    }
    w.EndArray();
    w.Key("steps");
    w.BeginArray();
    for (const ModelStep& s : g.steps) {
      w.BeginArray();
      for (const std::string* text : {&s.kernel, &s.operators, &s.source}) w.String(*text);
      for (const std::string* formula : {&s.flops, &s.bytes}) w.String(*formula);
      w.EndArray();
    }
    w.EndArray();
    w.EndObject();
  }
  w.EndObject();
  w.Key("host");
  w.BeginArray();
  for (const HostStep& h : host) {
    w.BeginArray();
    w.Int(h.function);
    w.Int(h.at);
    w.String(h.source);
    w.EndArray();
  }
  w.EndArray();
  w.EndObject();
  return out;
}

}  // namespace baton::driver
