// SPDX-License-Identifier: Apache-2.0
// Shared by the relations and lowerings of operators.
#pragma once

#include <baton/relay/op.h>
#include <baton/relay/op/extent.h>
#include <baton/tir/op.h>

#include <string>
#include <vector>

namespace baton::relay {

using te::Indices;
using te::Tensor;
using Tensors = Array<te::Tensor>;
using Shape = Array<PrimExpr>;
using Ints = std::vector<int64_t>;

/// An operator's name as a template argument.
template <size_t N>
struct OpName {
  char text[N];
  consteval OpName(const char (&s)[N]) {  // NOLINT
    for (size_t i = 0; i < N; ++i) text[i] = s[i];
  }
};

/// `Tensor[(1, ?, n), float32]`, as in the text form.
std::string ShowType(const Type& type);
std::string ShowShape(const Shape& shape);
std::string ShowInts(const Ints& values);
/// A constant of a dtype, or of the dtype of another expression.
inline PrimExpr Lit(double v, DataType t) { return tir::make_const(t, v); }
inline PrimExpr Lit(double v, const PrimExpr& like) { return tir::make_const(like.dtype(), v); }
inline PrimExpr Times(const PrimExpr& e, int64_t f) { return f == 1 ? e : e * PrimExpr(f); }
inline std::string Str(int64_t v) { return std::to_string(v); }

/// The arguments of a call whose types are all known.
class TypeArgs {
 public:
  TypeArgs(const char* op, const Array<Type>& types, int num_inputs, TypeReporter& reporter)
      : op_(op), types_(types), n_(num_inputs), reporter_(reporter) {}
  const char* op() const { return op_; }
  int size() const { return n_; }
  const Type& type(int i) const { return types_[i]; }
  /// Argument i, which has to be a tensor.
  const TensorTypeNode* operator[](int i) const;
  /// The tensors of argument i, which has to be a tuple.
  std::vector<const TensorTypeNode*> Fields(int i) const;
  const Shape& shape(int i) const { return (*this)[i]->shape; }
  DataType dtype(int i) const { return (*this)[i]->dtype; }
  int64_t ndim(int i) const { return static_cast<int64_t>((*this)[i]->shape.size()); }
  /// Extent d of argument i, -1 if it is not known.
  int64_t dim(int i, int64_t d) const { return DimOf((*this)[i]->shape[d]); }
  int64_t Axis(int64_t axis, int64_t ndim, const char* what = "axis") const {
    return NormalizeAxis(axis, ndim, op_, what);
  }
  const runtime::NDArray* Constant(int i) const { return reporter_.ConstantArg(i); }
  bool Same(const PrimExpr& a, const PrimExpr& b) const { return reporter_.AssertEQ(a, b); }
  /// The call is right only for sizes where both are equal.
  void Assume(const PrimExpr& a, const PrimExpr& b) const { reporter_.Assume(a, b); }
  /// The same of an extent that must be at least so large; false where it never is.
  bool AtLeast(const PrimExpr& extent, int64_t least) const;
  TypeReporter& reporter() const { return reporter_; }
  /// Name of argument i as the operator declares it.
  std::string Name(int i) const;
  /// "`data`: Tensor[(2, 3), float32]"
  std::string Show(int i) const { return "`" + Name(i) + "`: " + ShowType(types_[i]); }
  /// The operator's requirement `rule` ("R1") does not hold.
  [[noreturn]] void Fail(const char* rule, const std::string& text) const;
  // Common requirements of argument i.
  void Floating(int i, const char* rule) const;
  void Number(int i, const char* rule) const;
  void Integral(int i, const char* rule) const;
  void Bool(int i, const char* rule) const;
  void Rank(int i, int64_t ndim, const char* rule) const;
  void MinRank(int i, int64_t ndim, const char* rule) const;
  void SameDtype(int i, int j, const char* rule) const;

