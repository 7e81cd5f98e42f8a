// SPDX-License-Identifier: Apache-2.0
#include <baton/support/bytes.h>
#include <baton/support/text.h>

#include <stdexcept>

namespace baton::support {

void ByteReader::Fail(const std::string& message) const {
  throw std::runtime_error(Cat(what_, ": ", message, " at byte ", position_));
}

void ByteReader::FailShort(uint64_t size, const char* field) const {
  throw std::runtime_error(Cat(what_, ": ", size, " bytes wanted for `", field, "` at byte ", position_, ", ",
                               remaining(), " remain; the file is cut or damaged"));
}

uint64_t ByteReader::ReadCount(size_t each, const char* field) {
  const size_t at = position_;
  const uint64_t count = Read<uint64_t>(field);
  if (count > remaining() / (each ? each : 1)) {
    position_ = at;
    Fail(Cat("`", field, "` is ", count, ", more than the rest of the file can hold"));
  }
  return count;
}

std::string_view ByteReader::ReadString(const char* field) {
  const uint64_t size = ReadCount(1, field);
  return {reinterpret_cast<const char*>(Take(size, field)), static_cast<size_t>(size)};
}

void ByteReader::ExpectEnd() {
  if (remaining()) Fail(Cat(remaining(), " bytes follow the end of the data"));
}

}  // namespace baton::support
