// SPDX-License-Identifier: Apache-2.0
#include "rpc/confine/control_group.h"

#include <doctest/doctest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "rpc/confine/warden.h"

namespace baton::rpc {
namespace {

std::string Text(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

std::string GroupOfThisProcess() {
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("0::/", 0) == 0) return line.substr(3);
  }
  return "";
}

/// A folder with the files of a group, which keep what is written into them.
struct FakeGroup {
  std::filesystem::path root, own;
  explicit FakeGroup(const std::string& controllers) {
    char name[] = "/tmp/baton-groups-XXXXXX";
    root = mkdtemp(name);
    const std::string group = GroupOfThisProcess();
    own = group.size() > 1 ? root / group.substr(1) : root;
    std::filesystem::create_directories(own);
    std::ofstream(own / "cgroup.controllers") << controllers << "\n";
    for (const char* file : {"cgroup.subtree_control", "cgroup.procs"}) std::ofstream(own / file) << "";
  }
  ~FakeGroup() { std::filesystem::remove_all(root); }
};

TEST_CASE("a group without the controllers is not taken") {
  if (GroupOfThisProcess().empty()) return;
  const FakeGroup fake("cpu io");
  CHECK_FALSE(ControlGroups::Take(fake.root).there());
  CHECK(Text(fake.own / "cgroup.subtree_control").empty());
}

TEST_CASE("a group that was delegated gives each session one with its limits") {
  if (GroupOfThisProcess().empty()) return;
  const FakeGroup fake("cpu memory pids");
  if (geteuid() == 0 && setxattr(fake.own.c_str(), "user.delegate", "1", 1, 0) != 0 &&
      setxattr(fake.own.c_str(), "trusted.delegate", "1", 1, 0) != 0) {
    return;  // this file system keeps no such marks
  }
  const ControlGroups groups = ControlGroups::Take(fake.root);
  REQUIRE(groups.there());
  CHECK(Text(fake.own / "cgroup.subtree_control") == "+memory +pids");
  SessionTerms terms;
  terms.memory_bytes = 64 << 20;
  terms.threads = 9;
  // The kernel makes the files of a group with it; here there are none, so that it is refused and nothing is written.
  CHECK_FALSE(groups.Enter(4711, terms));
  const auto session = fake.own / "baton-rpc-session-4711";
  CHECK(std::filesystem::is_directory(session));
  groups.Leave(4711);
  CHECK_FALSE(std::filesystem::exists(session));
}

}  // namespace
}  // namespace baton::rpc
