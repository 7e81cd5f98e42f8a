// SPDX-License-Identifier: Apache-2.0
#include <baton/relay/functor.h>
#include <baton/relay/op.h>
#include <baton/relay/op/annotation.h>
#include <baton/relay/op/make.h>
#include <baton/relay/op/nn.h>
#include <baton/relay/op/transform.h>
#include <baton/relay/transform.h>
#include <baton/support/pointer_map.h>
#include <baton/tir/functor.h>

#include <algorithm>

#include "whole_states.h"

namespace baton::relay::transform {
namespace {

using Axes = std::vector<int64_t>;

[[noreturn]] void Fail(const std::string& input, const std::string& output, const std::string& why) {
  throw CompileError("state `" + input + "` -> `" + output + "`: " + why);
}

const TensorTypeNode* TensorOf(const Expr& e) {
  return e->checked_type_.defined() ? e->checked_type_.as<TensorTypeNode>() : nullptr;
}

/// `then` of what `first` gives.
Axes Composed(const Axes& first, const Axes& then) {
  Axes out;
  for (int64_t a : then) out.push_back(first[static_cast<size_t>(a)]);
  return out;
}

/// A transposition, by its axes; empty for another expression.
Axes AxesOf(const Expr& e, size_t rank) {
  const auto* call = e.as<CallNode>();
  if (!call || !call->op.same_as(op::transpose)) return {};
  const Array<int64_t>& given = AttrsAs<TransposeAttrs>(call->attrs).axes;
  Axes axes;
  for (size_t d = 0; d < rank; ++d) {
    int64_t a = static_cast<int64_t>(rank - 1 - d);
    if (given.defined() && !given.empty()) a = given[static_cast<int64_t>(d)];
    axes.push_back(a < 0 ? a + static_cast<int64_t>(rank) : a);
  }
  return axes;
}

bool SameExtent(const PrimExpr& a, const PrimExpr& b) {
  return DimOf(a) >= 0 || DimOf(b) >= 0 ? DimOf(a) == DimOf(b) : tir::ExprDeepEqual(a, b);
}
bool SameShape(const Array<PrimExpr>& shape, const TensorTypeNode* t) {
  bool same = t && t->shape.size() == shape.size();
  for (size_t d = 0; same && d < shape.size(); ++d) {
    same = SameExtent(shape[static_cast<int64_t>(d)], t->shape[static_cast<int64_t>(d)]);
  }
  return same;
}
Expr ReshapeOf(const Expr& x, const Array<PrimExpr>& shape) {
  return MakeCall<ReshapeAttrs>(op::reshape, {x},
                                [&](ReshapeAttrs* a) { a->newshape = ExtentArray(shape), a->allowzero = true; });
}

/// `x` of this shape with its dimensions in another order: as it is where only extents of 1 move.
Expr Permuted(const Expr& x, const Array<PrimExpr>& shape, const Axes& axes) {
  int64_t last = -1;
  bool moves = false, same = true;
  Array<PrimExpr> out;
  for (size_t d = 0; d < axes.size(); ++d) {
    out.push_back(shape[axes[d]]);
    same = same && axes[d] == static_cast<int64_t>(d);
    if (DimOf(shape[axes[d]]) == 1) continue;
    moves = moves || axes[d] < last;
    last = axes[d];
  }
  if (same) return x;
  if (moves) return Transpose(x, Array<int64_t>(axes.begin(), axes.end()));
  return ReshapeOf(x, out);
}

struct State {
  Var past, buffer;
  int64_t input = 0, axis = 0;
  Expr present;      // concatenate((past, rows))
  Axes order, back;  // from the model's order to that of the memory, and back
  Expr rows, appended;
};

class Rewriter : public MixedModeMutator {
 public:
  explicit Rewriter(std::vector<State>* states) {
    for (State& s : *states) {
      by_present_[s.present.get()] = &s;
      memo_[s.past] = Transpose(s.buffer, Array<int64_t>(s.back.begin(), s.back.end()));
    }
  }

