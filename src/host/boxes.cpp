// SPDX-License-Identifier: Apache-2.0
// Boxes of detectors: those that count, the best of those that overlap, anchors on a grid and their correction.
#include <algorithm>
#include <cmath>

#include "host/arrays.h"
#include "host/functions.h"

namespace baton::host {
namespace {

struct Box {
  double y1, x1, y2, x2;
  double Area() const { return (y2 - y1) * (x2 - x1); }
};
Box BoxOf(const double* p, bool center) {
  if (center) return {p[1] - p[3] / 2, p[0] - p[2] / 2, p[1] + p[3] / 2, p[0] + p[2] / 2};
  return {std::min(p[0], p[2]), std::min(p[1], p[3]), std::max(p[0], p[2]), std::max(p[1], p[3])};
}
bool Overlap(const Box& a, const Box& b, double threshold) {
  double h = std::min(a.y2, b.y2) - std::max(a.y1, b.y1), w = std::min(a.x2, b.x2) - std::max(a.x1, b.x1);
  if (h <= 0 || w <= 0) return false;
  double common = h * w, all = a.Area() + b.Area() - common;
  return a.Area() > 0 && b.Area() > 0 && all > 0 && common / all > threshold;
}
double Overlap(const NDArray& x, int64_t p, int64_t q) {
  double low[2][2], high[2][2];
  for (int box = 0; box < 2; ++box) {
    for (int d = 0; d < 2; ++d) {
      double u = x.GetDouble((box ? q : p) + d), v = x.GetDouble((box ? q : p) + d + 2);
      low[box][d] = std::min(u, v), high[box][d] = std::max(u, v);
    }
  }
  double common = 1, first = 1, second = 1;
  for (int d = 0; d < 2; ++d) {
    common *= std::max(0.0, std::min(high[0][d], high[1][d]) - std::max(low[0][d], low[1][d]));
    first *= high[0][d] - low[0][d];
    second *= high[1][d] - low[1][d];
  }
  double all = first + second - common;
  return all > 0 ? common / all : 0;
}
/// (batch, boxes, numbers of a box), where a box has numbers at these places.
void CheckBoxes(const Params& p, const Arrays& in, std::initializer_list<int64_t> places) {
  WantRank(p, in, 0, 3);
  const int64_t k = in[0].shape()[2];
  for (int64_t place : places) {
    if (place >= k) p.Fail(Cat("a box of ", k, " numbers has none at place ", place));
  }
}
/// The parameter as a place in a box.
int64_t Place(const Params& p, const char* name) {
  const int64_t place = p.Int(name);
  if (place < 0 || place > (1 << 20)) p.Fail(Cat("parameter `", name, "` is ", place));
  return place;
}

}  // namespace

Arrays AllClassNonMaxSuppression(const Params& p, const Arrays& in) {
  const bool center_point_box = p.Bool("center_point_box");
  WantRank(p, in, 0, 3);
  WantRank(p, in, 1, 3);
  for (int i = 2; i < 5; ++i) OneNumber(p, in, i);
  const Ints of = in[0].shape(), per = in[1].shape();
  Want(p, in, 1, of[2] == 4 && of[0] == per[0] && of[1] == per[2], "(batch, classes, boxes) for (batch, boxes, 4)");
  std::vector<double> boxes = ToDoubles(in[0]), scores = ToDoubles(in[1]);
  int64_t batch = in[1].shape()[0], classes = in[1].shape()[1], n = in[1].shape()[2], most = in[2].GetInt(0);
  double iou = in[3].GetDouble(0), least = in[4].GetDouble(0);
  std::vector<int64_t> out, order, kept;
  for (int64_t b = 0; b < batch; ++b) {
    std::vector<Box> box;
    for (int64_t k = 0; k < n; ++k) box.push_back(BoxOf(boxes.data() + (b * n + k) * 4, center_point_box));
    for (int64_t c = 0; c < classes; ++c) {
      const double* score = scores.data() + (b * classes + c) * n;
      order.clear(), kept.clear();
      for (int64_t k = 0; k < n; ++k) {
        if (score[k] > least) order.push_back(k);
      }
      std::stable_sort(order.begin(), order.end(), [&](int64_t i, int64_t j) { return score[i] > score[j]; });
      for (int64_t k : order) {
        if (static_cast<int64_t>(kept.size()) >= most) break;
        bool free = true;
        for (int64_t m : kept) free = free && !Overlap(box[k], box[m], iou);
        if (!free) continue;
        kept.push_back(k);
        out.insert(out.end(), {b, c, k});
      }
    }
  }
  return {NDArray::FromBytes(out.data(), {static_cast<int64_t>(out.size() / 3), 3}, DataType::Int(64))};
}
Arrays ValidCounts(const Params& p, const Arrays& in) {
  const int64_t score_index = Place(p, "score_index"), id_index = p.Int("id_index");
  CheckBoxes(p, in, {score_index, id_index});
  const NDArray& x = in[0];
  int64_t batch = x.shape()[0], n = x.shape()[1], k = x.shape()[2];
  double least = OneNumber(p, in, 1);
  NDArray counts = NDArray::Empty({batch}, DataType::Int(32)), out = NDArray::Empty(x.shape(), x.dtype());
  NDArray places = NDArray::Empty({batch, n}, DataType::Int(32));
  for (int64_t i = 0, all = out.numel(); i < all; ++i) out.SetDouble(i, -1);
  for (int64_t i = 0; i < batch * n; ++i) places.SetInt(i, -1);
  for (int64_t b = 0; b < batch; ++b) {
    int64_t found = 0;
    for (int64_t i = 0; i < n; ++i) {
      int64_t row = (b * n + i) * k;
      if (!(x.GetDouble(row + score_index) > least) || (id_index >= 0 && !(x.GetDouble(row + id_index) >= 0))) continue;
      for (int64_t c = 0; c < k; ++c) CopyElement(x, row + c, out, (b * n + found) * k + c);
      places.SetInt(b * n + found, i);
      ++found;
    }
    counts.SetInt(b, found);
  }
  return {counts, out, places};
}
Arrays NonMaxSuppression(const Params& p, const Arrays& in) {
  const int64_t score_index = Place(p, "score_index"), id_index = p.Int("id_index"), top_k = p.Int("top_k");
  const int64_t coord_start = Place(p, "coord_start");
  const bool force_suppress = p.Bool("force_suppress"), return_indices = p.Bool("return_indices");
  const bool invalid_to_bottom = p.Bool("invalid_to_bottom");
  CheckBoxes(p, in, {score_index, id_index, coord_start + 3});
  Want(p, in, 1, in[1].numel() == in[0].shape()[0], "a number for each of the batch");
  Want(p, in, 2, in[2].numel() == in[0].shape()[0] * in[0].shape()[1], "a number for each box");
  const NDArray &x = in[0], &indices = in[2];
  int64_t batch = x.shape()[0], n = x.shape()[1], k = x.shape()[2];
  double limit = OneNumber(p, in, 3), threshold = OneNumber(p, in, 4);
  int64_t most = limit > 0 ? static_cast<int64_t>(std::min(limit, 1e15)) : n;
  NDArray out = NDArray::Empty(x.shape(), x.dtype()), places = NDArray::Empty({batch, n}, DataType::Int(32));
  NDArray counts = NDArray::Empty({batch, 1}, DataType::Int(32));
  for (int64_t i = 0, all = out.numel(); i < all; ++i) out.SetDouble(i, -1);
  for (int64_t i = 0; i < batch * n; ++i) places.SetInt(i, -1);
  for (int64_t b = 0; b < batch; ++b) {
    int64_t valid = std::clamp<int64_t>(in[1].GetInt(b), 0, n);
    auto row = [&](int64_t i) { return (b * n + i) * k; };
    std::vector<int64_t> order, kept;
    for (int64_t i = 0; i < valid; ++i) {
      if (id_index < 0 || x.GetDouble(row(i) + id_index) >= 0) order.push_back(i);
    }
    std::stable_sort(order.begin(), order.end(), [&](int64_t i, int64_t j) {
      return x.GetDouble(row(i) + score_index) > x.GetDouble(row(j) + score_index);
    });
    if (top_k > 0 && top_k < static_cast<int64_t>(order.size())) order.resize(top_k);
    for (size_t at = 0; at < order.size() && static_cast<int64_t>(kept.size()) < most; ++at) {
      int64_t i = order[at];
      bool free = true;
      for (int64_t m : kept) {
        bool rivals =
            force_suppress || id_index < 0 || x.GetDouble(row(i) + id_index) == x.GetDouble(row(m) + id_index);
        free = free && !(rivals && Overlap(x, row(i) + coord_start, row(m) + coord_start) >= threshold);
      }
      if (!free) continue;
      int64_t to = invalid_to_bottom ? static_cast<int64_t>(kept.size()) : static_cast<int64_t>(at);
      for (int64_t c = 0; c < k; ++c) CopyElement(x, row(i) + c, out, row(to) + c);
      places.SetInt(b * n + static_cast<int64_t>(kept.size()), indices.GetInt(b * n + i));
      kept.push_back(i);
    }
    counts.SetInt(b, static_cast<int64_t>(kept.size()));
  }
  return return_indices ? Arrays{places, counts} : Arrays{out};
}
Arrays MultiBoxPrior(const Params& p, const Arrays& in) {
  WantRank(p, in, 0, 4);
  const std::vector<double> sizes = p.Doubles("sizes"), ratios = p.Doubles("ratios"), steps = p.Doubles("steps"),
                            offsets = p.Doubles("offsets");
  const bool clip = p.Bool("clip");
  if (sizes.empty() || ratios.empty() || steps.size() != 2 || offsets.size() != 2)
    p.Fail("there are a size and a ratio or more, two steps and two offsets");
  int64_t h = in[0].shape()[2], w = in[0].shape()[3];
  double step_y = steps[0] > 0 ? steps[0] : 1.0 / static_cast<double>(h);
  double step_x = steps[1] > 0 ? steps[1] : 1.0 / static_cast<double>(w);
  // Half extents (x, y) of each kind of box.
  std::vector<std::pair<double, double>> halves;
  double aspect = static_cast<double>(h) / static_cast<double>(std::max<int64_t>(w, 1));
  for (double size : sizes) halves.emplace_back(size * aspect / 2, size / 2);
  for (size_t k = 1; k < ratios.size(); ++k) {
    double root = std::sqrt(ratios[k]);
    halves.emplace_back(sizes[0] * aspect * root / 2, sizes[0] / root / 2);
  }
  int64_t each = static_cast<int64_t>(halves.size());
  NDArray out = NDArray::Empty({1, h * w * each, 4}, in[0].dtype());
  int64_t at = 0;
  for (int64_t y = 0; y < h; ++y) {
    for (int64_t x = 0; x < w; ++x) {
      double cy = (static_cast<double>(y) + offsets[0]) * step_y, cx = (static_cast<double>(x) + offsets[1]) * step_x;
      for (auto [half_x, half_y] : halves) {
        for (double v : {cx - half_x, cy - half_y, cx + half_x, cy + half_y})
          out.SetDouble(at++, clip ? std::clamp(v, 0.0, 1.0) : v);
      }
    }
  }
  return {out};
}
Arrays MultiBoxTransformLoc(const Params& p, const Arrays& in) {
  const bool clip = p.Bool("clip");
  const double threshold = p.Double("threshold");
  const std::vector<double> variances = p.Doubles("variances");
  if (variances.size() != 4) p.Fail(Cat("there are ", variances.size(), " variances, where 4 are wanted"));
  WantRank(p, in, 0, 3);
  const NDArray &prob = in[0], &loc = in[1], &anchor = in[2];
  int64_t batch = prob.shape()[0], classes = prob.shape()[1], n = prob.shape()[2];
  Want(p, in, 1, loc.numel() == batch * n * 4, "four numbers for each box");
  Want(p, in, 2, anchor.numel() == n * 4, "four numbers for each anchor");
  NDArray out = NDArray::Empty({batch, n, 6}, prob.dtype()), counts = NDArray::Empty({batch}, DataType::Int(32));
  for (int64_t i = 0, all = out.numel(); i < all; ++i) out.SetDouble(i, -1);
  for (int64_t b = 0; b < batch; ++b) {
    int64_t found = 0;
    for (int64_t i = 0; i < n; ++i) {
      // Class 0 is the background.
      int64_t best = 0;
      double score = -1;
      for (int64_t c = 1; c < classes; ++c) {
        double v = prob.GetDouble((b * classes + c) * n + i);
        if (v > score) score = v, best = c;
      }
      if (best == 0 || score < threshold) continue;
      double box[4], move[4];
      for (int k = 0; k < 4; ++k) {
        box[k] = anchor.GetDouble(i * 4 + k);
        move[k] = loc.GetDouble((b * n + i) * 4 + k) * variances[k];
      }
      double w = box[2] - box[0], h = box[3] - box[1], cx = (box[0] + box[2]) / 2, cy = (box[1] + box[3]) / 2;
      cx += move[0] * w, cy += move[1] * h;
      double half_w = std::exp(move[2]) * w / 2, half_h = std::exp(move[3]) * h / 2;
      int64_t at = (b * n + found) * 6;
      out.SetDouble(at, static_cast<double>(best - 1));
      out.SetDouble(at + 1, score);
      int64_t k = 2;
      for (double v : {cx - half_w, cy - half_h, cx + half_w, cy + half_h})
        out.SetDouble(at + k++, clip ? std::clamp(v, 0.0, 1.0) : v);
      ++found;
    }
    counts.SetInt(b, found);
  }
  return {out, counts};
}

namespace {
const Register kBoxes[] = {{"vision.all_class_non_max_suppression", 5, AllClassNonMaxSuppression},
                           {"vision.get_valid_counts", 2, ValidCounts},
                           {"vision.non_max_suppression", 5, NonMaxSuppression},
                           {"vision.multibox_prior", 1, MultiBoxPrior},
                           {"vision.multibox_transform_loc", 3, MultiBoxTransformLoc}};
}
}  // namespace baton::host
