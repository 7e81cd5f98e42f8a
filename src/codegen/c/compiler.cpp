// SPDX-License-Identifier: Apache-2.0
// The system's C compiler, as a program.
#include <baton/runtime/error.h>
#include <baton/support/file.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "codegen/c/c.h"

namespace baton::codegen::c {
namespace {

namespace fs = std::filesystem;

/// A folder that goes with this.
class Folder {
 public:
  Folder() : path_((fs::temp_directory_path() / "baton-c-XXXXXX").string()) {
    if (!mkdtemp(path_.data()))
      throw RuntimeError("cannot make a temporary folder " + path_ + "; set TMPDIR to one that can be written");
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  std::string File(const char* name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

std::string ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return std::string((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
}

bool IsProgram(const std::string& path) { return access(path.c_str(), X_OK) == 0 && !fs::is_directory(path); }

/// The path of a program, "" where there is none.
std::string FindProgram(const std::string& name) {
  if (name.find('/') != name.npos) return IsProgram(name) ? name : "";
  const char* path = getenv("PATH");
  std::string_view rest = path ? path : "/usr/local/bin:/usr/bin:/bin";
  while (true) {
    const size_t end = rest.find(':');
    const std::string candidate = std::string(rest.substr(0, end)) + "/" + name;
    if (IsProgram(candidate)) return candidate;
    if (end == rest.npos) return "";
    rest = rest.substr(end + 1);
  }
}

/// The compiler for a target, "" where there is none: the one that BATON_CC names, else the system's.
std::string CompilerOf(const Target& target) {
  if (const char* given = getenv("BATON_CC"); given && *given) return FindProgram(given);
  if (IsOtherProcessor(target)) return FindProgram(target->mtriple.str() + "-gcc");
  for (const char* name : {"cc", "gcc", "clang", "tcc"}) {
    if (std::string found = FindProgram(name); !found.empty()) return found;
  }
  return "";
}

/// Runs a program with its words in a file; true if it ended with 0.
bool Run(const std::vector<std::string>& args, const std::string& words) {
  std::vector<char*> argv;
  for (const std::string& a : args) argv.push_back(const_cast<char*>(a.c_str()));
  argv.push_back(nullptr);
  const int out = open(words.c_str(), O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600);
  const pid_t pid = out < 0 ? -1 : fork();
  if (pid == 0) {
    dup2(out, 1);
    dup2(out, 2);
    execv(argv[0], argv.data());
    _exit(127);
  }
  if (out >= 0) close(out);
  int status = 0;
  if (pid < 0) return false;
  while (waitpid(pid, &status, 0) != pid) {
    if (errno != EINTR) return false;
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/// Features of a processor that compilers have options for, by the same names.
constexpr const char* kOptions[] = {"avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512dq", "avx512vl"};

}  // namespace

std::vector<std::string> FeaturesOf(const Target& target) {
  std::vector<std::string> out;
  const bool tiny = CompilerOf(target).ends_with("tcc");
  for (const char* f : kOptions) {
    if (!tiny && !IsOtherProcessor(target) && target->Has(f)) out.push_back(f);
  }
  return out;
}

std::string WhyNoCompiler(const Target& target) {
  if (!CompilerOf(target).empty()) return "";
  if (const char* given = getenv("BATON_CC"); given && *given) {
    return fmt::format("BATON_CC names `{}`, which is no program here", given);
  }
  if (IsOtherProcessor(target)) {
    return fmt::format(
        "there is no compiler `{}-gcc` for the processor of the target; install one, or take the source "
        "(get_source(\"c\"), or a file that ends in .c) to one",
        target->mtriple.str());
  }
  return "there is no C compiler (cc, gcc, clang or tcc) on the PATH; install one (on Debian: apt-get install gcc), "
         "name "
         "it by BATON_CC, or take the source (get_source(\"c\"), or a file that ends in .c) to one";
}

std::string CompileC(const std::string& text, const Target& target) {
  const std::string compiler = CompilerOf(target);
  if (compiler.empty()) throw UnsupportedError(WhyNoCompiler(target));
  const Folder folder;
  const std::string source = folder.File("code.c"), object = folder.File("code.o"), words = folder.File("words");
  support::WriteFileAtomic(source, text);
  std::vector<std::string> args{compiler, "-std=c99", fmt::format("-O{}", target->opt_level), "-fPIC", "-w"};
  if (!compiler.ends_with("tcc")) {
    // Results are the same without these; errno is not read, and nothing looks at exceptions of floats.
    args.insert(args.end(), {"-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-fno-strict-aliasing",
                             "-fno-asynchronous-unwind-tables", "-fno-stack-protector"});
  }
  for (const std::string& f : FeaturesOf(target)) args.push_back("-m" + f);
  args.insert(args.end(), {"-c", source, "-o", object});
  if (!Run(args, words)) {
    throw InternalError(fmt::format("{} refuses the generated C: {}", compiler, ReadFile(words).substr(0, 2000)));
  }
  std::string out = ReadFile(object);
  if (out.empty()) throw RuntimeError(compiler + " wrote nothing");
  return out;
}

}  // namespace baton::codegen::c
