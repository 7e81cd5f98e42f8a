// SPDX-License-Identifier: Apache-2.0
#include <baton/relay/functor.h>
#include <baton/relay/op/annotation.h>
#include <baton/relay/transform.h>
#include <relay/transform/compiler_regions.h>

#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace baton::relay::transform {
namespace {

// Regions for the compiler "default" are computed in place.
constexpr std::string_view kDefault = "default";

Type TypeOfExpr(const Expr& e) { return Downcast<Type>(e->checked_type()); }

/// The body of a region, with variables in place of what it takes from outside.
class Extractor : public MixedModeMutator {
 public:
  using MixedModeMutator::Put;

 private:
  using MixedModeMutator::VisitExpr_;
  Expr VisitExpr_(const FunctionNode* f) final { return GetRef<Expr>(f); }
  Expr Rewrite_(const CallNode* pre, const Expr& post) final {
    return BeginsRegion(pre).empty() && EndsRegion(pre).empty() ? post : post.as<CallNode>()->args[0];
  }
};

class Partitioner : public MixedModeMutator {
 public:
  /// `name(compiler, region_id)` is the name of a new function.
  Partitioner(const CompilerRegions& regions, std::vector<std::pair<GlobalVar, Function>>* out,
              std::unordered_set<std::string>* names, std::string prefix, std::string within, bool bind_constants)
      : regions_(regions),
        out_(out),
        names_(names),
        prefix_(std::move(prefix)),
        within_(std::move(within)),
        bind_constants_(bind_constants) {}

 private:
  using MixedModeMutator::VisitExpr_;
  struct Made {
    Expr call;
    std::unordered_map<const Object*, int> field;  ///< of a value that leaves the region
    bool several = false;
  };

  Expr VisitExpr_(const FunctionNode* f) final {
    return IsOpaqueFunction(f) ? GetRef<Expr>(f) : MixedModeMutator::VisitExpr_(f);
  }
  Expr Rewrite_(const CallNode* pre, const Expr& post) final {
    if (!BeginsRegion(pre).empty()) return post.as<CallNode>()->args[0];
    const std::string_view compiler = EndsRegion(pre);
    if (compiler.empty()) return post;
    if (compiler == kDefault) return post.as<CallNode>()->args[0];
    const int region_id = regions_.Of(pre);
    auto [it, fresh] = made_.try_emplace(region_id);
    if (fresh) {
      Made m = Make(regions_[region_id]);
      made_[region_id] = std::move(m);
    }
    const Made& m = made_[region_id];
    return m.several ? TupleGetItem(m.call, m.field.at(pre->args[0].get())) : m.call;
  }

  Made Make(const CompilerRegions::Region& region) {
    const int id = next_++;
    const std::string stem = std::string(region.compiler) + "_" + std::to_string(id);
    Made made;
    Extractor extract;
    Array<Var> params;
    Array<Expr> args, results;
    Array<Type> types;
    std::unordered_map<const Object*, Var> of;
    auto param = [&](const Expr& arg) {
      auto [it, fresh] = of.try_emplace(arg.get());
      if (fresh) {
        it->second = Var(stem + "_i" + std::to_string(params.size()), TypeOfExpr(arg));
        params.push_back(it->second);
        args.push_back(VisitExpr(arg));
      }
      return it->second;
    };
    for (const CallNode* begin : region.begins) {
      const Expr& arg = begin->args[0];
      extract.Put(GetRef<Expr>(begin), bind_constants_ && arg.as<ConstantNode>() ? arg : Expr(param(arg)));
    }
    for (const CallNode* end : region.ends) {
      const Expr& value = end->args[0];
      if (!made.field.try_emplace(value.get(), static_cast<int>(results.size())).second) continue;
      results.push_back(extract.VisitExpr(value));
      types.push_back(TypeOfExpr(value));
    }
    made.several = results.size() > 1;
    Expr body = made.several ? Expr(Tuple(results)) : results[0];
    // Variables that no begin announces are taken, too.
    Map<Var, Expr> renamed;
    std::unordered_set<const Object*> own;
    for (const Var& p : params) own.insert(p.get());
    for (const Var& v : FreeVars(body)) {
      if (!own.count(v.get())) renamed.Set(v, param(v));
    }
    if (!renamed.empty()) body = Bind(body, renamed);

    const std::string wanted = prefix_ + "_" + std::string(region.compiler) + "_" + within_ + "_" + std::to_string(id);
    std::string name = wanted;
    for (int i = 0; !names_->insert(name).second; ++i) name = wanted + "_" + std::to_string(i);
    Map<String, Any> attrs;
    attrs.Set(attr::kPrimitive, Any(1));
    attrs.Set(attr::kInline, Any(1));
    attrs.Set(attr::kCompiler, Any(String(region.compiler)));
    attrs.Set(attr::kGlobalSymbol, Any(String(name)));
    GlobalVar global{String(name)};
    const Function plain = Optimized(
        region.compiler, Function(params, body, made.several ? Type(TupleType(types)) : types[0], Array<TypeVar>()));
    out_->push_back(
        {global, Function(plain->params, plain->body, plain->ret_type, plain->type_params, DictAttrs(attrs))});
    CallNode call;
    call.op = global;
    call.args = args;
    made.call = Call(std::move(call));
    return made;
  }

