// SPDX-License-Identifier: Apache-2.0
// Shared by the files of the pass infrastructure.
#pragma once

#include <baton/ir/pass_run.h>
#include <baton/ir/transform.h>

#include <set>
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

/// Runs the passes that `info` requires, and those that they require, each time again; a cycle is an error that lists
/// it.
IRModule RunRequired(const PassInfo& info, IRModule mod, const PassContext& ctx, RequiredPath* path);

/// The global function that makes a pass, and its name: `tir.NAME`, `relay.NAME`, or NAME looked for as
/// relay._transform.NAME, transform.NAME, tir.transform.NAME. Null if there is none.
const PackedFunc* FindPassMaker(std::string_view name, std::string* key);
/// The built-in pass that a global function makes; null where it is none.
const RegisteredPass* FindRegistered(std::string_view key);
/// Makes a built-in pass with options by name; null values ask for the default.
Pass MakeRegistered(const std::string& key, const Map<String, Any>& options);
/// Whether a built-in pass has this name.
bool IsBuiltIn(std::string_view name);
/// All passes that GetPass can make, as NAME or tir.NAME: built-in ones, and what front ends registered beside them.
std::vector<std::string> PassNames();
/// Sets a field of options and returns its converted value. Errors call the option `shown`.
Any SetOption(const std::string& shown, const runtime::FieldInfo& field, Object* options, const Any& value);
/// Makes the options of a pass options of contexts: `relay.NAME.FIELD` each; for TIR passes `tir.NAME`, a dict.
void RegisterPassOptions(const std::string& layer, const std::string& pass, const char* options_key);
/// The pass rebuilt with options of the context that were not given explicitly; null if there are none.
Pass WithContextOptions(const PassInfo& info, const PassOptionsMaker& maker, const PassContext& ctx);
/// The info of a sequence of these passes: it reassociates, or changes results, if one of them does.
PassInfo WithTraitsOf(const Array<Pass>& passes, PassInfo info);

/// The instruments whose pass hooks are called in this context.
std::vector<instrument::PassInstrument> InstrumentsAround(const PassContext& ctx);

/// Decision of a sequence about a pass in its list.
struct Listed {
  const char* action = "";  ///< "ran" or "inserted"
  std::string why;
  const std::set<std::string>* holds = nullptr;  ///< properties that hold before it; null: nothing is known
};
/// Runs a pass of a sequence; without a sequence, `listed` is empty.
IRModule RunPass(const Pass& pass, IRModule mod, const PassContext& ctx, const Listed& listed);
/// Skips a pass of a sequence and notifies instruments.
void SkipPass(const Pass& pass, const IRModule& mod, const PassContext& ctx, const Listed& listed,
              const std::string& reason);
/// The properties that hold after a pass, given those that held before.
void Settle(std::set<std::string>* holds, const PassInfo& info, bool changed);

/// Instruments that observe every pass in any context: the journal, and verification if tests enable it.
const std::vector<instrument::PassInstrument>& BuiltInInstruments();

/// Appends a JSON string with its quotes.
void AppendJson(std::string_view s, std::string* out);

/// Prints where the front end prints: Python's sys.stdout, else stderr.
void PrintText(std::string_view text);

}  // namespace baton::transform
