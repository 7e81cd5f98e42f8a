// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <baton/relay/expr.h>
#include <baton/support/pages.h>
#include <baton/support/pointer_map.h>
#include <relay/expr/expr_index.h>

namespace baton::relay {

/// Nodes whose evaluation may do more than give a value, or give another one later: state, references, calls of
/// functions that are not known. Bodies of functions count where they are called.
PointerSet ImpureNodes(const Expr& expr);
/// The same by number: 1 for such a node, 0 for others.
support::PageStack<uint8_t> ImpureNumbers(const ExprIndex& graph);

}  // namespace baton::relay
