// SPDX-License-Identifier: Apache-2.0
// Loop. It becomes a recursive function, but for short ones of known length, which are unrolled, and those of known
// length whose state changes its shape.
#include "loops.h"

#include <baton/tir/expr.h>

#include <algorithm>
#include <functional>
#include <optional>

#include "common.h"
#include "frontend/onnx/import/host_values.h"
#include "frontend/onnx/import/importer_impl.h"
#include "frontend/onnx/reader/check.h"
#include "frontend/onnx/reader/model_error.h"

namespace baton::onnx {
namespace {

/// Nodes that the rounds of a loop may come to before it stays a loop, if its states keep their types.
constexpr int64_t kMaxUnrolledNodes = 16384;

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

}  // namespace

bool Unrolls(const Graph& body, int64_t rounds) {
  if (rounds == -1 || Ctx::IsSymbol(rounds)) return false;
  constexpr int64_t kRounds = 4, kNodes = 32;
  return rounds <= kRounds || rounds * static_cast<int64_t>(body.nodes.size()) <= kNodes;
}

bool IsComputed(const Value& v) {
  return v.kind == Value::kTensor && v.host == nullptr && v.partial == nullptr && !v.form && Ctx::Sized(v) &&
         v.expr.defined() && v.expr.as<relay::VarNode>() == nullptr && v.expr.as<relay::ConstantNode>() == nullptr;
}

Outside::Outside(const Graph& body, const Env* env) {
  for (std::string_view name : FreeNames(body)) {
    const Value* v = env->Find(name);
    if (v == nullptr || !IsComputed(*v)) continue;
    names.push_back(name);
    values.push_back(*v);
  }
}

Env Outside::Within(const Env* env, const Value* now) const {
  Env in{env, {}};
  for (size_t k = 0; k < names.size(); ++k) {
    Value& v = in.values[names[k]] = values[k];
    v.expr = now[k].expr;
  }
  return in;
}

namespace {

/// The body of a Loop, in which constants that it keeps as states are constants: exporters pass weights so.
struct LoopBody {
  const Graph& graph;
  Values all;                   // the states as the loop begins
  std::vector<size_t> varying;  // all but such constants
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
  /// The values passed from round to round: of `values`, one for each state, the varying ones, and those from
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

}  // namespace

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
  // The end comes first: what the next round gets is then read for the last time, and written in place.
  const relay::Expr done = importer->ExprOf(TupleOf(results));
  const baton::Type type = done->checked_type();
  relay::Var loop = Param("loop", FuncType(Array<TypeVar>(), var_types, type, Array<TypeConstraint>()));
  relay::Call again(loop, next, Attrs(), Array<baton::Type>());
  again->checked_type_ = type;
  relay::If choice(importer->ExprOf(over), done, again);
  choice->checked_type_ = type;
  return importer->FromRelayType(type, CallOfLoop(loop, vars, choice, first)).items;
}

namespace {

/// Returns the collected values `v` of the rounds of a loop of unknown length; `none` gets its first value.
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
    bool goes = !go || c.KnownScalar(go) != 0, unrolled = true, settled = false;
    Values now = state;
    Value flag = c.Scalar(DataType::Bool(), 1);
    size_t problems = importer->problems();
    for (int64_t i = 0; goes && i < rounds; ++i) {
      if (i >= kMaxIterations || (settled && i * static_cast<int64_t>(body->nodes.size()) > kMaxUnrolledNodes)) {
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
      settled = std::equal(now.begin(), now.end(), out.begin() + 1, SameType);
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

}  // namespace

void AddLoops(OpTable* table) { table->push_back(OpRow{"", "Loop", Loop}); }

}  // namespace baton::onnx
