// SPDX-License-Identifier: Apache-2.0
// What a user says of a model before it is compiled.
#include <baton/driver/driver.h>
#include <baton/relay/functor.h>
#include <baton/relay/op.h>
#include <baton/relay/transform.h>
#include <baton/runtime/registry.h>
#include <baton/support/nearest.h>
#include <baton/tir/expr.h>

#include <algorithm>

#include "driver/donations.h"
#include "driver/lower_graph.h"
#include "driver/size_words.h"

namespace baton::driver {

using relay::Expr;
using relay::Function;
using relay::Var;

namespace {

std::vector<std::string> ParamNames(const Function& f) {
  std::vector<std::string> names;
  for (const Var& p : f->params) names.push_back(p->name_hint().str());
  return names;
}

/// A copy of the module with another main.
IRModule WithMain(const IRModule& mod, const Function& f) {
  IRModule out = mod.Copy();
  out.CopyOnWrite()->Update(mod->GetGlobalVar("main"), f);
  return out;
}

/// Main with parameters replaced: `replace(p)` gives another variable, a constant, or the parameter itself.
template <class F>
IRModule ReplaceParams(const IRModule& mod, F replace) {
  Function main = MainOf(mod);
  Map<Var, Expr> binds;
  Array<Var> params;
  for (const Var& p : main->params) {
    Expr e = replace(p);
    if (e.as<relay::VarNode>()) params.push_back(Downcast<Var>(e));
    if (!e.same_as(p)) binds.Set(p, e);
  }
  if (binds.empty()) return mod;
  return WithMain(mod, Function(params, relay::Bind(main->body, binds), Type(), main->type_params, main->attrs));
}

}  // namespace

// There is one way to make kernels; programs that ask for another one run on it.
BATON_REGISTER_PASS_CONFIG_OPTION(
    "relay.backend.use_auto_scheduler", bool,
    "Accepted for programs that ask for kernels found by search; there is one generator of kernels.");
BATON_REGISTER_PASS_CONFIG_OPTION(
    "relay.backend.use_meta_schedule", bool,
    "Accepted for programs that ask for kernels found by search; there is one generator of kernels.");

IRModule BindParams(const IRModule& mod, const Map<String, NDArray>& params) {
  if (params.empty()) return mod;
  std::vector<std::string> names = ParamNames(MainOf(mod));
  for (const auto& [name, value] : params) {
    if (std::find(names.begin(), names.end(), name.str()) == names.end()) {
      throw runtime::ValueError("@main has no parameter `" + name.str() + "`" +
                                support::DidYouMean(name.view(), names));
    }
    if (std::count(names.begin(), names.end(), name.str()) > 1) {
      throw runtime::ValueError("@main has several parameters `" + name.str() + "`; a name must tell which is bound");
    }
  }
  return ReplaceParams(mod, [&](const Var& p) -> Expr {
    if (!params.count(p->name_hint())) return p;
    relay::Constant c(NDArray(params.at(p->name_hint())));
    c->span = p->span;
    return c;
  });
}

namespace {

[[noreturn]] void WrongShape(const Var& p, const std::string& what) {
  throw runtime::ValueError("input `" + p->name_hint().str() + "` " + what);
}

/// One dimension of an input, as a caller gives it: a number, a name, or null or -1 where the model
/// decides.
PrimExpr GivenDim(const Var& p, size_t axis, const PrimExpr& have, const Any& given, bool name_unknown,
                  Map<String, tir::Var>* names) {
  const bool literal = relay::DimOf(have) >= 0;
  const bool by_model = given.is_null() || (given.Is<int64_t>() && given.As<int64_t>() == -1);
  if (!by_model && given.Is<int64_t>()) {
    const auto n = given.As<int64_t>();
    if (n < 0) throw runtime::ValueError("a dimension of `" + p->name_hint().str() + "` is " + std::to_string(n));
    if (literal && relay::DimOf(have) != n) {
      throw runtime::ValueError("dimension " + std::to_string(axis) + " of input `" + p->name_hint().str() + "` is " +
                                std::to_string(relay::DimOf(have)) + " in the model, got " + std::to_string(n));
    }
    return PrimExpr(n);
  }
  if (by_model) {
    if (!have.as<tir::AnyNode>() || !name_unknown) return have;
    const String name(p->name_hint().str() + "_" + std::to_string(axis));
    if (!names->count(name)) names->Set(name, tir::SizeVar(name, DataType::Int(64)));
    return names->at(name);
  }
  const auto name = given.As<String>();
  if (literal) {
    throw runtime::ValueError("dimension " + std::to_string(axis) + " of input `" + p->name_hint().str() + "` is " +
                              std::to_string(relay::DimOf(have)) + " in the model; it cannot be the open `" +
                              name.str() + "`");
  }
  if (const auto* v = have.as<tir::VarNode>(); v && v->name_hint == name) return have;
  if (!names->count(name)) names->Set(name, tir::SizeVar(name, DataType::Int(64)));
  return names->at(name);
}

void CheckNames(const std::vector<std::string>& names, const String& given) {
  if (std::find(names.begin(), names.end(), given.str()) == names.end()) {
    throw runtime::ValueError("@main has no input `" + given.str() + "`" + support::DidYouMean(given.view(), names));
  }
}

/// Symbols that stand alone in the types of parameters that get a shape.
Map<String, int64_t> SymbolsOf(const Function& main, const Map<String, Array<Any>>& shapes) {
  Map<String, int64_t> out;
  for (const Var& p : main->params) {
    const auto* t = p->type_annotation.as<TensorTypeNode>();
    if (!t || !shapes.count(p->name_hint()) || shapes.at(p->name_hint()).size() != t->shape.size()) continue;
    for (size_t i = 0; i < t->shape.size(); ++i) {
      const auto at = static_cast<int64_t>(i);
      const auto* v = t->shape[at].as<tir::VarNode>();
      const Any given = shapes.at(p->name_hint())[at];
      if (!v || !given.Is<int64_t>()) continue;
      const auto n = given.As<int64_t>();
      if (n < 0) continue;
      if (out.count(v->name_hint) && out.at(v->name_hint) != n) {
        throw runtime::ValueError("input `" + p->name_hint().str() + "` has " + v->name_hint.str() + " = " +
                                  std::to_string(n) + ", an input before it has " +
                                  std::to_string(out.at(v->name_hint)));
      }
      out.Set(v->name_hint, n);
    }
  }
  return out;
}

}  // namespace

IRModule BindShapes(const IRModule& open, const Map<String, Array<Any>>& shapes, bool name_unknown) {
  if (shapes.empty() && !name_unknown) return open;
  const IRModule mod = BindDims(open, SymbolsOf(MainOf(open), shapes));
  const std::vector<std::string> inputs = ParamNames(MainOf(mod));
  for (const auto& [name, value] : shapes) CheckNames(inputs, name);
  Map<String, tir::Var> names;
  for (const Var& p : MainOf(mod)->params) {
    if (const auto* t = p->type_annotation.as<TensorTypeNode>()) {
      for (const PrimExpr& d : t->shape) {
        if (d.as<tir::VarNode>()) names.Set(Downcast<tir::Var>(d)->name_hint, Downcast<tir::Var>(d));
      }
    }
  }
  return ReplaceParams(mod, [&](const Var& p) -> Expr {
    const bool given = shapes.count(p->name_hint());
    const auto* t = p->type_annotation.as<TensorTypeNode>();
    if (!given && (!name_unknown || !t)) return p;
    Array<Any> shape;
    if (given) shape = shapes.at(p->name_hint());
    if (given && (!t || t->shape.size() != shape.size())) {
      WrongShape(p,
                 "has " + std::to_string(t ? t->shape.size() : 0) + " dimensions, got " + std::to_string(shape.size()));
    }
    Array<PrimExpr> dims;
    bool same = true;
    for (size_t i = 0; i < t->shape.size(); ++i) {
      const auto at = static_cast<int64_t>(i);
      dims.push_back(GivenDim(p, i, t->shape[at], given ? shape[at] : Any(), name_unknown, &names));
      same = same && dims.back().same_as(t->shape[at]);
    }
    if (same) return p;
    Var v(p->name_hint(), TensorType(dims, t->dtype));
    v->span = p->span;
    return v;
  });
}

BATON_REGISTER_GLOBAL("driver.BindParams").set_body_typed([](IRModule m, Map<String, NDArray> p) {
  return BindParams(m, p);
});
BATON_REGISTER_GLOBAL("driver.BindShapes").set_body_typed([](IRModule m, Map<String, Array<Any>> s, bool name_unknown) {
  return BindShapes(m, s, name_unknown);
});
/// Bounds of the dimensions of main, by name: [min, max, multiple].
BATON_REGISTER_GLOBAL("driver.SetDims").set_body_typed([](IRModule m, Map<String, Array<int64_t>> bounds) {
  return WithMain(m, WithAttr(MainOf(m), kDynamicDims, Any(bounds)));
});
/// States of main: names of inputs, each with that of the output which becomes the input of the next call.
BATON_REGISTER_GLOBAL("driver.SetState").set_body_typed([](IRModule m, Map<String, String> pairs) {
  return WithMain(m, WithAttr(MainOf(m), relay::transform::kState, Any(pairs)));
});
/// Inputs of main whose memory outputs take, by name.
BATON_REGISTER_GLOBAL("driver.SetDonated").set_body_typed([](IRModule m, Array<String> names) {
  return WithMain(m, WithAttr(MainOf(m), kDonated, Any(names)));
});
/// Names for callers of the unknown extents of main's inputs.
BATON_REGISTER_GLOBAL("driver.NameInputs").set_body_typed([](IRModule m, Map<String, Array<String>> names) {
  return WithMain(m, WithAttr(MainOf(m), kInputExtents, Any(names)));
});

}  // namespace baton::driver
