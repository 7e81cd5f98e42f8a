// SPDX-License-Identifier: Apache-2.0
#include "te/lower/buffers.h"

#include <baton/tir/expr.h>
#include <baton/tir/functor.h>
#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

namespace baton::te::lower {

namespace {

Buffer FlatView(const Buffer& b, const Array<PrimExpr>& shape) {
  tir::BufferNode n = *b.get();
  n.shape = {Product(shape)};
  return Buffer(std::move(n));
}

/// The sizes that a statement reads.
struct SizesIn final : tir::StmtExprVisitor {
  explicit SizesIn(const Stmt& body) { VisitStmt(body); }
  void VisitExpr_(const tir::VarNode* op) final {
    if (op->IsInstance<tir::SizeVarNode>() && seen.insert(op).second) vars.push_back(GetRef<Var>(op));
  }
  std::unordered_set<const Object*> seen;
  Array<Var> vars;
};

}  // namespace

GroupBuffers::GroupBuffers(const Array<Tensor>& inputs, const Array<Tensor>& outputs)
    : inputs_(inputs), outputs_(outputs) {
  for (const Tensor& t : inputs) input_tensors_.insert(t.get());
  std::unordered_set<const Object*> bound;
  Array<Var> sizes;
  auto add = [&](const Tensor& t, std::string base, bool input) {
    Buffer b = Buffer::Make(t.shape(), t.dtype(), names_.Unique(base));
    Var p(b->name, DataType::Handle());
    params_.push_back(p);
    buffer_map_.Set(p, b);
    if (input) {
      flat_[t.get()] = FlatView(b, t.shape());
    } else {
      out_buffers_.push_back(FlatView(b, t.shape()));
    }
    for (const PrimExpr& d : t.shape()) {
      tir::PostOrderVisitExpr(d, [&](const PrimExpr& x) {
        if (x.as<tir::AnyNode>())
          throw CompileError(
              fmt::format("tensor `{}` has an unknown dimension; give it a variable", t->op->name.str()));
        if (const auto* v = x.as<tir::VarNode>(); v && bound.insert(v).second) sizes.push_back(GetRef<Var>(v));
      });
    }
  };
  for (const Tensor& t : inputs_) {
    if (!t->op.as<PlaceholderOpNode>())
      throw InternalError("an input of LowerToPrimFunc is no placeholder: " + t->op->name.str());
    add(t, t->op->name.str(), true);
  }
  for (const Tensor& t : outputs_) add(t, "T_" + t->op->name.str(), false);
  for (const Var& v : sizes) params_.push_back(v);
  for (size_t i = 0; i < outputs_.size(); ++i) {
    if (!flat_.count(outputs_[i].get())) flat_[outputs_[i].get()] = out_buffers_[i];
  }
}

bool GroupBuffers::HoldsInput(const Tensor& t) {
  if (input_tensors_.count(t.get())) return true;
  for (const Tensor& in : inputs_) {
    if (in->op.same_as(t->op) && in->value_index == t->value_index) {
      flat_[t.get()] = flat_[in.get()];
      return true;
    }
  }
  return false;
}

Buffer GroupBuffers::StoredBuffer(const Tensor& t) {
  auto it = flat_.find(t.get());
  if (it != flat_.end()) return it->second;
  // Outputs that were met through another Tensor object.
  for (size_t i = 0; i < outputs_.size(); ++i) {
    if (outputs_[i]->op.same_as(t->op) && outputs_[i]->value_index == t->value_index)
      return flat_[t.get()] = flat_[outputs_[i].get()];
  }
  for (const auto& [key, b] : stored_) {
    if (key.first == t->op.get() && key.second == t->value_index) return flat_[t.get()] = b;
  }
  Buffer b = Workspace(t.shape(), t.dtype(), t->op->name.str());
  stored_.push_back({{t->op.get(), t->value_index}, b});
  return flat_[t.get()] = b;
}

Buffer GroupBuffers::Workspace(const Array<PrimExpr>& shape, DataType dtype, const std::string& name) {
  Buffer b = Buffer::Make({Product(shape)}, dtype, names_.Unique(name));
  workspace_.push_back(b);
  return b;
}

tir::PrimFunc GroupBuffers::Function(const String& name, Stmt body) const {
  for (size_t i = workspace_.size(); i-- > 0;) body = AllocateStmt(workspace_[i], body);
  Array<Var> params = params_;
  // Sizes of what is between inputs and outputs alone: rows that are sliced off a table and added up.
  for (const Var& v : SizesIn(body).vars) {
    if (std::none_of(params.begin(), params.end(), [&](const Var& p) { return p.same_as(v); })) params.push_back(v);
  }
  tir::PrimFunc f(params, body, buffer_map_);
  f = WithAttr(f, attr::kGlobalSymbol, name);
  f = WithAttr(f, attr::kNoAlias, true);
  return f;
}

}  // namespace baton::te::lower
