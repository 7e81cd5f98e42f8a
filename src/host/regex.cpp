// SPDX-License-Identifier: Apache-2.0
#include "host/regex.h"

#include <algorithm>
#include <utility>

namespace baton::host {
namespace {

constexpr size_t kMostStates = 20000;

/// The next code point; a byte that begins none counts as itself.
uint32_t Next(std::string_view s, size_t* at) {
  const auto c = static_cast<unsigned char>(s[(*at)++]);
  const int more = c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : c >= 0xc0 ? 1 : 0;
  uint32_t v = more == 0 ? c : c & (0x3fu >> more);
  for (int i = 0; i < more && *at < s.size(); ++i) v = v << 6 | (static_cast<unsigned char>(s[(*at)++]) & 0x3fu);
  return v;
}

using Ranges = std::vector<std::pair<uint32_t, uint32_t>>;

void Negate(Ranges* r) {
  Ranges out;
  uint32_t from = 0;
  for (uint32_t c = 0; c < 0x110000;) {  // ranges are few: walk from gap to gap
    uint32_t end = c;
    bool inside = false;
    for (const auto& [lo, hi] : *r) {
      if (c >= lo && c <= hi) inside = true, end = hi + 1;
    }
    if (inside) {
      if (from < c) out.push_back({from, c - 1});
      from = c = end;
      continue;
    }
    uint32_t next = 0x110000;
    for (const auto& [lo, hi] : *r) {
      if (lo > c && lo < next) next = lo;
    }
    c = next;
  }
  if (from < 0x110000) out.push_back({from, 0x10ffff});
  *r = out;
}

}  // namespace

struct RegexParser {
  std::string_view s;
  Regex* out;
  std::string fault;
  size_t at = 0;
  int depth = 0;

  using Part = Regex::Part;

  bool Fail(const char* what) {
    if (fault.empty()) fault = std::string(what) + " at byte " + std::to_string(at);
    return false;
  }
  int Add(Regex::State state) {
    if (out->states_.size() >= kMostStates) Fail("the pattern has too many states");
    out->states_.push_back(std::move(state));
    return static_cast<int>(out->states_.size()) - 1;
  }
  int Empty() { return Add({}); }
  int Assertion(Regex::Place place) {
    Regex::State state;
    state.place = place;
    return Add(std::move(state));
  }
  Regex::State& State(int i) { return out->states_[static_cast<size_t>(i)]; }
  bool More() const { return at < s.size() && fault.empty(); }

  Part Reading(Ranges ranges) {
    Regex::State state;
    state.reads = true;
    state.ranges = std::move(ranges);
    const int i = Add(std::move(state));
    return {i, i};
  }
  Part Then(Part a, Part b) {
    State(a.last).next = b.first;
    return {a.first, b.last};
  }
  /// The states of a part once more.
  Part Copy(Part p, int from, int to) {
    const int by = static_cast<int>(out->states_.size()) - from;
    for (int i = from; i < to && fault.empty(); ++i) {
      Regex::State state = State(i);
      auto moved = [&](int n) { return n >= from && n < to ? n + by : n; };
      state.next = i == p.last ? -1 : moved(state.next);
      state.other = moved(state.other);
      Add(std::move(state));
    }
    return {p.first + by, p.last + by};
  }
  Part Optional(Part p) {
    const int end = Empty(), fork = Empty();
    State(p.last).next = end;
    State(fork).next = p.first, State(fork).other = end;
    return {fork, end};
  }
  Part Repeated(Part p) {  // none or more
    const int end = Empty(), fork = Empty();
    State(fork).next = p.first, State(fork).other = end;
    State(p.last).next = fork;
    return {fork, end};
  }

