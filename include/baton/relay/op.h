// SPDX-License-Identifier: Apache-2.0
// One declaration per operator: DefineOp({...}) in src/relay/op/<family>/<op>.cpp is the whole operator.
#pragma once

#include <baton/host/function.h>
#include <baton/ir/target.h>
#include <baton/relay/expr.h>
#include <baton/te/tensor.h>

#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

namespace baton::tir {
class PrimFunc;
}

namespace baton::relay {

/// How an operator may be fused. The numbers are Relay's.
enum class OpPattern : int32_t {
  kElemWise = 0,         ///< out[i] = f(in[i])
  kBroadcast = 1,        ///< each output element reads one element of each input, axes in order
  kInjective = 2,        ///< each output element reads one element of each input, any index map
  kCommReduce = 3,       ///< a reduction
  kOutEWiseFusable = 4,  ///< heavy (conv, dense): elementwise operators may follow
  kTuple = 7,            ///< tuple construction
  kOpaque = 8,           ///< never fused
};
/// Whether calls on constants are evaluated at compile time.
enum class Fold : int32_t { kAlways = 0, kNever = 1 };
/// The behaviour of an operator in a program that computes in a narrow floating type. The numbers are Relay's.
enum class Precision : int32_t {
  kAlways = 0,   ///< takes narrow operands: it is faster
  kFollow = 1,   ///< narrow where its operands are narrow
  kNever = 2,    ///< leaves the range of a narrow type, or loses its digits
  kUnknown = 3,  ///< nothing is known; ToMixedPrecision reports it
  kDefault = 4,  ///< by the pattern: up to kInjective it follows, reductions never, others unknown
};
/// The effect of an operator on the elements of its operands. A kind is all kinds before it too.
enum class Values : int32_t {
  kComputes = 0,  ///< gives new numbers, which may be rounded
  kExact = 1,     ///< gives elements of operands, their magnitudes, constants or whole numbers: no error is added
  kSelects = 2,   ///< each element of the result is one of the first operand, the same for any increasing map of it
  kView = 3,      ///< numbers the elements of a dense tensor in another way: no kernel is needed
};
/// The action of ConvertLayout for an operator whose operand is there in another order of dimensions.
enum class LayoutRule : int32_t {
  kDefault = 0,     ///< by pattern and operands: kKeeps, kBroadcasts or kNone
  kNone = 1,        ///< takes its operands in the plain order
  kKeeps = 2,       ///< element by element: the result has the first operand's order
  kBroadcasts = 3,  ///< NumPy broadcasting: all operands in one order
  kAxis = 4,        ///< works along the attribute `axis` of the first operand
  kAxisParts = 5,   ///< the same with a tuple as result; its first fields have the operand's rank
  kJoins = 6,       ///< joins the fields of a tuple along `axis`
  kPads = 7,        ///< has a pair of numbers a dimension, `pad_width`
  kPermutes = 8,    ///< a permutation of dimensions, `axes`
  kReduces = 9,     ///< has `axis`, `keepdims` and `exclude`
  kNamed = 10,      ///< has the attribute `layout`
  kBlocks = 11,     ///< the same; channels may be in blocks, "NCHW16c"
};

/// The view of a type relation. `types` are the argument types, then the result type; one not known yet is
/// an IncompleteType. A relation returns false when it cannot decide yet; it assigns what follows; it throws
/// CompileError(text) when a requirement is broken ("[nn.conv2d R3] ..."); the solver adds the place.
class BATON_DLL TypeReporter {
 public:
  virtual ~TypeReporter() = default;
  virtual void Assign(const Type& dst, const Type& src) = 0;
  /// Dimensions must be equal: false if they are known to differ. Where that is open they are assumed to be equal.
  virtual bool AssertEQ(const PrimExpr& a, const PrimExpr& b) = 0;
  /// The value of argument i if it is a Constant, else null: for operands that decide a shape.
  virtual const runtime::NDArray* ConstantArg(int i) = 0;
  /// Whether nothing else decides any more what is not known: a relation may say what is most likely.
  virtual bool Guessing() { return false; }
  /// The operator that is called, where there is one: a relation that serves several asks.
  virtual ObjectRef Callee() { return ObjectRef(); }
  /// Notes that the call is right only for sizes where both are equal. Unknown extents say nothing.
  virtual void Assume(const PrimExpr& /*a*/, const PrimExpr& /*b*/) {}
};
using TypeRelationFn = bool (*)(const Array<Type>& types, int num_inputs, const Attrs& attrs, TypeReporter& reporter);

/// The attributes of a call as the operator's class: the defaults where the call has none.
[[noreturn]] BATON_DLL void ThrowAttrsMismatch(const Attrs& attrs, const char* wanted);
template <class A>
const A& AttrsAs(const Attrs& attrs) {
  if (const A* a = attrs.as<A>()) return *a;
  if (attrs.defined()) ThrowAttrsMismatch(attrs, A::_type_key);
  static const runtime::ObjectPtr<A> defaults = runtime::make_object<A>();
  return *defaults;
}

/// Computes an operator as tensor expressions. Built from any of
///   te::Tensor f(const A& attrs, const Array<te::Tensor>& in)            A: an attrs class
///   te::Tensor f(const Array<te::Tensor>& in)
///   and both with a third parameter `const Type& out_type`; or returning Array<te::Tensor> for several outputs.
class LowerFn {
 public:
  LowerFn() = default;
  LowerFn(std::nullptr_t) {}  // NOLINT
  template <class R, class A>
  LowerFn(R (*f)(const A&, const Array<te::Tensor>&))  // NOLINT
      : f_(reinterpret_cast<void*>(f)), call_([](void* f, const Attrs& a, const Array<te::Tensor>& in, const Type&) {
          return Wrap(reinterpret_cast<R (*)(const A&, const Array<te::Tensor>&)>(f)(AttrsAs<A>(a), in));
        }) {}
  template <class R, class A>
  LowerFn(R (*f)(const A&, const Array<te::Tensor>&, const Type&))  // NOLINT
      : f_(reinterpret_cast<void*>(f)), call_([](void* f, const Attrs& a, const Array<te::Tensor>& in, const Type& t) {
          return Wrap(
              reinterpret_cast<R (*)(const A&, const Array<te::Tensor>&, const Type&)>(f)(AttrsAs<A>(a), in, t));
        }) {}
  template <class R>
  LowerFn(R (*f)(const Array<te::Tensor>&))  // NOLINT
      : f_(reinterpret_cast<void*>(f)), call_([](void* f, const Attrs&, const Array<te::Tensor>& in, const Type&) {
          return Wrap(reinterpret_cast<R (*)(const Array<te::Tensor>&)>(f)(in));
        }) {}
  template <class R>
  LowerFn(R (*f)(const Array<te::Tensor>&, const Type&))  // NOLINT
      : f_(reinterpret_cast<void*>(f)), call_([](void* f, const Attrs&, const Array<te::Tensor>& in, const Type& t) {
          return Wrap(reinterpret_cast<R (*)(const Array<te::Tensor>&, const Type&)>(f)(in, t));
        }) {}
  /// A function of a program: f(attrs, inputs, type of the result) gives a tensor, or an array of them. Kept alive by
  /// the caller for as long as the process lives, as operators are.
  explicit LowerFn(const runtime::PackedFunc* f);
  explicit operator bool() const { return f_ != nullptr; }
  Array<te::Tensor> operator()(const Attrs& attrs, const Array<te::Tensor>& in, const Type& out) const {
    return call_(f_, attrs, in, out);
  }

