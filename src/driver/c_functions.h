// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <baton/ir/module.h>

#include <string>

namespace baton::driver {

/// Returns the name of a C function that PrimFuncs call (`IntrinDef::calls_c`) and that no library of this process has;
/// "" where it has all.
std::string AbsentCFunction(const IRModule& tir);
/// Throws RuntimeError that says what to load; nothing for "".
void ThrowIfAbsent(const std::string& function);

}  // namespace baton::driver
