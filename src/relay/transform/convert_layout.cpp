// SPDX-License-Identifier: Apache-2.0
#include "relay/transform/convert_layout.h"

#include <baton/ir/structural.h>
#include <baton/relay/functor.h>
#include <baton/relay/op.h>
#include <baton/relay/op/make.h>
#include <baton/relay/op/nn.h>
#include <baton/relay/op/transform.h>
#include <baton/relay/transform.h>
#include <baton/runtime/registry.h>
#include <baton/support/nearest.h>
#include <baton/te/tensor.h>
#include <relay/expr/children.h>
#include <relay/transform/layout_order.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <unordered_map>

namespace baton::relay::transform {
Expr LayoutTransform(const Expr& x, const std::string& from, const std::string& to) {
  static const Op op = Op::Get("layout_transform");
  return MakeCall<LayoutTransformAttrs>(op, {x},
                                        [&](LayoutTransformAttrs* a) { a->src_layout = from, a->dst_layout = to; });
}

namespace {

using Layouts = Map<String, Array<String>>;

/// An operator's answer about its layouts: (attrs, layouts of inputs as they are now, as they were, types of inputs)
/// -> (layouts of inputs, of outputs[, attributes]).
constexpr const char* kInferLayout = "FInferCorrectLayout";

/// Numbers of the convolutions that `LayoutConfig(skip_layers)` leaves as they are.
thread_local std::set<int64_t> skipped_layers;

bool HasField(const Attrs& attrs, const char* name) {
  return attrs.defined() && runtime::TypeInfo::Get(attrs.type_index())->Find(name);
}
std::string TextField(const Attrs& attrs, const char* name) {
  return HasField(attrs, name) ? runtime::GetField(attrs.get(), name).As<String>().str() : "";
}
Attrs Copy(const Attrs& attrs) { return Attrs(runtime::TypeInfo::Get(attrs.type_index())->copy(attrs.get())); }
void SetField(const Attrs& attrs, const char* name, Any value) {
  runtime::TypeInfo::Get(attrs.type_index())->Find(name)->Set(runtime::ObjectAccess::Get(attrs), value.raw());
}

void CheckOrder(const std::string& op, const Order& order) {
  if (IsOrder(order)) return;
  throw CompileError("ConvertLayout: `" + op + "` has layout \"" + order.from + "\", which cannot become \"" +
                     order.to + "\": the two must have the same letters, each once, without blocks");
}

/// A convolution in groups of one input channel each.
bool EachChannelAlone(const CallNode* pre) {
  const size_t at = TextField(pre->attrs, "kernel_layout").find('I');
  const auto* weight = pre->args.size() > 1 ? pre->args[1]->checked_type_.as<TensorTypeNode>() : nullptr;
  return HasField(pre->attrs, "groups") && runtime::GetField(pre->attrs.get(), "groups").As<int64_t>() > 1 && weight &&
         at < weight->shape.size() && DimOf(weight->shape[static_cast<int64_t>(at)]) == 1;
}

bool IsCounted(const Op& op) {
  const OpDef* def = DefOf(op);
  return def && def->traits.counted;
}

/// Tensors of the arguments' shapes, those of tuples in a row: what functions of programs are told of them.
Array<te::Tensor> TensorsOf(const Array<Expr>& args) {
  Array<te::Tensor> out;
  auto add = [&](const Type& type) {
    if (const auto* t = AsTensor(type)) out.push_back(te::placeholder(t->shape, t->dtype));
  };
  for (const Expr& a : args) {
    const Type type = Downcast<Type>(a->checked_type());
    add(type);
    if (const auto* tuple = type.as<TupleTypeNode>()) {
      for (const Type& field : tuple->fields) add(field);
    }
  }
  return out;
}

Attrs WithWanted(const std::string& op, const Attrs& attrs, const Array<String>& wanted, bool alone) {
  if (!attrs.defined() || !(HasField(attrs, "layout") || HasField(attrs, "data_layout"))) {
    throw CompileError("ConvertLayout: `" + op +
                       "` has no layout; convolutions, pools and resizing have one, or register_convert_op_layout");
  }
  const bool conv = HasField(attrs, "kernel_layout");
  size_t said = wanted.size();  // "default" at the end says nothing
  while (said > 1 && wanted[static_cast<int64_t>(said) - 1] == "default") --said;
  if (wanted.empty() || said > (conv ? 2u : 1u)) {
    throw CompileError("ConvertLayout: `" + op + "` wants " + (conv ? "layouts of data and weight" : "one layout") +
                       ", got " + std::to_string(wanted.size()));
  }
  Attrs out = Copy(attrs);
  const char* data_field = conv ? "data_layout" : "layout";
  const Attrs usual(runtime::TypeInfo::Get(attrs.type_index())->create());
  const std::string usual_data = TextField(usual, data_field);
  const std::string data = wanted[0] == "default" ? usual_data : wanted[0].str();
  SetField(out, data_field, Any(String(data)));
  if (!conv && HasField(out, "out_layout")) SetField(out, "out_layout", Any(String(data)));
  if (!conv) return out;
  std::string kernel = wanted.size() > 1 ? wanted[1].str() : "default";
  if (kernel == "default") {
    const std::string usual_kernel = TextField(usual, "kernel_layout");
    const std::string space = data.size() > 2 ? usual_data.substr(2) : "";
    kernel = usual_kernel;
    if (data != usual_data) {
      // Window first, then channels: a convolution's to those that it makes, a transposed one's the other way.
      const bool transposed = usual_kernel.rfind("IO", 0) == 0;
      const bool last = data.front() == 'N' && data.back() == 'C';
      kernel = space + (last && !alone && !transposed ? "IO" : "OI");
    }
  }
  SetField(out, "kernel_layout", Any(String(kernel)));
  return out;
}

bool AxisOf(const CallNode* call, size_t rank, int64_t* axis) {
  *axis = runtime::GetField(call->attrs.get(), "axis").As<int64_t>();
  if (*axis < 0) *axis += static_cast<int64_t>(rank);
  return *axis >= 0 && *axis < static_cast<int64_t>(rank);
}

Attrs WithAxis(const Attrs& attrs, int64_t axis) {
  Attrs out = Copy(attrs);
  SetField(out, "axis", Any(axis));
  return out;
}

int64_t RankOf(const Expr& pre) {
  const auto* t = pre->checked_type_.as<TensorTypeNode>();
  return t ? static_cast<int64_t>(t->shape.size()) : -1;
}

/// The result of a function registered as FInferCorrectLayout. "" is an unknown layout, or any.
struct Inferred {
  Array<String> inputs, outputs;
  Attrs attrs;
  std::string Input(size_t i) const { return i < inputs.size() ? inputs[static_cast<int64_t>(i)].str() : ""; }
  std::string Output() const { return outputs.empty() ? "" : outputs[0].str(); }
};
/// Asks it; false if there is none, or it leaves the call alone.
bool Infer(const Op& op, const Attrs& attrs, const Array<String>& now, const Array<String>& was,
           const Array<Type>& types, Inferred* out) {
  Any f = op.GetAttrValue(kInferLayout);
  if (f.is_null()) return false;
  Any answer = f.As<PackedFunc>()(attrs, now, was, types);
  if (answer.is_null()) return false;
  const std::string where = "`" + op->name.str() + "`: its FInferCorrectLayout ";
  Array<Any> parts;
  try {
    parts = answer.As<Array<Any>>();
    if (parts.size() == 2 || parts.size() == 3) {
      out->inputs = parts[0].As<Array<String>>(), out->outputs = parts[1].As<Array<String>>();
      out->attrs = parts.size() == 3 && !parts[2].is_null() ? parts[2].As<Attrs>() : attrs;
    }
  } catch (const runtime::TypeError& e) {
    throw CompileError(where + "gave what are no layouts: " + e.message());
  }
  if (parts.size() != 2 && parts.size() != 3) {
    throw CompileError(where + "gave " + std::to_string(parts.size()) +
                       " values; it gives layouts of inputs, layouts of outputs and, where they change, attributes");
  }
  if (out->inputs.size() != types.size()) {
    throw CompileError(where + "gave layouts of " + std::to_string(out->inputs.size()) + " inputs; the call has " +
                       std::to_string(types.size()));
  }
  return true;
}
Array<Type> TypesOf(const CallNode* pre) {
  Array<Type> types;
  for (const Expr& a : pre->args) types.push_back(Downcast<Type>(a->checked_type()));
  return types;
}
/// The plain layout of a value that is to have the layout `to`: the letters of `like`, in its order.
std::string PlainOf(const std::string& to, const std::string& like) {
  std::string plain;
  for (char c : like) {
    if (to.find(c) != std::string::npos) plain += c;
  }
  return plain;
}

/// Whether a value has one element: it is broadcast in any order.
bool IsOne(const Expr& e) {
  const auto* t = e->checked_type_.as<TensorTypeNode>();
  return t && std::all_of(t->shape.begin(), t->shape.end(), [](const PrimExpr& d) { return DimOf(d) == 1; });
}

/// The dimensions that a reduction, or squeeze, takes away.
std::vector<bool> Gone(const CallNode* pre, const Attrs& attrs, size_t rank) {
  const auto axis = runtime::GetField(attrs.get(), "axis").As<Array<int64_t>>();
  const auto* type = pre->args[0]->checked_type_.as<TensorTypeNode>();
  const bool reduces = HasField(attrs, "keepdims");
  std::vector<bool> gone(rank, false);
  if (axis.defined() && (!axis.empty() || !reduces)) {
    for (int64_t a : axis) gone[static_cast<size_t>(a < 0 ? a + static_cast<int64_t>(rank) : a)] = true;
  } else {
    for (size_t d = 0; d < rank; ++d) gone[d] = reduces || DimOf(type->shape[static_cast<int64_t>(d)]) == 1;
  }
  if (HasField(attrs, "exclude") && runtime::GetField(attrs.get(), "exclude").As<bool>()) gone.flip();
  return gone;
}

/// The call with another first argument.
Expr OfFirst(const CallNode* call, const Expr& value) {
  Array<Expr> args = call->args;
  args.Set(0, value);
  return MakeCall(Downcast<Op>(call->op), args, call->attrs);
}

/// Values exist in their plain layout and, if an operator produced them in another layout, in that one too. Each user
/// takes the form that it supports. Unused layout transforms are not part of the result.
class Converter : public MixedModeMutator {
 public:
  explicit Converter(const Layouts& desired) : desired_(desired) {}
  /// Asks the functions that are registered as FTVMAlterOpLayout instead.
  struct RegisterConvertLayout {};
  explicit Converter(RegisterConvertLayout) : alter_(true) {}

