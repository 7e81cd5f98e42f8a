// SPDX-License-Identifier: Apache-2.0
// A product of tensors that stand for scale * (q - zero) is scale_x * scale_w * sum((q - zero) * w), and that sum is
// sum(q * w) - zero * sum(w), of which the second part is a constant. So it is computed on bytes, exactly.
#include <baton/ir/target.h>
#include <baton/relay/functor.h>
#include <baton/relay/op.h>
#include <baton/relay/op/make.h>
#include <baton/relay/op/nn.h>
#include <baton/relay/op/qnn.h>
#include <baton/relay/op/transform.h>
#include <baton/relay/transform.h>
#include <baton/runtime/scalar.h>
#include <baton/support/pointer_map.h>
#include <relay/expr/children.h>
#include <relay/op/gradient.h>
#include <relay/op/integer_ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "relay/kernel/dots.h"
#include "relay/transform/byte_tables.h"
#include "relay/transform/byte_weights.h"
#include "relay/transform/convert_layout.h"
#include "relay/transform/quantized_sums.h"

namespace baton::relay::transform {
namespace {

constexpr DataType kInt32 = DataType::Int(32), kFloat32 = DataType::Float(32), kUInt8 = DataType::UInt(8),
                   kInt8 = DataType::Int(8);
/// Between a signed byte and the unsigned one that the kernels take.
constexpr int64_t kToUnsigned = 128;

const TensorTypeNode* TensorTypeAt(const Expr& e) { return e->checked_type_.as<TensorTypeNode>(); }

const CallNode* CallOf(const Expr& e, const Op& op) {
  const auto* call = e.as<CallNode>();
  return call && call->op == op ? call : nullptr;
}
/// The call of one operand whose result numbers the elements of it in another way; null for other values.
const CallNode* ViewOf(const Expr& e) {
  const auto* call = e.as<CallNode>();
  const OpDef* def = call ? DefOf(call->op) : nullptr;
  return def && def->traits.values == Values::kView && call->args.size() == 1 ? call : nullptr;
}
/// The only element of a constant.
std::optional<double> NumberOf(const Expr& e) {
  const auto* c = e.as<ConstantNode>();
  if (!c || c->data.numel() != 1) return std::nullopt;
  const NDArray data = c->data.Contiguous();
  return runtime::LoadDouble(data.data(), data.dtype(), 0);
}
Expr ConstantOf(NDArray data) { return Constant(std::move(data)); }

/// The product's operator on bytes.
struct Product {
  Op op;
  Attrs attrs;
  bool transpose = false;  ///< the weight has its outputs last
};
std::optional<Product> ProductOf(const CallNode* call) {
  const auto* op = call->op.as<OpNode>();
  if (!op || call->args.size() != 2 || !TensorTypeAt(call->args[0]) || !TensorTypeAt(call->args[1]))
    return std::nullopt;
  if (ConvDims(call->op) > 0) return Product{GetRef<Op>(op), call->attrs};
  const int64_t rank = static_cast<int64_t>(TensorTypeAt(call->args[0])->shape.size());
  if (TensorTypeAt(call->args[1])->shape.size() != 2 || rank < 1) return std::nullopt;
  const Attrs in_int32 = MakeAttrs<DenseAttrs>([](DenseAttrs* a) { a->out_dtype = kInt32; });
  if (call->op == op::dense) return Product{op::dense, in_int32};
  if (call->op != op::matmul || rank < 2) return std::nullopt;
  const auto* a = call->attrs.as<MatmulAttrs>();
  if (a && a->transpose_a) return std::nullopt;
  return Product{op::dense, in_int32, !(a && a->transpose_b)};
}

/// Whether a float32 of this value is neither 0, subnormal, infinite nor NaN.
bool IsNormal(double v) { return std::isnormal(static_cast<float>(v)); }
Expr ToUnsigned(const Expr& bytes) { return Cast(Add(Cast(bytes, kInt32), MakeScalar(kToUnsigned, kInt32)), kUInt8); }

/// Quantized values of a function: signed bytes whose users all restore what they stand for become unsigned ones, and
/// what only moves elements moves bytes.
class QuantizedValues {
 public:
  explicit QuantizedValues(const Function& f) {
    PostOrder(f, [&](const Expr& e) {
      ForEachChild(e.get(), [&](const ExprNode* child) {
        bool fresh = false;
        int& n = users_.Insert(child, &fresh);
        n = fresh ? 1 : n + 1;
      });
      const auto* user = e.as<CallNode>();
      if (!user) return ForEachChild(e.get(), [&](const ExprNode* child) { used_as_they_are_.Add(child); });
      const bool restores = user->op == op::qnn::dequantize;
      for (size_t i = 0; i < user->args.size(); ++i) {
        if (!(restores && i == 0)) used_as_they_are_.Add(user->args[static_cast<int64_t>(i)].get());
      }
    });
    used_as_they_are_.Add(f->body.get());
  }

