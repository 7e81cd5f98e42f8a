// SPDX-License-Identifier: Apache-2.0
#include <baton/support/file.h>
#include <dirent.h>
#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <stdexcept>
#include <string>
#include <vector>

using namespace baton::support;

namespace {
struct Folder {
  std::string path;
  Folder() {
    char name[] = "/tmp/baton-file-XXXXXX";
    REQUIRE(mkdtemp(name) != nullptr);
    path = name;
  }
  ~Folder() {
    for (const std::string& n : List()) unlink((path + "/" + n).c_str());
    rmdir(path.c_str());
  }
  std::vector<std::string> List() const {
    std::vector<std::string> out;
    DIR* d = opendir(path.c_str());
    while (dirent* e = readdir(d)) {
      if (std::string(e->d_name) != "." && std::string(e->d_name) != "..") out.push_back(e->d_name);
    }
    closedir(d);
    return out;
  }
};
template <class F>
std::string ErrorOfFile(F f) {
  try {
    f();
  } catch (const std::runtime_error& e) {
    return e.what();
  }
  return "";
}
}  // namespace

TEST_CASE("a file is written whole, mapped and read") {
  Folder f;
  const std::string path = f.path + "/a.bin";
  WriteFileAtomic(path, std::string_view("one\0two", 7));
  CHECK(f.List() == std::vector<std::string>{"a.bin"});
  CHECK(ReadFile(path) == std::string("one\0two", 7));
  CHECK(MappedFile(path).text() == std::string_view("one\0two", 7));
  WriteFileAtomic(path, "");
  CHECK(MappedFile(path).size() == 0);
  CHECK(ReadFile(path) == "");
  WriteFileAtomic(path, "x", true);
  CHECK(access(path.c_str(), X_OK) == 0);
  REQUIRE(symlink("a.bin", (f.path + "/link").c_str()) == 0);
  WriteFileAtomic(f.path + "/link", "through the link");
  CHECK(ReadFile(path) == "through the link");
}

TEST_CASE("errors of reading name the path and the reason") {
  Folder f;
  CHECK(ErrorOfFile([&] { MappedFile(f.path + "/none"); }) ==
        "cannot read `" + f.path + "/none`: No such file or directory");
  CHECK(ErrorOfFile([&] { MappedFile m(f.path); }) == "cannot read `" + f.path + "`: it is a directory");
  CHECK(ErrorOfFile([&] { ReadFile("/dev/zero"); }) == "cannot read `/dev/zero`: it is not a regular file");
  REQUIRE(mkfifo((f.path + "/pipe").c_str(), 0600) == 0);
  CHECK(ErrorOfFile([&] { ReadFile(f.path + "/pipe"); }) != "");  // and does not wait for a writer
  CHECK(ErrorOfFile([&] { ReadFile(""); }) != "");
  CHECK(ErrorOfFile([&] { ReadFile(std::string("a\0b", 3)); }) != "");
  WriteFileAtomic(f.path + "/big", std::string(100, 'x'));
  CHECK(ErrorOfFile([&] { ReadFile(f.path + "/big", 99); }).find("the limit is 99") != std::string::npos);
}

TEST_CASE("a failed write leaves the old file and nothing else") {
  Folder f;
  const std::string path = f.path + "/a.bin";
  WriteFileAtomic(path, "old");
  {
    AtomicFile file(path);
    file.Write("new");
  }  // not committed
  CHECK(ReadFile(path) == "old");
  CHECK(f.List().size() == 1);
  // A full disk, by the limit on the size of a file.
  rlimit saved, small;
  getrlimit(RLIMIT_FSIZE, &saved);
  small = saved;
  small.rlim_cur = 1000;
  auto handler = signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &small);
  const std::string error = ErrorOfFile([&] { WriteFileAtomic(path, std::string(5000, 'x')); });
  setrlimit(RLIMIT_FSIZE, &saved);
  signal(SIGXFSZ, handler);
  CHECK(error == "cannot write `" + path + "`: File too large");
  CHECK(ReadFile(path) == "old");
  CHECK(f.List().size() == 1);
  CHECK(ErrorOfFile([&] { WriteFileAtomic(f.path, "x"); }).find("it is a directory") != std::string::npos);
  CHECK(ErrorOfFile([&] { WriteFileAtomic(f.path + "/no/a", "x"); }).find("its folder does not exist") !=
        std::string::npos);
  CHECK(ErrorOfFile([&] { WriteFileAtomic(path + "/a", "x"); }) != "");
  CHECK(ErrorOfFile([&] { WriteFileAtomic(f.path + "/" + std::string(300, 'n'), "x"); }).find("File name too long") !=
        std::string::npos);
  CHECK(f.List().size() == 1);
}

TEST_CASE("a device is written to, never replaced") {
  WriteFileAtomic("/dev/null", "gone");
  struct stat st;
  REQUIRE(stat("/dev/null", &st) == 0);
  CHECK(S_ISCHR(st.st_mode));
}
