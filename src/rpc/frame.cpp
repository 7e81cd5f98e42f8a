// SPDX-License-Identifier: Apache-2.0
#include "rpc/frame.h"

#include <baton/support/text.h>

#include "rpc/errors.h"

namespace baton::rpc {
using support::Cat;
namespace {

void Put(unsigned char* out, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out[i] = static_cast<unsigned char>(value >> (8 * i));
}
uint64_t Get(const unsigned char* in, int bytes) {
  uint64_t value = 0;
  for (int i = 0; i < bytes; ++i) value |= static_cast<uint64_t>(in[i]) << (8 * i);
  return value;
}

}  // namespace

void EncodeHeader(const FrameHeader& header, unsigned char out[kHeaderBytes]) {
  Put(out, header.length, 4);
  out[4] = static_cast<unsigned char>(header.type);
  out[5] = header.flags;
  Put(out + 6, header.stream, 2);
  Put(out + 8, header.id, 8);
  Put(out + 16, header.ack, 8);
}

FrameHeader DecodeHeader(const unsigned char in[kHeaderBytes]) {
  FrameHeader h;
  h.length = static_cast<uint32_t>(Get(in, 4));
  h.type = static_cast<FrameType>(in[4]);
  h.flags = in[5];
  h.stream = static_cast<uint16_t>(Get(in + 6, 2));
  h.id = Get(in + 8, 8);
  h.ack = Get(in + 16, 8);
  if (h.length > kMaxPayload) Throw(kProtocolError, Cat("a frame of ", h.length, " bytes: the limit is ", kMaxPayload));
  if (in[4] < 1 || in[4] > 10) Throw(kProtocolError, Cat("a frame of type ", int(in[4]), ", which does not exist"));
  if (h.flags || h.stream) Throw(kProtocolError, "a frame with flags or a stream, of which there are none yet");
  return h;
}

}  // namespace baton::rpc