 private:
  Expr Rewrite_(const CallNode* pre, const Expr& post) final {
    if (State* const* s = by_present_.Find(pre)) return Append(*s, post);
    const auto* call = post.as<CallNode>();
    if (pre->op.same_as(op::transpose)) {
      const auto* type = TensorOf(pre->args[0]);
      if (!type || !StateUnder(call->args[0])) return post;
      const size_t rank = type->shape.size();
      const Axes axes = Composed(AxesOf(call->args[0], rank), AxesOf(post, rank));
      return Transpose(call->args[0].as<CallNode>()->args[0], Array<int64_t>(axes.begin(), axes.end()));
    }
    if (pre->op.same_as(op::reshape)) {
      const Product* p = products_.Find(call->args[0].get());
      return p && SameShape(p->shape, TensorOf(GetRef<Expr>(pre))) ? p->result : post;
    }
    if (pre->op.same_as(op::attention)) return AttendInPlace(post);
    const bool plain = pre->op.same_as(op::matmul), batch = pre->op.same_as(op::batch_matmul);
    return plain || batch ? ReadInPlace(pre, post, batch) : post;
  }

  /// Returns the operand of a transposition of a state's memory; null for other expressions.
  static const CallNode* StateUnder(const Expr& e) {
    const auto* t = e.as<CallNode>();
    if (!t || !t->op.same_as(op::transpose)) return nullptr;
    const auto* append = t->args[0].as<CallNode>();
    return append && append->op.same_as(op::memory_append) ? append : nullptr;
  }

  Expr Append(State* s, const Expr& post) {
    Expr rows = post.as<CallNode>()->args[0].as<TupleNode>()->fields[1];
    // The model's names of them: types belong to its expressions.
    Expr typed = s->rows;
    Axes order = s->order;
    const Axes own = AxesOf(typed, order.size());
    if (!own.empty() && !AxesOf(rows, order.size()).empty()) {
      typed = typed.as<CallNode>()->args[0], rows = rows.as<CallNode>()->args[0];
      order = Composed(own, order);
    }
    rows = Permuted(rows, TensorOf(typed)->shape, order);
    if (!rows->span.defined()) rows->span = post->span;
    s->appended = MakeCall(op::memory_append, {s->buffer, rows});
    s->appended->span = post->span;
    return Transpose(s->appended, Array<int64_t>(s->back.begin(), s->back.end()));
  }

  /// Attention reads keys and values of a state where they are: their layouts become those of its memory.
  static Expr AttendInPlace(const Expr& post) {
    const auto* call = post.as<CallNode>();
    Array<Expr> args = call->args;
    if (!StateUnder(args[1]) && !StateUnder(args[2])) return post;
    AttentionAttrs attrs = AttrsAs<AttentionAttrs>(call->attrs);
    for (int64_t i : {1, 2}) {
      if (!StateUnder(args[i])) continue;
      String& layout = i == 1 ? attrs.key_layout : attrs.value_layout;
      std::string in_memory(layout.size(), ' ');
      const Axes axes = AxesOf(args[i], layout.size());
      for (size_t d = 0; d < axes.size(); ++d) in_memory[static_cast<size_t>(axes[d])] = layout.view()[d];
      layout = in_memory;
      args.Set(i, args[i].as<CallNode>()->args[0]);
    }
    Expr out = MakeCall<AttentionAttrs>(op::attention, args, [&](AttentionAttrs* a) { *a = attrs; });
    out->span = post->span;
    return out;
  }

