// SPDX-License-Identifier: Apache-2.0
// The folders of servers: one a server, in it one a session.
#include <baton/support/text.h>
#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "rpc/confine/usage.h"
#include "rpc/errors.h"
#include "rpc/worker.h"

namespace baton::rpc {
using support::Cat;
namespace {

constexpr const char* kFolderHead = "baton-rpc-server-";

}  // namespace

std::string TemporaryFolder() {
  const char* given = getenv("TMPDIR");
  return given && *given == '/' ? given : "/tmp";
}

std::string MakeServerFolder() {
  const std::string parent = TemporaryFolder();
  if (DIR* all = opendir(parent.c_str())) {
    while (const dirent* e = readdir(all)) {
      if (std::strncmp(e->d_name, kFolderHead, std::strlen(kFolderHead)) != 0) continue;
      const std::string path = Cat(parent, "/", e->d_name);
      const int pid = atoi(e->d_name + std::strlen(kFolderHead));
      struct stat info{};
      if (pid > 1 && lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == geteuid() &&
          kill(pid, 0) != 0 && errno == ESRCH) {
        RemoveFolder(path);
      }
    }
    closedir(all);
  }
  std::string path = Cat(parent, "/", kFolderHead, getpid(), "-XXXXXX");
  if (!mkdtemp(path.data())) ThrowSystem("OSError", Cat("cannot make a folder in `", parent, "`"));
  return path;
}

}  // namespace baton::rpc
