// SPDX-License-Identifier: Apache-2.0
// Frames: what a connection carries. A header of 24 bytes, little endian, then the payload.
#pragma once

#include <cstddef>
#include <cstdint>

namespace baton::rpc {

enum class FrameType : uint8_t {
  kHello = 1,    ///< version and options; the first frame of either side
  kCall = 2,     ///< `id` is new; `ack`: the call of the peer within which this one is made, 0 if none
  kReply = 3,    ///< the result of call `id`
  kError = 4,    ///< its failure
  kCancel = 5,   ///< the result of call `id` is not wanted any more
  kData = 6,     ///< a piece of the bytes that belong to call `id`
  kRelease = 7,  ///< handles that the sender has no more references to
  kPing = 8,     ///< call `id` is still at work
  kBye = 9,      ///< the session ends
  kCredit = 10,  ///< `id` bytes of the peer's frames were taken so far; itself it counts as none
};

struct FrameHeader {
  uint32_t length = 0;  ///< of the payload, in bytes
  FrameType type = FrameType::kBye;
  uint8_t flags = 0;    ///< none yet: 0
  uint16_t stream = 0;  ///< one yet: 0
  uint64_t id = 0;
  uint64_t ack = 0;
};

inline constexpr size_t kHeaderBytes = 24;
inline constexpr uint32_t kChunk = 1 << 20;                   ///< most bytes of a DATA frame
inline constexpr uint32_t kMaxPayload = kChunk + (64 << 10);  ///< of any frame

void EncodeHeader(const FrameHeader& header, unsigned char out[kHeaderBytes]);
/// Throws ProtocolError unless it is a header of this version.
FrameHeader DecodeHeader(const unsigned char in[kHeaderBytes]);

}  // namespace baton::rpc
