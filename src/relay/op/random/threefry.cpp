// SPDX-License-Identifier: Apache-2.0
// Random numbers of a key: the same key gives the same numbers, on every machine and in every order of evaluation.
// Threefry-4x64 with 20 rounds (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011) in counter mode.
//
// A key is ten words: the cipher's key (4), the next counter (4), and two that are kept for later. The last word of the
// counter says what a block is for, so that numbers, left and right keys never share one.
#include <baton/relay/op/algorithm.h>

#include <array>

#include "../host.h"

namespace baton::relay {
namespace {

struct ThreefryGenerateAttrs : AttrsNode<ThreefryGenerateAttrs> {
  static constexpr auto _type_key = "relay.attrs.ThreefryGenerateAttrs";
  Array<int64_t> out_shape;
  static constexpr void Describe(auto& d) {
    d(F<&ThreefryGenerateAttrs::out_shape>, "Extents of the numbers.", kRequired, AtLeast(0));
  }
};

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

void CheckKey(const TypeArgs& in) {
  in.Rank(0, 1, "R1");
  if (!(in.dtype(0) == DataType::UInt(64)) || (in.dim(0, 0) >= 0 && in.dim(0, 0) != kKeyWords))
    in.Fail("R1", in.Show(0) + ", where a key, Tensor[(10), uint64], is wanted");
}
Type KeyType() { return TensorType(Shape{PrimExpr(kKeyWords)}, DataType::UInt(64)); }
struct Key {
  Block cipher, counter;
};
Key Read(const NDArray& a) {
  NDArray x = a.Contiguous();
  const auto* w = x.ptr<uint64_t>();
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

Type GenerateType(const ThreefryGenerateAttrs& a, const TypeArgs& in) {
  CheckKey(in);
  ProductOf(ToInts(a.out_shape));
  return TupleType(Array<Type>{KeyType(), TensorType(MakeShape(ToInts(a.out_shape)), DataType::UInt(64))});
}
NDArrays HostGenerate(const Attrs& attrs, const NDArrays& in) {
  const auto& a = AttrsAs<ThreefryGenerateAttrs>(attrs);
  Key key = Read(in[0]);
  NDArray out = NDArray::Empty(ToInts(a.out_shape), DataType::UInt(64));
  auto* to = out.ptr<uint64_t>();
  for (int64_t i = 0, n = out.numel(); i < n; i += 4) {
    key.counter[3] = kNumbers;
    const Block block = Threefry(key.cipher, key.counter);
    for (int64_t k = 0; k < 4 && i + k < n; ++k) to[i + k] = block[k];
    Advance(&key.counter);
  }
  return {Written(key), out};
}
Type SplitType(const TypeArgs& in) {
  CheckKey(in);
  return TupleType(Array<Type>{KeyType(), KeyType()});
}
NDArrays HostSplit(const Attrs&, const NDArrays& in) {
  Key key = Read(in[0]);
  auto part = [&](Use use) {
    Block counter = key.counter;
    counter[3] = use;
    return Written({Threefry(key.cipher, counter), {}});
  };
  return {part(kLeft), part(kRight)};
}

}  // namespace

const Op op::threefry_generate = DefineOp({
    .name = "random.threefry_generate",
    .doc = "Random bits of a key, and the key for the next ones: a key is used once.",
    .inputs = {{"key", "R1: Tensor[(10), uint64], as `random.threefry_key` makes it."}},
    .output = "A tuple (next key, numbers of `out_shape`, uint64).",
    .attrs = TypeOf<ThreefryGenerateAttrs>,
    .type_rel = Rel<"random.threefry_generate", GenerateType>,
    .host = HostGenerate,
    .source = "Salmon et al., SC 2011",
});
const Op op::threefry_split = DefineOp({
    .name = "random.threefry_split",
    .doc = "Two keys of one, whose numbers have nothing to do with each other; the one is not used again.",
    .inputs = {{"key", "R1: Tensor[(10), uint64], as `random.threefry_key` makes it."}},
    .output = "A tuple of two keys.",
    .type_rel = Rel<"random.threefry_split", SplitType>,
    .host = HostSplit,
    .source = "Claessen and Palka, Haskell 2013",
});

}  // namespace baton::relay
