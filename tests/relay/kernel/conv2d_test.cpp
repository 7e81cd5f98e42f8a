// SPDX-License-Identifier: Apache-2.0
#include "relay/kernel/plan.h"
#include "run.h"

using namespace baton;
using namespace baton::kernel_test;

namespace {

struct Case {
  int64_t batch, in_blocks, in_lanes, height, width, out_blocks, lanes, window_h, window_w;
  Array<int64_t> strides = {1, 1}, padding = {0, 0}, dilation = {1, 1};
};

Expr Conv(const Case& c, Expr x, Expr w, bool depthwise) {
  return relay::MakeCall(depthwise ? relay::op::depthwise_conv2d_nchwc : relay::op::conv2d_nchwc, {x, w},
                         relay::MakeAttrs<relay::Conv2DAttrs>([&](auto* a) {
                           a->strides = c.strides, a->padding = c.padding, a->dilation = c.dilation;
                           std::string i = std::to_string(c.in_lanes), o = std::to_string(c.lanes);
                           a->data_layout = String("NCHW" + i + "c");
                           a->out_layout = String("NCHW" + o + "c");
                           a->kernel_layout = String("OIHW" + (depthwise ? "1" : i) + "i" + o + "o");
                           if (depthwise) a->groups = c.in_blocks * c.in_lanes;
                         }));
}

void CheckConv(const Case& c, bool depthwise = false, bool interpret = false) {
  Var x = Input("x", {c.batch, c.in_blocks, c.height, c.width, c.in_lanes});
  Var w = depthwise ? Input("w", {c.out_blocks, 1, c.window_h, c.window_w, 1, c.lanes})
                    : Input("w", {c.out_blocks, c.in_blocks, c.window_h, c.window_w, c.in_lanes, c.lanes});
  Var b = Input("b", {1, c.out_blocks, 1, 1, c.lanes});
  Expr zero = relay::MakeScalar(0, DataType::Float(32));
  Check({x, w}, Conv(c, x, w, depthwise), 1e-4, true, interpret);
  Check({x, w, b}, relay::Maximum(relay::Add(Conv(c, x, w, depthwise), b), zero));
  // A residual addition and what follows, long enough to be a loop.
  Expr y = relay::Add(Conv(c, x, w, depthwise), b);
  IRModule typed = relay::transform::InferType()(IRModule::FromExpr(Function({x, w, b}, y)));
  Var r = Input("r", ShapeOf(Downcast<Function>(typed->Lookup("main"))->body));
  Check({x, w, b, r}, relay::Maximum(relay::Add(relay::Add(Conv(c, x, w, depthwise), b), r), zero));
}

}  // namespace

TEST_CASE("kernel: convolutions of many shapes") {
  CheckConv({1, 1, 16, 6, 6, 1, 16, 3, 3, {1, 1}, {1, 1}}, false, true);
  CheckConv({1, 2, 16, 7, 7, 4, 16, 3, 3, {1, 1}, {1, 1}});
  CheckConv({2, 1, 16, 14, 15, 3, 16, 3, 3, {1, 1}, {1, 1}});
  CheckConv({1, 1, 3, 23, 21, 2, 16, 7, 7, {2, 2}, {3, 3}});
  CheckConv({1, 1, 1, 9, 9, 1, 16, 5, 5, {1, 1}, {2, 2}});
  CheckConv({1, 2, 8, 9, 11, 1, 8, 3, 3, {2, 1}, {0, 1}});
  CheckConv({1, 3, 4, 5, 8, 2, 4, 2, 3, {1, 2}, {1, 0, 0, 2}});
  CheckConv({1, 1, 16, 12, 12, 2, 16, 3, 3, {1, 1}, {2, 2}, {2, 2}});
  CheckConv({1, 1, 16, 9, 9, 1, 16, 1, 3, {1, 1}, {0, 1}});
  CheckConv({3, 1, 4, 4, 4, 5, 16, 4, 4});
  CheckConv({1, 1, 16, 30, 30, 1, 16, 3, 3, {3, 3}, {1, 1}});
}

TEST_CASE("kernel: convolutions with a window of one element") {
  CheckConv({1, 2, 16, 7, 7, 4, 16, 1, 1}, false, true);
  CheckConv({1, 1, 16, 13, 13, 3, 16, 1, 1});
  CheckConv({2, 2, 16, 14, 14, 2, 16, 1, 1});
  CheckConv({1, 2, 16, 15, 15, 2, 16, 1, 1, {2, 2}});
  CheckConv({1, 1, 8, 3, 5, 1, 8, 1, 1, {1, 1}, {1, 1}});
  CheckConv({1, 1, 16, 1, 1, 7, 16, 1, 1});
}

TEST_CASE("kernel: convolutions of one channel a group") {
  CheckConv({1, 2, 16, 14, 14, 2, 16, 3, 3, {1, 1}, {1, 1}}, true, true);
  CheckConv({2, 1, 16, 9, 17, 1, 16, 3, 3, {2, 2}, {1, 1}}, true);
  CheckConv({1, 3, 8, 7, 7, 3, 8, 5, 5, {1, 1}, {2, 2}}, true);
  CheckConv({1, 1, 16, 20, 20, 1, 16, 9, 9}, true);
  CheckConv({1, 1, 4, 8, 8, 1, 4, 3, 3, {1, 1}, {2, 2}, {2, 2}}, true);
}

TEST_CASE("kernel: the plan of a convolution keeps its tile in registers") {
  relay::kernel::Machine mc;
  for (int64_t width : {1, 7, 14, 27, 56, 112}) {
    for (int64_t blocks : {1, 2, 3, 4, 16, 63}) {
      relay::kernel::ConvShape s{1, blocks, width, width, 576, 64 * width * width * 4, 576 * blocks * 64, false};
      relay::kernel::ConvPlan p = relay::kernel::PlanConv(mc, s);
      CHECK(p.rows * p.columns * p.vectors + p.vectors + 1 <= mc.registers);
      CHECK(p.chunk >= 1);
      // Two chains of additions an instruction slot, or nothing is hidden; all there is when the image is small.
      CHECK(p.rows * p.columns * p.vectors >= std::min<int64_t>(8, width * width * blocks));
    }
  }
}
