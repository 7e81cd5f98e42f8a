// SPDX-License-Identifier: Apache-2.0
#include "rpc/key.h"

#include <baton/support/file.h>
#include <baton/support/sha256.h>
#include <baton/support/text.h>
#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "rpc/errors.h"

namespace baton::rpc {
using support::Cat;
namespace {

constexpr std::string_view kHead = "baton-rpc-key 1";
constexpr size_t kSecret = 32;

std::string Random(size_t size) {
  std::string out(size, '\0');
  if (getrandom(out.data(), size, 0) != static_cast<ssize_t>(size)) ThrowSystem(kRpcError, "no random bytes");
  return out;
}

std::string Hex(std::string_view bytes) {
  return support::ToHex(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
}

int Digit(char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; }

/// The bytes of lower-case hexadecimal digits; empty for another text.
std::string FromHex(std::string_view text) {
  std::string out;
  if (text.size() % 2) return out;
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
  key.id = Hex(Random(8));
  key.name = name;
  key.secret = Random(kSecret);
  return key;
}

Key Key::Read(const std::string& path) {
  struct stat info{};
  if (stat(path.c_str(), &info) != 0) ThrowSystem(kDenied, Cat("the key file `", path, "` cannot be read"));
  if (info.st_mode & 077) {
    Throw(kDenied, Cat("the key file `", path, "` may be read by others; mend with: chmod 600 ", path));
  }
  const std::string text = support::ReadFile(path, 1 << 16);
  std::string_view rest = text;
  const auto line = [&rest] {
    const size_t end = rest.find('\n');
    const std::string_view one = rest.substr(0, end);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    return one;
  };
  if (line() != kHead) Throw(kDenied, Cat("`", path, "` is no key file; `baton rpc-key new` writes one"));
  Key key;
  while (!rest.empty()) {
    const std::string_view one = line();
    const size_t colon = one.find(": ");
    const std::string_view word = one.substr(0, colon);
    const std::string_view value = colon == std::string_view::npos ? "" : one.substr(colon + 2);
    if (word == "id") key.id = value;
    if (word == "name") key.name = value;
    if (word == "key") key.secret = FromHex(value);
    if (word == "policy") key.policy = value;
    if (word == "allow") key.allow = SplitWords(value);
  }
  if (key.secret.size() != kSecret || FromHex(key.id).size() != 8) {
    Throw(kDenied, Cat("the key file `", path, "` is cut or was changed"));
  }
  if (key.policy != "session" && key.policy != "trusted") {
    Throw(kDenied, Cat("`", path, "`: policy `", key.policy, "` is unknown; there are session and trusted"));
  }
  return key;
}

void Key::Save(const std::string& path) const {
  std::string text = Cat(kHead, "\nid: ", id, "\nname: ", name, "\nkey: ", Hex(secret), "\npolicy: ", policy, "\n");
  if (!allow.empty()) {
    text += "allow:";
    for (const std::string& one : allow) text += Cat(" ", one);
    text += "\n";
  }
  // Never a moment under its name with other rights: a new file, then renamed.
  const std::string temporary = Cat(path, ".", Hex(Random(4)));
  const int fd = open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) ThrowSystem("OSError", Cat("cannot write `", path, "`"));
  const bool written = write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  close(fd);
  if (!written || rename(temporary.c_str(), path.c_str()) != 0) {
    unlink(temporary.c_str());
    ThrowSystem("OSError", Cat("cannot write `", path, "`"));
  }
}

std::string Key::TlsKey() const { return HmacSha256(secret, Cat("baton-rpc 1 tls psk ", id)); }

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
