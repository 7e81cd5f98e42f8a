// SPDX-License-Identifier: Apache-2.0
// What `baton cache` and `baton.cache` ask: each answer is a text of JSON, or bytes.
#include <baton/runtime/bytes.h>
#include <baton/runtime/registry.h>
#include <baton/support/json.h>

#include <algorithm>

#include "codegen/cache/events.h"
#include "codegen/cache/kernel_cache.h"

namespace baton::codegen::cache {
namespace {

using support::Json;

/// The folder, null where there is none yet. Throws RuntimeError with the reason where it cannot be used.
std::shared_ptr<Directory> Folder(bool make = false) {
  Directory::Problem problem;
  std::shared_ptr<Directory> out = Directory::Open(Settings::FromEnvironment().folder, make, &problem);
  if (!out && *problem.reason) throw RuntimeError("the kernel cache cannot be used: " + problem.why);
  return out;
}

Json Lines(const std::vector<std::string>& lines) {
  Json out = Json::Array();
  for (const std::string& line : lines) {
    try {
      out.Push(Json::Parse(line));
    } catch (const std::exception&) {  // two processes may have written at once
    }
  }
  return out;
}

/// Folder, bound and whether it is on.
std::string Place() {
  const Settings settings = Settings::FromEnvironment();
  Json out = Json::Object();
  out.Set("folder", settings.folder);
  out.Set("most", static_cast<int64_t>(std::min<uint64_t>(settings.most, INT64_MAX)));
  out.Set("off", settings.off);
  Directory::Problem problem;
  Directory::Open(settings.folder, false, &problem);
  out.Set("problem", problem.why);
  return out.Dump();
}

/// Each entry, by the time of its last use.
std::string Entries() {
  Json out = Json::Array();
  const std::shared_ptr<Directory> folder = Folder();
  if (!folder) return out.Dump();
  std::vector<Directory::File> files = folder->List();
  std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return a.used < b.used; });
  for (const Directory::File& file : files) {
    if (!PartsOf(file.name)) continue;
    Json row = Json::Object();
    row.Set("name", file.name);
    row.Set("bytes", static_cast<int64_t>(file.bytes));
    row.Set("used", static_cast<double>(file.used) / 1e9);
    Directory::Problem problem;
    Refusal refusal{};
    const std::optional<std::string> bytes = folder->Read(file.name, kMostBytes, &problem);
    const std::optional<Entry> entry = bytes ? Unpack(*bytes, &refusal) : std::nullopt;
    if (entry) {
      row.Set("made", entry->made);
      row.Set("functions", entry->unit.functions);
      row.Set("target", entry->unit.target);
      row.Set("build", entry->unit.build);
    }
    row.Set("problem", entry ? "" : bytes ? refusal.why : problem.why);
    out.Push(std::move(row));
  }
  return out.Dump();
}

/// Removes entries and the log; the number of entries that went.
int64_t Clear() {
  int64_t gone = 0;
  const std::shared_ptr<Directory> folder = Folder();
  if (!folder) return 0;
  for (const Directory::File& file : folder->List()) {
    const bool entry = PartsOf(file.name).has_value();
    if (entry || file.name.starts_with(kLog)) gone += folder->Remove(file.name) && entry;
  }
  folder->RemoveLeftovers();
  return gone;
}

/// The bytes of a sound entry; ValueError with the reason for another.
runtime::Bytes Read(const std::string& name) {
  const std::shared_ptr<Directory> folder = Folder();
  Directory::Problem problem{"", "there is no such entry"};
  Refusal refusal{};
  std::optional<std::string> bytes;
  if (folder && PartsOf(name)) bytes = folder->Read(name, kMostBytes, &problem);
  if (!bytes) throw runtime::ValueError(name + ": " + problem.why);
  if (!Unpack(*bytes, &refusal)) throw runtime::ValueError(name + ": " + refusal.why);
  return runtime::Bytes(*bytes);
}

/// The entry that Read gave somewhere; throws ValueError for bytes that are none.
Entry Checked(std::string_view bytes) {
  Refusal refusal{};
  std::optional<Entry> entry = Unpack(bytes, &refusal);
  if (!entry) throw runtime::ValueError("the file has a part that is no entry of a kernel cache: " + refusal.why);
  return std::move(*entry);
}

/// Keeps an entry that Read gave somewhere, and gives its name.
std::string Add(std::string_view bytes) {
  const std::string name = Checked(bytes).unit.Name();
  const std::shared_ptr<Directory> folder = Folder(true);
  const std::string why = folder->Write(name, bytes);
  if (!why.empty()) throw RuntimeError("the kernel cache cannot be written: " + why);
  KernelCache(Settings::FromEnvironment()).Trim(*folder);
  return name;
}

BATON_REGISTER_GLOBAL("codegen.cache.Place").set_body_typed([] { return String(Place()); });
BATON_REGISTER_GLOBAL("codegen.cache.Entries").set_body_typed([] { return String(Entries()); });
BATON_REGISTER_GLOBAL("codegen.cache.Clear").set_body_typed(Clear);
BATON_REGISTER_GLOBAL("codegen.cache.Read").set_body_typed([](String name) { return Read(name.str()); });
BATON_REGISTER_GLOBAL("codegen.cache.Add").set_body_typed([](runtime::Bytes bytes) {
  return String(Add(bytes.view()));
});
BATON_REGISTER_GLOBAL("codegen.cache.Check").set_body_typed([](runtime::Bytes bytes) { Checked(bytes.view()); });
/// Of this process.
BATON_REGISTER_GLOBAL("codegen.cache.Events").set_body_typed([] { return String(Lines(Events()).Dump()); });
/// The events of all processes, as far as the log goes back.
BATON_REGISTER_GLOBAL("codegen.cache.Log").set_body_typed([] {
  const std::shared_ptr<Directory> folder = Folder();
  return String(folder ? Lines(LogLines(*folder)).Dump() : "[]");
});

}  // namespace
}  // namespace baton::codegen::cache
