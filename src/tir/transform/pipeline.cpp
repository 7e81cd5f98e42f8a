// SPDX-License-Identifier: Apache-2.0
#include <baton/arith/analyzer.h>
#include <baton/ir/pipeline.h>
#include <baton/tir/lower.h>
#include <baton/tir/transform.h>
#include <baton/tir/verify.h>

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
      .run = [](PrimFunc f, IRModule, PassContext) { return SimplifyFunc(f); },
  });
}
const RegisterPass<Simplify> registered_simplify("tir.transform.");
Pass RemoveNoOp() {
  return MakePass<RemoveNoOp>({
      .doc = "Statements without effect go. What Simplify does, by TVM's name.",
      .run = [](PrimFunc f, IRModule, PassContext) { return SimplifyFunc(f); },
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
Pass LowerPipeline() {
  baton::transform::RegisterPassDoc("LowerPipeline",
                                    "From loops as they are written to loops as code generators take "
                                    "them, a pass a step.");
  Array<Pass> passes;
  for (const Step& step : kLowering) passes.push_back(baton::transform::GetPass(std::string("tir.") + step.pass));
  passes = baton::transform::WithJoined("LowerPipeline", passes);
  return baton::transform::Sequential(passes, PassInfo(0, "LowerPipeline", {}));
}
const RegisterPass<LowerPipeline> registered_lower("tir.transform.");
}  // namespace transform

}  // namespace baton::tir
