// SPDX-License-Identifier: Apache-2.0
#include <baton/support/hash.h>
#include <baton/support/sha256.h>
#include <doctest/doctest.h>

#include <set>
#include <string>

using namespace baton::support;

TEST_CASE("the stable hash is stable, and depends on every byte and on the length") {
  // Values that artifacts may hold: they must never change.
  CHECK(HashString("") == 0x3076f76de3113e5cu);
  CHECK(HashString("baton") == 0xd8cea4c9755df3a6u);
  CHECK(HashCombine(1, 2) == 0x547040c80f3df937u);
  std::set<uint64_t> seen;
  std::string s;
  for (int n = 0; n < 200; ++n) {
    CHECK(seen.insert(HashString(s)).second);  // zeros of every length
    for (int i = 0; i < n; ++i) {
      std::string t = s;
      t[i] = 1;
      CHECK(seen.insert(HashString(t)).second);
    }
    s.push_back('\0');
  }
  CHECK(HashString("a", 1) != HashString("a", 2));
  CHECK(HashCombine(HashCombine(0, 1), 2) != HashCombine(HashCombine(0, 2), 1));
  CHECK(HashCombine(0, 0) != 0);
}

TEST_CASE("SHA-256 gives the digests of the standard") {
  CHECK(Sha256Hex("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(Sha256Hex("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(Sha256Hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq") ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  CHECK(Sha256Hex(std::string(1000000, 'a')) == "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  // In pieces of every size.
  std::string text;
  for (int i = 0; i < 300; ++i) text.push_back(char(i * 7));
  for (size_t piece = 1; piece < 200; ++piece) {
    for (bool portable : {false, true}) {
      Sha256 h(portable);
      for (size_t at = 0; at < text.size(); at += piece) h.Update(std::string_view(text).substr(at, piece));
      const Sha256::Digest d = h.Finish();
      CHECK(ToHex(d.data(), d.size()) == Sha256Hex(text));
    }
  }
}
