// SPDX-License-Identifier: Apache-2.0
// The function behind a PackedFunc: takes pointers to data and shapes, finds the sizes, checks them, calls.
#include <baton/ir/target.h>
#include <baton/runtime/c_backend_api.h>
#include <baton/tir/functor.h>
#include <baton/tir/intrin.h>
#include <baton/tir/lower.h>
#include <baton/tir/transform.h>

#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

namespace baton::tir {
namespace {

/// An array of numbers behind a pointer.
Buffer View(const Var& pointer, DataType dtype, int64_t size) {
  BufferNode n;
  n.data = pointer, n.dtype = dtype, n.shape = {PrimExpr(size)}, n.name = pointer->name_hint;
  return Buffer(std::move(n));
}

/// Sizes in the shapes of buffers that are not parameters become parameters, at the end.
PrimFunc WithSizes(const PrimFunc& f) {
  for (const auto& [p, b] : f->buffer_map) {
    if (!b->IsDense())
      throw UnsupportedError("parameter `" + b->name.str() +
                             "` has strides or an offset; arguments are dense and row-major, so declare it without");
  }
  std::unordered_set<const Object*> known;
  for (const Var& p : f->params) known.insert(p.get());
  Array<Var> params = f->params;
  for (const Var& p : f->params) {
    if (!f->buffer_map.count(p)) continue;
    for (const PrimExpr& d : f->buffer_map.at(p)->shape) {
      PostOrderVisitExpr(d, [&](const PrimExpr& e) {
        if (const auto* v = e.as<VarNode>(); v && known.insert(v).second) params.push_back(GetRef<Var>(v));
      });
    }
  }
  if (params.size() == f->params.size()) return f;
  PrimFunc out = f;
  out.CopyOnWrite()->params = params;
  return out;
}

}  // namespace

namespace {

/// A variable that is bound around a body, or an assertion before it.
struct Wrap {
  std::optional<Var> var;  // none: an assertion
  PrimExpr value;
  std::string message;
};

Stmt Wrapped(const std::vector<Wrap>& wraps, Stmt body) {
  for (size_t i = wraps.size(); i-- > 0;) {
    const Wrap& w = wraps[i];
    if (w.var) {
      LetStmtNode n;
      n.var = *w.var, n.value = w.value, n.body = body;
      body = LetStmt(std::move(n));
    } else {
      AssertStmtNode n;
      n.condition = w.value, n.message = StringImm(String(w.message)), n.body = body;
      body = AssertStmt(std::move(n));
    }
  }
  return body;
}

}  // namespace

PackedApi MakePackedApi(const GlobalVar& var, const PrimFunc& func) {
  const std::string name = func->GetAttr<String>(baton::attr::kGlobalSymbol, var->name_hint).str();
  PackedApi api;
  api.func = WithSizes(func);
  const Array<Var>& params = api.func->params;
  const auto& buffers = api.func->buffer_map;
  // Variables that are a dimension of a buffer themselves; trailing parameters that are need not be given.
  std::unordered_set<const Object*> sizes;
  for (const Var& p : params) {
    if (!buffers.count(p)) continue;
    for (const PrimExpr& d : buffers.at(p)->shape) {
      if (d.as<VarNode>()) sizes.insert(d.get());
    }
  }
  size_t required = params.size();
  while (required > 0 && sizes.count(params[static_cast<int64_t>(required) - 1].get())) --required;
  api.num_required = static_cast<int64_t>(required);

  Var slots("slots", DataType::Handle());
  const int64_t num = 2 * static_cast<int64_t>(params.size());
  Buffer ints = View(slots, DataType::Int(64), num), floats = View(slots, DataType::Float(64), num);
  std::vector<Wrap> wraps;
  VarMap bound;
  auto let = [&](const Var& v, PrimExpr value) {
    Var own(v->name_hint, v->dtype);
    bound[v.get()] = own;
    wraps.push_back({own, std::move(value), ""});
    return own;
  };
  for (size_t i = 0; i < params.size(); ++i) {
    int64_t k = static_cast<int64_t>(i);
    const Var& p = params[k];
    DataType t = p->dtype;
    if (t.is_handle()) {
      let(p, load_handle(slots, 2 * k));
    } else if (i < required) {
      PrimExpr at = 2 * k;
      PrimExpr value = t.is_floating() ? PrimExpr(BufferLoad(floats, {at})) : PrimExpr(BufferLoad(ints, {at}));
      let(p, t.is_bool() ? PrimExpr(NE(value, PrimExpr(0))) : cast(t, value));
    }
  }
  struct Check {
    PrimExpr size, dim;
    std::string message;
  };
  std::vector<Check> checks;
  for (size_t i = 0; i < params.size(); ++i) {
    int64_t k = static_cast<int64_t>(i);
    if (!buffers.count(params[k])) continue;
    const Buffer& b = buffers.at(params[k]);
    Var shape(String(b->name.str() + "_shape"), DataType::Handle());
    Buffer view = View(shape, DataType::Int(64), static_cast<int64_t>(b->shape.size()));
    bool used = false;
    for (size_t d = 0; d < b->shape.size(); ++d) {
      const PrimExpr& e = b->shape[static_cast<int64_t>(d)];
      if (as_const_int(e)) continue;  // the caller compares literals
      if (!used) wraps.push_back({shape, load_handle(slots, 2 * k + 1), ""});
      used = true;
      PrimExpr size = BufferLoad(view, {PrimExpr(static_cast<int64_t>(d))});
      if (const auto* v = e.as<VarNode>(); v && !bound.count(v)) {
        let(GetRef<Var>(v), cast(v->dtype, size));
      } else {
        checks.push_back({size, e,
                          "`" + name + "`: dimension " + std::to_string(d) + " of argument `" + b->name.str() +
                              "` does not fit the other arguments"});
      }
    }
  }
  for (const Check& c : checks) {
    wraps.push_back({std::nullopt, EQ(cast(DataType::Int(64), Substitute(c.dim, bound)), c.size), c.message});
  }
  for (size_t i = required; i < params.size(); ++i) {
    int64_t k = static_cast<int64_t>(i);
    PrimExpr given = BufferLoad(ints, {PrimExpr(2 * k + 1)}), value = BufferLoad(ints, {PrimExpr(2 * k)});
    wraps.push_back(
        {std::nullopt, Or(EQ(given, PrimExpr(0)), EQ(value, cast(DataType::Int(64), bound.at(params[k].get())))),
         "`" + name + "`: argument `" + params[k]->name_hint.str() + "` is not the size that the tensors have"});
  }
  Array<PrimExpr> args;
  for (const Var& p : params) args.push_back(bound.at(p.get()));
  const PrimFunc given = api.func;  // what the caller of the PackedFunc knows of
  int64_t result = 0;
  if (GivesValue(api.func)) {
    args.push_back(ptr_offset(slots, PrimExpr(8 * num)));
    api.func = ResultToParameter(given);
    result = api.func->buffer_map.at(api.func->params.back())->dtype.is_floating() ? kBatonParamFloat : kBatonParamInt;
  }
  Stmt body = Evaluate(PrimExpr(Call(DataType::Int(32), var, args)));
  body = Wrapped(wraps, std::move(body));
  api.caller = PrimFunc({slots}, body);
  api.caller = WithAttr(api.caller, baton::attr::kGlobalSymbol, Any(String(kPackedCallPrefix + name)));
  api.caller = WithAttr(api.caller, attr::kPackedOf, Any(given));
  if (result) api.caller = WithAttr(api.caller, attr::kResultKind, Any(result));
  api.caller = WithAttr(api.caller, attr::kNumRequired, Any(api.num_required));
  return api;
}

PrimFunc MakeUnpackedApi(const PrimFunc& func) {
  const auto asked = [&](const char* key) {
    if (!func->attrs.defined() || !func->attrs->dict.count(key))
      throw CompileError(std::string("MakeUnpackedAPI: expect PrimFunc to have the ") + key + " attribute; " +
                         "with_attr(\"" + key + "\", ...) gives it");
  };
  asked(baton::attr::kGlobalSymbol);
  asked(baton::attr::kTarget);
  PrimFunc out = WithSizes(func);
  PrimFuncNode* n = out.CopyOnWrite();
  Array<Var> params;
  Stmt body = n->body;
  VarMap handles;
  std::vector<Wrap> wraps;
  for (const Var& p : n->params) {
    const Var own = n->buffer_map.count(p) ? n->buffer_map.at(p)->data : p;
    if (!own.same_as(p)) handles[p.get()] = own;
    VarNode arg = *own.get();
    arg.name_hint = String("arg" + std::to_string(params.size()));
    params.push_back(Var(std::move(arg)));
    wraps.push_back({own, params.back(), ""});
  }
  body = Wrapped(wraps, Substitute(body, handles));
  const auto marked = [&](const char* key, int64_t value) {
    AttrStmtNode mark;
    mark.node = StringImm(String("default")), mark.attr_key = String(key);
    mark.value = IntImm(DataType::Int(32), value), mark.body = body;
    body = AttrStmt(std::move(mark));
  };
  marked("device_type", func->GetAttr<Target>(baton::attr::kTarget)->device_type());
  marked("device_id", 0);
  n->params = params;
  n->buffer_map = Map<Var, Buffer>();
  n->body = body;
  return out;
}

namespace transform {
namespace {
constexpr const char* kCallingConv = "calling_conv";
constexpr int64_t kPackedConvention = 1;
}  // namespace

struct MakePackedAPIOptions : PassOptions<MakePackedAPIOptions> {
  static constexpr auto _type_key = "tir.transform.MakePackedAPIOptions";
  int64_t num_unpacked_params = -1;
  static constexpr void Describe(auto& d) {
    d(F<&MakePackedAPIOptions::num_unpacked_params>, "Parameters that stay as they are; none: all are packed.");
  }
};

Pass MakePackedAPI(const MakePackedAPIOptions& options) {
  const int64_t num_unpacked_params = options.num_unpacked_params;
  if (num_unpacked_params > 0) {
    throw UnsupportedError("MakePackedAPI: num_unpacked_params is " + std::to_string(num_unpacked_params) +
                           "; all parameters are packed, or, by MakeUnpackedAPI, none");
  }
  return MakePass<MakePackedAPI>(
      options,
      {
          .doc =
              "Adds to each function the one that is behind its PackedFunc: it takes pointers and numbers, reads sizes "
              "from the shapes, checks them and calls. baton.build does so by itself.",
          .run =
              [](IRModule mod, PassContext) {
                IRModule out = mod;
                for (const auto& [var, func] : mod->functions) {
                  const auto* f = func.as<PrimFuncNode>();
                  if (!f || f->GetAttr<PrimFunc>(attr::kPackedOf).defined()) continue;
                  const std::string name = f->GetAttr<String>(baton::attr::kGlobalSymbol, var->name_hint).str();
                  const std::string caller = kPackedCallPrefix + name;
                  if (mod->ContainGlobalVar(caller)) continue;
                  PackedApi api = MakePackedApi(var, GetRef<PrimFunc>(f));
                  if (!api.func.same_as(func)) out.CopyOnWrite()->Update(var, api.func);
                  out.CopyOnWrite()->Add(GlobalVar(String(caller)),
                                         WithAttr(api.caller, kCallingConv, Any(kPackedConvention)));
                }
                return out;
              },
      });
}
Pass MakeUnpackedAPI() {
  return MakePass<MakeUnpackedAPI>({
      .doc = "Functions take pointers to data instead of buffers, and sizes as numbers, as other code calls them.",
      .run = [](PrimFunc f, IRModule, PassContext) { return MakeUnpackedApi(f); },
  });
}
namespace {
const RegisterPass<MakeUnpackedAPI> registered_unpacked("tir.transform.");
const RegisterPass<MakePackedAPI> registered_packed("tir.transform.");
}  // namespace
}  // namespace transform

}  // namespace baton::tir
