// SPDX-License-Identifier: Apache-2.0
#include "rpc/errors.h"

#include <baton/support/text.h>

#include <cerrno>
#include <cstring>

namespace baton::rpc {

void Throw(const char* kind, std::string_view message) { throw runtime::Error(kind, message); }

void ThrowSystem(const char* kind, std::string_view message) {
  const int code = errno;
  Throw(kind, support::Cat(message, ": ", std::strerror(code)));
}

}  // namespace baton::rpc
