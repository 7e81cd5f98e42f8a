// SPDX-License-Identifier: Apache-2.0
// A node of ONNX whose operands decide more than values: its operands, of which some may be left out, and attributes.
#pragma once

#include "host/arrays.h"

namespace baton::host {

class OnnxNode {
 public:
  /// The parameter `present` says which operands there are.
  OnnxNode(const Params& p, const Arrays& in);

  bool Has(size_t i) const { return i < place_.size() && place_[i] >= 0; }
  /// Operand i; an error where it is left out.
  const NDArray& Get(size_t i) const;
  /// An operand of integers, as numbers; where it is left out the attribute that it was in early versions, or none.
  Ints IntsOf(size_t i, const char* attribute = nullptr) const;
  /// An operand of one integer.
  int64_t IntOf(size_t i) const;
  double NumberOf(size_t i) const;

  int64_t Int(const char* name, int64_t otherwise) const;
  std::string Text(const char* name, const char* otherwise) const;
  /// A number as a dimension of so many.
  int64_t Axis(int64_t axis, int64_t rank) const;
  /// The dtype of result i, as the model says.
  DataType ResultType(size_t i) const;
  size_t NumResults() const { return params_.At("dtypes").size(); }
  const Params& params() const { return params_; }
  [[noreturn]] void Fail(const std::string& what) const { params_.Fail(what); }

 private:
  const Params& params_;
  const Arrays& in_;
  std::vector<int> place_;  // in `in_`; -1: left out
};

}  // namespace baton::host
