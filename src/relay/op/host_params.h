// SPDX-License-Identifier: Apache-2.0
// Attributes as what functions of the host take.
#pragma once

#include <baton/host/function.h>
#include <baton/relay/op.h>

namespace baton::relay {

/// The attributes of a call, by name. Throws UnsupportedError for one that is not a plain value.
host::Params HostParams(const Op& op, const Attrs& attrs);

/// The global function that computes a call, with its parameters; no name where none is registered, as for a function
/// of a program's own operator.
HostCall HostCallOf(const Op& op, const Attrs& attrs);

}  // namespace baton::relay
