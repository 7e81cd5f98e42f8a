// SPDX-License-Identifier: Apache-2.0
#include "relay/expr/equal_constants.h"

#include <algorithm>
#include <cstring>
#include <string_view>

namespace baton::relay {
namespace {

bool Comparable(const NDArray& a) { return a.contiguous() && a.device().device_type == kDLCPU; }

/// Elements that were not in memory are not there afterwards.
class Visit {
 public:
  explicit Visit(const NDArray& a) : array_(a), away_(a.Away()) {}
  Visit(const Visit&) = delete;
  ~Visit() {
    if (away_) array_.GiveBack();
  }

 private:
  const NDArray& array_;
  bool away_;
};

}  // namespace

uint64_t SampleHash(const NDArray& data) {
  constexpr size_t kSamples = 64, kWidth = 8;
  uint64_t h = static_cast<uint64_t>(data.dtype().code()) << 32 | static_cast<uint64_t>(data.dtype().bits());
  const auto mix = [&h](uint64_t v) { h = (h ^ v) * 0x9e3779b97f4a7c15ULL, h ^= h >> 29; };
  for (int64_t d : data.shape()) mix(static_cast<uint64_t>(d));
  const size_t bytes = Comparable(data) ? data.nbytes() : 0;
  if (bytes < kWidth) return h;
  const Visit visit(data);
  const char* p = static_cast<const char*>(data.data());
  for (size_t i = 0; i < kSamples; ++i) {
    uint64_t v;
    std::memcpy(&v, p + (bytes - kWidth) / (kSamples - 1) * i, kWidth);
    mix(v);
  }
  return h;
}

bool SameElements(const NDArray& a, const NDArray& b) {
  if (a.same_as(b)) return true;
  if (!(a.dtype() == b.dtype()) || a.shape() != b.shape() || !Comparable(a) || !Comparable(b)) return false;
  const Visit one(a), other(b);
  return std::memcmp(a.data(), b.data(), a.nbytes()) == 0;
}

const NDArray& EqualArrays::FirstOf(const NDArray& value) {
  std::vector<NDArray>& same = by_hash_[SampleHash(value)];
  const auto first = std::find_if(same.begin(), same.end(), [&](const NDArray& a) { return SameElements(a, value); });
  if (first != same.end()) return *first;
  same.push_back(value);
  return same.back();
}

}  // namespace baton::relay
