// SPDX-License-Identifier: Apache-2.0
#include "tir/interpreter/races.h"

#include <baton/runtime/registry.h>
#include <baton/tir/interpreter.h>
#include <baton/tir/printer.h>
#include <fmt/format.h>

#include <algorithm>

namespace baton::tir {

const RegisterNodes<RaceNode> registered_race;

std::string RaceText(const Race& race) {
  const auto side = [](const String& thread, bool writes, const String& place) {
    return fmt::format("{} {} in `{}`", thread.str(), writes ? "writes" : "reads", place.str());
  };
  std::string index;
  for (int64_t i : race->index) index += fmt::format("{}{}", index.empty() ? "" : ", ", i);
  return fmt::format("race on `{}`[{}]: {}, and {}, with no barrier between them", race->buffer.str(), index,
                     side(race->first_thread, race->first_writes, race->first_place),
                     side(race->second_thread, race->second_writes, race->second_place));
}
BATON_REGISTER_GLOBAL("tir.RaceText").set_body_typed([](Race race) { return String(RaceText(race)); });

namespace interpreter {
namespace {

constexpr int64_t kWarp = 32;

/// The first line of a statement's text.
std::string PlaceText(const Object* place) {
  std::string text = place ? AsText(GetRef<ObjectRef>(place)) : "";
  text = text.substr(0, text.find('\n'));
  const size_t begin = text.find_first_not_of(' ');
  return begin == text.npos ? "" : text.substr(begin);
}

}  // namespace

void RaceFinder::BeginKernel(const std::vector<KernelAxis>& axes, const std::vector<int64_t>& extents) {
  global_.clear();
  blocks_.clear();
  threads_.clear();
  int64_t threads = 1;
  for (size_t i = 0; i < axes.size(); ++i) {
    (IsBlockAxis(axes[i].axis) ? blocks_ : threads_).push_back({ThreadAxisName(axes[i].axis), extents[i]});
    if (!IsBlockAxis(axes[i].axis)) threads *= extents[i];
  }
  // Warps are of threads that follow each other in threadIdx.x first.
  warp_of_.assign(static_cast<size_t>(std::max<int64_t>(threads, 0)), 0);
  for (int64_t t = 0; t < threads; ++t) {
    int64_t at[3] = {0, 0, 0}, size[3] = {1, 1, 1}, rest = t;
    for (size_t i = axes.size(); i-- > 0;) {
      if (IsBlockAxis(axes[i].axis)) continue;
      at[axes[i].axis - 3] = rest % extents[i];
      size[axes[i].axis - 3] = extents[i];
      rest /= extents[i];
    }
    warp_of_[static_cast<size_t>(t)] = ((at[2] * size[1] + at[1]) * size[0] + at[0]) / kWarp;
  }
  first_round_ = 0;
}

void RaceFinder::BeginLoop(const Var& var, int64_t begin) {
  global_.clear();
  blocks_ = {{var->name_hint.str(), INT64_MAX}};
  threads_.clear();
  warp_of_ = {0};
  first_round_ = begin;
}

void RaceFinder::BeginBlock(int64_t block) {
  shared_.clear();
  block_ = block;
}

void RaceFinder::Wait(const std::string& scope) {
  ++(scope == "warp" ? warp_epoch_ : scope == "global" ? global_epoch_ : shared_epoch_);
}

bool RaceFinder::Ordered(const By& before, const By& now) const {
  if (before.block < 0) return true;
  if (before.block != now.block) return false;
  return before.thread == now.thread || before.epoch != now.epoch ||
         (before.warp_epoch != now.warp_epoch &&
          warp_of_[static_cast<size_t>(before.thread)] == warp_of_[static_cast<size_t>(now.thread)]);
}

void RaceFinder::Access(const Element& element, bool writes, int64_t thread, const Object* place) {
  const By now{block_, thread, element.of_block ? shared_epoch_ : global_epoch_, warp_epoch_, place};
  const int64_t bytes = element.buffer->dtype.element_of().bytes();
  for (int64_t word = 0; word < bytes; word += 4) {
    Word& known = (element.of_block ? shared_ : global_)[{element.root, element.byte + word}];
    if (!Ordered(known.writer, now)) Report(element, known.writer, true, now, writes);
    if (writes) {
      for (const By& reader : known.readers) {
        if (!Ordered(reader, now)) Report(element, reader, false, now, true);
      }
      known.writer = now;
      continue;
    }
    By* const slot = std::find_if(known.readers, known.readers + 2, [&](const By& r) { return Ordered(r, now); });
    if (slot != known.readers + 2) *slot = now;
  }
}

std::string RaceFinder::ThreadText(const By& by) const {
  std::vector<std::string> parts;
  const auto add = [&](const auto& axes, int64_t n) {
    const size_t behind = parts.size();
    for (size_t i = axes.size(); i-- > 0;) {
      parts.insert(parts.begin() + static_cast<int64_t>(behind),
                   fmt::format("{} {}", axes[i].first, n % axes[i].second + first_round_));
      n /= axes[i].second;
    }
  };
  add(blocks_, by.block);
  add(threads_, by.thread);
  return parts.empty() ? "the thread" : fmt::format("{}", fmt::join(parts, ", "));
}

void RaceFinder::Report(const Element& element, const By& first, bool first_writes, const By& second,
                        bool second_writes) {
  const Object* data = element.buffer->data.get();
  const auto [low, high] = std::minmax(first.place, second.place, std::less<>());
  if (!seen_.emplace(low, high, data).second) return;
  std::vector<int64_t> index(element.shape.size());
  int64_t rest = element.index;
  for (size_t d = index.size(); d-- > 0;) {
    const int64_t extent = d > 0 ? std::max<int64_t>(element.shape[d], 1) : INT64_MAX;
    index[d] = rest % extent;
    rest /= extent;
  }
  Race race(element.buffer->name, Array<int64_t>(index.begin(), index.end()), String(ThreadText(first)),
            String(PlaceText(first.place)), first_writes, String(ThreadText(second)), String(PlaceText(second.place)),
            second_writes);
  found_->push_back(race);
}

}  // namespace interpreter
}  // namespace baton::tir
