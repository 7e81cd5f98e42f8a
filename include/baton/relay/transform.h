// SPDX-License-Identifier: Apache-2.0
// Passes over Relay. Each built-in pass is declared here and defined in src/relay/transform/<pass>.cpp.
#pragma once

#include <baton/ir/transform.h>
#include <baton/relay/expr.h>

namespace baton::relay::transform {

using baton::transform::MakePass;
using baton::transform::Pass;
using baton::transform::PassContext;
using baton::transform::PassInfo;
using baton::transform::PassOptions;
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
/// The same; null where an operator refuses its operands.
BATON_DLL Type TypeIfAny(const Expr& expr);

/// Bounds of constant folding while this is there: operations, and bytes that it makes, for all passes of this
/// thread together, by the constants that the program has when it begins. Without one each run of a pass has as much
/// by itself. An inner one changes nothing.
class BATON_DLL FoldingBudget {
 public:
  explicit FoldingBudget(const IRModule& mod);
  /// Of one expression.
  explicit FoldingBudget(const Expr& root);
  ~FoldingBudget();
  FoldingBudget(const FoldingBudget&) = delete;
  FoldingBudget& operator=(const FoldingBudget&) = delete;
  static FoldingBudget& Current();
  /// Counts work; false, and nothing is counted, where it is more than what is left.
  bool Take(double flops, double bytes);

