// SPDX-License-Identifier: Apache-2.0
// The pass between Relay and TIR.
#pragma once

#include <baton/ir/attrs.h>
#include <baton/ir/transform.h>
#include <baton/runtime/ndarray.h>

#include <memory>
#include <string>

#include "driver/vm/compile.h"

namespace baton::driver {

/// Attribute of the module that LowerToTIR makes: its Lowering.
inline constexpr const char* kLowering = "lowering";

/// The output of lowering beside PrimFuncs: how the entry of a model, or the kernels of a program, are called, and on
/// what data. A model that is one function is kept in files; a program lives in memory alone.
struct LoweringNode : Node<LoweringNode, Object> {
  static constexpr const char* _type_key = "driver.Lowering";
  static constexpr const char* _doc = "What lowering leaves beside PrimFuncs: how they are called, and on what data.";
  static constexpr bool _type_has_hidden_members = true;  // `made`
  String description;
  Array<NDArray> constants;
  Array<int64_t> offsets;
  Array<String> guards;
  std::shared_ptr<const LoweredProgram> made;  ///< null for what a file says
  static constexpr void Describe(auto& d) {
    d(F<&LoweringNode::description>, "JSON of a model that is one function: its inputs, results and memory.");
    d(F<&LoweringNode::constants>, "Constants of such a model.");
    d(F<&LoweringNode::offsets>, "Where each lies in the constant data, in bytes.");
    d(F<&LoweringNode::guards>, "What must hold of the dimensions of inputs, in words.");
  }
};
class Lowering : public RefTo<LoweringNode, ObjectRef> {
 public:
  using RefTo::RefTo;
  explicit Lowering(LoweredProgram made);
  /// Returns the lowering of a module that LowerToTIR made. Throws CompileError for another.
  static Lowering Of(const IRModule& mod);
  /// The program; of a model from a file it is read from the description.
  std::shared_ptr<const LoweredProgram> Made() const;
};

struct LowerToTIROptions : transform::PassOptions<LowerToTIROptions> {
  static constexpr auto _type_key = "relay.transform.LowerToTIROptions";
  String target;
  Map<String, String> devices;
  bool program = false;
  static constexpr void Describe(auto& d) {
    d(F<&LowerToTIROptions::target>,
      "What code is to be made for, as text; empty: the target in scope, else this machine.");
    d(F<&LowerToTIROptions::devices>, "Of a planned program in its place: targets by the names of their devices.");
    d(F<&LowerToTIROptions::program>, "Whether each function can be called by name, as programs of bytecode have it.");
  }
};
/// Relay behind fusion to PrimFuncs: a kernel for each distinct group of operators, and the entry that calls them.
transform::Pass LowerToTIR(const LowerToTIROptions& options = {});

}  // namespace baton::driver
