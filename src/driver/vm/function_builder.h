// SPDX-License-Identifier: Apache-2.0
// Translates one Relay function to bytecode over virtual registers.
#pragma once

#include <baton/relay/op.h>
#include <baton/relay/op/annotation.h>
#include <baton/support/pointer_map.h>
#include <relay/transform/plan_devices.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "driver/vm/compile.h"
#include "driver/vm/form_regions.h"
#include "driver/vm/function_values.h"

namespace baton::driver {

/// The tables that all functions of a program share.
class ProgramBuilder {
 public:
  ProgramBuilder(IRModule mod, const std::vector<DeviceTarget>& devices, int64_t fallback,
                 std::vector<RegionNote>* notes);
  VmProgram Build();

  int32_t FunctionOf(const GlobalVar& var);
  int32_t AddLambda(const VmLambda& lambda);
  int32_t ConstructorFunction(const Constructor& ctor);
  int32_t Constant(const NDArray& value, int32_t device = 0);
  int32_t Message(const std::string& text);
  int32_t View(const TensorType& type);
  /// The host function of a call.
  int32_t Packed(const relay::CallNode* call);
  const vm::PackedSlot& PackedAt(int32_t slot) const { return out_.program.packed[static_cast<size_t>(slot)]; }
  PointerMap<tir::Var> SharedVars(const relay::Function& f);
  /// A kernel of this body; inputs are its parameters.
  int32_t Kernel(const relay::Function& graph, int32_t device);
  int32_t OpenKernel(const relay::Function& region, int32_t device);
  /// Notes why a call is in no kernel.
  void NoteWhy(const std::string& why) { why_ = why; }
  /// Where boundaries of regions are noted; null if they are not asked for.
  std::vector<RegionNote>* notes() const { return notes_; }

  /// For several devices: the number in the program of the one that a value lies on; 0 for what lies nowhere.
  int32_t DeviceOf(const relay::ExprNode* n) const {
    const int64_t* type = placed_.device.Find(n);
    return type ? DeviceIndex(*type) : 0;
  }
  int32_t DeviceIndex(int64_t type) const;
  size_t NumDevices() const { return out_.program.NumDevices(); }
  /// What its code is made of.
  Target TargetOf(int32_t device) const;
  /// Whether each value of the program has a device; its stretches are optimised one by one, each for its own.
  bool several() const { return !out_.program.devices.empty(); }
  /// Notes what the instruction at a word of a function copies, if that is between two devices.
  void NoteCopy(vm::CopyNote note, const Type& type);
  /// Notes where an instruction that calls a host function comes from.
  void NoteHost(HostStep note) { out_.host.push_back(std::move(note)); }

 private:
  int32_t Reserve(const std::string& name);
  int32_t ProcessSlot(const Op& op, const Attrs& attrs, int32_t device);
  /// The slot of a function over arrays.
  int32_t HostSlot(const std::string& name, const relay::HostCall& call, int32_t device);
  vm::Entry EntryOf(const std::string& name, int32_t index, const relay::Function& f) const;
  IRModule mod_;
  relay::transform::PlacedModule placed_;
  VmProgram out_;
  std::vector<DeviceTarget> targets_;
  std::vector<RegionNote>* notes_;
  std::vector<VmLambda> queue_;
  std::map<std::string, int32_t> globals_;
  PointerMap<int32_t> wrappers_;
  std::string why_;  // the call that ended a stretch last has no code for open extents
  std::map<std::tuple<std::string, std::string, int32_t>, int32_t> host_;  // by maker, parameters, device
  std::map<uint64_t, std::vector<int32_t>> kernels_;                       ///< of a hash
  std::map<std::string, int32_t> messages_;
  std::map<std::string, tir::Var> size_vars_;
};

class FunctionBuilder {
 public:
  FunctionBuilder(ProgramBuilder* program, const VmLambda& lambda);
  vm::Function Build();

 private:
  using Expr = relay::Expr;
  using Node = const relay::ExprNode;
  using Label = size_t;

  bool IsPlacedConstant(Node* n) const { return values_.PlacedConstant(n) != nullptr; }
  Expr Resolve(const Expr& e) const { return values_.Resolve(e); }
  Node* Resolve(Node* n) const { return values_.Resolve(n); }
  std::vector<Node*> CapturesOf(const relay::FunctionNode* f, std::vector<Node*>* elsewhere) const;

  // ---- Code.
  void Emit(vm::Opcode op, std::initializer_list<int32_t> operands, const std::vector<int32_t>& more = {});
  void EmitJump(vm::Opcode op, std::initializer_list<int32_t> operands, Label label);
  int32_t NewRegister() { return next_register_++; }
  Label NewLabel() {
    labels_.push_back(0);
    return labels_.size() - 1;
  }
  void Place(Label label) { labels_[label] = code_.size(); }
  int32_t Use(const Expr& e);
  std::vector<int32_t> Uses(const Array<Expr>& exprs);
  const VmLambda& LambdaOf(const relay::FunctionNode* f);

  // ---- Blocks. Work that is left is a stack, so that nesting of any depth needs no recursion.
  void Block(int32_t block, const Expr& value, int32_t dst, bool tail);
  void Step(int32_t block, size_t at, Expr value, int32_t dst, bool tail);
  void EmitNode(Node* n, bool tail);
  void EmitCall(const relay::CallNode* call, bool tail);
  void EmitCopy(const relay::CallNode* call, const relay::DeviceCopyAttrs& copy);
  void NotePackedCopies(const relay::CallNode* call, const vm::PackedSlot& slot);
  void NoteCopy(Node* by, Node* value, const Type& type, int32_t from, int32_t to, std::string because);
  std::string Describe(Node* n) const;
  std::string ReadersOf(Node* n) const;
  void EmitIf(const relay::IfNode* n, int32_t dst, bool tail);
  void EmitMatch(const relay::MatchNode* n, int32_t dst, bool tail);
  void EmitPattern(const relay::Pattern& pattern, int32_t data, Label else_label);

  // ---- Stretches of tensor work: regions.cpp.
  size_t EmitRegion(const std::vector<Node*>& list, size_t at);
  int32_t EmitKernel(const Region& region);
  void UseTensors(Node* n, const Type& type, std::vector<int32_t>* in);
  /// Makes the value of `n` out of the registers of its tensors from `next` on.
  int32_t PackResult(Node* n, int32_t next);
  void NoteEnd(int32_t kernel, const Region& region, const std::vector<Node*>& list, bool branch);
  void NoteOutside(Node* n);

  ProgramBuilder* program_;
  const VmLambda& lambda_;
  FunctionValues values_;
  RegionFormer former_;
  PointerMap<int32_t> registers_;
  PointerMap<std::shared_ptr<VmLambda>> lambdas_;
  PointerMap<std::vector<Node*>> copies_;  // that have been made, by the value that is copied
  std::vector<std::function<void()>> work_;
  std::vector<int32_t> code_;
  std::vector<size_t> labels_;
  std::vector<size_t> jumps_;  // words that hold a label
  int32_t next_register_ = 0;
  PointerSet told_;  // expressions at which regions were noted to end
};

}  // namespace baton::driver
