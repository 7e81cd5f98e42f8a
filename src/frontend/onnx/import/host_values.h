// SPDX-License-Identifier: Apache-2.0
/// \file host_values.h
/// Sequences whose length, and optionals whose presence, are known only when a model runs. To Relay they are values
/// that functions of the host make and take; the importer knows what their elements look like.
#pragma once

#include "importer.h"

namespace baton::onnx {

/// The version that nodes mean which the importer makes itself.
constexpr int64_t kOpset = 16;

inline bool IsHostValue(const Value& v) {
  return v.kind == Value::kSequence || v.kind == Value::kOptional || v.kind == Value::kText;
}

/// A sequence, or an optional, of what looks like `element`; one of an absent value says nothing of its elements.
Value HostValueOf(Value::Kind kind, const Value& element);
/// The known contents of a sequence or optional; absent where nothing is known.
Value ElementOf(const Value& v);
/// Whether a node is one of those that strings of a call go to, which functions of the host compute.
bool TakesTexts(const Node& node);
/// A tensor of strings of these lengths.
Value TextOf(const Dims& dims);
/// A value of the declared type, without an expression; absent for a type that no value has.
Value OfType(const Type& type);
/// `v` known as `like` is.
Value FormedAs(Value v, const Value& like);
/// Whether values are of one Relay type.
bool SameType(const Value& a, const Value& b);
/// The common type of both: lengths that differ become unknown, tuples of several lengths a sequence, a value or none
/// an optional. False where no form is common to both.
bool Join(const Value& a, const Value& b, Value* out);

}  // namespace baton::onnx