  /// Whether a typed call makes signed bytes that become unsigned.
  bool BecomesUnsigned(const Expr& e) const {
    const CallNode* q = CallOf(e, op::qnn::quantize);
    return q && AttrsAs<QuantizeAttrs>(q->attrs).out_dtype == kInt8 && NumberOf(q->args[1]) && NumberOf(q->args[2]) &&
           !used_as_they_are_.Has(q);
  }
  /// A rewritten call of qnn.quantize, `call`, of the typed `pre`.
  Expr Quantized(const CallNode* pre, const CallNode& call, const Expr& post) {
    const std::optional<double> scale = NumberOf(call.args[1]), zero = NumberOf(call.args[2]);
    if (!scale || !zero || !IsNormal(*scale) || !IsNormal(1 / *scale)) return post;
    const Steps steps{*scale, *zero, AttrsAs<QuantizeAttrs>(call.attrs).out_dtype, BecomesUnsigned(GetRef<Expr>(pre))};
    if (Expr joined = Joined(pre->args[0], call.args[0], call, steps, false); joined.defined()) return joined;
    // An operator that selects elements selects bytes instead: quantizing keeps the order.
    const auto *select = pre->args[0].as<CallNode>(), *made = call.args[0].as<CallNode>();
    if (select && made && Selects(select) && steps.scale > 0 && IsUsedOnce(pre->args[0])) {
      Expr joined = Joined(select->args[0], made->args[0], call, steps, true);
      if (joined.defined()) return Select(made, joined);
    }
    return QuantizedBy(steps, pre->args[0], call.args[0], call, post);
  }
  /// The same of qnn.dequantize.
  Expr Dequantized(const CallNode* pre, const CallNode& call, const Expr& post) {
    if (!BecomesUnsigned(pre->args[0])) return post;
    const std::optional<double> zero = NumberOf(call.args[2]);
    // A zero point that is not constant is moved like the bytes.
    Expr point = zero ? MakeScalar(*zero + kToUnsigned, kInt32)
                      : Add(Cast(call.args[2], kInt32), MakeScalar(kToUnsigned, kInt32));
    return MakeCall(op::qnn::dequantize, {call.args[0], call.args[1], point}, call.attrs);
  }
  /// The dtype of a tensor that is typed, or that this made.
  static DataType DtypeOf(const Expr& e) {
    const auto* t = TensorTypeAt(e);
    return t ? t->dtype : DtypeMade(e);
  }

  QuantizedSums sums;  ///< of products that were made so far

