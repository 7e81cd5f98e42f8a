// SPDX-License-Identifier: Apache-2.0
// Scalars, names and strings of Relay text, for the printer and the parser.
#pragma once

#include <baton/runtime/ndarray.h>

#include <string>
#include <string_view>

namespace baton::relay {

/// Shortest digits that read back to the same value.
std::string DoubleText(double v);
/// `2f`, `1`, `True`, `3i64`, `-0.5f16` for a finite scalar; false if its dtype has no such form.
bool ScalarText(const NDArray& scalar, std::string* out);
/// The scalar of digits (sign included) and suffix ("" int32 or float32, "f", "f64", "i8", "u16", "bf16"); null array
/// if the suffix is unknown or the value does not fit.
NDArray ScalarFrom(std::string_view digits, std::string_view suffix);
/// In double quotes, with escapes.
void QuoteText(std::string_view s, std::string* out);
/// Letters, digits and `_`, not beginning with a digit.
bool IsName(std::string_view s);

}  // namespace baton::relay
