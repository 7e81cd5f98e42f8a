// SPDX-License-Identifier: Apache-2.0
#include <baton/relay/functor.h>
#include <baton/relay/op.h>
#include <baton/relay/op/make.h>
#include <baton/relay/op/transform.h>
#include <baton/relay/transform.h>
#include <relay/expr/children.h>

#include <algorithm>

namespace baton::relay::transform {
namespace {

class Splitter : public MixedModeMutator {
 public:
  explicit Splitter(int64_t most) : most_(most) {}

 private:
  using MixedModeMutator::VisitExpr_;
  Expr VisitExpr_(const FunctionNode* f) final {
    return f->HasNonzeroAttr(attr::kPrimitive) ? GetRef<Expr>(f) : MixedModeMutator::VisitExpr_(f);
  }
  Expr Rewrite_(const CallNode*, const Expr& post) final {
    static const Op concatenate = Op::Get("concatenate"), stack = Op::Get("stack"),
                    stop = Op::Get("annotation.stop_fusion");
    const auto* call = post.as<CallNode>();
    if (!call || (!call->op.same_as(concatenate) && !call->op.same_as(stack))) return post;
    const auto* tuple = call->args[0].as<TupleNode>();
    if (!tuple || static_cast<int64_t>(tuple->fields.size()) <= most_) return post;
    Array<Expr> fields = tuple->fields;
    Attrs attrs = call->attrs;
    // A stack is a concatenation of stacks along the dimension that they make.
    Op join = Downcast<Op>(call->op);
    // Each round leaves a number of parts smaller by the factor `most_`.
    while (static_cast<int64_t>(fields.size()) > most_) {
      Array<Expr> pieces;
      const int64_t n = static_cast<int64_t>(fields.size());
      for (int64_t i = 0; i < n; i += most_) {
        Array<Expr> some;
        for (int64_t k = i; k < std::min(n, i + most_); ++k) some.push_back(fields[k]);
        if (some.size() == 1 && join.same_as(concatenate)) {
          pieces.push_back(some[0]);
          continue;
        }
        Expr joined = MakeCall(join, {Tuple(some)}, attrs);
        joined->span = post->span;
        pieces.push_back(MakeCall(stop, {joined}));
      }
      fields = pieces;
      if (join.same_as(stack)) {
        auto along = make_object<ConcatenateAttrs>();
        along->axis = attrs.as<StackAttrs>()->axis;
        join = concatenate, attrs = Attrs(along);
      }
    }
    Expr out = MakeCall(concatenate, {Tuple(fields)}, attrs);
    out->span = post->span;
    return out;
  }
  int64_t most_;
};

}  // namespace

Pass SplitArgs(const SplitArgsOptions& options) {
  const int64_t max_function_args = options.max_function_args;
  if (max_function_args < 2) {
    throw runtime::ValueError("SplitArgs: max_function_args is " + std::to_string(max_function_args) +
                              ", must be at least 2");
  }
  return MakePass<SplitArgs>(
      options, {
                   .doc = "Concatenations and stacks of more than max_function_args (255) parts become several, so "
                          "that no kernel has "
                          "more arguments.",
                   .opt_level = 1,
                   .required = {"InferType"},
                   .run =
                       [=](Function f, IRModule, PassContext) {
                         static const Op concatenate = Op::Get("concatenate"), stack = Op::Get("stack");
                         return AnyCallOf(f, concatenate, stack) ? Splitter(max_function_args).Mutate(f) : f;
                       },
               });
}

namespace {
const RegisterPass<SplitArgs> registered_split_args;
}  // namespace

}  // namespace baton::relay::transform
