// SPDX-License-Identifier: Apache-2.0
// Operators that run on the host: sorting, sets, random numbers, and others whose result's shape depends on values.
#pragma once

#include <baton/relay/op/tensor.h>

namespace baton::relay {

namespace op {
extern BATON_DLL const Op sort, argsort, unique, argwhere, nonzero, compress, searchsorted, det, cofactor,
    random_uniform, random_normal, random_uniform_like, random_normal_like, random_bernoulli, random_multinomial,
    threefry_generate, threefry_split, incomplete_gamma, orthogonal_polynomial;
}  // namespace op

}  // namespace baton::relay
