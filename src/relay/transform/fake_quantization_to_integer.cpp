// SPDX-License-Identifier: Apache-2.0
// Models trained for quantization compute real numbers between qnn.dequantize and qnn.quantize. What stands between
// them is computed in integers here: each operator has a rule that gives, for integers in, integers out and what they
// stand for; operators of programs give theirs by the attribute FTVMFakeQuantizationToInteger.
#include <baton/ir/structural.h>
#include <baton/relay/affine_type.h>
#include <baton/relay/functor.h>
#include <baton/relay/op.h>
#include <baton/relay/op/make.h>
#include <baton/relay/op/qnn.h>
#include <baton/relay/op/transform.h>
#include <baton/relay/transform.h>
#include <relay/expr/children.h>

#include <cmath>
#include <limits>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace baton::relay::transform {
namespace {

using runtime::NDArray;
constexpr DataType kI32 = DataType::Int(32), kF32 = DataType::Float(32);

/// What an expression of a region became.
struct QValue {
  enum Kind { kUnknown, kFailed, kPlain, kAffine } kind = kUnknown;
  Expr expr;        ///< integers; of kPlain the expression itself
  AffineType type;  ///< of kAffine
  const TensorAffineTypeNode* tensor() const { return type.as<TensorAffineTypeNode>(); }
};

const NDArray* ConstantData(const Expr& e) {
  const auto* c = e.as<ConstantNode>();
  return c ? &c->data : nullptr;
}
int64_t CountOf(const NDArray& a) {
  int64_t n = 1;
  for (int64_t d : a.Shape()) n *= d;
  return n;
}
/// Whether a scale or zero point is one number; one that is not constant counts by its type.
bool IsScalar(const Expr& e) {
  if (const NDArray* a = ConstantData(e)) return CountOf(*a) == 1;
  const auto* t = e->checked_type_.as<TensorTypeNode>();
  return t && t->shape.empty();
}
bool ScalarAffine(const TensorAffineTypeNode* t) { return t && IsScalar(t->scale) && IsScalar(t->zero_point); }
bool IsZero(const Expr& e) {
  const NDArray* a = ConstantData(e);
  if (!a) return false;
  for (int64_t i = 0; i < CountOf(*a); ++i) {
    if (a->GetDouble(i) != 0) return false;
  }
  return true;
}
bool Same(const Expr& a, const Expr& b) { return a.same_as(b) || StructuralEqual(a, b); }
bool SameAffine(const TensorAffineTypeNode* a, const TensorAffineTypeNode* b) {
  return a->dtype == b->dtype && Same(a->scale, b->scale) && Same(a->zero_point, b->zero_point);
}
/// The product of two scales, evaluated where it can be.
Expr ScaleProduct(const Expr& a, const Expr& b) {
  const NDArray *x = ConstantData(a), *y = ConstantData(b);
  if (!x || !y || (CountOf(*x) != 1 && CountOf(*y) != 1)) return Multiply(a, b);
  const NDArray& big = CountOf(*x) >= CountOf(*y) && !x->Shape().empty() ? *x : *y;
  NDArray out = NDArray::Empty(big.Shape(), kF32);
  for (int64_t i = 0, n = CountOf(big); i < n; ++i) {
    const float p = static_cast<float>(x->GetDouble(CountOf(*x) == 1 ? 0 : i)),
                q = static_cast<float>(y->GetDouble(CountOf(*y) == 1 ? 0 : i));
    out.SetDouble(i, p * q);
  }
  return Constant(ConstantNode{{}, out});
}
int64_t TensorRank(const Expr& typed) {
  const auto* t = typed->checked_type_.as<TensorTypeNode>();
  return t ? static_cast<int64_t>(t->shape.size()) : -1;
}
Expr CastTo(const Expr& e, DataType from, DataType to) { return from == to ? e : Cast(e, to); }

/// Integers of one affine type as ones of another, whose scale and zero point are scalars.
Expr Requantized(const Expr& e, const TensorAffineTypeNode* from, const TensorAffineTypeNode* to) {
  if (SameAffine(from, to)) return e;
  return MakeCall<RequantizeAttrs>(op::qnn::requantize, {e, from->scale, from->zero_point, to->scale, to->zero_point},
                                   [&](RequantizeAttrs* a) { a->axis = from->axis, a->out_dtype = to->dtype; });
}

/// A call with what its arguments became; `out`: what the region ends in.
struct Site {
  const CallNode* pre;
  const std::vector<QValue>& args;
  const TensorAffineTypeNode* out;
  DataType OutDtype() const { return out->dtype; }
  const TensorAffineTypeNode* at(size_t i) const { return args[i].kind == QValue::kAffine ? args[i].tensor() : nullptr; }
};
QValue Failed() { return {QValue::kFailed, {}, {}}; }
QValue Affine(Expr e, const Expr& scale, const Expr& zero, DataType dtype, int64_t axis = -1) {
  return {QValue::kAffine, std::move(e), TensorAffineType(scale, zero, dtype, axis)};
}
QValue Affine(Expr e, const AffineType& type) { return {QValue::kAffine, std::move(e), type}; }
Expr NoZero() { return MakeScalar(0, kI32); }

/// Moves values and never computes with them: integers stand for the same.
QValue Moves(const Site& s) {
  if (!ScalarAffine(s.at(0)) || s.args.size() != 1) return Failed();
  return Affine(MakeCall(Downcast<Op>(s.pre->op), {s.args[0].expr}, s.pre->attrs), s.args[0].type);
}
/// Means: of integers less their zero point, so that padding stands for 0, in 32 bits.
QValue Averages(const Site& s) {
  const auto* t = s.at(0);
  if (!ScalarAffine(t)) return Failed();
  Expr wide = CastTo(s.args[0].expr, t->dtype, kI32);
  if (!IsZero(t->zero_point)) wide = Subtract(wide, t->zero_point);
  return Affine(MakeCall(Downcast<Op>(s.pre->op), {wide}, s.pre->attrs), t->scale, NoZero(), kI32);
}
QValue Relu(const Site& s) {
  const auto* t = s.at(0);
  if (!ScalarAffine(t) && !(t && IsZero(t->zero_point))) return Failed();
  if (IsZero(t->zero_point)) return Affine(MakeCall(op::relu, {s.args[0].expr}), s.args[0].type);
  return Affine(Maximum(s.args[0].expr, CastTo(t->zero_point, kI32, t->dtype)), s.args[0].type);
}
QValue Clip(const Site& s) {
  const auto* t = s.at(0);
  const NDArray *scale = t ? ConstantData(t->scale) : nullptr, *zero = t ? ConstantData(t->zero_point) : nullptr;
  if (!scale || !zero || !ScalarAffine(t)) return Failed();
  const auto& a = AttrsAs<ClipAttrs>(s.pre->attrs);
  auto end = [&](double v) { return std::nearbyint(v / scale->GetDouble(0)) + zero->GetDouble(0); };
  return Affine(MakeCall<ClipAttrs>(op::clip, {s.args[0].expr},
                                    [&](ClipAttrs* c) { c->a_min = end(a.a_min), c->a_max = end(a.a_max); }),
                s.args[0].type);
}
QValue Pad(const Site& s) {
  const auto* t = s.at(0);
  if (!ScalarAffine(t) || s.args.size() != 2 || s.args[1].kind != QValue::kPlain) return Failed();
  Expr fill = MakeCall<QuantizeAttrs>(op::qnn::quantize, {s.args[1].expr, t->scale, t->zero_point},
                                      [&](QuantizeAttrs* a) { a->out_dtype = t->dtype; });
  if (IsZero(s.args[1].expr)) fill = CastTo(t->zero_point, kI32, t->dtype);
  return Affine(MakeCall(op::pad, {s.args[0].expr, fill}, s.pre->attrs), s.args[0].type);
}

template <class A>
Attrs WithInt32(const Attrs& attrs) {
  auto n = runtime::make_object<A>(AttrsAs<A>(attrs));
  n->out_dtype = kI32;
  return Attrs(runtime::ObjectPtr<runtime::Object>(n));
}
int64_t AxisOf(const String& layout, char letter) {
  const size_t at = layout.str().find(letter);
  return at == std::string::npos ? -1 : static_cast<int64_t>(at);
}
/// Products: of the integers less their zero points, in 32 bits. `weight_axis`: of the weight's vectors, -1 for none;
/// `out_axis`: where it is in the result.
QValue Product(const Site& s, const Op& quantized, const Attrs& attrs, int64_t weight_axis, int64_t out_axis) {
  const auto *x = s.at(0), *w = s.at(1);
  if (!ScalarAffine(x) || !w) return Failed();
  if (!ScalarAffine(w) &&
      (weight_axis < 0 || (w->axis != weight_axis && w->axis + TensorRank(s.pre->args[1]) != weight_axis)))
    return Failed();
  Expr call =
      MakeCall(quantized, {s.args[0].expr, s.args[1].expr, x->zero_point, w->zero_point, x->scale, w->scale}, attrs);
  return Affine(call, ScaleProduct(x->scale, w->scale), NoZero(), kI32, out_axis);
}
template <class A>
QValue Conv(const Site& s) {
  const auto& a = AttrsAs<A>(s.pre->attrs);
  const String& out = a.out_layout.empty() ? a.data_layout : a.out_layout;
  if (a.kernel_layout.str().find_first_of("0123456789") != std::string::npos) return Failed();
  return Product(s, std::is_same_v<A, Conv2DAttrs> ? op::qnn::conv2d : op::qnn::conv2d_transpose,
                 WithInt32<A>(s.pre->attrs), AxisOf(a.kernel_layout, 'O'), AxisOf(out, 'C'));
}
QValue Dense(const Site& s) {
  return Product(s, op::qnn::dense, WithInt32<DenseAttrs>(s.pre->attrs), 0, TensorRank(GetRef<Expr>(s.pre)) - 1);
}
QValue BatchMatmul(const Site& s) {
  return Product(s, op::qnn::batch_matmul, WithInt32<BatchMatmulAttrs>(s.pre->attrs), -1, -1);
}
/// The bias at the scale of the data, both in 32 bits.
QValue BiasAdd(const Site& s) {
  const auto* x = s.at(0);
  if (!x) return Failed();
  const int64_t rank = TensorRank(s.pre->args[0]), axis = AttrsAs<BiasAddAttrs>(s.pre->attrs).axis;
  auto normal = [&](int64_t a) { return a < 0 ? a + rank : a; };
  if (!ScalarAffine(x) && normal(x->axis) != normal(axis)) return Failed();
  Expr bias;
  if (s.args[1].kind == QValue::kPlain) {
    bias = MakeCall<QuantizeAttrs>(op::qnn::quantize, {s.args[1].expr, x->scale, NoZero()},
                                   [](QuantizeAttrs* a) { a->axis = 0, a->out_dtype = kI32; });
  } else {
    const auto* b = s.at(1);
    if (!b) return Failed();
    const bool same = Same(b->scale, x->scale) && IsZero(b->zero_point);
    if (!same && !IsScalar(x->scale)) return Failed();
    bias = CastTo(s.args[1].expr, b->dtype, kI32);
    if (!same) bias = Requantized(s.args[1].expr, b, TensorAffineType(x->scale, NoZero(), kI32, -1).get());
  }
  Expr sum = MakeCall(op::bias_add, {CastTo(s.args[0].expr, x->dtype, kI32), bias}, s.pre->attrs);
  return Affine(sum, x->scale, x->zero_point, kI32, x->axis);
}

/// A constant in integers of 8 bits or as wide as `dtype`, of the least step that holds all its elements.
QValue QuantizedConstant(const Expr& e, DataType dtype) {
  const NDArray* a = ConstantData(e);
  if (!a || !a->dtype().is_floating() || dtype.bits() > 16) return Failed();
  double low = 0, high = 0;
  for (int64_t i = 0; i < CountOf(*a); ++i) {
    const double v = a->GetDouble(i);
    if (!std::isfinite(v)) return Failed();
    low = std::min(low, v), high = std::max(high, v);
  }
  const double first = dtype.is_uint() ? 0 : -std::ldexp(1.0, dtype.bits() - 1),
               steps = std::ldexp(1.0, dtype.bits()) - 1;
  const float scale = high > low ? static_cast<float>((high - low) / steps) : 1.0F;
  const double zero =
      std::min(first + steps, std::max(first, std::nearbyint(first - low / static_cast<double>(scale))));
  NDArray out = NDArray::Empty(a->Shape(), dtype);
  for (int64_t i = 0; i < CountOf(*a); ++i) {
    const double q = std::nearbyint(a->GetDouble(i) / static_cast<double>(scale)) + zero;
    out.SetDouble(i, std::min(first + steps, std::max(first, q)));
  }
  return Affine(Constant(ConstantNode{{}, out}), MakeScalar(static_cast<double>(scale), kF32), MakeScalar(zero, kI32),
                dtype);
}
/// Both operands as integers of the dtype that the region ends in; a constant gets a scale of its own.
bool Operands(const Site& s, QValue* lhs, QValue* rhs) {
  QValue both[2] = {s.args[0], s.args[1]};
  for (QValue& v : both) {
    if (v.kind == QValue::kPlain) v = QuantizedConstant(v.expr, s.OutDtype());
    if (v.kind != QValue::kAffine || !ScalarAffine(v.tensor())) return false;
    if (v.tensor()->dtype != s.OutDtype()) {
      TensorAffineType to(s.out->scale, s.out->zero_point, s.OutDtype(), -1);
      v = Affine(Requantized(v.expr, v.tensor(), to.get()), to);
    }
  }
  *lhs = both[0], *rhs = both[1];
  return true;
}
/// Of factors of two dtypes, in 32 bits: nothing is rounded.
QValue Multiplied(const Site& s) {
  Expr factors[2];
  for (size_t i = 0; i < 2; ++i) {
    const auto* t = s.at(i);
    if (!ScalarAffine(t) || t->dtype.bits() > 16) return Failed();
    factors[i] = CastTo(s.args[i].expr, t->dtype, kI32);
    if (!IsZero(t->zero_point)) factors[i] = Subtract(factors[i], t->zero_point);
  }
  return Affine(Multiply(factors[0], factors[1]), ScaleProduct(s.at(0)->scale, s.at(1)->scale), NoZero(), kI32);
}
template <const Op* kQuantized>
QValue Arithmetic(const Site& s) {
  QValue lhs, rhs;
  if (kQuantized == &op::qnn::mul && s.at(0) && s.at(1) && s.at(0)->dtype != s.at(1)->dtype) return Multiplied(s);
  if (!Operands(s, &lhs, &rhs)) return Failed();
  const auto *x = lhs.tensor(), *y = rhs.tensor();
  Expr e =
      MakeCall(*kQuantized,
               {lhs.expr, rhs.expr, x->scale, x->zero_point, y->scale, y->zero_point, s.out->scale, s.out->zero_point},
               MakeAttrs<BroadcastAttrs>());
  return Affine(e, s.out->scale, s.out->zero_point, s.OutDtype());
}
/// Which is larger is seen at one scale.
QValue Extreme(const Site& s) {
  QValue lhs, rhs;
  if (!Operands(s, &lhs, &rhs)) return Failed();
  TensorAffineType to(s.out->scale, s.out->zero_point, s.OutDtype(), -1);
  return Affine(MakeCall(Downcast<Op>(s.pre->op), {Requantized(lhs.expr, lhs.tensor(), to.get()),
                                                   Requantized(rhs.expr, rhs.tensor(), to.get())}),
                to);
}
template <const Op* kQuantized>
QValue Function1(const Site& s) {
  const auto* t = s.at(0);
  if (!ScalarAffine(t)) return Failed();
  Expr data = s.args[0].expr, scale = t->scale, zero = t->zero_point;
  if (t->dtype != s.OutDtype()) return Failed();  // the result has the dtype of the argument
  return Affine(MakeCall(*kQuantized, {data, scale, zero, s.out->scale, s.out->zero_point}), s.out->scale,
                s.out->zero_point, t->dtype);
}
QValue Concatenate(const Site& s) {
  const auto* tuple = s.args[0].kind == QValue::kAffine ? s.args[0].type.as<TupleAffineTypeNode>() : nullptr;
  if (!tuple) return Failed();
  TensorAffineType to(s.out->scale, s.out->zero_point, s.OutDtype(), -1);
  const auto* fields = s.args[0].expr.as<TupleNode>();
  Array<Expr> data, scales, zeros;
  for (size_t i = 0; i < tuple->types.size(); ++i) {
    const auto* t = tuple->types[static_cast<int64_t>(i)].get();
    if (!ScalarAffine(t)) return Failed();
    Expr e = fields ? Expr(fields->fields[i]) : Expr(TupleGetItem(s.args[0].expr, static_cast<int64_t>(i)));
    if (t->dtype != s.OutDtype()) e = Requantized(e, t, to.get()), t = to.get();
    data.push_back(e), scales.push_back(t->scale), zeros.push_back(t->zero_point);
  }
  return Affine(MakeCall(op::qnn::concatenate,
                         {Tuple(data), Tuple(scales), Tuple(zeros), s.out->scale, s.out->zero_point}, s.pre->attrs),
                to);
}
/// A tuple of parts that stand for numbers as the whole does.
QValue Split(const Site& s) {
  const auto* t = s.at(0);
  const auto* type = s.pre->checked_type_.as<TupleTypeNode>();
  if (!ScalarAffine(t) || !type) return Failed();
  Array<TensorAffineType> types;
  for (size_t i = 0; i < type->fields.size(); ++i) types.push_back(Downcast<TensorAffineType>(s.args[0].type));
  return Affine(MakeCall(op::split, {s.args[0].expr}, s.pre->attrs), TupleAffineType(types));
}

using QuantizeRule = QValue (*)(const Site&);
const std::unordered_map<std::string_view, QuantizeRule>& Rules() {
  static const auto* rules = new std::unordered_map<std::string_view, QuantizeRule>{
      {"reshape", Moves},
      {"squeeze", Moves},
      {"strided_slice", Moves},
      {"transpose", Moves},
      {"expand_dims", Moves},
      {"broadcast_to", Moves},
      {"tile", Moves},
      {"repeat", Moves},
      {"reverse", Moves},
      {"max", Moves},
      {"min", Moves},
      {"layout_transform", Moves},
      {"nn.max_pool1d", Moves},
      {"nn.max_pool2d", Moves},
      {"nn.max_pool3d", Moves},
      {"nn.global_max_pool2d", Moves},
      {"nn.batch_flatten", Moves},
      {"nn.depth_to_space", Moves},
      {"nn.space_to_depth", Moves},
      {"nn.avg_pool2d", Averages},
      {"nn.global_avg_pool2d", Averages},
      {"nn.adaptive_avg_pool1d", Averages},
      {"nn.adaptive_avg_pool2d", Averages},
      {"mean", Averages},
      {"nn.relu", Relu},
      {"clip", Clip},
      {"nn.pad", Pad},
      {"nn.conv2d", Conv<Conv2DAttrs>},
      {"nn.conv2d_transpose", Conv<Conv2DTransposeAttrs>},
      {"nn.dense", Dense},
      {"nn.batch_matmul", BatchMatmul},
      {"nn.bias_add", BiasAdd},
      {"add", Arithmetic<&op::qnn::add>},
      {"subtract", Arithmetic<&op::qnn::subtract>},
      {"multiply", Arithmetic<&op::qnn::mul>},
      {"maximum", Extreme},
      {"minimum", Extreme},
      {"tanh", Function1<&op::qnn::tanh>},
      {"exp", Function1<&op::qnn::exp>},
      {"sqrt", Function1<&op::qnn::sqrt>},
      {"rsqrt", Function1<&op::qnn::rsqrt>},
      {"erf", Function1<&op::qnn::erf>},
      {"sigmoid", Function1<&op::qnn::sigmoid>},
      {"concatenate", Concatenate},
      {"split", Split},
  };
  return *rules;
}

class Integers : public MixedModeMutator {
 public:
  explicit Integers(bool hard_fail) : hard_fail_(hard_fail) {}

