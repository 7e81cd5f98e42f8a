// SPDX-License-Identifier: Apache-2.0
#include "symbols.h"

#include <baton/arith/extent.h>
#include <baton/tir/op.h>

#include <algorithm>
#include <cctype>

namespace baton::onnx {

int64_t Symbols::NumberOf(const PrimExpr& extent) {
  if (const int64_t* v = tir::as_const_int(extent)) return *v;
  PrimExpr e = extent;
  if (!arith::ToCanonicalExtent(&e)) return -1;
  if (const int64_t* v = tir::as_const_int(e)) return *v;
  auto [it, fresh] = numbers_.try_emplace(arith::ExtentText(e), kFirst + static_cast<int64_t>(exprs_.size()));
  if (fresh) exprs_.push_back(e);
  return it->second;
}

std::optional<int64_t> Symbols::NumberOfValue(const PrimExpr& e) {
  if (!e.defined()) return std::nullopt;
  const int64_t v = NumberOf(e);
  if (v == -1 && tir::as_const_int(e) == nullptr) return std::nullopt;
  return v;
}

PrimExpr Symbols::ExprOf(int64_t v) const {
  if (IsSymbol(v)) return exprs_.at(static_cast<size_t>(v - kFirst));
  return v < 0 ? PrimExpr(tir::AnyDim()) : PrimExpr(v);
}

PrimExpr Symbols::ValueOf(int64_t v) const { return IsSymbol(v) ? ExprOf(v) : PrimExpr(v); }

PrimExpr Symbols::Named(const std::string& name) {
  auto [it, fresh] = named_.try_emplace(name);
  if (fresh) it->second = tir::SizeVar(String(name));
  return it->second;
}

namespace {

/// Sums and products of names and numbers.
struct FormulaReader {
  std::string_view text;
  const std::vector<std::string>& plain;
  Symbols* symbols;
  size_t at = 0;
  bool good = true;

  void Skip() {
    while (at < text.size() && text[at] == ' ') ++at;
  }
  bool Take(char c) {
    Skip();
    if (at >= text.size() || text[at] != c) return false;
    ++at;
    return true;
  }
  PrimExpr Atom() {
    Skip();
    const size_t begin = at;
    if (Take('(')) {
      PrimExpr e = Sum();
      good = good && Take(')');
      return e;
    }
    auto word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.'; };
    while (at < text.size() && word(text[at])) ++at;
    const std::string name(text.substr(begin, at - begin));
    if (!name.empty() && name.size() < 10 &&
        std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; })) {
      return PrimExpr(int64_t{std::stoll(name)});
    }
    good = good && std::find(plain.begin(), plain.end(), name) != plain.end();
    return good ? symbols->Named(name) : PrimExpr(1);
  }
  PrimExpr Product() {
    PrimExpr e = Atom();
    while (good && Take('*')) e = e * Atom();
    return e;
  }
  PrimExpr Sum() {
    PrimExpr e = Product();
    for (;;) {
      if (good && Take('+')) {
        e = e + Product();
      } else if (good && Take('-')) {
        e = e - Product();
      } else {
        return e;
      }
    }
  }
};

}  // namespace

PrimExpr Symbols::Formula(std::string_view text, const std::vector<std::string>& plain) {
  const std::string name(text);
  if (std::find(plain.begin(), plain.end(), name) == plain.end()) {
    FormulaReader reader{text, plain, this};
    PrimExpr e = reader.Sum();
    reader.Skip();
    if (reader.good && reader.at == text.size()) return arith::CanonicalExtent(e);
  }
  return Named(name);
}

}  // namespace baton::onnx
