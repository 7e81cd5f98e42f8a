// SPDX-License-Identifier: Apache-2.0
// Streams of frames for the fuzz tests: made of pieces, mutated by frames and by bytes, and read from memory.
#pragma once

#include <baton/support/bytes.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "../fuzz/harness.h"
#include "rpc/channel.h"
#include "rpc/endpoint.h"
#include "rpc/errors.h"
#include "rpc/frame.h"

namespace baton::rpc::fuzzing {
using baton::fuzz::Corpus;
using baton::fuzz::Random;

/// What came is all that there is: reads it in pieces, and keeps what is written.
class MemoryChannel final : public Channel {
 public:
  explicit MemoryChannel(std::string in, size_t piece = SIZE_MAX) : in_(std::move(in)), piece_(piece) {}
  size_t Read(void* data, size_t size, Deadline) override {
    const size_t n = std::min({size, piece_, in_.size() - at_});
    std::memcpy(data, in_.data() + at_, n);
    at_ += n;
    return n;
  }
  void Write(iovec* parts, int count, Deadline) override {
    for (int i = 0; i < count; ++i) out->append(static_cast<const char*>(parts[i].iov_base), parts[i].iov_len);
  }
  bool Readable() override { return at_ < in_.size(); }
  void Shutdown() noexcept override { at_ = in_.size(); }
  int fd() const override { return -1; }

  std::shared_ptr<std::string> out = std::make_shared<std::string>();

 private:
  std::string in_;
  size_t at_ = 0, piece_;
};

inline std::string Frame(FrameType type, uint64_t id, std::string_view payload, uint64_t ack = 0) {
  unsigned char head[kHeaderBytes];
  EncodeHeader({static_cast<uint32_t>(payload.size()), type, 0, 0, id, ack}, head);
  return std::string(reinterpret_cast<const char*>(head), kHeaderBytes).append(payload);
}

/// Values by their tags, without the writer that is tested.
class Bytes {
 public:
  Bytes& Int(int64_t v) { return Tagged(Tag::kInt, v); }
  Bytes& Bool(bool v) { return Tagged(Tag::kBool, static_cast<uint8_t>(v)); }
  Bytes& Float(double v) { return Tagged(Tag::kFloat, v); }
  Bytes& Null() {
    out_.Write(Tag::kNull);
    return *this;
  }
  Bytes& Text(std::string_view s, Tag tag = Tag::kStr) {
    Tagged(tag, static_cast<uint32_t>(s.size()));
    out_.WriteBytes(s.data(), s.size());
    return *this;
  }
  Bytes& Device(int type, int id) {
    Tagged(Tag::kDevice, static_cast<int32_t>(type));
    out_.Write(static_cast<int32_t>(id));
    return *this;
  }
  /// A reference; what follows it depends on the kind.
  Bytes& Ref(Tag tag, uint64_t handle, int kind) {
    Tagged(tag, handle);
    out_.Write(static_cast<uint8_t>(kind));
    return *this;
  }
  Bytes& Head(const std::vector<int64_t>& shape) {  // of float32
    out_.Write(static_cast<uint8_t>(2));
    out_.Write(static_cast<uint8_t>(32));
    out_.Write(static_cast<uint16_t>(1));
    out_.Write(static_cast<uint8_t>(shape.size()));
    for (const int64_t n : shape) out_.Write(n);
    return *this;
  }
  Bytes& Tensor(const std::vector<int64_t>& shape) {
    out_.Write(Tag::kTensor);
    Head(shape);
    size_t bytes = 4;
    for (const int64_t n : shape) bytes *= static_cast<size_t>(n);
    const std::string zeros(bytes, '\0');
    out_.WriteBytes(zeros.data(), zeros.size());
    return *this;
  }
  Bytes& Many(Tag tag, uint32_t count) { return Tagged(tag, count); }  // so many items follow
  template <class T>
  Bytes& Raw(T v) {
    out_.Write(v);
    return *this;
  }
  std::string Take() { return out_.Take(); }