 private:
  using MixedModeMutator::VisitExpr_;
  Expr VisitExpr_(const FunctionNode* f) final {
    return f->HasNonzeroAttr(attr::kPrimitive) ? GetRef<Expr>(f) : MixedModeMutator::VisitExpr_(f);
  }
  Expr Rewrite_(const CallNode* pre, const Expr& post) final {
    const auto* call = post.as<CallNode>();
    if (!call || call->op != op::qnn::quantize) return post;
    if (!IsScalar(pre->args[1]) || !IsScalar(pre->args[2])) return post;
    TensorAffineType out(call->args[1], call->args[2], AttrsAs<QuantizeAttrs>(call->attrs).out_dtype, -1);
    const QValue v = Region(pre->args[0], out.get());
    if (v.kind != QValue::kAffine || !v.tensor()) return post;
    Expr e = Requantized(v.expr, v.tensor(), out.get());
    if (!e->span.defined()) e->span = post->span;
    return e;
  }

  /// What the expressions of a region became, operands first. An expression of two regions is computed for the first.
  QValue Region(const Expr& root, const TensorAffineTypeNode* out) {
    std::vector<Expr> work{root};
    while (!work.empty()) {
      const Expr e = work.back();
      QValue& v = values_[e.get()];
      if (v.kind != QValue::kUnknown) {
        work.pop_back();
        continue;
      }
      bool ready = true, failed = false;
      auto need = [&](const Expr& child) {
        auto it = values_.find(child.get());
        if (it == values_.end() || it->second.kind == QValue::kUnknown) {
          work.push_back(child);
          ready = false;
        } else {
          failed |= it->second.kind == QValue::kFailed;
        }
      };
      const auto* call = e.as<CallNode>();
      if (call && HasRule(call)) {
        for (const Expr& a : call->args) need(a);
      } else if (const auto* t = e.as<TupleNode>()) {
        for (const Expr& f : t->fields) need(f);
      } else if (const auto* g = e.as<TupleGetItemNode>()) {
        need(g->tuple);
      }
      if (failed) {
        values_[e.get()] = Failed();
        continue;  // what was asked for meanwhile is not needed, and does no harm
      }
      if (!ready) continue;
      work.pop_back();
      QValue made = Made(e, out);
      values_[e.get()] = std::move(made);
      kept_.push_back(e);
    }
    return values_[root.get()];
  }

