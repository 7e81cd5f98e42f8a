// SPDX-License-Identifier: Apache-2.0
// TLS 1.3 with a pre-shared key, by OpenSSL 3, which is loaded when it is first needed. No certificates, no tickets, no
// early data, and always a fresh exchange of keys.
#include <baton/runtime/interrupt.h>
#include <baton/support/text.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstring>
#include <mutex>

#include "rpc/channel.h"
#include "rpc/errors.h"
#include "rpc/openssl_api.h"

namespace baton::rpc {
using support::Cat;
namespace {

OpenSsl api;

const OpenSsl& Api() {
  static std::once_flag once;
  std::call_once(once, [] {
    void* library = dlopen("libssl.so.3", RTLD_NOW | RTLD_LOCAL);
    if (!library)
      Throw(kRpcError, Cat("TLS needs OpenSSL 3: install libssl3 (", dlerror(), "), or use unix: or ssh://"));
#define BATON_LOAD(Type, Name, Params) {#Name, reinterpret_cast<void**>(&api.Name)},
    static const struct {
      const char* name;
      void** slot;
    } kFunctions[] = {BATON_OPENSSL_FUNCTIONS(BATON_LOAD)};
#undef BATON_LOAD
    for (const auto& f : kFunctions) {
      *f.slot = dlsym(library, f.name);
      if (!*f.slot) Throw(kRpcError, Cat("the OpenSSL of this system has no `", f.name, "`; version 3 has"));
    }
  });
  return api;
}

std::string Reason() {
  char text[200] = "the connection was closed";
  const unsigned long code = Api().ERR_get_error();  // NOLINT(google-runtime-int): OpenSSL's type
  if (code) Api().ERR_error_string_n(code, text, sizeof text);
  Api().ERR_clear_error();
  return text;
}

/// The session that stands for a key: what TLS 1.3 calls an external pre-shared key.
SSL_SESSION* SessionOf(SSL* ssl, const Key& key) {
  static constexpr unsigned char kAes128GcmSha256[] = {0x13, 0x01};
  const std::string psk = key.TlsKey();
  const SSL_CIPHER* cipher = Api().SSL_CIPHER_find(ssl, kAes128GcmSha256);
  SSL_SESSION* session = Api().SSL_SESSION_new();
  if (!cipher || !session ||
      !Api().SSL_SESSION_set1_master_key(session, reinterpret_cast<const unsigned char*>(psk.data()), psk.size()) ||
      !Api().SSL_SESSION_set_cipher(session, cipher) || !Api().SSL_SESSION_set_protocol_version(session, kTls13)) {
    if (session) Api().SSL_SESSION_free(session);
    return nullptr;
  }
  return session;
}

/// The state of a handshake for the callbacks.
struct Handshake {
  const std::vector<Key>* keys;
  std::shared_ptr<Key> used;
};

int UseKey(SSL* ssl, const EVP_MD*, const unsigned char** id, size_t* size, SSL_SESSION** session) {
  auto* hand = static_cast<Handshake*>(Api().SSL_get_ex_data(ssl, 0));
  const Key& key = hand->keys->front();
  *session = SessionOf(ssl, key);
  *id = reinterpret_cast<const unsigned char*>(key.id.data());
  *size = key.id.size();
  hand->used = std::make_shared<Key>(key);
  return *session != nullptr;
}

int FindKey(SSL* ssl, const unsigned char* id, size_t size, SSL_SESSION** session) {
  auto* hand = static_cast<Handshake*>(Api().SSL_get_ex_data(ssl, 0));
  const std::string_view name(reinterpret_cast<const char*>(id), size);
  *session = nullptr;
  for (const Key& key : *hand->keys) {
    if (key.id != name.substr(0, name.find(';'))) continue;
    try {
      auto used = std::make_shared<Key>(key.TokenOf(name));
      if (used->Expired()) continue;
      *session = SessionOf(ssl, *used);
      // The effect of caveats depends on the server's rights: they are applied to that.
      if (used->token) {
        auto base = std::make_shared<Key>(key);
        base->id = used->id;
        base->caveats = used->caveats;
        base->expires = used->expires;
        base->token = true;
        used = base;
      }
      hand->used = used;
    } catch (const std::exception&) {
      // A token that is none; this function is called by C.
    }
  }
  return 1;  // without a session the handshake goes on and fails for want of a certificate
}

SSL_CTX* NewContext(bool server, const Address& address) {
  const OpenSsl& s = Api();
  SSL_CTX* context = s.SSL_CTX_new(server ? s.TLS_server_method() : s.TLS_client_method());
  if (!context) Throw(kRpcError, Cat("TLS: ", Reason()));
  s.SSL_CTX_ctrl(context, kSetMinVersion, kTls13, nullptr);
  s.SSL_CTX_ctrl(context, kSetMode, kPartialWrite | kMovingBuffer, nullptr);
  s.SSL_CTX_ctrl(context, kSetReadAhead, 1, nullptr);  // a record with one system call: not its head, then the rest
  s.SSL_CTX_ctrl(context, kSetSessionCache, 0, nullptr);
  s.SSL_CTX_set_ciphersuites(context, "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256");
  s.SSL_CTX_set_num_tickets(context, 0);
  if (!address.cert_file.empty()) {
    const char* file = address.cert_file.c_str();
    if (s.SSL_CTX_use_certificate_chain_file(context, file) != 1 ||
        s.SSL_CTX_use_PrivateKey_file(context, file, kPem) != 1 ||
        s.SSL_CTX_load_verify_locations(context, address.ca_file.c_str(), nullptr) != 1) {
      s.SSL_CTX_free(context);
      Throw(kDenied, Cat("the certificate and its private key in `", file, "`, or the certificates in `",
                         address.ca_file, "`, cannot be used: ", Reason()));
    }
    s.SSL_CTX_set_verify(context, kVerifyPeer | kFailIfNone, nullptr);
  } else if (server) {
    s.SSL_CTX_set_psk_find_session_callback(context, FindKey);
  } else {
    // A server that does not know the key would offer a certificate: none is trusted.
    s.SSL_CTX_set_verify(context, kVerifyPeer, nullptr);
    s.SSL_CTX_set_psk_use_session_callback(context, UseKey);
  }
  return context;
}

/// The context of a side whose peers have keys. It is the same for all connections, of processes that are forked too,
/// and takes as long to make as half a handshake.
SSL_CTX* KeyContext(bool server) {
  if (!server) {
    static SSL_CTX* const kept = NewContext(false, Address());
    return kept;
  }
  static SSL_CTX* const kept = NewContext(true, Address());
  return kept;
}

class TlsChannel final : public Channel {
 public:
  TlsChannel(int fd, bool server, const Address& address, const std::vector<Key>& keys, Deadline deadline) : fd_(fd) {
    try {
      const bool keys_alone = address.cert_file.empty();
      SSL_CTX* context = keys_alone ? KeyContext(server) : NewContext(server, address);
      ssl_ = Api().SSL_new(context);
      if (!keys_alone) Api().SSL_CTX_free(context);
      if (ssl_ && !server && !address.cert_file.empty() && !Api().SSL_set1_host(ssl_, address.host.c_str())) {
        Throw(kRpcError, Cat("TLS: ", Reason()));
      }
      Shake(server, address, keys, deadline);
    } catch (...) {
      Release();
      throw;
    }
  }
  ~TlsChannel() override {
    Shutdown();
    Release();
  }
  size_t Read(void* data, size_t size, Deadline deadline) override {
    for (;;) {
      int code, error;
      {
        std::lock_guard lock(mutex_);
        code = Api().SSL_read(ssl_, data, size > INT_MAX ? INT_MAX : static_cast<int>(size));
        if (code > 0) return static_cast<size_t>(code);
        error = Api().SSL_get_error(ssl_, code);
        if (error == kZeroReturn) return 0;
      }
      Wait(error, deadline, "waiting for the peer");
    }
  }
  void Write(iovec* parts, int count, Deadline deadline) override {
    for (int i = 0; i < count; ++i) {
      const char* at = static_cast<const char*>(parts[i].iov_base);
      // A small part goes out together with the one behind it: a record and a packet instead of two.
      if (i + 1 < count && parts[i].iov_len + parts[i + 1].iov_len <= sizeof joined_) {
        std::memcpy(joined_, at, parts[i].iov_len);
        std::memcpy(joined_ + parts[i].iov_len, parts[i + 1].iov_base, parts[i + 1].iov_len);
        WriteSpan(joined_, parts[i].iov_len + parts[i + 1].iov_len, deadline);
        ++i;
      } else {
        WriteSpan(at, parts[i].iov_len, deadline);
      }
    }
  }
  bool Readable() override {
    if (Api().SSL_has_pending(ssl_)) return true;
    pollfd p{fd_, POLLIN, 0};
    return poll(&p, 1, 0) > 0;
  }
  void Shutdown() noexcept override {
    if (usable_.exchange(false) && mutex_.try_lock()) {
      Api().SSL_shutdown(ssl_);  // tells the peer that this end is meant
      mutex_.unlock();
    }
    shutdown(fd_, SHUT_RDWR);
  }
  int fd() const override { return fd_; }