  /// A product reads a state in place. Importers give a product of stacks one dimension for the whole
  /// stack, by views; here it has those of the state.
  Expr ReadInPlace(const CallNode* pre, const Expr& post, bool batch) {
    const auto* call = post.as<CallNode>();
    const auto *a = TensorOf(pre->args[0]), *b = TensorOf(pre->args[1]), *out = TensorOf(GetRef<Expr>(pre));
    if (!a || !b || !out || a->dtype != out->dtype || b->dtype != out->dtype || a->shape.size() < 2) return post;
    bool swap_a = false, swap_b = false;
    if (batch) {
      const auto& m = AttrsAs<BatchMatmulAttrs>(pre->attrs);
      swap_a = m.transpose_a, swap_b = m.transpose_b;
    } else if (pre->attrs.defined()) {
      const auto& m = AttrsAs<MatmulAttrs>(pre->attrs);
      swap_a = m.transpose_a, swap_b = m.transpose_b;
    }
    Expr x = call->args[0], y = call->args[1];
    Array<PrimExpr> stacked;  // shape of the result, where the stack is one dimension in `out`
    const auto* view = pre->args[1].as<CallNode>();
    if (view && view->op.same_as(op::reshape) && !StateUnder(y) && y.as<CallNode>()) {
      const auto* full = TensorOf(view->args[0]);
      y = y.as<CallNode>()->args[0];
      if (!full || b->shape.size() != 3 || a->shape.size() != 3 || full->shape.size() < 3) return post;
      const size_t rank = full->shape.size();
      if (!SameExtent(full->shape[rank - 1], b->shape[2]) || !SameExtent(full->shape[rank - 2], b->shape[1]) ||
          !SameExtent(a->shape[0], b->shape[0])) {
        return post;
      }
      stacked = Array<PrimExpr>(full->shape.begin(), full->shape.end() - 2);
      Array<PrimExpr> rows = stacked;
      rows.push_back(a->shape[1]), rows.push_back(a->shape[2]);
      stacked.push_back(out->shape[1]), stacked.push_back(out->shape[2]);
      const auto* of_x = pre->args[0].as<CallNode>();
      const bool viewed = of_x && of_x->op.same_as(op::reshape) && x.as<CallNode>() &&
                          x.as<CallNode>()->op.same_as(op::reshape) && SameShape(rows, TensorOf(of_x->args[0]));
      x = viewed ? x.as<CallNode>()->args[0] : ReshapeOf(x, rows);
      b = full;
    }
    const size_t rank = b->shape.size();
    if (swap_a || rank < 2 || !StateUnder(y)) return post;
    Axes axes = AxesOf(y, rank);
    if (swap_b) std::swap(axes[rank - 1], axes[rank - 2]);
    Expr e = MakeCall<MatmulPermutedAttrs>(
        op::matmul_permuted, {x, y.as<CallNode>()->args[0]},
        [&](MatmulPermutedAttrs* m) { m->axes = Array<int64_t>(axes.begin(), axes.end()); });
    e->span = post->span;
    if (stacked.empty()) return e;
    Expr flat = ReshapeOf(e, out->shape);
    flat->span = post->span;
    products_[flat.get()] = {flat, e, stacked};
    return flat;
  }

