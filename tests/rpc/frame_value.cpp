// SPDX-License-Identifier: Apache-2.0
// Frames, values, handles: round trips, and bytes that a hostile peer may send.
#include <baton/runtime/array.h>
#include <baton/runtime/bytes.h>
#include <baton/runtime/map.h>
#include <baton/runtime/string.h>
#include <doctest/doctest.h>

#include <cstdlib>
#include <random>

#include "rpc/errors.h"
#include "rpc/frame.h"
#include "rpc/handles.h"
#include "rpc/key.h"
#include "rpc/value.h"

using namespace baton::rpc;      // NOLINT
using namespace baton::runtime;  // NOLINT
using baton::support::ByteReader;
using baton::support::ByteWriter;

namespace {

/// Takes no objects but tensors by value.
struct Plain final : ValueMapper {
  void WriteObject(const BatonValue& v, ByteWriter* out) final { WriteTensor(ArgValue(v).As<DLTensor*>(), out); }
  Any ReadObject(Tag, ByteReader* in) final { in->Fail("an object"); }
};

std::string Write(const Any& value) {
  Plain plain;
  ByteWriter out;
  WriteValue(value.raw(), &out, &plain);
  return out.Take();
}

Any Read(std::string_view bytes) {
  Plain plain;
  ByteReader in(bytes.data(), bytes.size(), "value");
  Any value = ReadValue(&in, &plain);
  in.ExpectEnd();
  return value;
}

std::vector<std::string> Corpus() {
  Map<Any, Any> map;
  map.Set(Any("key"), Any(Array<Any>{Any(1), Any(2.5), Any()}));
  map.Set(Any(7), Any(true));
  return {Write(Any()),
          Write(Any(int64_t{-5})),
          Write(Any(false)),
          Write(Any(1.25)),
          Write(Any("text")),
          Write(Any(Bytes(std::string("\0\1\2", 3)))),
          Write(Any(DataType::Float(32))),
          Write(Any(Cpu(3))),
          Write(Any(NDArray::Zeros({2, 3}, DataType::Float(32)))),
          Write(Any(NDArray::Zeros({}, DataType::Int(8)))),
          Write(Any(map)),
          Write(Any(Array<Any>{Any(map), Any(Array<Any>{}), Any(NDArray::Zeros({0, 4}, DataType::Int(64)))}))};
}

}  // namespace

TEST_CASE("rpc: values are read as they were written") {
  for (const std::string& bytes : Corpus()) CHECK(Write(Read(bytes)) == bytes);
  CHECK(Read(Write(Any(int64_t{INT64_MIN}))).As<int64_t>() == INT64_MIN);
  CHECK(Read(Write(Any("a\n"))).As<std::string>() == "a\n");
}

TEST_CASE("rpc: an opaque pointer and deep nesting do not travel") {
  int x = 0;
  CHECK_THROWS_AS(Write(Any(static_cast<void*>(&x))), Error);
  Any deep(1);
  for (int i = 0; i < kMaxDepth; ++i) deep = Any(Array<Any>{deep});
  CHECK_NOTHROW(Read(Write(deep)));
  CHECK_THROWS_AS(Write(Any(Array<Any>{deep})), Error);
  // Bytes that say the same: an array in an array in an array...
  std::string bytes;
  for (int i = 0; i < 100000; ++i) bytes += std::string("\x10\1\0\0\0", 5);
  CHECK_THROWS(Read(bytes));
}

