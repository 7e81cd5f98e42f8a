// SPDX-License-Identifier: Apache-2.0
// What the parts of the pass infrastructure share.
#pragma once

#include <baton/ir/transform.h>

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace baton::transform {

/// "Kind: message" of the exception in flight. Call inside `catch`.
std::string DescribeException();

/// Makes a context derived from `from` the current one, with the instruments that `from` inherits, without entering it.
class PushDerived {
 public:
  PushDerived(const PassContext& ctx, const PassContext& from);
  ~PushDerived();
  PushDerived(const PushDerived&) = delete;
};

/// Passes that wait for what they require, the outermost first.
struct RequiredPath {
  std::vector<std::string> names;
  std::unordered_map<std::string, size_t> places;
  /// False where it waits already.
  bool Push(const std::string& name) {
    if (!places.try_emplace(name, names.size()).second) return false;
    names.push_back(name);
    return true;
  }
  void Pop() {
    places.erase(names.back());
    names.pop_back();
  }
  size_t At(const std::string& name) const { return places.at(name); }
};

/// Runs what `info` requires, then what that requires, each time anew; a cycle is an error that lists it.
IRModule RunRequired(const PassInfo& info, IRModule mod, const PassContext& ctx, RequiredPath* path);

/// The global function that makes a pass, and its name: `tir.NAME`, `relay.NAME`, or NAME looked for as
/// relay._transform.NAME, transform.NAME, tir.transform.NAME. Null if there is none.
const PackedFunc* FindPassMaker(std::string_view name, std::string* key);
/// Names of arguments that a pass is made with.
std::vector<std::string> PassParams(std::string_view name);
/// All passes that GetPass can make, as NAME or tir.NAME.
std::vector<std::string> PassNames();

/// The path that imports a pass of a front end: "python.package.module.name"; "" where there is none.
std::string PassOrigin(const PassInfo& info);

/// What the registered function that made a pass was given; nothing where a pass was made in C++.
std::vector<Any> PassArguments(const PassInfo& info);

/// Those whose hooks are called around passes in this context.
std::vector<instrument::PassInstrument> InstrumentsAround(const PassContext& ctx);

/// How many contexts are entered on this thread.
int EnteredContexts();

/// What a sequence says of the pass that it runs or skips next on this thread: the next frame takes it.
struct Because {
  Because(const char* action, std::string_view why);
  ~Because();
  Because(const Because&) = delete;
  static const Because* Take();
  static const Because* Pending();
  const char* action;    ///< "ran" or "inserted"
  std::string_view why;  ///< outlives this

 private:
  const Because* outer_;
};

/// While it lives, decisions are of a sequence one deeper.
struct Deeper {
  Deeper();
  ~Deeper();
};

/// Appends a JSON string with its quotes.
void AppendJson(std::string_view s, std::string* out);

/// Prints where the front end prints: Python's sys.stdout, else stderr.
void PrintText(std::string_view text);

}  // namespace baton::transform
