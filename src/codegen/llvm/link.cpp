// SPDX-License-Identifier: Apache-2.0
// Object files to a shared object: lld inside this process, else a linker of the system.
#include <baton/codegen/codegen.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "codegen/llvm/memory_limit.h"
#include "codegen/llvm/processor.h"

#ifdef BATON_HAVE_LLD
#include <lld/Common/Driver.h>
#include <llvm/Config/llvm-config.h>
#include <llvm/Support/raw_ostream.h>
LLD_HAS_DRIVER(elf)

#if LLVM_VERSION_MAJOR < 20
// Symbols that the linker defines where an object refers to them. lld before 20 keeps them from one run to the next,
// and writes through those that the next one does not define: `_GLOBAL_OFFSET_TABLE_`, which objects of C refer to and
// ours do not. Its headers for them are not installed.
namespace lld::elf {
class Defined;
struct ElfSym {
  static Defined *bss, *etext1, *etext2, *edata1, *edata2, *end1, *end2, *globalOffsetTable;
};
}  // namespace lld::elf
#endif
#endif

namespace baton::codegen {
namespace {

/// Files for the linker, which go when this goes: without names, so that a process that is killed leaves none; where
/// the linker is a program, in our folder, since it makes its output anew under its name.
class Scratch {
 public:
  explicit Scratch(bool named) {
    const char* base = getenv("TMPDIR");
    base_ = base && *base ? base : "/tmp";
    if (!named) return;
    folder_ = base_ + "/baton-XXXXXX";
    if (!mkdtemp(folder_.data()))
      throw RuntimeError("cannot make a temporary folder " + folder_ + "; set TMPDIR to one that can be written");
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() {
    for (const int fd : open_) close(fd);
    for (const std::string& f : files_) unlink(f.c_str());
    if (!folder_.empty()) rmdir(folder_.c_str());
  }
  /// The path of a new file.
  std::string File(const std::string& name) {
    if (!folder_.empty()) return files_.emplace_back(folder_ + "/" + name);
    int fd = open(base_.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0) fd = memfd_create("baton-link", MFD_CLOEXEC);  // a file system that has no such files
    if (fd < 0)
      throw RuntimeError("cannot make a temporary file in " + base_ + "; set TMPDIR to a folder that can be written");
    open_.push_back(fd);
    return "/proc/self/fd/" + std::to_string(fd);
  }

 private:
  std::string base_, folder_;
  std::vector<std::string> files_;
  std::vector<int> open_;
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
#if LLVM_VERSION_MAJOR < 20
  using Sym = lld::elf::ElfSym;
  Sym::bss = Sym::etext1 = Sym::etext2 = Sym::edata1 = Sym::edata2 = Sym::end1 = Sym::end2 = Sym::globalOffsetTable =
      nullptr;
#endif
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

/// The objects of `code` as files.
std::vector<std::string> ObjectFiles(const ObjectCode& code, Scratch* files) {
  std::vector<std::string> paths;
  for (size_t i = 0; i < code.objects.size(); ++i) {
    paths.push_back(files->File("part" + std::to_string(i) + ".o"));
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

/// Calls the linker; whether it linked.
using Linker = std::function<bool(const std::vector<std::string>& args)>;
/// Writes the files that are linked, links them, and gives the path of what came out; "" where the linker failed.
using LinkSteps = std::function<std::string(Scratch*, const Linker&)>;

/// Links within this process. lld makes a regular output anew under another name beside it, which files without names
/// do not have: it writes into a pipe.
bool LinkThroughPipe(std::vector<std::string> args, std::string* error) {
  int ends[2];
  const auto name = std::find(args.begin(), args.end(), "-o");
  if (name == args.end() || pipe2(ends, O_CLOEXEC) != 0) return false;
  const std::string out = std::exchange(name[1], "/proc/self/fd/" + std::to_string(ends[1]));
  std::string bytes;
  std::thread reader([&bytes, from = ends[0]] {
    char piece[65536];
    for (ssize_t n; (n = read(from, piece, sizeof piece)) > 0;) bytes.append(piece, static_cast<size_t>(n));
  });
  const bool linked = LinkInProcess(args, error);
  close(ends[1]);
  reader.join();
  close(ends[0]);
  if (linked) WriteFile(out, bytes);
  return linked;
}

/// Links within this process if that works, else by a program of the system; throws where no linker works.
std::string LinkBy(const LinkSteps& steps) {
  std::string error;
  {
    Scratch files(false);
    const std::string out =
        steps(&files, [&error](const std::vector<std::string>& args) { return LinkThroughPipe(args, &error); });
    if (!out.empty()) return Linked(out);
  }
  Scratch files(true);
  for (const char* linker : {"ld.lld-19", "ld.lld", "ld"}) {
    const std::string out = steps(&files, [linker](const std::vector<std::string>& args) {
      std::vector<std::string> command{linker};
      for (const std::string& a : args) {
        if (a != "--threads=1" || command[0] != "ld") command.push_back(a);  // GNU ld has no threads, and no such flag
      }
      return Run(command);
    });
    if (!out.empty()) return Linked(out);
  }
  throw RuntimeError("cannot link the compiled code: no linker works" + (error.empty() ? "" : " (" + error + ")") +
                     "; install lld (on Debian: apt-get install lld-19)");
}

/// The inputs of a link: its inputs several times.
void RequireMemoryFor(const ObjectCode& code) {
  uint64_t object_bytes = 0;
  for (const std::string& object : code.objects) object_bytes += object.size();
  RequireMemory(kLeastMemory / 2 + 4 * object_bytes);
}

/// Libraries of another machine's system that define nothing: linked with, they are named in the file, and what its
/// code calls stays open until the loader there finds it in them. `object` is of that machine; nothing of it is kept.
std::vector<std::string> NamedLibraries(const Target& target, const std::string& object, Scratch* files,
                                        const Linker& link) {
  const std::string version = files->File("version");
  WriteFile(version, "{ local: *; };\n");
  std::vector<std::string> paths;
  for (const std::string& name : SystemLibraries(target->mtriple.view())) {
    paths.push_back(files->File(name));
    if (!link({"-shared", "--threads=1", "--gc-sections", "-s", "-soname", name, "--version-script", version, "-o",
               paths.back(), object})) {
      return {};
    }
  }
  return paths;
}

}  // namespace

std::string LinkObject(const ObjectCode& code) {
  if (code.objects.size() == 1) return code.objects[0];
  RequireMemoryFor(code);
  return LinkBy([&code](Scratch* files, const Linker& link) -> std::string {
    const std::string out = files->File("model.o");
    std::vector<std::string> args{"-r", "--threads=1", "-o", out};
    for (const std::string& path : ObjectFiles(code, files)) args.push_back(path);
    return link(args) ? out : "";
  });
}

std::string LinkShared(const ObjectCode& code, const Target& target) {
  RequireMemoryFor(code);
  return LinkBy([&](Scratch* files, const Linker& link) -> std::string {
    const std::string out = files->File("model.so");
    // Another library of the program may have code of the same names.
    std::vector<std::string> args{
        "-shared",          "-Bsymbolic",      "-o",      out,       "--gc-sections", "-z", "relro", "-z", "now",
        "--hash-style=gnu", "--build-id=none", "-soname", "model.so"};
    // Without its own threads: a child that is forked later has none of them and would wait for ever.
    args.push_back("--threads=1");
    if (code.debug == DebugLevel::kNone) args.push_back("-s");
    const std::vector<std::string> parts = ObjectFiles(code, files);
    args.insert(args.end(), parts.begin(), parts.end());
    if (IsOtherProcessor(target->mtriple.view())) {
      const std::vector<std::string> named = NamedLibraries(target, parts[0], files, link);
      if (named.empty()) return "";
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
    return link(args) ? out : "";
  });
}

}  // namespace baton::codegen
