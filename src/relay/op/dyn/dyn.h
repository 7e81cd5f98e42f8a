// SPDX-License-Identifier: Apache-2.0
// Shared by operators with shape-like operands. Each is described by a struct:
//   struct DynTile {
//     static constexpr const char* kName = "dyn.tile";
//     using Attributes = ...;                             its attributes, or NoAttrs
//     static const Op& Static();                          the operator that has the operands as attributes
//     static bool ShapeLike(int i);                       whether operand i is one of them
//     static void Check(const Attributes&, const TypeArgs&);           what their types must be
//     static Attrs StaticAttrs(const Attributes&, const HostValues&);      the static operator's attributes
//     static Attrs SymbolicAttrs(const Attributes&, const ExtentValues&);  the same where values are extents; or none
//     static Expr Symbolic(const Call&, const Array<ExtentList>&);     or the call itself; some values may be negative
//     static Type Unknown(const Attributes&, const TypeArgs&);         the result's type while a value is not known
//   };
#pragma once

#include <baton/relay/op/dyn.h>
#include <baton/relay/op/make.h>

#include "../common.h"
#include "../gradient.h"
#include "../host_params.h"
#include "symbolic.h"

namespace baton::relay {

using ExtentValues = std::vector<ExtentArray>;
using HostValues =
    std::vector<runtime::NDArray>;  ///< of the shape-like operands, in order; those left out are not there

struct NoAttrs {};

template <class D>
decltype(auto) DynAttrs(const Attrs& attrs) {
  if constexpr (std::is_same_v<typename D::Attributes, NoAttrs>) {
    return NoAttrs{};
  } else {
    return AttrsAs<typename D::Attributes>(attrs);
  }
}

/// Checks counts: the operator's requirement `rule` is that none is negative.
inline Array<int64_t> Extents(const char* op, const char* rule, const char* name, const runtime::NDArray& value) {
  Ints v = value.ToInts();
  for (int64_t n : v) {
    if (n < 0)
      throw CompileError(std::string("[") + op + " " + rule + "] `" + name + "` is " + ShowInts(v) +
                         ", where no number may be negative");
  }
  return ToArray(v);
}
/// Operand i has rank 1 and integers (rule "R1").
inline void CheckIntegers(const TypeArgs& in, int i) {
  in.Integral(i, "R1");
  in.Rank(i, 1, "R1");
}
/// One integer: rank 0, or rank 1 and length 1 (rule "R1").
inline void CheckCount(const TypeArgs& in, int i) {
  in.Integral(i, "R1");
  if (in.ndim(i) > 1 || (in.ndim(i) == 1 && in.dim(i, 0) >= 0 && in.dim(i, 0) != 1))
    in.Fail("R1", in.Show(i) + ", where one number is wanted");
}
/// The length of operand i, which says a rank (rule "R2").
inline int64_t Length(const TypeArgs& in, int i) {
  int64_t n = in.dim(i, 0);
  if (n < 0) in.Fail("R2", in.Show(i) + ": its length is not known, and with it the rank of the result");
  if (n > 64) in.Fail("R2", in.Show(i) + ": a result has 64 dimensions at most");
  return n;
}
inline Type UnknownTensor(int64_t rank, DataType dtype) { return TensorType(MakeShape(Ints(rank, -1)), dtype); }

/// The static operator's view of the call's arguments.
class KeptReporter final : public TypeReporter {
 public:
  KeptReporter(TypeReporter& inner, std::vector<int> from) : inner_(inner), from_(std::move(from)) {}
  void Assign(const Type& dst, const Type& src) final { inner_.Assign(dst, src); }
  bool AssertEQ(const PrimExpr& a, const PrimExpr& b) final { return inner_.AssertEQ(a, b); }
  void Assume(const PrimExpr& a, const PrimExpr& b) final { inner_.Assume(a, b); }
  const runtime::NDArray* ConstantArg(int i) final { return inner_.ConstantArg(from_[i]); }

