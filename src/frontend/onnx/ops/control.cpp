// SPDX-License-Identifier: Apache-2.0
// Control flow. Loops become a recursive function, but for short ones of known length, which are unrolled, and those of
// known length whose state changes its shape.
#include <baton/tir/expr.h>

#include <algorithm>
#include <functional>
#include <optional>

#include "common.h"
#include "frontend/onnx/import/host_values.h"
#include "frontend/onnx/import/importer_impl.h"
#include "frontend/onnx/reader/check.h"
#include "frontend/onnx/reader/model_error.h"
#include "loops.h"

namespace baton::onnx {
namespace {

/// A loop is unrolled up to this many iterations.
constexpr int64_t kMaxIterations = 1024;

Values If(Ctx& c) {
  Importer* importer = c.importer();
  const Graph *then_graph = c.GraphAttr("then_branch"), *else_graph = c.GraphAttr("else_branch");
  if (then_graph == nullptr || else_graph == nullptr) c.Fail("a branch is missing");
  Value cond = c.T(0);
  const Env* env = importer->env();
  Surroundings around = importer->around();
  if (c.Known(cond)) {
    return importer->Inline(c.KnownScalar(cond) != 0 ? *then_graph : *else_graph, env, {}, around);
  }
  const size_t which = importer->EnterIf();
  if (const std::optional<bool> taken = importer->Decided(which)) {
    return importer->Inline(*taken ? *then_graph : *else_graph, env, {}, around);
  }
  auto [a, b] = importer->Branches(cond, *then_graph, *else_graph, env, around);
  if (AnyPoison(a) || AnyPoison(b)) return Poison(c.num_outputs());
  if (a.size() != b.size()) c.Fail("its branches have different numbers of outputs");
  Values both(a.size());
  for (size_t i = 0; i < a.size(); ++i) {
    if (SameType(a[i], b[i]) && a[i].kind != Value::kNothing) {
      both[i] = a[i];
      continue;
    }
    if (!Join(a[i], b[i], &both[i])) importer->LeaveOpen(which, cond);
    if (both[i].kind == Value::kNothing) both[i] = HostValueOf(Value::kOptional, Value());
  }
  return importer->Choice(cond, a, b, both);
}

/// Whether a loop of so many rounds is better as that many copies of its body.
bool Unrolls(const Graph& body, int64_t rounds) {
  if (rounds == -1 || Ctx::IsSymbol(rounds)) return false;
  constexpr int64_t kRounds = 4, kNodes = 32;
  return rounds <= kRounds || rounds * static_cast<int64_t>(body.nodes.size()) <= kNodes;
}

/// Whether all are tensors whose lengths are literals or symbols.
bool AllSized(const Values& v) {
  return std::all_of(v.begin(), v.end(),
                     [](const Value& x) { return x.kind == Value::kTensor && Ctx::Sized(x) && !x.form; });
}

relay::Var Param(const std::string& name, const baton::Type& type) {
  relay::Var var(name, type);
  var->checked_type_ = type;
  return var;
}

/// Whether the body gives its input `name` back as its output `result`, unchanged.
bool Keeps(const Graph& body, std::string_view name, std::string_view result) {
  for (size_t steps = 0; result != name; ++steps) {
    const auto made = std::find_if(body.nodes.begin(), body.nodes.end(), [&](const Node& node) {
      return std::find(node.outputs.begin(), node.outputs.end(), result) != node.outputs.end();
    });
    if (made == body.nodes.end() || made->op_type != "Identity" || steps == body.nodes.size()) return false;
    result = made->inputs[0];
  }
  return true;
}

/// Whether the tensor is computed: as part of a loop's function it would be so in each round.
bool IsComputed(const Value& v) {
  return v.kind == Value::kTensor && v.host == nullptr && v.partial == nullptr && !v.form && Ctx::Sized(v) &&
         v.expr.defined() && v.expr.as<relay::VarNode>() == nullptr && v.expr.as<relay::ConstantNode>() == nullptr;
}

/// What the body of a loop reads from outside that is computed there. The loop passes it on from round to round.
struct Outside {
  std::vector<std::string_view> names;
  Values values;