 private:
  /// How a value is quantized, with one scale and zero point for all of it.
  struct Steps {
    double scale, zero;
    DataType to;         ///< as the program says
    bool moved = false;  ///< signed bytes are stored as unsigned ones
    DataType stored() const { return moved ? kUInt8 : to; }
    double point() const { return moved ? zero + kToUnsigned : zero; }
  };
  /// `made` in bytes, of the typed value `e`; `post` where it stays as it is.
  Expr QuantizedBy(const Steps& steps, const Expr& e, const Expr& made, const CallNode& call, const Expr& post) const {
    if (Expr same = Selected(made, steps); same.defined()) return same;
    if (Expr restored = RestoredLater(e, made); restored.defined())
      return QuantizedBy(steps, restored, restored, call, Expr());
    if (FollowsIntegers(made, 0) && steps.scale > 0) {
      // The scale is a constant beside others that are multiplied: one more factor, where a division takes longer.
      Expr scaled = ScaledSum(e, made, steps.scale);
      if (!scaled.defined()) scaled = Multiply(made, MakeScalar(static_cast<float>(1 / steps.scale), kFloat32));
      Expr rounded = MakeCall(op::round, {scaled});
      const double low = steps.to.is_uint() ? 0 : -std::ldexp(1.0, steps.to.bits() - 1);
      const double high = std::ldexp(1.0, steps.to.is_uint() ? steps.to.bits() : steps.to.bits() - 1) - 1;
      Expr at = steps.zero == 0 ? rounded : Add(rounded, MakeScalar(steps.zero, kFloat32));
      return Moved(
          Cast(MakeCall<ClipAttrs>(op::clip, {at}, [&](ClipAttrs* a) { a->a_min = low, a->a_max = high; }), steps.to),
          steps);
    }
    if (!steps.moved && post.defined()) return post;
    return Moved(MakeCall(op::qnn::quantize, {made, call.args[1], call.args[2]}, call.attrs), steps);
  }
  /// The quotient of a sum that nothing else reads; null for other values.
  Expr ScaledSum(const Expr& e, const Expr& made, double scale) const {
    const auto* call = e.as<CallNode>();
    const bool once = IsUsedOnce(e) && call && (sums.Has(made) || (!call->args.empty() && IsUsedOnce(call->args[0])));
    return once ? sums.Scaled(made, static_cast<float>(scale)) : Expr();
  }
  /// Signed bytes as unsigned ones, where they are stored so. Applied to bytes, not before: what is not a number is 0
  /// among signed bytes, and means the same number here.
  static Expr Moved(const Expr& bytes, const Steps& steps) { return steps.moved ? ToUnsigned(bytes) : bytes; }
  /// quantize(concatenate(x, y)) is concatenate(quantize(x), quantize(y)), which joins bytes; null where nothing is
  /// restored, or others read the floats too. `all`: null unless all of it is restored, and therefore finite.
  Expr Joined(const Expr& e, const Expr& made_of_it, const CallNode& call, const Steps& steps, bool all) const {
    const auto* join = e.as<CallNode>();
    const OpDef* def = join ? DefOf(join->op) : nullptr;
    if (!def || def->traits.layout != LayoutRule::kJoins || join->args.size() != 1 || !IsUsedOnce(e)) return Expr();
    const auto* fields = join->args[0].as<TupleNode>();
    const auto* made = made_of_it.as<CallNode>();
    const auto* made_fields = made && made->args.size() == 1 ? made->args[0].as<TupleNode>() : nullptr;
    if (!fields || !made_fields || !IsUsedOnce(join->args[0]) || fields->fields.size() != made_fields->fields.size())
      return Expr();
    bool any = false;
    for (const Expr& f : made_fields->fields) {
      if (all && !CallOf(f, op::qnn::dequantize)) return Expr();
      any |= FollowsIntegers(f, 0);
    }
    if (!any) return Expr();
    Array<Expr> bytes;
    for (size_t i = 0; i < fields->fields.size(); ++i) {
      const auto k = static_cast<int64_t>(i);
      bytes.push_back(QuantizedBy(steps, fields->fields[k], made_fields->fields[k], call, Expr()));
    }
    return MakeCall(Downcast<Op>(join->op), {Tuple(bytes)}, join->attrs);
  }
  bool IsUsedOnce(const Expr& e) const {
    const int* n = users_.Find(e.get());
    return n && *n == 1;
  }
  /// The call that selects elements of what qnn.dequantize restored, and that; or the latter alone.
  static std::pair<const CallNode*, const CallNode*> SelectedFrom(const Expr& made) {
    if (const CallNode* restored = CallOf(made, op::qnn::dequantize)) return {nullptr, restored};
    const auto* select = made.as<CallNode>();
    if (!select || !Selects(select)) return {};
    return {select, CallOf(select->args[0], op::qnn::dequantize)};
  }
  static bool Selects(const CallNode* call) {
    const OpDef* def = DefOf(call->op);
    return def && def->traits.values >= Values::kSelects && call->args.size() == 1;
  }
  static Expr Select(const CallNode* select, const Expr& e) {
    return select ? MakeCall(Downcast<Op>(select->op), {e}, select->attrs) : e;
  }
  /// quantize(select(dequantize(q))) with one scale and zero point is select(q), for operators that select elements.
  static Expr Selected(const Expr& made, const Steps& steps) {
    const auto [select, restored] = SelectedFrom(made);
    if (!restored) return Expr();
    const std::optional<double> s = NumberOf(restored->args[1]), z = NumberOf(restored->args[2]);
    if (!s || !z || static_cast<float>(*s) != static_cast<float>(steps.scale) || *z != steps.point()) return Expr();
    return DtypeOf(restored->args[0]) == steps.stored() ? Select(select, restored->args[0]) : Expr();
  }
  /// select(dequantize(q)) that nothing else reads as dequantize(select(q)), so that memory holds bytes.
  Expr RestoredLater(const Expr& e, const Expr& made) const {
    const auto [select, restored] = SelectedFrom(made);
    if (!select || !restored || !IsUsedOnce(e)) return Expr();
    const std::optional<double> s = NumberOf(restored->args[1]);
    if (!s || *s <= 0 || !NumberOf(restored->args[2])) return Expr();
    return MakeCall(op::qnn::dequantize, {Select(select, restored->args[0]), restored->args[1], restored->args[2]},
                    restored->attrs);
  }
  /// The dtype of bytes that this pass made, which have no type yet.
  static DataType DtypeMade(const Expr& e) {
    if (const CallNode* c = CallOf(e, op::qnn::quantize)) return AttrsAs<QuantizeAttrs>(c->attrs).out_dtype;
    if (const CallNode* c = CallOf(e, op::cast)) return runtime::GetField(c->attrs.get(), "dtype").As<DataType>();
    if (const CallNode* c = CallOf(e, op::qnn::table)) return DtypeMade(c->args[1]);
    const auto* c = e.as<CallNode>();
    const OpDef* def = c ? DefOf(c->op) : nullptr;
    if (def && def->traits.values >= Values::kSelects && c->args.size() == 1) return DtypeOf(c->args[0]);
    if (def && def->traits.layout == LayoutRule::kJoins) {
      const auto* fields = c->args[0].as<TupleNode>();
      return fields && !fields->fields.empty() ? DtypeOf(fields->fields[0]) : DataType::Void();
    }
    return DataType::Void();
  }
  /// Whether a value is made of restored integers by a few cheap operators.
  static bool FollowsIntegers(const Expr& e, int depth) {
    const auto* call = e.as<CallNode>();
    if (!call || depth > 6) return false;
    if (call->op == op::qnn::dequantize) return true;
    const OpDef* def = DefOf(call->op);
    if (!def || def->pattern > OpPattern::kBroadcast) return false;
    if (call->op == op::cast) return true;
    for (const Expr& a : call->args) {
      if (FollowsIntegers(a, depth + 1)) return true;
    }
    return false;
  }

