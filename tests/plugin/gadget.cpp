// SPDX-License-Identifier: Apache-2.0
// Types, attributes, an operator's worth of nodes and a pass of another project.
#include <baton/ir/structural.h>
#include <baton/relay/functor.h>
#include <baton/relay/transform.h>
#include <baton/runtime/registry.h>

namespace gadget {

using namespace baton;  // NOLINT

/// A node in Baton's own style: fields stated once.
struct GadgetNode : Node<GadgetNode, Object> {
  static constexpr const char* _type_key = "gadget.Gadget";
  static constexpr const char* _doc = "Something that Baton does not know.";
  String label;
  int64_t size = 1;
  double weight = 0.5;
  DataType dtype = DataType::Float(32);
  Array<RelayExpr> parts;
  Type type;
  static constexpr void Describe(auto& d) {
    d(F<&GadgetNode::label>, "What it is called.");
    d(F<&GadgetNode::size>, "How large it is, in elements.", AtLeast(1));
    d(F<&GadgetNode::weight>, "Its weight. Unitless.");
    d(F<&GadgetNode::dtype>, "Type of an element.");
    d(F<&GadgetNode::parts>, "Expressions that belong to it.");
    d(F<&GadgetNode::type>, "Type of the whole; null if unknown.", kNullable);
  }
};
class Gadget : public RefTo<GadgetNode, ObjectRef> {
 public:
  using RefTo::RefTo;
};

/// Binds a variable in its body: equal up to the variable's name.
struct BinderNode : Node<BinderNode, Object> {
  static constexpr const char* _type_key = "gadget.Binder";
  relay::Var var;
  RelayExpr body;
  static constexpr void Describe(auto& d) {
    d(F<&BinderNode::var>, "Bound in `body`.", kBinds);
    d(F<&BinderNode::body>, "Scope of `var`.");
  }
};

/// A node in the style of the documents: macros, and a method that visits the members.
class TensorLikeNode : public Object {
 public:
  Array<PrimExpr> shape;
  DataType dtype;
  ObjectRef op;
  int value_index = 0;
  std::string note;
  void VisitAttrs(runtime::AttrVisitor* v) {
    v->Visit("shape", &shape);
    v->Visit("dtype", &dtype);
    v->Visit("op", &op);
    v->Visit("value_index", &value_index);
    v->Visit("note", &note);
  }
  static constexpr const char* _type_key = "gadget.TensorLike";
  static constexpr bool _type_has_method_sequal_reduce = true;
  static constexpr bool _type_has_method_shash_reduce = true;
  BATON_DECLARE_FINAL_OBJECT_INFO(TensorLikeNode, Object)
};

/// Without structural equality and hash: asking for one is an error.
class OpaqueNode : public Object {
 public:
  int64_t value = 0;
  void VisitAttrs(runtime::AttrVisitor* v) { v->Visit("value", &value); }
  static constexpr const char* _type_key = "gadget.Opaque";
  BATON_DECLARE_FINAL_OBJECT_INFO(OpaqueNode, Object)
};

struct StretchAttrs : AttrsNode<StretchAttrs> {
  static constexpr const char* _type_key = "gadget.attrs.StretchAttrs";
  double factor = 2.0;
  Array<int64_t> axes;
  static constexpr void Describe(auto& d) {
    d(F<&StretchAttrs::factor>, "How much longer. Unitless, positive.", AtLeast(0));
    d(F<&StretchAttrs::axes>, "Dimensions to stretch.", kRequired);
  }
};

const RegisterNodes<GadgetNode, BinderNode, TensorLikeNode, OpaqueNode, StretchAttrs> registered;

/// Swaps the arguments of each call of `add`.
class Swapper : public relay::MixedModeMutator {
  relay::Expr Rewrite_(const relay::CallNode* pre, const relay::Expr& post) final {
    const auto* op = pre->op.as<OpNode>();
    if (!op || op->name != "add") return post;
    const auto* call = post.as<relay::CallNode>();
    return relay::Call(call->op, Array<relay::Expr>{call->args[1], call->args[0]}, call->attrs, call->type_args);
  }
};

transform::Pass SwapAdds() {
  return transform::MakePass<SwapAdds>({
      .doc = "add(x, y) becomes add(y, x): a pass of a third party.",
      .opt_level = 0,
      .required = {},
      .run = [](relay::Function f, IRModule,
                transform::PassContext) { return Downcast<relay::Function>(Swapper().Mutate(f)); },
  });
}
const transform::RegisterPass<SwapAdds> swap_adds;

}  // namespace gadget

BATON_REGISTER_GLOBAL("gadget.Describe").set_body_typed([](gadget::Gadget g) {
  return g->label.str() + " of " + std::to_string(g->size);
});
BATON_REGISTER_GLOBAL("gadget.TypeIndex").set_body_typed([](std::string key) {
  return static_cast<int64_t>(baton::Object::TypeKey2Index(key));
});
