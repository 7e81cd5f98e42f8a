// SPDX-License-Identifier: Apache-2.0
#include "te/schedule/trace.h"

#include <baton/runtime/registry.h>
#include <baton/tir/op.h>
#include <baton/tir/printer.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <vector>

#include "te/schedule/schedule.h"
#include "te/schedule/stage.h"

namespace baton::te {

std::string LoopLabel(const Stage& stage, const IterVar& iv) {
  int same = 0;
  for (const IterVar& v : stage->all_iter_vars) {
    if (NameOf(v) == NameOf(iv)) ++same;
    if (v->var.same_as(iv->var)) break;
  }
  return same > 1 ? fmt::format("{}#{}", NameOf(iv), same) : std::string(NameOf(iv));
}

std::string LoopLabels(const Stage& stage, const Array<IterVar>& loops) {
  std::string out;
  for (const IterVar& iv : loops) out += " " + LoopLabel(stage, iv);
  return out.empty() ? out : out.substr(1);
}

std::string StepText(const PrimExpr& e) {
  const int64_t* n = tir::as_const_int(e);
  return n ? std::to_string(*n) : tir::AsText(e);
}

void Note(const Stage& stage, const std::string& verb, const std::string& rest) {
  if (!stage->trace.defined()) return;
  stage->trace.mut()->steps.push_back(String(verb + " " + stage->label.str() + (rest.empty() ? "" : " " + rest)));
}

namespace {

/// The words of a line: separated by spaces; a text in quotation marks is one.
std::vector<std::string> Words(std::string_view line) {
  std::vector<std::string> out;
  for (size_t i = 0; i < line.size();) {
    if (line[i] == ' ') {
      ++i;
      continue;
    }
    const bool quoted = line[i] == '"';
    size_t end = line.find(quoted ? '"' : ' ', i + 1);
    if (quoted && end != std::string_view::npos) ++end;
    end = std::min(end, line.size());
    out.emplace_back(line.substr(i, end - i));
    i = end;
  }
  return out;
}

class Replayer {
 public:
  Replayer(const Schedule& s, const Map<String, TensorIntrin>& intrins) : s_(s), intrins_(intrins) {}

  void Step(const std::string& line) {
    words_ = Words(line);
    next_ = 0;
    const std::string verb = Word("a step");
    const auto it = Verbs().find(verb);
    if (it == Verbs().end()) {
      std::string known;
      for (const auto& [name, f] : Verbs()) known += (known.empty() ? "" : ", ") + name;
      Fail(fmt::format("`{}` is not a step of a schedule; there are {}", verb, known));
    }
    const Stage stage = StageAt(Word("a stage"));
    (this->*it->second)(stage);
    if (next_ < words_.size()) Fail(fmt::format("`{}` is more than the step takes", words_[next_]));
  }

 private:
  using Verb = void (Replayer::*)(const Stage&);
  static const std::map<std::string, Verb>& Verbs() {
    static const std::map<std::string, Verb> verbs = {
        {"split", &Replayer::Split},       {"fuse", &Replayer::Fuse},
        {"reorder", &Replayer::Order},     {"vectorize", &Replayer::Mark},
        {"unroll", &Replayer::Mark},       {"parallel", &Replayer::Mark},
        {"bind", &Replayer::BindThread},   {"tensorize", &Replayer::TensorizeLoop},
        {"compute_at", &Replayer::At},     {"compute_inline", &Replayer::Inline},
        {"compute_root", &Replayer::Root}, {"set_scope", &Replayer::Scope},
        {"pragma", &Replayer::Pragma},     {"double_buffer", &Replayer::Double},
        {"cache_read", &Replayer::Read},   {"cache_write", &Replayer::Write},
        {"rfactor", &Replayer::Factor},
    };
    return verbs;
  }

  std::string Word(const char* wanted) {
    if (next_ == words_.size()) Fail(fmt::format("{} is missing", wanted));
    return words_[next_++];
  }
  int64_t Number(const char* wanted) {
    const std::string text = Word(wanted);
    int64_t n = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
    if (error != std::errc() || end != text.data() + text.size())
      Fail(fmt::format("`{}` is {}, which is a number", text, wanted));
    return n;
  }
  String Quoted(const char* wanted) {
    const std::string text = Word(wanted);
    if (text.size() < 2 || text.front() != '"' || text.back() != '"')
      Fail(fmt::format("{} is in quotation marks, `{}` is not", wanted, text));
    return text.substr(1, text.size() - 2);
  }
  static Stage FindIn(const Schedule& s, const std::string& label) {
    for (const Stage& stage : s->stages) {
      if (stage->label == label) return stage;
      for (const ObjectRef& cell : stage->cells)
        if (Stage found = FindIn(Downcast<Schedule>(cell), label); found.defined()) return found;
    }
    return Stage();
  }
  Stage StageAt(const std::string& label) {
    const Stage found = FindIn(s_, label);
    if (found.defined()) return found;
    std::string labels;
    for (const Stage& s : s_->stages) labels += (labels.empty() ? "" : ", ") + s->label.str();
    Fail(fmt::format("there is no stage `{}`; there are {}", label, labels));
  }
  IterVar LoopAt(const Stage& stage) {
    const std::string label = Word("a loop");
    for (const IterVar& iv : stage->leaf_iter_vars)
      if (LoopLabel(stage, iv) == label) return iv;
    Fail(fmt::format("`{}` has no loop `{}`; its loops are {}", stage->label.str(), label,
                     LoopLabels(stage, stage->leaf_iter_vars)));
  }
  Array<IterVar> Rest(const Stage& stage) {
    Array<IterVar> out;
    while (next_ < words_.size()) out.push_back(LoopAt(stage));
    return out;
  }
  static Tensor OutputOf(const Stage& stage, int64_t index) {
    const auto* statement = stage->origin_op.as<ExternOpNode>();
    if (!statement) return (*runtime::Registry::Get("te.OutputOf"))(stage->origin_op, index).As<Tensor>();
    if (index < 0 || index >= static_cast<int64_t>(statement->output_buffers.size()))
      Fail(fmt::format("`{}` has no output {}", stage->label.str(), index));
    const tir::Buffer& b = statement->output_buffers[index];
    return Tensor(TensorNode{{}, b->shape, b->dtype, stage->origin_op, index});
  }