  PointerSet used_as_they_are_;  // what something but qnn.dequantize reads
  PointerMap<int> users_;
};

class Maker : public MixedModeMutator {
 public:
  Maker(const Function& f, const Target& target) : values_(f), tables_(target), target_(target) {}

 private:
  Expr Rewrite_(const CallNode* pre, const Expr& post) final {
    const auto* call = post.as<CallNode>();
    if (!call) return post;
    Expr out = Rewritten(pre, *call, post);
    if (!out.same_as(post) && !out->span.defined()) out->span = pre->span;
    return out;
  }
  Expr Rewritten(const CallNode* pre, const CallNode& call, const Expr& post) {
    if (call.op == op::qnn::quantize) {
      tables_.Note(pre);
      const Expr bytes = tables_.BytesOf(pre);
      return bytes.defined() ? ByTable(pre, bytes) : values_.Quantized(pre, call, post);
    }
    if (call.op == op::qnn::dequantize) return values_.Dequantized(pre, call, post);
    if (const Expr mean = Mean(pre, call); mean.defined()) return mean;
    const auto* out = pre->checked_type_.as<TensorTypeNode>();
    if (!out) return post;
    const std::optional<Product> product = ProductOf(pre);
    if (!product) return post;
    if (out->dtype == kFloat32) return OfRestored(pre, call, *product, post);
    return out->dtype == kInt32 ? OfIntegers(pre, call, *product, post) : post;
  }

  /// qnn.quantize of a function of `bytes`.
  Expr ByTable(const CallNode* pre, const Expr& bytes) {
    const Expr results = tables_.Results(pre, values_.BecomesUnsigned(bytes));
    const bool moved = values_.BecomesUnsigned(GetRef<Expr>(pre));
    return MakeCall(op::qnn::table, {VisitExpr(bytes), moved ? ToUnsigned(results) : results});
  }
  /// The mean of each channel of restored bytes; null for other calls.
  static Expr Mean(const CallNode* pre, const CallNode& call) {
    const CallNode* restored = call.args.size() == 1 ? CallOf(call.args[0], op::qnn::dequantize) : nullptr;
    const std::optional<double> zero = restored ? NumberOf(restored->args[2]) : std::nullopt;
    return zero ? MeanOfBytes(pre, restored->args[0], *zero) : Expr();
  }

  // ---- Products

  /// float32 of operands that qnn.dequantize restored.
  Expr OfRestored(const CallNode* pre, const CallNode& call, Product product, const Expr& post) {
    const CallNode *x = CallOf(pre->args[0], op::qnn::dequantize), *w = CallOf(pre->args[1], op::qnn::dequantize);
    const auto* turned = pre->args[1].as<CallNode>();
    if (const auto* a = turned ? turned->attrs.as<TransposeAttrs>() : nullptr; a && product.op == op::dense) {
      w = CallOf(turned->args[0], op::qnn::dequantize);
      // For two dimensions: the first stays where it is, or the two change places.
      if (!a->axes.defined() || (a->axes[0] != 0 && a->axes[0] != -2)) product.transpose = !product.transpose;
    }
    // A view of what was restored is a view of the bytes.
    const CallNode* view = ViewOf(pre->args[0]);
    Expr made = call.args[0];
    if (view) x = CallOf(view->args[0], op::qnn::dequantize), made = Downcast<Call>(made)->args[0];
    if (!x || !w) return post;
    const std::optional<double> scale = NumberOf(x->args[1]);
    const CallNode* restored = CallOf(made, op::qnn::dequantize);
    const auto* bytes = TensorTypeAt(x->args[0]);
    if (!restored || !scale || !bytes || bytes->dtype.bits() != 8) return post;
    const std::optional<double> zero = NumberOf(restored->args[2]);
    if (!zero) return post;
    const ByteWeights weight = RestoredWeight(w, product);
    if (!weight.values.defined()) return post;
    // A factor that float32 does not hold would make NaN of a sum that is 0.
    for (float s : weight.scales) {
      if (!IsNormal(*scale) || !IsNormal(s) || !IsNormal(*scale * s)) return post;
    }
    const bool is_unsigned = bytes->dtype == kUInt8 || values_.BecomesUnsigned(x->args[0]);
    const double point = *zero + (is_unsigned ? 0 : kToUnsigned);
    TensorTypeNode viewed = *bytes;
    viewed.shape = TensorTypeAt(pre->args[0])->shape;
    Expr data = view ? MakeCall(Downcast<Op>(view->op), {restored->args[0]}, view->attrs) : restored->args[0];
    Expr sum = Sum(pre, is_unsigned ? data : ToUnsigned(data), &viewed, point, Expr(), weight, product);
    if (!sum.defined()) sum = ExactSum(pre, data, *zero, bytes, weight, product);
    if (!sum.defined()) return post;
    NDArray factors = NDArray::Empty({static_cast<int64_t>(weight.scales.size())}, kFloat32);
    for (size_t i = 0; i < weight.scales.size(); ++i)
      factors.ptr<float>()[i] = static_cast<float>(*scale) * weight.scales[i];
    Expr scaled = Multiply(Cast(sum, kFloat32), AlongOutputs(factors, pre));
    values_.sums.Add(scaled, sum, factors, pre);
    return scaled;
  }

