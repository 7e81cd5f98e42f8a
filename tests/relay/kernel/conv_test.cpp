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
  CheckConv({3, 2, 16, 5, 9, 2, 16, 1, 9, {1, 2}, {0, 4}}, true);
  CheckConv({1, 1, 8, 3, 3, 1, 8, 2, 2, {1, 1}, {3, 3, 2, 2}}, true);
}

namespace {

/// A convolution over N spatial dimensions, plain (lanes of 0) or in blocks.
template <int N>
struct ConvN {
  std::vector<int64_t> data, weight;  ///< plain shapes: N, C, ...; O, I, ...
  Array<int64_t> strides, padding, dilation;
  int64_t groups = 1, in_lanes = 0, lanes = 0;
};

template <int N>
void CheckConvN(const ConvN<N>& c, bool wants_kernel = true) {
  std::vector<int64_t> x = c.data, w = c.weight;
  std::string images = relay::ForSpace<N>("NCW", "NCHW", "NCDHW"), weights = relay::ForSpace<N>("OIW", "OIHW", "OIDHW");
  std::string out_layout = images, data_layout = images;
  bool alone = c.weight[1] == 1 && c.groups > 1;
  if (c.lanes) {
    x[1] /= c.in_lanes, x.push_back(c.in_lanes);
    int64_t i = alone ? 1 : c.in_lanes;
    w[0] /= c.lanes, w[1] /= i, w.push_back(i), w.push_back(c.lanes);
    data_layout += std::to_string(c.in_lanes) + "c", out_layout += std::to_string(c.lanes) + "c";
    weights += std::to_string(i) + "i" + std::to_string(c.lanes) + "o";
  }
  Var data = Input("x", x), weight = Input("w", w);
  const Op& op = N == 1 ? relay::op::conv1d : N == 2 ? relay::op::conv2d : relay::op::conv3d;
  auto conv = [&] {
    return relay::MakeCall(op, {data, weight}, relay::MakeAttrs<relay::ConvAttrs<N>>([&](auto* a) {
                             if (!c.strides.empty()) a->strides = c.strides;
                             if (!c.padding.empty()) a->padding = c.padding;
                             if (!c.dilation.empty()) a->dilation = c.dilation;
                             a->groups = c.groups;
                             a->data_layout = String(data_layout), a->kernel_layout = String(weights);
                             a->out_layout = String(out_layout);
                           }));
  };
  Check({data, weight}, conv(), 1e-4, wants_kernel);
  Expr zero = relay::MakeScalar(0, DataType::Float(32));
  std::vector<int64_t> channel{1, c.lanes ? c.weight[0] / c.lanes : c.weight[0]};
  for (int d = 0; d < N; ++d) channel.push_back(1);
  if (c.lanes) channel.push_back(c.lanes);
  Var b = Input("b", channel);
  Check({data, weight, b}, relay::Maximum(relay::Add(conv(), b), zero), 1e-4, wants_kernel);
  IRModule typed = relay::transform::InferType()(IRModule::FromExpr(Function({data, weight}, conv())));
  Var r = Input("r", ShapeOf(Downcast<Function>(typed->Lookup("main"))->body));
  Check({data, weight, b, r}, relay::Maximum(relay::Add(relay::Add(conv(), b), r), zero), 1e-4, wants_kernel);
}

}  // namespace

TEST_CASE("kernel: convolutions in groups, in blocks") {
  CheckConvN<2>({{1, 32, 5, 4}, {32, 16, 3, 3}, {1, 1}, {1, 1}, {}, 2, 16, 16});
  CheckConvN<2>({{2, 48, 4, 3}, {64, 24, 3, 3}, {1, 2}, {1, 1}, {}, 2, 8, 16});
  CheckConvN<2>({{2, 24, 5, 5}, {48, 8, 1, 1}, {}, {}, {}, 3, 8, 16});
  CheckConvN<2>({{1, 16, 8, 8}, {32, 4, 3, 3}, {1, 1}, {2, 2}, {2, 2}, 4, 4, 8});
}

TEST_CASE("kernel: convolutions over one dimension, in blocks") {
  CheckConvN<1>({{1, 32, 50}, {48, 32, 5}, {1}, {2}, {}, 1, 16, 16});
  CheckConvN<1>({{2, 16, 33}, {16, 16, 3}, {2}, {1, 0}, {2}, 1, 16, 16});
  CheckConvN<1>({{2, 16, 33}, {32, 16, 1}, {}, {}, {}, 1, 8, 16});
  CheckConvN<1>({{1, 32, 40}, {32, 16, 3}, {1}, {1}, {}, 2, 16, 16});
  CheckConvN<1>({{2, 32, 40}, {32, 1, 3}, {1}, {1}, {}, 32, 16, 16});
}

