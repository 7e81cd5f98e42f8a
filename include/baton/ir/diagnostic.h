// SPDX-License-Identifier: Apache-2.0
// Diagnostics: what is wrong with a program, where, and how to fix it. Several are collected before one error is
// thrown.
#pragma once

#include <baton/ir/span.h>
#include <baton/runtime/error.h>

#include <string>
#include <vector>

namespace baton {

enum class DiagnosticLevel : int32_t { kBug = 10, kError = 20, kWarning = 30, kNote = 40, kHelp = 50 };

struct DiagnosticNode : Node<DiagnosticNode, Object> {
  static constexpr const char* _type_key = "Diagnostic";
  DiagnosticLevel level = DiagnosticLevel::kError;
  Span span;
  String message;
  String label;
  String help;
  static constexpr void Describe(auto& d) {
    d(F<&DiagnosticNode::level>, "10 bug, 20 error, 30 warning, 40 note, 50 help.");
    d(F<&DiagnosticNode::span>, "Where; null if unknown.", kNullable);
    d(F<&DiagnosticNode::message>, "What was seen, with the actual values; then the rule.");
    d(F<&DiagnosticNode::label>, "Stands beside the caret: what the marked text is; may be empty.");
    d(F<&DiagnosticNode::help>, "A way out; may be empty.");
  }
};
class Diagnostic : public RefTo<DiagnosticNode, ObjectRef> {
 public:
  using RefTo::RefTo;
};

/// Collects diagnostics over several passes; handed to them as PassContext's `diag_ctx`.
struct DiagnosticContextNode : Node<DiagnosticContextNode, Object> {
  static constexpr const char* _type_key = "DiagnosticContext";
  mutable Array<Diagnostic> diagnostics;
  static constexpr void Describe(auto& d) { d(F<&DiagnosticContextNode::diagnostics>, "All so far, in order."); }
};
class DiagnosticContext : public RefTo<DiagnosticContextNode, ObjectRef> {
 public:
  using RefTo::RefTo;
};

/// As the user sees it, without a final line end:
///   model.relay:12:8: error: [nn.conv2d R3] `weight` has 4 input channels, `data` has 8 and groups = 1
///     12 |   %3 = nn.conv2d(%2, %w3, padding=[1, 1]);
///        |        ^~~~~~~~~ data: Tensor[(1, 8, 32, 32), float32], weight: Tensor[(16, 4, 3, 3), float32]
///     help: groups=2 satisfies data channels == weight channels * groups
BATON_DLL std::string RenderDiagnostic(const Diagnostic& d);

/// The findings of one stage, in order of discovery; at most `kMaxShown` are kept.
class BATON_DLL DiagnosticList {
 public:
  static constexpr size_t kMaxShown = 20;
  void Error(Span span, std::string message, std::string label = "", std::string help = "");
  void Add(Diagnostic d);
  bool empty() const { return list_.empty(); }
  bool full() const { return list_.size() >= kMaxShown; }
  size_t size() const { return list_.size(); }
  const std::vector<Diagnostic>& list() const { return list_; }
  void Clear() { list_.clear(); }
  /// Throws a CompileError with all of them, if there are any; adds them to `context` (a DiagnosticContext or null)
  /// first.
  void ThrowIfAny(const ObjectRef& context = ObjectRef()) const;

 private:
  std::vector<Diagnostic> list_;
};

}  // namespace baton
