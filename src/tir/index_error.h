// SPDX-License-Identifier: Apache-2.0
// The message of an AssertStmt about an index: text with two numbers that are known when it fails.
#pragma once

#include <baton/tir/intrin.h>
#include <baton/tir/stmt.h>

namespace baton::tir {

/// `format`: as printf's, with %ld twice: for the index and for the extent, which are int64.
inline PrimExpr IndexError(const std::string& format, const PrimExpr& index, const PrimExpr& extent) {
  return Call(DataType::Handle(), intrin::index_error, {StringImm(String(format)), index, extent});
}
/// The call of such a message; null for another.
inline const CallNode* IndexErrorOf(const AssertStmtNode* assertion) {
  const auto* call = assertion->message.as<CallNode>();
  return call && call->op == intrin::index_error ? call : nullptr;
}

}  // namespace baton::tir
