// SPDX-License-Identifier: Apache-2.0
/// \file loops.h
/// What control flow and sequences are made of.
#pragma once

#include <functional>
#include <optional>

#include "common.h"
#include "frontend/onnx/import/importer_impl.h"

namespace baton::onnx {

bool AnyPoison(const Values& v);
Values Poison(size_t n);
/// A value of this type; lengths other than literals are unknown.
Value FromExpr(const relay::Expr& expr, const baton::Type& type);
Value TupleOf(const Values& items);
/// The only element of a tensor.
Value Scalar0(Ctx& c, const Value& v);
/// `let loop = fn (vars) { body }; loop(first)`.
relay::Expr CallOfLoop(const relay::Var& loop, const Array<relay::Var>& vars, const relay::Expr& body,
                       const Array<relay::Expr>& first);

/// A loop is unrolled up to this many iterations.
constexpr int64_t kMaxIterations = 1024;
/// Whether a loop of so many rounds is better as that many copies of its body.
bool Unrolls(const Graph& body, int64_t rounds);
/// Whether the tensor is computed: as part of a loop's function it would be so in each round.
bool IsComputed(const Value& v);

/// The values that the body of a loop reads from outside and that are computed there. The loop passes them on from
/// round to round.
struct Outside {
  Outside(const Graph& body, const Env* env);
  /// The surroundings with `now`, parameters of the loop, as these values.
  Env Within(const Env* env, const Value* now) const;

  std::vector<std::string_view> names;
  Values values;
};

/// A loop of `rounds` rounds, whose value is `last`, as one function, in which weights are held once:
/// `loop(i, over, state..., rows...)` calls itself. `rounds` is a literal, a symbol, or -1 where the number is known
/// only when the model runs. `step(i, state)` gives the state and `scans` rows of a round, none where a loop does not
/// go on for certain. Row k of round i is at i, or counted from the end where `backward[k]`. Nothing where types
/// change, or a type is not known.
std::optional<Values> CountedLoop(Ctx& c, int64_t rounds, const Value& last, const Values& state, size_t scans,
                                  const std::vector<bool>& backward,
                                  const std::function<Values(const Value& i, const Values& state)>& step);

}  // namespace baton::onnx
