// SPDX-License-Identifier: Apache-2.0
// Races of threads, as the interpreter finds them.
#pragma once

#include <baton/tir/expr.h>

#include <string>

namespace baton::tir {

/// Two accesses of one element by different threads, at least one of them a write, that no barrier orders.
struct RaceNode : Node<RaceNode, Object> {
  static constexpr const char* _type_key = "tir.Race";
  String buffer;
  Array<int64_t> index;
  String first_thread;
  String first_place;
  bool first_writes = false;
  String second_thread;
  String second_place;
  bool second_writes = false;
  static constexpr void Describe(auto& d) {
    d(F<&RaceNode::buffer>, "Name of the buffer.");
    d(F<&RaceNode::index>, "Index of the element, one number a dimension.");
    d(F<&RaceNode::first_thread>,
      "The thread of the access that was interpreted first, as \"blockIdx.x 0, threadIdx.x 3\".");
    d(F<&RaceNode::first_place>, "Its statement: the first line of its text.");
    d(F<&RaceNode::first_writes>, "Whether it writes.");
    d(F<&RaceNode::second_thread>, "The thread of the other access.");
    d(F<&RaceNode::second_place>, "Its statement.");
    d(F<&RaceNode::second_writes>, "Whether it writes.");
  }
};
class BATON_DLL Race : public RefTo<RaceNode, ObjectRef> {
 public:
  using RefTo::RefTo;
};
/// "race on `S`[3]: thread ... writes in `...`, and thread ... reads in `...`, with no barrier between them"
BATON_DLL std::string RaceText(const Race& race);

}  // namespace baton::tir