  /// int32 of operands that are bytes, less a zero point.
  Expr OfIntegers(const CallNode* pre, const CallNode& call, Product product, const Expr& post) {
    Expr x = pre->args[0], made = call.args[0], zero;
    if (kernel::HasDotKernel(pre, target_)) return post;
    // Products of more than two dimensions take a view of the widened bytes: it becomes one of the bytes.
    const CallNode* view = ViewOf(x);
    if (view) x = view->args[0], made = Downcast<Call>(made)->args[0];
    if (const CallNode* less = CallOf(x, op::subtract)) {
      const auto* t = TensorTypeAt(less->args[1]);
      if (!t || t->dtype != kInt32 || !IsOne(t)) return post;
      zero = Downcast<Call>(made)->args[1];
      x = less->args[0], made = Downcast<Call>(made)->args[0];
    }
    // Bytes that were widened, or that the product itself sums in int32.
    const CallNode* wide = CallOf(x, op::cast);
    const auto* bytes = wide ? TensorTypeAt(wide->args[0]) : zero.defined() ? nullptr : TensorTypeAt(x);
    if (!bytes || bytes->dtype.bits() != 8 || !bytes->dtype.is_integral()) return post;
    if (wide) made = Downcast<Call>(made)->args[0];
    TensorTypeNode viewed = *bytes;
    if (view) {
      made = MakeCall(Downcast<Op>(view->op), {made}, view->attrs);
      viewed.shape = TensorTypeAt(pre->args[0])->shape;
      bytes = &viewed;
    }
    ByteWeights weight = IntegerWeight(pre->args[1], &product);
    if (!weight.values.defined()) return post;
    std::optional<double> point = zero.defined() ? NumberOf(zero) : std::optional<double>(0);
    const bool is_unsigned = bytes->dtype == kUInt8;
    if (!is_unsigned) {
      made = ToUnsigned(made);
      if (point)
        point = *point + kToUnsigned;
      else
        zero = Add(Reshape(zero, Array<int64_t>{}), MakeScalar(kToUnsigned, kInt32));
    } else if (!point) {
      zero = Reshape(zero, Array<int64_t>{});
    }
    const PlainOrder order = PlainOrderOf(product);
    if (order.out.empty()) {
      Expr sum = Sum(pre, made, bytes, point.value_or(0), point ? Expr() : zero, weight, product);
      return sum.defined() ? sum : post;
    }
    TensorTypeNode type = *bytes;
    for (size_t d = 0; d < order.plain.size(); ++d) {
      const size_t from = order.data.find(order.plain[d]);
      type.shape.Set(static_cast<int64_t>(d), bytes->shape[static_cast<int64_t>(from)]);
    }
    weight.values = Permuted(weight.values, order.kernel, order.weight);
    Expr sum = Sum(pre, LayoutTransform(made, order.data, order.plain), &type, point.value_or(0), point ? Expr() : zero,
                   weight, {product.op, order.attrs, false});
    return sum.defined() ? LayoutTransform(sum, order.plain, order.out) : post;
  }