 private:
  void Shake(bool server, const Address& address, const std::vector<Key>& keys, Deadline deadline) {
    Handshake hand{&keys};
    fcntl(fd_, F_SETFL, fcntl(fd_, F_GETFL) | O_NONBLOCK);  // no call of the library keeps its lock for long
    if (!ssl_ || !Api().SSL_set_fd(ssl_, fd_)) Throw(kRpcError, Cat("TLS: ", Reason()));
    Api().SSL_set_ex_data(ssl_, 0, &hand);
    for (;;) {
      const int code = server ? Api().SSL_accept(ssl_) : Api().SSL_connect(ssl_);
      if (code == 1) break;
      const int error = Api().SSL_get_error(ssl_, code);
      if (error != kWantRead && error != kWantWrite) {
        if (!address.cert_file.empty()) {
          Throw(kDenied, Cat("the handshake failed: a certificate is not trusted, or there is none (", Reason(), ")"));
        }
        Throw(kDenied,
              Cat("the handshake failed: the key is not one that the ", server ? "server" : "server at that port",
                  " knows, or the other end speaks no TLS 1.3 (", Reason(), ")"));
      }
      Wait(error, deadline, "shaking hands");
    }
    Api().SSL_set_ex_data(ssl_, 0, nullptr);
    if (!address.cert_file.empty()) return TakeCertificate(server, address);
    if (!hand.used || !Api().SSL_session_reused(ssl_)) Throw(kDenied, "the peer did not prove that it has the key");
    key_id = hand.used->id;
    explicit_bzero(hand.used->secret.data(), hand.used->secret.size());
    grant = hand.used;
    peer = Cat("key ", hand.used->id, " ", hand.used->name);
    usable_ = true;
  }
  /// The name of the peer is that of its certificate, which the handshake has checked.
  void TakeCertificate(bool server, const Address& address) {
    X509* certificate = Api().SSL_get1_peer_certificate(ssl_);
    char name[128] = "";
    const int size = certificate ? Api().X509_NAME_get_text_by_NID(Api().X509_get_subject_name(certificate),
                                                                   kCommonName, name, sizeof name)
                                 : -1;
    if (certificate) Api().X509_free(certificate);
    if (size < 1 || std::strlen(name) != static_cast<size_t>(size)) Throw(kDenied, "a certificate without a name");
    if (server) grant = std::make_shared<Key>(Key::OfCertificate(address.policies, name));
    key_id = Cat("certificate ", name);
    peer = key_id;
    usable_ = true;
  }
  void Wait(int error, Deadline deadline, const char* what) {
    if (error != kWantRead && error != kWantWrite) {
      usable_ = false;
      Throw(kSessionLost, Cat(what, ": ", Reason()));
    }
    WaitFd(fd_, error == kWantWrite ? POLLOUT : POLLIN, deadline, what);
  }
  void WriteSpan(const char* at, size_t size, Deadline deadline) {
    while (size > 0) {
      int code, error = 0;
      {
        std::lock_guard lock(mutex_);
        code = Api().SSL_write(ssl_, at, size > (1 << 20) ? 1 << 20 : static_cast<int>(size));
        if (code <= 0) error = Api().SSL_get_error(ssl_, code);
      }
      if (code <= 0) {
        Wait(error, deadline, "sending to the peer");
        continue;
      }
      at += code;
      size -= static_cast<size_t>(code);
    }
  }
  void Release() {
    if (ssl_) Api().SSL_free(ssl_);
    ssl_ = nullptr;
    close(fd_);
  }