  struct Product {
    Expr flat, result;  // a view of the result
    Array<PrimExpr> shape;
  };
  PointerMap<Product> products_;  // by `flat`
  PointerMap<State*> by_present_;
};

int64_t InputNamed(const Function& main, const std::string& input, const std::string& output) {
  for (size_t i = 0; i < main->params.size(); ++i) {
    if (main->params[static_cast<int64_t>(i)]->name_hint() == String(input)) return static_cast<int64_t>(i);
  }
  Fail(input, output, "the model has no such input");
}

/// Whether it is the input with other elements: a state that keeps its size.
bool IsWhole(const Expr& past, const Expr& value) {
  const auto *before = TensorOf(past), *after = TensorOf(value);
  return before && after && before->dtype == after->dtype && SameShape(before->shape, after);
}

/// A state by the names of its input and its output, `value`.
State Found(const Function& main, const std::string& input, const std::string& output, const Expr& value) {
  State s;
  s.input = InputNamed(main, input, output);
  s.past = main->params[s.input];
  const auto* type = TensorOf(s.past);
  const auto* call = value.as<CallNode>();
  const auto* parts = call && call->op.same_as(op::concatenate) ? call->args[0].as<TupleNode>() : nullptr;
  if (!type || !parts || parts->fields.size() != 2 || !parts->fields[0].same_as(s.past) ||
      !TensorOf(parts->fields[1])) {
    Fail(input, output,
         "the output is not the input with new elements behind it (a concatenation of two along one axis), and not of "
         "the input's type");
  }
  const auto rank = static_cast<int64_t>(type->shape.size());
  s.axis = AttrsAs<ConcatenateAttrs>(call->attrs).axis;
  if (s.axis < 0) s.axis += rank;
  if (!type->shape[s.axis].as<tir::VarNode>()) {
    Fail(input, output, "dimension " + std::to_string(s.axis) + " of the input is not open by a name of its own");
  }
  s.present = value, s.rows = parts->fields[1];
  s.order = {s.axis};
  for (int64_t d = 0; d < rank; ++d) {
    if (d != s.axis) s.order.push_back(d);
  }
  s.back.resize(s.order.size());
  Array<PrimExpr> shape;
  for (size_t d = 0; d < s.order.size(); ++d) {
    s.back[static_cast<size_t>(s.order[d])] = static_cast<int64_t>(d);
    shape.push_back(type->shape[s.order[d]]);
  }
  s.buffer = Var(s.past->name_hint(), TensorType(shape, type->dtype));
  s.buffer->span = s.past->span;
  return s;
}

Function ToBuffers(const Function& main, const Map<String, String>& pairs) {
  const auto* results = main->body.as<TupleNode>();
  const auto names = main->GetAttr<Array<String>>("output_names", Array<String>());
  const auto forms = main->GetAttr<Array<String>>("output_forms", Array<String>());
  if (!results) throw CompileError("state: the model gives no tuple, so that no output is what a state becomes");
  std::vector<State> states;
  std::vector<std::pair<int64_t, int64_t>> whole;  // input and result
  PointerSet kept_back;
  for (const auto& [input, output] : pairs) {
    int64_t at = -1;
    for (size_t i = 0; i < results->fields.size(); ++i) {
      const auto k = static_cast<int64_t>(i);
      const std::string name = i < names.size() ? names[k].str() : "output" + std::to_string(i);
      if (name == output.str()) at = k;
    }
    if (at < 0) Fail(input.str(), output.str(), "the model has no such output");
    const int64_t from = InputNamed(main, input.str(), output.str());
    if (IsWhole(main->params[from], results->fields[at])) {
      for (const auto& [other, result] : whole) {
        if (result == at) Fail(input.str(), output.str(), "the output is that of another state");
      }
      whole.push_back({from, at});
      continue;
    }
    states.push_back(Found(main, input.str(), output.str(), results->fields[at]));
    if (kept_back.Has(states.back().present.get()))
      Fail(input.str(), output.str(), "the output is that of another state");
    kept_back.Add(states.back().present.get());
  }
  std::sort(states.begin(), states.end(), [](const State& a, const State& b) { return a.input < b.input; });
  Rewriter rewriter(&states);
  const Expr body = rewriter.Mutate(main->body);
  Array<Expr> fields;
  Array<String> kept_names, kept_forms;
  Array<int64_t> inputs;
  Array<Var> params = main->params;
  auto keep = [&](int64_t k) {
    const auto i = static_cast<size_t>(k);
    fields.push_back(body.as<TupleNode>()->fields[k]);
    kept_names.push_back(i < names.size() ? names[k] : String("output" + std::to_string(i)));
    if (i < forms.size()) kept_forms.push_back(forms[k]);
  };
  for (size_t i = 0; i < results->fields.size(); ++i) {
    const auto k = static_cast<int64_t>(i);
    const bool is_whole = std::any_of(whole.begin(), whole.end(), [&](const auto& w) { return w.second == k; });
    if (!is_whole && !kept_back.Has(results->fields[k].get())) keep(k);
  }
  Array<int64_t> whole_inputs;
  for (const auto& [input, result] : whole) {
    keep(result);
    whole_inputs.push_back(input);
  }
  for (const State& s : states) {
    fields.push_back(s.appended);
    inputs.push_back(s.input);
    params.Set(s.input, s.buffer);
  }
  Function f(params, Tuple(fields), Type(), main->type_params, main->attrs);
  f = WithAttr(f, "output_names", runtime::Any(kept_names));
  if (!forms.empty()) f = WithAttr(f, "output_forms", runtime::Any(kept_forms));
  f = WithAttr(f, kState, runtime::Any(Map<String, String>()));
  if (!whole.empty()) f = WithAttr(f, kWholeStates, runtime::Any(whole_inputs));
  return WithAttr(f, kStateInputs, runtime::Any(inputs));
}

}  // namespace

Pass StateToBuffers() {
  return MakePass<StateToBuffers>({
      .doc = "Makes of each state of main (attribute `state`: input to output) memory that is appended to in place: "
             "concatenate((past, rows)) becomes memory.append, with the appended dimension outermost, and products "
             "read it in that order. A state that keeps its shape stays an input and a result. Results that are states "
             "come "
             "last.",
      .opt_level = 0,
      .required = {"InferType"},
      .run = [](Function f, IRModule, PassContext) -> Function {
        const auto pairs = f->GetAttr<Map<String, String>>(kState, Map<String, String>());
        return pairs.empty() ? f : ToBuffers(f, pairs);
      },
  });
}

namespace {
const RegisterPass<StateToBuffers> registered_state_to_buffers;
}

}  // namespace baton::relay::transform
