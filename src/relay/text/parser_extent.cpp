// SPDX-License-Identifier: Apache-2.0
// Extents in types and attributes: numbers, names and arithmetic on them.
#include <baton/arith/extent.h>
#include <baton/support/stack.h>
#include <baton/tir/op.h>
#include <relay/text/parser.h>

namespace baton::relay {
namespace {

bool IsFunction(std::string_view name) {
  return name == "floordiv" || name == "min" || name == "max" || name == "select";
}

}  // namespace

bool Parser::BeginsExtent() {
  return Is(Tok::kName) && (IsFunction(tok_.text) ? Peek().kind == Tok::kLParen : dims_.count(tok_.text) != 0);
}

PrimExpr Parser::ExtentAtom() {
  return support::WithStack([&]() -> PrimExpr {
    Nest nest(this);
    const Token t = tok_;
    if (Accept(Tok::kMinus)) return PrimExpr(-1) * ExtentAtom();
    if (Is(Tok::kNumber)) {
      int64_t v = Integer(t, false);
      if (!t.suffix.empty()) Fail(t, "a dimension is a plain number");
      Advance();
      return PrimExpr(v);
    }
    if (Accept(Tok::kLParen)) {
      PrimExpr e = ExtentSum();
      Expect(Tok::kRParen, "`)`", "after the dimension");
      return e;
    }
    if (Is(Tok::kName) && IsFunction(t.text) && Peek().kind == Tok::kLParen) {
      Advance(), Advance();
      PrimExpr condition;
      if (t.text == "select") {
        condition = ExtentCondition();
        Expect(Tok::kComma, "`,`", "after the condition");
      }
      PrimExpr a = ExtentSum();
      Expect(Tok::kComma, "`,`", "here");
      PrimExpr b = ExtentSum();
      Expect(Tok::kRParen, "`)`", "after the dimension");
      if (condition.defined()) return tir::Select(condition, a, b);
      return t.text == "floordiv" ? floordiv(a, b) : t.text == "min" ? min(a, b) : max(a, b);
    }
    if (!Is(Tok::kName)) Unexpected("a dimension: a number, `?` or a name");
    Advance();
    auto [it, fresh] = dims_.try_emplace(t.text);
    if (fresh) it->second = tir::SizeVar(String(t.text));
    return it->second;
  });
}

PrimExpr Parser::ExtentProduct(PrimExpr first) {
  PrimExpr e = first.defined() ? first : ExtentAtom();
  while (Accept(Tok::kStar)) e = e * ExtentAtom();
  return e;
}

PrimExpr Parser::ExtentSum(PrimExpr first) {
  PrimExpr e = ExtentProduct(first);
  for (;;) {
    if (Accept(Tok::kPlus)) {
      e = e + ExtentProduct();
    } else if (Accept(Tok::kMinus)) {
      e = e - ExtentProduct();
    } else {
      return e;
    }
  }
}

PrimExpr Parser::ExtentCondition() {
  return support::WithStack([&]() -> PrimExpr {
    Nest nest(this);
    const Token t = tok_;
    if (Is(Tok::kName) && (t.text == "not" || t.text == "and" || t.text == "or") && Peek().kind == Tok::kLParen) {
      Advance(), Advance();
      PrimExpr a = ExtentCondition(), out = a;
      if (t.text == "not") {
        out = tir::Not(a);
      } else {
        Expect(Tok::kComma, "`,`", "here");
        PrimExpr b = ExtentCondition();
        out = t.text == "and" ? PrimExpr(tir::And(a, b)) : PrimExpr(tir::Or(a, b));
      }
      Expect(Tok::kRParen, "`)`", "after the condition");
      return out;
    }
    PrimExpr a = ExtentSum();
    if (Accept(Tok::kEqual)) return tir::EQ(a, ExtentSum());
    Expect(Tok::kGreaterEqual, "`==` or `>=`", "within the condition");
    return tir::GE(a, ExtentSum());
  });
}

PrimExpr Parser::ExtentExpr(PrimExpr first) {
  const Token t = tok_;
  try {
    return arith::CanonicalExtent(ExtentSum(first));
  } catch (const CompileError& e) {
    if (e.ends_work()) throw;
    Fail(t, e.message());
  }
}

}  // namespace baton::relay