 private:
  using MixedModeMutator::VisitExpr_;

  struct Form {
    Expr value;
    Order order;
  };

  Expr VisitExpr_(const FunctionNode* f) final {
    return f->HasNonzeroAttr(attr::kPrimitive) ? GetRef<Expr>(f) : MixedModeMutator::VisitExpr_(f);
  }

  const Form* Find(const Expr& plain) const {
    auto it = forms_.find(plain.get());
    return it == forms_.end() ? nullptr : &it->second;
  }
  void Put(const Expr& plain, Expr value, Order order) {
    forms_[plain.get()] = {std::move(value), std::move(order)};
    keep_.push_back(plain);
  }
  Expr Get(const Expr& plain, const Order& order) {
    if (order.plain()) return plain;
    if (const Form* f = Find(plain); f && f->order.Same(order)) return f->value;
    Expr t = LayoutTransform(plain, order.from, order.to);
    t->span = plain->span;
    if (!Find(plain)) Put(plain, t, order);
    return t;
  }
  /// The plain form of a value in another order, both known from now on.
  Expr Plain(const Expr& value, const Order& order, const Span& span) {
    value->span = span;
    if (order.plain()) return value;
    Expr plain = LayoutTransform(value, order.to, order.from);
    plain->span = span;
    Put(plain, value, order);
    return plain;
  }

