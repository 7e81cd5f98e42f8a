// SPDX-License-Identifier: Apache-2.0
// The printing instrument: before, after, only when changed, on failure, by pass, by function, as diff, to files.
#include <baton/ir/pass_run.h>
#include <baton/ir/structural.h>
#include <baton/ir/transform.h>
#include <baton/runtime/registry.h>
#include <sys/stat.h>

#include <atomic>
#include <cstdio>
#include <memory>

#include "ir/instrument/text_diff.h"
#include "ir/pass/pass_internals.h"

namespace baton::instrument {

using transform::PassInfo;
using transform::PassRun;

namespace {

/// `*` is any characters, `?` one.
bool Matches(std::string_view pattern, std::string_view text) {
  size_t p = 0, t = 0, star = std::string_view::npos, mark = 0;
  while (t < text.size()) {
    if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t]) && pattern[p] != '*') {
      ++p, ++t;
    } else if (p < pattern.size() && pattern[p] == '*') {
      star = p++, mark = t;
    } else if (star != std::string_view::npos) {
      p = star + 1, t = ++mark;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

bool MatchesAny(const Array<String>& patterns, std::string_view text) {
  if (patterns.empty()) return true;
  for (const String& p : patterns) {
    if (Matches(p.view(), text)) return true;
  }
  return false;
}

/// File names are derived from the pass name.
std::string FileName(std::string_view text) {
  std::string out;
  for (char c : text) {
    bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
    out += plain ? c : '_';
  }
  return out.substr(0, 80);
}

class PrintNode : public Node<PrintNode, RunInstrumentNode> {
 public:
  static constexpr const char* _type_key = "instrument.PrintIR";
  static constexpr bool _type_has_hidden_members = true;  // the number of files
  bool before = false, after = false, on_failure = false, only_changed = false, diff = false, show_meta_data = false;
  Array<String> passes, functions;
  String directory;
  PackedFunc sink;
  static constexpr void Describe(auto& d) {
    d(F<&PrintNode::before>, "Prints before passes.");
    d(F<&PrintNode::after>, "Prints after passes.");
    d(F<&PrintNode::on_failure>, "Prints what a pass was given that failed.");
    d(F<&PrintNode::only_changed>, "After a pass only what it changed.");
    d(F<&PrintNode::diff>, "After a pass the lines that differ.");
    d(F<&PrintNode::show_meta_data>, "With the data of constants.");
    d(F<&PrintNode::passes>, "Names or patterns (* and ?) of passes; empty is all.");
    d(F<&PrintNode::functions>, "Names or patterns of functions; empty is all.");
    d(F<&PrintNode::directory>, "Where to write a file a step; empty prints.");
    d(F<&PrintNode::sink>, "Called with each text instead; null prints.", kNullable);
  }

  void BeforeRun(const PassRun& run) const final {
    if (before && Chosen(run.info)) Write("before", run.info, Text(run.module));
  }
  void AfterRun(const PassRun& run) const final {
    if (!after || !Chosen(run.info)) return;
    const bool same = run.module.same_as(run.result);
    if (only_changed && same) return;
    if (!diff && !only_changed) return Write("after", run.info, Text(run.result));
    const std::string was = Text(run.module), is = same ? was : Text(run.result);
    if (only_changed && was == is) return;
    if (!diff) return Write("after", run.info, is);
    Write("diff of", run.info, was == is ? "unchanged\n" : DiffLines(was, is));
  }
  void RunFailed(const PassRun& run, const String& error) const final {
    if (on_failure && Chosen(run.info)) {
      Write("that failed in", run.info, "// " + OneLine(error.str()) + "\n" + Text(run.module));
    }
  }

 private:
  bool Chosen(const PassInfo& info) const { return MatchesAny(passes, info->name.view()); }
  static std::string OneLine(std::string s) {
    for (char& c : s) c = c == '\n' ? ' ' : c;
    return s;
  }
  std::string Text(const IRModule& mod) const {
    IRModule shown = mod;
    if (!functions.empty()) {
      Map<GlobalVar, BaseFunc> chosen;
      for (const auto& [var, func] : mod->functions) {
        if (MatchesAny(functions, var->name_hint.view())) chosen.Set(var, func);
      }
      shown = IRModule(chosen, mod->type_definitions);
    }
    std::string text = AsText(shown, show_meta_data);
    if (!text.ends_with('\n')) text += '\n';
    return text;
  }
  void Write(const char* when, const PassInfo& info, const std::string& text) const {
    std::string all = std::string("// IR ") + when + " " + info->name.str() + "\n" + text;
    if (!directory.view().empty()) {
      char number[16];
      snprintf(number, sizeof number, "%04d_", ++*count);
      std::string path = directory.str() + "/" + number + FileName(info->name.view()) + "_" +
                         FileName(std::string_view(when).substr(0, std::string_view(when).find(' '))) + ".relay";
      FILE* f = fopen(path.c_str(), "w");
      bool ok = f && fwrite(all.data(), 1, all.size(), f) == all.size();
      if (f) ok = fclose(f) == 0 && ok;
      if (!ok) throw runtime::RuntimeError("cannot write `" + path + "`; `directory` must exist and be writable");
    } else if (sink.defined()) {
      sink(String(all));
    } else {
      transform::PrintText(all);
    }
  }

  std::shared_ptr<std::atomic<int>> count = std::make_shared<std::atomic<int>>(0);  ///< of files
};

const RegisterNodes<PrintNode> registered_print;

}  // namespace

BATON_REGISTER_GLOBAL("instrument.PrintIR")
    .set_body_typed([](String name, bool before, bool after, bool on_failure, bool only_changed, bool diff,
                       bool show_meta_data, Array<String> passes, Array<String> functions, String directory,
                       PackedFunc sink) {
      auto n = make_object<PrintNode>();
      n->name = name;
      n->observes = true;
      n->before = before, n->after = after, n->on_failure = on_failure;
      n->only_changed = only_changed, n->diff = diff, n->show_meta_data = show_meta_data;
      n->passes = passes, n->functions = functions;
      n->directory = directory;
      n->sink = sink;
      if (!directory.view().empty() && mkdir(directory.c_str(), 0777) != 0) {
        struct stat st;
        if (stat(directory.c_str(), &st) != 0 || !S_ISDIR(st.st_mode)) {
          throw runtime::RuntimeError("`" + directory.str() + "` is no directory and cannot be made one");
        }
      }
      return PassInstrument(ObjectPtr<Object>(n));
    });
BATON_REGISTER_GLOBAL("ir.DiffLines").set_body_typed([](String before, String after, int context) {
  return String(DiffLines(before.view(), after.view(), context));
});

}  // namespace baton::instrument
