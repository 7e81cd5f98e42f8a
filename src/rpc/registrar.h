// SPDX-License-Identifier: Apache-2.0
// The end of a tracker's connection at the program baton-rpc-server, which needs no Python for it.
#pragma once

#include <baton/runtime/module.h>

#include <string>

namespace baton::rpc {

/// Registers this server in a separate process, which ends with this one. Gives the descriptor of the file that says
/// which lease is current (`ServerOptions::door`). `sessions` is the module of the server: begun, active, evict.
/// Throws when the tracker does not answer or does not take the server.
int StartRegistrar(const std::string& tracker, const std::string& kind, const std::string& url, int port,
                   const runtime::Module& sessions);

}  // namespace baton::rpc