  Expr Rewrite_(const TupleGetItemNode*, const Expr& post) final {
    const auto* item = post.as<TupleGetItemNode>();
    auto it = tuples_.find(item->tuple.get());
    if (it == tuples_.end()) return post;
    const Form& f = it->second;
    if (item->index >= static_cast<int64_t>(ordered_[item->tuple.get()])) return TupleGetItem(f.value, item->index);
    return Plain(TupleGetItem(f.value, item->index), f.order, post->span);
  }

  Expr Rewrite_(const CallNode* pre, const Expr& post) final {
    const auto* call = post.as<CallNode>();
    const auto* op = call ? call->op.as<OpNode>() : nullptr;
    const OpDef* def = op ? DefOf(call->op) : nullptr;
    if (!def || !pre->checked_type_.defined() || def->stateful) return post;
    if (alter_ && !Downcast<Op>(call->op).GetAttrValue("FTVMAlterOpLayout").is_null())
      return Anchor(pre, call, post, {});
    if (desired_.count(op->name)) return Anchor(pre, call, post, desired_.at(op->name));
    if (call->args.empty()) return post;
    if (!Downcast<Op>(call->op).GetAttrValue(kInferLayout).is_null()) return AsRegistered(pre, call, post);
    const LayoutRule rule = def->traits.layout;
    if (rule == LayoutRule::kJoins) return Concatenate(pre, call, post);
    if (rule == LayoutRule::kBroadcasts) return Broadcast(pre, call, post);
    const Form* first = Find(call->args[0]);
    return first ? Follow(rule, pre, call, post, *first) : post;
  }
  /// A call whose first argument is there in another order.
  Expr Follow(LayoutRule rule, const CallNode* pre, const CallNode* call, const Expr& post, const Form& first) {
    switch (rule) {
      case LayoutRule::kKeeps:
        return Plain(OfFirst(call, first.value), first.order, post->span);
      case LayoutRule::kBlocks:
        return WithLayout(call, post, first.value, first.order);
      case LayoutRule::kPads:
        if (call->args.size() == 2 && HasField(call->attrs, "axes")) return SliceLike(pre, call, post, first);
        return HasField(call->attrs, "pad_width") ? Pad(call, post, first) : Slice(pre, call, post, first);
      case LayoutRule::kReduces:
        return Reduce(pre, call, post, first);
      default:
        return first.order.split() ? post : FollowWhole(rule, pre, call, post, first);
    }
  }
  /// The rest of the rules, which take dimensions that are not split.
  Expr FollowWhole(LayoutRule rule, const CallNode* pre, const CallNode* call, const Expr& post, const Form& first) {
    switch (rule) {
      case LayoutRule::kAxis:
        return OnAxis(call, post, first);
      case LayoutRule::kAxisParts:
        return IntoTuple(pre, call, post, first);
      case LayoutRule::kPermutes:
        return TransposeOf(call, post, first);
      case LayoutRule::kNamed:
        return WithLayout(call, post, first.value, first.order);
      default:
        return post;
    }
  }

