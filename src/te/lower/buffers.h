// SPDX-License-Identifier: Apache-2.0
// Buffers of a group of tensors: parameters of the function, workspace, and which tensor lies where.
#pragma once

#include <baton/tir/stmt.h>

#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "te/lower/loops.h"

namespace baton::te::lower {

class GroupBuffers {
 public:
  /// Makes the parameters: a buffer for each input and output, then the variables of their shapes.
  GroupBuffers(const Array<Tensor>& inputs, const Array<Tensor>& outputs);

  /// Whether a placeholder is an input. It may be met through another Tensor object of the same operation.
  bool HoldsInput(const Tensor& placeholder);
  /// The flat buffer that holds the whole tensor, made when there is none.
  Buffer StoredBuffer(const Tensor& t);
  Buffer Workspace(const Array<PrimExpr>& shape, DataType dtype, const std::string& name);
  /// Flat view of the parameter of output `i`.
  const Buffer& output(size_t i) const { return out_buffers_[i]; }
  Names* names() { return &names_; }
  /// The function with this body, which allocates the workspace.
  tir::PrimFunc Function(const String& name, Stmt body) const;

 private:
  const Array<Tensor>& inputs_;
  const Array<Tensor>& outputs_;
  Names names_;
  Array<Var> params_;
  Map<Var, Buffer> buffer_map_;
  std::vector<Buffer> out_buffers_;
  std::unordered_set<const Object*> input_tensors_;
  std::unordered_map<const Object*, Buffer> flat_;  // tensor -> flat buffer of all of it
  std::vector<std::pair<std::pair<const Object*, int64_t>, Buffer>> stored_;
  std::vector<Buffer> workspace_;
};

}  // namespace baton::te::lower