  /// A convolution of another order of dimensions as one of the order that kernels take.
  struct PlainOrder {
    std::string data, kernel, out;  ///< orders that it has; empty: they are plain, or come in blocks
    std::string plain, weight;      ///< orders of the kernels
    Attrs attrs;
  };
  static PlainOrder PlainOrderOf(const Product& product) {
    const int n = ConvDims(product.op);
    if (n == 0) return {};
    const auto* info = runtime::TypeInfo::Get(product.attrs.type_index());
    auto text = [&](const char* field) { return info->Find(field)->Get(product.attrs.get()).As<String>().str(); };
    PlainOrder order{.data = text("data_layout"), .kernel = text("kernel_layout"), .out = text("out_layout")};
    if (order.out.empty()) order.out = order.data;
    order.plain = n == 1 ? "NCW" : n == 2 ? "NCHW" : "NCDHW", order.weight = "OI" + order.plain.substr(2);
    auto reordered = [](std::string a, std::string b) {
      std::sort(a.begin(), a.end()), std::sort(b.begin(), b.end());
      return a == b;
    };
    if ((order.data == order.plain && order.kernel == order.weight && order.out == order.plain) ||
        !reordered(order.data, order.plain) || !reordered(order.out, order.plain) ||
        !reordered(order.kernel, order.weight))
      return {};
    order.attrs = Attrs(info->copy(product.attrs.get()));
    Object* fields = runtime::ObjectAccess::Get(order.attrs);
    info->Find("data_layout")->Set(fields, runtime::Any(String(order.plain)).raw());
    info->Find("kernel_layout")->Set(fields, runtime::Any(String(order.weight)).raw());
    info->Find("out_layout")->Set(fields, runtime::Any(String()).raw());
    return order;
  }
  /// Bytes in another order of dimensions.
  static NDArray Permuted(const NDArray& from, const std::string& order, const std::string& wanted) {
    const size_t rank = order.size();
    std::vector<int64_t> shape(rank), stride(rank), at(rank, 0);
    for (size_t d = 0; d < rank; ++d) {
      const size_t source = order.find(wanted[d]);
      shape[d] = from.dim(source), stride[d] = 1;
      for (size_t e = source + 1; e < rank; ++e) stride[d] *= from.dim(e);
    }
    NDArray out = NDArray::Empty(shape, from.dtype());
    for (int64_t i = 0, source = 0; i < out.numel(); ++i) {
      out.ptr<int8_t>()[i] = from.ptr<int8_t>()[source];
      for (size_t d = rank; d-- > 0;) {
        source += stride[d];
        if (++at[d] < shape[d]) break;
        source -= stride[d] * shape[d], at[d] = 0;
      }
    }
    return out;
  }

  static bool IsOne(const TensorTypeNode* t) {
    for (const PrimExpr& d : t->shape) {
      if (DimOf(d) != 1) return false;
    }
    return true;
  }
  /// The constant that casts and reshapes are made of; null for other values.
  static const ConstantNode* ConstantBehind(const Expr& e) {
    const auto* call = e.as<CallNode>();
    const bool widens = call && (call->op == op::cast || ViewOf(e));
    return widens ? ConstantBehind(call->args[0]) : e.as<ConstantNode>();
  }
  /// The weight of a product of integers: a constant, or bytes that are widened, moved by a zero point and transposed,
  /// before they are folded into integers of 32 bits. `product` follows the transposition.
  static ByteWeights IntegerWeight(Expr w, Product* product) {
    const auto* turned = w.as<CallNode>();
    if (const auto* a = turned ? turned->attrs.as<TransposeAttrs>() : nullptr; a && product->op == op::dense) {
      w = turned->args[0];
      if (!a->axes.defined() || (a->axes[0] != 0 && a->axes[0] != -2)) product->transpose = !product->transpose;
    }
    NDArray zeros;
    if (const CallNode* less = CallOf(w, op::subtract)) {
      const auto* t = TensorTypeAt(less->args[1]);
      const ConstantNode* zero = ConstantBehind(less->args[1]);
      if (!t || !IsOne(t) || !zero) return {};
      zeros = zero->data.Contiguous();
      w = less->args[0];
    }
    const CallNode* wide = CallOf(w, op::cast);
    const auto* values = (wide ? wide->args[0] : w).as<ConstantNode>();
    if (!values || (wide && values->data.dtype().bits() != 8) || values->data.ndim() < 1) return {};
    return SignedBytes(values->data, zeros, product->transpose);
  }
  static ByteWeights RestoredWeight(const CallNode* w, const Product& product) {
    const auto* values = w->args[0].as<ConstantNode>();
    const auto *scale = w->args[1].as<ConstantNode>(), *zero = w->args[2].as<ConstantNode>();
    if (!values || !scale || !zero || values->data.dtype().bits() != 8 || values->data.ndim() < 1) return {};
    const NDArray scales = scale->data.Contiguous(), zeros = zero->data.Contiguous();
    const int64_t rank = values->data.ndim(), outputs = product.transpose ? 1 : 0;
    int64_t axis = AttrsAs<DequantizeAttrs>(w->attrs).axis;
    if (axis < 0) axis += rank;
    if ((scales.numel() > 1 || zeros.numel() > 1) && axis != outputs) return {};
    ByteWeights weight = SignedBytes(values->data, zeros, product.transpose);
    for (int64_t i = 0; i < scales.numel(); ++i)
      weight.scales.push_back(static_cast<float>(runtime::LoadDouble(scales.data(), scales.dtype(), i)));
    return weight;
  }

