// SPDX-License-Identifier: Apache-2.0
// Random numbers of a key: the same key gives the same numbers, on every machine and in every order of evaluation.
// Threefry-4x64 with 20 rounds (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011) in counter mode.
//
// A key is ten words: the cipher's key (4), the next counter (4), and two that are kept for later. The last word of the
// counter says what a block is for, so that numbers, left and right keys never share one.
#include <array>

#include "host/arrays.h"
#include "host/functions.h"

namespace baton::host {
namespace {

using Block = std::array<uint64_t, 4>;
enum Use : uint64_t { kNumbers = 0, kLeft = 1, kRight = 2 };
constexpr int64_t kKeyWords = 10;

Block Threefry(const Block& key, Block x) {
  constexpr int kRotations[8][2] = {{14, 16}, {52, 57}, {23, 40}, {5, 37}, {25, 33}, {46, 12}, {58, 22}, {32, 32}};
  auto rotate = [](uint64_t v, int by) { return (v << by) | (v >> (64 - by)); };
  const uint64_t ks[5] = {key[0], key[1], key[2], key[3], 0x1BD11BDAA9FC1A22 ^ key[0] ^ key[1] ^ key[2] ^ key[3]};
  for (int i = 0; i < 4; ++i) x[i] += ks[i];
  for (int round = 0; round < 20; ++round) {
    const int* by = kRotations[round % 8];
    // Odd rounds mix words 0 with 3 and 2 with 1.
    const int p = round % 2 ? 3 : 1, q = round % 2 ? 1 : 3;
    x[0] += x[p], x[p] = rotate(x[p], by[0]) ^ x[0];
    x[2] += x[q], x[q] = rotate(x[q], by[1]) ^ x[2];
    if (round % 4 == 3) {
      const uint64_t s = static_cast<uint64_t>(round / 4 + 1);
      for (uint64_t i = 0; i < 4; ++i) x[i] += ks[(s + i) % 5];
      x[3] += s;
    }
  }
  return x;
}

struct Key {
  Block cipher, counter;
};
Key Read(const Params& p, const Arrays& in) {
  Want(p, in, 0, in[0].dtype() == DataType::UInt(64) && in[0].numel() == kKeyWords, "a key, uint64[10],");
  const auto* w = in[0].ptr<uint64_t>();
  return {{w[0], w[1], w[2], w[3]}, {w[4], w[5], w[6], w[7]}};
}
NDArray Written(const Key& key) {
  uint64_t w[kKeyWords] = {};
  for (int i = 0; i < 4; ++i) w[i] = key.cipher[i], w[4 + i] = key.counter[i];
  return NDArray::FromBytes(w, {kKeyWords}, DataType::UInt(64));
}
void Advance(Block* counter) {
  for (int i = 0; i < 3 && ++(*counter)[i] == 0; ++i) {
  }
}

}  // namespace

Arrays ThreefryGenerate(const Params& p, const Arrays& in) {
  Key key = Read(p, in);
  NDArray out = NDArray::Empty(p.Ints("out_shape"), DataType::UInt(64));
  auto* to = out.ptr<uint64_t>();
  for (int64_t i = 0, n = out.numel(); i < n; i += 4) {
    key.counter[3] = kNumbers;
    const Block block = Threefry(key.cipher, key.counter);
    for (int64_t k = 0; k < 4 && i + k < n; ++k) to[i + k] = block[k];
    Advance(&key.counter);
  }
  return {Written(key), out};
}
Arrays ThreefrySplit(const Params& p, const Arrays& in) {
  Key key = Read(p, in);
  auto part = [&](Use use) {
    Block counter = key.counter;
    counter[3] = use;
    return Written({Threefry(key.cipher, counter), {}});
  };
  return {part(kLeft), part(kRight)};
}

namespace {
const Register kThreefry[] = {{"random.threefry_generate", 1, ThreefryGenerate},
                              {"random.threefry_split", 1, ThreefrySplit}};
}
}  // namespace baton::host
