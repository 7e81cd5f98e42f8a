// SPDX-License-Identifier: Apache-2.0
// Elements become whole numbers that are in the same order; one with its place behind it is an entry, and entries are
// never equal. So sorting needs no comparison function, and its result is the stable one.
#include "host/order.h"

#include <baton/runtime/threading.h>

#include <algorithm>
#include <array>
#include <limits>
#include <type_traits>

namespace baton::host {
namespace {

/// Rows of fewer elements than this, in all, are not worth a second thread.
constexpr int64_t kGrain = 16384;
/// Elements looked at together by the selection.
constexpr int64_t kBlock = 32;
/// Rows longer than this are sorted digit by digit.
constexpr int64_t kLongRow = 512;

/// Numbers of a sign, an exponent and a fraction, as signed numbers in the same order: -0 is 0, every NaN the largest.
template <class Key>
Key KeyOfBits(Key bits, Key infinity) {
  constexpr Key kMagnitude = std::numeric_limits<Key>::max();
  const Key magnitude = bits & kMagnitude;
  const Key signed_key = bits < 0 ? static_cast<Key>(-magnitude) : magnitude;
  return magnitude > infinity ? kMagnitude : signed_key;
}
template <class T>
struct KeyOf {  // whole numbers
  using Key = std::conditional_t<sizeof(T) == 8, int64_t, int32_t>;
  static Key Of(T v) {
    if constexpr (std::is_unsigned_v<T> && sizeof(T) >= 4) {
      return static_cast<Key>(v ^ (T{1} << (8 * sizeof(T) - 1)));
    } else {
      return static_cast<Key>(v);
    }
  }
};
template <>
struct KeyOf<float> {
  using Key = int32_t;
  static Key Of(float v) { return KeyOfBits(__builtin_bit_cast(int32_t, v), int32_t{0x7f800000}); }
};
template <>
struct KeyOf<double> {
  using Key = int64_t;
  static Key Of(double v) { return KeyOfBits(__builtin_bit_cast(int64_t, v), int64_t{0x7ff0000000000000}); }
};
/// The upper half of a float's bits, and IEEE half precision.
template <int16_t kInfinity>
struct Narrow {
  int16_t bits;
};
template <int16_t kInfinity>
struct KeyOf<Narrow<kInfinity>> {
  using Key = int32_t;
  static Key Of(Narrow<kInfinity> v) { return KeyOfBits(v.bits, kInfinity); }
};

/// Entries rise as keys do, then as places do.
template <class Key>
struct Entries {
  using Entry = std::conditional_t<sizeof(Key) == 4, uint64_t, unsigned __int128>;
  using Unsigned = std::make_unsigned_t<Key>;
  static constexpr int kShift = 8 * sizeof(Key);
  static constexpr Unsigned kTop = Unsigned{1} << (kShift - 1);
  static Entry Make(Key key, int64_t place) {
    return static_cast<Entry>(static_cast<Unsigned>(key) ^ kTop) << kShift | static_cast<Unsigned>(place);
  }
  static Key KeyOfEntry(Entry e) { return static_cast<Key>(static_cast<Unsigned>(e >> kShift) ^ kTop); }
  static int64_t Place(Entry e) { return static_cast<int64_t>(static_cast<Unsigned>(e)); }
};

/// Entries of four bytes of key, in the order of their places, sorted by three digits of the key.
void SortByDigits(std::vector<uint64_t>* entries, std::vector<uint64_t>* spare) {
  constexpr int kBits = 11;
  constexpr uint64_t kMask = (1 << kBits) - 1;
  std::array<std::array<uint32_t, kMask + 1>, 3> counts{};
  for (uint64_t e : *entries) {
    for (int d = 0; d < 3; ++d) ++counts[d][e >> (32 + d * kBits) & kMask];
  }
  spare->resize(entries->size());
  for (int d = 0; d < 3; ++d) {
    const int shift = 32 + d * kBits;
    auto& at = counts[d];
    if (at[entries->front() >> shift & kMask] == entries->size()) continue;  // all the same
    uint32_t sum = 0;
    for (uint32_t& c : at) {
      const uint32_t n = c;
      c = sum;
      sum += n;
    }
    for (uint64_t e : *entries) (*spare)[at[e >> shift & kMask]++] = e;
    entries->swap(*spare);
  }
}

/// Vectors of 16 bytes; an element other than a number of C++ has none.
template <class T, bool = std::is_arithmetic_v<T>>
struct Lanes {
  typedef T Vector __attribute__((vector_size(16)));
};
template <class T>
struct Lanes<T, false> {
  using Vector = T;
};

template <class T>
class RowOrder {
  using Vector = typename Lanes<T>::Vector;
  static constexpr int64_t kLanes = static_cast<int64_t>(sizeof(Vector) / sizeof(T));
  using Key = typename KeyOf<T>::Key;
  using E = Entries<Key>;
  using Entry = typename E::Entry;

