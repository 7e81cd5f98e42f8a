// SPDX-License-Identifier: Apache-2.0
// Sequences and optionals. Where lengths and presence are known, sequences are tuples and optionals their values; else
// both are values of the host (`host_values.h`), and nodes about them calls of its functions.
#include <baton/tir/expr.h>

#include <algorithm>

#include "frontend/onnx/import/host_values.h"
#include "frontend/onnx/import/importer_impl.h"
#include "loops.h"

namespace baton::onnx {
namespace {

const Value& Sequence(Ctx& c, size_t i) {
  const Value& v = c.In(i);
  if (v.kind == Value::kSequence) throw NeedsValue{"the length of a sequence"};
  if (v.kind != Value::kTuple) c.Unsupported("operand " + std::to_string(i) + " that is no sequence");
  return v;
}

/// A position in a sequence, from the start.
size_t Position(Ctx& c, size_t operand, int64_t size) {
  Dims at = c.KnownInts(c.T(operand));
  if (at.size() != 1 || at[0] < -size || at[0] >= size) c.Fail("the position is outside the sequence");
  return static_cast<size_t>(at[0] < 0 ? at[0] + size : at[0]);
}

Values SequenceEmpty(Ctx& c) {
  c.Ignore("dtype");
  return {TupleOf({})};
}
Values SequenceConstruct(Ctx& c) {
  Values items;
  for (size_t i = 0; i < c.num_inputs(); ++i) items.push_back(c.T(i));
  return {TupleOf(items)};
}
Values SequenceAt(Ctx& c) {
  const Value& s = Sequence(c, 0);
  return {s.items[Position(c, 1, static_cast<int64_t>(s.items.size()))]};
}
Values SequenceInsert(Ctx& c) {
  Values items = Sequence(c, 0).items;
  size_t at = items.size();
  if (c.Has(2)) {
    Dims given = c.KnownInts(c.T(2));
    int64_t n = static_cast<int64_t>(items.size());
    if (given.size() != 1 || given[0] < -n || given[0] > n) c.Fail("the position is outside the sequence");
    at = static_cast<size_t>(given[0] < 0 ? given[0] + n : given[0]);
  }
  items.insert(items.begin() + static_cast<std::ptrdiff_t>(at), c.T(1));
  return {TupleOf(items)};
}
Values SequenceErase(Ctx& c) {
  Values items = Sequence(c, 0).items;
  if (items.empty()) c.Fail("the sequence is empty");
  size_t at = c.Has(1) ? Position(c, 1, static_cast<int64_t>(items.size())) : items.size() - 1;
  items.erase(items.begin() + static_cast<std::ptrdiff_t>(at));
  return {TupleOf(items)};
}
Values SequenceLength(Ctx& c) { return {c.Int64(static_cast<int64_t>(Sequence(c, 0).items.size()))}; }

Values SplitToSequence(Ctx& c) {
  Value x = c.T(0);
  int axis = c.Axis(c.Int("axis", 0), c.Rank(x));
  bool keep = c.Int("keepdims", 1) != 0;
  int64_t n = c.Dim(x, axis);
  Dims sizes;
  bool ones = !c.Has(1);
  constexpr int64_t kMaxParts = 4096;
  auto few = [&](int64_t parts) {
    if (parts > kMaxParts) c.Unsupported("a sequence of more than " + std::to_string(kMaxParts) + " parts");
  };
  if (ones) {
    few(n);
    sizes.assign(static_cast<size_t>(n), 1);
  } else if (c.Rank(c.T(1)) == 0) {
    int64_t each = c.KnownInts(c.T(1))[0];
    if (each < 1) c.Fail("`split` is " + std::to_string(each));
    each = std::min(each, std::max<int64_t>(n, 1));
    few(n / each);
    for (int64_t at = 0; at < n; at += each) sizes.push_back(std::min(each, n - at));
  } else {
    sizes = c.KnownInts(c.T(1));
  }
  few(static_cast<int64_t>(sizes.size()));
  Values items;
  int64_t begin = 0;
  for (int64_t s : sizes) {
    if (s < 0 || s > n - begin) c.Fail("`split` does not add up to the axis' length");
    Value part = c.Slice(x, axis, begin, begin + s);
    items.push_back(ones && !keep ? c.Squeeze(part, {axis}) : part);
    begin += s;
  }
  return {TupleOf(items)};
}

Values ConcatFromSequence(Ctx& c) {
  Values items = Sequence(c, 0).items;
  if (items.empty()) c.Fail("the sequence is empty");
  int64_t axis = c.Int("axis");
  bool fresh = c.Int("new_axis", 0) != 0;
  int at = c.Axis(axis, c.Rank(items[0]) + (fresh ? 1 : 0));
  if (fresh) {
    for (Value& v : items) v = c.Unsqueeze(v, {at});
  }
  return {c.Concat(items, at)};
}

/// A sequence map over sequences whose lengths are known when it runs: `loop(i, results...)` calls itself.
Values MapFunction(Ctx& c, const Graph& body, const Value& length) {
  Importer* importer = c.importer();
  const Env* env = importer->env();
  const Surroundings around = importer->around();
  auto param = [&](const std::string& name, const Value& like) {
    const baton::Type t = importer->TypeOfValue(like);
    relay::Var var(name, t);
    var->checked_type_ = t;
    Value v = like;
    v.expr = var;
    return v;
  };
  Value i = param("i", c.Unknown(DataType::Int(64), {}));
  Values elements;
  for (size_t k = 0; k < c.num_inputs(); ++k) {
    const Value& v = c.In(k);
    if (v.kind != Value::kTuple && v.kind != Value::kSequence) {
      elements.push_back(v);
      continue;
    }
    Value element = ElementOf(v);
    const Type& declared = body.inputs.at(k).type;
    if (element.kind != Value::kTensor || !element.ranked) element = OfType(declared);
    if (element.kind != Value::kTensor || !element.ranked)
      c.Unsupported("a sequence of elements whose rank is not known");
    elements.push_back(importer->CallHost("SequenceAt", {v, i}, element));
  }
  const Values out = importer->Subgraph(body, env, elements, around);
  if (AnyPoison(out)) return Poison(c.num_outputs());
  Values results, next;
  for (size_t k = 0; k < out.size(); ++k) {
    const Value like = HostValueOf(Value::kSequence, out[k]);
    results.push_back(param("results" + std::to_string(k), like));
    next.push_back(importer->CallHost("SequenceInsert", {results[k], out[k]}, like));
  }
  Array<relay::Var> vars{Downcast<relay::Var>(i.expr)};
  Array<baton::Type> var_types{i.expr->checked_type()}, result_types;
  Array<relay::Expr> again{importer->ExprOf(c.Add(i, 1))}, first{importer->ExprOf(c.Int64(0))};
  for (size_t k = 0; k < results.size(); ++k) {
    vars.push_back(Downcast<relay::Var>(results[k].expr));
    var_types.push_back(results[k].expr->checked_type());
    result_types.push_back(results[k].expr->checked_type());
    again.push_back(importer->ExprOf(next[k]));
    first.push_back(importer->ExprOf(importer->CallHost("SequenceConstruct", {}, results[k])));
  }
  const TupleType result_type(result_types);
  const FuncType func_type(Array<TypeVar>(), var_types, result_type, Array<TypeConstraint>());
  relay::Var loop("map", func_type);
  loop->checked_type_ = func_type;
  relay::Call call(loop, again, Attrs(), Array<baton::Type>());
  call->checked_type_ = result_type;
  relay::If choice(importer->ExprOf(c.Call("less", {i, length})), call, importer->ExprOf(TupleOf(results)));
  choice->checked_type_ = result_type;
  return FormedAs(FromExpr(CallOfLoop(loop, vars, choice, first), result_type), TupleOf(results)).items;
}

Values SequenceMap(Ctx& c) {
  const Graph* body = c.GraphAttr("body");
  if (body == nullptr) c.Fail("its body is missing");
  if (body->inputs.size() != c.num_inputs()) c.Fail("its body does not fit its operands");
  Importer* importer = c.importer();
  for (size_t k = 0; k < c.num_inputs(); ++k) {
    if (c.In(k).kind != Value::kSequence) continue;
    const Value size = c.Unknown(DataType::Int(64), {});
    return MapFunction(c, *body, importer->CallHost("SequenceLength", {c.In(0)}, size));
  }
  const Env* env = importer->env();
  Surroundings around = importer->around();
  size_t length = Sequence(c, 0).items.size();
  std::vector<Values> results(body->outputs.size());
  for (size_t i = 0; i < length; ++i) {
    Values inputs;
    for (size_t k = 0; k < c.num_inputs(); ++k) {
      const Value& v = c.In(k);
      if (v.kind == Value::kTuple && i >= v.items.size()) c.Fail("its sequences differ in length");
      inputs.push_back(v.kind == Value::kTuple ? v.items[i] : v);
    }
    Values out = importer->Subgraph(*body, env, inputs, around);
    if (AnyPoison(out)) return Poison(c.num_outputs());
    for (size_t k = 0; k < out.size(); ++k) results[k].push_back(out[k]);
  }
  Values all;
  for (const Values& r : results) all.push_back(TupleOf(r));
  return all;
}

// ---- optionals

Values Optional(Ctx& c) {
  c.Ignore("type");
  if (c.Has(0)) return {c.In(0)};
  Value nothing;
  nothing.kind = Value::kNothing;
  return {nothing};
}
Values OptionalHasElement(Ctx& c) {
  if (c.Has(0) && c.In(0).kind == Value::kOptional) throw NeedsValue{"whether an optional has a value"};
  bool has = c.Has(0) && c.In(0).kind != Value::kNothing;
  return {c.Scalar(DataType::Bool(), has)};
}
Values OptionalGetElement(Ctx& c) {
  if (c.In(0).kind == Value::kOptional) throw NeedsValue{"whether an optional has a value"};
  if (c.In(0).kind == Value::kNothing) c.Fail("the optional has no value");
  return {c.In(0)};
}

// ---- Forms of results while lengths and presence are not known
Values AtTypes(Ctx& c) { return {ElementOf(c.In(0))}; }
Values LikeSequence(Ctx& c) { return {HostValueOf(Value::kSequence, ElementOf(c.In(0)))}; }
Values InsertTypes(Ctx& c) {
  Value all;
  Value one = TupleOf({c.T(1)});
  if (!Join(HostValueOf(Value::kSequence, ElementOf(c.In(0))), one, &all)) c.Fail("the tensor is of another dtype");
  return {all};
}
Values LengthTypes(Ctx& c) { return {c.Unknown(DataType::Int(64), {})}; }
Values SplitToSequenceTypes(Ctx& c) {
  Value x = RankedOperand(c, 0);
  if (!c.Has(1) && c.Int("keepdims", 1) == 0 && !x.dims.empty()) x.dims.pop_back();
  return {HostValueOf(Value::kSequence, x)};
}
Values ConcatTypes(Ctx& c) {
  Value x = ElementOf(c.In(0));
  if (x.kind != Value::kTensor || !x.ranked) return {};
  Dims dims(x.dims.size() + (c.Int("new_axis", 0) != 0 ? 1 : 0), -1);
  return {c.Unknown(x.dtype, dims)};
}
Values HasTypes(Ctx& c) { return {c.Unknown(DataType::Bool(), {})}; }

}  // namespace

void AddSequences(OpTable* table) {
  for (const OpRow& row : {
           OpRow{"", "SequenceEmpty", SequenceEmpty},
           {"", "SequenceConstruct", SequenceConstruct},
           {"", "SequenceAt", SequenceAt, AtTypes},
           {"", "SequenceInsert", SequenceInsert, InsertTypes},
           {"", "SequenceErase", SequenceErase, LikeSequence},
           {"", "SequenceLength", SequenceLength, LengthTypes},
           {"", "SplitToSequence", SplitToSequence, SplitToSequenceTypes},
           {"", "ConcatFromSequence", ConcatFromSequence, ConcatTypes},
           {"", "SequenceMap", SequenceMap},
           {"", "Optional", Optional},
           {"", "OptionalHasElement", OptionalHasElement, HasTypes},
           {"", "OptionalGetElement", OptionalGetElement, AtTypes},
       }) {
    table->push_back(row);
  }
}

}  // namespace baton::onnx
