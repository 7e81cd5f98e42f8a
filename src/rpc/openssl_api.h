// SPDX-License-Identifier: Apache-2.0
// What is used of OpenSSL 3, declared here: its headers are not needed to build. A test holds these against them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace baton::rpc {

struct SSL;
struct SSL_CTX;
struct SSL_METHOD;
struct SSL_SESSION;
struct SSL_CIPHER;
struct EVP_MD;
struct X509_STORE_CTX;
struct X509;
struct X509_NAME;
struct EVP_PKEY;
struct EVP_PKEY_CTX;
struct EVP_MD_CTX;
struct ENGINE;
using PskUse = int (*)(SSL*, const EVP_MD*, const unsigned char**, size_t*, SSL_SESSION**);
using PskFind = int (*)(SSL*, const unsigned char*, size_t, SSL_SESSION**);
using VerifyCallback = int (*)(int, X509_STORE_CTX*);

inline constexpr int kTls13 = 0x0304;
inline constexpr int kVerifyPeer = 1, kFailIfNone = 2;
inline constexpr int kPem = 1, kCommonName = 13;
inline constexpr int kEd25519 = 1087;
inline constexpr int kSetMode = 33, kSetReadAhead = 41, kSetSessionCache = 44, kSetMinVersion = 123;
inline constexpr int kPartialWrite = 1, kMovingBuffer = 2;
inline constexpr int kWantRead = 2, kWantWrite = 3, kZeroReturn = 6;

// NOLINTBEGIN(google-runtime-int): OpenSSL's types
#define BATON_OPENSSL_FUNCTIONS(F)                                                                    \
  F(const SSL_METHOD*, TLS_client_method, ())                                                         \
  F(const SSL_METHOD*, TLS_server_method, ())                                                         \
  F(SSL_CTX*, SSL_CTX_new, (const SSL_METHOD*))                                                       \
  F(void, SSL_CTX_free, (SSL_CTX*))                                                                   \
  F(long, SSL_CTX_ctrl, (SSL_CTX*, int, long, void*))                                                 \
  F(int, SSL_CTX_set_ciphersuites, (SSL_CTX*, const char*))                                           \
  F(int, SSL_CTX_set_num_tickets, (SSL_CTX*, size_t))                                                 \
  F(void, SSL_CTX_set_verify, (SSL_CTX*, int, VerifyCallback))                                        \
  F(void, SSL_CTX_set_psk_use_session_callback, (SSL_CTX*, PskUse))                                   \
  F(void, SSL_CTX_set_psk_find_session_callback, (SSL_CTX*, PskFind))                                 \
  F(SSL*, SSL_new, (SSL_CTX*))                                                                        \
  F(void, SSL_free, (SSL*))                                                                           \
  F(int, SSL_set_fd, (SSL*, int))                                                                     \
  F(int, SSL_set_ex_data, (SSL*, int, void*))                                                         \
  F(void*, SSL_get_ex_data, (const SSL*, int))                                                        \
  F(int, SSL_connect, (SSL*))                                                                         \
  F(int, SSL_accept, (SSL*))                                                                          \
  F(int, SSL_read, (SSL*, void*, int))                                                                \
  F(int, SSL_write, (SSL*, const void*, int))                                                         \
  F(int, SSL_has_pending, (const SSL*))                                                               \
  F(int, SSL_shutdown, (SSL*))                                                                        \
  F(int, SSL_get_error, (const SSL*, int))                                                            \
  F(int, SSL_session_reused, (const SSL*))                                                            \
  F(const SSL_CIPHER*, SSL_CIPHER_find, (SSL*, const unsigned char*))                                 \
  F(SSL_SESSION*, SSL_SESSION_new, ())                                                                \
  F(void, SSL_SESSION_free, (SSL_SESSION*))                                                           \
  F(int, SSL_SESSION_set1_master_key, (SSL_SESSION*, const unsigned char*, size_t))                   \
  F(int, SSL_SESSION_set_cipher, (SSL_SESSION*, const SSL_CIPHER*))                                   \
  F(int, SSL_SESSION_set_protocol_version, (SSL_SESSION*, int))                                       \
  F(int, SSL_CTX_use_certificate_chain_file, (SSL_CTX*, const char*))                                 \
  F(int, SSL_CTX_use_PrivateKey_file, (SSL_CTX*, const char*, int))                                   \
  F(int, SSL_CTX_load_verify_locations, (SSL_CTX*, const char*, const char*))                         \
  F(int, SSL_set1_host, (SSL*, const char*))                                                          \
  F(X509*, SSL_get1_peer_certificate, (const SSL*))                                                   \
  F(void, X509_free, (X509*))                                                                         \
  F(X509_NAME*, X509_get_subject_name, (const X509*))                                                 \
  F(int, X509_NAME_get_text_by_NID, (X509_NAME*, int, char*, int))                                    \
  F(EVP_PKEY*, EVP_PKEY_new_raw_public_key, (int, ENGINE*, const unsigned char*, size_t))             \
  F(void, EVP_PKEY_free, (EVP_PKEY*))                                                                 \
  F(EVP_MD_CTX*, EVP_MD_CTX_new, ())                                                                  \
  F(void, EVP_MD_CTX_free, (EVP_MD_CTX*))                                                             \
  F(int, EVP_DigestVerifyInit, (EVP_MD_CTX*, EVP_PKEY_CTX**, const EVP_MD*, ENGINE*, EVP_PKEY*))      \
  F(int, EVP_DigestVerify, (EVP_MD_CTX*, const unsigned char*, size_t, const unsigned char*, size_t)) \
  F(unsigned long, ERR_get_error, ())                                                                 \
  F(void, ERR_error_string_n, (unsigned long, char*, size_t))                                         \
  F(void, ERR_clear_error, ())

struct OpenSsl {
#define BATON_DECLARE(Type, Name, Params) Type(*Name) Params;
  BATON_OPENSSL_FUNCTIONS(BATON_DECLARE)
#undef BATON_DECLARE
};
// NOLINTEND(google-runtime-int)

}  // namespace baton::rpc