TEST_CASE("kernel: convolutions over three dimensions, in blocks") {
  CheckConvN<3>({{1, 8, 3, 4, 5}, {16, 8, 3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {}, 1, 4, 16});
  CheckConvN<3>({{1, 3, 5, 7, 6}, {16, 3, 3, 3, 2}, {2, 1, 2}, {1, 0, 2, 0, 1, 0}, {1, 2, 1}, 1, 3, 16});
  CheckConvN<3>({{2, 16, 3, 4, 5}, {16, 16, 1, 1, 1}, {}, {}, {}, 1, 16, 16});
  CheckConvN<3>({{1, 32, 3, 4, 5}, {32, 16, 2, 1, 3}, {}, {}, {}, 2, 16, 16});
}

TEST_CASE("kernel: convolutions over plain images") {
  // Windows of one pixel: an image is one row. In groups that no blocks divide; tiles of all sizes.
  CheckConvN<2>({{1, 136, 7, 7}, {136, 34, 1, 1}, {}, {}, {}, 4});
  CheckConvN<2>({{2, 10, 5, 3}, {14, 5, 1, 1}, {}, {}, {}, 2});
  CheckConvN<2>({{1, 7, 16, 16}, {5, 7, 1, 1}});
  CheckConvN<2>({{1, 3, 1, 3}, {2, 3, 1, 1}});
  CheckConvN<1>({{2, 6, 100}, {9, 2, 1}, {}, {}, {}, 3});
  CheckConvN<3>({{2, 6, 3, 4, 5}, {9, 2, 1, 1, 1}, {}, {}, {}, 3});
  // Others: strides keep a row in parts, dilations, rows of several vectors.
  CheckConvN<2>({{1, 5, 9, 9}, {7, 5, 3, 3}, {1, 1}, {1, 1}});
  CheckConvN<2>({{2, 6, 14, 20}, {10, 3, 3, 5}, {1, 1}, {1, 0, 0, 2}, {2, 1}, 2});
  CheckConvN<2>({{1, 3, 23, 70}, {7, 3, 7, 7}, {2, 2}, {3, 3}});
  CheckConvN<2>({{1, 3, 11, 40}, {6, 3, 3, 4}, {1, 3}, {0, 5}, {1, 2}});
  CheckConvN<2>({{1, 4, 6, 9}, {6, 4, 1, 1}, {2, 2}});
  CheckConvN<1>({{2, 5, 90}, {6, 5, 5}, {1}, {2}});
  CheckConvN<1>({{1, 6, 90}, {6, 2, 4}, {3}, {0, 2}, {2}, 3});
  CheckConvN<3>({{1, 3, 5, 6, 7}, {5, 3, 3, 3, 3}, {1, 1, 1}, {1, 1, 1}});
  CheckConvN<3>({{2, 4, 5, 9, 6}, {6, 2, 3, 2, 2}, {2, 1, 2}, {1, 0, 2, 0, 1, 0}, {1, 2, 1}, 2});
  // One channel a group.
  CheckConvN<2>({{1, 17, 14, 14}, {17, 1, 3, 3}, {1, 1}, {1, 1}, {}, 17});
  CheckConvN<2>({{2, 5, 9, 40}, {10, 1, 5, 3}, {2, 2}, {2, 1}, {}, 5});
  CheckConvN<3>({{1, 5, 4, 5, 6}, {5, 1, 3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {}, 5});
  CheckConvN<1>({{1, 5, 30}, {5, 1, 3}, {1}, {1}, {}, 5});
  // Rows too short for vectors are left to the general schedule.
  CheckConvN<2>({{1, 3, 9, 2}, {2, 3, 3, 1}}, false);
}

TEST_CASE("kernel: what follows a convolution of one row an image reads its operands by row and column") {
  Var x = Input("x", {1, 3, 4, 6}), w = Input("w", {5, 3, 1, 1});
  auto conv = [&] {
    return relay::MakeCall(relay::op::conv2d, {x, w}, relay::MakeAttrs<relay::Conv2DAttrs>([](auto*) {}));
  };
  for (const std::vector<int64_t>& shape : std::vector<std::vector<int64_t>>{
           {6}, {4, 1}, {4, 6}, {5, 1, 1}, {1, 5, 1, 1}, {1}, {1, 1, 4, 6}, {5, 4, 6}, {5, 1, 6}}) {
    Var b = Input("b", shape);
    bool by_row_or_column = shape == std::vector<int64_t>{6} || shape == std::vector<int64_t>{4, 1} ||
                            shape == std::vector<int64_t>{5, 1, 6};
    Check({x, w, b}, relay::Add(conv(), b), 1e-4, !by_row_or_column);
  }
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
