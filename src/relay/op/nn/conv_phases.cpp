// SPDX-License-Identifier: Apache-2.0
#include "conv_phases.h"

#include <baton/arith/extent.h>
#include <baton/tir/op.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "window_gradient.h"

namespace baton::relay {
namespace {

using namespace gradient;  // NOLINT: short forms of operators

/// Convolutions beyond these cost more to start than they save.
constexpr size_t kMostConvolutions = 64;
/// Of one dimension.
constexpr int64_t kMostPhases = 1024;

/// Phases of one dimension that see their input through windows at the same places.
struct PhaseGroup {
  int64_t first = 0, count = 0;  ///< phases
  int64_t taps = 0;              ///< of the window; 0: no input reaches these phases
  int64_t last_tap = 0;          ///< place of the window's last tap, the one furthest behind: input - result / stride
};
/// One dimension: result o is of phase o % stride.
struct PhaseDim {
  int64_t stride = 1, results = 0;     ///< results of each phase, the last of some beyond those that are wanted
  PrimExpr count;                      ///< the same where it is open; then `results` counts from the input's extent
  int64_t tap_step = 1, dilation = 1;  ///< between taps: elements of the weight, of the input
  std::vector<PhaseGroup> groups;
  Ints first_tap;  ///< of each phase: the weight's element
};

/// Result o takes from input i through element k of the window where i * stride + k * dilation == o + pad.
PhaseDim PhasesOf(int64_t stride, int64_t dilation, int64_t pad, int64_t window, int64_t results) {
  PhaseDim d;
  d.stride = stride, d.results = (results + stride - 1) / stride;
  const int64_t common = std::gcd(stride, dilation);
  d.tap_step = stride / common, d.dilation = dilation / common;
  for (int64_t phase = 0; phase < stride; ++phase) {
    const int64_t at = phase + pad;
    int64_t first = 0;
    while (first < std::min(window, d.tap_step) && (at - first * dilation) % stride != 0) ++first;
    PhaseGroup g{phase, 1, 0, 0};
    if (first < std::min(window, d.tap_step)) {
      g.taps = (window - 1 - first) / d.tap_step + 1;
      g.last_tap = (at - (first + (g.taps - 1) * d.tap_step) * dilation) / stride;
    }
    d.first_tap.push_back(first);
    if (!d.groups.empty() && d.groups.back().taps == g.taps && d.groups.back().last_tap == g.last_tap) {
      ++d.groups.back().count;
    } else {
      d.groups.push_back(g);
    }
  }
  return d;
}

Expr SliceSpace(const Expr& e, const Ints& begin, const Ints& end) {
  Ints axes(begin.size());
  std::iota(axes.begin(), axes.end(), 2);
  return MakeCall<StridedSliceAttrs>(op::strided_slice, {e}, [&](StridedSliceAttrs* s) {
    s->begin = ToArray(begin), s->end = ToArray(end), s->axes = ToArray(axes);
  });
}
Expr Select(const Expr& e, const Ints& places, int64_t extent, int64_t axis) {
  bool all = static_cast<int64_t>(places.size()) == extent;
  for (size_t i = 0; i < places.size(); ++i) all = all && places[i] == static_cast<int64_t>(i);
  if (all) return e;
  return MakeCall<TakeAttrs>(op::take, {e, MakeInts(places)}, [&](TakeAttrs* t) { t->axis = PrimExpr(axis); });
}

template <int N>
class ByPhases {
 public:
  using A = ConvTransposeAttrs<N>;
  /// Where an extent of space is open, that of `in` is 0 and that of `out` how far the result's is from stride *
  /// data's; `extents` are data's.
  ByPhases(const A& a, const Expr& data, const Expr& weight, Ints in, Ints window, Ints out, DataType dtype,
           const Shape& extents)
      : a_(a),
        data_(data),
        weight_(weight),
        in_(std::move(in)),
        window_(std::move(window)),
        out_(std::move(out)),
        dtype_(dtype),
        extents_(extents),
        per_group_(out_[1] / a.groups) {}