  /// The exact sum of (data - zero) * weight in int32; null where no kernel takes it. `open_zero`: a scalar instead of
  /// `zero`, known at run time.
  Expr Sum(const CallNode* pre, Expr data, const TensorTypeNode* type, double zero, const Expr& open_zero,
           ByteWeights weight, const Product& product) {
    TensorTypeNode bytes = *type;
    bytes.dtype = kUInt8;
    Attrs attrs = product.attrs;
    Expr of_shift;
    if (weight.shift != 0) {
      of_shift = OfShift(data, *type, zero, open_zero, weight, product);
      if (!of_shift.defined()) return Expr();
    }
    if (const int n = ConvDims(product.op); n > 0) {
      attrs = n == 1   ? Convolution<1>(attrs, &data, &bytes, zero, open_zero, &weight)
              : n == 2 ? Convolution<2>(attrs, &data, &bytes, zero, open_zero, &weight)
                       : Convolution<3>(attrs, &data, &bytes, zero, open_zero, &weight);
      if (!attrs.defined()) return Expr();
    }
    Array<PrimExpr> extents;
    for (int64_t d : weight.values.shape()) extents.push_back(PrimExpr(d));
    const TensorType of_data{TensorTypeNode(bytes)}, of_weight(extents, kInt8);
    if (!kernel::HasDotKernel(product.op, attrs, of_data.get(), of_weight.get(), target_)) return Expr();
    Expr sum = MakeCall(product.op, {data, ConstantOf(weight.values)}, attrs);
    sum->span = pre->span;
    if (of_shift.defined()) sum = Add(sum, of_shift);
    if (zero == 0 && !open_zero.defined()) {
      weight.values.GiveBack();  // to the file, until it is packed
      return sum;
    }
    const std::vector<int64_t> sums = weight.Sums();
    weight.values.GiveBack();
    NDArray moved = NDArray::Empty({static_cast<int64_t>(sums.size())}, kInt32);
    for (size_t i = 0; i < sums.size(); ++i)
      moved.ptr<int32_t>()[i] = static_cast<int32_t>(sums[i] * (open_zero.defined() ? 1 : static_cast<int64_t>(zero)));
    Expr part = AlongOutputs(moved, pre);
    return Subtract(sum, open_zero.defined() ? Multiply(part, open_zero) : part);
  }

  /// Where all weights have the same part, its product is that part times the sums of the data: of each line, or of
  /// each window, over all channels. Null where float32 does not hold those sums.
  Expr OfShift(const Expr& data, const TensorTypeNode& type, double zero, const Expr& open_zero,
               const ByteWeights& weight, const Product& product) {
    const int n = ConvDims(product.op);
    const int64_t rank = static_cast<int64_t>(type.shape.size()), lines = weight.values.dim(0);
    const int64_t terms = weight.values.numel() / std::max<int64_t>(lines, 1);
    Expr sums = Subtract(Cast(data, kInt32), open_zero.defined() ? open_zero : MakeScalar(zero, kInt32));
    sums = gradient::Sum(sums, {n > 0 ? 1 : rank - 1}, true);
    if (n > 0) {
      if (terms * 255 > kExactInFloat32 || runtime::GetField(product.attrs.get(), "groups").As<int64_t>() != 1)
        return Expr();
      const auto* info = runtime::TypeInfo::Get(product.attrs.type_index());
      const Attrs attrs(info->copy(product.attrs.get()));
      Object* fields = runtime::ObjectAccess::Get(attrs);
      info->Find("channels")->Set(fields, runtime::Any(PrimExpr(int64_t{1})).raw());
      info->Find("out_dtype")->Set(fields, runtime::Any(kFloat32).raw());
      std::vector<int64_t> window = weight.values.shape();
      window[0] = window[1] = 1;
      NDArray ones = NDArray::Empty(window, kFloat32);
      std::fill_n(ones.ptr<float>(), ones.numel(), 1.0F);
      sums = Cast(MakeCall(product.op, {Cast(sums, kFloat32), ConstantOf(ones)}, attrs), kInt32);
    }
    return Multiply(sums, MakeScalar(static_cast<double>(weight.shift), kInt32));
  }

