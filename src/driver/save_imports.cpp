// SPDX-License-Identifier: Apache-2.0
#include "driver/save_imports.h"

#include <baton/runtime/error.h>
#include <baton/support/json.h>
#include <baton/support/sha256.h>
#include <baton/vm/imports.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "runtime/artifact_format.h"

namespace baton::driver {
namespace {

using runtime::Module;
using runtime::ModuleNode;

/// Modules in an order in which each is before what it imports. Imports form no circle: ModuleNode::Import sees to
/// that.
std::vector<ModuleNode*> InOrder(const std::vector<Module>& imports) {
  std::vector<ModuleNode*> done;
  std::unordered_set<ModuleNode*> seen;
  std::vector<std::pair<ModuleNode*, size_t>> open;
  const auto enter = [&](ModuleNode* m) {
    if (seen.insert(m).second) open.push_back({m, 0});
  };
  for (size_t i = imports.size(); i-- > 0;) {
    enter(imports[i].get());
    while (!open.empty()) {
      auto& [module, next] = open.back();
      if (next < module->imports().size()) {
        enter(module->imports()[next++].get());
      } else {
        done.push_back(module);
        open.pop_back();
      }
    }
  }
  std::reverse(done.begin(), done.end());
  return done;
}

/// A folder that goes with this.
class Folder {
 public:
  Folder() : path_((std::filesystem::temp_directory_path() / "baton-imports-XXXXXX").string()) {
    if (!mkdtemp(path_.data())) throw RuntimeError("no folder can be made in `" + path_ + "`");
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string File(size_t i) const { return path_ + "/" + std::to_string(i); }

 private:
  std::string path_;
};

/// Whether a module saved itself as an artifact, which carries its imports and is loaded as a library.
bool IsArtifact(std::string_view bytes) {
  namespace artifact = runtime::artifact;
  return bytes.starts_with(artifact::kElfMagic) && bytes.ends_with(artifact::kMagic);
}

std::string Bytes(ModuleNode* module, const std::string& file) {
  module->SaveToFile(file, "");
  std::ifstream in(file, std::ios::binary);
  std::string out((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  if (!in.good() && !in.eof()) throw RuntimeError("`" + file + "` cannot be read");
  return out;
}

}  // namespace

SavedImports SaveImports(const std::vector<Module>& imports) {
  if (imports.empty()) return {};
  const std::vector<ModuleNode*> order = InOrder(imports);
  std::unordered_map<ModuleNode*, uint32_t> number;
  for (ModuleNode* m : order) number.emplace(m, static_cast<uint32_t>(number.size()));
  const Folder folder;
  std::vector<vm::SavedImport> rows;
  SavedImports out;
  support::JsonWriter w(&out.rows);
  w.BeginArray();
  for (ModuleNode* m : order) {
    vm::SavedImport row;
    try {
      row.data = Bytes(m, folder.File(rows.size()));
    } catch (const UnsupportedError& e) {
      throw UnsupportedError("the module imports one of kind `" + std::string(m->type_key()) +
                             "`, which cannot be saved: " + e.what());
    }
    const bool code = IsArtifact(row.data);
    row.key = code ? vm::kLibraryKey : m->type_key();
    for (const Module& i : m->imports()) {
      if (!code) row.imports.push_back(number.at(i.get()));
    }
    w.BeginObject();
    w.Key("key");
    w.String(row.key);
    w.Key("bytes");
    w.Int(static_cast<int64_t>(row.data.size()));
    w.Key("sha256");
    const support::Sha256::Digest digest = support::Sha256Of(row.data.data(), row.data.size());
    w.String(support::ToHex(digest.data(), digest.size()));
    w.Key("imports");
    w.BeginArray();
    for (const uint32_t i : row.imports) w.Int(i);
    w.EndArray();
    w.EndObject();
    rows.push_back(std::move(row));
  }
  w.EndArray();
  std::vector<uint32_t> own;
  for (const Module& m : imports) own.push_back(number.at(m.get()));
  out.data = vm::PackImports(rows, own);
  return out;
}

}  // namespace baton::driver