  int fd_;
  SSL* ssl_ = nullptr;
  std::atomic<bool> usable_{false};
  std::mutex mutex_;  // of the library's state, which a reader and a writer share
  char joined_[3 << 10];
};
// The share of this library's memory for a peer that has not proved itself, besides that of OpenSSL.
static_assert(sizeof(TlsChannel) <= 4096);

}  // namespace

void LoadTls() {
  KeyContext(true);  // here, and not once in each process that is forked
}

bool VerifySignature(std::string_view key, std::string_view text, std::string_view signature) {
  const auto bytes = [](std::string_view s) { return reinterpret_cast<const unsigned char*>(s.data()); };
  const OpenSsl& s = Api();
  EVP_PKEY* made = s.EVP_PKEY_new_raw_public_key(kEd25519, nullptr, bytes(key), key.size());
  EVP_MD_CTX* context = s.EVP_MD_CTX_new();
  const bool good = made && context && s.EVP_DigestVerifyInit(context, nullptr, nullptr, nullptr, made) == 1 &&
                    s.EVP_DigestVerify(context, bytes(signature), signature.size(), bytes(text), text.size()) == 1;
  s.EVP_MD_CTX_free(context);
  s.EVP_PKEY_free(made);
  s.ERR_clear_error();
  return good;
}

std::unique_ptr<Channel> TlsClient(int fd, const Address& address, const std::vector<Key>& keys, Deadline deadline) {
  return std::make_unique<TlsChannel>(fd, false, address, keys, deadline);
}

std::unique_ptr<Channel> TlsServer(int fd, const Address& address, const std::vector<Key>& keys, Deadline deadline) {
  return std::make_unique<TlsChannel>(fd, true, address, keys, deadline);
}

}  // namespace baton::rpc
