// SPDX-License-Identifier: Apache-2.0
#include <baton/runtime/error.h>
#include <baton/runtime/registry.h>
#include <baton/runtime/step_clock.h>
#include <baton/support/json.h>
#include <baton/support/text.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <map>
#include <sstream>
#include <utility>
#include <vector>

namespace baton::runtime {
namespace {

using support::Cat;
using support::Json;

/// Formulas in postfix, by words.
struct StepWork {
  std::vector<std::string> flops, bytes;
};

/// The words of a formula; none where it is not a text: models of older versions have numbers there.
std::vector<std::string> Words(const Json& formula) {
  if (!formula.is_string()) return {};
  std::istringstream in{std::string(formula.AsString())};
  return {std::istream_iterator<std::string>(in), std::istream_iterator<std::string>()};
}

/// The value of an operation on two numbers; NaN for an unknown one.
double Apply(std::string_view op, double a, double b) {
  if (op == "+") return a + b;
  if (op == "-") return a - b;
  if (op == "*") return a * b;
  if (op == "/") return a / b;
  if (op == "//") return std::floor(a / b);
  if (op == "%") return a - std::floor(a / b) * b;
  if (op == "least") return std::min(a, b);
  if (op == "most") return std::max(a, b);
  if (op == "==") return a == b;
  if (op == "<") return a < b;
  if (op == "<=") return a <= b;
  return NAN;
}

/// The value of a formula; NaN where it is malformed or asks for a word beyond the last.
double Value(const std::vector<std::string>& formula, const int64_t* s, int32_t words) {
  std::vector<double> stack;
  auto pop = [&] {
    const double top = stack.empty() ? NAN : stack.back();
    if (!stack.empty()) stack.pop_back();
    return top;
  };
  for (const std::string& word : formula) {
    const bool place = word[0] == 's';
    const char *begin = word.data() + place, *end = word.data() + word.size();
    double number = 0;
    if (const auto [rest, error] = std::from_chars(begin, end, number); error == std::errc() && rest == end) {
      const bool there = number >= 0 && number < words && number == std::floor(number);
      stack.push_back(!place ? number : there ? static_cast<double>(s[static_cast<int32_t>(number)]) : NAN);
    } else if (word == "?") {
      const double b = pop(), a = pop();
      stack.push_back(pop() != 0 ? a : b);
    } else {
      const double b = pop(), a = pop();
      stack.push_back(Apply(word, a, b));
    }
  }
  return stack.size() == 1 ? stack[0] : NAN;
}

class Clock : public StepClock {
 public:
  Clock(std::string_view steps, int rounds);
  void AddGraph(const Module& code, const std::string& symbol, EntryFunction entry, int32_t words) final;
  int32_t Run(size_t graph, void** io, const uint8_t* constants, uint8_t* arena, const int64_t* s) final;
  void AddStep(size_t graph, size_t step, double begin, const int64_t* s) final;
  void AddHost(const std::string& name, int64_t function, int64_t at, double begin) final;
  ObjectRef Rounds(ObjectRef (*call)(void* self, StepClock* clock), void* self) final;
  Array<Any> Answer(const ObjectRef& value) const final;

 private:
  struct Part {
    EntryFunction whole = nullptr;
    StepFunction steps = nullptr;  // null: one step, or unknown ones
    size_t first = 0, count = 1;
  };
  struct Graph {
    std::string symbol;
    int32_t words = 0;
    const std::vector<StepWork>* work = nullptr;
    std::vector<Part> parts;
    bool known = false;  // whether steps are told apart
    std::vector<size_t> rows;
  };
  struct Row {
    std::string name;
    int64_t step = -1, count = 0, function = -1, at = -1;
    double flops = 0, bytes = 0;  // of all runs; not finite where a run's are not known
  };
  struct Round {
    double plain = 0, timed = 0;
  };
  size_t NewRow(Row row);
  void Add(size_t row, double seconds);