 public:
  RowOrder(int64_t n, int64_t k, bool ascend) : n_(n), k_(k), flip_(ascend ? 0 : -1) {}

  /// The first k entries of a row whose elements are `step` apart, in order.
  const std::vector<Entry>& Of(const T* row, int64_t step) {
    entries_.clear();
    if (k_ * 8 > n_) {
      for (int64_t j = 0; j < n_; ++j) entries_.push_back(E::Make(At(row, j * step), j));
    } else {
      Select(row, step);
    }
    const int64_t have = static_cast<int64_t>(entries_.size());
    if (sizeof(Key) == 4 && have <= k_ && have > kLongRow && n_ < std::numeric_limits<uint32_t>::max()) {
      if constexpr (sizeof(Key) == 4) SortByDigits(&entries_, &spare_);
      return entries_;
    }
    if (k_ < have) {
      Keep(entries_.size());
      entries_.resize(static_cast<size_t>(k_));
    }
    std::sort(entries_.begin(), entries_.end());
    return entries_;
  }

 private:
  /// Falling order is rising order of the complements.
  Key At(const T* row, int64_t i) const { return static_cast<Key>(KeyOf<T>::Of(row[i]) ^ flip_); }

  /// Elements that may be among the first k are collected, a few times k at once.
  void Select(const T* row, int64_t step) {
    const auto most = static_cast<size_t>(std::max<int64_t>(2 * k_, k_ + 64));
    Entry last = ~Entry{0};  // entries behind it are not among the first k
    T limit{};
    bool limited = false, strict = false;
    if constexpr (std::is_arithmetic_v<T>) {
      limited = Bound(row, step, &limit);
      if (limited) last = E::Make(static_cast<Key>(KeyOf<T>::Of(limit) ^ flip_), -1);
    }
    entries_.resize(most + kBlock);
    size_t count = 0;
    for (int64_t begin = 0; begin < n_; begin += kBlock) {
      const int64_t end = std::min(n_, begin + kBlock);
      if (limited && step == 1 && end - begin == kBlock && !AnyBefore(row + begin, limit, strict)) continue;
      for (int64_t j = begin; j < end; ++j) {  // without a branch, which would be guessed
        const Entry e = E::Make(At(row, j * step), j);
        entries_[count] = e;
        count += e <= last;
      }
      if (count < most) continue;
      Keep(count);
      count = static_cast<size_t>(k_);
      last = entries_[count - 1];
      limit = row[E::Place(last) * step], limited = strict = true;  // of equal elements those that came before stay
    }
    entries_.resize(count);
  }
  /// Whether `a` comes before `b`; NaN never does.
  bool Before(T a, T b) const { return flip_ == 0 ? a < b : a > b; }
  /// A value that at least k elements come before or are equal to: the last of the firsts of k groups. False where a
  /// group has none.
  bool Bound(const T* row, int64_t step, T* out) {
    using Limits = std::numeric_limits<T>;
    const T highest = Limits::has_infinity ? Limits::infinity() : Limits::max();
    const T lowest = Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
    const T worst = flip_ == 0 ? highest : lowest;
    const int64_t groups = (k_ + kLanes - 1) / kLanes * kLanes;
    firsts_.assign(static_cast<size_t>(groups), worst);
    for (int64_t begin = 0; begin + groups <= n_; begin += groups) {
      if (step == 1) {
        for (int64_t g = 0; g < groups; g += kLanes) {
          Vector v, first;
          __builtin_memcpy(&v, row + begin + g, sizeof(v));
          __builtin_memcpy(&first, &firsts_[static_cast<size_t>(g)], sizeof(v));
          first = flip_ == 0 ? (v < first ? v : first) : (v > first ? v : first);
          __builtin_memcpy(&firsts_[static_cast<size_t>(g)], &first, sizeof(v));
        }
      } else {
        for (int64_t g = 0; g < groups; ++g) {
          const T v = row[(begin + g) * step];
          T& first = firsts_[static_cast<size_t>(g)];
          first = Before(v, first) ? v : first;
        }
      }
    }
    *out = firsts_[0];
    for (const T& first : firsts_) *out = Before(*out, first) ? first : *out;
    return *out != worst;
  }
  /// Whether an element of a block may be before a limit, or equal to one that is not strict, by comparing vectors; a
  /// NaN among them may.
  bool AnyBefore(const T* block, T limit, bool strict) const {
    if constexpr (std::is_arithmetic_v<T>) {
      if (limit != limit) return true;
      const Vector limits = limit - Vector{};
      auto none = limits == limits;  // of all lanes: not before
      for (int64_t j = 0; j < kBlock; j += kLanes) {
        Vector v;
        __builtin_memcpy(&v, block + j, sizeof(v));
        none &= flip_ == 0 ? (strict ? v >= limits : v > limits) : (strict ? v <= limits : v < limits);
      }
      for (int64_t lane = 0; lane < kLanes; ++lane) {
        if (!none[lane]) return true;
      }
      return false;
    }
    return true;
  }
  /// The first k of the first `count` entries, the last of them at the end.
  void Keep(size_t count) {
    const auto begin = entries_.begin();
    std::nth_element(begin, begin + (k_ - 1), begin + static_cast<std::ptrdiff_t>(count));
  }

