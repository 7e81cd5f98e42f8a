// SPDX-License-Identifier: Apache-2.0
#include <baton/ir/diagnostic.h>
#include <baton/runtime/registry.h>
#include <fmt/format.h>

#include <mutex>

namespace baton {
namespace {

const char* Word(DiagnosticLevel level) {
  switch (level) {
    case DiagnosticLevel::kBug:
      return "bug";
    case DiagnosticLevel::kError:
      return "error";
    case DiagnosticLevel::kWarning:
      return "warning";
    case DiagnosticLevel::kNote:
      return "note";
    case DiagnosticLevel::kHelp:
      return "help";
  }
  return "error";
}

std::string_view LineOf(std::string_view text, int64_t line) {
  for (int64_t i = 1; i < line; ++i) {
    size_t end = text.find('\n');
    if (end == std::string_view::npos) return {};
    text.remove_prefix(end + 1);
  }
  return text.substr(0, text.find('\n'));
}

/// Where the character that holds byte `at` begins.
size_t CharBegin(std::string_view s, size_t at) {
  while (at > 0 && at < s.size() && (static_cast<uint8_t>(s[at]) & 0xc0) == 0x80) --at;
  return at;
}

/// Characters, for the column that a terminal shows.
size_t Width(std::string_view s) {
  size_t n = 0;
  for (char c : s) n += (static_cast<uint8_t>(c) & 0xc0) != 0x80;
  return n;
}

/// The renderer of diagnostics, besides the error that is thrown.
class Renderer {
 public:
  static Renderer& Get() {
    static auto* renderer = new Renderer;
    return *renderer;
  }
  PackedFunc function() {
    std::lock_guard<std::mutex> lock(mutex_);
    return function_;
  }
  void Set(PackedFunc function) {
    std::lock_guard<std::mutex> lock(mutex_);
    function_ = std::move(function);
  }

 private:
  std::mutex mutex_;
  PackedFunc function_;
};

const RegisterNodes<DiagnosticNode, DiagnosticContextNode> registered_diagnostic;

}  // namespace

std::string RenderDiagnostic(const Diagnostic& d) {
  constexpr size_t kWindow = 100;  // characters of a long line that are shown
  std::string out;
  const SpanNode* s = d->span.get();
  if (s && s->source_name.defined() && !s->source_name->name.empty()) {
    out += s->source_name->name.view();
    if (s->line > 0) out += fmt::format(":{}:{}", s->line, s->column);
    out += ": ";
  } else if (s && s->line > 0) {
    out += fmt::format("{}:{}: ", s->line, s->column);
  }
  out += fmt::format("{}: {}", Word(d->level), d->message.view());
  std::string_view line =
      s && s->line > 0 && s->source_name.defined() ? LineOf(s->source_name->text.view(), s->line) : "";
  while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.remove_suffix(1);
  if (!line.empty() && s->column > 0) {
    size_t at = static_cast<size_t>(s->column - 1) < line.size() ? static_cast<size_t>(s->column - 1) : line.size();
    size_t end = s->end_line == s->line && s->end_column > s->column ? static_cast<size_t>(s->end_column - 1) : at + 1;
    if (s->end_line > s->line) end = line.size();
    if (end > line.size()) end = line.size();
    size_t from = at > kWindow * 3 / 4 ? CharBegin(line, at - kWindow / 2) : 0;
    size_t to = line.size() - from > kWindow ? CharBegin(line, from + kWindow) : line.size();
    std::string shown =
        (from ? "..." : "") + std::string(line.substr(from, to - from)) + (to < line.size() ? "..." : "");
    for (char& c : shown) {
      if (static_cast<uint8_t>(c) < 32) c = ' ';
    }
    std::string number = std::to_string(s->line);
    size_t before = (from ? 3 : 0) + Width(line.substr(from, at - from));
    size_t marked = end > at ? Width(line.substr(at, (end < to ? end : to) - at)) : 1;
    out += fmt::format("\n  {} | {}\n  {} | {}^{}", number, shown, std::string(number.size(), ' '),
                       std::string(before, ' '), std::string(marked > 1 ? marked - 1 : 0, '~'));
    if (!d->label.empty()) out += fmt::format(" {}", d->label.view());
  } else if (!d->label.empty()) {
    out += fmt::format("\n  {}", d->label.view());
  }
  if (!d->help.empty()) out += fmt::format("\n  help: {}", d->help.view());
  return out;
}

void DiagnosticList::Error(Span span, std::string message, std::string label, std::string help) {
  DiagnosticNode n;
  n.span = span;
  n.message = String(message);
  n.label = String(label);
  n.help = String(help);
  Add(Diagnostic(std::move(n)));
}

void DiagnosticList::Add(Diagnostic d) {
  if (!full()) list_.push_back(d);
}

void DiagnosticList::ThrowIfAny(const ObjectRef& context) const {
  if (list_.empty()) return;
  if (PackedFunc show = Renderer::Get().function(); show.defined()) {
    DiagnosticContextNode found;
    for (const Diagnostic& d : list_) found.diagnostics.push_back(d);
    show(DiagnosticContext(std::move(found)));
  }
  std::string all;
  const auto* ctx = context.as<DiagnosticContextNode>();
  for (const Diagnostic& d : list_) {
    if (ctx) ctx->diagnostics.push_back(d);
    all += (all.empty() ? "" : "\n") + RenderDiagnostic(d);
  }
  if (full()) all += fmt::format("\n{} errors; the rest is not shown", kMaxShown);
  throw CompileError(all);
}

}  // namespace baton

namespace {
using namespace baton;  // NOLINT
BATON_REGISTER_GLOBAL("diagnostics.DiagnosticContext").set_body_typed([] {
  return DiagnosticContext(DiagnosticContextNode());
});
BATON_REGISTER_GLOBAL("diagnostics.Render").set_body_typed([](Diagnostic d) { return RenderDiagnostic(d); });
BATON_REGISTER_GLOBAL("diagnostics.Emit").set_body_typed([](DiagnosticContext context, Diagnostic d) {
  context->diagnostics.push_back(d);
});
/// Sets what shows diagnostics before the error is thrown; null for nothing.
BATON_REGISTER_GLOBAL("diagnostics.SetRenderer").set_body([](runtime::Args args, runtime::RetValue*) {
  Renderer::Get().Set(args[0].is_null() ? PackedFunc() : args[0].As<PackedFunc>());
});
/// The text of the diagnostics from the n-th on; a CompileError if one of them is an error or a bug.
BATON_REGISTER_GLOBAL("diagnostics.RenderContext").set_body_typed([](DiagnosticContext context, int64_t from) {
  std::string text;
  bool wrong = false;
  for (int64_t i = from; i < static_cast<int64_t>(context->diagnostics.size()); ++i) {
    const Diagnostic& d = context->diagnostics[i];
    text += (text.empty() ? "" : "\n") + RenderDiagnostic(d);
    wrong |= d->level <= DiagnosticLevel::kError;
  }
  if (wrong) throw CompileError(text);
  return String(text);
});
}  // namespace