  // ---- Operators that are to have a layout

  /// The call in the layouts that are wanted: by the function that is registered for it, else by its attributes.
  Expr Anchor(const CallNode* pre, const CallNode* call, const Expr& post, const Array<String>& wanted) {
    Op op = Downcast<Op>(call->op);
    const std::string op_name = op->name.str();
    if (!alter_ && IsCounted(op) && skipped_layers.count(layer_++)) return post;
    Any custom = op.GetAttrValue(alter_ ? "FTVMAlterOpLayout" : "FTVMConvertOpLayout");
    Attrs attrs;
    Array<Expr> given = call->args;
    Expr same = post;  // the expression here where no layout changes
    if (!custom.is_null()) {
      Array<Expr> told = pre->args;
      if (!alter_) told.push_back(GetRef<Expr>(pre));  // the result, too
      const Array<te::Tensor> tensors = TensorsOf(told);
      Any made = alter_ ? custom.As<PackedFunc>()(call->attrs, call->args, tensors, Downcast<Type>(pre->checked_type()))
                        : custom.As<PackedFunc>()(call->attrs, call->args, tensors, wanted);
      if (made.is_null()) return post;
      Expr e = made.As<Expr>();
      const auto* c = e.as<CallNode>();
      if (!c || !c->op.as<OpNode>() || c->args.size() != call->args.size()) return e;
      attrs = c->attrs, op = Downcast<Op>(c->op), given = c->args;
      if (!StructuralEqual(e, post)) same = e;
      Expr said;
      if (!alter_ && Converted(pre, call, given, op, attrs, post->span, &said)) return said;
    } else {
      attrs = WithWanted(op_name, call->attrs, wanted, EachChannelAlone(pre));
    }
    const bool conv = HasField(attrs, "kernel_layout");
    const char* data_field = conv ? "data_layout" : "layout";
    if (!HasField(attrs, data_field)) return same;
    const Order data{TextField(call->attrs, data_field), TextField(attrs, data_field)};
    if (alter_ && !IsOrder(data)) return InBlocks(call, given, op, attrs, data, post->span);
    CheckOrder(op_name, data);
    Array<Expr> args = given;
    args.Set(0, Get(given[0], data));
    Order out = data;
    if (conv) {
      const Order kernel{TextField(call->attrs, "kernel_layout"), TextField(attrs, "kernel_layout")};
      CheckOrder(op_name, kernel);
      args.Set(1, Get(given[1], kernel));
      // A result in another layout keeps it.
      if (const std::string own = TextField(call->attrs, "out_layout"); !own.empty() && own != data.from) {
        const std::string now = TextField(attrs, "out_layout");
        out = {own, now.empty() || now == own ? own : now};
        CheckOrder(op_name, out);
      } else if (HasField(attrs, "out_layout")) {
        attrs = Copy(attrs);
        SetField(attrs, "out_layout", Any(String("")));
      }
      if (data.plain() && kernel.plain() && out.plain()) return same;
    } else if (data.plain() && TextField(call->attrs, "out_layout") == TextField(attrs, "out_layout")) {
      return same;
    }
    return Plain(MakeCall(op, args, attrs), out, post->span);
  }

