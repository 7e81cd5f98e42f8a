// SPDX-License-Identifier: Apache-2.0
#include "rpc/key.h"

#include <baton/support/file.h>
#include <baton/support/sha256.h>
#include <baton/support/text.h>
#include <dirent.h>
#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "rpc/errors.h"

namespace baton::rpc {
using support::Cat;
namespace {

constexpr std::string_view kHead = "baton-rpc-key 1", kTokenHead = "baton-rpc-token 1";
constexpr std::string_view kPolicyHead = "baton-rpc-policy 1";
constexpr size_t kMostIdentity = 250;  // OpenSSL takes 256 bytes
constexpr std::string_view kLoads[] = {"none", "signed", "any"};
constexpr size_t kSecret = 32;

std::string Hex(std::string_view bytes) {
  return support::ToHex(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
}

int Digit(char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; }

/// The bytes of lower-case hexadecimal digits; empty for another text.
std::string FromHex(std::string_view text) {
  std::string out;
  if (text.size() % 2) return out;
  out.reserve(text.size() / 2);  // a secret leaves no copies behind
  for (size_t i = 0; i < text.size(); i += 2) {
    const int high = Digit(text[i]), low = Digit(text[i + 1]);
    if (high < 0 || low < 0) return "";
    out.push_back(static_cast<char>(high * 16 + low));
  }
  return out;
}

std::vector<std::string> SplitWords(std::string_view text) {
  std::vector<std::string> out;
  while (!text.empty()) {
    const size_t end = text.find_first_of(", ");
    if (end != 0) out.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return out;
}

}  // namespace

std::string RandomBytes(size_t size) {
  std::string out(size, '\0');
  if (getrandom(out.data(), size, 0) != static_cast<ssize_t>(size)) ThrowSystem(kRpcError, "no random bytes");
  return out;
}

bool SameSecret(const void* a, const void* b, size_t size) {
  const auto *one = static_cast<const volatile unsigned char*>(a),
             *other = static_cast<const volatile unsigned char*>(b);
  unsigned differs = 0;
  for (size_t i = 0; i < size; ++i) differs |= static_cast<unsigned>(one[i] ^ other[i]);
  return differs == 0;
}

std::string HmacSha256(std::string_view key, std::string_view text) {
  std::string block(64, '\0');
  if (key.size() > block.size()) {
    const auto digest = support::Sha256Of(key.data(), key.size());
    std::memcpy(block.data(), digest.data(), digest.size());
  } else {
    std::memcpy(block.data(), key.data(), key.size());
  }
  std::string inner = block, outer = block;
  for (char& c : inner) c ^= 0x36;
  for (char& c : outer) c ^= 0x5c;
  const auto first = support::Sha256Of((inner.append(text)).data(), 64 + text.size());
  outer.append(reinterpret_cast<const char*>(first.data()), first.size());
  const auto last = support::Sha256Of(outer.data(), outer.size());
  return std::string(reinterpret_cast<const char*>(last.data()), last.size());
}

Key Key::New(std::string_view name) {
  for (const char c : name) {
    if (static_cast<unsigned char>(c) < ' ') Throw("ValueError", "a key's name is one line of text");
  }
  Key key;
  key.id = Hex(RandomBytes(8));
  key.name = name;
  key.secret = RandomBytes(kSecret);
  return key;
}

std::string_view Key::ReadLines(std::string_view text) {
  std::string_view rest = text;
  const auto line = [&rest] {
    const size_t end = rest.find('\n');
    const std::string_view one = rest.substr(0, end);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    return one;
  };
  const std::string_view head = line();
  while (!rest.empty()) {
    const std::string_view one = line();
    const size_t colon = one.find(": ");
    const std::string_view word = one.substr(0, colon);
    const std::string_view value = colon == std::string_view::npos ? "" : one.substr(colon + 2);
    if (word == "id") id = value;
    if (word == "name") name = value;
    if (word == "key") secret = FromHex(value);
    if (word == "policy") policy = value;
    if (word == "allow") allow = SplitWords(value);
    for (const std::string_view limit : {"expires", "load", "memory", "disk", "cpu", "wall", "devices"}) {
      if (word == limit) Narrow(Cat(word, "=", value));
    }
  }
  return head;
}

Key Key::OfCertificate(const std::string& folder, const std::string& name) {
  Key key;
  if (!folder.empty()) {
    for (const char c : name) {
      if (!isalnum(static_cast<unsigned char>(c)) && c != '.' && c != '-' && c != '_') {
        Throw(kDenied, "the name of a certificate has letters, digits and . - _ alone");
      }
    }
    const std::string path = Cat(folder, "/", name, ".policy");
    if (name.empty() || name[0] == '.' || access(path.c_str(), R_OK) != 0) {
      Throw(kDenied, Cat("there is no policy for `", name, "`, a file ", name, ".policy"));
    }
    if (key.ReadLines(support::ReadFile(path, 1 << 16)) != kPolicyHead) {
      Throw(kDenied, Cat("`", path, "` is no policy: its first line is `", kPolicyHead, "`"));
    }
    if (key.policy != "session" && key.policy != "trusted") {
      Throw(kDenied, Cat("`", path, "`: policy `", key.policy, "` is unknown; there are session and trusted"));
    }
  }
  key.name = name;
  key.id = Cat("certificate ", name);
  key.secret.clear();
  if (key.Expired()) Throw(kDenied, Cat("the policy of `", name, "` has expired"));
  return key;
}

Key Key::Read(const std::string& path) {
  struct stat info{};
  if (stat(path.c_str(), &info) != 0)
    ThrowSystem(kDenied, Cat("the key file `", path, "`, which `baton rpc-key new` writes, cannot be read"));
  if (info.st_mode & 077) {
    Throw(kDenied, Cat("the key file `", path, "` may be read by others; mend with: chmod 600 ", path));
  }
  std::string text = support::ReadFile(path, 1 << 16);
  Key key;
  const std::string_view head = key.ReadLines(text);
  key.token = head == kTokenHead;
  const bool known = head == kHead || key.token;
  explicit_bzero(text.data(), text.size());
  if (!known) Throw(kDenied, Cat("`", path, "` is no key file; `baton rpc-key new` writes one"));
  if (key.secret.size() != kSecret || FromHex(std::string_view(key.id).substr(0, 16)).size() != 8 ||
      (key.id.size() > 16) != key.token) {
    Throw(kDenied, Cat("the key file `", path, "` is cut or was changed"));
  }
  if (key.policy != "session" && key.policy != "trusted") {
    Throw(kDenied, Cat("`", path, "`: policy `", key.policy, "` is unknown; there are session and trusted"));
  }
  return key;
}

void Key::Save(const std::string& path) const {
  std::string text = Cat(token ? kTokenHead : kHead, "\nid: ", id, "\nname: ", name, "\nkey: ", Hex(secret), "\n");
  if (!token) {
    text += Cat("policy: ", policy, "\nload: ", kLoads[static_cast<int>(load)], "\n");
    const std::pair<const char*, uint64_t> numbers[] = {
        {"expires", static_cast<uint64_t>(expires)}, {"memory", memory}, {"disk", disk}, {"cpu", cpu}, {"wall", wall}};
    for (const auto& [word, value] : numbers) {
      if (value) text += Cat(word, ": ", value, "\n");
    }
    if (!devices.empty()) {
      text += "devices: ";
      for (const std::string& one : devices) text += Cat(one, &one == &devices.back() ? "\n" : ",");
    }
  }
  if (!token && !allow.empty()) {
    text += "allow:";
    for (const std::string& one : allow) text += Cat(" ", one);
    text += "\n";
  }
  // Never a moment under its name with other rights: a new file, then renamed.
  const std::string temporary = Cat(path, ".", Hex(RandomBytes(4)));
  const int fd = open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) ThrowSystem("OSError", Cat("cannot write `", path, "`"));
  const bool written = write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  close(fd);
  if (!written || rename(temporary.c_str(), path.c_str()) != 0) {
    unlink(temporary.c_str());
    ThrowSystem("OSError", Cat("cannot write `", path, "`"));
  }
}

std::string Key::TlsKey() const { return HmacSha256(secret, Cat("baton-rpc 1 tls psk ", token ? "token " : "", id)); }

std::vector<Key> Key::ReadAll(const std::string& path) {
  struct stat info{};
  std::vector<Key> keys;
  if (stat(path.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) {
    keys.push_back(Read(path));
  } else {
    DIR* all = opendir(path.c_str());
    if (!all) ThrowSystem(kDenied, Cat("the keys in `", path, "` cannot be read"));
    std::vector<std::string> names;
    while (const dirent* e = readdir(all)) {
      const std::string_view name = e->d_name;
      if (name.size() > 4 && name[0] != '.' && name.substr(name.size() - 4) == ".key") names.emplace_back(name);
    }
    closedir(all);
    std::string revoked = "\n";
    const std::string list = Cat(path, "/revoked");
    if (access(list.c_str(), F_OK) == 0) revoked += Cat(support::ReadFile(list, 1 << 20), "\n");
    for (const std::string& name : names) {
      Key key = Read(Cat(path, "/", name));
      if (revoked.find(Cat("\n", key.id, "\n")) == std::string::npos) keys.push_back(std::move(key));
    }
  }
  for (const Key& key : keys) {
    if (key.token) Throw(kDenied, Cat("`", path, "` has a token; a server needs the key that it was made of"));
  }
  return keys;
}

// ---- Tokens. Each caveat is an HMAC over it under the HMAC before: what a holder adds cannot be taken away again.

Key Key::Narrowed(std::string_view caveat) const {
  for (const char c : caveat) {
    if (c <= ' ' || c > '~' || c == ';')
      Throw("ValueError", Cat("`", caveat, "` is no caveat: printable, without `;`"));
  }
  Key out = *this;
  out.Narrow(caveat);
  const std::string before = token ? secret : HmacSha256(secret, Cat("baton-rpc 1 token ", id));
  out.secret = HmacSha256(before, caveat);
  out.id += Cat(";", caveat);
  out.caveats.emplace_back(caveat);
  out.token = true;
  if (out.id.size() > kMostIdentity) {
    Throw("ValueError",
          Cat("the caveats of a token take ", out.id.size(), " bytes with its id, at most ", kMostIdentity));
  }
  return out;
}

Key Key::TokenOf(std::string_view identity) const {
  Key out = *this;
  identity.remove_prefix(id.size());
  while (!identity.empty()) {
    if (identity.front() != ';')
      Throw("ValueError", "an identity is the id of a key and caveats, with `;` before each");
    identity.remove_prefix(1);
    const size_t end = identity.find(';');
    out = out.Narrowed(identity.substr(0, end));
    identity.remove_prefix(end == std::string_view::npos ? identity.size() : end);
  }
  return out;
}

bool Key::Expired() const { return expires != 0 && time(nullptr) >= expires; }

bool AnyCovers(const std::vector<std::string>& names, std::string_view name) {
  for (const std::string& one : names) {
    if (one == name) return true;
    const std::string_view head(one.data(), one.empty() ? 0 : one.size() - 1);
    if (!one.empty() && one.back() == '*' && name.substr(0, head.size()) == head) return true;
  }
  return false;
}

void Key::Narrow(std::string_view caveat) {
  const size_t equals = caveat.find('=');
  const std::string_view word = caveat.substr(0, equals);
  const std::string_view value = equals == std::string_view::npos ? "" : caveat.substr(equals + 1);
  const auto bad = [caveat] { Throw(kDenied, Cat("`", caveat, "` is no caveat of this version")); };
  if (word == "allow") {
    std::vector<std::string> kept;
    for (std::string& one : SplitWords(value)) {
      if (policy == "trusted" || AnyCovers(allow, one)) kept.push_back(std::move(one));
    }
    allow = std::move(kept);
    policy = "session";
  } else if (word == "policy") {
    if (value != "session" && value != "trusted") bad();
    if (value == "session") policy = value;
  } else if (word == "load") {
    size_t found = 0;
    while (found < 3 && kLoads[found] != value) ++found;
    if (found == 3) bad();
    if (static_cast<Load>(found) < load) load = static_cast<Load>(found);
  } else if (word == "devices") {
    std::vector<std::string> kept;
    for (std::string& one : SplitWords(value)) {
      bool covered = devices.empty();
      for (const std::string& d : devices) covered = covered || d == one || one.rfind(Cat(d, ":"), 0) == 0;
      if (covered) kept.push_back(std::move(one));
    }
    if (kept.empty()) kept.push_back("none");
    devices = std::move(kept);
  } else {
    uint64_t number = 0;
    const auto end = std::from_chars(value.data(), value.data() + value.size(), number);
    if (value.empty() || end.ec != std::errc() || end.ptr != value.data() + value.size() || number >> 62) bad();
    const auto less = [number](auto* slot) {
      if (*slot == 0 || number < static_cast<uint64_t>(*slot))
        *slot = static_cast<std::decay_t<decltype(*slot)>>(number);
      if (*slot == 0) *slot = 1;  // 0 says that there is no limit
    };
    if (word == "expires")
      less(&expires);
    else if (word == "memory")
      less(&memory);
    else if (word == "disk")
      less(&disk);
    else if (word == "cpu")
      less(&cpu);
    else if (word == "wall")
      less(&wall);
    else
      bad();
  }
}

// ---- Signatures.

namespace {
/// The bytes of base64; empty for another text.
std::string FromBase64(std::string_view text) {
  std::string out;
  uint32_t bits = 0;
  int have = 0;
  for (const char c : text) {
    int value;
    if (c >= 'A' && c <= 'Z')
      value = c - 'A';
    else if (c >= 'a' && c <= 'z')
      value = c - 'a' + 26;
    else if (c >= '0' && c <= '9')
      value = c - '0' + 52;
    else if (c == '+' || c == '/')
      value = c == '+' ? 62 : 63;
    else if (c == '=' || c == '\n' || c == '\r')
      continue;
    else
      return "";
    bits = bits << 6 | static_cast<uint32_t>(value);
    if ((have += 6) < 8) continue;
    have -= 8;
    out.push_back(static_cast<char>(bits >> have));
  }
  return out;
}
}  // namespace

std::vector<std::string> ReadSigners(const std::string& path) {
  static constexpr std::string_view kBegin = "-----BEGIN PUBLIC KEY-----", kEnd = "-----END PUBLIC KEY-----";
  static constexpr std::string_view kEd25519("\x30\x2a\x30\x05\x06\x03\x2b\x65\x70\x03\x21\x00", 12);
  const std::string text = support::ReadFile(path, 1 << 20);
  std::vector<std::string> out;
  for (size_t at = text.find(kBegin); at != std::string::npos; at = text.find(kBegin, at)) {
    at += kBegin.size();
    const size_t end = text.find(kEnd, at);
    const std::string key = FromBase64(std::string_view(text).substr(at, end == std::string::npos ? 0 : end - at));
    if (key.size() != 44 || key.compare(0, 12, kEd25519) != 0) {
      Throw(kDenied, Cat("`", path, "` has a public key that is none of Ed25519"));
    }
    out.push_back(key.substr(12));
  }
  if (out.empty())
    Throw(kDenied, Cat("`", path, "` has no public key; get one with: openssl pkey -in key.pem -pubout"));
  return out;
}

std::string ReadSignature(std::string_view text) {
  static constexpr std::string_view kFormat = "baton-signature-1 ";
  if (text.substr(0, kFormat.size()) != kFormat) return "";
  const std::string out = FromBase64(text.substr(kFormat.size()));
  return out.size() == 64 ? out : "";
}

std::string RuntimeDir() {
  const char* given = getenv("XDG_RUNTIME_DIR");
  const char* temporary = getenv("TMPDIR");
  const std::string path = given && *given == '/'
                               ? Cat(given, "/baton-rpc")
                               : Cat(temporary && *temporary == '/' ? temporary : "/tmp", "/baton-rpc-", geteuid());
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) ThrowSystem("OSError", Cat("cannot make `", path, "`"));
  struct stat info{};
  if (lstat(path.c_str(), &info) != 0) ThrowSystem("OSError", Cat("cannot use `", path, "`"));
  if (!S_ISDIR(info.st_mode) || info.st_uid != geteuid() || (info.st_mode & 077)) {
    Throw(kDenied, Cat("`", path,
                       "` must be a folder of this user that others cannot enter; remove it, or mend with: "
                       "chmod 700 ",
                       path));
  }
  return path;
}

std::string LoopbackKeyPath(int port) { return Cat(RuntimeDir(), "/", port, ".key"); }

}  // namespace baton::rpc
