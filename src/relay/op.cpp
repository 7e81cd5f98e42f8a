// SPDX-License-Identifier: Apache-2.0
#include <baton/arith/extent.h>
#include <baton/relay/gradient.h>
#include <baton/relay/op.h>
#include <baton/runtime/registry.h>
#include <baton/tir/functor.h>
#include <baton/tir/op.h>

#include <algorithm>
#include <memory>
#include <mutex>

namespace baton::relay {
namespace {

/// Traits that follow from the rest where a definition leaves them to it.
void ResolveTraits(OpDef* def) {
  OpTraits& t = def->traits;
  if (t.precision == Precision::kDefault) {
    t.precision = t.shape_only || def->pattern <= OpPattern::kInjective ? Precision::kFollow
                  : def->pattern == OpPattern::kCommReduce              ? Precision::kNever
                                                                        : Precision::kUnknown;
  }
  if (t.layout == LayoutRule::kDefault) {
    t.layout = def->pattern <= OpPattern::kBroadcast && def->num_inputs > 1 && !def->attrs ? LayoutRule::kBroadcasts
               : def->pattern == OpPattern::kElemWise && def->num_inputs == 1              ? LayoutRule::kKeeps
                                                                                           : LayoutRule::kNone;
  }
}

}  // namespace

Op DefineOp(OpDef def) {
  Op op = Op::GetOrCreate(def.name);
  if (op->def != 0) throw InternalError(std::string("operator `") + def.name + "` is defined twice");
  // Lives as long as the process: operators are never removed.
  auto* kept = new OpDef(def);
  Array<OpArg> args;
  for (const OpInput& in : def.inputs) args.push_back(OpArg(String(in.name), String("Tensor"), String(in.doc)));
  if (kept->num_inputs == -2) kept->num_inputs = static_cast<int>(args.size());
  ResolveTraits(kept);
  std::construct_at(&kept->inputs);  // empty: the list's storage ends with this call; the arguments live in the Op
  const OpNode* n = op.get();
  n->description = String(def.doc);
  n->arguments = args;
  n->attrs_type_key = String(def.attrs ? def.attrs() : "");
  n->num_inputs = kept->num_inputs;
  n->support_level = def.support_level;
  n->def = reinterpret_cast<uint64_t>(kept);
  op.SetAttrValue("TOpPattern", Any(static_cast<int>(def.pattern)));
  op.SetAttrValue("output", Any(String(def.output)));
  op.SetAttrValue("TOpIsStateful", Any(def.stateful));
  if (def.fold == Fold::kNever) op.SetAttrValue("TNonComputational", Any(true));
  return op;
}

LowerFn::LowerFn(const runtime::PackedFunc* f)
    : f_(const_cast<runtime::PackedFunc*>(f)),
      call_([](void* f, const Attrs& attrs, const Array<te::Tensor>& in, const Type& out) {
        const Any made = (*static_cast<runtime::PackedFunc*>(f))(attrs, in, out);
        if (made.Is<te::Tensor>() && !made.is_null()) return Array<te::Tensor>{made.As<te::Tensor>()};
        return made.As<Array<te::Tensor>>();
      }) {}

void ThrowAttrsMismatch(const Attrs& attrs, const char* wanted) {
  throw CompileError("a call has attributes of type `" + attrs->GetTypeKey() + "`, where `" + wanted + "` is wanted");
}

const OpDef* DefOf(const ObjectRef& op) {
  const auto* n = op.as<OpNode>();
  return n ? reinterpret_cast<const OpDef*>(n->def) : nullptr;
}

double ElementsOf(const Type& type) {
  double n = 0;
  std::vector<Type> work{type};
  while (!work.empty()) {
    const Type t = work.back();
    work.pop_back();
    if (const auto* tensor = t.as<TensorTypeNode>()) {
      double elements = 1;
      for (const PrimExpr& d : tensor->shape) elements *= static_cast<double>(std::max<int64_t>(DimOf(d), 0));
      n += elements;
    } else if (const auto* tuple = t.as<TupleTypeNode>()) {
      for (const Type& f : tuple->fields) work.push_back(f);
    }
  }
  return n;
}

PrimExpr ElementsFormula(const Type& type) {
  constexpr DataType kDouble = DataType::Float(64);
  PrimExpr n = FloatImm(kDouble, 0);
  std::vector<Type> work{type};
  while (!work.empty()) {
    const Type t = work.back();
    work.pop_back();
    if (const auto* tensor = t.as<TensorTypeNode>()) {
      double known = 1;
      PrimExpr open;
      for (const PrimExpr& d : tensor->shape) {
        if (tir::as_const_int(d) || d.as<tir::AnyNode>()) {
          known *= static_cast<double>(std::max<int64_t>(DimOf(d), 0));
        } else {
          open = open.defined() ? open * cast(kDouble, d) : cast(kDouble, d);
        }
      }
      const PrimExpr literal = FloatImm(kDouble, known);
      n = n + (open.defined() && known != 0 ? open * literal : literal);
    } else if (const auto* tuple = t.as<TupleTypeNode>()) {
      for (const Type& f : tuple->fields) work.push_back(f);
    }
  }
  return n;
}

PrimExpr FlopsFormula(const CallNode* call) {
  const PrimExpr none = FloatImm(DataType::Float(64), 0);
  const OpDef* def = DefOf(call->op);
  if (!def) return none;
  if (def->traits.flops) return def->traits.flops(call);
  const PrimExpr out = ElementsFormula(call->checked_type());
  switch (def->pattern) {
    case OpPattern::kElemWise:
    case OpPattern::kBroadcast:
      return out;
    case OpPattern::kInjective:
    case OpPattern::kTuple:
      return none;
    default:
      return max(call->args.empty() ? none : ElementsFormula(call->args[0]->checked_type()), out);
  }
}

double FlopsOf(const CallNode* call) {
  const PrimExpr flops = FlopsFormula(call);
  const auto* literal = flops.as<FloatImmNode>();
  return literal ? literal->value : 0;
}

int64_t DimOf(const PrimExpr& dim) {
  const auto* i = dim.as<IntImmNode>();
  return i ? i->value : -1;
}

bool HasKnownExtents(const Array<PrimExpr>& shape) {
  bool known = true;
  for (const PrimExpr& d : shape) {
    if (tir::as_const_int(d) || d.as<tir::VarNode>()) continue;
    tir::PostOrderVisitExpr(d, [&](const PrimExpr& x) { known = known && !x.as<tir::AnyNode>(); });
  }
  return known;
}

PrimExpr BroadcastDim(const PrimExpr& x, const PrimExpr& y, TypeReporter& reporter) {
  const int64_t m = DimOf(x), n = DimOf(y);
  if (m == 1) return y;
  if (n == 1) return x;
  if (m >= 0 && n >= 0) return m == n ? x : PrimExpr();
  if (x.as<tir::AnyNode>() || y.as<tir::AnyNode>()) return m >= 0 ? x : n >= 0 ? y : PrimExpr(tir::AnyDim());
  if (x.same_as(y) || arith::ExtentsEqual(x, y) == arith::Fact::kYes) return x;
  // One that is never 1 is the result's.
  const bool big_x = m >= 0 || arith::ExtentAtLeast(x, 2) == arith::Fact::kYes;
  const bool big_y = n >= 0 || arith::ExtentAtLeast(y, 2) == arith::Fact::kYes;
  if (big_x && big_y) return reporter.AssertEQ(x, y) ? (m >= 0 ? x : y) : PrimExpr();
  auto one = [](const PrimExpr& e) { return tir::EQ(e, PrimExpr(1)); };
  PrimExpr out = big_x ? x : big_y ? y : arith::CanonicalExtent(tir::Select(one(x), y, x));
  for (const PrimExpr& e : {x, y}) {
    if (!e.same_as(out)) reporter.Assume(tir::Select(one(e), out, e), out);
  }
  return out;
}

bool StaticShape(const Array<PrimExpr>& shape, std::vector<int64_t>* out) {
  out->clear();
  for (const PrimExpr& d : shape) {
    const auto* i = d.as<IntImmNode>();
    if (!i) return false;
    out->push_back(i->value);
  }
  return true;
}

int64_t NormalizeAxis(int64_t axis, int64_t ndim, const char* op_name, const char* what) {
  if (axis < -ndim || axis >= ndim) {
    throw CompileError(std::string("[") + op_name + "] `" + what + "` is " + std::to_string(axis) + ", must be in [" +
                       std::to_string(-ndim) + ", " + std::to_string(ndim) + ") for " + std::to_string(ndim) +
                       " dimensions");
  }
  return axis < 0 ? axis + ndim : axis;
}

bool TakeFromResult(Array<Type>* types, int input, TypeReporter& reporter) {
  if (AsTensor((*types)[input]) || !AsTensor(types->back())) return false;
  reporter.Assign((*types)[input], types->back());
  types->Set(input, types->back());
  return true;
}

bool GuessBroadcast(Array<Type>* types, bool compare, TypeReporter& reporter) {
  const auto* out = AsTensor(types->back());
  if (!reporter.Guessing() || !out) return false;
  if (!compare && !AsTensor((*types)[0]) && !AsTensor((*types)[1])) {
    for (int i = 0; i < 2; ++i) {
      reporter.Assign((*types)[i], types->back());
      types->Set(i, types->back());
    }
    return true;
  }
  for (int i = 0; i < 2; ++i) {
    const auto* other = AsTensor((*types)[1 - i]);
    if (AsTensor((*types)[i]) || !other) continue;
    const Type guess = TensorType(out->shape, compare ? other->dtype : out->dtype);
    reporter.Assign((*types)[i], guess);
    types->Set(i, guess);
    return true;
  }
  return false;
}

bool IdentityRel(const Array<Type>& given, int, const Attrs&, TypeReporter& reporter) {
  Array<Type> types = given;
  TakeFromResult(&types, 0, reporter);
  if (!AsTensor(types[0])) return false;
  reporter.Assign(types.back(), types[0]);
  return true;
}

namespace {

std::string ShapeText(const Array<PrimExpr>& shape) {
  std::string s = "(";
  for (size_t i = 0; i < shape.size(); ++i) {
    s += (i ? ", " : "") + arith::ExtentText(shape[i]);
  }
  return s + ")";
}

bool Broadcast(const Array<Type>& given, TypeReporter& reporter, bool compare) {
  Array<Type> types = given;
  GuessBroadcast(&types, compare, reporter);
  const auto *a = AsTensor(types[0]), *b = AsTensor(types[1]);
  if (!a || !b) return false;
  if (!(a->dtype == b->dtype)) {
    throw CompileError("[R1] the arguments have dtypes " + DataType2String(a->dtype) + " and " +
                       DataType2String(b->dtype) + ", must be equal; cast one of them");
  }
  size_t na = a->shape.size(), nb = b->shape.size(), n = std::max(na, nb);
  std::vector<PrimExpr> out(n);
  for (size_t i = 0; i < n; ++i) {
    PrimExpr one = IntImm(DataType::Int(64), 1);
    PrimExpr x = i < na ? a->shape[na - 1 - i] : one, y = i < nb ? b->shape[nb - 1 - i] : one;
    out[n - 1 - i] = BroadcastDim(x, y, reporter);
    if (!out[n - 1 - i].defined()) {
      throw CompileError("[R2] shapes " + ShapeText(a->shape) + " and " + ShapeText(b->shape) +
                         " do not broadcast: dimensions " + arith::ExtentText(x) + " and " + arith::ExtentText(y) +
                         " differ and neither is 1");
    }
  }
  reporter.Assign(types.back(), TensorType(Array<PrimExpr>(out), compare ? DataType::Bool() : a->dtype));
  return true;
}

}  // namespace

bool BroadcastRel(const Array<Type>& types, int, const Attrs&, TypeReporter& r) { return Broadcast(types, r, false); }
bool BroadcastCompRel(const Array<Type>& types, int, const Attrs&, TypeReporter& r) {
  return Broadcast(types, r, true);
}

// ---- Attributes that definitions hold.
PackedFunc DefinedPrecision(const Op& op) {
  static const auto* functions = [] {
    auto* all = new std::vector<PackedFunc>;
    for (int64_t p : {0, 1, 2}) {
      TypedPackedFunc<Array<Any>(Call, String)> f = [p](const Call&, const String&) { return Array<Any>{Any(p)}; };
      all->push_back(f.packed());
    }
    return all;
  }();
  const OpDef* def = DefOf(op);
  if (!def || def->traits.precision == Precision::kUnknown) return PackedFunc(nullptr);
  return (*functions)[static_cast<size_t>(def->traits.precision)];
}
namespace {
Any PrecisionAttr(const Op& op) {
  const PackedFunc f = DefinedPrecision(op);
  return f.defined() ? Any(f) : Any();
}
const bool registered_precision = (Op::DefineSlot("FTVMMixedPrecisionConversionType", PrecisionAttr), true);

/// Its effect on elements, a number of `Values`, for passes in other languages.
Any ValuesAttr(const Op& op) {
  const OpDef* def = DefOf(op);
  return def ? Any(static_cast<int64_t>(def->traits.values)) : Any();
}
const bool registered_values = (Op::DefineSlot("TValues", ValuesAttr), true);
}  // namespace

// ---- Gradients.
namespace {
Any RuleOf(const Op& op) {
  const OpDef* def = DefOf(op);
  if (!def || !def->gradient.rule) return Any();
  TypedPackedFunc<Array<Expr>(Call, Expr)> rule = [f = def->gradient.rule](const Call& call, const Expr& grad) {
    return f(call, grad);
  };
  return Any(rule.packed());
}
const bool registered_slots = (Op::DefineSlot("FPrimalGradient", RuleOf), true);
}  // namespace

PackedFunc GradientOf(const Op& op) {
  Any v = op.GetAttrValue("FPrimalGradient");
  return v.is_null() ? PackedFunc(nullptr) : v.As<PackedFunc>();
}
DecomposeFn GradientDecompositionOf(const Op& op) {
  const OpDef* def = DefOf(op);
  if (!def || def->gradient.none) return nullptr;
  return def->gradient.decompose ? def->gradient.decompose : def->decompose;
}
const char* NoGradientReason(const Op& op) {
  const OpDef* def = DefOf(op);
  return def && def->gradient.none ? def->gradient.none : "";
}

namespace {
/// The text of a definition for stubs and reference pages: its source, and its slots.
Map<String, Any> DescribeOp(const Op& op) {
  Map<String, Any> out;
  const OpDef* def = DefOf(op);
  if (!def) return out;
  out.Set("source", Any(String(def->source)));
  out.Set("compiled", Any(static_cast<bool>(def->lower)));
  out.Set("decomposed", Any(def->decompose != nullptr));
  out.Set("host", Any(def->host != nullptr));
  out.Set("moves", Any(def->traits.values != Values::kComputes));
  out.Set("view", Any(def->traits.values == Values::kView));
  const bool rule = GradientOf(op).defined();
  const char* gradient = rule ? "rule" : GradientDecompositionOf(op) ? "decomposition" : "";
  out.Set("gradient", Any(String(gradient)));
  out.Set("no_gradient", Any(String(rule ? "" : NoGradientReason(op))));
  out.Set("folded", Any(def->fold != Fold::kNever && !def->stateful));
  return out;
}
BATON_REGISTER_GLOBAL("relay.op.Describe").set_body_typed(DescribeOp);
/// Floating-point operations of a call whose types are inferred; 0 where its extents are open.
BATON_REGISTER_GLOBAL("relay.FlopsOf").set_body_typed([](Call call) { return FlopsOf(call.get()); });
}  // namespace

// ---- Operators that programs register while they run.
namespace {

/// The relations by name, and those in other languages: f(types of the arguments, attrs) -> type or null.
bool AskRelation(const Array<Type>& types, int num_inputs, const Attrs& attrs, TypeReporter& reporter) {
  const Any relation = Downcast<Op>(reporter.Callee()).GetAttrValue("FTypeRelation");
  if (relation.is_null()) throw CompileError("it was registered without a type relation; see Op.add_type_rel");
  if (relation.Is<String>()) {
    const auto which = relation.As<String>();
    const bool one = which == "Identity";
    if (num_inputs < (one ? 1 : 2)) throw CompileError("the relation " + which.str() + " needs more arguments");
    return (one                    ? IdentityRel
            : which == "Broadcast" ? BroadcastRel
                                   : BroadcastCompRel)(types, num_inputs, attrs, reporter);
  }
  Array<Type> args;
  for (int i = 0; i < num_inputs; ++i) {
    if (!types[i].defined() || types[i].as<IncompleteTypeNode>()) return false;
    args.push_back(types[i]);
  }
  const auto result = relation.As<runtime::PackedFunc>()(args, attrs).As<ObjectRef>();
  if (!result.defined()) return false;
  if (!result.as<TypeNode>())
    throw CompileError("its type relation gave a " + result->GetTypeKey() + ", where a type is wanted");
  reporter.Assign(types[num_inputs], Downcast<Type>(result));
  return true;
}

}  // namespace

bool IsProgramsOwn(const OpDef* def) { return def && def->type_rel == AskRelation; }

namespace {

OpDef* Registered(const Op& op) {
  auto* def = reinterpret_cast<OpDef*>(op->def);
  if (!IsProgramsOwn(def)) {
    throw runtime::ValueError("the operator `" + op->name.str() +
                              "` is built in and stays as it is; this is for operators that a program registers");
  }
  return def;
}

BATON_REGISTER_GLOBAL("ir.RegisterOp").set_body_typed([](String name, String doc) {
  if (name.empty()) throw runtime::ValueError("an operator has a name");
  if (Op::Find(name.view())) throw runtime::ValueError("there is an operator `" + name.str() + "` already");
  Op op = Op::GetOrCreate(name.view());
  auto* def = new OpDef;  // lives as long as the process, as all do
  def->name = op->name.c_str();
  def->num_inputs = -1;
  def->type_rel = AskRelation;
  ResolveTraits(def);
  op->description = doc;
  op->def = reinterpret_cast<uint64_t>(def);
  op.SetAttrValue("TOpPattern", Any(static_cast<int>(OpPattern::kOpaque)));
  op.SetAttrValue("TOpIsStateful", Any(false));
  return op;
});
BATON_REGISTER_GLOBAL("ir.OpSetNumInputs").set_body_typed([](Op op, int n) {
  Registered(op)->num_inputs = n;
  op->num_inputs = n;
});
BATON_REGISTER_GLOBAL("ir.OpAddArgument").set_body_typed([](Op op, String name, String type, String doc) {
  Registered(op);
  op->arguments.push_back(OpArg(name, type, doc));
});
BATON_REGISTER_GLOBAL("ir.OpSetSupportLevel").set_body_typed([](Op op, int level) {
  Registered(op);
  op->support_level = level;
});
BATON_REGISTER_GLOBAL("ir.OpSetAttrsTypeKey").set_body_typed([](Op op, String key) {
  Registered(op);
  Object::TypeKey2Index(key.str());
  op->attrs_type_key = key;
});
BATON_REGISTER_GLOBAL("ir.OpSetCompute").set_body_typed([](Op op, runtime::PackedFunc compute) {
  OpDef* def = Registered(op);
  if (def->lower) {
    throw runtime::ValueError("the operator `" + op->name.str() +
                              "` says already what it computes; kernels of it may be there");
  }
  def->lower = LowerFn(new runtime::PackedFunc(compute));
});
BATON_REGISTER_GLOBAL("ir.OpAddTypeRel").set_body_typed([](Op op, String name, Any relation) {
  Registered(op);
  if (relation.is_null()) {
    if (name != "Identity" && name != "Broadcast" && name != "BroadcastComp") {
      throw runtime::ValueError("no type relation is called `" + name.str() +
                                "`; there are Identity, Broadcast and BroadcastComp, or give a function");
    }
    relation = Any(name);
  }
  op.SetAttrValue("FTypeRelation", relation);
});

}  // namespace

}  // namespace baton::relay
