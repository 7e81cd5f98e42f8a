// SPDX-License-Identifier: Apache-2.0
#include <baton/arith/analyzer.h>
#include <baton/ir/pipeline.h>
#include <baton/tir/functor.h>
#include <baton/tir/lower.h>
#include <baton/tir/transform.h>
#include <baton/tir/verify.h>

#include <utility>
#include <vector>

namespace baton::tir {

PrimFunc WithBody(const PrimFunc& f, const Stmt& body) {
  if (body.same_as(f->body)) return f;
  PrimFunc out = f;
  out.CopyOnWrite()->body = body;
  return out;
}

PrimFunc SimplifyFunc(const PrimFunc& f) {
  arith::Analyzer analyzer;
  return WithBody(f, arith::SimplifyStmt(f->body, &analyzer));
}

/// A body of which nothing is left, as the statement that does nothing.
static PrimFunc WithStatement(const PrimFunc& f) {
  const auto* seq = f->body.as<SeqStmtNode>();
  if (!seq || !seq->seq.empty()) return f;
  EvaluateNode nothing;
  nothing.value = PrimExpr(0);
  return WithBody(f, Evaluate(std::move(nothing)));
}

namespace {

struct Step {
  const char* pass;
  PrimFunc (*run)(const PrimFunc& f);
};
constexpr Step kLowering[] = {
    {"StorageFlatten", FlattenStorage},                                // one index from here on
    {"Simplify", SimplifyFunc},                                        // loop bounds are literals where they can be
    {"BF16Legalize", ComputeHalfInFloat},                              // no arithmetic on half floats from here on
    {"VectorizeLoop", VectorizeLoops},                                 // no kVectorized loops from here on
    {"UnrollLoop", [](const PrimFunc& f) { return UnrollLoops(f); }},  // none kUnrolled; registers have literal indices
    {"Simplify", SimplifyFunc},
    {"LowerIntrin", LowerIntrinsics},  // what is left of elementary functions is a call of libm
    {"StorageRewrite", PlanStorage},
};

}  // namespace

PrimFunc LowerPipeline(const PrimFunc& func, const Target&) {
  PrimFunc f = func;
  for (const Step& step : kLowering) f = step.run(f);
  return f;
}

IRModule LowerPipeline(const IRModule& mod, const Target& target) {
  IRModule out = mod.Copy();
  for (auto [var, func] : mod->functions) {
    if (func.as<PrimFuncNode>()) out.CopyOnWrite()->functions.Set(var, LowerPipeline(Downcast<PrimFunc>(func), target));
  }
  return out;
}

namespace transform {
Pass Simplify() {
  return MakePass<Simplify>({
      .doc = "Canonical index arithmetic; branches and loops that cannot run go.",
      .run = [](PrimFunc f, IRModule, PassContext) { return WithStatement(SimplifyFunc(f)); },
  });
}
const RegisterPass<Simplify> registered_simplify("tir.transform.");
Pass RemoveNoOp() {
  return MakePass<RemoveNoOp>({
      .doc = "Statements without effect go. What Simplify does, by TVM's name.",
      .run = [](PrimFunc f, IRModule, PassContext) { return WithStatement(SimplifyFunc(f)); },
  });
}
const RegisterPass<RemoveNoOp> registered_no_op("tir.transform.");
Pass VerifyTIR() {
  return MakePass<VerifyTIR>({
      .doc = "Throws where a function is not well formed.",
      .run =
          [](PrimFunc f, IRModule, PassContext) {
            VerifyWellFormed(f);
            return f;
          },
  });
}
const RegisterPass<VerifyTIR> registered_verify("tir.transform.");
BATON_REGISTER_PASS_CONFIG_OPTION("tir.disable_vectorize", bool, "Whether vectorized loops become plain ones.");
BATON_REGISTER_PASS_CONFIG_OPTION("tir.disable_assert", bool,
                                  "Whether assertions that a program's loops make are left out of compiled code.");
BATON_REGISTER_PASS_CONFIG_OPTION(
    "tir.add_lower_pass", Array<runtime::Any>,
    "Passes of the program's own in LowerPipeline, as [(phase, pass), ...]. Phase 0: before storage is flattened; 1: "
    "behind that; 2: when loops are vectorized and unrolled; 3: at the end.");

namespace {
/// The steps after which a phase of `tir.add_lower_pass` ends; phase 0 is before all.
constexpr size_t kPhaseEnds[] = {0, 2, 6, sizeof(kLowering) / sizeof(*kLowering)};

class AssertRemover : public StmtMutator {
  using StmtMutator::VisitStmt_;
  Stmt VisitStmt_(const AssertStmtNode* op) final { return VisitStmt(op->body); }
};

std::vector<std::pair<int64_t, Pass>> AddedPasses(const PassContext& ctx) {
  std::vector<std::pair<int64_t, Pass>> out;
  for (const runtime::Any& entry : ctx->GetConfig<Array<runtime::Any>>("tir.add_lower_pass", {})) {
    const auto fail = [](const std::string& what) -> Pass {
      throw runtime::ValueError(
          "pass option `tir.add_lower_pass` is a list of (phase, pass), where the phase is 0 to 3; " + what);
    };
    if (!entry.Is<Array<runtime::Any>>()) fail("an entry is no pair");
    const auto pair = entry.As<Array<runtime::Any>>();
    if (pair.size() != 2 || !pair[0].Is<int64_t>()) fail("an entry is no pair of a number and a pass");
    const auto phase = pair[0].As<int64_t>();
    if (phase < 0 || phase > 3) fail("this one is " + std::to_string(phase));
    if (!pair[1].Is<Pass>()) fail("what stands beside the phase is no pass; tir.transform.prim_func_pass makes one");
    out.emplace_back(phase, pair[1].As<Pass>());
  }
  return out;
}
}  // namespace

Pass LowerPipeline() {
  Array<Pass> passes;
  const PassContext ctx = PassContext::Current();
  const auto added = AddedPasses(ctx);
  const bool plain = ctx->GetConfig<bool>("tir.disable_vectorize", false);
  for (size_t i = 0; i <= std::size(kLowering); ++i) {
    for (int64_t phase = 0; phase < 4; ++phase) {
      if (kPhaseEnds[phase] != i) continue;
      for (const auto& [when, pass] : added) {
        if (when == phase) passes.push_back(pass);
      }
    }
    if (i == std::size(kLowering)) break;
    const std::string name = kLowering[i].pass;
    Map<String, runtime::Any> options;
    if (plain && name == "VectorizeLoop") options.Set("enable_vectorize", runtime::Any(false));
    passes.push_back(baton::transform::GetPass("tir." + name, options));
  }
  if (ctx->GetConfig<bool>("tir.disable_assert", false)) {
    passes.push_back(
        CreatePrimFuncPass([](PrimFunc f, IRModule, PassContext) { return WithBody(f, AssertRemover()(f->body)); }, 0,
                           "RemoveAsserts", {}));
  }
  passes = baton::transform::WithJoined("LowerPipeline", passes);
  return baton::transform::Sequential(
      passes, PassInfo(baton::transform::PassInfoNode{
                  .name = "LowerPipeline",
                  .doc = "From loops as they are written to loops as code generators take them, a "
                         "pass a step."}));
}
const RegisterPass<LowerPipeline> registered_lower("tir.transform.");
}  // namespace transform

}  // namespace baton::tir
