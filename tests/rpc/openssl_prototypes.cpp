// SPDX-License-Identifier: Apache-2.0
// What is declared of OpenSSL is what its headers declare, where they are installed.
#include <doctest/doctest.h>

#if __has_include(<openssl/ssl.h>)
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <type_traits>

#include "rpc/openssl_api.h"

namespace {

// Types of theirs by types of ours: pointers to structures stay pointers, all else must be the same.
template <class Ours, class Theirs>
struct Alike : std::bool_constant<std::is_same_v<Ours, Theirs>> {};
template <class A, class B>
struct Alike<A*, B*>
    : std::bool_constant<(std::is_class_v<std::remove_cv_t<A>> && std::is_class_v<std::remove_cv_t<B>>) ||
                         std::is_function_v<A> || Alike<std::remove_cv_t<A>, std::remove_cv_t<B>>::value> {};
template <class R, class... A, class S, class... B>
struct Alike<R (*)(A...), S (*)(B...)> {
  template <bool Same>
  static constexpr bool Params() {
    if constexpr (Same) {
      return (Alike<A, B>::value && ...);
    } else {
      return false;
    }
  }
  static constexpr bool value = Alike<R, S>::value && Params<sizeof...(A) == sizeof...(B)>();
};

#define BATON_SAME(Type, Name, Params) \
  static_assert(Alike<decltype(baton::rpc::OpenSsl::Name), decltype(&::Name)>::value, #Name);
BATON_OPENSSL_FUNCTIONS(BATON_SAME)

}  // namespace

TEST_CASE("rpc: constants of OpenSSL") {
  CHECK(baton::rpc::kTls13 == TLS1_3_VERSION);
  CHECK(baton::rpc::kVerifyPeer == SSL_VERIFY_PEER);
  CHECK(baton::rpc::kSetMode == SSL_CTRL_MODE);
  CHECK(baton::rpc::kSetReadAhead == SSL_CTRL_SET_READ_AHEAD);
  CHECK(baton::rpc::kSetSessionCache == SSL_CTRL_SET_SESS_CACHE_MODE);
  CHECK(baton::rpc::kSetMinVersion == SSL_CTRL_SET_MIN_PROTO_VERSION);
  CHECK(baton::rpc::kPartialWrite == SSL_MODE_ENABLE_PARTIAL_WRITE);
  CHECK(baton::rpc::kMovingBuffer == SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  CHECK(baton::rpc::kWantRead == SSL_ERROR_WANT_READ);
  CHECK(baton::rpc::kWantWrite == SSL_ERROR_WANT_WRITE);
  CHECK(baton::rpc::kZeroReturn == SSL_ERROR_ZERO_RETURN);
}
#endif