  /// The result in the plain layout; null where it takes too many convolutions.
  Expr Make(const ConvWindow<A, N>& w) {
    size_t convolutions = 1;
    bool one_phase = true, one_phase_each = true;
    for (int d = 0; d < N; ++d) {
      // The step between inputs does not matter where there is one: then each element of the window is a phase.
      const int64_t span = WindowSpan(window_[d], w.dilation[d]), stride = in_[2 + d] == 1 ? span : w.strides[d];
      if (stride > kMostPhases) return Expr();
      const bool open = DimOf(extents_[2 + d]) < 0;
      const int64_t wanted = open && out_[2 + d] < 0 ? -(-out_[2 + d] / stride * stride) : out_[2 + d];
      dims_.push_back(PhasesOf(stride, w.dilation[d], w.pad.begin[d], window_[d], wanted));
      if (open) {
        dims_.back().results = wanted < 0 ? wanted / stride : (wanted + stride - 1) / stride;
        dims_.back().count = extents_[2 + d] + PrimExpr(dims_.back().results);
      }
      const size_t groups = dims_.back().groups.size();
      convolutions *= groups;
      one_phase = one_phase && stride == 1;
      one_phase_each = one_phase_each && static_cast<int64_t>(groups) == stride;
    }
    if (convolutions > kMostConvolutions) return Expr();
    // Phases count up in the order of channels where each convolution has one phase, or there is one convolution.
    flat_ = convolutions == 1 || (a_.groups == 1 && (N == 1 || one_phase_each));
    std::vector<PhaseGroup> chosen;
    Expr joined = Join(&chosen);
    if (!known_) return Expr();
    return one_phase ? joined : Interleave(joined);
  }

 private:
  /// The batch: -1 where it is not known.
  int64_t batch() const { return in_[0]; }
  bool IsOpen(int d) const { return dims_[d].count.defined(); }

  /// To a shape of literals and of what dimensions count.
  Expr Shaped(const Expr& e, const std::vector<PrimExpr>& shape) {
    return MakeCall<ReshapeAttrs>(op::reshape, {e},
                                  [&](ReshapeAttrs* s) { s->newshape = ExtentArray(Array<PrimExpr>(shape)); });
  }
  PrimExpr Batch() const {
    bool open = false;
    for (const PhaseDim& dim : dims_) open = open || dim.count.defined();
    return open ? extents_[0] : PrimExpr(batch());
  }
  PrimExpr Results(const PhaseDim& dim) const { return dim.count.defined() ? dim.count : PrimExpr(dim.results); }

  /// (N, phases * channels, ...), or (N, groups, phases of each dimension, channels of a group, ...) unless `flat_`.
  Expr Join(std::vector<PhaseGroup>* chosen) {
    const size_t d = chosen->size();
    if (d == N) {
      Expr y = Convolve(*chosen);
      if (flat_) return y;
      std::vector<PrimExpr> shape{Batch(), PrimExpr(a_.groups)};
      for (const PhaseGroup& g : *chosen) shape.emplace_back(g.count);
      shape.emplace_back(per_group_);
      for (const PhaseDim& dim : dims_) shape.push_back(Results(dim));
      return Shaped(y, shape);
    }
    Array<Expr> parts;
    for (const PhaseGroup& g : dims_[d].groups) {
      chosen->push_back(g);
      parts.push_back(Join(chosen));
      chosen->pop_back();
    }
    if (parts.size() == 1) return parts[0];
    return Concat(Tuple(parts), flat_ ? 1 : static_cast<int64_t>(2 + d));
  }

