// SPDX-License-Identifier: Apache-2.0
/// \file deferred_nodes.h
/// `dyn.onnx`: an ONNX node that waits for the values or lengths of its operands. Its static form imports the node with
/// the values known by then, so that every ONNX operator has a dynamic form without its own `dyn.` operator.
#pragma once

#include "importer.h"

namespace baton::onnx {

constexpr const char* kDeferredOp = "dyn.onnx";
/// The same for nodes about sequences and optionals, which have no static form: a function of the host computes them.
constexpr const char* kHostValueOp = "dyn.onnx_value";

/// Attributes of the call: the node, the operator set, which operands are there, and the types of the results.
NamedAttrs DeferredAttributes(const Node& node, int64_t opset, const std::vector<bool>& present, const Values& types);

}  // namespace baton::onnx
