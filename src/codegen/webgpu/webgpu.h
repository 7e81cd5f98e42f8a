// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <baton/tir/intrin.h>

#include <map>
#include <string>

#include "codegen/kernels/language.h"

namespace baton::codegen::webgpu {

/// WGSL.
extern const kernels::Language kLanguage;
/// Null for intrinsics that all languages have. The column is in intrinsics.cpp.
const source::IntrinText* OwnText(const tir::IntrinDef* row);
const std::map<std::string, std::string>& Builtins();

}  // namespace baton::codegen::webgpu
