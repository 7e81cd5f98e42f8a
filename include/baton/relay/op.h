// SPDX-License-Identifier: Apache-2.0
// One declaration per operator: DefineOp({...}) in src/relay/op/<family>/<op>.cpp is the whole operator.
#pragma once

#include <baton/relay/expr.h>
#include <baton/te/tensor.h>

#include <initializer_list>
#include <vector>

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

/// What a type relation knows and may say. `types` are the argument types, then the result type; one not known yet is
/// an IncompleteType. A relation returns false when it cannot decide yet; it assigns what follows; it throws
/// CompileError(text) when a requirement is broken ("[nn.conv2d R3] ..."); the solver adds the place.
class BATON_DLL TypeReporter {
 public:
  virtual ~TypeReporter() = default;
  virtual void Assign(const Type& dst, const Type& src) = 0;
  /// Dimensions must be equal: false if they are known to differ.
  virtual bool AssertEQ(const PrimExpr& a, const PrimExpr& b) = 0;
  /// The value of argument i if it is a Constant, else null: for operands that decide a shape.
  virtual const runtime::NDArray* ConstantArg(int i) = 0;
  /// The operator that is called, where there is one: a relation that serves several asks.
  virtual ObjectRef Callee() { return ObjectRef(); }
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
using HostFn = Array<runtime::NDArray> (*)(const Attrs& attrs, const Array<runtime::NDArray>& in);
/// For an operator with shape-like operands (`dyn.*`): the same call with those operands' values in the attributes,
/// given the concrete arguments (null where unknown). Null if it cannot be said yet.
using StaticFormFn = Expr (*)(const Call& call, const Array<runtime::NDArray>& values);

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
  StaticFormFn static_form = nullptr;
  OpGradient gradient = {};
  OpPattern pattern = OpPattern::kOpaque;
  Fold fold = Fold::kAlways;
  bool stateful = false;
  const char* source = "";  ///< where the meaning is defined
  int support_level = 1;
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

// ---- Relations that many operators share.
/// Result as the first argument (elementwise, one input).
BATON_DLL bool IdentityRel(const Array<Type>& types, int num_inputs, const Attrs& attrs, TypeReporter& reporter);
/// NumPy broadcasting of two arguments of one dtype.
BATON_DLL bool BroadcastRel(const Array<Type>& types, int num_inputs, const Attrs& attrs, TypeReporter& reporter);
/// The same with a bool result.
BATON_DLL bool BroadcastCompRel(const Array<Type>& types, int num_inputs, const Attrs& attrs, TypeReporter& reporter);

// ---- For relations: arguments as tensor types, or null when not known yet.
inline const TensorTypeNode* AsTensor(const Type& t) { return t.as<TensorTypeNode>(); }
/// The dimension's value, or -1 when it is not a literal.
BATON_DLL int64_t DimOf(const PrimExpr& dim);
/// All dimensions as numbers; false if one is not a literal.
BATON_DLL bool StaticShape(const Array<PrimExpr>& shape, std::vector<int64_t>* out);
/// axis in [-ndim, ndim) as one in [0, ndim); throws CompileError("[op] ...") for another.
BATON_DLL int64_t NormalizeAxis(int64_t axis, int64_t ndim, const char* op_name, const char* what = "axis");

}  // namespace baton::relay
