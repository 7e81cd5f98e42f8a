// SPDX-License-Identifier: Apache-2.0
#include "driver/debug_source.h"

#include <baton/ir/structural.h>
#include <baton/relay/functor.h>
#include <baton/relay/lower.h>
#include <baton/relay/op.h>
#include <fmt/format.h>

#include <unordered_map>

namespace baton::driver {

using relay::Call;
using relay::CallNode;
using relay::Expr;
using relay::Function;

namespace {

/// Line breaks in a node's name would shift every line after it.
std::string OneLine(std::string s) {
  for (char& c : s) {
    if (c == '\n' || c == '\r') c = ' ';
  }
  return s;
}

std::string LastLine(const std::string& text) {
  size_t end = text.find_last_not_of(" \n");
  if (end == std::string::npos) return "";
  size_t begin = text.rfind('\n', end);
  begin = begin == std::string::npos ? 0 : begin + 1;
  return text.substr(begin, end + 1 - begin);
}

/// The call as Relay text with its arguments by name.
std::string CallText(const CallNode* call, const std::unordered_map<const Object*, std::string>& names) {
  Array<Expr> args;
  for (const Expr& a : call->args) {
    auto it = names.find(a.get());
    args.push_back(it == names.end() ? a : Expr(relay::Var(it->second)));
  }
  auto n = relay::CallNode{.op = call->op, .args = args, .attrs = call->attrs};
  return OneLine(LastLine(AsText(Call(std::move(n)), false)));
}

/// A copy whose calls have other spans; what it shares stays shared, and types stay.
class Relocator : public relay::ExprMutator {
 public:
  explicit Relocator(const std::unordered_map<const Object*, Span>& spans) : spans_(spans) {}
  using relay::ExprMutator::VisitExpr_;
  Expr VisitExpr_(const CallNode* op) final {
    auto n = make_object<CallNode>(*op);
    Array<Expr> args;
    for (const Expr& a : op->args) args.push_back(VisitExpr(a));
    n->args = args;
    n->checked_type_ = op->checked_type_;  // a copy has none
    if (auto it = spans_.find(op); it != spans_.end()) n->span = it->second;
    return Call(n);
  }
  Expr VisitExpr_(const relay::TupleNode* op) final { return Typed(op, relay::ExprMutator::VisitExpr_(op)); }
  Expr VisitExpr_(const relay::TupleGetItemNode* op) final { return Typed(op, relay::ExprMutator::VisitExpr_(op)); }

 private:
  static Expr Typed(const relay::ExprNode* op, const Expr& e) {
    if (!e->checked_type_.defined()) e->checked_type_ = op->checked_type_;
    return e;
  }
  const std::unordered_map<const Object*, Span>& spans_;
};

}  // namespace

std::string OperatorsOf(const Function& func, size_t most) {
  std::string out;
  relay::PostOrder(func->body, [&](const Expr& e) {
    const auto* call = e.as<CallNode>();
    const auto* op = call ? call->op.as<OpNode>() : nullptr;
    if (op && out.size() < most) out += (out.empty() ? "" : " + ") + op->name.str();
  });
  return out;
}

Span SpanOfKernel(const CallNode* call) {
  const auto* func = call->op.as<relay::FunctionNode>();
  if (call->span.defined() || !func) return call->span;
  if (const Call anchor = relay::AnchorOf(GetRef<Function>(func)); anchor.defined() && anchor->span.defined()) {
    return anchor->span;
  }
  Span last;
  relay::PostOrder(func->body, [&](const Expr& e) {
    if (e.as<CallNode>() && e->span.defined()) last = e->span;
  });
  return last;
}

std::string SpanText(const Span& span) {
  if (!span.defined() || !span->source_name.defined()) return "";
  std::string name = OneLine(span->source_name->name.str());
  return span->line > 0 ? fmt::format("{}:{}", name, span->line) : name;
}

Span DebugSource::Line(const std::string& text, const Span& span) {
  std::string from = SpanText(span);
  text_ += text;
  if (!from.empty()) text_ += "  // " + from;
  text_ += "\n";
  ++lines_;
  if (span.defined() && span->line > 0) return span;  // the user's own text says it better
  return Span(SourceName(String(name_)), lines_, 1, lines_, 1);
}

Function DebugSource::Kernel(const std::string& symbol, const Function& func, const std::vector<std::string>& origins) {
  std::string from;
  for (size_t i = 0; i < origins.size() && i < 4; ++i) from += (i ? "; " : "  // ") + origins[i];
  if (origins.size() > 4) from += fmt::format("; and {} more", origins.size() - 4);
  std::unordered_map<const Object*, std::string> names;
  std::string params;
  for (size_t i = 0; i < func->params.size(); ++i) {
    const relay::Var& p = func->params[static_cast<int64_t>(i)];
    names[p.get()] = fmt::format("p{}", i);
    params += fmt::format("{}%p{}: {}", i ? ", " : "", i, OneLine(AsText(p->checked_type(), false)));
  }
  Line(fmt::format("%{} = fn ({}) {{{}", symbol, params, from), Span());
  std::unordered_map<const Object*, Span> spans;
  int count = 0;
  relay::PostOrder(func->body, [&](const Expr& e) {
    if (const auto* call = e.as<CallNode>()) {
      names[call] = fmt::format("v{}", count++);
      spans[call] = Line(fmt::format("  %{} = {};", names[call], CallText(call, names)), call->span);
    } else if (const auto* t = e.as<relay::TupleNode>()) {
      names[t] = fmt::format("v{}", count++);
      std::string fields;
      for (const Expr& f : t->fields) fields += (fields.empty() ? "%" : ", %") + names[f.get()];
      Line(fmt::format("  %{} = ({});", names[t], fields), t->span);
    } else if (const auto* g = e.as<relay::TupleGetItemNode>()) {
      if (auto it = names.find(g->tuple.get()); it != names.end())
        names[g] = fmt::format("{}.{}", it->second, g->index);
    }
  });
  Line("}", Span());
  Expr moved = Relocator(spans).VisitExpr(func->body);
  Function out = func;
  ObjectRef type = func->checked_type_;
  auto* n = out.CopyOnWrite();
  n->body = moved;
  n->checked_type_ = type;
  return out;
}

Span DebugSource::Step(const std::string& what, const Span& span) { return Line(what, span); }

}  // namespace baton::driver
