// SPDX-License-Identifier: Apache-2.0
// Keys: 256 random bits with an id and a name, in a file that its owner alone may read.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace baton::rpc {

struct Key {
  std::string id;                  ///< 16 hexadecimal digits; public
  std::string name;                ///< for people and audit lines
  std::string secret;              ///< 32 bytes
  std::string policy = "session";  ///< "trusted": all registered functions
  std::vector<std::string>
      allow;  ///< registered functions that the `session` policy lets through; `*` at the end: any that begin so

  static Key New(std::string_view name);
  /// Reads a key file. Throws when others than its owner may read it.
  static Key Read(const std::string& path);
  void Save(const std::string& path) const;
  /// What TLS takes as its pre-shared key. Not the secret itself, so that other uses of the key stay apart.
  std::string TlsKey() const;
};

/// HMAC with SHA-256 (RFC 2104).
std::string HmacSha256(std::string_view key, std::string_view text);
/// The user's folder for sockets and loopback keys, made if absent: $XDG_RUNTIME_DIR/baton-rpc, else one below the
/// folder of temporary files. Throws when it belongs to another user or others may enter it.
std::string RuntimeDir();
/// Where the key of a server on loopback lies.
std::string LoopbackKeyPath(int port);

}  // namespace baton::rpc
