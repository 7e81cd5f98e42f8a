// SPDX-License-Identifier: Apache-2.0
// Pass infrastructure: PassInfo, PassContext, passes of every kind, sequences, instruments.
#pragma once

#include <baton/ir/attrs.h>
#include <baton/ir/instrument.h>
#include <baton/ir/module.h>
#include <baton/runtime/packed_func.h>
#include <baton/runtime/registry.h>
#include <baton/support/with.h>

#include <string>
#include <string_view>
#include <vector>

namespace baton::transform {

using Module = IRModule;

struct PassRun;  // pass_run.h

/// Properties of a pass.
///
/// Properties ("Typed", "ANF", ...) are a contract that Scheduled (pipeline.h) acts upon: properties in `needs` must
/// hold when the pass runs, those in `establishes` hold afterwards, those in `keeps` are preserved ("*": all), those in
/// `destroys` are invalidated. A pass without a contract preserves nothing, unless it returns its input module
/// unchanged.
struct PassInfoNode : Node<PassInfoNode, Object> {
  static constexpr const char* _type_key = "transform.PassInfo";
  int32_t opt_level = 0;
  String name;
  Array<String> required;
  Array<String> needs;
  Array<String> establishes;
  Array<String> keeps;
  Array<String> destroys;
  String doc;
  Map<String, Any> options;
  String origin;
  bool reassociates = false;
  bool changes_results = false;
  static constexpr void Describe(auto& d) {
    using runtime::kIgnored, runtime::kTransient;
    d(F<&PassInfoNode::opt_level>, "The pass is enabled from this level of the context on.");
    d(F<&PassInfoNode::name>, "Its name.");
    d(F<&PassInfoNode::required>, "Passes that must run before it.");
    d(F<&PassInfoNode::needs>, "Properties that must hold before it.");
    d(F<&PassInfoNode::establishes>, "Properties that hold after it; all it does is establish them.");
    d(F<&PassInfoNode::keeps>, "Properties that go on holding; \"*\" is all that it does not destroy.");
    d(F<&PassInfoNode::destroys>, "Properties that do not hold any more; all others are kept.");
    d(F<&PassInfoNode::doc>, "What the pass does; \"\" where it does not say.", kTransient, kIgnored);
    d(F<&PassInfoNode::options>, "The options that it was made with, by name; all others have their defaults.",
      kTransient, kIgnored);
    d(F<&PassInfoNode::origin>, "The path that imports it, of a pass of a front end.", kTransient, kIgnored);
    d(F<&PassInfoNode::reassociates>, "It may compute in another order, and so round or overflow elsewhere.",
      kTransient, kIgnored);
    d(F<&PassInfoNode::changes_results>, "It is there to change what a program computes, as gradients are.", kTransient,
      kIgnored);
  }
};
class PassInfo : public RefTo<PassInfoNode, ObjectRef> {
 public:
  using RefTo::RefTo;
  PassInfo(int opt_level, String name, Array<String> required)
      : RefTo(PassInfoNode{.opt_level = opt_level, .name = name, .required = required}) {}
};

/// The environment that passes run in: level, required and disabled passes, options, instruments.
///
/// Instruments are called in the order of `instruments` at every point. Enter: if one throws, those that had entered
/// are exited, `instruments` is cleared and the exception goes on. Exit: if one throws, `instruments` is cleared, later
/// ones get no exit, the context is left all the same and the exception goes on. With `isolate_instruments` a throw is
/// not passed on: that instrument is taken out, and what it threw is in `instrument_errors`.
///
/// A nested context replaces its outer one: level, lists of passes, options and instruments. Only instruments that
/// observe are inherited: they see its passes too, without a say in which of them run.
struct BATON_DLL PassContextNode : Node<PassContextNode, Object> {
  static constexpr const char* _type_key = "transform.PassContext";
  int32_t opt_level = 2;
  Array<String> required_pass;
  Array<String> disabled_pass;
  Map<String, Any> config;
  Array<instrument::PassInstrument> instruments;
  ObjectRef diag_ctx;
  bool inherit_instruments = true;
  bool isolate_instruments = false;
  int32_t num_threads = 1;
  Array<String> instrument_errors;
  static constexpr void Describe(auto& d) {
    d(F<&PassContextNode::opt_level>, "Passes up to this level run.");
    d(F<&PassContextNode::required_pass>, "Names of passes that run whatever their level.");
    d(F<&PassContextNode::disabled_pass>, "Names of passes that do not run; stronger than required.");
    d(F<&PassContextNode::config>, "Options by registered key.");
    d(F<&PassContextNode::instruments>, "Called around each pass, in this order.");
    d(F<&PassContextNode::diag_ctx>, "Collects diagnostics; may be null.", kNullable);
    d(F<&PassContextNode::inherit_instruments>, "Observing instruments of the outer context see its passes too.");
    d(F<&PassContextNode::isolate_instruments>, "An instrument that throws is taken out; passes go on.");
    d(F<&PassContextNode::num_threads>, "Threads that function passes of C++ run on; 1 is the caller's alone.");
    d(F<&PassContextNode::instrument_errors>, "What isolated instruments threw: \"instrument, hook: error\".");
  }
  template <class T>
  T GetConfig(const char* key, T default_value = T()) const {
    const auto* e = config.get() ? config.get()->Find(Any(key)) : nullptr;
    return e && !e->value.is_null() ? e->value.template As<T>() : default_value;
  }
};
class BATON_DLL PassContext : public RefTo<PassContextNode, ObjectRef> {
 public:
  using RefTo::RefTo;
  PassContextNode* operator->() const { return const_cast<PassContextNode*>(RefTo::operator->()); }
  /// A context with the default values.
  static PassContext Create();
  /// The innermost context of this thread; a default one if none was entered.
  static PassContext Current();
  /// Checks and converts `config`; unknown keys are an error that lists the nearest known ones.
  static PassContext Make(int opt_level, Array<String> required, Array<String> disabled,
                          Array<instrument::PassInstrument> instruments, Map<String, Any> config);
  void InstrumentEnterPassContext();
  void InstrumentExitPassContext();
  bool InstrumentBeforePass(const IRModule& mod, const PassInfo& info) const;
  void InstrumentAfterPass(const IRModule& mod, const PassInfo& info) const;
  void InstrumentPassFailed(const IRModule& mod, const PassInfo& info, const String& error) const;
  void InstrumentPassSkipped(const IRModule& mod, const PassInfo& info, const String& reason) const;
  /// The same with the record of the run; passes call this one.
  bool BeforePass(const PassRun& run) const;
  void AfterPass(const PassRun& run) const;
  void PassFailed(const PassRun& run, const String& error) const;
  void PassSkipped(const PassRun& run, const String& reason) const;
  /// Exits the current instruments, then installs and enters the given ones.
  void OverrideInstruments(Array<instrument::PassInstrument> instruments);
  /// False for a disabled pass, true for a required one; else true if the context's level is at least the pass's.
  bool PassEnabled(const PassInfo& info) const;
  /// Why the pass is not enabled; "" if it is.
  std::string WhyDisabled(const PassInfo& info) const;
  /// A copy of it with these options in addition, checked.
  PassContext WithConfig(const Map<String, Any>& more) const;

