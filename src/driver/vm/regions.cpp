// SPDX-License-Identifier: Apache-2.0
// Code for regions: their kernels' calls, and the values that these read and make.
#include "driver/vm/function_builder.h"

namespace baton::driver {

using relay::TupleNode;
using vm::Opcode;

/// Makes code for the region that begins at `at`, and returns the place behind it; `at` itself if no kernel begins
/// here.
size_t FunctionBuilder::EmitRegion(const std::vector<Node*>& list, size_t at) {
  const Region region = former_.Form(list, at);
  if (region.refused && region.nodes.empty()) program_->NoteWhy(region.why);
  if (!region.is_work) {
    NoteOutside(list[at]);
    return at;
  }
  for (Node* n : region.before) EmitNode(n, false);
  const int32_t kernel = region.body.defined() ? EmitKernel(region) : -1;
  NoteEnd(kernel, region, list, &list != &values_.block(0));
  for (Node* n : region.behind) EmitNode(n, false);
  return region.end;
}

/// Appends the registers of the tensors of a value.
void FunctionBuilder::UseTensors(Node* n, const Type& type, std::vector<int32_t>* in) {
  struct Item {
    Type type;
    int32_t reg;
    int32_t next;
  };
  std::vector<Item> stack{{type, Use(GetRef<Expr>(n)), 0}};
  while (!stack.empty()) {
    Item& top = stack.back();
    const auto* tuple = top.type.as<TupleTypeNode>();
    if (!tuple) in->push_back(top.reg);
    if (!tuple || top.next == static_cast<int32_t>(tuple->fields.size())) {
      stack.pop_back();
      continue;
    }
    const int32_t i = top.next++, r = NewRegister();
    Emit(Opcode::kField, {r, top.reg, i});
    stack.push_back({tuple->fields[i], r, 0});
  }
}

/// The call of a region's kernel. Returns the number of the kernel.
int32_t FunctionBuilder::EmitKernel(const Region& region) {
  const int32_t kernel =
      region.open ? program_->OpenKernel(WithSizeVars(region.body, program_->SharedVars(region.body)), region.device)
                  : program_->Kernel(region.body, region.device);
  std::vector<int32_t> operands;
  for (const Region::Input& input : region.inputs) UseTensors(input.node, input.type, &operands);
  const auto inputs = static_cast<int32_t>(operands.size());
  const auto outputs = static_cast<int32_t>(region.body->body.as<TupleNode>()->fields.size());
  const int32_t base = next_register_;
  for (int32_t i = 0; i < outputs; ++i) operands.push_back(NewRegister());
  Emit(Opcode::kKernel, {kernel, inputs, outputs}, operands);
  for (const Region::Result& r : region.results) registers_[r.node] = PackResult(r.node, base + r.first);
  return kernel;
}

int32_t FunctionBuilder::PackResult(Node* n, int32_t next) {
  struct Item {
    Type type;
    std::vector<int32_t> fields;
  };
  std::vector<Item> stack{{n->checked_type(), {}}};
  for (;;) {
    Item& top = stack.back();
    int32_t r;
    const auto* tuple = top.type.as<TupleTypeNode>();
    if (!tuple) {
      r = next++;
    } else if (top.fields.size() == tuple->fields.size()) {
      r = NewRegister();
      Emit(Opcode::kTuple, {r, static_cast<int32_t>(top.fields.size())}, top.fields);
    } else {
      stack.push_back({tuple->fields[static_cast<int64_t>(top.fields.size())], {}});
      continue;
    }
    stack.pop_back();
    if (stack.empty()) return r;
    stack.back().fields.push_back(r);
  }
}

}  // namespace baton::driver
