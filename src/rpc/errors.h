// SPDX-License-Identifier: Apache-2.0
// The kinds of errors of remote sessions; Python has a class for each, below RPCError.
#pragma once

#include <baton/runtime/error.h>

#include <string_view>

namespace baton::rpc {

inline constexpr const char* kTimeout = "rpc.Timeout";              ///< a deadline passed
inline constexpr const char* kSessionLost = "rpc.SessionLost";      ///< the connection ended, or the server is full
inline constexpr const char* kDenied = "rpc.Denied";                ///< wrong key, or not allowed by the policy
inline constexpr const char* kProtocolError = "rpc.ProtocolError";  ///< bytes other than a message
inline constexpr const char* kVersionError = "rpc.VersionError";    ///< peers of versions that do not know each other
inline constexpr const char* kOutOfMemory = "rpc.OutOfMemory";      ///< memory or a quota of the remote is used up
inline constexpr const char* kRemoteError = "rpc.RemoteError";      ///< a function of the remote failed
inline constexpr const char* kRpcError = "RPCError";                ///< any other fault of a session

[[noreturn]] void Throw(const char* kind, std::string_view message);
/// Throws `kind` with the system's text for errno behind the message.
[[noreturn]] void ThrowSystem(const char* kind, std::string_view message);

}  // namespace baton::rpc