TEST_CASE("rpc: cut and changed values are errors, or other values; RPC-011") {
  std::mt19937 random(20220611);
  const std::vector<std::string> corpus = Corpus();
  for (const std::string& bytes : corpus) {
    for (size_t n = 0; n < bytes.size(); ++n) CHECK_THROWS(Read(std::string_view(bytes).substr(0, n)));
    CHECK_THROWS(Read(bytes + "x"));
  }
  int refused = 0, taken = 0;
  for (int i = 0; i < 100000; ++i) {
    std::string bytes = corpus[random() % corpus.size()];
    const int changes = 1 + static_cast<int>(random() % 4);
    for (int c = 0; c < changes; ++c) {
      const size_t at = random() % (bytes.size() + 1);
      switch (random() % 4) {
        case 0:
          bytes.insert(at, 1, static_cast<char>(random()));
          break;
        case 1:
          if (at < bytes.size()) bytes.erase(at, 1 + random() % 4);
          break;
        case 2:
          if (at < bytes.size()) bytes[at] = static_cast<char>(random());
          break;
        default: {
          const std::string& other = corpus[random() % corpus.size()];
          bytes.insert(at, other, random() % (other.size() + 1), 8);
        }
      }
    }
    try {
      const Any value = Read(bytes);
      Write(value);  // what was taken is whole
      ++taken;
    } catch (const std::exception&) {
      ++refused;
    }
  }
  CHECK(refused > 50000);
  CHECK(taken > 1000);
}

TEST_CASE("rpc: lengths that are not there take no memory; RPC-011") {
  for (const char* bytes : {"\x07\xff\xff\xff\xff", "\x10\xff\xff\xff\xff", "\x11\xff\xff\xff\xff"}) {
    CHECK_THROWS(Read(std::string_view(bytes, 5)));
  }
  ByteWriter tensor;  // 2^62 floats, of which none follow
  for (const uint8_t b : {9, 2, 32, 1, 0, 1}) tensor.Write(b);
  tensor.Write(int64_t{1} << 62);
  CHECK_THROWS(Read(tensor.bytes()));
}

TEST_CASE("rpc: headers") {
  unsigned char bytes[kHeaderBytes];
  const FrameHeader h{123, FrameType::kCall, 0, 0, 0x1122334455667788, 9};
  EncodeHeader(h, bytes);
  CHECK(bytes[0] == 123);
  CHECK(bytes[8] == 0x88);
  const FrameHeader back = DecodeHeader(bytes);
  CHECK(back.length == 123);
  CHECK(back.type == FrameType::kCall);
  CHECK(back.id == h.id);
  CHECK(back.ack == 9);
  EncodeHeader({kMaxPayload, FrameType::kData}, bytes);
  CHECK(DecodeHeader(bytes).length == kMaxPayload);
  EncodeHeader({kMaxPayload + 1, FrameType::kData}, bytes);
  CHECK_THROWS_AS(DecodeHeader(bytes), Error);
  std::mt19937 random(1);
  for (int i = 0; i < 100000; ++i) {
    for (unsigned char& b : bytes) b = static_cast<unsigned char>(random());
    if (random() % 2) bytes[2] = bytes[3] = bytes[5] = bytes[6] = bytes[7] = 0;
    try {
      const FrameHeader read = DecodeHeader(bytes);
      unsigned char again[kHeaderBytes];
      EncodeHeader(read, again);
      CHECK(std::equal(bytes, bytes + kHeaderBytes, again));
    } catch (const Error& e) {
      CHECK(e.kind() == kProtocolError);
    }
  }
}

TEST_CASE("rpc: a handle means nothing after its release; RPC-013") {
  HandleTable table, other;
  const uint64_t a = table.Add(String("a")), b = table.Add(String("b"));
  CHECK(a != b);
  CHECK(table.Get(a).as<StringObj>());
  CHECK_FALSE(other.Get(a).defined());
  CHECK(table.Release(a));
  CHECK_FALSE(table.Release(a));
  CHECK_FALSE(table.Get(a).defined());
  const uint64_t c = table.Add(String("c"));  // the same slot
  CHECK(c != a);
  CHECK_FALSE(table.Get(a).defined());
  CHECK_FALSE(table.Get(0).defined());
  CHECK_FALSE(table.Get(~uint64_t{0}).defined());
  CHECK(table.size() == 2);
}