  /// After a backslash: one code point, or a class.
  Ranges Escape() {
    if (!More()) {
      Fail("a backslash ends the pattern");
      return {};
    }
    const char c = s[at++];
    Ranges r;
    switch (c) {
      case 'd':
      case 'D':
        r = {{'0', '9'}};
        break;
      case 'w':
      case 'W':
        r = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
        break;
      case 's':
      case 'S':
        r = {{'\t', '\n'}, {'\f', '\r'}, {' ', ' '}};
        break;
      case 't':
        return {{'\t', '\t'}};
      case 'n':
        return {{'\n', '\n'}};
      case 'r':
        return {{'\r', '\r'}};
      case 'f':
        return {{'\f', '\f'}};
      case 'v':
        return {{'\v', '\v'}};
      default: {
        if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))
          Fail("an escape that is not known");
        --at;
        const uint32_t code = Next(s, &at);
        return {{code, code}};
      }
    }
    if (c < 'a') Negate(&r);
    return r;
  }

  Ranges Class() {  // after [
    Ranges r;
    const bool negated = More() && s[at] == '^';
    at += negated;
    bool first = true;
    while (true) {
      if (!More()) {
        Fail("a class without its end");
        return r;
      }
      if (s[at] == ']' && !first) break;
      first = false;
      if (s[at] == '\\') {
        ++at;
        const Ranges one = Escape();
        r.insert(r.end(), one.begin(), one.end());
        continue;
      }
      const uint32_t lo = Next(s, &at);
      if (at + 1 < s.size() && s[at] == '-' && s[at + 1] != ']') {
        ++at;
        uint32_t hi = 0;
        if (s[at] == '\\') {
          ++at;
          const Ranges one = Escape();
          hi = one.empty() ? 0 : one[0].first;
        } else {
          hi = Next(s, &at);
        }
        if (hi < lo) Fail("a range that ends before it begins");
        r.push_back({lo, hi});
      } else {
        r.push_back({lo, lo});
      }
    }
    ++at;
    if (negated) Negate(&r);
    return r;
  }

  Part Atom() {
    const char c = s[at];
    if (c == '(') {
      ++at;
      if (s.substr(at, 2) == "?:")
        at += 2;
      else if (More() && s[at] == '?')
        Fail("a group of another kind");
      if (++depth > 200) Fail("groups nest too deep");
      const Part p = Alternatives();
      --depth;
      if (!More() || s[at] != ')') Fail("a group without its end");
      ++at;
      return p;
    }
    if (c == '[') {
      ++at;
      return Reading(Class());
    }
    if (c == '.') {
      ++at;
      return Reading({{0, '\n' - 1}, {'\n' + 1, 0x10ffff}});
    }
    if (c == '\\') {
      ++at;
      if (More() && (s[at] == 'b' || s[at] == 'B')) {
        const int i = Assertion(s[at++] == 'b' ? Regex::kWordEdge : Regex::kNoWordEdge);
        return {i, i};
      }
      return Reading(Escape());
    }
    if (c == '^' || c == '$') {
      ++at;
      const int i = Assertion(c == '^' ? Regex::kBegin : Regex::kEnd);
      return {i, i};
    }
    if (c == '*' || c == '+' || c == '?' || c == '{') Fail("a repetition of nothing");
    const uint32_t code = Next(s, &at);
    return Reading({{code, code}});
  }

  bool Number(int* n) {
    if (!More() || s[at] < '0' || s[at] > '9') return false;
    for (*n = 0; More() && s[at] >= '0' && s[at] <= '9' && *n < 1001; ++at) *n = *n * 10 + (s[at] - '0');
    return true;
  }

  Part Repetition() {
    const int from = static_cast<int>(out->states_.size());
    Part p = Atom();
    while (More()) {
      const char c = s[at];
      int least = 0, most = -1;
      if (c == '*') {
        ++at;
      } else if (c == '+') {
        ++at, least = 1;
      } else if (c == '?') {
        ++at, most = 1;
      } else if (c == '{') {
        ++at;
        if (!Number(&least)) Fail("a count is missing");
        most = least;
        if (More() && s[at] == ',') {
          ++at;
          most = -1;
          Number(&most);
        }
        if (!More() || s[at] != '}') Fail("a count without its end");
        ++at;
        if (least > 1000 || most > 1000 || (most >= 0 && most < least)) Fail("a count that cannot be");
      } else {
        break;
      }
      if (More() && s[at] == '?') ++at;  // what is taken first does not matter where all must match
      if (!fault.empty()) return p;
      const int to = static_cast<int>(out->states_.size());
      const Part once = p;
      const int nothing = Empty();
      Part all{nothing, nothing};
      // Copies are made of a part whose end is open still.
      std::vector<Part> parts;
      const int count = most < 0 ? least + 1 : most;
      if (count > 0) parts.push_back(once);
      for (int i = 1; i < count; ++i) parts.push_back(Copy(once, from, to));
      for (int i = 0; i < count && fault.empty(); ++i) {
        Part one = parts[static_cast<size_t>(i)];
        if (most < 0 && i == least)
          one = Repeated(one);
        else if (i >= least)
          one = Optional(one);
        all = Then(all, one);
      }
      p = all;
    }
    return p;
  }

  Part Sequence() {
    const int e = Empty();
    Part p{e, e};
    while (More() && s[at] != '|' && s[at] != ')') p = Then(p, Repetition());
    return p;
  }

  Part Alternatives() {
    Part p = Sequence();
    while (More() && s[at] == '|') {
      ++at;
      const Part q = Sequence();
      const int fork = Empty(), end = Empty();
      State(fork).next = p.first, State(fork).other = q.first;
      State(p.last).next = end, State(q.last).next = end;
      p = {fork, end};
    }
    return p;
  }
};

