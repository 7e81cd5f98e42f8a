// SPDX-License-Identifier: Apache-2.0
#include <baton/relay/functor.h>
#include <baton/relay/op.h>
#include <baton/relay/op/annotation.h>
#include <baton/relay/transform.h>
#include <relay/transform/compiler_regions.h>

#include <string>
#include <vector>

namespace baton::relay::transform {
namespace {

/// Calls that no compiler takes are Baton's own; PartitionGraph leaves it where it is.
const String kOwn = "default";

class Annotator : public MixedModeMutator {
 public:
  Annotator(const Array<String>& targets, bool include_non_call_ops) : others_(include_non_call_ops) {
    for (const String& t : targets) targets_.push_back({t, "target." + t.str()});
  }

 private:
  using MixedModeMutator::VisitExpr_;

  Expr VisitExpr_(const FunctionNode* f) final {
    return IsOpaqueFunction(f) ? GetRef<Expr>(f) : MixedModeMutator::VisitExpr_(f);
  }
  Expr Rewrite_(const CallNode* pre, const Expr& post) final {
    const auto* call = post.as<CallNode>();
    if (!call || !BeginsRegion(call).empty()) return post;
    if (!EndsRegion(call).empty()) {
      // An earlier run left the call to Baton, and now a compiler takes it.
      return EndsRegion(call) == kOwn.view() && !EndsRegion(call->args[0].get()).empty() ? call->args[0] : post;
    }
    // Other annotations stay as they are.
    bool again = false;
    for (const Expr& a : call->args) {
      if (BeginsRegion(a.get()).empty()) continue;
      if (BeginsRegion(a.get()) != kOwn.view()) return post;
      again = true;
    }
    const String* target = TargetOf(pre);
    if (!target && (again || call->args.empty())) return post;
    auto n = make_object<CallNode>(*call);
    n->checked_type_ = ObjectRef();
    const String& whose = target ? *target : kOwn;
    for (size_t i = 0; i < n->args.size(); ++i) {
      const Expr arg = n->args[i];
      const Expr bare = BeginsRegion(arg.get()).empty() ? arg : arg.as<CallNode>()->args[0];
      n->args.Set(i, Annotation(op::compiler_begin, Used(bare), whose));
    }
    return Annotation(op::compiler_end, Call(n), whose);
  }
  /// Tuples and their fields go with what they are made of.
  Expr Rewrite_(const TupleNode* pre, const Expr& post) final {
    const auto* tuple = post.as<TupleNode>();
    if (!tuple || tuple->fields.empty()) return post;
    std::string_view target = EndsRegion(tuple->fields[0].get());
    bool any = false;
    for (const Expr& f : tuple->fields) {
      if (!BeginsRegion(f.get()).empty()) return post;
      any = any || !EndsRegion(f.get()).empty();
      if (EndsRegion(f.get()) != target) target = kOwn.view();
    }
    if (!any) return post;
    if (target.empty()) target = kOwn.view();
    Array<Expr> fields;
    bool changed = others_;
    for (const Expr& f : tuple->fields) {
      const Expr end = Used(f);
      changed = changed || !end.same_as(f);
      fields.push_back(others_ ? Annotation(op::compiler_begin, end, String(target)) : end);
    }
    if (!changed) return post;
    Tuple made(fields);
    made->span = pre->span;
    return others_ ? Annotation(op::compiler_end, made, String(target)) : made;
  }
  Expr Rewrite_(const TupleGetItemNode* pre, const Expr& post) final {
    const auto* item = post.as<TupleGetItemNode>();
    const std::string_view target = others_ && item ? EndsRegion(item->tuple.get()) : std::string_view();
    if (target.empty()) return post;
    TupleGetItem made(Annotation(op::compiler_begin, Used(item->tuple), String(target)), item->index);
    made->span = pre->span;
    return Annotation(op::compiler_end, made, String(target));
  }
  /// A value at one of its uses: each has its own end.
  Expr Used(const Expr& value) {
    const std::string_view target = EndsRegion(value.get());
    if (target.empty() || used_.Add(value.get())) return value;
    return Annotation(op::compiler_end, value.as<CallNode>()->args[0], String(target));
  }

  /// The first target that takes a call: an operator says so by its attribute "target.NAME", a composite by its name.
  const String* TargetOf(const CallNode* call) const {
    if (const auto* op = call->op.as<OpNode>()) {
      for (const auto& [name, key] : targets_) {
        const Any takes = GetRef<Op>(op).GetAttrValue(key.c_str());
        if (!takes.is_null() && takes.As<PackedFunc>()(GetRef<Call>(call)).As<bool>()) return &name;
      }
    } else if (const auto* f = call->op.as<FunctionNode>()) {
      const String composite = f->GetAttr<String>("Composite");
      const std::string_view whose = composite.view().substr(0, composite.view().find('.'));
      for (const auto& [name, key] : targets_) {
        if (!whose.empty() && name.view() == whose) return &name;
      }
    }
    return nullptr;
  }
  static Expr Annotation(const Op& op, const Expr& value, const String& target) {
    auto attrs = make_object<CompilerAttrs>();
    attrs->compiler = target;
    CallNode call;
    call.op = op;
    call.args.push_back(value);
    call.attrs = Attrs(attrs);
    call.span = value->span;
    return Call(std::move(call));
  }

  std::vector<std::pair<String, std::string>> targets_;
  bool others_;
  PointerSet used_;  ///< ends that have a use already
};

}  // namespace

Pass AnnotateTarget(const AnnotateTargetOptions& options) {
  return MakePass<AnnotateTarget>(
      options,
      {
          .doc =
              "Puts annotation.compiler_begin and compiler_end around calls that one of `targets` takes, the first "
              "that "
              "does: operators say so by their attribute target.NAME, f(call) -> bool; composites by their name, "
              "NAME.x. What none takes is annotated for \"default\", which is Baton itself. With include_non_call_ops, "
              "tuples of what one target computes go with it.",
          .opt_level = 0,
          .required = {"InferType"},
          .run =
              [targets = options.targets, include_non_call_ops = options.include_non_call_ops](Function f, IRModule,
                                                                                               PassContext) {
                return IsOpaqueFunction(f.get()) || targets.empty()
                           ? f
                           : Annotator(targets, include_non_call_ops).Mutate(f);
              },
      });
}

namespace {
const RegisterPass<AnnotateTarget> registered_annotate_target;
}  // namespace

}  // namespace baton::relay::transform
