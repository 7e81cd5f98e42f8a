// SPDX-License-Identifier: Apache-2.0
// Mutators: from a valid input, a broken or merely odd one. The same seed gives the same mutant on every machine.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace baton::fuzz {

/// SplitMix64.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t Next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  /// 0 <= result < n; 0 where n is 0.
  size_t Below(size_t n) { return n == 0 ? 0 : static_cast<size_t>(Next() % n); }
  bool OneIn(size_t n) { return Below(n) == 0; }

 private:
  uint64_t state_;
};

/// Flips, inserts, deletes, copies and cuts bytes of `input`, knowing nothing of its format.
std::string MutateBytes(std::string input, const std::vector<std::string>& corpus, Random* random);

/// Changes fields of a serialized ModelProto and writes it again with right lengths: drops, doubles, swaps and replaces
/// fields, sets numbers to hard values, exchanges names, grafts parts of other models.
std::string MutateOnnx(const std::string& input, const std::vector<std::string>& corpus, Random* random);

/// Changes tokens of a text: drops, doubles, swaps, replaces by tokens of other texts, sets numbers to hard values,
/// repeats a stretch many times.
std::string MutateText(const std::string& input, const std::vector<std::string>& corpus, Random* random);

/// Exchanges whole numbers of a text for each other and for neighbours: where numbers refer to parts of the text, as in
/// JSON, the mutant stays readable and says something else.
std::string MutateNumbers(const std::string& input, Random* random);

/// The files of `folder` in the order of their names.
std::vector<std::string> ReadCorpus(const std::string& folder);

}  // namespace baton::fuzz
