// SPDX-License-Identifier: Apache-2.0
// Arithmetic on lengths that are literals or symbols.
#include <baton/runtime/checked.h>
#include <baton/tir/op.h>

#include <algorithm>

#include "elements.h"
#include "importer_impl.h"

namespace baton::onnx {

using runtime::Checked;

bool Ctx::IsSymbol(int64_t length) { return Symbols::IsSymbol(length); }

bool Ctx::Sized(const Value& v) {
  return v.ranked && std::all_of(v.dims.begin(), v.dims.end(), [](int64_t d) { return d >= 0 || IsSymbol(d); });
}

int64_t Ctx::Length(const Value& v, int i) const {
  const int rank = Rank(v);
  const int at = i < 0 ? i + rank : i;
  if (at >= 0 && at < rank && IsSymbol(v.dims[static_cast<size_t>(at)])) return v.dims[static_cast<size_t>(at)];
  return Dim(v, i);
}

const Dims& Ctx::Lengths(const Value& v) const {
  for (int i = 0; i < Rank(v); ++i) Length(v, i);
  return v.dims;
}

std::vector<std::optional<int64_t>> Ctx::PartlyKnownLengths(const Value& v) const {
  std::vector<std::optional<int64_t>> out;
  const auto known = v.host == nullptr ? ElementsOf(v) : nullptr;
  if (known == nullptr) {
    for (int64_t i : KnownInts(v)) out.emplace_back(i);
    return out;
  }
  for (const PrimExpr& e : *known) out.push_back(importer_->symbols()->NumberOfValue(e));
  return out;
}

Dims Ctx::KnownLengths(const Value& v) const {
  if (v.host != nullptr || ElementsOf(v) == nullptr) return KnownInts(v);
  Dims out;
  for (const std::optional<int64_t>& n : PartlyKnownLengths(v)) {
    if (!n) return KnownInts(v);
    out.push_back(*n);
  }
  return out;
}

int64_t Ctx::Plus(int64_t a, int64_t b) const {
  if (!IsSymbol(a) && !IsSymbol(b)) return Checked(a) + b;
  Symbols* s = importer_->symbols();
  return s->NumberOf(s->ValueOf(a) + s->ValueOf(b));
}
int64_t Ctx::Minus(int64_t a, int64_t b) const {
  if (!IsSymbol(a) && !IsSymbol(b)) return Checked(a) - b;
  Symbols* s = importer_->symbols();
  return s->NumberOf(s->ValueOf(a) - s->ValueOf(b));
}
int64_t Ctx::Times(int64_t a, int64_t b) const {
  if (!IsSymbol(a) && !IsSymbol(b)) return Checked(a) * b;
  Symbols* s = importer_->symbols();
  return s->NumberOf(s->ValueOf(a) * s->ValueOf(b));
}
int64_t Ctx::Over(int64_t a, int64_t b) const {
  Symbols* s = importer_->symbols();
  return s->NumberOf(floordiv(s->ValueOf(a), s->ValueOf(b)));
}
int64_t Ctx::Most(int64_t a, int64_t b) const {
  if (!IsSymbol(a) && !IsSymbol(b)) return std::max(a, b);
  Symbols* s = importer_->symbols();
  return s->NumberOf(max(s->ValueOf(a), s->ValueOf(b)));
}
int64_t Ctx::Volume(const Dims& dims, size_t begin, size_t end) const {
  int64_t n = 1;
  for (size_t i = begin; i < end; ++i) n = Times(n, dims[i]);
  return n;
}

bool Ctx::AssumeEqual(int64_t a, int64_t b) const { return a == b || importer_->AssumeEqual(a, b); }

bool Ctx::Broadcast(const Dims& a, const Dims& b, Dims* out) const {
  const size_t n = std::max(a.size(), b.size());
  out->assign(n, 1);
  for (size_t i = 0; i < n; ++i) {
    const int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1, y = i < b.size() ? b[b.size() - 1 - i] : 1;
    const int64_t d = importer_->BroadcastLength(x, y);
    if (d == INT64_MIN) return false;
    (*out)[n - 1 - i] = d;
  }
  return true;
}

}  // namespace baton::onnx