 private:
  static Array<te::Tensor> Wrap(te::Tensor t) { return {t}; }
  static Array<te::Tensor> Wrap(Array<te::Tensor> t) { return t; }
  void* f_ = nullptr;
  Array<te::Tensor> (*call_)(void*, const Attrs&, const Array<te::Tensor>&, const Type&) = nullptr;
};

/// Says the operator in terms of others; runs before lowering. Types of the call and its arguments are known.
using DecomposeFn = Expr (*)(const Call& call, const Array<Expr>& args);
/// Adjoints of the arguments, given that of the result; a null one is zero, one of a tuple has the tuple's type. `call`
/// and its arguments have types; `call` itself stands for the result's value.
using GradientFn = Array<Expr> (*)(const Call& call, const Expr& grad);
/// How an operator is differentiated: by a rule, by a decomposition into operators that have rules, or not at all, for
/// a reason that the error gives. Open for an operator without a floating result, and for one that `OpDef.decompose`
/// says already.
struct OpGradient {
  GradientFn rule = nullptr;
  DecomposeFn decompose = nullptr;  ///< null for attributes that cannot be said so
  const char* none = nullptr;       ///< "it draws random numbers"
  constexpr OpGradient() = default;
  constexpr OpGradient(GradientFn f) : rule(f) {}        // NOLINT
  constexpr OpGradient(DecomposeFn f) : decompose(f) {}  // NOLINT
};
constexpr OpGradient NoGradient(const char* reason) {
  OpGradient g;
  g.none = reason;
  return g;
}
/// Runs the operator on host arrays when its result's shape depends on values, or loops do not express it well
/// (sorting, unique, non-max suppression). Gives its outputs, freshly allocated.
/// Its parameters are the attributes; src/host has those of the operators here.
using HostFn = host::Function;
/// How the host computes a call of an operator that stands for several: the global function (`host::Register`) and its
/// parameters, JSON. No name: it does not.
struct HostCall {
  std::string name, params;
};
using HostCallFn = HostCall (*)(const Attrs& attrs);
/// For an operator with shape-like operands (`dyn.*`): the same call with those operands' values in the attributes,
/// given the concrete arguments (null where unknown). Null if it cannot be said yet.
using StaticFormFn = Expr (*)(const Call& call, const Array<runtime::NDArray>& values);

/// The value of a call, where the types of its arguments say it; null where they do not.
using ValueOfTypesFn = runtime::NDArray (*)(const Attrs& attrs, const Array<Type>& types);
/// Floating-point operations of a call whose types are known, in float64: a formula of the extents that are open.
using FlopsFn = PrimExpr (*)(const CallNode* call);
/// Where a tensor has its channels; in blocks of them (NCHW8c) they are two dimensions, the second behind the first.
struct ChannelDims {
  int64_t at = -1;     ///< -1: nowhere
  int64_t block = -1;  ///< the dimension of a block's channels; -1: they are not in blocks
  bool operator==(const ChannelDims&) const = default;
};
/// Dimensions of a layer, call(data, weight), that per-channel factors meet.
struct ScaleAxes {
  ChannelDims channel;  ///< of the data and of the result
  ChannelDims input;    ///< of the weight, by which a channel of the data is scaled
  ChannelDims output;   ///< of the weight, by which a channel of the result is scaled
};
/// `rank`: of the result. `channel` is nowhere where factors cannot be moved.
using ScaleAxesFn = ScaleAxes (*)(const Attrs& attrs, int64_t rank, const std::vector<int64_t>& weight_shape);
/// Writes the loops of a group whose heavy operator is `anchor`, or gives null when it does not take this case.
/// Parameters of the result: the buffers of the group's parameters in order, then of its results.
using KernelGenerator = tir::PrimFunc (*)(const Function& func, const Call& anchor, const String& name,
                                          const Target& target);
/// For numbers that integers stand for: what a call becomes on the integers, and what the result stands for
/// (relay/op/qnn/integers.h).
struct IntegerSite;
struct IntegerValue;
using IntegersFn = IntegerValue (*)(const IntegerSite& site);
/// The elements of a short result by those of the operands (relay/op/elements.h): what shapes are computed from.
struct ElementsSite;
using ElementsFn = std::optional<std::vector<PrimExpr>> (*)(const ElementsSite& site);
/// The static form of an operator (as StaticFormFn) given values as extents, of which some are expressions of symbols.
/// A null list is a value that is not known.
using SymbolicFormFn = Expr (*)(const Call& call, const Array<Array<PrimExpr>>& values);
/// Why the loops of a call with types need extents as literals that it does not have, so that no code for open shapes
/// has it: "a resize against aliasing needs known factors". Null where they do not.
using NeedsExtentsFn = const char* (*)(const CallNode* call);
/// A plain computation of the operator on dense host arrays of float32, for the guard; null for cases it does not take.
using ReferenceFn = runtime::NDArray (*)(const Attrs& attrs, const std::vector<runtime::NDArray>& in);

/// Factors that come out of an elementwise operator: f(s * x) = s * f(x), f(s * x, s * y) = s * f(x, y).
enum class Scaling : int32_t {
  kNone = 0,
  kPositive = 1,  ///< s > 0
  kAny = 2,
};

/// Properties of an operator for passes and tools. A default says that nothing is special about it.
struct OpTraits {
  Precision precision = Precision::kDefault;
  Values values = Values::kComputes;
  LayoutRule layout = LayoutRule::kDefault;
  Scaling scaling = Scaling::kNone;
  const Op* approximation = nullptr;  ///< a faster operator of the same attributes, within about 1e-6
  FlopsFn flops = nullptr;            ///< null: by the pattern
  ScaleAxesFn scale_axes = nullptr;
  KernelGenerator kernel = nullptr;  ///< asked before the general schedule; writes for a processor
  IntegersFn integers = nullptr;
  ReferenceFn reference = nullptr;
  ValueOfTypesFn value_of_types = nullptr;
  NeedsExtentsFn needs_extents = nullptr;  ///< null: its loops take any extents
  ElementsFn elements = nullptr;           ///< null: nothing is known of its result's elements
  SymbolicFormFn symbolic_form = nullptr;  ///< null: it has none
  bool negative_values = false;  ///< the symbolic form takes values of which nothing says that they are not negative
  int fill = -1;                 ///< 0 or 1: what all elements are
  bool counted = false;  ///< a layer that programs name by its place among those of its kind (LayoutConfig.skip_layers)
  bool narrow_weight = false;  ///< its kernel takes a second operand in int8 or a half float where the first is float32
  bool appends = false;        ///< its result is the first operand's memory, with the second operand behind it
  bool shape_only = false;     ///< gives numbers about the shape of its operand, on the host; elements are not read
};

struct OpInput {
  const char* name;
  const char* doc;
};

struct OpDef {
  const char* name = "";
  const char* doc = "";
  std::initializer_list<OpInput> inputs = {};
  const char* output = "";
  const char* (*attrs)() = nullptr;  ///< TypeOf<MyAttrs>; null: no attributes
  int num_inputs = -2;               ///< -2: as many as `inputs` names; -1: any number
  TypeRelationFn type_rel = nullptr;
  LowerFn lower = nullptr;
  DecomposeFn decompose = nullptr;
  HostFn host = nullptr;
  HostCallFn host_call = nullptr;
  StaticFormFn static_form = nullptr;
  OpGradient gradient = {};
  OpPattern pattern = OpPattern::kOpaque;
  Fold fold = Fold::kAlways;
  bool stateful = false;
  const char* source = "";  ///< where the meaning is defined
  int support_level = 1;
  OpTraits traits = {};
};

/// Type key of an attrs class, which is registered by asking for it.
template <class A>
const char* TypeOf() {
  static const bool once = (runtime::RegisterNode<A>(), true);
  (void)once;
  return A::_type_key;
}

/// Registers; a second definition of a name is an error. The maps TOpPattern, TOpIsStateful, FTVMCompute... follow from
/// it.
BATON_DLL Op DefineOp(OpDef def);
/// The definition of an operator; null for one that has none.
BATON_DLL const OpDef* DefOf(const ObjectRef& op);
inline const OpDef* DefOf(const Op& op) { return reinterpret_cast<const OpDef*>(op->def); }
inline const OpDef* DefOf(const OpNode* op) { return reinterpret_cast<const OpDef*>(op->def); }

/// Whether a program registered the operator while it ran.
BATON_DLL bool IsProgramsOwn(const OpDef* def);

/// Answers FTVMMixedPrecisionConversionType, f(call, dtype) -> [precision, accumulation dtype, result dtype], where
/// no program has set it: the definition's precision; null where that is unknown.
BATON_DLL PackedFunc DefinedPrecision(const Op& op);
/// Elements of a tensor, or of all tensors in a tuple; an extent that is not known counts as 0.
BATON_DLL double ElementsOf(const Type& type);
/// The same in float64, as a formula of extents that are symbols.
BATON_DLL PrimExpr ElementsFormula(const Type& type);
/// Floating-point operations of a call whose types are known, likewise; 0 for a call of a function.
BATON_DLL PrimExpr FlopsFormula(const CallNode* call);
/// The same; 0 where extents are open.
BATON_DLL double FlopsOf(const CallNode* call);

// ---- Relations that many operators share.
/// Where an input is not known and the result is, which has the input's type: gives the input that type. Whether it
/// did.
BATON_DLL bool TakeFromResult(Array<Type>* types, int input, TypeReporter& reporter);
/// For two inputs that broadcast and a known result: while the solver guesses, an unknown input becomes what the result
/// is, since the other choices, extents of 1, are rarer.
BATON_DLL bool GuessBroadcast(Array<Type>* types, bool compare, TypeReporter& reporter);
/// Result as the first argument (elementwise, one input).
BATON_DLL bool IdentityRel(const Array<Type>& types, int num_inputs, const Attrs& attrs, TypeReporter& reporter);
/// NumPy broadcasting of two arguments of one dtype.
BATON_DLL bool BroadcastRel(const Array<Type>& types, int num_inputs, const Attrs& attrs, TypeReporter& reporter);
/// The same with a bool result.
BATON_DLL bool BroadcastCompRel(const Array<Type>& types, int num_inputs, const Attrs& attrs, TypeReporter& reporter);

// ---- For relations: arguments as tensor types, or null when not known yet.
inline const TensorTypeNode* AsTensor(const Type& t) { return t.as<TensorTypeNode>(); }
/// An extent of the shape that NumPy's broadcasting gives; null where the two never broadcast. One that may be 1 or
/// equal to the other, for sizes known later, is assumed to be so.
BATON_DLL PrimExpr BroadcastDim(const PrimExpr& a, const PrimExpr& b, TypeReporter& reporter);
/// The dimension's value, or -1 when it is not a literal.
BATON_DLL int64_t DimOf(const PrimExpr& dim);
/// Whether each extent is a literal, a variable, or arithmetic on these.
BATON_DLL bool HasKnownExtents(const Array<PrimExpr>& shape);
/// All dimensions as numbers; false if one is not a literal.
BATON_DLL bool StaticShape(const Array<PrimExpr>& shape, std::vector<int64_t>* out);
/// axis in [-ndim, ndim) as one in [0, ndim); throws CompileError("[op] ...") for another.
BATON_DLL int64_t NormalizeAxis(int64_t axis, int64_t ndim, const char* op_name, const char* what = "axis");

}  // namespace baton::relay
