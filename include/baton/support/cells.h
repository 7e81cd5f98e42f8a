// SPDX-License-Identifier: Apache-2.0
// Which memory is made of pages of equal cells, as that of objects is (runtime/block.h): tables keyed by the addresses
// of objects then need no hash of an address, only its place in its page.
#pragma once

#include <baton/support/export.h>

#include <cstddef>
#include <cstdint>

namespace baton::support {

/// The begin of such a page. It is a multiple of kCellPage; kCellPageHead bytes behind it the cells follow.
struct CellPage {
  uint32_t bytes;  ///< of a cell; 0: it has none now
};
constexpr int kCellPageBits = 16;
constexpr size_t kCellPage = size_t{1} << kCellPageBits, kCellPageHead = 128;

/// From here on, and for ever, the `bytes` at `p` are cell pages. Both are multiples of 256 KiB.
BATON_DLL void MarkCellPages(void* p, size_t bytes) noexcept;
/// The size of the cell with `p`, 0 if there is none.
BATON_DLL uint32_t CellBytes(const void* p) noexcept;

}  // namespace baton::support
