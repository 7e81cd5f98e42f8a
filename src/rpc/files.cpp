// SPDX-License-Identifier: Apache-2.0
#include "rpc/files.h"

#include <baton/runtime/error.h>
#include <baton/support/text.h>
#include <unistd.h>

#include <cstdio>

#include "rpc/errors.h"

namespace baton::rpc {
using support::Cat;

std::string SessionFiles::PathOf(const std::string& name) const {
  if (name.empty() || name.size() > 200 || name[0] == '.' || name.find('/') != std::string::npos ||
      name.find('\0') != std::string::npos) {
    throw runtime::ValueError(Cat("`", name, "` is no name of a file: it may hold no `/` and not begin with a dot"));
  }
  return Cat(folder_, "/", name);
}

bool SessionFiles::Take(const std::string& name, uint64_t size, const std::string& digest) {
  const std::string path = PathOf(name);
  for (const File& f : files_) {
    if (f.digest != digest || f.size != size) continue;
    if (f.name == name) return access(path.c_str(), R_OK) == 0;
    unlink(path.c_str());
    if (link(PathOf(f.name).c_str(), path.c_str()) != 0) return false;
    Remember({name, digest, f.size});
    return true;
  }
  return false;
}

void SessionFiles::NeedRoom(const std::string& name, uint64_t size) const {
  uint64_t used = size;
  for (const File& f : files_) used += f.name == name ? 0 : f.size;
  if (size > most_ || used > most_) Throw(kOutOfMemory, Cat("the files of a session take at most ", most_, " bytes"));
}

bool SessionFiles::Add(const std::string& written, const std::string& name, uint64_t size, const std::string& digest) {
  if (rename(written.c_str(), PathOf(name).c_str()) != 0) return false;
  Remember({name, digest, size});
  return true;
}

void SessionFiles::Remember(File file) {
  for (File& f : files_) {
    if (f.name == file.name) {
      f = std::move(file);
      return;
    }
  }
  files_.push_back(std::move(file));
}

}  // namespace baton::rpc
