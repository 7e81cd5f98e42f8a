// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <baton/relay/expr.h>
#include <baton/support/pages.h>
#include <baton/support/pointer_map.h>
#include <relay/expr/expr_index.h>

namespace baton::relay {

/// Nodes whose evaluation may have effects or may give another value later: state, references, calls of unknown
/// functions. The body of a function counts where it is called.
PointerSet ImpureNodes(const Expr& expr);
/// The same by id: 1 for such a node, 0 for others.
support::PageStack<uint8_t> ImpureIds(const ExprIndex& graph);

}  // namespace baton::relay