  int64_t n_, k_;
  Key flip_;
  std::vector<Entry> entries_, spare_;
  std::vector<T> firsts_;
};

template <class T>
void OrderRows(const T* x, const Rows& rows, bool ascend, int64_t k, T* values, int64_t* places) {
  using E = Entries<typename KeyOf<T>::Key>;
  runtime::threading::ParallelFor(rows.outer * rows.inner, std::max<int64_t>(1, kGrain / std::max<int64_t>(rows.n, 1)),
                                  [&](int64_t begin, int64_t end) {
                                    RowOrder<T> order(rows.n, k, ascend);
                                    for (int64_t r = begin; r < end; ++r) {
                                      const int64_t o = r / rows.inner, i = r % rows.inner;
                                      const T* row = x + rows.At(o, 0, i);
                                      int64_t to = o * k * rows.inner + i;
                                      for (const auto& entry : order.Of(row, rows.inner)) {
                                        const int64_t place = E::Place(entry);
                                        if (values) values[to] = row[place * rows.inner];
                                        if (places) places[to] = place;
                                        to += rows.inner;
                                      }
                                    }
                                  });
}

}  // namespace

void FirstInOrder(const NDArray& x, int64_t axis, bool ascend, int64_t k, const NDArray* values,
                  const NDArray* places) {
  const Rows rows(x.shape(), axis);
  if (k == 0 || rows.outer * rows.n * rows.inner == 0) return;
  int64_t* to = places ? I64(*places) : nullptr;
  auto run = [&]<class T>(const T*) {
    OrderRows(static_cast<const T*>(x.data()), rows, ascend, k, values ? static_cast<T*>(values->data()) : nullptr, to);
  };
  const DataType t = x.dtype();
  if (t.is_floating()) {
    if (t == DataType::Float(32)) return run(static_cast<const float*>(nullptr));
    if (t == DataType::Float(64)) return run(static_cast<const double*>(nullptr));
    if (t == DataType::Float(16)) return run(static_cast<const Narrow<0x7c00>*>(nullptr));
    if (t == DataType::BFloat16()) return run(static_cast<const Narrow<0x7f80>*>(nullptr));
    // Floating types of one byte: ordered by their values, then moved.
    NDArray wide = NDArray::Empty(x.shape(), DataType::Float(64));
    const std::vector<double> all = ToDoubles(x);
    std::copy(all.begin(), all.end(), wide.ptr<double>());
    Ints shape = x.shape();
    shape[axis] = k;
    NDArray found = places ? *places : NDArray::Empty(shape, DataType::Int(64));
    FirstInOrder(wide, axis, ascend, k, nullptr, &found);
    for (int64_t e = 0; values && e < found.numel(); ++e) {
      const int64_t i = e % rows.inner, o = e / rows.inner / k;
      CopyElement(x, rows.At(o, I64(found)[e], i), *values, e);
    }
    return;
  }
  const bool whole = t.is_uint() || t.is_bool();
  switch (t.bytes()) {
    case 1:
      return whole ? run(static_cast<const uint8_t*>(nullptr)) : run(static_cast<const int8_t*>(nullptr));
    case 2:
      return whole ? run(static_cast<const uint16_t*>(nullptr)) : run(static_cast<const int16_t*>(nullptr));
    case 4:
      return whole ? run(static_cast<const uint32_t*>(nullptr)) : run(static_cast<const int32_t*>(nullptr));
    default:
      return whole ? run(static_cast<const uint64_t*>(nullptr)) : run(static_cast<const int64_t*>(nullptr));
  }
}

}  // namespace baton::host