  /// A call on dimensions in blocks.
  Expr InBlocks(const CallNode* call, Array<Expr> args, const Op& op, const Attrs& attrs, const Order& data,
                const Span& span) {
    args.Set(0, IsSplit(data) ? Get(args[0], data) : LayoutTransform(args[0], data.from, data.to));
    const std::string kernel = TextField(call->attrs, "kernel_layout"), now = TextField(attrs, "kernel_layout");
    if (kernel != now) args.Set(1, LayoutTransform(args[1], kernel, now));
    std::string from = TextField(call->attrs, "out_layout"), to = TextField(attrs, "out_layout");
    if (from.empty()) from = data.from;
    if (to.empty()) to = data.to;
    Expr out = MakeCall(op, args, attrs);
    out->span = span;
    if (IsSplit({from, to})) return Plain(out, {from, to}, span);
    if (from != to) out = LayoutTransform(out, to, from);
    out->span = span;
    return out;
  }

  // ---- Layout rules of operators

  /// A call of an operator that says by itself which layouts go with each other.
  Expr AsRegistered(const CallNode* pre, const CallNode* call, const Expr& post) {
    const Op op = Downcast<Op>(call->op);
    Array<String> now, was;
    std::string like;
    for (const Expr& a : call->args) {
      const Form* f = Find(a);
      now.push_back(String(f ? f->order.to : ""));
      was.push_back(String(f ? f->order.from : ""));
      if (f && f->order.rank() > like.size()) like = f->order.from;
    }
    if (like.empty() || !pre->checked_type_.as<TensorTypeNode>()) return post;
    Inferred said;
    if (!Infer(op, call->attrs, now, was, TypesOf(pre), &said)) return post;
    Array<Expr> args;
    for (size_t i = 0; i < call->args.size(); ++i) {
      const Expr& a = call->args[static_cast<int64_t>(i)];
      const std::string to = said.Input(i);
      const std::string from = Find(a) ? Find(a)->order.from : PlainOf(to, like);
      const bool fits = static_cast<int64_t>(to.size()) == RankOf(pre->args[static_cast<int64_t>(i)]);
      if (!to.empty() && !fits) {
        throw CompileError("`" + op->name.str() + "`: its FInferCorrectLayout gave input " + std::to_string(i) +
                           " the layout \"" + to + "\"; the input has " +
                           std::to_string(RankOf(pre->args[static_cast<int64_t>(i)])) + " dimensions");
      }
      if (!to.empty()) CheckOrder(op->name.str(), {from, to});
      args.push_back(to.empty() ? a : Get(a, {from, to}));
    }
    const std::string to = said.Output();
    const Order out{to.empty() ? to : PlainOf(to, like), to};
    if (!to.empty()) CheckOrder(op->name.str(), out);
    return Plain(MakeCall(op, args, said.attrs), out, post->span);
  }

