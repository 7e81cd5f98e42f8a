// SPDX-License-Identifier: Apache-2.0
// The table of intrinsics, what passes ask of it, and the functions that make calls.
#include <baton/runtime/registry.h>
#include <baton/tir/functor.h>
#include <baton/tir/intrin.h>
#include <baton/tir/lower.h>
#include <fmt/format.h>

#include <atomic>
#include <map>
#include <mutex>
#include <sstream>

#include "tir/literals.h"

namespace baton::tir {
namespace {

using literals::AsFloat;
using literals::AsInt;
using literals::Fail;
using literals::FloatLit;
using literals::IntLit;
using literals::Literal;
using literals::Match;
using literals::TypeName;
using literals::Wrap;

/// Rows by the index of their operator. Readers take no lock: a table that is outgrown stays for them.
struct RowsByOp {
  explicit RowsByOp(size_t size) : rows(size) {}
  std::vector<std::atomic<const IntrinDef*>> rows;
};
std::atomic<RowsByOp*> rows_by_op{nullptr};
void PutRow(size_t index, const IntrinDef* row) {
  RowsByOp* t = rows_by_op.load();
  if (!t || t->rows.size() <= index) {
    auto* larger = new RowsByOp(2 * index + 256);
    for (size_t i = 0; t && i < t->rows.size(); ++i) larger->rows[i] = t->rows[i].load();
    rows_by_op.store(t = larger);
  }
  t->rows[index].store(row);
}
/// The attribute `key` of an operator that a program made; `otherwise` where it has not set one.
int64_t SaidByProgram(const OpNode* op, const char* key, int64_t otherwise) {
  const Any v = GetRef<Op>(op).GetAttrValue(key);
  return runtime::ValueTraits<int64_t>::Is(v.raw()) ? v.As<int64_t>() : otherwise;
}
bool IsEffect(int64_t kind) {
  return kind == static_cast<int64_t>(Effect::kUpdates) || kind == static_cast<int64_t>(Effect::kJumps);
}
struct IntrinTable {
  std::mutex mutex;
  std::vector<Op> intrins;
  std::map<std::string, std::vector<Op> (*)()> columns;
  static IntrinTable& Get() {
    static auto* t = new IntrinTable;
    return *t;
  }
};

/// The call's value where all arguments are literals and the row has a function of numbers; null otherwise.
PrimExpr Folded(const IntrinDef& row, const Array<PrimExpr>& args) {
  if (!row.host || args.size() > 3) return {};
  HostNumber n[3];
  for (size_t i = 0; i < args.size(); ++i) {
    const PrimExpr l = Literal(args[static_cast<int64_t>(i)]);
    if (!l.defined() || (row.host.takes_floats() ? !AsFloat(l) : !AsInt(l))) return {};
    if (row.host.takes_floats()) {
      n[i].f = AsFloat(l)->value;
    } else {
      n[i].i = AsInt(l)->value;
    }
  }
  const DataType t = args[0].dtype(), e = t.element_of();
  const HostNumber v = row.host(n, e);
  if (row.gives_bool) return make_int(DataType::Bool(t.lanes()), v.i);
  if (row.host.gives_float()) return broadcast_to(FloatLit(e, v.f), t.lanes());
  const std::optional<int64_t> held = Wrap(e, v.i);  // none where a literal cannot hold it
  return held ? broadcast_to(IntLit(e, *held), t.lanes()) : PrimExpr();
}

Array<String> ParamsOf(const IntrinDef& row) {
  Array<String> out;
  std::istringstream words(row.params);
  for (std::string word; words >> word;) out.push_back(String(word));
  return out;
}

/// Registers the function that front ends call, as "tir.op.exp".
void RegisterFunction(const Op& op, const IntrinDef& row) {
  const size_t arity = ParamsOf(row).size();
  if (arity == 0) return;
  auto& function = runtime::Registry::Register(std::string("tir.op.") + row.name);
  if (arity == 1) {
    function.set_body_typed([op](PrimExpr x) { return Apply(op, {x}); });
  } else if (arity == 2) {
    function.set_body_typed([op](PrimExpr x, PrimExpr y) { return Apply(op, {x, y}); });
  } else {
    function.set_body_typed([op](PrimExpr x, PrimExpr y, PrimExpr z) { return Apply(op, {x, y, z}); });
  }
}

bool TakesOperand(Domain domain, DataType t) {
  switch (domain) {
    case Domain::kFloats:
      return t.is_floating();
    case Domain::kNumbers:
      return t.is_floating() || t.is_integral();
    case Domain::kInts:
      return t.is_integral();
    default:
      return t.is_integral() || t.is_bool();
  }
}

}  // namespace

HostNumber HostFn::operator()(const HostNumber* args, DataType dtype) const {
  switch (kind_) {
    case Kind::kF:
      return {0, reinterpret_cast<double (*)(double)>(f_)(args[0].f)};
    case Kind::kFF:
      return {0, reinterpret_cast<double (*)(double, double)>(f_)(args[0].f, args[1].f)};
    case Kind::kFT:
      return {0, reinterpret_cast<double (*)(double, DataType)>(f_)(args[0].f, dtype)};
    case Kind::kFFFT:
      return {0, reinterpret_cast<double (*)(double, double, double, DataType)>(f_)(args[0].f, args[1].f, args[2].f,
                                                                                    dtype)};
    case Kind::kTest:
      return {reinterpret_cast<bool (*)(double)>(f_)(args[0].f), 0};
    case Kind::kI:
      return {reinterpret_cast<int64_t (*)(int64_t, DataType)>(f_)(args[0].i, dtype), 0};
    default:
      return {reinterpret_cast<int64_t (*)(int64_t, int64_t, DataType)>(f_)(args[0].i, args[1].i, dtype), 0};
  }
}

Op DefineIntrin(const IntrinDef& def) {
  Op op = Op::GetOrCreate(std::string("tir.") + def.name);
  IntrinTable& t = IntrinTable::Get();
  std::lock_guard lock(t.mutex);
  if (IntrinOf(op.get())) throw InternalError(std::string("intrinsic `tir.") + def.name + "` is defined twice");
  // Lives as long as the process: operators are never removed.
  auto* row = new IntrinDef(def);
  row->number = static_cast<int>(t.intrins.size());
  t.intrins.push_back(op);
  PutRow(static_cast<size_t>(op->index), row);
  op->description = String(def.doc);
  RegisterFunction(op, *row);
  op.SetAttrValue("TCallEffectKind", Any(static_cast<int>(def.effect.value)));
  if (def.lanes == LaneForm::kEach) op.SetAttrValue("TVectorizable", Any(true));
  return op;
}

const IntrinDef* IntrinOf(const OpNode* op) {
  const RowsByOp* t = rows_by_op.load(std::memory_order_acquire);
  const auto index = static_cast<size_t>(op->index);
  return t && index < t->rows.size() ? t->rows[index].load(std::memory_order_acquire) : nullptr;
}

std::vector<Op> ListIntrins() {
  IntrinTable& t = IntrinTable::Get();
  std::lock_guard lock(t.mutex);
  return t.intrins;
}

void RegisterIntrinColumn(const char* backend, std::vector<Op> (*intrins)()) {
  IntrinTable& t = IntrinTable::Get();
  std::lock_guard lock(t.mutex);
  t.columns[backend] = intrins;
}

bool CallHasSideEffect(const CallNode* call) {
  const auto* op = call->op.as<OpNode>();
  if (!op) return true;
  const IntrinDef* row = IntrinOf(op);
  return IsEffect(row ? static_cast<int64_t>(row->effect.value)
                      : SaidByProgram(op, "TCallEffectKind", static_cast<int64_t>(Effect::kPure)));
}

bool IsLaneByLane(const CallNode* call) {
  const auto* op = call->op.as<OpNode>();
  if (!op) return false;
  const IntrinDef* row = IntrinOf(op);
  return row ? row->lanes == LaneForm::kEach : SaidByProgram(op, "TVectorizable", 1) != 0;
}

double CostOfCall(const CallNode* call) {
  const IntrinDef* row = IntrinOf(call);
  return row ? static_cast<double>(row->cost) : 16;
}

PrimExpr DerivativeOf(const CallNode* call, const Array<PrimExpr>& of_args) {
  if (of_args.size() != call->args.size()) Fail("a derivative is wanted for each argument of the call");
  bool constant = true;
  for (const PrimExpr& d : of_args) constant = constant && !d.defined();
  if (constant) return {};
  const auto* op = call->op.as<OpNode>();
  const IntrinDef* row = op ? IntrinOf(op) : nullptr;
  if (!row) throw UnsupportedError("no derivative of `" + (op ? op->name.str() : std::string("a function")) + "`");
  const IntrinDerivative& d = row->derivative;
  if (d.none) throw UnsupportedError("no derivative of `" + op->name.str() + "`: " + d.none);
  if (d.zero) return {};
  if (d.rule) return d.rule(call, of_args);
  if (d.factor) return of_args[0] * d.factor(call->args[0], GetRef<PrimExpr>(call));
  const Array<PrimExpr> factors = d.factors(call);
  PrimExpr sum;
  for (int64_t i = 0; i < static_cast<int64_t>(factors.size()); ++i) {
    if (!of_args[i].defined() || !factors[i].defined()) continue;
    const PrimExpr term = of_args[i] * factors[i];
    sum = sum.defined() ? sum + term : term;
  }
  return sum;
}

PrimExpr Apply(const Op& intrin, Array<PrimExpr> args) {
  const IntrinDef& row = *IntrinOf(intrin.get());
  if (args.size() == 1) {
    if (!args[0].defined()) Fail(fmt::format("the operand of `{}` is null", row.name));
  } else {
    std::vector<PrimExpr> same(args.begin(), args.end());
    // Twice: the first may change with each of the others.
    for (int round = 0; round < 2; ++round) {
      for (size_t i = 1; i < same.size(); ++i) Match(row.name, &same[0], &same[i]);
    }
    args = Array<PrimExpr>(same.begin(), same.end());
  }
  if (row.instead) {
    if (PrimExpr other = row.instead(args); other.defined()) return other;
  }
  const DataType t = args[0].dtype();
  if (!TakesOperand(row.domain, t)) {
    const char* wanted = row.domain == Domain::kFloats    ? "floats"
                         : row.domain == Domain::kNumbers ? "numbers"
                                                          : "integers";
    Fail(fmt::format("`{}` takes {}, got {}", row.name, wanted, TypeName(args[0])));
  }
  if (PrimExpr value = Folded(row, args); value.defined()) return value;
  return Call(row.gives_bool ? DataType::Bool(t.lanes()) : t, intrin, std::move(args));
}

PrimExpr call_intrin(DataType ret, const char* name, Array<PrimExpr> args) {
  return Call(ret, Op::GetOrCreate(name), std::move(args));
}
std::string_view IntrinName(const CallNode* call) {
  const auto* op = call->op.as<OpNode>();
  return op ? op->name.view() : std::string_view();
}

namespace {

/// Names of the intrinsics that front ends have functions for, each followed by the names of its parameters.
BATON_REGISTER_GLOBAL("tir.IntrinFunctions").set_body_typed([] {
  Array<Array<String>> out;
  for (const Op& op : ListIntrins()) {
    Array<String> params = ParamsOf(*IntrinOf(op.get()));
    if (params.empty()) continue;
    params.insert(0, String(IntrinOf(op.get())->name));
    out.push_back(params);
  }
  return out;
});
/// Whether a call is constant but for jumps, whatever its arguments are.
BATON_REGISTER_GLOBAL("tir.HasZeroDerivative").set_body_typed([](PrimExpr e) {
  const auto* call = e.as<CallNode>();
  const IntrinDef* row = call ? IntrinOf(call) : nullptr;
  return row && row->derivative.zero;
});
BATON_REGISTER_GLOBAL("tir.DerivativeOf").set_body_typed([](PrimExpr e, Array<PrimExpr> of_args) {
  const auto* call = e.as<CallNode>();
  if (!call) Fail("the derivative is of a call, and the expression is another node");
  return DerivativeOf(call, of_args);
});
/// The columns of each row by name, for tests; one that is empty is missing.
BATON_REGISTER_GLOBAL("tir.IntrinColumns").set_body_typed([] {
  Map<String, Map<String, String>> out;
  std::map<std::string, std::vector<Op> (*)()> columns;
  {
    IntrinTable& t = IntrinTable::Get();
    std::lock_guard lock(t.mutex);
    columns = t.columns;
  }
  for (const Op& op : ListIntrins()) {
    const IntrinDef& row = *IntrinOf(op.get());
    Map<String, String> says;
    const auto say = [&](const char* column, bool there, const std::string& what = "yes") {
      if (there) says.Set(String(column), String(what));
    };
    say("doc", *row.doc != 0, row.doc);
    say("takes", true, row.takes.value);
    say("params", *row.params != 0, row.params);
    say("host", static_cast<bool>(row.host));
    say("interpret", row.interpret != nullptr);
    say("derivative", !row.derivative.none);
    say("no derivative", row.derivative.none != nullptr, row.derivative.none ? row.derivative.none : "");
    say("effect", true, std::to_string(static_cast<int>(row.effect.value)));
    say("lanes", row.lanes == LaneForm::kEach);
    say("cost", true, fmt::format("{}", row.cost.value));
    say("place", row.place != PlaceUse::kNone, std::to_string(static_cast<int>(row.place)));
    say("expand", row.expand != nullptr);
    say("ends in", row.ends_in != nullptr, row.ends_in ? row.ends_in : "");
    for (const auto& [backend, intrins] : columns) {
      bool there = false;
      for (const Op& o : intrins()) there = there || o.same_as(op);
      say(backend.c_str(), there);
    }
    out.Set(String(row.name), says);
  }
  return out;
});

}  // namespace
}  // namespace baton::tir