 private:
  TypeReporter& inner_;
  std::vector<int> from_;
};

template <class D>
bool DynRel(const Array<Type>& types, int num_inputs, const Attrs& attrs, TypeReporter& reporter) {
  if (!AllKnown(types, num_inputs)) return false;
  TypeArgs in(D::kName, types, num_inputs, reporter);
  const auto& a = DynAttrs<D>(attrs);
  D::Check(a, in);
  HostValues values;
  Array<Type> kept;
  std::vector<int> from;
  bool known = true;
  for (int i = 0; i < num_inputs; ++i) {
    if (!D::ShapeLike(i)) {
      kept.push_back(types[i]);
      from.push_back(i);
    } else if (const runtime::NDArray* v = in.Constant(i)) {
      values.push_back(v->Contiguous());
    } else {
      known = false;
    }
  }
  if (!known) {
    reporter.Assign(types[num_inputs], D::Unknown(a, in));
    return true;
  }
  kept.push_back(types[num_inputs]);
  KeptReporter inner(reporter, from);
  return DefOf(D::Static())->type_rel(kept, static_cast<int>(from.size()), D::StaticAttrs(a, values), inner);
}

template <class D>
Expr DynStatic(const Call& call, const Array<runtime::NDArray>& values) {
  HostValues shape_like;
  Array<Expr> kept;
  for (size_t i = 0; i < call->args.size(); ++i) {
    if (!D::ShapeLike(static_cast<int>(i))) {
      kept.push_back(call->args[i]);
    } else if (values[i].defined()) {
      shape_like.push_back(values[i].Contiguous());
    } else {
      return Expr();
    }
  }
  return MakeCall(D::Static(), kept, D::StaticAttrs(DynAttrs<D>(call->attrs), shape_like));
}

template <class D>
Expr DynSymbolic(const Call& call, const Array<Array<PrimExpr>>& values) {
  ExtentValues shape_like;
  Array<Expr> kept;
  for (size_t i = 0; i < call->args.size(); ++i) {
    if (!D::ShapeLike(static_cast<int>(i))) {
      kept.push_back(call->args[i]);
    } else if (values[i].get() != nullptr) {
      shape_like.push_back(ExtentArray(values[i]));
    } else {
      return Expr();
    }
  }
  return MakeCall(D::Static(), kept, D::SymbolicAttrs(DynAttrs<D>(call->attrs), shape_like));
}

/// The function of libbaton_host of the operator's name.
template <class D>
HostCall DynHostCall(const Attrs& attrs) {
  return {std::string("host.") + D::kName, HostParams(*Op::Find(D::kName), attrs).Dump()};
}

template <class D>
Op DefineDyn(const char* doc, std::initializer_list<OpInput> inputs, const char* output, int num_inputs = -2,
             OpGradient gradient = NoGradient(gradient::kDynamicResult)) {
  OpDef def{.name = D::kName,
            .doc = doc,
            .inputs = inputs,
            .output = output,
            .num_inputs = num_inputs,
            .type_rel = DynRel<D>,
            .host_call = DynHostCall<D>,
            .static_form = DynStatic<D>,
            .gradient = gradient,
            .pattern = OpPattern::kOpaque,
            .source = "Relay",
            .traits = {.precision = Precision::kFollow}};
  if constexpr (!std::is_same_v<typename D::Attributes, NoAttrs>) def.attrs = TypeOf<typename D::Attributes>;
  if constexpr (requires(const Call& c, const Array<ExtentList>& v) { D::Symbolic(c, v); }) {
    def.traits.symbolic_form = D::Symbolic, def.traits.negative_values = true;
  } else if constexpr (requires(const ExtentValues& v) { D::SymbolicAttrs(DynAttrs<D>(Attrs()), v); }) {
    def.traits.symbolic_form = DynSymbolic<D>;
  }
  return DefineOp(def);
}

}  // namespace baton::relay
