// SPDX-License-Identifier: Apache-2.0
// Passes over Relay. Each built-in pass is declared here and stands in src/relay/transform/<pass>.cpp.
#pragma once

#include <baton/ir/transform.h>
#include <baton/relay/expr.h>

namespace baton::relay {
class DFPattern;
}

namespace baton::relay::transform {

using baton::transform::MakePass;
using baton::transform::Pass;
using baton::transform::PassContext;
using baton::transform::PassInfo;
using baton::transform::RegisterPass;
using baton::transform::Sequential;

/// A pass over the Relay functions of a module.
class BATON_DLL FunctionPassNode : public Node<FunctionPassNode, baton::transform::FunctionPassNode> {
 public:
  static constexpr const char* _type_key = "relay.FunctionPass";
  static constexpr void Describe(auto&) {}
};
class FunctionPass : public Pass {
 public:
  BATON_DEFINE_OBJECT_REF_METHODS(FunctionPass, Pass, FunctionPassNode)
};
BATON_DLL Pass CreateFunctionPass(const TypedPackedFunc<Function(Function, IRModule, PassContext)>& pass_func,
                                  int opt_level, String name, Array<String> required);

BATON_DLL Pass InferType();
/// The type of an expression, which it gets in place together with its parts. Typed parts are taken as they are, so
/// asking while a graph is built costs what is new. `mod` (may be null) gives the types of globals and data types.
/// Throws CompileError with all that is wrong.
BATON_DLL Type InferTypeOf(const Expr& expr);
BATON_DLL Type InferTypeOf(const Expr& expr, const IRModule& mod);
/// `fold_qnn`: also operators on quantized tensors, which passes that look for them want to see.
BATON_DLL Pass FoldConstant(bool fold_qnn = false);
BATON_DLL Pass FoldWeights();
BATON_DLL Pass SimplifyInference();
/// `fp`: "strict", "contract" or "fast"; empty: what the option `fp` of the context says.
BATON_DLL Pass SimplifyExpr(String fp = String());
/// For each name a pattern, and a check of what it matches (or none at all): composite functions.
BATON_DLL Pass MergeComposite(Array<String> names, Array<DFPattern> patterns, Array<PackedFunc> checks);
/// float16 or bfloat16 where it is safe. missing_op_mode 0: operators that nobody knows are errors; 1, 2: they stay.
BATON_DLL Pass ToMixedPrecision(DataType mixed_precision_type = DataType::Float(16), int64_t missing_op_mode = 1);
/// For other compilers: annotations around what they take, joined to regions, and a function for each region.
BATON_DLL Pass AnnotateTarget(Array<String> targets = {}, bool include_non_call_ops = true);
BATON_DLL Pass MergeCompilerRegions();
BATON_DLL Pass PartitionGraph(String mod_name = "default", bool bind_constants = true);
BATON_DLL Pass InlineCompilerFunctions(Array<String> names = {});
BATON_DLL Pass CanonicalizeCast();
BATON_DLL Pass FastMath();
BATON_DLL Pass DeadCodeElimination(bool inline_once = false, bool ignore_impurity = false);
BATON_DLL Pass EliminateCommonSubexpr(PackedFunc fskip = nullptr);
/// Puts constant weights of nn.dense into the panels that kernels of the current target read.
BATON_DLL Pass PackDense();
BATON_DLL Pass FuseOps(int fuse_opt_level = -1);
BATON_DLL Pass FoldScaleAxis();
BATON_DLL Pass ForwardFoldScaleAxis();
BATON_DLL Pass BackwardFoldScaleAxis();
BATON_DLL Pass AlterOpLayout();
BATON_DLL Pass RemoveUnusedFunctions(Array<String> entry_functions);
BATON_DLL Pass ToANormalForm();
BATON_DLL Pass ToBasicBlockNormalForm();
BATON_DLL Pass ToGraphNormalForm();
BATON_DLL Pass LambdaLift();
BATON_DLL Pass Inline();
BATON_DLL Pass DefuseOps();
BATON_DLL Pass EtaExpand(bool expand_constructor = true, bool expand_global_var = false);
BATON_DLL Pass DynamicToStatic();
BATON_DLL Pass DecomposeOps();
/// Operators on quantized tensors become plain ones.
BATON_DLL Pass QnnCanonicalize();
/// What stands between qnn.dequantize and qnn.quantize in integers. hard_fail: errors of a program's rules are thrown.
BATON_DLL Pass FakeQuantizationToInteger(bool hard_fail = false, bool use_qat = false);
/// Convolutions between nn.space_to_batch_nd and nn.batch_to_space_nd become dilated ones.
BATON_DLL Pass FlattenAtrousConv();
BATON_DLL Pass CombineParallelConv2D(int64_t min_num_branches = 3);
BATON_DLL Pass CombineParallelDense(int64_t min_num_branches = 3, bool to_batch_matmul = true);
BATON_DLL Pass CombineParallelBatchMatmul(int64_t min_num_branches = 3);
/// @main gives (its result, (the gradient by each parameter)): of dataflow, and of all of Relay.
BATON_DLL Pass FirstOrderGradient();
BATON_DLL Pass Gradient();
/// @main takes a continuation, and back; and functions as values become data of the module.
BATON_DLL Pass ToCPS();
BATON_DLL Pass UnCPS();
BATON_DLL Pass Defunctionalization();
/// Replaces calls by what `attr_map_name` of their operator makes of them.
BATON_DLL Pass Legalize(String attr_map_name = "FTVMLegalize");
/// `desired_layouts`: operator -> layouts of its data and its weight, "default" for the usual one.
BATON_DLL Pass ConvertLayout(Map<String, Array<String>> desired_layouts = {});
/// Runs the program as far as it is known; DeadCodeElimination drops what is then not used.
BATON_DLL Pass PartialEvaluate();
/// Concatenations of more parts than that become several.
BATON_DLL Pass SplitArgs(int64_t max_function_args = 255);
/// Gives each expression a place in the program's text.
BATON_DLL Pass AnnotateSpans();
/// Leaves out zeros that are added and ones that are multiplied.
BATON_DLL Pass LazyGradientInit();
/// `default_device`: DLPack number of the device for what no annotation decides.
BATON_DLL Pass PlanDevices(int default_device = 1);

}  // namespace baton::relay::transform

namespace baton::transform {
template <>
struct PassCreator<relay::Function> {
  static Pass Create(PackedFunc f, int opt_level, String name, Array<String> required) {
    return relay::transform::CreateFunctionPass(
        TypedPackedFunc<relay::Function(relay::Function, IRModule, PassContext)>(f), opt_level, name, required);
  }
};
}  // namespace baton::transform
