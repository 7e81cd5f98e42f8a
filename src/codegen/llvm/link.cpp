// SPDX-License-Identifier: Apache-2.0
// Object files to a shared object: lld inside this process, else a linker of the system.
#include <baton/codegen/codegen.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <mutex>
#include <vector>

#include "codegen/llvm/memory_limit.h"
#include "codegen/llvm/processor.h"

#ifdef BATON_HAVE_LLD
#include <lld/Common/Driver.h>
#include <llvm/Support/raw_ostream.h>
LLD_HAS_DRIVER(elf)
#endif

namespace baton::codegen {
namespace {

/// A folder of our own that goes when this goes.
struct TempDir {
  std::string path;
  TempDir() {
    const char* base = getenv("TMPDIR");
    path = std::string(base && *base ? base : "/tmp") + "/baton-XXXXXX";
    if (!mkdtemp(path.data()))
      throw RuntimeError("cannot make a temporary folder " + path + "; set TMPDIR to one that can be written");
  }
  ~TempDir() {
    for (const std::string& f : files) unlink(f.c_str());
    rmdir(path.c_str());
  }
  std::string File(const std::string& name) {
    files.push_back(path + "/" + name);
    return files.back();
  }
  std::vector<std::string> files;
};

void WriteFile(const std::string& path, const std::string& bytes) {
  std::ofstream f(path, std::ios::binary);
  f.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  f.close();
  if (!f) throw RuntimeError("cannot write " + path + "; is the disk full?");
}

/// Runs a program; true if it ended with 0.
bool Run(const std::vector<std::string>& args) {
  std::vector<char*> argv;
  for (const std::string& a : args) argv.push_back(const_cast<char*>(a.c_str()));
  argv.push_back(nullptr);
  pid_t pid = fork();
  if (pid == 0) {
    execvp(argv[0], argv.data());
    _exit(127);
  }
  int status = 0;
  if (pid < 0 || waitpid(pid, &status, 0) != pid) return false;
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

#ifdef BATON_HAVE_LLD
std::mutex& LinkMutex() {
  static auto* mutex = new std::mutex;
  return *mutex;
}
#endif

bool LinkInProcess(const std::vector<std::string>& args, std::string* error) {
#ifdef BATON_HAVE_LLD
  static bool usable = true;
  // A fork waits until no thread links, so that a child finds the linker as it is between two runs.
  static const int forks =
      pthread_atfork([] { LinkMutex().lock(); }, [] { LinkMutex().unlock(); }, [] { LinkMutex().unlock(); });
  (void)forks;
  std::lock_guard lock(LinkMutex());
  if (!usable) return false;
  std::vector<const char*> argv{"ld.lld"};
  for (const std::string& a : args) argv.push_back(a.c_str());
  std::string out;
  llvm::raw_string_ostream os(out);
  usable = false;  // also where an exception leaves it half way
  const lld::Result r = lld::lldMain(argv, os, os, {{lld::Gnu, &lld::elf::link}});
  usable = r.canRunAgain;
  *error = os.str();
  return r.retCode == 0;
#else
  (void)args;
  (void)error;
  return false;
#endif
}

}  // namespace

namespace {

/// Links; throws where no linker works.
void Link(const std::vector<std::string>& args) {
  std::string error;
  bool linked = LinkInProcess(args, &error);
  if (!linked) {
    for (const char* linker : {"ld.lld-19", "ld.lld", "ld"}) {
      std::vector<std::string> command{linker};
      for (const std::string& a : args) {
        if (a != "--threads=1" || command[0] != "ld") command.push_back(a);  // GNU ld has no threads, and no such flag
      }
      linked = linked || Run(command);
    }
  }
  if (!linked) {
    throw RuntimeError("cannot link the compiled code: no linker works" + (error.empty() ? "" : " (" + error + ")") +
                       "; install lld (on Debian: apt-get install lld-19)");
  }
}

/// The objects of `code` as files.
std::vector<std::string> ObjectFiles(const ObjectCode& code, TempDir* dir) {
  std::vector<std::string> paths;
  for (size_t i = 0; i < code.objects.size(); ++i) {
    paths.push_back(dir->File("part" + std::to_string(i) + ".o"));
    WriteFile(paths.back(), code.objects[i]);
  }
  return paths;
}

std::string Linked(const std::string& path) {
  std::ifstream f(path, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(f)), std::istreambuf_iterator<char>());
  if (bytes.empty()) throw RuntimeError("the linker wrote nothing");
  return bytes;
}

/// What a link takes: its inputs several times.
void RequireMemoryFor(const ObjectCode& code) {
  uint64_t object_bytes = 0;
  for (const std::string& object : code.objects) object_bytes += object.size();
  RequireMemory(kLeastMemory / 2 + 4 * object_bytes);
}

/// Libraries of another machine's system that define nothing: linked with, they are named in the file, and what its
/// code calls stays open until the loader there finds it in them. `object` is of that machine; nothing of it is kept.
std::vector<std::string> NamedLibraries(const Target& target, const std::string& object, TempDir* dir) {
  const std::string version = dir->File("version");
  WriteFile(version, "{ local: *; };\n");
  std::vector<std::string> paths;
  for (const std::string& name : SystemLibraries(target->mtriple.view())) {
    paths.push_back(dir->File(name));
    Link({"-shared", "--threads=1", "--gc-sections", "-s", "-soname", name, "--version-script", version, "-o",
          paths.back(), object});
  }
  return paths;
}

}  // namespace

std::string LinkObject(const ObjectCode& code) {
  if (code.objects.size() == 1) return code.objects[0];
  RequireMemoryFor(code);
  TempDir dir;
  const std::string out = dir.File("model.o");
  std::vector<std::string> args{"-r", "--threads=1", "-o", out};
  for (const std::string& path : ObjectFiles(code, &dir)) args.push_back(path);
  Link(args);
  return Linked(out);
}

std::string LinkShared(const ObjectCode& code, const Target& target) {
  RequireMemoryFor(code);
  TempDir dir;
  std::string out = dir.File("model.so");
  std::vector<std::string> args{"-shared", "-o",      out,   "--gc-sections",    "-z",
                                "relro",   "-z",      "now", "--hash-style=gnu", "--build-id=none",
                                "-soname", "model.so"};
  // Without threads of its own: a child that is forked later has none of them and would wait for ever.
  args.push_back("--threads=1");
  if (code.debug == DebugLevel::kNone) args.push_back("-s");
  const std::vector<std::string> parts = ObjectFiles(code, &dir);
  args.insert(args.end(), parts.begin(), parts.end());
  if (IsOtherProcessor(target->mtriple.view())) {
    const std::vector<std::string> named = NamedLibraries(target, parts[0], &dir);
    args.insert(args.end(), named.begin(), named.end());
  } else {
    for (const char* libm :
         {"/lib/x86_64-linux-gnu/libm.so.6", "/usr/lib/x86_64-linux-gnu/libm.so.6", "/lib64/libm.so.6"}) {
      if (access(libm, R_OK) == 0) {
        args.insert(args.end(), {"--as-needed", libm});
        break;
      }
    }
  }
  Link(args);
  return Linked(out);
}

}  // namespace baton::codegen