  /// Results of some phases, (N, groups * phases * channels of a group, ...), by one convolution.
  Expr Convolve(const std::vector<PhaseGroup>& chosen) {
    Ints before, after, begin, end, dilation, taps;
    int64_t phases = 1;
    bool cut = false, reached = true;
    for (int d = 0; d < N; ++d) {
      const PhaseGroup& g = chosen[d];
      phases *= g.count;
      reached = reached && g.taps > 0;
      const int64_t first = g.last_tap, last = dims_[d].results - 1 + g.last_tap + (g.taps - 1) * dims_[d].dilation;
      // Where windows need less than the whole input, it is cut: no convolution has negative padding.
      begin.push_back(std::max<int64_t>(first, 0)), end.push_back(std::min(last + 1, in_[2 + d]));
      reached = reached && (IsOpen(d) || begin.back() < end.back());
      before.push_back(std::max<int64_t>(-first, 0)), after.push_back(std::max<int64_t>(last + 1 - in_[2 + d], 0));
      cut = cut || begin.back() > 0 || end.back() < in_[2 + d];
      if (IsOpen(d) && end.back() == 0) end.back() = std::numeric_limits<int64_t>::max();
      dilation.push_back(dims_[d].dilation), taps.push_back(g.taps);
    }
    if (!reached) {  // no input: zeros, for a batch of known size
      known_ = known_ && batch() >= 0 &&
               std::none_of(dims_.begin(), dims_.end(), [](const PhaseDim& d) { return d.count.defined(); });
      Ints shape{batch(), a_.groups * phases * per_group_};
      for (const PhaseDim& d : dims_) shape.push_back(d.results);
      return MakeCall<InitOpAttrs>(op::zeros, {},
                                   [&](InitOpAttrs* z) { z->shape = ToArray(shape), z->dtype = dtype_; });
    }
    Expr x = cut ? SliceSpace(data_, begin, end) : data_;
    before.insert(before.end(), after.begin(), after.end());
    return MakeCall<ConvAttrs<N>>(ConvOp(N), {x, Window(chosen)}, [&](ConvAttrs<N>* c) {
      c->padding = ToArray(before), c->dilation = ToArray(dilation), c->groups = a_.groups;
      c->out_dtype = a_.out_dtype;
    });
  }

  /// (groups * phases * channels of a group, input channels of a group, taps): the window's elements that the phases
  /// see, the last first.
  Expr Window(const std::vector<PhaseGroup>& chosen) {
    Expr k = weight_;
    const int64_t inputs = in_[1] / a_.groups;
    Ints split{a_.groups, inputs, per_group_}, order{0}, plain{a_.groups * per_group_, inputs};
    for (int d = 0; d < N; ++d) {
      const PhaseGroup& g = chosen[d];
      Ints places;
      for (int64_t p = g.first; p < g.first + g.count; ++p) {
        for (int64_t t = g.taps - 1; t >= 0; --t) places.push_back(dims_[d].first_tap[p] + t * dims_[d].tap_step);
      }
      k = Select(k, places, window_[d], 2 + d);
      split.push_back(g.count), split.push_back(g.taps);
      order.push_back(3 + 2 * d);
      plain[0] *= g.count, plain.push_back(g.taps);
    }
    order.push_back(2), order.push_back(1);
    for (int d = 0; d < N; ++d) order.push_back(4 + 2 * d);
    return Reshape(Permute(Reshape(k, ToArray(split)), order), ToArray(plain));
  }

  /// Phases beside each other become neighbouring elements; then what is behind the last result goes.
  Expr Interleave(const Expr& joined) {
    Ints order{0, 1, 2 + N}, end;
    std::vector<PrimExpr> split{Batch(), PrimExpr(a_.groups)}, whole{Batch(), PrimExpr(out_[1])};
    bool cut = false;
    for (const PhaseDim& d : dims_) split.emplace_back(d.stride);
    split.emplace_back(per_group_);
    for (int d = 0; d < N; ++d) {
      const PhaseDim& dim = dims_[d];
      split.push_back(Results(dim));
      order.push_back(3 + N + d), order.push_back(2 + d);
      whole.push_back(Results(dim) * PrimExpr(dim.stride));
      const int64_t beyond = dim.results * dim.stride - out_[2 + d];
      cut = cut || beyond > 0;
      end.push_back(!IsOpen(d) ? out_[2 + d] : beyond > 0 ? -beyond : std::numeric_limits<int64_t>::max());
    }
    Expr y = flat_ ? Shaped(joined, split) : joined;
    y = Shaped(Permute(y, order), whole);
    return cut ? SliceSpace(y, Ints(N, 0), end) : y;
  }

