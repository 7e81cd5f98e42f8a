// SPDX-License-Identifier: Apache-2.0
// Memory runs out while texts and JSON are read and written, while programs are compared, and in passes.
#include <baton/ir/structural.h>
#include <baton/ir/transform.h>
#include <baton/relay/text.h>
#include <baton/relay/transform.h>
#include <doctest/doctest.h>

#include <stdexcept>
#include <string>

#include "allocation.h"

using namespace baton;
using namespace baton::relay;

namespace {

const IRModule& Program() {
  static const IRModule mod = ParseModule(R"(#[version = "0.0.5"]
type Tree[a] { Leaf(a), Node(Tree[a], Tree[a]) }
def @twice(%f: fn (Tensor[(2, 3), float32]) -> Tensor[(2, 3), float32], %x: Tensor[(2, 3), float32]) -> Tensor[(2, 3), float32] {
  %f(%f(%x))
}
def @main(%x: Tensor[(2, 3), float32], %c: bool) -> Tensor[(2, 3), float32] {
  let %y = add(multiply(%x, 2f), 1f);
  let %t = (%y, nn.relu(%y), add(multiply(%x, 2f), 1f));
  let %g = fn (%z: Tensor[(2, 3), float32]) -> Tensor[(2, 3), float32] { tanh(%z) };
  if (%c) { @twice(%g, %t.0) } else { nn.relu(%t.2) }
})");
  return mod;
}
const std::string& Text() {
  static const std::string text = PrintText(Program());
  return text;
}
const std::string& Json() {
  static const std::string text = SaveJSON(Program());
  return text;
}
void Need(bool ok, const char* what) {
  if (!ok) throw std::logic_error(what);
}

}  // namespace

TEST_CASE("reliability 13: text of a program is read and written without memory") {
  Text();
  faults::EachAllocation("parse", [] { Need(ParseModule(Text()).defined(), "parsed"); });
  faults::EachAllocation("print", [] { Need(PrintText(Program()) == Text(), "printed"); });
  faults::EachAllocation(
      "parse errors",
      [] {
        bool thrown = false;
        try {
          ParseModule("def @main(%x: Tensor[(2, 3), float32]) { nn.rellu(%y) + }");
        } catch (const Error& e) {
          if (e.kind() == "MemoryError") throw;
          thrown = true;
        }
        Need(thrown, "a wrong text was taken");
      },
      true);
}

TEST_CASE("reliability 13: JSON is read and written without memory") {
  Json();
  faults::EachAllocation("save JSON", [] { Need(SaveJSON(Program()) == Json(), "saved"); });
  faults::EachAllocation("load JSON", [] { Need(LoadJSON(Json()).defined(), "loaded"); });
}

TEST_CASE("reliability 13: programs are compared without memory") {
  static const ObjectRef copy = LoadJSON(Json());
  faults::EachAllocation("equal", [] { Need(StructuralEqual(Program(), copy), "equal"); });
  faults::EachAllocation("hash", [] { Need(StructuralHash(Program()) == StructuralHash(copy), "hash"); });
}

TEST_CASE("reliability 13: passes without memory give an error, leave the module and the context as they were") {
  static const std::string before = PrintText(Program());
  faults::EachAllocation("InferType", [] { relay::transform::InferType()(Program()); });
  faults::EachAllocation("ToANormalForm", [] { relay::transform::ToANormalForm()(Program()); });
  faults::EachAllocation("DeadCodeElimination", [] { relay::transform::DeadCodeElimination()(Program()); });
  faults::EachAllocation("EliminateCommonSubexpr", [] { relay::transform::EliminateCommonSubexpr()(Program()); });
  CHECK(PrintText(Program()) == before);
}
