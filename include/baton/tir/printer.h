// SPDX-License-Identifier: Apache-2.0
// PrimFuncs as text.
#pragma once

#include <baton/tir/stmt.h>

#include <string>

namespace baton::tir {

/// Text of a PrimFunc, statement, expression, buffer, tensor or other node of TIR. Names are made unique by a number;
/// a Ramp of stride 1 prints as `base:base+lanes`, a literal that is not int64 or float32 with its dtype.
BATON_DLL std::string AsText(const ObjectRef& node);

}  // namespace baton::tir