 private:
  void Begin(double constant_bytes);
  double flops_ = 0, bytes_ = 0;
  bool outermost_ = false;
};

struct FoldConstantOptions : PassOptions<FoldConstantOptions> {
  static constexpr auto _type_key = "relay.transform.FoldConstantOptions";
  bool fold_qnn = false;
  static constexpr void Describe(auto& d) {
    d(F<&FoldConstantOptions::fold_qnn>,
      "Evaluates operators on quantized tensors (qnn.*) too, which other passes look for.");
  }
};
BATON_DLL Pass FoldConstant(const FoldConstantOptions& options = {});

struct FoldWeightsOptions : PassOptions<FoldWeightsOptions> {
  static constexpr auto _type_key = "relay.transform.FoldWeightsOptions";
  int64_t max_bytes = int64_t{256} << 20;
  static constexpr void Describe(auto& d) {
    d(F<&FoldWeightsOptions::max_bytes>, "Bytes by which the pass may make a program larger.");
  }
};
BATON_DLL Pass FoldWeights(const FoldWeightsOptions& options = {});

struct SimplifyInferenceOptions : PassOptions<SimplifyInferenceOptions> {
  static constexpr auto _type_key = "relay.transform.SimplifyInferenceOptions";
  /// As built-in pipelines do it: norms have kernels that are faster than their parts.
  static SimplifyInferenceOptions KeepNorms() {
    SimplifyInferenceOptions out;
    out.norms = false;
    return out;
  }
  bool norms = true;
  static constexpr void Describe(auto& d) {
    d(F<&SimplifyInferenceOptions::norms>, "Takes layer_norm, group_norm, instance_norm and l2_normalize apart, too.");
  }
};
BATON_DLL Pass SimplifyInference(const SimplifyInferenceOptions& options = {});

struct SimplifyExprOptions : PassOptions<SimplifyExprOptions> {
  static constexpr auto _type_key = "relay.transform.SimplifyExprOptions";
  String fp;
  static constexpr void Describe(auto& d) {
    d(F<&SimplifyExprOptions::fp>,
      "What may change in floating values: \"strict\" nothing, \"contract\" NaN and the sign of zero, "
      "\"fast\" rounding too. Empty: what the option `fp` of the context says, or \"strict\". \"relay\": the same, but "
      "what "
      "Relay 0.8's pass changed if the context says nothing; what programs of Python have without one.");
  }
};
BATON_DLL Pass SimplifyExpr(const SimplifyExprOptions& options = {});

struct MergeCompositeOptions;  // in merge_composite.cpp: patterns are included by those alone that need them
BATON_DLL Pass MergeComposite(const MergeCompositeOptions& options);

/// float16 or bfloat16 where it is safe.
struct ToMixedPrecisionOptions : PassOptions<ToMixedPrecisionOptions> {
  static constexpr auto _type_key = "relay.transform.ToMixedPrecisionOptions";
  DataType mixed_precision_type = DataType::Float(16);
  int64_t missing_op_mode = 1;
  bool keep_orig_output_dtype = false;
  static constexpr void Describe(auto& d) {
    d(F<&ToMixedPrecisionOptions::mixed_precision_type>, "float16, bfloat16 or float64.");
    d(F<&ToMixedPrecisionOptions::missing_op_mode>,
      "What becomes of operators without a rule: 0 makes them an error, 1 and 2 leave them as they are.");
    d(F<&ToMixedPrecisionOptions::keep_orig_output_dtype>,
      "Whether the results of `main` are float32 as before; else they stay as narrow as they were computed.");
  }
};
BATON_DLL Pass ToMixedPrecision(const ToMixedPrecisionOptions& options = {});

/// For other compilers: annotations around what they take, joined to regions, and a function for each region.
struct AnnotateTargetOptions : PassOptions<AnnotateTargetOptions> {
  static constexpr auto _type_key = "relay.transform.AnnotateTargetOptions";
  Array<String> targets;
  bool include_non_call_ops = true;
  static constexpr void Describe(auto& d) {
    d(F<&AnnotateTargetOptions::targets>, "Names of the compilers, in the order of preference.");
    d(F<&AnnotateTargetOptions::include_non_call_ops>, "Marks tuples of what one of them computes, too.");
  }
};
BATON_DLL Pass AnnotateTarget(const AnnotateTargetOptions& options = {});

BATON_DLL Pass MergeCompilerRegions();

struct PartitionGraphOptions : PassOptions<PartitionGraphOptions> {
  static constexpr auto _type_key = "relay.transform.PartitionGraphOptions";
  String mod_name = "default";
  bool bind_constants = true;
  static constexpr void Describe(auto& d) {
    d(F<&PartitionGraphOptions::mod_name>, "Part of the functions' names, tvmgen_default_NAME_main_0.");
    d(F<&PartitionGraphOptions::bind_constants>, "Constants stand in the functions; else they are arguments.");
  }
};
BATON_DLL Pass PartitionGraph(const PartitionGraphOptions& options = {});

struct InlineCompilerFunctionsOptions : PassOptions<InlineCompilerFunctionsOptions> {
  static constexpr auto _type_key = "relay.transform.InlineCompilerFunctionsOptions";
  Array<String> names;
  static constexpr void Describe(auto& d) {
    d(F<&InlineCompilerFunctionsOptions::names>, "Inlines these functions alone; empty: all that PartitionGraph made.");
  }
};
BATON_DLL Pass InlineCompilerFunctions(const InlineCompilerFunctionsOptions& options = {});

BATON_DLL Pass CanonicalizeCast();
BATON_DLL Pass FastMath();

struct DeadCodeEliminationOptions : PassOptions<DeadCodeEliminationOptions> {
  static constexpr auto _type_key = "relay.transform.DeadCodeEliminationOptions";
  bool inline_once = false;
  bool ignore_impurity = false;
  static constexpr void Describe(auto& d) {
    d(F<&DeadCodeEliminationOptions::inline_once>,
      "Puts values that are used once in their place, unless they read or write state.");
    d(F<&DeadCodeEliminationOptions::ignore_impurity>, "Drops bindings that have effects, too.");
  }
};
BATON_DLL Pass DeadCodeElimination(const DeadCodeEliminationOptions& options = {});

struct EliminateCommonSubexprOptions : PassOptions<EliminateCommonSubexprOptions> {
  static constexpr auto _type_key = "relay.transform.EliminateCommonSubexprOptions";
  PackedFunc fskip;
  static constexpr void Describe(auto& d) {
    d(F<&EliminateCommonSubexprOptions::fskip>, "`fskip(call)`: true leaves a call alone; null leaves none.",
      kNullable);
  }
};
BATON_DLL Pass EliminateCommonSubexpr(const EliminateCommonSubexprOptions& options = {});

/// One nn.attention in place of the products and the softmax that programs spell it out with.
BATON_DLL Pass FuseAttention();

/// Puts constant weights of nn.dense into the panels that kernels of the current target read.
BATON_DLL Pass PackDense();
/// Puts constant weights of few bits (`nn.contrib_matmul_nbits`) into panels, as the kernel reads them.
BATON_DLL Pass PackFewBits();
/// Attribute of main: by the name of an input, that of the output which is the input with new elements behind it.
inline constexpr const char* kState = "state";
/// Output of StateToBuffers: the numbers of the inputs that are states, in order. As many results, the last
/// ones, are what memory.append makes of them.
inline constexpr const char* kStateInputs = "state_inputs";
BATON_DLL Pass StateToBuffers();
BATON_DLL Pass NarrowWeights();
BATON_DLL Pass RepeatWidening();
BATON_DLL Pass LiftWeightScales();
/// float32 in place of half floats, in which processors do not compute.
struct WidenHalfFloatsOptions : PassOptions<WidenHalfFloatsOptions> {
  static constexpr auto _type_key = "relay.transform.WidenHalfFloatsOptions";
  bool asked = false;
  static constexpr void Describe(auto& d) {
    d(F<&WidenHalfFloatsOptions::asked>,
      "Half floats are there because a precision was asked for (ToMixedPrecision): products keep them where the target "
      "adds products of "
      "them, so does what lies in memory for those, and other values are not rounded. Weights are.");
  }
};
BATON_DLL Pass WidenHalfFloats(const WidenHalfFloatsOptions& options = {});
BATON_DLL Pass IntegerProducts();
BATON_DLL Pass IntegersInFloat();

struct FuseOpsOptions : PassOptions<FuseOpsOptions> {
  static constexpr auto _type_key = "relay.transform.FuseOpsOptions";
  FuseOpsOptions() = default;
  FuseOpsOptions(int32_t level) : fuse_opt_level(level) {}  // NOLINT: FuseOps(2), as Relay has it in C++
  /// As built-in pipelines fuse.
  static FuseOpsOptions ViewsOutside() {
    FuseOpsOptions out;
    out.views = false;
    out.max_depth = 64;
    return out;
  }
  int32_t fuse_opt_level = -1;
  int64_t max_depth = 256;
  bool views = true;
  static constexpr void Describe(auto& d) {
    d(F<&FuseOpsOptions::fuse_opt_level>, "Level that decides what is fused: 0 fuses nothing, -1 takes the context's.");
    d(F<&FuseOpsOptions::max_depth>,
      "Largest number of operators in one kernel; more than 256 is 256. Built-in pipelines have 64.",
      runtime::AtLeast(1));
    d(F<&FuseOpsOptions::views>,
      "Whether a reshape and its like, a split, and what is joined may be part of a kernel. Built-in pipelines leave "
      "them outside.");
  }
};
BATON_DLL Pass FuseOps(const FuseOpsOptions& options = {});

BATON_DLL Pass FoldScaleAxis();
BATON_DLL Pass ForwardFoldScaleAxis();
BATON_DLL Pass BackwardFoldScaleAxis();
BATON_DLL Pass AlterOpLayout();

struct RemoveUnusedFunctionsOptions : PassOptions<RemoveUnusedFunctionsOptions> {
  static constexpr auto _type_key = "relay.transform.RemoveUnusedFunctionsOptions";
  RemoveUnusedFunctionsOptions() = default;
  RemoveUnusedFunctionsOptions(Array<String> entries) : entry_functions(std::move(entries)) {}  // NOLINT
  Array<String> entry_functions = {"main"};
  static constexpr void Describe(auto& d) {
    d(F<&RemoveUnusedFunctionsOptions::entry_functions>, "Functions that stay, with all that they reach.");
  }
};
BATON_DLL Pass RemoveUnusedFunctions(const RemoveUnusedFunctionsOptions& options = {});

BATON_DLL Pass ToANormalForm();
BATON_DLL Pass ToBasicBlockNormalForm();
BATON_DLL Pass ToGraphNormalForm();
BATON_DLL Pass LambdaLift();
BATON_DLL Pass Inline();
BATON_DLL Pass DefuseOps();
/// Gives unknown extents of main's parameters names.
BATON_DLL Pass NameDims();

struct EtaExpandOptions : PassOptions<EtaExpandOptions> {
  static constexpr auto _type_key = "relay.transform.EtaExpandOptions";
  bool expand_constructor = false;
  bool expand_global_var = false;
  static constexpr void Describe(auto& d) {
    d(F<&EtaExpandOptions::expand_constructor>, "Expands constructors of data types.");
    d(F<&EtaExpandOptions::expand_global_var>, "Expands global functions.");
  }
};
BATON_DLL Pass EtaExpand(const EtaExpandOptions& options = {});

struct DynamicToStaticOptions : PassOptions<DynamicToStaticOptions> {
  static constexpr auto _type_key = "relay.transform.DynamicToStaticOptions";
  bool symbolic = false;
  static constexpr void Describe(auto& d) {
    d(F<&DynamicToStaticOptions::symbolic>,
      "Also where the operands are expressions of named extents, which attributes then hold.");
  }
};
BATON_DLL Pass DynamicToStatic(const DynamicToStaticOptions& options = {});
BATON_DLL Pass DecomposeOps();
/// Operators on quantized tensors become plain ones.
BATON_DLL Pass QnnCanonicalize();

/// What stands between qnn.dequantize and qnn.quantize in integers.
struct FakeQuantizationToIntegerOptions : PassOptions<FakeQuantizationToIntegerOptions> {
  static constexpr auto _type_key = "relay.transform.FakeQuantizationToIntegerOptions";
  bool hard_fail = false;
  bool use_qat = false;
  static constexpr void Describe(auto& d) {
    d(F<&FakeQuantizationToIntegerOptions::hard_fail>,
      "Errors of a program's own rules are raised; else they leave the region as it is.");
    d(F<&FakeQuantizationToIntegerOptions::use_qat>,
      "Not supported: put a qnn.quantize behind what is to become integers.");
  }
};
BATON_DLL Pass FakeQuantizationToInteger(const FakeQuantizationToIntegerOptions& options = {});

/// Convolutions between nn.space_to_batch_nd and nn.batch_to_space_nd become dilated ones.
BATON_DLL Pass FlattenAtrousConv();

struct CombineParallelConv2DOptions : PassOptions<CombineParallelConv2DOptions> {
  static constexpr auto _type_key = "relay.transform.CombineParallelConv2DOptions";
  int64_t min_num_branches = 3;
  static constexpr void Describe(auto& d) {
    d(F<&CombineParallelConv2DOptions::min_num_branches>, "Smallest number of convolutions that become one.");
  }
};
BATON_DLL Pass CombineParallelConv2D(const CombineParallelConv2DOptions& options = {});

struct CombineParallelDenseOptions : PassOptions<CombineParallelDenseOptions> {
  static constexpr auto _type_key = "relay.transform.CombineParallelDenseOptions";
  int64_t min_num_branches = 3;
  bool to_batch_matmul = true;
  static constexpr void Describe(auto& d) {
    d(F<&CombineParallelDenseOptions::min_num_branches>, "Smallest number of dense layers that become one.");
    d(F<&CombineParallelDenseOptions::to_batch_matmul>,
      "One nn.batch_matmul of weights of one shape; else one nn.dense with all units, which may differ.");
  }
};
BATON_DLL Pass CombineParallelDense(const CombineParallelDenseOptions& options = {});

struct CombineParallelBatchMatmulOptions : PassOptions<CombineParallelBatchMatmulOptions> {
  static constexpr auto _type_key = "relay.transform.CombineParallelBatchMatmulOptions";
  int64_t min_num_branches = 3;
  static constexpr void Describe(auto& d) {
    d(F<&CombineParallelBatchMatmulOptions::min_num_branches>, "Smallest number of products that become one.");
  }
};
BATON_DLL Pass CombineParallelBatchMatmul(const CombineParallelBatchMatmulOptions& options = {});

/// @main gives (its result, (the gradient by each parameter)): of dataflow, and of all of Relay.
BATON_DLL Pass FirstOrderGradient();
BATON_DLL Pass Gradient();
/// @main takes a continuation, and back; and functions as values become data of the module.
BATON_DLL Pass ToCPS();
BATON_DLL Pass UnCPS();
BATON_DLL Pass Defunctionalization();

/// Replaces calls by what an attribute of their operator makes of them.
struct LegalizeOptions : PassOptions<LegalizeOptions> {
  static constexpr auto _type_key = "relay.transform.LegalizeOptions";
  String legalize_map_attr_name = "FTVMLegalize";
  static constexpr void Describe(auto& d) {
    d(F<&LegalizeOptions::legalize_map_attr_name>, "Attribute of operators that gives the replacement.");
  }
};
BATON_DLL Pass Legalize(const LegalizeOptions& options = {});

struct ConvertLayoutOptions : PassOptions<ConvertLayoutOptions> {
  static constexpr auto _type_key = "relay.transform.ConvertLayoutOptions";
  Map<String, Array<String>> desired_layouts;
  static constexpr void Describe(auto& d) {
    d(F<&ConvertLayoutOptions::desired_layouts>,
      "Operator to the layouts of its data and weight: {\"nn.conv2d\": [\"NHWC\", \"default\"]}; "
      "\"default\" is the usual one.");
  }
};
BATON_DLL Pass ConvertLayout(const ConvertLayoutOptions& options = {});

/// Runs the program as far as it is known; DeadCodeElimination drops what is then not used.
BATON_DLL Pass PartialEvaluate();

/// Concatenations of many operands are split into several.
struct SplitArgsOptions : PassOptions<SplitArgsOptions> {
  static constexpr auto _type_key = "relay.transform.SplitArgsOptions";
  int64_t max_function_args = 255;
  static constexpr void Describe(auto& d) {
    d(F<&SplitArgsOptions::max_function_args>, "Largest number of arguments of a kernel.");
  }
};
BATON_DLL Pass SplitArgs(const SplitArgsOptions& options = {});

/// Gives each expression a place in the program's text.
BATON_DLL Pass AnnotateSpans();
/// Leaves out zeros that are added and ones that are multiplied.
BATON_DLL Pass LazyGradientInit();

struct PlanDevicesOptions : PassOptions<PlanDevicesOptions> {
  static constexpr auto _type_key = "relay.transform.PlanDevicesOptions";
  PlanDevicesOptions() = default;
  PlanDevicesOptions(int64_t device) : default_device(device) {}  // NOLINT: PlanDevices(kDLCPU)
  int64_t default_device = -1;
  static constexpr void Describe(auto& d) {
    d(F<&PlanDevicesOptions::default_device>,
      "Device, by its DLPack number, of what no annotation decides; -1: that of the option "
      "`relay.fallback_device_type`.");
  }
};
BATON_DLL Pass PlanDevices(const PlanDevicesOptions& options = {});

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