  std::string steps_;
  std::map<std::string, std::vector<std::pair<std::string, size_t>>> parts_;  // of each graph
  std::map<std::string, std::vector<StepWork>> works_;
  std::vector<Graph> graphs_;
  std::vector<Row> rows_;
  std::map<std::pair<int64_t, int64_t>, size_t> host_;  // rows, by function and word
  std::vector<std::vector<double>> seconds_;            // of each round, by row
  std::vector<Round> rounds_done_;
  int rounds_;
};

Clock::Clock(std::string_view steps, int rounds) : steps_(steps), rounds_(rounds) {
  if (rounds < 1) throw ValueError(Cat("a profile takes at least one round, got ", rounds));
  if (steps_.empty()) return;
  const Json told = Json::Parse(steps_, "steps");
  for (const Json::Member& graph : told.At("graphs").AsObject()) {
    auto& parts = parts_[graph.first];
    for (const Json& part : graph.second.At("parts").AsArray()) {
      const int64_t count = part[1].AsInt();
      if (count < 0) throw ValueError("a part with a negative number of steps");
      parts.emplace_back(part[0].AsString(), static_cast<size_t>(count));
    }
    auto& works = works_[graph.first];
    for (const Json& step : graph.second.At("steps").AsArray()) {
      works.push_back({Words(step[3]), Words(step[4])});
    }
    size_t left = works.size();
    for (const auto& [symbol, count] : parts) {
      if (count > left) throw ValueError(Cat("parts of more steps than the ", works.size(), " that are told"));
      left -= count;
    }
  }
}

void Clock::AddGraph(const Module& code, const std::string& symbol, EntryFunction entry, int32_t words) {
  Graph graph;
  graph.symbol = symbol, graph.words = words;
  if (const auto work = works_.find(symbol); work != works_.end()) graph.work = &work->second;
  size_t first = 0;
  const auto told = parts_.find(symbol);
  graph.known = told != parts_.end();
  for (const auto& [name, count] : graph.known ? told->second : std::vector<std::pair<std::string, size_t>>()) {
    Part part;
    part.first = first, part.count = count;
    part.whole = name == symbol ? entry : reinterpret_cast<EntryFunction>(code->GetSymbol(name.c_str()));
    if (count > 1) part.steps = reinterpret_cast<StepFunction>(code->GetSymbol(Cat(name, kStepsSuffix).c_str()));
    graph.known = graph.known && (count < 2 || part.steps) && (count == 0 || part.whole || part.steps);
    first += count;
    graph.parts.push_back(part);
  }
  // A device's row of steps has no entry: the machine runs its steps.
  if (!graph.known && entry) {
    graph.parts.assign(1, Part());
    graph.parts[0].whole = entry;
  }
  graphs_.push_back(std::move(graph));
}

int32_t Clock::Run(size_t graph, void** io, const uint8_t* constants, uint8_t* arena, const int64_t* s) {
  const bool known = graphs_[graph].known;
  for (const Part& part : graphs_[graph].parts) {
    for (size_t i = 0; i < part.count; ++i) {
      const double begin = Now();
      const int32_t code = part.steps ? part.steps(io, constants, arena, s, static_cast<int64_t>(i))
                                      : part.whole(io, constants, arena, s);
      if (code) return code;
      AddStep(graph, known ? part.first + i : SIZE_MAX, begin, s);
    }
  }
  return 0;
}

void Clock::AddStep(size_t graph, size_t step, double begin, const int64_t* s) {
  const double spent = Now() - begin;
  Graph& g = graphs_[graph];
  const size_t at = step == SIZE_MAX ? 0 : step;
  while (g.rows.size() <= at) g.rows.push_back(SIZE_MAX);
  if (g.rows[at] == SIZE_MAX) g.rows[at] = NewRow({g.symbol, static_cast<int64_t>(step)});
  Add(g.rows[at], spent);
  Row& row = rows_[g.rows[at]];
  const bool told = g.work && step < g.work->size();
  const int32_t words = s ? g.words : 0;
  row.flops += told ? Value((*g.work)[step].flops, s, words) : NAN;
  row.bytes += told ? Value((*g.work)[step].bytes, s, words) : NAN;
}

void Clock::AddHost(const std::string& name, int64_t function, int64_t at, double begin) {
  const double spent = Now() - begin;
  const auto [it, fresh] = host_.try_emplace({function, at}, rows_.size());
  if (fresh) NewRow({name, -1, 0, function, at, NAN, NAN});
  Add(it->second, spent);
}

size_t Clock::NewRow(Row row) {
  rows_.push_back(std::move(row));
  return rows_.size() - 1;
}

void Clock::Add(size_t row, double seconds) {
  std::vector<double>& now = seconds_.back();
  if (now.size() <= row) now.resize(row + 1);
  now[row] += seconds;
  ++rows_[row].count;
}

ObjectRef Clock::Rounds(ObjectRef (*call)(void* self, StepClock* clock), void* self) {
  ObjectRef value = call(self, nullptr);  // memory comes into being
  for (int r = 0; r < rounds_; ++r) {
    double begin = Now();
    value = call(self, nullptr);
    const double plain = Now() - begin;
    seconds_.emplace_back();
    begin = Now();
    value = call(self, this);
    rounds_done_.push_back({plain, Now() - begin});
  }
  return value;
}

Array<Any> Clock::Answer(const ObjectRef& value) const {
  Array<Any> rows, rounds;
  for (const Row& row : rows_) {
    const int64_t count = row.count / rounds_;  // of a call
    const auto of_call = [this](double n) { return Any(std::isfinite(n) ? n / rounds_ : -1.0); };
    rows.push_back(Any(Array<Any>{Any(row.name), Any(row.step), Any(count), Any(row.function), Any(row.at),
                                  of_call(row.flops), of_call(row.bytes)}));
  }
  for (size_t r = 0; r < rounds_done_.size(); ++r) {
    Array<double> times{rounds_done_[r].plain, rounds_done_[r].timed};
    for (size_t i = 0; i < rows_.size(); ++i) times.push_back(i < seconds_[r].size() ? seconds_[r][i] : 0);
    rounds.push_back(Any(times));
  }
  return {Any(steps_), Any(rows), Any(rounds), Any(value)};
}

BATON_REGISTER_GLOBAL("vm.StepClock").set_body_typed([](String steps, int rounds) -> void* {
  return new Clock(steps.view(), rounds);  // the caller owns it
});

}  // namespace
}  // namespace baton::runtime