  using ConvertFn = Any (*)(const Any& in);
  static void RegisterConfigOption(const char* key, const char* type_name, ConvertFn convert, const char* doc = "");
  template <class T>
  static int RegisterConfigOption(const char* key, const char* doc = "") {
    static std::string name = runtime::ValueTraits<T>::Name();
    RegisterConfigOption(key, name.c_str(), [](const Any& in) { return Any(ConvertConfig<T>(in)); }, doc);
    return 0;
  }
  static Map<String, Any> ListConfigOptions();
  /// The documentation of an option; "" if it has none.
  static std::string ConfigOptionDoc(std::string_view key);

 private:
  template <class T>
  static T ConvertConfig(const Any& in) {
    if constexpr (std::is_base_of_v<Attrs, T>) {
      if (in.Is<Map<String, Any>>() && !in.is_null()) {
        auto n = make_object<typename T::ContainerType>();
        FillAttrs(n.get(), in.As<Map<String, Any>>());
        return T(ObjectPtr<Object>(n));
      }
    }
    return in.As<T>();
  }
  static void FillAttrs(BaseAttrsNode* attrs, const Map<String, Any>& values);

  /// C++ enters a context by With<PassContext>, which leaves it too; other languages by registered functions.
  friend class With<PassContext>;
  friend struct PassContextScopes;
  void EnterWithScope();
  void ExitWithScope();
};

/// Makes a context that is active elsewhere the current one of this thread until the end of the block, without entering
/// it: no instrument is told. For tasks on other threads:
///   PassContext ctx = PassContext::Current();
///   threading::ParallelFor(n, 1, [&](int64_t begin, int64_t end) { AdoptPassContext adopt(ctx); ... });
class BATON_DLL AdoptPassContext {
 public:
  explicit AdoptPassContext(const PassContext& ctx);
  ~AdoptPassContext();
  AdoptPassContext(const AdoptPassContext&) = delete;
};

/// `BATON_REGISTER_PASS_CONFIG_OPTION("relay.FuseOps.max_depth", int64_t, "Largest number of operators in a kernel.");`
/// What it means may be left out.
#define BATON_REGISTER_PASS_CONFIG_OPTION(Key, ValueType, ...)                      \
  [[maybe_unused]] static const int BATON_CONCAT(baton_pass_config_, __COUNTER__) = \
      ::baton::transform::PassContext::RegisterConfigOption<ValueType>(Key __VA_OPT__(, ) __VA_ARGS__)

class Pass;

/// Rebuilds a pass with other options: the context may set options that were not given when the pass was made.
struct PassOptionsMaker {
  const char* options_key = nullptr;  ///< type key of the options; null where the pass has none
  Pass (*make)(const Attrs& options) = nullptr;
};

/// A function from module to module, with a name.
class BATON_DLL PassNode : public Node<PassNode, Object> {
 public:
  static constexpr const char* _type_key = "transform.Pass";
  static constexpr bool _type_final = false;
  static constexpr bool _type_abstract = true;
  static constexpr uint32_t _type_child_slots = 8;
  static constexpr void Describe(auto&) {}
  virtual ~PassNode() = default;
  virtual PassInfo Info() const = 0;
  IRModule operator()(IRModule mod) const { return (*this)(std::move(mod), PassContext::Current()); }
  virtual IRModule operator()(IRModule mod, const PassContext& ctx) const = 0;
};
class BATON_DLL Pass : public ObjectRef {
 public:
  BATON_DEFINE_OBJECT_REF_METHODS(Pass, ObjectRef, PassNode)
  /// Runs the pass with instruments, regardless of its level. Only sequences check levels.
  IRModule operator()(IRModule mod) const;
  IRModule operator()(IRModule mod, const PassContext& ctx) const;
};

class BATON_DLL ModulePassNode : public Node<ModulePassNode, PassNode> {
 public:
  static constexpr const char* _type_key = "transform.ModulePass";
  static constexpr bool _type_has_hidden_members = true;  // the body
  PassInfo pass_info;
  TypedPackedFunc<IRModule(IRModule, PassContext)> pass_func;
  PassOptionsMaker options_maker;
  static constexpr void Describe(auto& d) { d(F<&ModulePassNode::pass_info>, "Name, level, prerequisites."); }
  PassInfo Info() const final { return pass_info; }
  IRModule operator()(IRModule mod, const PassContext& ctx) const final;
};
class ModulePass : public Pass {
 public:
  BATON_DEFINE_OBJECT_REF_METHODS(ModulePass, Pass, ModulePassNode)
};

/// Maps functions of one kind (relay::Function or tir::PrimFunc), one at a time; cannot add or delete functions.
class BATON_DLL FunctionPassNode : public Node<FunctionPassNode, PassNode> {
 public:
  static constexpr const char* _type_key = "transform.BaseFunctionPass";
  static constexpr const char* _doc =
      "Maps functions of one kind, one at a time; base of the passes over Relay functions and over PrimFuncs.";
  static constexpr bool _type_has_hidden_members = true;  // the body
  static constexpr bool _type_final = false;
  static constexpr uint32_t _type_child_slots = 2;
  PassInfo pass_info;
  PackedFunc pass_func;  ///< (function, module, context) -> function
  uint32_t function_type = 0;
  bool parallel = false;     ///< the body may run on several functions at once
  bool types_after = false;  ///< the result's types are inferred, if they can be; for passes that programs write
  PassOptionsMaker options_maker;
  static constexpr void Describe(auto& d) { d(F<&FunctionPassNode::pass_info>, "Name, level, prerequisites."); }
  PassInfo Info() const final { return pass_info; }
  IRModule operator()(IRModule mod, const PassContext& ctx) const final;
  /// Functions annotated SkipOptimization are left alone.
  bool SkipFunction(const BaseFunc& func) const { return func->HasNonzeroAttr(attr::kSkipOptimization); }
};

class BATON_DLL SequentialNode : public Node<SequentialNode, PassNode> {
 public:
  static constexpr const char* _type_key = "transform.Sequential";
  PassInfo pass_info;
  Array<Pass> passes;
  static constexpr void Describe(auto& d) {
    d(F<&SequentialNode::pass_info>, "Name, level, prerequisites.");
    d(F<&SequentialNode::passes>, "Run in this order.");
  }
  PassInfo Info() const final { return pass_info; }
  bool PassEnabled(const PassInfo& info) const { return PassContext::Current().PassEnabled(info); }
  IRModule operator()(IRModule mod, const PassContext& ctx) const final;
};
using SequentialPassNode = SequentialNode;
class BATON_DLL Sequential : public Pass {
 public:
  BATON_DEFINE_OBJECT_REF_METHODS(Sequential, Pass, SequentialNode)
  Sequential(Array<Pass> passes, PassInfo info);
  explicit Sequential(Array<Pass> passes, String name = "sequential");
};

BATON_DLL Pass CreateModulePass(const TypedPackedFunc<IRModule(IRModule, PassContext)>& pass_func, int opt_level,
                                String name, Array<String> required);
/// A function pass of the class with this type key ("relay.FunctionPass" or "tir.PrimFuncPass").
BATON_DLL void InitFunctionPass(FunctionPassNode* n, PackedFunc f, int opt_level, String name, Array<String> required,
                                uint32_t function_type);

/// The pass registered as relay._transform.NAME, transform.NAME or tir.transform.NAME; with options by name.
BATON_DLL Pass GetPass(const String& name);
BATON_DLL Pass GetPass(const String& name, const Map<String, Any>& options);

// ---- One file a pass: MakePass<Name>({.doc, .opt_level, .required, .run}) and RegisterPass<Name>.

/// Options of a pass: fields with defaults, each stated once in Describe.
///
///   struct FuseOpsOptions : PassOptions<FuseOpsOptions> {
///     static constexpr auto _type_key = "relay.transform.FuseOpsOptions";
///     int64_t max_depth = 256;
///     static constexpr void Describe(auto& d) {
///       d(F<&FuseOpsOptions::max_depth>, "Largest number of operators in one kernel.", AtLeast(1));
///     }
///   };
///   Pass FuseOps(const FuseOpsOptions& options = {});
///
/// The Python function `FuseOps(max_depth=64)`, the text `FuseOps(max_depth=64)`, the key `relay.FuseOps.max_depth` of
/// a PassContext (for TIR passes: `{"tir.UnrollLoop": {"auto_max_step": 16}}`), the checks, the stub and the page of
/// the reference come from it. An option that the pass is made with is stronger than one of the context.
template <class D>
struct PassOptions : AttrsNode<D> {
  static constexpr const char* _doc = "Options of the pass that has this name.";
};

struct PrintIROptions : PassOptions<PrintIROptions> {
  static constexpr auto _type_key = "transform.PrintIROptions";
  String header;
  bool show_meta_data = false;
  static constexpr void Describe(auto& d) {
    d(F<&PrintIROptions::header>, "Stands in the line before the program.");
    d(F<&PrintIROptions::show_meta_data>, "Prints the data of constants too.");
  }
};
/// Prints the module and returns it.
BATON_DLL Pass PrintIR(const PrintIROptions& options = {});

/// Makes a pass from a body whose first parameter is T. Each kind of function has a specialisation.
template <class T>
struct PassCreator;
template <>
struct PassCreator<IRModule> {
  static constexpr const char* prefix = "transform.";
  static Pass Create(PackedFunc f, int opt_level, String name, Array<String> required) {
    return CreateModulePass(TypedPackedFunc<IRModule(IRModule, PassContext)>(f), opt_level, name, required);
  }
};
class PassBody {
 public:
  PassBody() = default;
  template <class Fn, class Params = typename runtime::FuncSig<Fn>::Params>
  PassBody(Fn f)  // NOLINT
      : func_(runtime::MakeTyped(std::move(f), "pass body")),
        create_(&PassCreator<std::decay_t<std::tuple_element_t<0, Params>>>::Create) {}
  Pass Create(int opt_level, String name, Array<String> required) const {
    return create_(func_, opt_level, name, required);
  }

