// SPDX-License-Identifier: Apache-2.0
// Source locations: positions in the text or model that a program came from.
#pragma once

#include <baton/runtime/reflection.h>

namespace baton {

/// Name of a source: a file, or an ONNX node as "conv1 (Conv)".
struct SourceNameNode : Node<SourceNameNode, Object> {
  static constexpr const char* _type_key = "SourceName";
  String name;
  String text;
  static constexpr void Describe(auto& d) {
    d(F<&SourceNameNode::name>, "File, or node of the imported model.", kSource);
    d(F<&SourceNameNode::text>, "Its text, for messages that quote it; may be empty.", kIgnored, kTransient);
  }
};
class SourceName : public RefTo<SourceNameNode, ObjectRef> {
 public:
  using RefTo::RefTo;
};

/// A range of a source. Lines and columns count from 1; 0 is unknown.
struct SpanNode : Node<SpanNode, Object> {
  static constexpr const char* _type_key = "Span";
  SourceName source_name;
  int64_t line = 0;
  int64_t column = 0;
  int64_t end_line = 0;
  int64_t end_column = 0;
  static constexpr void Describe(auto& d) {
    d(F<&SpanNode::source_name>, "The source; null where it is not known.", kNullable);
    d(F<&SpanNode::line>, "First line, from 1.");
    d(F<&SpanNode::column>, "First column, from 1.");
    d(F<&SpanNode::end_line>, "Last line.");
    d(F<&SpanNode::end_column>, "Column behind the last character.");
  }
};
class Span : public RefTo<SpanNode, ObjectRef> {
 public:
  using RefTo::RefTo;
};

}  // namespace baton
