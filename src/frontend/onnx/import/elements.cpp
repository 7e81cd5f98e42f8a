// SPDX-License-Identifier: Apache-2.0
// Shape computations on literals and symbols.
#include "elements.h"

#include <baton/arith/extent.h>
#include <baton/tir/op.h>

#include <algorithm>

#include "frontend/onnx/ops/common.h"

namespace baton::onnx {
namespace {

constexpr int64_t kUnknown = Value::kUnknown;
constexpr int64_t kMostElementsKnown = 64;

bool IsShort(const Value& v) {
  return v.kind == Value::kTensor && v.rank() >= 0 && v.rank() <= 1 && (v.dtype.is_int() || v.dtype.is_bool());
}

Dims IntsOf(const NamedAttrs& attrs, std::string_view name) {
  for (const auto& [key, value] : attrs) {
    if (name == key) return value.As<Array<int64_t>>().ToVector();
  }
  return {};
}

/// One operation on numbers of which one at least stands for an expression.
int64_t FoldSymbols(Symbols* symbols, std::string_view op, int64_t a, int64_t b) {
  const PrimExpr x = symbols->ValueOf(a), y = symbols->ValueOf(b);
  auto number = [&](const PrimExpr& e) {
    const int64_t v = symbols->NumberOf(e);
    // -1 is a value here as well as what stands for an unknown length.
    return v == -1 && !tir::as_const_int(arith::CanonicalExtent(e)) ? kUnknown : v;
  };
  auto decided = [&](const PrimExpr& condition) {
    const arith::Fact f = arith::ExtentCondition(condition);
    if (f != arith::Fact::kOpen) return int64_t{f == arith::Fact::kYes};
    return number(tir::Select(condition, PrimExpr(1), PrimExpr(0)));
  };
  const bool never_negative = arith::ExtentAtLeast(x, 0) == arith::Fact::kYes;
  const bool by_positive = !Symbols::IsSymbol(b) && b > 0;
  if (op == "add") return number(x + y);
  if (op == "subtract") return number(x - y);
  if (op == "multiply") return number(x * y);
  if (op == "maximum") return number(max(x, y));
  if (op == "minimum") return number(min(x, y));
  if (op == "floor_divide" || (op == "divide" && never_negative)) {
    return by_positive || (Symbols::IsSymbol(b) && never_negative) ? number(floordiv(x, y)) : kUnknown;
  }
  if (op == "floor_mod" || (op == "mod" && never_negative)) return by_positive ? number(floormod(x, y)) : kUnknown;
  if (op == "equal") return decided(tir::EQ(x, y));
  if (op == "not_equal") return decided(tir::NE(x, y));
  if (op == "less") return decided(tir::LT(x, y));
  if (op == "less_equal") return decided(tir::LE(x, y));
  if (op == "greater") return decided(tir::GT(x, y));
  if (op == "greater_equal") return decided(tir::GE(x, y));
  return kUnknown;
}

int64_t FoldTwo(Symbols* symbols, std::string_view op, int64_t a, int64_t b, const NamedAttrs& attrs) {
  if (a == kUnknown || b == kUnknown) return kUnknown;
  if (Symbols::IsSymbol(a) || Symbols::IsSymbol(b)) return FoldSymbols(symbols, op, a, b);
  HostPtr one =
      EvaluateCall(op, {HostFromInts(DataType::Int(64), {}, {a}), HostFromInts(DataType::Int(64), {}, {b})}, attrs);
  return one != nullptr && !one->dtype.is_floating() ? one->IntAt(0) : kUnknown;
}

bool Concatenated(const Values& args, Dims* out) {
  for (const Value& a : args) {
    auto part = ElementsOf(a);
    if (part == nullptr) {
      if (!a.fixed() || Product(a.dims) > kMostElementsKnown) return false;
      part = std::make_shared<Dims>(static_cast<size_t>(Product(a.dims)), kUnknown);
    }
    out->insert(out->end(), part->begin(), part->end());
  }
  return true;
}

/// Element i of a list that is as long as the result or has one element for all.
int64_t Spread(const Dims& x, size_t i) { return x[x.size() == 1 ? 0 : i]; }

bool Elementwise(Symbols* symbols, std::string_view op, const std::vector<std::shared_ptr<const Dims>>& in,
                 const NamedAttrs& attrs, Dims* out) {
  size_t n = 1;
  for (const auto& x : in) n = x->size() == 1 ? n : x->size();
  for (const auto& x : in) {
    if (x->size() != n && x->size() != 1) return false;
  }
  for (size_t i = 0; i < n; ++i) {
    if (op == "where") {
      const int64_t c = Spread(*in[0], i), a = Spread(*in[1], i), b = Spread(*in[2], i);
      out->push_back(c == kUnknown || Symbols::IsSymbol(c) ? (a == b ? a : kUnknown) : c ? a : b);
    } else {
      out->push_back(FoldTwo(symbols, op, Spread(*in[0], i), Spread(*in[1], i), attrs));
    }
  }
  return true;
}

bool Reduced(Symbols* symbols, std::string_view op, const Dims& x, Dims* out) {
  const char* by = op == "prod" ? "multiply" : op == "sum" ? "add" : op == "max" ? "maximum" : "minimum";
  if (x.empty()) return false;
  int64_t all = x[0];
  for (size_t i = 1; i < x.size(); ++i) all = FoldTwo(symbols, by, all, x[i], {});
  out->push_back(all);
  return true;
}

/// The elements of a call whose operands are known in part; false where nothing is said about the operator.
bool Fold(Symbols* symbols, std::string_view op, const Values& args, const NamedAttrs& attrs, bool to_bool, Dims* out) {
  if (op == "shape_of") {
    for (int64_t d : args[0].dims) out->push_back(d < 0 && !Symbols::IsSymbol(d) ? kUnknown : d);
    return true;
  }
  if (op == "concatenate") return Concatenated(args, out);
  std::vector<std::shared_ptr<const Dims>> in;
  for (const Value& a : args) {
    in.push_back(ElementsOf(a));
    if (in.back() == nullptr) return false;
  }
  if (in.empty()) return false;
  const Dims& x = *in[0];
  if (op == "reshape" || op == "squeeze" || op == "expand_dims") {
    *out = x;
    return true;
  }
  if (op == "cast") {
    for (int64_t v : x) out->push_back(to_bool && v != kUnknown ? FoldTwo(symbols, "not_equal", v, 0, {}) : v);
    return true;
  }
  if (op == "take" && args[0].rank() == 1) {
    for (int64_t i : *in[1]) {
      if (i < 0) i += static_cast<int64_t>(x.size());
      out->push_back(i < 0 || i >= static_cast<int64_t>(x.size()) ? kUnknown : x[static_cast<size_t>(i)]);
    }
    return true;
  }
  if (op == "strided_slice") {
    const Dims begin = IntsOf(attrs, "begin"), end = IntsOf(attrs, "end"), step = IntsOf(attrs, "strides");
    if (begin.size() != 1 || (!step.empty() && step[0] != 1) || begin[0] < 0 || Symbols::IsSymbol(end[0])) return false;
    const int64_t n = static_cast<int64_t>(x.size()), last = end[0] < 0 ? end[0] + n : end[0];
    for (int64_t i = begin[0]; i < std::min(n, last); ++i) out->push_back(x[static_cast<size_t>(i)]);
    return true;
  }
  if (args.size() == 1 && (op == "prod" || op == "sum" || op == "max" || op == "min")) {
    return Reduced(symbols, op, x, out);
  }
  if (args.size() == 2 || (args.size() == 3 && op == "where")) return Elementwise(symbols, op, in, attrs, out);
  return false;
}

}  // namespace

std::shared_ptr<const Dims> ElementsOf(const Value& v) {
  if (!IsShort(v)) return nullptr;
  if (v.partial != nullptr) return v.partial;
  if (v.host == nullptr || v.host->is_string || v.host->size() > kMostElementsKnown) return nullptr;
  auto out = std::make_shared<Dims>();
  for (int64_t i = 0; i < v.host->size(); ++i) {
    const int64_t e = v.host->IntAt(i);
    out->push_back(Symbols::IsSymbol(e) ? kUnknown : e);
  }
  return out;
}

std::shared_ptr<const Dims> ElementsOfCall(Symbols* symbols, std::string_view op, const Values& args,
                                           const NamedAttrs& attrs, const Value& result) {
  if (!IsShort(result)) return nullptr;
  auto out = std::make_shared<Dims>();
  if (!Fold(symbols, op, args, attrs, result.dtype.is_bool(), out.get())) return nullptr;
  if (result.fixed() && Product(result.dims) != static_cast<int64_t>(out->size())) return nullptr;
  if (std::all_of(out->begin(), out->end(), [](int64_t v) { return v == kUnknown; })) return nullptr;
  return out;
}

}  // namespace baton::onnx
