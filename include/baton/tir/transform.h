// SPDX-License-Identifier: Apache-2.0
// Passes over PrimFuncs.
#pragma once

#include <baton/ir/transform.h>
#include <baton/tir/stmt.h>

namespace baton::tir::transform {

using baton::transform::MakePass;
using baton::transform::Pass;
using baton::transform::PassContext;
using baton::transform::PassInfo;
using baton::transform::PassOptions;
using baton::transform::RegisterPass;

/// A pass over the PrimFuncs of a module.
class BATON_DLL PrimFuncPassNode : public Node<PrimFuncPassNode, baton::transform::FunctionPassNode> {
 public:
  static constexpr const char* _type_key = "tir.PrimFuncPass";
  static constexpr void Describe(auto&) {}
};
class PrimFuncPass : public Pass {
 public:
  BATON_DEFINE_OBJECT_REF_METHODS(PrimFuncPass, Pass, PrimFuncPassNode)
};
/// Options of the pass UnrollLoop: which loops it writes out beside those marked so.
struct UnrollLoopConfigNode : PassOptions<UnrollLoopConfigNode> {
  static constexpr const char* _type_key = "tir.transform.UnrollLoopConfig";
  static constexpr const char* _doc =
      "Option `tir.UnrollLoop` of the context: which loops the pass UnrollLoop writes out beside those marked so.";
  int64_t auto_max_step = 0;
  int64_t auto_max_depth = 8;
  int64_t auto_max_extent = 0;
  bool explicit_unroll = true;
  static constexpr void Describe(auto& d) {
    d(F<&UnrollLoopConfigNode::auto_max_step>, "Statements up to which a nest of loops is written out by itself.",
      runtime::AtLeast(0));
    d(F<&UnrollLoopConfigNode::auto_max_depth>, "Nested loops up to which that happens.", runtime::AtLeast(0));
    d(F<&UnrollLoopConfigNode::auto_max_extent>, "Iterations up to which any loop is written out by itself.",
      runtime::AtLeast(0));
    d(F<&UnrollLoopConfigNode::explicit_unroll>, "Writes out loops marked unrolled; else they become plain loops.");
  }
};
class UnrollLoopConfig : public Attrs {
 public:
  BATON_DEFINE_OBJECT_REF_METHODS(UnrollLoopConfig, Attrs, UnrollLoopConfigNode)
};

/// Options of the pass LoopPartition: which loops it cuts.
struct LoopPartitionConfigNode : PassOptions<LoopPartitionConfigNode> {
  static constexpr const char* _type_key = "tir.transform.LoopPartitionConfig";
  static constexpr const char* _doc =
      "Option `tir.LoopPartition` of the context: which loops the pass LoopPartition cuts.";
  bool partition_const_loop = false;
  static constexpr void Describe(auto& d) {
    d(F<&LoopPartitionConfigNode::partition_const_loop>, "Cuts loops of known length too.");
  }
};
class LoopPartitionConfig : public Attrs {
 public:
  BATON_DEFINE_OBJECT_REF_METHODS(LoopPartitionConfig, Attrs, LoopPartitionConfigNode)
};

/// Options of the pass HoistIfThenElse: how far it moves conditions.
struct HoistIfThenElseConfigNode : PassOptions<HoistIfThenElseConfigNode> {
  static constexpr const char* _type_key = "tir.transform.HoistIfThenElseConfig";
  static constexpr const char* _doc =
      "Option `tir.HoistIfThenElse` of the context: how far the pass HoistIfThenElse moves conditions.";
  String variant;
  bool support_block_scope_hosting = false;
  static constexpr void Describe(auto& d) {
    d(F<&HoistIfThenElseConfigNode::variant>,
      "\"basic\" wants the condition directly within its loops; empty: bindings and allocations may stand between.");
    d(F<&HoistIfThenElseConfigNode::support_block_scope_hosting>,
      "Conditions move out of marked scopes (tir.AttrStmt) between loops too.");
  }
};
class HoistIfThenElseConfig : public Attrs {
 public:
  BATON_DEFINE_OBJECT_REF_METHODS(HoistIfThenElseConfig, Attrs, HoistIfThenElseConfigNode)
};

/// Options of the pass InjectDoubleBuffer: how it writes loops.
struct InjectDoubleBufferConfigNode : PassOptions<InjectDoubleBufferConfigNode> {
  static constexpr const char* _type_key = "tir.transform.InjectDoubleBufferConfig";
  static constexpr const char* _doc =
      "Option `tir.InjectDoubleBuffer` of the context: how the pass InjectDoubleBuffer writes loops.";
  int64_t split_loop = 1;
  static constexpr void Describe(auto& d) {
    d(F<&InjectDoubleBufferConfigNode::split_loop>,
      "Iterations that are written out one after the other; with an even number the half that each uses is known.",
      runtime::AtLeast(0));
  }
};
class InjectDoubleBufferConfig : public Attrs {
 public:
  BATON_DEFINE_OBJECT_REF_METHODS(InjectDoubleBufferConfig, Attrs, InjectDoubleBufferConfigNode)
};

BATON_DLL Pass CreatePrimFuncPass(const TypedPackedFunc<PrimFunc(PrimFunc, IRModule, PassContext)>& pass_func,
                                  int opt_level, String name, Array<String> required);

/// The passes between written loops and code generation, in order.
BATON_DLL Pass LowerPipeline();

}  // namespace baton::tir::transform

namespace baton::transform {
template <>
struct PassCreator<tir::PrimFunc> {
  static Pass Create(PackedFunc f, int opt_level, String name, Array<String> required) {
    return tir::transform::CreatePrimFuncPass(TypedPackedFunc<tir::PrimFunc(tir::PrimFunc, IRModule, PassContext)>(f),
                                              opt_level, name, required);
  }
};
}  // namespace baton::transform
