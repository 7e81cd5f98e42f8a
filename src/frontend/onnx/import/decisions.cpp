// SPDX-License-Identifier: Apache-2.0
// Ifs whose branches have no common type, as a squeeze of an axis that may be longer than 1 has. Nodes behind such an
// If are imported for either branch, within the If's graph. Where one way alone can be imported, ranks
// decide, and the If is that branch, with a check; else the ways are joined where the graph ends.
#include <baton/arith/extent.h>
#include <baton/tir/op.h>
#include <relay/types/extent_guards.h>

#include <algorithm>

#include "deferred_nodes.h"
#include "elements.h"
#include "frontend/onnx/ops/common.h"
#include "frontend/onnx/ops/loops.h"
#include "frontend/onnx/reader/check.h"
#include "host_values.h"
#include "importer_impl.h"

namespace baton::onnx {
namespace {

constexpr const char* kApart = "branches whose outputs differ in type or rank";

/// Thrown by an If that is not decided, up to the graph that decides it.
struct Undecided {
  Value condition;
  std::string place;
  size_t which;
};

/// The condition as an extent that is 1 where it holds; nothing where it is no matter of extents.
PrimExpr ConditionOf(const Value& condition) {
  const auto known = ElementsOf(condition);
  if (known == nullptr || known->size() != 1 || !(*known)[0].defined()) return PrimExpr();
  return tir::as_const_int((*known)[0]) != nullptr ? PrimExpr() : (*known)[0];
}

/// Two extents of which a condition says that they are equal.
const tir::EQNode* EqualityOf(const PrimExpr& condition) {
  const auto* choice = condition.defined() ? condition.as<tir::SelectNode>() : nullptr;
  const bool plain = choice && tir::is_const_int(choice->true_value, 1) && tir::is_const_int(choice->false_value, 0);
  return plain ? choice->condition.as<tir::EQNode>() : nullptr;
}

}  // namespace

size_t Importer::EnterIf() { return deciding_ == nullptr ? 0 : deciding_->seen++; }

std::optional<bool> Importer::Decided(size_t which) {
  Decisions* d = deciding_;
  if (d == nullptr || d->asked == d->taken.size() || d->taken[d->asked].first != which) return std::nullopt;
  return d->taken[d->asked++].second;
}

void Importer::LeaveOpen(size_t which, const Value& condition) {
  if (deciding_ == nullptr) throw NodeUnsupported{kApart};
  throw Undecided{condition, Place("If"), which};
}

Importer::Way Importer::Explore(const Path& taken, bool main, const std::function<Values()>& import) {
  if (!taken.empty() && --ways_ < 0) throw NodeUnsupported{"too many Ifs whose branches differ in type or rank"};
  Way way;
  const size_t problems = problems_.size();
  const Array<Any> guards = guards_;
  Decisions own{taken};
  struct Scope {
    Importer* importer;
    Decisions* outer;
    Env* env;
    Surroundings around;
    ~Scope() { importer->deciding_ = outer, importer->env_ = env, importer->around_ = around; }
  };
  std::optional<Undecided> open;
  try {
    Scope scope{this, deciding_, env_, around_};
    deciding_ = &own;
    way.out = import();
    way.fits = problems_.size() == problems;
    if (!way.fits) way.why = problems_[problems].text;
  } catch (const Undecided& u) {
    open = u;
  } catch (const CompileError& e) {
    if (taken.empty()) throw;
    way.why = e.what();
  }
  if (taken.empty() && !open) return way;  // what does not fit is reported as ever
  way.guards = guards_;
  way.problems.assign(problems_.begin() + static_cast<std::ptrdiff_t>(problems), problems_.end());
  DropProblems(problems);
  guards_ = guards;
  if (!open) return way;
  Path next = taken;
  next.emplace_back(open->which, true);
  const Way yes = Explore(next, main, import);
  next.back().second = false;
  const Way no = Explore(next, main, import);
  way = Merge(open->condition, open->place, yes, no, main);
  if (!taken.empty() || way.apart) return way;
  if (!way.fits && way.problems.empty()) throw CompileError(way.why);
  guards_ = way.guards;
  problems_.insert(problems_.end(), way.problems.begin(), way.problems.end());
  return way;
}

Values Importer::Subgraph(const Graph& graph, const Env* outer, const Values& inputs, const Surroundings& around) {
  const Way way = Explore({}, false, [&] { return Inline(graph, outer, inputs, around); });
  if (way.apart) throw NodeUnsupported{kApart};
  return way.out;
}

Values Importer::Branch(const Graph& graph, const Env* outer, const Surroundings& around) {
  auto import = [&] { return Inline(graph, outer, {}, around); };
  const Way way = Explore({}, false, import);
  return way.apart ? import() : way.out;  // the graph around it decides
}

std::pair<Values, Values> Importer::Branches(const Value& condition, const Graph& yes, const Graph& no,
                                             const Env* outer, const Surroundings& around) {
  // A branch that is wrong for these shapes does no harm in a model that does not take it.
  const std::string place = Place("If");
  std::string why;
  auto attempt = [&](const Graph& graph, bool must) -> Values {
    const size_t problems = problems_.size();
    const Array<Any> guards = guards_;
    try {
      return Branch(graph, outer, around);
    } catch (const CompileError& e) {
      if (must) throw;
      DropProblems(problems);
      guards_ = guards;
      why = e.what();
      return {};
    }
  };
  Values a = attempt(yes, false);
  const bool fits = why.empty();
  Values b = attempt(no, !fits);
  if (!fits) a = Refused(condition, b, place + ": its then branch cannot run: " + why);
  if (fits && !why.empty()) b = Refused(condition, a, place + ": its else branch cannot run: " + why);
  return {a, b};
}

Importer::Way Importer::Merge(const Value& condition, const std::string& place, const Way& yes, const Way& no,
                              bool main) {
  if (yes.apart || no.apart) return yes.apart ? yes : no;
  if (!yes.fits && !no.fits) return yes.problems.empty() && !no.problems.empty() ? no : yes;
  const PrimExpr extent = ConditionOf(condition);
  if (yes.fits != no.fits)
    return OneWay(condition, extent, place, yes.fits ? yes : no, yes.fits, yes.fits ? no : yes, main);
  Way both;
  Values joined(yes.out.size());
  for (size_t i = 0; i < joined.size(); ++i) {
    const Value &a = yes.out[i], &b = no.out[i];
    if (SameType(a, b) && a.kind != Value::kNothing) {
      joined[i] = a;
    } else if (!Join(a, b, &joined[i]) || joined[i].kind == Value::kNothing) {
      both.apart = !main;
      if (both.apart) return both;
      joined[i] = HostValueOf(Value::kOptional, Value());  // a result that is there, of either form
    }
  }
  both.fits = true;
  both.guards = guards_;
  const size_t known = guards_.size();
  for (const auto& [way, holds] : {std::pair{&yes, 1}, {&no, 0}}) {
    for (size_t i = known; i < way->guards.size(); ++i) {
      const auto guard = way->guards[static_cast<int64_t>(i)].As<Array<Any>>();
      if (!extent.defined()) throw NodeUnsupported{"lengths that only some of its Ifs' branches ask for"};
      const PrimExpr a = guard[0].As<PrimExpr>(), b = guard[1].As<PrimExpr>();
      both.guards.push_back(Any(Array<Any>{
          Any(arith::CanonicalExtent(tir::Select(tir::EQ(extent, PrimExpr(holds)), a, b))), Any(b), guard[2]}));
    }
  }
  both.out = Choice(condition, yes.out, no.out, joined);
  return both;
}

Importer::Way Importer::OneWay(const Value& condition, const PrimExpr& extent, const std::string& place, Way way,
                               bool holds, const Way& other, bool main) {
  const tir::EQNode* equal = holds ? EqualityOf(extent) : nullptr;
  const std::string says = place + ": the rest of the model takes what its " + (holds ? "then" : "else") +
                           " branch gives, not what the other does (" + other.why + ")";
  if (main && extent.defined()) {
    if (equal != nullptr) {
      relay::AddExtentGuard(&way.guards, equal->a, equal->b, place);
    } else {
      way.guards.push_back(Any(Array<Any>{Any(extent), Any(PrimExpr(int64_t{holds})), Any(String(says))}));
    }
    return way;
  }
  if (equal != nullptr) {  // the check says it, where the branch runs
    Array<Any> kept;
    for (size_t i = 0; i < way.guards.size(); ++i) {
      const auto guard = way.guards[static_cast<int64_t>(i)].As<Array<Any>>();
      const PrimExpr a = guard[0].As<PrimExpr>() - guard[1].As<PrimExpr>(), b = equal->a - equal->b;
      const bool said = i >= guards_.size() && (arith::ExtentsEqual(a, b) == arith::Fact::kYes ||
                                                arith::ExtentsEqual(a, equal->b - equal->a) == arith::Fact::kYes);
      if (!said) kept.push_back(way.guards[static_cast<int64_t>(i)]);
    }
    way.guards = kept;
  }
  const Values refused = Refused(condition, way.out, says);
  way.out = holds ? Choice(condition, way.out, refused, way.out) : Choice(condition, refused, way.out, way.out);
  return way;
}

Values Importer::Refused(const Value& condition, const Values& like, const std::string& text) {
  std::string source = "\x22";  // field 4, the string of the attribute; then field 20, its type
  for (size_t n = text.size(); source.size() == 1 || n > 0; n >>= 7) {
    source += static_cast<char>((n & 0x7f) | (n >= 0x80 ? 0x80 : 0));
  }
  source += text;
  source += "\xa0\x01\x03";
  Attribute why;
  constexpr std::string_view kText = "text";
  why.name = kText, why.kind = Attribute::kString, why.source = source;
  Node node;
  node.op_type = "Refuse";
  node.attributes.push_back(std::move(why));
  Node none;
  Ctx ctx(this, none, 0, {});
  Values out;
  for (const Value& v : like) {
    if (v.kind == Value::kPoison) return like;
    if (v.kind != Value::kTensor && !IsHostValue(v)) throw NodeUnsupported{kApart};
    Value made =
        FormedAs(CallOp(nullptr, kHostValueOp, {condition}, DeferredAttributes(node, kOpset, {true}, {v}), false), v);
    const bool sized = v.kind == Value::kTensor && Ctx::Sized(v) && !v.fixed();
    out.push_back(sized ? ctx.Reshape(made, v.dims) : made);
  }
  return out;
}

Values Importer::Choice(const Value& condition, Values a, Values b, const Values& both) {
  for (size_t i = 0; i < both.size(); ++i) {
    if (SameType(a[i], both[i]) && SameType(b[i], both[i])) continue;
    a[i] = InForm(a[i], both[i]);
    b[i] = InForm(b[i], both[i]);
  }
  Node none;
  Ctx ctx(this, none, 0, {});
  const bool one = both.size() == 1;
  relay::Expr x = ExprOf(one ? a[0] : TupleOf(a)), y = ExprOf(one ? b[0] : TupleOf(b));
  relay::If made(ExprOf(Scalar0(ctx, condition)), x, y);
  made->checked_type_ = x->checked_type_;
  Value v = FormedAs(FromRelayType(x->checked_type(), made), one ? both[0] : TupleOf(both));
  return one ? Values{v} : v.items;
}

}  // namespace baton::onnx