  void Split(const Stage& stage) {
    const IterVar iv = LoopAt(stage);
    const std::string by = Word("factor or nparts");
    if (by != "factor" && by != "nparts") Fail(fmt::format("a loop is split by factor or nparts, not by `{}`", by));
    const PrimExpr n = tir::make_int(DataType::Int(32), Number(by.c_str()));
    SplitLoop(stage, iv, by == "factor" ? n : PrimExpr(), by == "factor" ? PrimExpr() : n);
  }
  void Fuse(const Stage& stage) { FuseLoops(stage, Rest(stage)); }
  void Order(const Stage& stage) { Reorder(stage, Rest(stage)); }
  void Mark(const Stage& stage) {
    const tir::IterVarType type = words_[0] == "vectorize" ? tir::IterVarType::kVectorized
                                  : words_[0] == "unroll"  ? tir::IterVarType::kUnrolled
                                                           : tir::IterVarType::kParallelized;
    MarkLoop(stage, LoopAt(stage), type);
  }
  void BindThread(const Stage& stage) {
    const IterVar iv = LoopAt(stage);
    const std::string tag = Word("an axis of threads");
    Range dom;
    if (next_ < words_.size()) {
      RangeNode r;
      r.min = PrimExpr(0), r.extent = tir::make_int(DataType::Int(32), Number("an extent"));
      dom = Range(std::move(r));
    }
    Bind(stage, iv, IterVar(tir::IterVarNode{{}, dom, Var(String(tag), DataType::Int(32)), kThreadIndex}), tag);
  }
  void TensorizeLoop(const Stage& stage) {
    const IterVar iv = LoopAt(stage);
    const std::string name = Word("an intrinsic");
    if (!intrins_.count(name)) Fail(fmt::format("the intrinsic `{}` is not given", name));
    Tensorize(stage, iv, intrins_.at(name));
  }
  void At(const Stage& stage) {
    const Stage parent = StageAt(Word("a stage"));
    ComputeAt(stage, parent, LoopAt(parent));
  }
  void Inline(const Stage& stage) { ComputeInline(stage); }
  void Root(const Stage& stage) { ComputeRoot(stage); }
  void Scope(const Stage& stage) { stage.mut()->scope = Quoted("a scope"); }
  void Double(const Stage& stage) { stage.mut()->double_buffer = true; }
  void Pragma(const Stage& stage) {
    const IterVar iv = LoopAt(stage);
    const String key = Quoted("a pragma");
    const bool is_text = next_ < words_.size() && words_[next_].front() == '"';
    SetPragma(
        stage, iv, tir::StringImm(key),
        is_text ? PrimExpr(tir::StringImm(Quoted("a value"))) : tir::make_int(DataType::Int(32), Number("a value")));
  }
  void Read(const Stage& stage) {
    const int64_t index = Number("the output");
    const String scope = Quoted("a scope");
    Array<Operation> readers;
    while (next_ < words_.size()) readers.push_back(StageAt(Word("a reader"))->op);
    CacheRead(s_, OutputOf(stage, index), scope, readers);
  }
  void Write(const Stage& stage) {
    Array<Tensor> tensors;
    for (size_t k = 0; k < stage->body.size(); ++k) tensors.push_back(OutputOf(stage, static_cast<int64_t>(k)));
    if (tensors.empty()) Fail(fmt::format("`{}` is not computed", stage->label.str()));
    CacheWrite(s_, tensors, Quoted("a scope"));
  }
  void Factor(const Stage& stage) {
    const IterVar iv = LoopAt(stage);
    Rfactor(s_, OutputOf(stage, 0), iv, Number("the dimension"));
  }

  const Schedule& s_;
  const Map<String, TensorIntrin>& intrins_;
  std::vector<std::string> words_;
  size_t next_ = 0;
};

}  // namespace

void ReplaySchedule(const Schedule& s, const String& text, const Map<String, TensorIntrin>& intrins) {
  const std::string all = text.str();
  Replayer replayer(s, intrins);
  int number = 0;
  for (size_t begin = 0; begin < all.size();) {
    const size_t end = std::min(all.find('\n', begin), all.size());
    std::string line = all.substr(begin, end - begin);
    begin = end + 1, ++number;
    if (const size_t comment = line.find("//"); comment != std::string::npos) line.resize(comment);
    while (!line.empty() && (line.back() == ' ' || line.back() == '\r')) line.pop_back();
    if (line.find_first_not_of(' ') == std::string::npos) continue;
    try {
      replayer.Step(line);
    } catch (const runtime::Error& e) {
      throw runtime::ValueError(fmt::format("line {} of the schedule, `{}`: {}", number, line, e.message()));
    }
    // Steps are recorded as they are asked for.
    s->trace.mut()->steps.push_back(String(line.substr(line.find_first_not_of(' '))));
  }
}

}  // namespace baton::te
