// SPDX-License-Identifier: Apache-2.0
/// \file domains.h
/// Whose operators a domain has, for errors about them, and which domains have no versions in ONNX's tables.
#pragma once

#include <string>
#include <string_view>

namespace baton::onnx {

/// Whether ONNX Runtime defines the operators of this domain; all of them are version 1.
bool IsOnnxRuntimeDomain(std::string_view domain);

/// Whose operators these are and what to export instead; empty for ONNX's own domains.
std::string DomainAdvice(std::string_view domain);

}  // namespace baton::onnx
