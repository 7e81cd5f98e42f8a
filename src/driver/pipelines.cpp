// SPDX-License-Identifier: Apache-2.0
// The passes between import and code, a line each.
#include "driver/pipelines.h"

#include <baton/codegen/backend.h>
#include <baton/driver/driver.h>
#include <baton/ir/pipeline.h>
#include <baton/relay/device.h>
#include <baton/relay/op.h>
#include <baton/relay/transform.h>
#include <baton/runtime/registry.h>
#include <baton/support/with.h>

#include <optional>
#include <string>

#include "driver/asked.h"

namespace baton::driver {
namespace {

/// Decomposes until nothing does any more.
transform::Pass DecomposeAll() {
  transform::Pass pass = transform::CreateModulePass(
      TypedPackedFunc<IRModule(IRModule, transform::PassContext)>([](IRModule mod, transform::PassContext) {
        transform::Pass infer = relay::transform::InferType(), decompose = relay::transform::DecomposeOps();
        for (int round = 0; round < 16; ++round) {
          mod = infer(mod);
          IRModule next = decompose(mod);
          if (next.same_as(mod)) return mod;
          mod = next;
        }
        return infer(mod);
      }),
      0, "DecomposeAll", {});
  return transform::Described(pass, {.doc = "DecomposeOps and InferType in turns, until nothing is left to decompose.",
                                     .keeps = {"Typed"},
                                     .reassociates = true});
}
const transform::RegisterPass<DecomposeAll> registered_decompose;

/// `plan`: the device of what no annotation decides, in a program for several devices.
Array<transform::Pass> RelayPasses(std::optional<int64_t> plan) {
  using namespace relay::transform;  // NOLINT: passes
  // Types are inferred where a pass needs them and something made expressions without; see `baton
  // explain-pipeline`.
  Array<Pass> passes;
  auto add = [&](Pass p) { passes.push_back(p); };
  auto add_if_there = [&](const char* name) {
    if (Registry::Get(std::string("relay._transform.") + name)) add(baton::transform::GetPass(name));
  };
  // From here on, regions for external compilers that are not available are compiled like the rest.
  add(InlineCompilerFunctions());
  // From here on every program is one that type inference accepts.
  add(InferType());
  // From here on products of quantized tensors are those of bytes, whose weights would be folded into floats; other
  // quantized weights are whole numbers, with their scale behind the product.
  if (!plan) {
    add_if_there("IntegerProducts");
    add(LiftWeightScales());
  }
  // From here on operators have static forms where shapes allow it.
  add(DynamicToStatic());
  // From here on half floats are what is handed in and out, and what is not known to compute. Of a program that is
  // planned each region does so.
  if (!plan) add(WidenHalfFloats());
  add(SimplifyInference(SimplifyInferenceOptions::KeepNorms()));
  add(FoldConstant());
  add(DecomposeAll());
  if (plan) {
    // From here on each part of what operators were taken apart into has a device. The rest is for one device: it
    // is run, from the start, on each region that LowerToTIR finds.
    add(FoldConstant());
    add(InferType());
    add(PlanDevices(*plan));
    return passes;
  }
  add(WidenHalfFloats());  // what was decomposed
  // From here on weights are constants, also those that the model computes.
  add(FoldWeights());
  add_if_there("IntegerProducts");  // of operators of integers, which were taken apart meanwhile
  add(IntegersInFloat());
  add_if_there("FoldScaleAxis");
  add_if_there("SimplifyExpr");
  add_if_there("FastMath");  // level 4: off by default
  // From here on heavy operators are those that have kernels: transposed convolutions are convolutions.
  add(Legalize());
  add(FoldConstant());
  add(EliminateCommonSubexpr());
  // From here on attention is one operator.
  add(FuseAttention());
  // From here on weights are stored in as few bits as were asked for.
  if (const auto asked = AskedWeights()) add(QuantizeWeights(*asked));
  if (const std::optional<DataType> asked = AskedPrecision()) {
    // From here on products are of the type that was asked for, and so are buffers for them.
    ToMixedPrecisionOptions mixed;
    mixed.mixed_precision_type = *asked, mixed.keep_orig_output_dtype = true;
    add(ToMixedPrecision(mixed));
    WidenHalfFloatsOptions widen;
    widen.asked = true;
    add(WidenHalfFloats(widen));
    add(FoldConstant());
  }
  // CombineParallelDense stays out: MiniLM's products, three in one, take no less time, and slicing them costs.
  // From here on data flows in the layouts of the kernels.
  add_if_there("AlterOpLayout");
  // From here on states are memory that is appended to.
  add(StateToBuffers());
  add(PackDense());
  add(PackFewBits());
  // From here on memory between kernels holds bytes where these are what is restored.
  add(RepeatWidening());
  add(SplitArgs());  // code of functions with thousands of parameters takes the square of them to make
  add(FoldConstant());
  add(NarrowWeights());
  // From here on every operator that has loops is in a primitive function.
  add(FuseOps(FuseOpsOptions::ViewsOutside()));
  return passes;
}

}  // namespace

transform::Pass DefaultPipeline() {
  return transform::Scheduled(transform::WithJoined("DefaultPipeline", RelayPasses({})), "DefaultPipeline", {"Typed"});
}

transform::Pass RelayPipeline(const Targets& targets) {
  if (!targets.planned()) return DefaultPipeline();
  return transform::Sequential(RelayPasses(FallbackDevice(targets.devices)), "DevicePipeline");
}

transform::Pass TIRPipeline(const Targets& targets, bool by_name) {
  LowerToTIROptions options;
  options.program = by_name;
  for (const DeviceTarget& d : targets.devices) {
    options.devices.Set(String(relay::DeviceTypeName(d.type)), String(d.target.str()));
  }
  return LowerToTIR(options);
}

namespace {

/// A pass with its options; one that has no text form, such as a program's own, by its name.
std::string Line(const transform::Pass& pass) {
  try {
    return transform::PipelineText(pass).str();
  } catch (const runtime::ValueError&) {
    return pass->Info()->name.str();
  }
}

void Lines(const Array<transform::Pass>& passes, const std::string& indent, std::string* out) {
  for (const transform::Pass& p : passes) {
    const auto* sequence = p.as<transform::SequentialNode>();
    const auto* scheduled = p.as<transform::ScheduledNode>();
    if (!sequence && !scheduled) {
      *out += indent + Line(p) + "\n";
    } else {
      Lines(sequence ? sequence->passes : scheduled->passes, indent, out);
    }
  }
}

}  // namespace

std::string PipelineLines(const Targets& targets) {
  std::string out;
  With<Target> scope(targets.host);
  Lines({RelayPipeline(targets), TIRPipeline(targets)}, "", &out);
  std::vector<DeviceTarget> all = targets.devices;
  if (!targets.planned()) all.push_back({targets.host->device_type(), targets.host});
  if (targets.planned()) {
    out += "  # each region of tensor work, for its device\n";
    Lines({DefaultPipeline()}, "  ", &out);
  }
  for (const DeviceTarget& d : all) {
    const std::string name = relay::DeviceTypeName(d.type);
    out += "  # each kernel of " + name + "\n";
    Lines({codegen::BackendOf(d.target).tir_pipeline()}, "  ", &out);
  }
  for (const DeviceTarget& d : all) {
    out += "# code of " + std::string(relay::DeviceTypeName(d.type)) + ": " + d.target.str() + "\n";
  }
  return out;
}

BATON_REGISTER_GLOBAL("driver.DefaultPipeline").set_body_typed([] { return DefaultPipeline(); });
/// The lines of a pipeline: of a target, or of targets by the names of their devices.
BATON_REGISTER_GLOBAL("driver.PipelineLines").set_body_typed([](Target one, Map<String, Target> several) {
  return String(
      PipelineLines(several.empty() ? Targets::Of(one.defined() ? one : Target::Current()) : Targets::Of(several)));
});

}  // namespace baton::driver
