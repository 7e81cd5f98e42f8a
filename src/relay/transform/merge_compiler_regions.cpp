// SPDX-License-Identifier: Apache-2.0
#include <baton/relay/functor.h>
#include <baton/relay/transform.h>
#include <relay/transform/compiler_regions.h>

namespace baton::relay::transform {
namespace {

/// Without the annotations between what became one region.
class Joiner : public MixedModeMutator {
 public:
  explicit Joiner(const CompilerRegions& regions) : regions_(regions) {}

 private:
  using MixedModeMutator::VisitExpr_;
  Expr VisitExpr_(const FunctionNode* f) final {
    return IsOpaqueFunction(f) ? GetRef<Expr>(f) : MixedModeMutator::VisitExpr_(f);
  }
  Expr Rewrite_(const CallNode* pre, const Expr& post) final {
    if (BeginsRegion(pre).empty() || !regions_.IsInner(pre)) return post;
    return post.as<CallNode>()->args[0].as<CallNode>()->args[0];
  }
  const CompilerRegions& regions_;
};

}  // namespace

Pass MergeCompilerRegions() {
  return MakePass<MergeCompilerRegions>({
      .doc = "Joins regions of one compiler, as AnnotateTarget makes them for each call, where one feeds the other and "
             "no value would have to leave the joined region and come back.",
      .opt_level = 0,
      .required = {"InferType"},
      .run =
          [](Function f, IRModule, PassContext) {
            if (IsOpaqueFunction(f.get())) return f;
            CompilerRegions regions(f);
            if (!regions.size()) return f;
            regions.Merge();
            return Joiner(regions).Mutate(f);
          },
  });
}

namespace {
const RegisterPass<MergeCompilerRegions> registered_merge_compiler_regions;
}  // namespace

}  // namespace baton::relay::transform