 private:
  PackedFunc func_;
  Pass (*create_)(PackedFunc, int, String, Array<String>) = nullptr;
};
struct PassDef {
  const char* doc = "";
  int opt_level = 0;
  Array<String> required = {};
  Array<String> needs = {}, establishes = {}, keeps = {}, destroys = {};  ///< the contract; see PassInfoNode
  bool reassociates = false, changes_results = false;                     ///< see PassInfoNode
  PassBody run = {};
};
/// Sets the properties of a new pass from its definition, and the options that differ from their defaults.
BATON_DLL Pass Described(Pass pass, const PassDef& def, PassOptionsMaker maker = {},
                         const BaseAttrsNode* options = nullptr);
template <auto Fn>
consteval std::string_view FunctionName() {
  std::string_view s = __PRETTY_FUNCTION__;
  size_t end = s.find_first_of(";]", s.find("Fn = "));
  s = s.substr(0, end);
  if (size_t p = s.find('(', s.find("Fn = ") + 7); p != std::string_view::npos && s[p - 1] != ' ') s = s.substr(0, p);
  while (!s.empty() && (s.back() == ')' || s.back() == ' ')) s.remove_suffix(1);
  // A function of this namespace is registered without the namespace.
  const size_t begin = s.find("Fn = ") + 5, scope = s.rfind("::");
  return s.substr(scope == std::string_view::npos || scope < begin ? begin : scope + 2);
}

/// The type of the options that `Pass Fn(const Options&)` takes; void for `Pass Fn()`.
template <class Fn>
struct PassFunction;
template <>
struct PassFunction<Pass (*)()> {
  using Options = void;
};
template <class O>
struct PassFunction<Pass (*)(const O&)> {
  using Options = O;
};
template <auto Fn>
Pass MakePassOf([[maybe_unused]] const Attrs& options) {
  using Options = typename PassFunction<decltype(Fn)>::Options;
  if constexpr (std::is_void_v<Options>) {
    return Fn();
  } else {
    return Fn(*static_cast<const Options*>(options.get()));
  }
}

template <auto Fn>
Pass MakePass(const PassDef& def) {
  return Described(def.run.Create(def.opt_level, String(FunctionName<Fn>()), def.required), def);
}
template <auto Fn, class Options>
Pass MakePass(const Options& options, const PassDef& def) {
  return Described(def.run.Create(def.opt_level, String(FunctionName<Fn>()), def.required), def,
                   {Options::_type_key, &MakePassOf<Fn>}, &options);
}

/// A pass of the registry.
struct RegisteredPass {
  std::string prefix;                 ///< of the global function that makes it: "relay._transform."
  std::string name;                   ///< its own
  const char* options_key = nullptr;  ///< type key of its options; null where it has none
  PackedFunc make;                    ///< (options) -> Pass
  bool takes_anything = false;        ///< any arguments are accepted and ignored
};
BATON_DLL void PutPass(RegisteredPass pass);
/// Puts `Pass Fn()` or `Pass Fn(const Options&)` into the registry: as relay._transform.Fn, or as another layer's with
/// its prefix.
template <auto Fn>
struct RegisterPass {
  explicit RegisterPass(const char* prefix = "relay._transform.") {
    using Options = typename PassFunction<decltype(Fn)>::Options;
    RegisteredPass pass{.prefix = prefix, .name = std::string(FunctionName<Fn>())};
    pass.make = runtime::MakeTyped(&MakePassOf<Fn>, "pass");
    if constexpr (!std::is_void_v<Options>) {
      runtime::RegisterNode<Options>();
      pass.options_key = Options::_type_key;
    }
    PutPass(std::move(pass));
  }
};

}  // namespace baton::transform
