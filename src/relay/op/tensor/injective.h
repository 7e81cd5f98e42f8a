// SPDX-License-Identifier: Apache-2.0
// Operators of one input that read each element in place.
#pragma once

#include "../common.h"

namespace baton::relay {

inline Op DefineInjective(const char* name, const char* doc, const char* input, const char* output,
                          const char* (*attrs)(), TypeRelationFn rel, LowerFn lower, OpGradient gradient,
                          const char* source, const OpTraits& traits = {}) {
  return DefineOp({.name = name,
                   .doc = doc,
                   .inputs = {{"data", input}},
                   .output = output,
                   .attrs = attrs,
                   .type_rel = rel,
                   .lower = lower,
                   .gradient = gradient,
                   .pattern = OpPattern::kInjective,
                   .source = source,
                   .traits = traits});
}

}  // namespace baton::relay