 private:
  const char* op_;
  const Array<Type>& types_;
  int n_;
  TypeReporter& reporter_;
};

/// False where an argument's type is not known yet.
bool AllKnown(const Array<Type>& types, int num_inputs);

template <class Fn>
struct TypeFn;
template <class R, class A>
struct TypeFn<R (*)(const A&, const TypeArgs&)> {
  static Type Call(R (*f)(const A&, const TypeArgs&), const Attrs& attrs, const TypeArgs& in) {
    return f(AttrsAs<A>(attrs), in);
  }
};
template <class R>
struct TypeFn<R (*)(const TypeArgs&)> {
  static Type Call(R (*f)(const TypeArgs&), const Attrs&, const TypeArgs& in) { return f(in); }
};
template <class Fn>
struct GuessFn;
template <class A>
struct GuessFn<void (*)(const A&, Array<Type>*)> {
  static void Call(void (*f)(const A&, Array<Type>*), const Attrs& attrs, Array<Type>* types) {
    f(AttrsAs<A>(attrs), types);
  }
};
/// Checks that a result holds numbers or bool: an attribute may ask for another dtype.
void CheckResult(const TypeArgs& in, const Type& type);
/// A relation from a function that gives the result's type once the arguments' are known: TensorType f(const A& attrs,
/// const TypeArgs& in), or without attributes. A null result means that it is not known yet.
template <OpName kName, auto kFn>
bool Rel(const Array<Type>& types, int num_inputs, const Attrs& attrs, TypeReporter& reporter) {
  if (!AllKnown(types, num_inputs)) return false;
  TypeArgs in(kName.text, types, num_inputs, reporter);
  Type out = TypeFn<decltype(kFn)>::Call(kFn, attrs, in);
  if (!out.defined()) return false;
  CheckResult(in, out);
  reporter.Assign(types[num_inputs], out);
  return true;
}

/// As Rel, where some argument types follow from others and the attributes: guess(attrs, &types) fills those in that
/// are not known.
template <OpName kName, auto kGuess, auto kFn>
bool RelGuess(const Array<Type>& types, int num_inputs, const Attrs& attrs, TypeReporter& reporter) {
  if (AllKnown(types, num_inputs)) return Rel<kName, kFn>(types, num_inputs, attrs, reporter);
  Array<Type> guessed = types;
  GuessFn<decltype(kGuess)>::Call(kGuess, attrs, &guessed);
  for (int i = 0; i < num_inputs; ++i) {
    if (!guessed[i].same_as(types[i])) reporter.Assign(types[i], guessed[i]);
  }
  return Rel<kName, kFn>(guessed, num_inputs, attrs, reporter);
}
/// Sets type i if it is not known.
inline void Guess(Array<Type>* types, int i, const Shape& shape, DataType dtype) {
  if (i + 1 < static_cast<int>(types->size()) && !AsTensor((*types)[i])) types->Set(i, TensorType(shape, dtype));
}

// ---- Dimensions.
inline PrimExpr UnknownDim() { return tir::AnyDim(); }
/// A literal, or unknown if negative.
inline PrimExpr MakeDim(int64_t v) { return v < 0 ? UnknownDim() : PrimExpr(v); }
/// An extent as types have it: a literal, a variable, or arithmetic on these that is short; unknown if a part is.
PrimExpr TypeDim(const PrimExpr& extent);
inline Shape MakeShape(const Ints& v) {
  Shape s;
  s.reserve(v.size());
  for (int64_t d : v) s.push_back(MakeDim(d));
  return s;
}
/// Extents of an attribute. A number that is negative is unknown.
Shape MakeShape(const ExtentArray& v);
/// Extents, -1 where not known.
Ints Dims(const Shape& shape);
/// The shape that NumPy's broadcasting gives; fails with `rule`.
Shape BroadcastShapes(const TypeArgs& in, const Shape& a, const Shape& b, const char* rule);
/// Product, as TypeDim.
PrimExpr ProductDim(const Shape& dims);
/// Product; -1 if an extent is not known (and none is 0). Throws for one beyond int64.
int64_t ProductOf(const Ints& dims);
inline Ints ToInts(const Array<int64_t>& a) { return Ints(a.begin(), a.end()); }
/// "[n, 64]"
std::string ShowExtents(const ExtentArray& values);
inline Array<int64_t> ToArray(const Ints& v) { return Array<int64_t>(v.begin(), v.end()); }
/// The literal in an attribute that may be None.
inline bool HasValue(const PrimExpr& e) { return e.defined(); }
inline int64_t ValueOf(const PrimExpr& e) { return DimOf(e); }

// ---- Traits that many operators share.
/// Traits of operators that leave the range of a narrow type, or lose its digits.
inline constexpr OpTraits kNeverNarrow{.precision = Precision::kNever};
inline constexpr OpTraits kExactValues{.values = Values::kExact};
/// The shape of the first argument, where all its extents are literals.
runtime::NDArray ShapeOfTypes(const Attrs& attrs, const Array<Type>& types);

// ---- For lowering.
/// Arithmetic of narrow floats is done in float32 and rounded once.
inline DataType Wide(DataType t) { return t.is_floating() && t.bits() < 32 ? DataType::Float(32) : t; }
inline PrimExpr Widen(const PrimExpr& e) { return cast(Wide(e.dtype()), e); }
/// Axes in [0, ndim), sorted, without repetition.
Ints NormalizeAxes(const Array<int64_t>& axes, int64_t ndim, const char* op);

/// The attributes of a call.
template <class A>
const A& AttrsOf(const Call& call) {
  return AttrsAs<A>(call->attrs);
}

}  // namespace baton::relay