  const A& a_;
  Expr data_, weight_;
  Ints in_, window_, out_;  // (N, C, ...) of data and result
  DataType dtype_;
  Shape extents_;
  int64_t per_group_;  // output channels
  std::vector<PhaseDim> dims_;
  bool flat_ = true, known_ = true;
};

}  // namespace

template <int N>
Expr ConvTransposeByPhases(const Attrs& attrs, const Array<Expr>& args, const Array<Type>& types) {
  using A = ConvTransposeAttrs<N>;
  const auto& a = AttrsAs<A>(attrs);
  const auto *x = AsTensor(types[0]), *w = AsTensor(types[1]), *y = AsTensor(types[2]);
  const char* name = TransposeOp<N>()->name.c_str();
  const String image = PlainLayout("NC", N), kernel = PlainLayout("IO", N),
               out_layout = a.out_layout.empty() ? a.data_layout : a.out_layout;
  if (!x || !w || !y) return Expr();
  // N, C and space; the batch may be open, and space where it is an expression.
  auto plain = [&](const Shape& shape, const String& layout, char first, char second, Ints* out, Shape* extents) {
    auto dims = topi::ParseLayout(layout.view(), name);
    std::string letters{first, second};
    letters += SpaceLetters(N);
    for (char c : letters) {
      const int64_t at = topi::FindAxis(dims, c);
      out->push_back(DimOf(shape[at]));
      extents->push_back(shape[at]);
      const bool open = out->back() < 0 && (c == 'N' || (c != second && arith::IsSymbolicExtent(shape[at])));
      if (out->back() <= 0 && !open) return false;
    }
    return true;
  };
  Ints in, window, out;
  Shape from, of_window, to;
  if (!plain(x->shape, a.data_layout, 'N', 'C', &in, &from) ||
      !plain(w->shape, a.kernel_layout, 'I', 'O', &window, &of_window) ||
      !plain(y->shape, out_layout, 'N', 'C', &out, &to))
    return Expr();
  const ConvWindow<A, N> geometry(a, name);
  bool space = false;
  for (int d = 0; d < N; ++d) {
    if (window[0] < 0 || window[2 + d] < 0 || (in[2 + d] < 0) != (out[2 + d] < 0)) return Expr();
    if (in[2 + d] >= 0) continue;
    const PrimExpr more = arith::CanonicalExtent(to[2 + d] - from[2 + d] * PrimExpr(geometry.strides[d]));
    const int64_t* known = tir::as_const_int(more);
    if (known == nullptr) return Expr();
    in[2 + d] = 0, out[2 + d] = *known, space = true;
  }
  if (space && in[0] < 0 && !arith::IsSymbolicExtent(from[0])) return Expr();
  window.erase(window.begin(), window.begin() + 2);
  Expr made = ByPhases<N>(a, ToLayout(args[0], a.data_layout, image), ToLayout(args[1], a.kernel_layout, kernel), in,
                          window, out, y->dtype, from)
                  .Make(geometry);
  return made.defined() ? ToLayout(made, image, out_layout) : Expr();
}
template Expr ConvTransposeByPhases<1>(const Attrs&, const Array<Expr>&, const Array<Type>&);
template Expr ConvTransposeByPhases<2>(const Attrs&, const Array<Expr>&, const Array<Type>&);
template Expr ConvTransposeByPhases<3>(const Attrs&, const Array<Expr>&, const Array<Type>&);

}  // namespace baton::relay
