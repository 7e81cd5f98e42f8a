// SPDX-License-Identifier: Apache-2.0
// Regular expressions in time linear in the text: alternatives, groups, classes, repetitions, `.`, \d \w \s \b ^ $; of
// what RE2 has, no look-around and no Unicode classes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace baton::host {

class Regex {
 public:
  /// `fault` says what is wrong with the pattern, or stays empty.
  Regex(std::string_view pattern, std::string* fault);
  /// Whether the pattern is all of the text.
  bool Matches(std::string_view text) const { return EndOfMatch(text, 0) == text.size(); }
  /// The end of the longest match that begins at a place of the text; npos if there is none.
  size_t EndOfMatch(std::string_view text, size_t begin) const;

 private:
  enum Place : uint8_t { kAnywhere, kWordEdge, kNoWordEdge, kBegin, kEnd };
  /// A state: reads a code point of `ranges` and goes to `next`, or goes to both without reading.
  struct State {
    bool reads = false;
    Place place = kAnywhere;  ///< where it may be passed
    std::vector<std::pair<uint32_t, uint32_t>> ranges;
    int next = -1, other = -1;
  };
  struct Part {
    int first, last;  ///< the last state's `next` is open
  };
  friend struct RegexParser;
  /// Adds what is reached without reading, at a place of the text.
  void Reach(int state, std::string_view text, size_t at, std::vector<bool>* on) const;

  std::vector<State> states_;
  int start_ = -1, end_ = -1;
};

}  // namespace baton::host