Regex::Regex(std::string_view pattern, std::string* fault) {
  RegexParser parser{pattern, this, {}};
  const Part all = parser.Alternatives();
  if (parser.fault.empty() && parser.at != pattern.size()) parser.Fail("a group's end without its begin");
  end_ = parser.Empty();
  parser.State(all.last).next = end_;
  start_ = all.first;
  *fault = parser.fault;
}

void Regex::Reach(int state, std::string_view text, size_t at, std::vector<bool>* on) const {
  auto word = [&](size_t i) {
    const auto c = static_cast<unsigned char>(i < text.size() ? text[i] : ' ');
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || c == '_' || (c >= 'a' && c <= 'z');
  };
  auto passes = [&](Place place) {
    switch (place) {
      case kBegin:
        return at == 0;
      case kEnd:
        return at == text.size();
      case kWordEdge:
      case kNoWordEdge:
        return ((at > 0 && word(at - 1)) != word(at)) == (place == kWordEdge);
      default:
        return true;
    }
  };
  std::vector<int> work{state};
  while (!work.empty()) {
    const int i = work.back();
    work.pop_back();
    if (i < 0 || (*on)[static_cast<size_t>(i)]) continue;
    const State& s = states_[static_cast<size_t>(i)];
    if (!passes(s.place)) continue;
    (*on)[static_cast<size_t>(i)] = true;
    if (s.reads) continue;
    work.push_back(s.next);
    work.push_back(s.other);
  }
}

size_t Regex::EndOfMatch(std::string_view text, size_t begin) const {
  if (end_ < 0) return std::string_view::npos;
  std::vector<bool> on(states_.size());
  Reach(start_, text, begin, &on);
  size_t end = on[static_cast<size_t>(end_)] ? begin : std::string_view::npos;
  for (size_t at = begin; at < text.size() && std::find(on.begin(), on.end(), true) != on.end();) {
    const uint32_t c = Next(text, &at);
    std::vector<bool> next(states_.size());
    for (size_t i = 0; i < states_.size(); ++i) {
      if (!on[i] || !states_[i].reads) continue;
      for (const auto& [lo, hi] : states_[i].ranges) {
        if (c >= lo && c <= hi) {
          Reach(states_[i].next, text, at, &next);
          break;
        }
      }
    }
    on.swap(next);
    if (on[static_cast<size_t>(end_)]) end = at;
  }
  return end;
}

}  // namespace baton::host
