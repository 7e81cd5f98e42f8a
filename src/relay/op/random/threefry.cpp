// SPDX-License-Identifier: Apache-2.0
// Random numbers of a key: the same key gives the same numbers, on every machine and in every order of evaluation.
// Threefry-4x64 with 20 rounds (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011) in counter mode.
//
// A key is ten words: the cipher's key (4), the next counter (4), and two that are kept for later. The last word of the
// counter says what a block is for, so that numbers, left and right keys never share one.
#include <baton/relay/op/algorithm.h>
#include <host/functions.h>

#include "../common.h"

namespace baton::relay {
namespace {

struct ThreefryGenerateAttrs : AttrsNode<ThreefryGenerateAttrs> {
  static constexpr auto _type_key = "relay.attrs.ThreefryGenerateAttrs";
  Array<int64_t> out_shape;
  static constexpr void Describe(auto& d) {
    d(F<&ThreefryGenerateAttrs::out_shape>, "Extents of the numbers.", kRequired, AtLeast(0));
  }
};

constexpr int64_t kKeyWords = 10;

void CheckKey(const TypeArgs& in) {
  in.Rank(0, 1, "R1");
  if (!(in.dtype(0) == DataType::UInt(64)) || !in.Same(in.shape(0)[0], PrimExpr(kKeyWords)))
    in.Fail("R1", in.Show(0) + ", where a key, Tensor[(10), uint64], is wanted");
}
Type KeyType() { return TensorType(Shape{PrimExpr(kKeyWords)}, DataType::UInt(64)); }
Type GenerateType(const ThreefryGenerateAttrs& a, const TypeArgs& in) {
  CheckKey(in);
  ProductOf(ToInts(a.out_shape));
  return TupleType(Array<Type>{KeyType(), TensorType(MakeShape(ToInts(a.out_shape)), DataType::UInt(64))});
}
Type SplitType(const TypeArgs& in) {
  CheckKey(in);
  return TupleType(Array<Type>{KeyType(), KeyType()});
}

}  // namespace

const Op op::threefry_generate = DefineOp({
    .name = "random.threefry_generate",
    .doc = "Random bits of a key, and the key for the next ones: a key is used once.",
    .inputs = {{"key", "R1: Tensor[(10), uint64], as `random.threefry_key` makes it."}},
    .output = "A tuple (next key, numbers of `out_shape`, uint64).",
    .attrs = TypeOf<ThreefryGenerateAttrs>,
    .type_rel = Rel<"random.threefry_generate", GenerateType>,
    .host = host::ThreefryGenerate,
    .source = "Salmon et al., SC 2011",
});
const Op op::threefry_split = DefineOp({
    .name = "random.threefry_split",
    .doc = "Two keys of one, whose numbers have nothing to do with each other; the one is not used again.",
    .inputs = {{"key", "R1: Tensor[(10), uint64], as `random.threefry_key` makes it."}},
    .output = "A tuple of two keys.",
    .type_rel = Rel<"random.threefry_split", SplitType>,
    .host = host::ThreefrySplit,
    .source = "Claessen and Palka, Haskell 2013",
});

}  // namespace baton::relay