  bool HasRule(const CallNode* call) const {
    const auto* op = call->op.as<OpNode>();
    if (!op) return false;
    return Rules().count(op->name.view()) || !GetRef<Op>(op).GetAttrValue(kAttr).is_null();
  }

  QValue Made(const Expr& e, const TensorAffineTypeNode* out) {
    if (e.as<ConstantNode>()) return {QValue::kPlain, e, {}};
    if (const auto* t = e.as<TupleNode>()) {
      Array<Expr> fields;
      Array<TensorAffineType> types;
      for (const Expr& f : t->fields) {
        const QValue& v = values_[f.get()];
        if (v.kind != QValue::kAffine || !v.tensor()) return Failed();
        fields.push_back(v.expr);
        types.push_back(Downcast<TensorAffineType>(v.type));
      }
      return Affine(Tuple(fields), TupleAffineType(types));
    }
    if (const auto* g = e.as<TupleGetItemNode>()) {
      const QValue& v = values_[g->tuple.get()];
      const auto* types = v.kind == QValue::kAffine ? v.type.as<TupleAffineTypeNode>() : nullptr;
      if (!types) return Failed();
      return Affine(TupleGetItem(v.expr, static_cast<int64_t>(g->index)), types->types[g->index]);
    }
    const auto* call = e.as<CallNode>();
    if (!call) return Failed();
    if (call->op == op::qnn::dequantize) {
      const auto* t = call->args[0]->checked_type_.as<TensorTypeNode>();
      if (!t) return Failed();
      // The arguments were rewritten before: a region stands behind them.
      return Affine(VisitExpr(call->args[0]), VisitExpr(call->args[1]), VisitExpr(call->args[2]), t->dtype,
                    AttrsAs<DequantizeAttrs>(call->attrs).axis);
    }
    if (!HasRule(call)) return Failed();
    std::vector<QValue> args;
    bool any = false;
    for (const Expr& a : call->args) {
      args.push_back(values_[a.get()]);
      any |= args.back().kind == QValue::kAffine;
    }
    if (!any) return Failed();
    const Op op = Downcast<Op>(call->op);
    const Any own = op.GetAttrValue(kAttr);
    if (own.is_null()) return Rules().at(op->name.view())({call, args, out});
    return Asked(own.As<PackedFunc>(), call, args, out);
  }