 private:
  template <class T>
  Bytes& Tagged(Tag tag, T v) {
    out_.Write(tag);
    out_.Write(v);
    return *this;
  }
  support::ByteWriter out_;
};

inline std::string CallFrame(uint64_t id, Op op, uint64_t handle, uint32_t count, std::string_view args,
                             uint64_t bulk = 0, uint64_t ack = 0) {
  support::ByteWriter out;
  out.Write(static_cast<uint32_t>(op));
  out.Write(handle);
  out.Write(bulk);
  out.Write(count);
  out.WriteBytes(args.data(), args.size());
  return Frame(FrameType::kCall, id, out.bytes(), ack);
}

inline std::string Hello(std::string_view features) {
  const std::string options = Bytes().Many(Tag::kMap, 1).Text("features").Text(features).Take();
  return Frame(FrameType::kHello, 0, std::string("BATONRPC\1\0\0\0", 12) + options);
}

/// The frames of a stream; what is behind the last whole one is a piece, too.
inline std::vector<std::string> Cut(std::string_view stream) {
  std::vector<std::string> out;
  while (stream.size() >= kHeaderBytes) {
    uint32_t length;
    std::memcpy(&length, stream.data(), sizeof length);
    const size_t size = kHeaderBytes + std::min<size_t>(length, stream.size() - kHeaderBytes);
    out.emplace_back(stream.substr(0, size));
    stream.remove_prefix(size);
  }
  if (!stream.empty()) out.emplace_back(stream);
  return out;
}

/// A number that is near a bound of something, or a handle.
inline uint64_t Hard(Random* r) {
  constexpr uint64_t kHard[] = {0,
                                1,
                                2,
                                7,
                                8,
                                9,
                                63,
                                64,
                                65,
                                255,
                                4095,
                                4096,
                                65535,
                                65536,
                                65537,
                                kMaxPayload,
                                kChunk,
                                1u << 31,
                                0x7fffffff,
                                0xffffffff,
                                uint64_t{1} << 32,
                                INT64_MAX,
                                uint64_t{1} << 63,
                                UINT64_MAX};
  if (r->OneIn(3)) return uint64_t{1} << 32 | r->Below(6);
  return kHard[r->Below(std::size(kHard))] + (r->OneIn(4) ? r->Below(3) - 1 : 0);
}

inline void Overwrite(std::string* s, size_t at, uint64_t value, size_t bytes) {
  for (size_t i = 0; i < bytes && at + i < s->size(); ++i) (*s)[at + i] = static_cast<char>(value >> (8 * i));
}

/// Changes frames: their order, number, fields and payloads, with lengths that mostly stay right.
inline std::string MutateFrames(const std::string& stream, const Corpus& corpus, Random* r) {
  if (r->OneIn(12)) return fuzz::MutateBytes(stream, corpus, r);
  std::vector<std::string> frames = Cut(stream);
  for (size_t n = 1 + r->Below(4); n > 0 && !frames.empty(); --n) {
    const size_t i = r->Below(frames.size());
    std::string& f = frames[i];
    switch (r->Below(10)) {
      case 0:
        frames.erase(frames.begin() + static_cast<std::ptrdiff_t>(i));
        break;
      case 1:
        frames.insert(frames.begin() + static_cast<std::ptrdiff_t>(r->Below(frames.size() + 1)), std::string(f));
        break;
      case 2:
        std::swap(frames[i], frames[r->Below(frames.size())]);
        break;
      case 3: {
        const std::vector<std::string> other = Cut(corpus[r->Below(corpus.size())]);
        frames.insert(frames.begin() + static_cast<std::ptrdiff_t>(i), other[r->Below(other.size())]);
        break;
      }
      case 4: {  // a field of the header
        constexpr size_t kFields[][2] = {{0, 4}, {4, 1}, {5, 1}, {6, 2}, {8, 8}, {16, 8}};
        const auto& field = kFields[r->Below(std::size(kFields))];
        const uint64_t value = field[0] == 4 ? r->Below(12) : r->OneIn(2) ? r->Below(8) : Hard(r);
        Overwrite(&f, field[0], value, field[1]);
        break;
      }
      default: {  // the payload
        if (f.size() <= kHeaderBytes) break;
        std::string payload = f.substr(kHeaderBytes);
        const size_t at = r->Below(payload.size());
        switch (r->Below(5)) {
          case 0:
            payload = fuzz::MutateBytes(payload, corpus, r);
            break;
          case 1:
            Overwrite(&payload, at, Hard(r), size_t{1} << r->Below(4));
            break;
          case 2:
            payload[at] = static_cast<char>(r->Below(r->OneIn(2) ? 20 : 256));
            break;
          case 3:
            payload.erase(at, 1 + r->Below(9));
            break;
          default:
            payload.insert(at, std::string(1 + r->Below(9), static_cast<char>(r->Below(256))));
        }
        if (payload.size() > kMaxPayload) payload.resize(kMaxPayload);
        f.resize(kHeaderBytes);
        Overwrite(&f, 0, payload.size(), 4);
        f += payload;
      }
    }
  }
  std::string out;
  for (const std::string& f : frames) out += f;
  if (r->OneIn(8)) out.resize(r->Below(out.size() + 1));
  return out;
}

/// What a side wrote must be frames. Throws what an ERROR says of itself as a defect where it is one, and refuses a
/// stream with others.
inline void CheckWritten(std::string_view out) {
  bool refused = false;
  while (!out.empty()) {
    if (out.size() < kHeaderBytes) throw runtime::InternalError("half a header was written");
    const FrameHeader h = DecodeHeader(reinterpret_cast<const unsigned char*>(out.data()));
    out.remove_prefix(kHeaderBytes);
    if (out.size() < h.length) throw runtime::InternalError("half a frame was written");
    if (h.type == FrameType::kError) {
      refused = true;
      if (out.substr(0, h.length).find("InternalError") != std::string_view::npos) {
        throw runtime::InternalError(std::string(out.substr(0, h.length)));
      }
    }
    out.remove_prefix(h.length);
  }
  if (refused) Throw(kProtocolError, "a call was answered by an error");
}

}  // namespace baton::rpc::fuzzing
