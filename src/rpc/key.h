// SPDX-License-Identifier: Apache-2.0
// Keys: 256 random bits with an id and a name, in a file that its owner alone may read.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace baton::rpc {

/// The modules of a client's uploads that are loaded.
enum class Load : uint8_t { kNone, kSigned, kAny };

/// A key, or a token made of one: what its holder proves, and what it may do.
struct Key {
  std::string id;                  ///< 16 hexadecimal digits, of a token with its caveats behind them; public
  std::string name;                ///< for people and audit lines
  std::string secret;              ///< 32 bytes
  std::string policy = "session";  ///< "trusted": all registered functions
  /// Registered functions that the `session` policy lets through; `*` at the end: any that begin so.
  std::vector<std::string> allow;
  Load load = Load::kAny;
  int64_t expires = 0;                               ///< seconds since 1970; 0: never
  uint64_t memory = 0, disk = 0, cpu = 0, wall = 0;  ///< bytes and seconds of a session; 0: as the server says
  std::vector<std::string> devices;                  ///< "cpu", "cuda", "cuda:1"; none: any
  std::vector<std::string> caveats;                  ///< of a token
  bool token = false;

  static Key New(std::string_view name);
  /// Reads the file of a key or token. Throws when others than its owner may read it.
  static Key Read(const std::string& path);
  /// The keys of a server: of a file, or of a folder (*.key) without those that its file `revoked` names by their id.
  static std::vector<Key> ReadAll(const std::string& path);
  /// The rights of the owner of a certificate, of the file NAME.policy in a folder: the lines of a key file but for the
  /// key. Throws Denied where there is none. Without a folder: what a session may.
  static Key OfCertificate(const std::string& folder, const std::string& name);
  void Save(const std::string& path) const;
  /// A token that may do less: "expires=1790000000", "allow=my.*", "policy=session", "load=signed", "memory=BYTES",
  /// "disk=BYTES", "cpu=SECONDS", "wall=SECONDS", "devices=cpu,cuda:1". Its holder can make one that may do still less.
  Key Narrowed(std::string_view caveat) const;
  /// The token of an identity that a client says; `this` is the key that it begins with.
  Key TokenOf(std::string_view identity) const;
  /// Takes away what a caveat does. Throws Denied for one that is not known.
  void Narrow(std::string_view caveat);
  bool Expired() const;
  /// The pre-shared key for TLS. Not the secret itself, so that other uses of the key stay apart.
  std::string TlsKey() const;

 private:
  /// Takes the lines of a file; gives the first one.
  std::string_view ReadLines(std::string_view text);
};

/// Whether one of the names, with `*` at their end or none, stands for a name or pattern.
bool AnyCovers(const std::vector<std::string>& names, std::string_view name);
/// Public keys (Ed25519, 32 bytes) of a file of PEM.
std::vector<std::string> ReadSigners(const std::string& path);
/// The 64 bytes of a signature file of `baton sign`; empty for another text.
std::string ReadSignature(std::string_view text);
/// Bytes of the system's random numbers.
std::string RandomBytes(size_t size);
/// Whether two secrets are equal, in a time that says nothing of where they differ: `bench/rpc_constant_time.py`.
bool SameSecret(const void* a, const void* b, size_t size);
/// HMAC with SHA-256 (RFC 2104).
std::string HmacSha256(std::string_view key, std::string_view text);
/// The user's folder for sockets and loopback keys, made if absent: $XDG_RUNTIME_DIR/baton-rpc, else one below the
/// folder of temporary files. Throws when it belongs to another user or others may enter it.
std::string RuntimeDir();
/// The path of the key of a server on loopback.
std::string LoopbackKeyPath(int port);

}  // namespace baton::rpc
