// SPDX-License-Identifier: Apache-2.0
#include "codegen/cache/kernel_cache.h"

#include <baton/ir/transform.h>
#include <sys/auxv.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <ctime>

#include "codegen/cache/events.h"

namespace baton::codegen::cache {

BATON_REGISTER_PASS_CONFIG_OPTION("codegen.cache", bool,
                                  "Whether code is looked for, and kept, in the kernel cache on disk.");

namespace {

std::string Variable(const char* name) {
  const char* text = getenv(name);
  return text ? text : "";
}

/// "512M" as bytes.
uint64_t SizeOf(const std::string& text) {
  uint64_t n = 0;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, n);
  const size_t unit = at == end ? 0 : std::string_view("KMGT").find(*at) + 1;
  const bool known = at == end || (unit > 0 && at + 1 == end);
  if (error != std::errc() || !known || (unit && n > (UINT64_MAX >> (10 * unit)))) {
    throw runtime::ValueError("BATON_CACHE_SIZE is \"" + text + "\"; it is a number of bytes, as 512M or 2G");
  }
  return n << (10 * unit);
}

/// The log takes little of a small cache.
uint64_t MostOfLog(const Settings& settings) { return std::min<uint64_t>(128 << 10, settings.most / 8); }

/// The bytes for entries: the rest is for the log, which grows between them, and the one before it.
uint64_t MostOfEntries(const Settings& settings) {
  const uint64_t log = 2 * (MostOfLog(settings) + kMostLine);
  return settings.most > log ? settings.most - log : 0;
}

/// Why a unit is not there, by what is.
Directory::Problem WhyAbsent(const Directory& folder, const std::string& name) {
  if (WasEvicted(folder, name)) return {"evicted", "it was evicted to keep the bound; raise BATON_CACHE_SIZE"};
  const NameParts wanted = *PartsOf(name);
  bool functions = false, target = false, build = false;
  for (const Directory::File& file : folder.List()) {
    const std::optional<NameParts> have = PartsOf(file.name);
    if (!have || have->functions != wanted.functions) continue;
    functions = true;
    target = target || have->target == wanted.target;
    build = build || (have->target == wanted.target && have->build == wanted.build);
  }
  if (build) return {"structure", "functions of these names are there, of other shapes, constants or schedules"};
  if (target) return {"version", "functions of these names are there, made by another build of the compiler"};
  if (functions) return {"target", "functions of these names are there, for another processor or optimisation level"};
  return {"new", "no functions of these names were compiled before"};
}

}  // namespace

Settings Settings::FromEnvironment() {
  Settings out;
  const std::string on = Variable("BATON_CACHE");
  if (on == "0") out.off = "BATON_CACHE is 0";
  if (!on.empty() && on != "0" && on != "1") {
    throw runtime::ValueError("BATON_CACHE is \"" + on + "\"; it is 0 (nothing is kept on disk) or 1");
  }
  if (const std::string size = Variable("BATON_CACHE_SIZE"); !size.empty()) out.most = SizeOf(size);
  if (out.most == 0) out.off = "BATON_CACHE_SIZE is 0";
  std::string base = Variable("BATON_CACHE_DIR");
  if (base.empty()) {
    base = Variable("XDG_CACHE_HOME");
    if (base.empty() || base[0] != '/') {  // a relative one is invalid, as its specification says
      const std::string home = Variable("HOME");
      base = home.empty() ? "" : home + "/.cache";
    }
    if (!base.empty()) base += "/baton";
  }
  if (base.empty()) out.off = "there is no HOME; set BATON_CACHE_DIR";
  // A program with more rights than the user that starts it takes no code from where that user says.
  if (getauxval(AT_SECURE)) out.off = "the program runs with the rights of another user";
  out.folder = base + "/kernels";
  return out;
}

std::shared_ptr<const KernelCache> KernelCache::Current() {
  if (!transform::PassContext::Current()->GetConfig<bool>("codegen.cache", true)) return nullptr;
  Settings settings = Settings::FromEnvironment();
  return settings.off.empty() ? std::make_shared<KernelCache>(std::move(settings)) : nullptr;
}

namespace {

/// The code, or nothing and the problem. An entry that is damaged goes: it is made anew.
std::optional<std::string> Look(const Directory& folder, const Unit& unit, const std::string& name,
                                Directory::Problem* problem) {
  const std::optional<std::string> bytes = folder.Read(name, kMostBytes, problem);
  if (!bytes) {
    if (!*problem->reason) *problem = WhyAbsent(folder, name);
    return std::nullopt;
  }
  Refusal refusal{};
  std::optional<Entry> entry = Unpack(*bytes, &refusal);
  if (entry && (entry->unit.functions != unit.functions || entry->unit.code != unit.code ||
                entry->unit.target != unit.target || entry->unit.build != unit.build)) {
    refusal = {"corrupt", "the file has the name of another entry"};
    entry.reset();
  }
  if (!entry) {
    folder.Remove(name);
    *problem = {refusal.reason, refusal.why};
    return std::nullopt;
  }
  folder.Touch(name);
  return std::move(entry->object);
}

}  // namespace

std::optional<std::string> KernelCache::Find(const Unit& unit) const {
  const std::string name = unit.Name();
  Directory::Problem problem;
  std::optional<std::string> object;
  const std::shared_ptr<Directory> folder = Directory::Open(settings_.folder, true, &problem);
  if (folder) object = Look(*folder, unit, name, &problem);
  Note({object ? "hit" : "miss", problem.reason, problem.why, name, unit.functions}, folder.get(),
       MostOfLog(settings_));
  return object;
}

void KernelCache::Keep(const Unit& unit, const std::string& object) const {
  const std::string name = unit.Name();
  const auto note = [&](const char* what, const std::string& why, const Directory* folder) {
    Note({what, "", why, name, unit.functions}, folder, MostOfLog(settings_));
  };
  Directory::Problem problem;
  const std::shared_ptr<Directory> folder = Directory::Open(settings_.folder, true, &problem);
  if (!folder) return note("not kept", problem.why, nullptr);
  const std::string bytes = Pack({unit, static_cast<int64_t>(time(nullptr)), object});
  if (bytes.size() > std::min(MostOfEntries(settings_), kMostBytes))
    return note("not kept", "it is larger than the cache", folder.get());
  const std::string why = folder->Write(name, bytes);
  note(why.empty() ? "kept" : "not kept", why, folder.get());
  Trim(*folder);
}

void KernelCache::Trim(const Directory& folder) const {
  folder.RemoveLeftovers();
  std::vector<Directory::File> files = folder.List();
  uint64_t bytes = 0;
  std::erase_if(files, [](const Directory::File& f) { return f.name.starts_with(kLog); });
  for (const Directory::File& f : files) bytes += f.bytes;
  std::erase_if(files, [](const Directory::File& f) { return !PartsOf(f.name); });
  std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return a.used < b.used; });
  size_t left = files.size();
  for (const Directory::File& f : files) {
    if (bytes <= MostOfEntries(settings_) && left <= kMostEntries) break;
    if (folder.Remove(f.name)) Note({"evicted", "", "", f.name, ""}, &folder, MostOfLog(settings_));
    bytes -= f.bytes;
    --left;
  }
}

}  // namespace baton::codegen::cache