TEST_CASE("rpc: HMAC as RFC 4231 has it") {
  const auto hex = [](const std::string& s) {
    std::string out;
    char two[3];
    for (const char c : s) snprintf(two, sizeof two, "%02x", static_cast<unsigned char>(c)), out += two;
    return out;
  };
  CHECK(hex(HmacSha256(std::string(20, '\x0b'), "Hi There")) ==
        "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  CHECK(hex(HmacSha256("Jefe", "what do ya want for nothing?")) ==
        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  CHECK(hex(HmacSha256(std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First")) ==
        "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST_CASE("rpc: a token that its holder narrowed is the one that the server makes of its identity") {
  Key lab = Key::New("lab");
  lab.policy = "trusted";
  const char* caveats[] = {"allow=my.*,b", "allow=my.run",     "policy=session",     "policy=trusted",
                           "load=signed",  "load=any",         "expires=9999999999", "memory=1000",
                           "memory=5000",  "devices=cpu,cuda", "devices=cuda:1",     "wall=60"};
  std::mt19937 random(3);
  for (int i = 0; i < 300; ++i) {
    Key token = lab;
    bool session = false;
    for (size_t n = 1 + random() % 5; n > 0; --n) {
      const std::string caveat = caveats[random() % std::size(caveats)];
      const Key before = token;
      token = token.Narrowed(caveat);
      session = session || caveat == "policy=session" || caveat.compare(0, 5, "allow") == 0;
      CHECK(token.load <= before.load);
      CHECK((before.memory == 0 || token.memory <= before.memory));
      if (before.policy == "session") {
        for (const std::string& one : token.allow) CHECK(AnyCovers(before.allow, one));
      }
    }
    CHECK((token.policy == "session") == session);
    const Key there = lab.TokenOf(token.id);
    CHECK(there.secret == token.secret);
    CHECK(there.TlsKey() == token.TlsKey());
    CHECK(there.allow == token.allow);
    CHECK(there.TlsKey() != lab.TlsKey());
    // With a caveat less it is another one.
    const std::string shorter = token.id.substr(0, token.id.rfind(';'));
    if (shorter.size() > 16) CHECK(lab.TokenOf(shorter).secret != token.secret);
  }
  CHECK_THROWS(lab.Narrowed("colour=red"));
  CHECK_THROWS(lab.Narrowed("allow=" + std::string(250, 'x')));
}

TEST_CASE("rpc: identities, caveats, public keys and signatures that a peer may send; RPC-011") {
  Key lab = Key::New("lab");
  const std::string identity = lab.Narrowed("allow=a.*").Narrowed("load=none").Narrowed("devices=cpu").id;
  std::mt19937 random(4);
  int taken = 0;
  for (int i = 0; i < 100000; ++i) {
    std::string text = identity;
    for (size_t n = 1 + random() % 4; n > 0; --n) {
      const size_t at = lab.id.size() + random() % (text.size() - lab.id.size() + 1);
      if (random() % 3 == 0) {
        text.insert(at, 1, static_cast<char>(random()));
      } else if (at < text.size()) {
        random() % 2 ? text[at] = static_cast<char>(random()) : text.erase(at, 1 + random() % 9)[0];
      }
      if (text.size() < lab.id.size()) text.resize(lab.id.size(), ';');
    }
    try {
      const Key token = lab.TokenOf(text);
      CHECK((text == identity || token.secret != lab.TokenOf(identity).secret));
      ++taken;
    } catch (const Error&) {
      // It is none.
    }
    CHECK((ReadSignature(text).empty()));
    ReadSignature("baton-signature-1 " + text);
  }
  CHECK(taken > 0);
  CHECK(ReadSignature("baton-signature-1 " + std::string(86, 'A') + "==\n").size() == 64);
  CHECK(ReadSignature("baton-signature-1 " + std::string(82, 'A') + "==\n").empty());
}