  /// A call that a function registered as FTVMConvertOpLayout made, of an operator that says which layouts that means.
  /// False if it does not say.
  bool Converted(const CallNode* pre, const CallNode* call, const Array<Expr>& given, const Op& op, const Attrs& attrs,
                 const Span& span, Expr* out) {
    Inferred was, now;
    const Array<Type> types = TypesOf(pre);
    if (!Infer(Downcast<Op>(call->op), call->attrs, {}, {}, types, &was)) return false;
    if (!Infer(op, attrs, {}, was.inputs, types, &now)) return false;
    Array<Expr> args;
    for (size_t i = 0; i < given.size(); ++i) {
      const Expr& a = given[static_cast<int64_t>(i)];
      const Order order{was.Input(i), now.Input(i)};
      if (!order.plain()) CheckOrder(op->name.str(), order);
      args.push_back(Get(a, order));
    }
    const Order result{was.Output(), now.Output()};
    if (!result.plain()) CheckOrder(op->name.str(), result);
    *out = Plain(MakeCall(op, args, now.attrs), result, span);
    return true;
  }

  // ---- Operators that follow

  Expr WithLayout(const CallNode* call, const Expr& post, const Expr& value, const Order& order) {
    const std::string layout = TextField(call->attrs, "layout");
    if (layout.size() != order.rank() || order.Of(layout).empty()) return post;
    Attrs attrs = Copy(call->attrs);
    SetField(attrs, "layout", Any(String(order.Of(layout))));
    if (const std::string out = TextField(attrs, "out_layout"); !out.empty()) {
      if (out != TextField(call->attrs, "layout")) return post;
      SetField(attrs, "out_layout", Any(String(TextField(attrs, "layout"))));
    }
    return Plain(MakeCall(Downcast<Op>(call->op), {value}, attrs), order, post->span);
  }

  Expr Broadcast(const CallNode* pre, const CallNode* call, const Expr& post) {
    const int64_t rank = RankOf(GetRef<Expr>(pre));
    const Form* chosen = nullptr;
    for (const Expr& a : call->args) {
      const Form* f = Find(a);
      if (!chosen && f && static_cast<int64_t>(f->order.rank()) == rank) chosen = f;
    }
    if (!chosen) return post;
    const Order order = chosen->order;
    Array<Expr> args;
    for (size_t i = 0; i < call->args.size(); ++i) {
      const Expr& a = call->args[i];
      const int64_t own = RankOf(pre->args[i]);
      if (own < 0 || (own > 0 && i > 1 && HasField(call->attrs, "lhs_axis"))) return post;  // a vector along an axis
      const std::string to = own == 0 ? order.to : Divided(pre->args[i]->checked_type_.as<TensorTypeNode>(), order);
      if (to.empty()) return post;
      if (own == 0 || IsOne(pre->args[i])) {
        args.push_back(a);
      } else if (own == rank) {
        args.push_back(to == order.to ? Get(a, order) : LayoutTransform(a, order.from, to));
      } else {
        args.push_back(LayoutTransform(ExpandDims(a, 0, rank - own), order.from, to));
      }
    }
    return Plain(MakeCall(Downcast<Op>(call->op), args, call->attrs), order, post->span);
  }

  /// Works along one dimension of the first argument; the others have that dimension alone.
  Expr OnAxis(const CallNode* call, const Expr& post, const Form& form) {
    int64_t axis = 0;
    if (!AxisOf(call, form.order.rank(), &axis)) return post;
    Array<Expr> args = call->args;
    args.Set(0, form.value);
    return Plain(MakeCall(Downcast<Op>(call->op), args, WithAxis(call->attrs, form.order.At(axis))), form.order,
                 post->span);
  }

  Expr IntoTuple(const CallNode* pre, const CallNode* call, const Expr& post, const Form& form) {
    int64_t axis = 0;
    const auto* type = pre->checked_type_.as<TupleTypeNode>();
    if (!type || !AxisOf(call, form.order.rank(), &axis)) return post;
    Array<Expr> args = call->args;
    args.Set(0, form.value);
    Expr value = MakeCall(Downcast<Op>(call->op), args, WithAxis(call->attrs, form.order.At(axis)));
    value->span = post->span;
    // Parts are taken of the value in the other order; the tuple as a whole stays as it was.
    tuples_[post.get()] = {value, form.order};
    // The first fields, those of data's rank, are in that order.
    size_t ordered = 0;
    for (const Type& field : type->fields) {
      const auto* t = AsTensor(field);
      if (!t || t->shape.size() != form.order.rank()) break;
      ++ordered;
    }
    ordered_[post.get()] = ordered;
    keep_.push_back(post);
    return post;
  }

