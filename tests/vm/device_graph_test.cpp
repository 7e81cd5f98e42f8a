// SPDX-License-Identifier: Apache-2.0
#include <baton/runtime/error.h>
#include <baton/vm/device_graph.h>
#include <doctest/doctest.h>

using namespace baton;      // NOLINT
using namespace baton::vm;  // NOLINT

namespace {

/// Two inputs and an output on two devices: a copy, and a kernel.
DeviceGraph Small() {
  DeviceGraph g;
  g.devices.resize(2);
  g.devices[0] = {1, 128, 0, 64, ""};
  g.devices[1] = {12, 256, 64, 64, ""};
  g.inputs = {0, 1};
  g.outputs = {1};
  g.steps.push_back({"", 1, {{DevicePlace::kIo, 0, 0}, {DevicePlace::kArena, 1, 64}}, 192});
  g.steps.push_back(
      {"f", 1, {{DevicePlace::kArena, 1, 64}, {DevicePlace::kConstant, 1, 0}, {DevicePlace::kIo, 1, 2}}, 0, 2});
  return g;
}

DeviceGraph Again(const DeviceGraph& g) { return DeviceGraph::Load(g.Save(), 2, 1, 128); }

}  // namespace

TEST_CASE("device graph: comes back as it was saved") {
  const DeviceGraph g = Small();
  const DeviceGraph again = Again(g);
  CHECK(IsDeviceGraph(g.Save()));
  CHECK(again.Save() == g.Save());
  CHECK(again.steps.size() == 2);
  CHECK(again.steps[1].symbol == "f");
  CHECK(again.steps[1].reads == 2);
  CHECK(again.devices[1].arena_bytes == 256);
}

TEST_CASE("device graph: what points outside is refused before anything runs") {
  auto refused = [](auto change) {
    DeviceGraph g = Small();
    change(&g);
    CHECK_THROWS_AS(Again(g), runtime::Error);
  };
  refused([](DeviceGraph* g) { g->inputs.push_back(0); });
  refused([](DeviceGraph* g) { g->outputs[0] = 2; });
  refused([](DeviceGraph* g) { g->devices[0].type = 99; });
  refused([](DeviceGraph* g) { g->devices[1].constants_begin = 32; });
  refused([](DeviceGraph* g) { g->devices[1].constants_bytes = 65; });
  refused([](DeviceGraph* g) { g->steps[0].bytes = 193; });         // beyond the arena
  refused([](DeviceGraph* g) { g->steps[0].args[1].at = 65; });     // the same
  refused([](DeviceGraph* g) { g->steps[0].args.pop_back(); });     // a copy of one place
  refused([](DeviceGraph* g) { g->steps[1].args[0].at = 257; });    // a kernel's argument beyond the arena
  refused([](DeviceGraph* g) { g->steps[0].args[0].at = 1; });      // an input that lies elsewhere
  refused([](DeviceGraph* g) { g->steps[1].args[2].at = 3; });      // no such output
  refused([](DeviceGraph* g) { g->steps[1].args[0].device = 0; });  // on another device than the kernel
  refused([](DeviceGraph* g) { g->steps[1].args[0].kind = 7; });
  refused([](DeviceGraph* g) { g->steps[0].device = -1; });
  CHECK_THROWS_AS(DeviceGraph::Load("{\"devices\":3}", 0, 0, 0), runtime::Error);
  CHECK_THROWS_AS(DeviceGraph::Load("{\"devices\":[", 0, 0, 0), runtime::Error);
}
