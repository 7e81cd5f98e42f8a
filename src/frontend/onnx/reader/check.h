// SPDX-License-Identifier: Apache-2.0
/// \file check.h
/// Checks beyond the schema: every name is defined once and before it is used, and the graph has no cycle.
#pragma once

#include <set>
#include <string_view>

#include "proto.h"

namespace baton::onnx {

/// Checks `model` and sorts the nodes of each graph so that every value is made before it is read (a stable sort: nodes
/// already in order stay where they are).
/// \throws CompileError naming the values and nodes at fault: a cycle, a value nothing defines or two define, a name
///     that is missing, an operator set imported twice or not at all.
BATON_DLL void CheckModel(Model* model);

/// The names that `graph` and the graphs within it read from outside.
BATON_DLL std::set<std::string_view> FreeNames(const Graph& graph);

/// How messages name a node: its name and operator, or its operator and outputs where it has no name.
BATON_DLL std::string NodeLabel(const Node& node);

}  // namespace baton::onnx
