// SPDX-License-Identifier: Apache-2.0
// A text for debug information to point into: every Relay expression that has code, one a line.
#pragma once

#include <baton/relay/expr.h>

#include <string>
#include <vector>

namespace baton::driver {

/// "nn.conv2d + add + nn.relu": the operators of a fusion group in order; none begins behind so many characters.
std::string OperatorsOf(const relay::Function& func, size_t most = std::string::npos);
/// Where a call of a fused group comes from: its own span, else that of the group's main operator, else of the last one
/// inside that has any.
Span SpanOfKernel(const relay::CallNode* call);
/// A span as text: the ONNX node, or file:line. Empty if unknown.
std::string SpanText(const Span& span);

/// Expressions of an imported model know which node of it they come from, but no line. They get one in a text of our
/// own, which says what they compute and where they come from. Expressions of Relay text keep their file and line.
class DebugSource {
 public:
  /// `name`: the file's name as debug information has it.
  explicit DebugSource(std::string name) : name_(std::move(name)) {}

  /// Writes down a kernel and gives it back with lines at its expressions. `origins`: what the calls of it come from.
  relay::Function Kernel(const std::string& symbol, const relay::Function& func,
                         const std::vector<std::string>& origins);
  /// Writes down a step of the model's entry function.
  Span Step(const std::string& what, const Span& span);
  const std::string& text() const { return text_; }

 private:
  Span Line(const std::string& text, const Span& span);

  std::string name_, text_;
  int64_t lines_ = 0;
};

}  // namespace baton::driver
