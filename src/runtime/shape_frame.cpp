// SPDX-License-Identifier: Apache-2.0
#include <baton/runtime/c_runtime_api.h>
#include <baton/runtime/dynamic_shapes.h>
#include <baton/runtime/error.h>
#include <baton/runtime/executor.h>
#include <baton/runtime/threading.h>
#include <baton/support/text.h>

#include <algorithm>

namespace baton::runtime {
using support::Cat;
namespace {

/// The next length of a series that has eight an octave: a length that grows plans memory as often.
int64_t RoundUp(const Dim& dim, int64_t n) {
  int64_t step = 1;
  while (step * 16 <= n) step *= 2;
  step = std::max(step, dim.multiple);
  return std::max(n, std::min((n + step - 1) / step * step, dim.max));
}

}  // namespace

std::string TensorInfoString(const TensorInfo& info) {
  std::string s = Cat(DataType2String(info.dtype), "[");
  for (size_t i = 0; i < info.shape.size(); ++i) {
    if (i) s += ", ";
    if (info.shape[i] >= 0) {
      s += Cat(info.shape[i]);
    } else {
      s += i < info.extents.size() && !info.extents[i].empty() ? info.extents[i] : std::string("?");
    }
  }
  return s + "]";
}

ShapeFrame::ShapeFrame(const DynamicShapes* shapes, const std::vector<TensorInfo>* inputs, SizesFunction sizes)
    : shapes_(shapes), inputs_(inputs), sizes_(sizes) {
  for (size_t i = 0; i < inputs->size(); ++i) {
    first_axis_.push_back(static_cast<int64_t>(axes_.size()));
    for (size_t d = 0; d < shapes->extents[i].size(); ++d) {
      if (shapes->extents[i][d] >= 0) axes_.push_back({i, d, shapes->extents[i][d]});
    }
  }
  first_axis_.push_back(static_cast<int64_t>(axes_.size()));
  given_.resize(axes_.size());
  dims_.resize(shapes->dims.size());
  s_.resize(static_cast<size_t>(shapes->words));
}

void ShapeFrame::SetInput(size_t input, const int64_t* shape) {
  const auto end = static_cast<size_t>(first_axis_[input + 1]);
  for (auto a = static_cast<size_t>(first_axis_[input]); a < end; ++a) given_[a] = shape[axes_[a].axis];
}

void ShapeFrame::Fail(size_t input, const std::string& what) const {
  const TensorInfo& t = (*inputs_)[input];
  std::string shape;
  auto a = static_cast<size_t>(first_axis_[input]);
  for (size_t d = 0; d < t.shape.size(); ++d) shape += Cat(d ? ", " : "", t.shape[d] < 0 ? given_[a++] : t.shape[d]);
  throw ValueError(Cat("input `", t.name, "` has shape (", shape, t.shape.size() == 1 ? ",)" : ")", what));
}

void ShapeFrame::BindDims() {
  for (size_t a = 0; a < axes_.size(); ++a) {
    const Axis& axis = axes_[a];
    const auto k = static_cast<size_t>(axis.word);
    if (k >= dims_.size()) continue;
    const Dim& dim = shapes_->dims[k];
    const int64_t n = given_[a];
    size_t first = 0;  // axis that binds it
    while (axes_[first].word != axis.word) ++first;
    if (first < a && dims_[k] != n) {
      Fail(axis.input, Cat(": ", dim.name, " is ", n, ", input `", (*inputs_)[axes_[first].input].name, "` has ",
                           dim.name, " = ", dims_[k]));
    }
    dims_[k] = n;
    if (n < dim.min || n > dim.max) Fail(axis.input, Cat(": ", dim.name, " is ", dim.min, " to ", dim.max));
    if (n % dim.multiple) Fail(axis.input, Cat(": ", dim.name, " is a multiple of ", dim.multiple));
  }
}

void ShapeFrame::CallSizes(const std::vector<int64_t>& dims, void* const* io, std::vector<int64_t>* s) const {
  if (sizes_(dims.data(), io, threading::NumThreads(), s->data()) == 0) return;
  std::string where;
  for (size_t i = 0; i < dims.size(); ++i) where += Cat(i ? ", " : " (", shapes_->dims[i].name, " = ", dims[i]);
  if (!dims.empty()) where += ')';
  std::string why = "the shapes contradict the model";
  if (*BatonErrorMessage() != '\0') {
    try {
      ThrowFromSlot();
    } catch (const Error& e) {
      why = e.what();
    }
  }
  throw ValueError(why + where);
}

void ShapeFrame::CheckDerived() const {
  for (const Axis& axis : axes_) {
    const auto a = static_cast<size_t>(&axis - axes_.data());
    if (s_[static_cast<size_t>(axis.word)] == given_[a]) continue;
    Fail(axis.input, Cat(", where the other inputs ask for ", (*inputs_)[axis.input].extents[axis.axis], " = ",
                         s_[static_cast<size_t>(axis.word)], " in dimension ", axis.axis));
  }
}

ShapeFrame::Plan ShapeFrame::MakePlan(const std::vector<int64_t>& s, void* const* io) const {
  std::vector<int64_t> larger = s, dims = dims_;
  for (size_t i = 0; i < dims.size(); ++i) dims[i] = RoundUp(shapes_->dims[i], s[i]);
  bool fits = true;
  try {
    CallSizes(dims, io, &larger);
  } catch (const ValueError&) {
    fits = false;  // lengths that are never asked for
  }
  Plan plan;
  plan.buffers.resize(shapes_->buffers.size());
  for (size_t i = 0; i < plan.buffers.size(); ++i) {
    const DynamicBuffer& b = shapes_->buffers[i];
    const auto word = static_cast<size_t>(b.bytes);
    // Values that sizes depend on are not rounded up: the bytes are.
    const int64_t bytes = shapes_->reads_values ? RoundUp(Dim(), s[word]) : s[word];
    plan.buffers[i].bytes = static_cast<uint64_t>(fits ? std::max(bytes, larger[word]) : s[word]);
    plan.buffers[i].first = b.first;
    plan.buffers[i].last = b.last;
  }
  plan.bytes = PlanMemory(&plan.buffers);
  return plan;
}

void ShapeFrame::UsePlan(void* const* io) {
  Plan *best = nullptr, *oldest = nullptr;
  for (Plan& plan : plans_) {
    bool fits = true;
    for (size_t i = 0; fits && i < plan.buffers.size(); ++i) {
      fits = static_cast<uint64_t>(s_[static_cast<size_t>(shapes_->buffers[i].bytes)]) <= plan.buffers[i].bytes;
    }
    if (fits && (!best || plan.bytes < best->bytes)) best = &plan;
    if (!oldest || plan.used < oldest->used) oldest = &plan;
  }
  if (!best) {
    Plan made = MakePlan(s_, io);
    ++planned_;
    if (plans_.size() < kMaxPlans) {
      plans_.resize(plans_.size() + 1);
      oldest = &plans_.back();
    }
    *oldest = std::move(made);
    best = oldest;
  }
  best->used = ++clock_;
  arena_bytes_ = std::max(arena_bytes_, best->bytes);
  for (size_t i = 0; i < best->buffers.size(); ++i) {
    s_[static_cast<size_t>(shapes_->buffers[i].offset)] = static_cast<int64_t>(best->buffers[i].offset);
  }
}

bool ShapeFrame::Update(void* const* io) {
  if (valid_ && given_ == latest_ && !shapes_->reads_values) return false;
  valid_ = false;
  BindDims();
  CallSizes(dims_, io, &s_);
  CheckDerived();
  UsePlan(io);
  latest_ = given_;
  valid_ = true;
  return true;
}

void ShapeFrame::Reserve(const std::vector<int64_t>& dims) {
  if (dims.size() != dims_.size()) throw ValueError(Cat("the model has ", dims_.size(), " dims, got ", dims.size()));
  for (size_t i = 0; i < dims.size(); ++i) {
    const Dim& dim = shapes_->dims[i];
    if (dims[i] < dim.min || dims[i] > dim.max || dims[i] % dim.multiple) {
      throw ValueError(Cat("`", dim.name, "` cannot be ", dims[i], ": it is ", dim.min, " to ", dim.max,
                           ", a multiple of ", dim.multiple));
    }
  }
  if (shapes_->reads_values) return;  // sizes are known with the values only
  valid_ = false;
  CallSizes(dims, nullptr, &s_);
  UsePlan(nullptr);
}

void ShapeFrame::Trim() {
  plans_.clear();
  arena_bytes_ = 0;
  valid_ = false;
}

void ShapeFrame::FillShape(size_t tensor, std::vector<int64_t>* shape) const {
  const std::vector<int32_t>& words = shapes_->extents[tensor];
  for (size_t d = 0; d < words.size(); ++d) {
    if (words[d] >= 0) (*shape)[d] = s_[static_cast<size_t>(words[d])];
  }
}

void CheckDynamicShapes(const DynamicShapes& shapes, const std::vector<TensorInfo>& inputs,
                        const std::vector<TensorInfo>& outputs) {
  const auto n = static_cast<int32_t>(shapes.dims.size());
  bool fits = shapes.dims.size() < 4096 && shapes.words >= n && shapes.words < (1 << 24) &&
              (shapes.extents.size() == inputs.size() + outputs.size() ||
               (shapes.extents.size() == inputs.size() && shapes.buffers.empty()));
  const auto in_words = [&](int32_t word, int32_t first) { return word >= first && word < shapes.words; };
  for (const Dim& d : shapes.dims) {
    fits = fits && d.min >= 0 && d.max <= kMaxExtent && d.min <= d.max && d.multiple >= 1 && d.multiple <= kMaxExtent;
  }
  std::vector<bool> bound(shapes.dims.size());
  for (size_t t = 0; fits && t < shapes.extents.size(); ++t) {
    const bool input = t < inputs.size();
    const TensorInfo& info = input ? inputs[t] : outputs[t - inputs.size()];
    fits = shapes.extents[t].size() == info.shape.size() && info.extents.size() == info.shape.size();
    for (size_t d = 0; fits && d < info.shape.size(); ++d) {
      const int32_t word = shapes.extents[t][d];
      fits = info.shape[d] >= 0 ? word == -1 : in_words(word, 0);
      if (fits && input && word >= 0 && word < n) bound[static_cast<size_t>(word)] = true;
    }
  }
  for (const bool b : bound) fits = fits && b;
  for (const DynamicBuffer& b : shapes.buffers) {
    fits = fits && b.first >= 0 && b.first <= b.last && in_words(b.bytes, 0) && in_words(b.offset, n);
  }
  if (!fits) throw RuntimeError("the description of its dynamic shapes contradicts itself");
}

}  // namespace baton::runtime