  Outside(const Graph& body, const Env* env) {
    for (std::string_view name : FreeNames(body)) {
      const Value* v = env->Find(name);
      if (v == nullptr || !IsComputed(*v)) continue;
      names.push_back(name);
      values.push_back(*v);
    }
  }
  /// The surroundings with `now`, parameters of the loop, as these values.
  Env Within(const Env* env, const Value* now) const {
    Env in{env, {}};
    for (size_t k = 0; k < names.size(); ++k) {
      Value& v = in.values[names[k]] = values[k];
      v.expr = now[k].expr;
    }
    return in;
  }
};

/// The body of a Loop, in which constants that it keeps as states are constants: exporters pass weights so.
struct LoopBody {
  const Graph& graph;
  Values all;                   // the states as the loop begins
  std::vector<size_t> varying;  // those that are no such constants
  const Env* env;
  Surroundings around;
  Outside outside;

  LoopBody(Importer* importer, const Graph& graph_, Values states)
      : graph(graph_), all(std::move(states)), env(importer->env()), around(importer->around()), outside(graph_, env) {
    for (size_t k = 0; k < all.size(); ++k) {
      // An expression would be part of the function, and be computed in each round.
      const bool constant = all[k].host != nullptr;
      if (!constant || !Keeps(graph, graph.inputs[k + 2].name, graph.outputs[k + 1].name)) varying.push_back(k);
    }
  }
  size_t NumScans() const { return graph.outputs.size() - 1 - all.size(); }
  std::string_view NameOf(size_t k) const {
    return k < varying.size() ? graph.inputs[varying[k] + 2].name : outside.names[k - varying.size()];
  }
  const Type& ScanType(size_t k) const { return graph.outputs[1 + all.size() + k].type; }
  /// What the loop passes from round to round: of `values`, one for each state, the varying ones, and those from
  /// outside.
  Values Passed(const Values& values) const {
    Values some;
    for (size_t k : varying) some.push_back(values[k]);
    some.insert(some.end(), outside.values.begin(), outside.values.end());
    return some;
  }
  /// The condition, what is passed on and the rows of a round to which `now` is passed; poison where a node is not
  /// supported.
  Values Round(Importer* importer, const Value& i, const Value& go, const Values& now) const {
    Values inputs = {i, go};
    inputs.insert(inputs.end(), all.begin(), all.end());
    for (size_t k = 0; k < varying.size(); ++k) inputs[varying[k] + 2] = now[k];
    const Env within = outside.Within(env, now.data() + varying.size());
    const Values out = importer->Subgraph(graph, &within, inputs, around);
    if (AnyPoison(out)) return out;
    Values some = {out[0]};
    for (size_t k : varying) some.push_back(out[k + 1]);
    some.insert(some.end(), now.begin() + static_cast<std::ptrdiff_t>(varying.size()), now.end());
    some.insert(some.end(), out.begin() + 1 + static_cast<std::ptrdiff_t>(all.size()), out.end());
    return some;
  }
  /// The results of the loop from what it passes at last and its rows: all states, and the rows.
  Values Results(const Values& results) const {
    Values out = all;
    for (size_t k = 0; k < varying.size(); ++k) out[varying[k]] = results[k];
    out.insert(out.end(), results.begin() + static_cast<std::ptrdiff_t>(varying.size() + outside.names.size()),
               results.end());
    return out;
  }
};

/// Room for as many rows like `row`: a literal, a symbol, or -1 for the number `last`.
Value NoRows(Ctx& c, const Value& row, int64_t rounds, const Value& last) {
  if (rounds != -1) {
    Dims shape = row.dims;
    shape.insert(shape.begin(), rounds);
    return c.Full(row.dtype, 0, shape);
  }
  const Value most = c.Reshape(c.Call("maximum", {last, c.Int64(0)}), {1});
  const Value rest = row.fixed() ? c.Int64s(row.dims) : c.ShapeOf(c.Full(row.dtype, 0, row.dims));
  const Value shape = row.dims.empty() ? most : c.Concat({most, rest}, 0);
  return c.Call("dyn.full", {c.Scalar(row.dtype, 0), shape});
}

/// A loop of `rounds` rounds, whose value is `last`, as one function, in which weights are held once:
/// `loop(i, over, state..., rows...)` calls itself. `rounds` is a literal, a symbol, or -1 where the number is known
/// only when the model runs. `step(i, state)` gives the state and `scans` rows of a round, none where a loop does not
/// go on for certain. Row k of round i stands at i, or counted from the end where `backward[k]`. Nothing where types
/// change, or a type is not known.
std::optional<Values> CountedLoop(Ctx& c, int64_t rounds, const Value& last, const Values& state, size_t scans,
                                  const std::vector<bool>& backward,
                                  const std::function<Values(const Value& i, const Values& state)>& step) {
  Importer* importer = c.importer();
  const size_t n = state.size(), problems = importer->problems();
  if (!AllSized(state)) return std::nullopt;
  Array<relay::Var> vars;
  Array<baton::Type> var_types;
  auto param = [&](const std::string& name, const baton::Type& type) {
    vars.push_back(Param(name, type));
    var_types.push_back(type);
    return importer->FromRelayType(type, vars.back());
  };
  const Value i = param("i", TensorType(Array<PrimExpr>(), DataType::Int(64)));
  const Value over = param("over", TensorType(Array<PrimExpr>(), DataType::Bool()));
  Values now;
  for (size_t k = 0; k < n; ++k) now.push_back(param("state" + std::to_string(k), importer->TypeOfValue(state[k])));
  Values out;
  try {
    out = step(i, now);
  } catch (const NodeUnsupported&) {
    out.clear();
  } catch (const CompileError&) {
    out.clear();  // a body that is wrong is so when it is unrolled
  }
  bool same = out.size() == n + scans && importer->problems() == problems && AllSized(out);
  for (size_t k = 0; same && k < n; ++k) same = SameType(out[k], now[k]);
  if (!same) {
    importer->DropProblems(problems);
    return std::nullopt;
  }
  Array<relay::Expr> first, next;
  auto pass = [&](const Value& at_first, const Value& then) {
    first.push_back(importer->ExprOf(at_first));
    next.push_back(importer->ExprOf(then));
  };
  const Value after = c.Add(i, 1);
  pass(c.Int64(0), after);
  pass(rounds < 0 ? c.Call("less", {last, c.Int64(1)}) : c.Scalar(DataType::Bool(), 0),
       c.Call("greater_equal", {after, last}));
  Values results = now;
  for (size_t k = 0; k < n; ++k) pass(state[k], out[k]);
  for (size_t k = 0; k < scans; ++k) {
    const Value& row = out[n + k];
    const Value none = NoRows(c, row, rounds, last);
    results.push_back(param("rows" + std::to_string(k), importer->TypeOfValue(none)));
    pass(none, c.Call("contrib_set_row", {results.back(), row, backward[k] ? c.Sub(last, after) : i}));
  }
  // The end stands first: what the next round gets is then read for the last time, and written in place.
  const relay::Expr done = importer->ExprOf(TupleOf(results));
  const baton::Type type = done->checked_type();
  relay::Var loop = Param("loop", FuncType(Array<TypeVar>(), var_types, type, Array<TypeConstraint>()));
  relay::Call again(loop, next, Attrs(), Array<baton::Type>());
  again->checked_type_ = type;
  relay::If choice(importer->ExprOf(over), done, again);
  choice->checked_type_ = type;
  return importer->FromRelayType(type, CallOfLoop(loop, vars, choice, first)).items;
}

/// What a loop of unknown length has of the values `v` of its rounds, and what it begins with in `none`.
Value Collected(Ctx& c, Value v, const Type& declared, Value* none) {
  if (v.kind != Value::kTensor) c.Unsupported("a loop that collects what is no tensor");
  // A length that inference does not find may be declared; the empty initial value needs it.
  for (size_t d = 0; d < v.dims.size() && d < declared.shape.size(); ++d) {
    if (v.dims[d] == -1) v.dims[d] = declared.shape[d].value;
  }
  if (!Ctx::Sized(v)) {  // tensors of a shape that the first of them tells are kept as a sequence
    const Value list = HostValueOf(Value::kSequence, v);
    *none = c.importer()->CallHost("SequenceConstruct", {}, list);
    return list;
  }
  Dims empty = v.dims;
  empty.insert(empty.begin(), 0);
  *none = c.Full(v.dtype, 0, empty);
  v.host = nullptr;
  v.dims.insert(v.dims.begin(), -1);
  return v;
}

/// Whether nodes or outputs of the body read its input `name`.
bool Reads(const Graph& body, std::string_view name) {
  auto is_name = [&](const auto& v) { return v.name == name; };
  if (std::any_of(body.outputs.begin(), body.outputs.end(), is_name)) return true;
  return std::any_of(body.nodes.begin(), body.nodes.end(), [&](const Node& node) {
    if (std::find(node.inputs.begin(), node.inputs.end(), name) != node.inputs.end()) return true;
    return std::any_of(node.attributes.begin(), node.attributes.end(), [&](const Attribute& a) {
      return std::any_of(a.graphs.begin(), a.graphs.end(),
                         [&](const auto& g) { return FreeNames(g).count(name) != 0; });
    });
  });
}

/// Gives a state the type of `after`, which a round makes of it: one that is not read begins with any value, a scalar
/// that becomes a tensor of one element begins as that. False for others.
bool BeginsAs(Ctx& c, const Value& after, bool read, Value* state) {
  if (after.kind != Value::kTensor || !after.ranked || after.form) return false;
  if (!read) {
    Dims empty = after.dims;
    for (int64_t& d : empty) d = d == -1 ? 0 : d;
    *state = c.Full(after.dtype, 0, empty);
    return true;
  }
  if (state->kind != Value::kTensor || state->rank() != 0 || !(state->dtype == after.dtype)) return false;
  if (std::any_of(after.dims.begin(), after.dims.end(), [](int64_t d) { return d != 1; })) return false;
  *state = c.Reshape(*state, after.dims);
  return true;
}

/// Throws for a state that a round gives in another form than it takes; says which, and both types.
[[noreturn]] void ChangesType(Ctx& c, std::string_view name, const Value& before, const Value& after) {
  auto text = [](const Value& v) {
    if (v.kind != Value::kTensor || !v.ranked) return std::string("a value that is no tensor of known rank");
    return runtime::DataType2String(v.dtype) + " of rank " + std::to_string(v.dims.size());
  };
  c.Unsupported("a loop whose state `" + Printable(name) + "` changes its type, from " + text(before) + " to " +
                text(after));
}

/// A loop whose number of iterations is unknown: `loop(i, go, state..., collected...)` calls itself. Where its first
/// round is `certain`, a state may begin with another type (BeginsAs).
Values LoopFunction(Ctx& c, const LoopBody& body, const Value& most, const Value& go, Values state, bool certain) {
  Importer* importer = c.importer();
  const size_t n = state.size(), scans = body.NumScans();
  auto param = [&](const std::string& name, const Value& like) {
    baton::Type t = importer->TypeOfValue(like);
    relay::Var var(name, t);
    var->checked_type_ = t;
    return like.kind == Value::kTensor ? FormedAs(importer->FromRelayType(t, var), like)
                                       : FormedAs(FromExpr(var, t), like);
  };
  const Value count = c.Unknown(DataType::Int(64), {}), flag = c.Unknown(DataType::Bool(), {});
  Values types = state, params, out;
  Value i, goes;
  // The types of the state are those that the body preserves: a length that it changes becomes unknown.
  for (int round = 0;; ++round) {
    if (round == 4) c.Unsupported("a loop whose states have lengths that follow from each other");
    params.clear();
    i = param("i", count);
    goes = param("go", flag);
    for (size_t k = 0; k < n; ++k) {
      types[k].host = nullptr;
      params.push_back(param(std::string(body.NameOf(k)), types[k]));
    }
    size_t problems = importer->problems();
    out = body.Round(importer, i, goes, params);
    if (AnyPoison(out)) return Poison(c.num_outputs());
    bool same = true;
    for (size_t k = 0; k < n; ++k) {
      Value wide;
      if (!Join(types[k], out[k + 1], &wide)) {
        const std::string_view name = body.NameOf(k);
        if (round != 0 || !certain || !BeginsAs(c, out[k + 1], Reads(body.graph, name), &state[k])) {
          ChangesType(c, name, types[k], out[k + 1]);
        }
        wide = out[k + 1];
        wide.host = nullptr;
        wide.partial = nullptr;
      }
      same = same && SameType(wide, types[k]);
      types[k] = wide;
    }
    importer->DropProblems(problems);
    if (same) break;
  }
  Values collected, start;
  for (size_t k = 0; k < scans; ++k) {
    Value none;
    collected.push_back(param("collected" + std::to_string(k), Collected(c, out[1 + n + k], body.ScanType(k), &none)));
    start.push_back(none);
  }
  Array<relay::Var> vars;
  Array<baton::Type> var_types, result_types;
  auto add = [&](const Value& v) {
    vars.push_back(Downcast<relay::Var>(v.expr));
    var_types.push_back(v.expr->checked_type());
  };
  add(i);
  add(goes);
  Values results;
  for (const Value& v : params) add(v), results.push_back(v);
  for (const Value& v : collected) add(v), results.push_back(v);
  for (const Value& v : results) result_types.push_back(v.expr->checked_type());
  TupleType result_type(result_types);
  FuncType func_type(Array<TypeVar>(), var_types, result_type, Array<TypeConstraint>());
  relay::Var loop("loop", func_type);
  loop->checked_type_ = func_type;
  Value more = goes;
  if (most) more = c.Call("logical_and", {goes, c.Call("less", {i, Scalar0(c, most)})});
  Array<relay::Expr> next;
  next.push_back(importer->ExprOf(c.Add(i, 1)));
  next.push_back(importer->ExprOf(Scalar0(c, out[0])));
  auto formed = [&](const Value& v, const Value& like) {
    return importer->ExprOf(v.kind == Value::kTensor ? v : importer->InForm(v, like));
  };
  for (size_t k = 0; k < n; ++k) next.push_back(formed(out[k + 1], types[k]));
  for (size_t k = 0; k < scans; ++k) {
    const Value& v = out[1 + n + k];
    next.push_back(importer->ExprOf(collected[k].kind == Value::kSequence
                                        ? importer->CallHost("SequenceInsert", {collected[k], v}, collected[k])
                                        : c.Concat({collected[k], c.Unsqueeze(v, {0})}, 0)));
  }
  relay::Call again(loop, next, Attrs(), Array<baton::Type>());
  again->checked_type_ = result_type;
  relay::Expr done = importer->ExprOf(TupleOf(results));
  relay::If choice(importer->ExprOf(more), again, done);
  choice->checked_type_ = result_type;
  Array<relay::Expr> first;
  first.push_back(importer->ExprOf(c.Int64(0)));
  first.push_back(importer->ExprOf(go ? Scalar0(c, go) : c.Scalar(DataType::Bool(), 1)));
  for (size_t k = 0; k < n; ++k) first.push_back(formed(state[k], types[k]));
  for (const Value& v : start) first.push_back(importer->ExprOf(v));
  Values all = FormedAs(FromExpr(CallOfLoop(loop, vars, choice, first), result_type), TupleOf(results)).items;
  for (size_t k = 0; k < scans; ++k) {
    if (collected[k].kind == Value::kSequence) all[n + k] = importer->Stacked(all[n + k]);
  }
  return all;
}

/// The number of rounds where it is an expression of lengths, else -1.
int64_t OpenRounds(Ctx& c, const Value& most) {
  try {
    const Dims known = c.KnownLengths(most);
    return known.size() == 1 && Ctx::IsSymbol(known[0]) ? c.Most(known[0], 0) : -1;
  } catch (const NeedsValue&) {
    return -1;
  }
}

Values Loop(Ctx& c) {
  Importer* importer = c.importer();
  const Graph* body = c.GraphAttr("body");
  if (body == nullptr) c.Fail("its body is missing");
  Value most = c.Opt(0), go = c.Opt(1);
  Values state;
  for (size_t i = 2; i < c.num_inputs(); ++i) state.push_back(c.In(i));
  size_t n = state.size();
  if (body->inputs.size() != n + 2 || body->outputs.size() < n + 1) c.Fail("its body does not fit its operands");
  const LoopBody loop(importer, *body, state);
  const size_t scans = loop.NumScans();
  bool counted = !most || c.Known(most), decided = !go || c.Known(go);
  if (most && c.Known(most) && most.host->size() != 1) c.Fail("its trip count is not one number");
  int64_t rounds = most && c.Known(most) ? most.host->IntAt(0) : kMaxIterations + 1;
  if (most && decided && !(counted && Unrolls(*body, rounds)) && (!go || c.KnownScalar(go) != 0)) {
    const int64_t count = counted ? rounds : OpenRounds(c, most);
    const Value flag = c.Scalar(DataType::Bool(), 1);
    auto step = [&](const Value& i, const Values& now) {
      Values out = loop.Round(importer, i, flag, now);
      if (AnyPoison(out) || !c.Known(out[0]) || c.KnownScalar(out[0]) == 0) return Values();
      out.erase(out.begin());
      return out;
    };
    const Value last = counted ? c.Int64(rounds) : Scalar0(c, most);
    const Values passed = loop.Passed(state);
    if (auto made = CountedLoop(c, count, last, passed, scans, std::vector<bool>(scans), step))
      return loop.Results(*made);
  }
  if (counted && decided) {
    std::vector<Values> kept(scans);
    bool goes = !go || c.KnownScalar(go) != 0, unrolled = true;
    Values now = state;
    Value flag = c.Scalar(DataType::Bool(), 1);
    size_t problems = importer->problems();
    for (int64_t i = 0; goes && i < rounds; ++i) {
      if (i >= kMaxIterations) {
        unrolled = false;
        break;
      }
      Values inputs = {c.Int64(i), flag};
      inputs.insert(inputs.end(), now.begin(), now.end());
      Values out = importer->Subgraph(*body, loop.env, inputs, loop.around);
      if (AnyPoison(out)) return Poison(c.num_outputs());
      if (!c.Known(out[0])) {
        unrolled = false;
        break;
      }
      goes = c.KnownScalar(out[0]) != 0;
      now.assign(out.begin() + 1, out.begin() + 1 + static_cast<std::ptrdiff_t>(n));
      for (size_t k = 0; k < scans; ++k) kept[k].push_back(c.Unsqueeze(out[1 + n + k], {0}));
    }
    if (unrolled) {
      for (const Values& k : kept) {
        if (k.empty()) c.Unsupported("a loop of no rounds that collects values");
        now.push_back(c.Concat(k, 0));
      }
      return now;
    }
    importer->DropProblems(problems);
  }
  const bool certain = (!most || (counted && rounds > 0)) && (!go || (c.Known(go) && c.KnownScalar(go) != 0));
  const Values results = LoopFunction(c, loop, most, go, loop.Passed(state), certain);
  return AnyPoison(results) ? Poison(c.num_outputs()) : loop.Results(results);
}

/// Of the scanned operands and of the collected values: axes, and whether they are taken from the end.
struct ScanAxes {
  Dims in, in_back, out, out_back;
};

/// A scan as one function for all steps, whose number is a literal, a symbol, or -1; nothing where it is better
/// unrolled.
std::optional<Values> ScanLoop(Ctx& c, const Graph& body, int64_t steps, const Values& state, const Values& inputs,
                               const ScanAxes& axes) {
  if (Unrolls(body, steps)) return std::nullopt;
  Importer* importer = c.importer();
  const Env* env = importer->env();
  const Surroundings around = importer->around();
  Value last = steps == -1 || Ctx::IsSymbol(steps) ? Value() : c.Int64(steps);
  if (!last) last = c.Reshape(Take(c, c.ShapeOf(inputs[0]), c.Int64s({axes.in[0]}), 0), {});
  // Operands that are computed, and values from outside, are passed on from step to step.
  const Outside outside(body, env);
  Values passed = state;
  for (const Value& input : inputs) {
    if (IsComputed(input)) passed.push_back(input);
  }
  passed.insert(passed.end(), outside.values.begin(), outside.values.end());
  auto step = [&](const Value& s, const Values& now) {
    Values args(now.begin(), now.begin() + static_cast<std::ptrdiff_t>(state.size()));
    size_t next = state.size();
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Value from = IsComputed(inputs[i]) ? now[next++] : inputs[i];
      const Value at = axes.in_back[i] != 0 ? c.Sub(c.Sub(last, 1), s) : s;
      args.push_back(c.Call("take", {from, at}, {{"axis", axes.in[i]}, {"mode", "clip"}}));
    }
    const Env within = outside.Within(env, now.data() + next);
    Values out = importer->Subgraph(body, &within, args, around);
    if (!AnyPoison(out))
      out.insert(out.begin() + static_cast<std::ptrdiff_t>(state.size()),
                 now.begin() + static_cast<std::ptrdiff_t>(state.size()), now.end());
    return out;
  };
  const std::vector<bool> backward(axes.out_back.begin(), axes.out_back.end());
  auto made = CountedLoop(c, steps, last, passed, axes.out.size(), backward, step);
  if (made)
    made->erase(made->begin() + static_cast<std::ptrdiff_t>(state.size()),
                made->begin() + static_cast<std::ptrdiff_t>(passed.size()));
  for (size_t k = 0; made && k < axes.out.size(); ++k) {
    Value& all = (*made)[state.size() + k];
    const int axis = c.Axis(axes.out[k], c.Rank(all));
    if (axis == 0) continue;
    Dims order;
    for (int64_t d = 1; d < c.Rank(all); ++d) order.push_back(d);
    order.insert(order.begin() + axis, 0);
    all = c.Transpose(all, order);
  }
  return made;
}

Values Scan(Ctx& c) {
  Importer* importer = c.importer();
  const Graph* body = c.GraphAttr("body");
  if (body == nullptr) c.Fail("its body is missing");
  int64_t scanned = c.Int("num_scan_inputs");
  bool old = c.since() < 9;
  size_t first = old ? 1 : 0;
  if (old && c.Has(0)) c.Unsupported("`sequence_lens`");
  if (scanned < 1 || static_cast<size_t>(scanned) + first > c.num_inputs())
    c.Fail("`num_scan_inputs` does not fit its operands");
  size_t n = c.num_inputs() - first - static_cast<size_t>(scanned);
  if (body->outputs.size() < n) c.Fail("its body does not fit its operands");
  size_t scans = body->outputs.size() - n;
  Dims in_axes = c.Ints("scan_input_axes"), out_axes = c.Ints("scan_output_axes");
  Dims in_back = old ? c.Ints("directions") : c.Ints("scan_input_directions"),
       out_back = c.Ints("scan_output_directions");
  in_axes.resize(static_cast<size_t>(scanned), 0);
  in_back.resize(static_cast<size_t>(scanned), 0);
  out_axes.resize(scans, 0);
  out_back.resize(scans, 0);
  const Env* env = importer->env();
  Surroundings around = importer->around();
  int64_t batch = old ? c.Dim(c.T(first), 0) : 1;
  if (batch > kMaxIterations) c.Unsupported("a batch of more than " + std::to_string(kMaxIterations));
  std::vector<Values> batches;
  for (int64_t b = 0; b < batch; ++b) {
    auto of_batch = [&](const Value& v) { return old ? c.Squeeze(c.Slice(v, 0, b, b + 1), {0}) : v; };
    Values state, inputs;
    for (size_t i = 0; i < n; ++i) state.push_back(old ? of_batch(c.T(first + i)) : c.In(i));
    int64_t steps = -1;  // a literal, a symbol, or -1 where the one operand's length is not known before the model runs
    for (size_t i = 0; i < static_cast<size_t>(scanned); ++i) {
      inputs.push_back(of_batch(c.T(first + n + i)));
      in_axes[i] = c.Axis(in_axes[i], c.Rank(inputs[i]));
      const auto axis = static_cast<int>(in_axes[i]);
      const int64_t length = scanned == 1 ? inputs[i].dims[static_cast<size_t>(axis)] : c.Length(inputs[i], axis);
      if (i > 0 && !c.AssumeEqual(steps, length)) c.Fail("its scanned operands differ in length");
      steps = length;
    }
    const ScanAxes axes{in_axes, in_back, out_axes, out_back};
    if (auto made = ScanLoop(c, *body, steps, state, inputs, axes)) {
      batches.push_back(*made);
      continue;
    }
    steps = c.Dim(inputs[0], static_cast<int>(in_axes[0]));
    if (steps > kMaxIterations) c.Unsupported("a scan of more than " + std::to_string(kMaxIterations) + " steps");
    std::vector<Values> kept(scans);
    for (int64_t s = 0; s < steps; ++s) {
      Values args = state;
      for (size_t i = 0; i < inputs.size(); ++i) {
        int64_t at = in_back[i] != 0 ? steps - 1 - s : s;
        args.push_back(c.Squeeze(c.Slice(inputs[i], static_cast<int>(in_axes[i]), at, at + 1), {in_axes[i]}));
      }
      Values out = importer->Subgraph(*body, env, args, around);
      if (AnyPoison(out)) return Poison(c.num_outputs());
      state.assign(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(n));
      for (size_t k = 0; k < scans; ++k) {
        int axis = c.Axis(out_axes[k], c.Rank(out[n + k]) + 1);
        Value v = c.Unsqueeze(out[n + k], {axis});
        kept[k].insert(out_back[k] != 0 ? kept[k].begin() : kept[k].end(), v);
      }
    }
    Values none;  // what a step would give, for its type
    if (steps == 0 && scans > 0) {
      Values args = state;
      for (size_t i = 0; i < inputs.size(); ++i) {
        Dims one = c.Fixed(inputs[i]);
        one.erase(one.begin() + in_axes[i]);
        args.push_back(c.Full(inputs[i].dtype, 0, one));
      }
      none = importer->Subgraph(*body, env, args, around);
      if (AnyPoison(none)) return Poison(c.num_outputs());
    }
    for (size_t k = 0; k < scans; ++k) {
      if (kept[k].empty()) {
        Dims shape = c.Fixed(none[n + k]);
        shape.insert(shape.begin() + c.Axis(out_axes[k], static_cast<int>(shape.size()) + 1), 0);
        state.push_back(c.Full(none[n + k].dtype, 0, shape));
        continue;
      }
      state.push_back(c.Concat(kept[k], c.Axis(out_axes[k], c.Rank(kept[k][0]))));
    }
    batches.push_back(state);
  }
  if (!old) return batches[0];
  Values all;
  for (size_t k = 0; k < batches[0].size(); ++k) {
    Values parts;
    for (const Values& b : batches) parts.push_back(c.Unsqueeze(b[k], {0}));
    all.push_back(c.Concat(parts, 0));
  }
  return all;
}

}  // namespace