  /// A region as the program's own function makes of it, "relay.ext.NAME.optimize": of a module to a module.
  static Function Optimized(std::string_view compiler, Function f) {
    const auto* optimize = runtime::Registry::Get("relay.ext." + std::string(compiler) + ".optimize");
    if (!optimize) return f;
    IRModule mod = IRModule::FromExpr(f);
    const IRModule out = (*optimize)(InferType()(mod)).As<IRModule>();
    return Downcast<Function>(out->Lookup("main"));
  }

  const CompilerRegions& regions_;
  std::vector<std::pair<GlobalVar, Function>>* out_;
  std::unordered_set<std::string>* names_;
  std::string prefix_, within_;
  bool bind_constants_;
  int next_ = 0;
  std::unordered_map<int, Made> made_;
};

}  // namespace

Pass PartitionGraph(const PartitionGraphOptions& options) {
  return MakePass<PartitionGraph>(
      options,
      {
          .doc =
              "Makes a global function of each region that is annotated for a compiler, with the attributes Compiler, "
              "global_symbol, Primitive and Inline. A value that leaves a region becomes its result, several a tuple. "
              "With bind_constants, constants that a region takes stand in its function; else they are arguments. "
              "mod_name is part of the functions' names, tvmgen_default_NAME_main_0. A global function "
              "relay.ext.NAME.optimize, of modules, is called with each region of NAME.",
          .opt_level = 0,
          .required = {"InferType"},
          .run =
              [mod_name = options.mod_name, bind_constants = options.bind_constants](IRModule mod, PassContext) {
                // By name a module finds its functions one by one, so they are put in place at the end.
                std::vector<std::pair<GlobalVar, Function>> made;
                std::unordered_set<std::string> names;
                for (const auto& [var, func] : mod->functions) names.insert(var->name_hint.str());
                const std::string prefix = mod_name.empty() ? "tvmgen" : "tvmgen_" + mod_name.str();
                for (const auto& [var, func] : mod->functions) {
                  const auto* fn = func.as<FunctionNode>();
                  if (!fn || IsOpaqueFunction(fn)) continue;
                  const Function f = GetRef<Function>(fn);
                  const CompilerRegions regions(f);
                  if (!regions.size()) continue;
                  regions.CheckOrder();
                  const Function rest =
                      Partitioner(regions, &made, &names, prefix, var->name_hint.str(), bind_constants).Mutate(f);
                  made.push_back({var, rest});
                }
                if (made.empty()) return mod;
                IRModule out = mod.Copy();
                for (const auto& [var, func] : made) out.CopyOnWrite()->functions.Set(var, func);
                return out;
              },
      });
}

namespace {
const RegisterPass<PartitionGraph> registered_partition_graph;
}  // namespace

}  // namespace baton::relay::transform