  /// The same sum of widened bytes, which IntegersInFloat takes to the kernels of float32: where a product has no
  /// kernel on bytes its result is exact all the same. Null where a sum may outgrow what they hold.
  static Expr ExactSum(const CallNode* pre, const Expr& data, double zero, const TensorTypeNode* bytes,
                       const ByteWeights& weight, const Product& product) {
    if (weight.values.numel() == 0) return Expr();
    const double low = bytes->dtype == kUInt8 || QuantizedValues::DtypeOf(data) == kUInt8 ? 0 : -128;
    const double most = std::max(std::abs(low - zero), std::abs(low + 255 - zero));
    const int64_t lines = weight.values.dim(0), terms = weight.values.numel() / lines;
    for (int64_t line = 0; line < lines; ++line) {
      double sum = 0;
      for (int64_t k = 0; k < terms; ++k)
        sum += std::abs(static_cast<double>(weight.values.ptr<int8_t>()[line * terms + k] + weight.shift));
      if (sum * most > kExactInFloat32) return Expr();
    }
    Attrs attrs = product.attrs;
    if (ConvDims(product.op) > 0) {
      const auto* info = runtime::TypeInfo::Get(attrs.type_index());
      attrs = Attrs(info->copy(attrs.get()));
      info->Find("out_dtype")->Set(runtime::ObjectAccess::Get(attrs), runtime::Any(kInt32).raw());
    }
    Expr wide = Cast(data, kInt32);
    if (zero != 0) wide = Subtract(wide, MakeScalar(zero, kInt32));
    Expr of_weight = Cast(ConstantOf(weight.values), kInt32);
    if (weight.shift != 0) of_weight = Add(of_weight, MakeScalar(static_cast<double>(weight.shift), kInt32));
    Expr sum = MakeCall(product.op, {wide, of_weight}, attrs);
    sum->span = pre->span;
    return sum;
  }

  /// The attributes of a convolution on bytes, with padding that stands for 0 and channels by fours; null for one that
  /// has no such form.
  template <int N>
  static Attrs Convolution(const Attrs& attrs, Expr* data, TensorTypeNode* type, double zero, const Expr& open_zero,
                           ByteWeights* weight) {
    auto a = runtime::make_object<ConvAttrs<N>>(AttrsAs<ConvAttrs<N>>(attrs));
    a->out_dtype = kInt32;
    bool padded = false;
    for (int64_t p : a->padding) padded |= p != 0;
    const int64_t channels = DimOf(type->shape[1]), more = channels > 0 && a->groups == 1 ? (4 - channels % 4) % 4 : 0;
    Array<Array<int64_t>> around;
    for (int64_t d = 0; d < N + 2; ++d) around.push_back(Array<int64_t>{0, 0});
    const bool by_value = padded && (zero != 0 || open_zero.defined());
    if (by_value) {
      const auto size = static_cast<int64_t>(a->padding.size());
      for (int64_t d = 0; d < N; ++d) {
        const int64_t begin = size == 1 ? a->padding[0] : a->padding[d];
        const int64_t end = size == 2 * N ? a->padding[N + d] : begin;
        around.Set(d + 2, Array<int64_t>{begin, end});
        if (const int64_t side = DimOf(type->shape[d + 2]); side >= 0)
          type->shape.Set(d + 2, PrimExpr(side + begin + end));
      }
      a->padding = Array<int64_t>(size_t{N}, 0);
    }
    if (more > 0) {
      around.Set(1, Array<int64_t>{0, more});
      type->shape.Set(1, PrimExpr(channels + more));
      weight->values = WithChannels(weight->values, channels + more);
    }
    if (more > 0 || by_value) {
      Expr value = open_zero.defined() ? Cast(open_zero, kUInt8) : MakeScalar(zero, kUInt8);
      *data = MakeCall<PadAttrs>(op::pad, {*data, value}, [&](PadAttrs* p) { p->pad_width = around; });
    }
    return Attrs(runtime::ObjectPtr<runtime::Object>(a));
  }
  /// Weights with further input channels, of 0.
  static NDArray WithChannels(const NDArray& w, int64_t channels) {
    std::vector<int64_t> shape = w.shape();
    const int64_t have = shape[1], lines = shape[0], window = w.numel() / std::max<int64_t>(have * lines, 1);
    shape[1] = channels;
    NDArray out = NDArray::Empty(shape, kInt8);
    std::fill_n(out.ptr<int8_t>(), out.numel(), int8_t{0});
    for (int64_t o = 0; o < lines; ++o) {
      std::copy_n(w.ptr<int8_t>() + o * have * window, have * window, out.ptr<int8_t>() + o * channels * window);
    }
    return out;
  }

  QuantizedValues values_;
  ByteTables tables_;
  Target target_;
};

}  // namespace

Pass IntegerProducts() {
  return MakePass<IntegerProducts>({
      .doc = "Computes products and convolutions with constant weights of 8 bits on integers, by kernels that add four "
             "products of bytes at a time: those of qnn.dequantize, and those of bytes less a zero point. Sums are "
             "exact. What is quantized after concatenate is quantized before it.",
      .opt_level = 3,
      .required = {"InferType"},
      .reassociates = true,
      .run = [](Function f, IRModule, PassContext) -> Function {
        const Target target = Target::Current();
        return target->traits().vector_kernels ? Downcast<Function>(Maker(f, target).Mutate(f)) : f;
      },
  });
}

namespace {
const RegisterPass<IntegerProducts> registered_integer_products;
}  // namespace

}  // namespace baton::relay::transform
