// SPDX-License-Identifier: Apache-2.0
// Functions of quantized values: tables, where these take less time than computing.
#pragma once

#include <baton/ir/target.h>
#include <baton/relay/expr.h>
#include <baton/support/pointer_map.h>

#include <vector>

namespace baton::relay::transform {

/// Results of qnn.quantize that are functions of one byte: what operators compute, element by element, of one value
/// that qnn.dequantize restores. Values between that are quantized and restored are part of the function.
class ByteTables {
 public:
  explicit ByteTables(Target target) : target_(std::move(target)) {}
  /// Looks at a typed call of qnn.quantize. Operands come before.
  void Note(const CallNode* quantize);
  /// The bytes of which the call is a function that a table gives in less time; null: there are none.
  Expr BytesOf(const CallNode* quantize) const;
  /// The 256 results, computed from constants. `moved`: the bytes are stored as unsigned ones, 128 more.
  Expr Results(const CallNode* quantize, bool moved) const;

 private:
  struct Region {
    Expr bytes;               ///< null: several values decide the result
    std::vector<Expr> order;  ///< operands first; the call is the last
    int operations = 0;       ///< for a vector of elements
  };
  Region RegionOf(const CallNode* quantize, bool through) const;
  /// Operations of a table for a vector of elements.
  int OperationsOfTable() const;

  Target target_;
  PointerMap<Region> regions_;
};

/// The mean over the last dimensions of what qnn.dequantize restores, by an exact sum of bytes; null for other calls.
/// `bytes`: what `call`, typed, restores, as it is now; `zero`: its zero point, as it is now.
Expr MeanOfBytes(const CallNode* call, const Expr& bytes, double zero);

}  // namespace baton::relay::transform