  Expr Concatenate(const CallNode* pre, const CallNode* call, const Expr& post) {
    const auto* tuple = call->args[0].as<TupleNode>();
    if (!tuple || !pre->args[0].as<TupleNode>()) return post;
    const Form* chosen = nullptr;
    size_t have = 0;
    for (const Expr& f : tuple->fields) {
      const Form* form = Find(f);
      if (form && !chosen) chosen = form;
      have += form && form->order.Same(chosen->order);
    }
    int64_t axis = 0;
    if (!chosen || have * 2 < tuple->fields.size() || !AxisOf(call, chosen->order.rank(), &axis)) return post;
    const Order order = chosen->order;
    for (const Expr& f : pre->args[0].as<TupleNode>()->fields) {
      if (Divided(f->checked_type_.as<TensorTypeNode>(), order) != order.to) return post;
    }
    Array<Expr> fields;
    for (const Expr& f : tuple->fields) fields.push_back(Get(f, order));
    Array<Expr> args = call->args;
    args.Set(0, Tuple(fields));
    return Plain(MakeCall(Downcast<Op>(call->op), args, WithAxis(call->attrs, order.At(axis))), order, post->span);
  }

  Expr Pad(const CallNode* call, const Expr& post, const Form& form) {
    Array<Array<int64_t>> width;
    if (!PadsInOrder(AttrsAs<PadAttrs>(call->attrs).pad_width, form.order, &width)) return post;
    Attrs attrs = Copy(call->attrs);
    SetField(attrs, "pad_width", Any(width));
    Array<Expr> args = call->args;
    args.Set(0, form.value);
    return Plain(MakeCall(Downcast<Op>(call->op), args, attrs), form.order, post->span);
  }

  Expr Slice(const CallNode* pre, const CallNode* call, const Expr& post, const Form& form) {
    const auto* attrs = call->attrs.as<StridedSliceAttrs>();
    const auto* t = pre->args[0]->checked_type_.as<TensorTypeNode>();
    StridedSliceAttrs now;
    if (!attrs || !t || call->args.size() != 1 || !SliceInOrder(*attrs, t->shape, form.order, &now)) return post;
    auto set = [&](StridedSliceAttrs* a) { *a = now; };
    return Plain(MakeCall<StridedSliceAttrs>(Downcast<Op>(call->op), {form.value}, set), form.order, post->span);
  }

  /// A slice to the shape of the second argument, along `axes`.
  Expr SliceLike(const CallNode* pre, const CallNode* call, const Expr& post, const Form& form) {
    const auto rank = static_cast<int64_t>(form.order.rank());
    const auto axes = runtime::GetField(call->attrs.get(), "axes").As<Array<int64_t>>();
    if (form.order.split() || RankOf(pre->args[1]) != rank) return post;
    Attrs attrs = call->attrs;
    if (axes.defined() && !axes.empty()) {
      std::vector<int64_t> now;
      for (int64_t a : axes) now.push_back(form.order.At(a < 0 ? a + rank : a));
      std::sort(now.begin(), now.end());
      attrs = Copy(attrs);
      SetField(attrs, "axes", Any(Array<int64_t>(now.begin(), now.end())));
    }
    return Plain(MakeCall(Downcast<Op>(call->op), {form.value, Get(call->args[1], form.order)}, attrs), form.order,
                 post->span);
  }

  /// One transpose from the order that is there; none where that is the wanted one already.
  Expr TransposeOf(const CallNode* call, const Expr& post, const Form& form) {
    Array<int64_t> axes = AttrsAs<TransposeAttrs>(call->attrs).axes;
    const int64_t rank = static_cast<int64_t>(form.order.rank());
    if (axes.empty()) {
      for (int64_t d = rank; d-- > 0;) axes.push_back(d);
    }
    if (static_cast<int64_t>(axes.size()) != rank) return post;
    Array<int64_t> from;
    bool same = true;
    for (int64_t d = 0; d < rank; ++d) {
      from.push_back(form.order.At(axes[d] < 0 ? axes[d] + rank : axes[d]));
      same = same && from.back() == d;
    }
    if (same) return form.value;
    Expr out = Transpose(form.value, from);
    out->span = post->span;
    return out;
  }

