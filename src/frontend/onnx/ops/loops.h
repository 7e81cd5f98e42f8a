// SPDX-License-Identifier: Apache-2.0
/// \file loops.h
/// What control flow and sequences are made of.
#pragma once

#include "common.h"

namespace baton::onnx {

bool AnyPoison(const Values& v);
Values Poison(size_t n);
/// A value of this type; lengths that are no literals are unknown.
Value FromExpr(const relay::Expr& expr, const baton::Type& type);
Value TupleOf(const Values& items);
/// The only element of a tensor.
Value Scalar0(Ctx& c, const Value& v);
/// `let loop = fn (vars) { body }; loop(first)`.
relay::Expr CallOfLoop(const relay::Var& loop, const Array<relay::Var>& vars, const relay::Expr& body,
                       const Array<relay::Expr>& first);

}  // namespace baton::onnx