  /// A rule of the program: f(call on integers, affine types by expression) -> [expression, affine type].
  QValue Asked(const PackedFunc& f, const CallNode* call, const std::vector<QValue>& args,
              const TensorAffineTypeNode* out) {
    Map<Expr, AffineType> types;
    Array<Expr> exprs;
    for (const QValue& v : args) {
      exprs.push_back(v.expr);
      if (v.kind == QValue::kAffine) types.Set(v.expr, v.type);
    }
    auto n = runtime::make_object<CallNode>(*call);
    n->args = exprs;
    const Expr asked{Call(n)};
    types.Set(asked, GetRef<TensorAffineType>(out));
    try {
      const auto made = f(asked, types).As<Array<ObjectRef>>();
      if (made.size() != 2 || !made[0].as<ExprNode>() || !made[1].as<AffineTypeNode>())
        throw CompileError("the rule of `" + Downcast<Op>(call->op)->name.str() +
                           "` for FakeQuantizationToInteger gives no [expression, affine type]");
      return Affine(Downcast<Expr>(made[0]), Downcast<AffineType>(made[1]));
    } catch (const Error&) {
      if (hard_fail_) throw;
      return Failed();
    }
  }

  static constexpr const char* kAttr = "FTVMFakeQuantizationToInteger";
  bool hard_fail_;
  std::unordered_map<const Object*, QValue> values_;
  std::vector<Expr> kept_;  ///< keys of values_ stay alive
};

}  // namespace

Pass FakeQuantizationToInteger(const FakeQuantizationToIntegerOptions& options) {
  if (options.use_qat)
    throw UnsupportedError(
        "FakeQuantizationToInteger: use_qat converts operators that no qnn.quantize follows, which is not there; put "
        "one "
        "behind them");
  return MakePass<FakeQuantizationToInteger>(options, {
      .doc =
          "What stands between qnn.dequantize and qnn.quantize is computed in integers, by a rule for each operator; "
          "regions with an operator that has none stay. Results change as far as rounding between steps does.",
      .opt_level = 0,
      .required = {"InferType"},
      .changes_results = true,
      .run =
          [hard_fail = options.hard_fail](Function f, IRModule, PassContext) {
            return AnyCallOf(f, op::qnn::quantize) ? Integers(hard_fail).Mutate(f) : f;  // where regions end
          },
  });
}

namespace {
const RegisterNodes<AffineTypeNode, TensorAffineTypeNode, TupleAffineTypeNode> registered_types;
const RegisterPass<FakeQuantizationToInteger> registered_fake_quantization_to_integer;
}  // namespace

}  // namespace baton::relay::transform