bool AnyPoison(const Values& v) {
  return std::any_of(v.begin(), v.end(), [](const Value& x) { return x.kind == Value::kPoison; });
}

Values Poison(size_t n) {
  Value v;
  v.kind = Value::kPoison;
  return Values(n, v);
}

Value FromExpr(const relay::Expr& expr, const baton::Type& type) {
  Value v;
  v.expr = expr;
  if (const auto* t = type.as<TensorTypeNode>()) {
    v.kind = Value::kTensor;
    v.dtype = t->dtype;
    v.ranked = true;
    for (const PrimExpr& d : t->shape) {
      const auto* i = d.as<IntImmNode>();
      v.dims.push_back(i ? i->value : -1);
    }
  } else if (const auto* tuple = type.as<TupleTypeNode>()) {
    v.kind = Value::kTuple;
    for (size_t i = 0; i < tuple->fields.size(); ++i) {
      const baton::Type& field = tuple->fields[static_cast<int64_t>(i)];
      relay::TupleGetItem item(expr, static_cast<int64_t>(i));
      item->checked_type_ = field;
      v.items.push_back(FromExpr(item, field));
    }
  } else {
    v.kind = Value::kOpaque;
  }
  return v;
}

Value TupleOf(const Values& items) {
  Value v;
  v.kind = Value::kTuple;
  v.items = items;
  return v;
}

Value Scalar0(Ctx& c, const Value& v) { return c.Rank(v) == 0 ? v : c.Reshape(v, {}); }

/// `let loop = fn (vars) { body }; loop(first)`.
relay::Expr CallOfLoop(const relay::Var& loop, const Array<relay::Var>& vars, const relay::Expr& body,
                       const Array<relay::Expr>& first) {
  const baton::Type result = body->checked_type();
  relay::Function func(vars, body, result);
  func->checked_type_ = loop->checked_type_;
  relay::Call call(loop, first, Attrs(), Array<baton::Type>());
  call->checked_type_ = result;
  relay::Let let(loop, func, call);
  let->checked_type_ = result;
  return let;
}

void AddControl(OpTable* table) {
  for (const OpRow& row : {
           OpRow{"", "If", If},
           {"", "Loop", Loop},
           {"", "Scan", Scan},
       }) {
    table->push_back(row);
  }
}

}  // namespace baton::onnx