  Expr Reduce(const CallNode* pre, const CallNode* call, const Expr& post, const Form& form) {
    const auto rank = static_cast<int64_t>(form.order.rank());
    const bool reduces = HasField(call->attrs, "keepdims");
    const bool keepdims = reduces && runtime::GetField(call->attrs.get(), "keepdims").As<bool>();
    if (RankOf(pre->args[0]) != rank) return post;
    const std::vector<bool> gone = Gone(pre, call->attrs, form.order.rank());
    std::vector<int64_t> places;
    for (int64_t a = 0; a < rank; ++a) {
      if (!gone[static_cast<size_t>(a)]) continue;
      places.push_back(form.order.At(a));
      if (form.order.PartAt(a) < 0) continue;
      if (keepdims || !reduces) return post;
      places.push_back(form.order.PartAt(a));
    }
    if (places.empty()) return post;
    std::sort(places.begin(), places.end());
    const Array<int64_t> now(places.begin(), places.end());
    Attrs attrs = Copy(call->attrs);
    SetField(attrs, "axis", Any(now));
    if (HasField(attrs, "exclude")) SetField(attrs, "exclude", Any(false));
    Expr value = MakeCall(Downcast<Op>(call->op), {form.value}, attrs);
    if (!pre->checked_type_.as<TensorTypeNode>()) return post;
    if (keepdims) return Plain(value, form.order, post->span);
    Order left;
    for (int64_t d = 0; d < rank; ++d) {
      if (!gone[static_cast<size_t>(d)]) left.from += form.order.from[static_cast<size_t>(d)];
    }
    std::string number;
    for (char c : form.order.to) {
      const bool digit = c >= '0' && c <= '9';
      if (digit) number += c;
      if (!digit && left.from.find(static_cast<char>(std::toupper(static_cast<unsigned char>(c)))) != std::string::npos)
        left.to += number + c;
      if (!digit) number.clear();
    }
    return Plain(value, left, post->span);
  }

  Layouts desired_;
  bool alter_ = false;
  std::unordered_map<const Object*, Form> forms_, tuples_;
  std::unordered_map<const Object*, size_t> ordered_;  ///< how many parts of a tuple are in another order
  std::vector<Expr> keep_;
  int64_t layer_ = 0;
};

void CheckOps(const Layouts& desired) {
  for (const auto& [name, layouts] : desired) Op::Get(name.view());
}

}  // namespace

Function AlterRegistered(const Function& f) {
  const bool any =
      AnyCallWhere(f, [](const OpNode* op) { return !GetRef<Op>(op).GetAttrValue("FTVMAlterOpLayout").is_null(); });
  return any ? Converter(Converter::RegisterConvertLayout()).Mutate(f) : f;
}

Pass ConvertLayout(const ConvertLayoutOptions& options) {
  CheckOps(options.desired_layouts);
  return MakePass<ConvertLayout>(
      options,
      {
          .doc =
              "Runs operators in other orders of dimensions, desired_layouts {\"nn.conv2d\": [\"NHWC\", \"default\"]}, "
              "and what lies between them too, so that transforms stand at the ends alone.",
          .opt_level = 3,
          .required = {"CanonicalizeOps", "InferType"},
          .reassociates = true,
          .run = [layouts = options.desired_layouts](Function f, IRModule,
                                                     PassContext) { return Converter(layouts).Mutate(f); },
      });
}

namespace {
const RegisterPass<ConvertLayout> registered_convert_layout;

BATON_REGISTER_GLOBAL("relay.LayoutConfigSkip").set_body_typed([](Array<int64_t> layers) {
  Array<int64_t> before;
  for (int64_t l : skipped_layers) before.push_back(l);
  skipped_layers = std::set<int64_t>(layers.begin(), layers.end());
  return before;
});
}  // namespace

}  // namespace baton::relay::transform
