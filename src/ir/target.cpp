// SPDX-License-Identifier: Apache-2.0
#include <baton/ir/target.h>
#include <baton/runtime/registry.h>
#include <baton/support/machine.h>
#include <baton/support/nearest.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>
#include <vector>

#include "ir/thread_state.h"

namespace baton {
namespace {

std::vector<Target>& Stack() { return transform::ThreadState::Get().targets; }

// Processor features that a target string may name and that schedules use.
struct Cpu {
  std::string_view name;
  std::vector<std::string_view> features;
};
const std::vector<std::string_view> kAvx2 = {"avx", "avx2", "f16c", "fma"};
const std::vector<std::string_view> kAvx512 = {"avx",     "avx2",     "avx512bw", "avx512dq",
                                               "avx512f", "avx512vl", "f16c",     "fma"};
std::vector<std::string_view> More(std::vector<std::string_view> base, std::initializer_list<std::string_view> more) {
  base.insert(base.end(), more);
  return base;
}
const std::vector<Cpu>& Cpus() {
  static const std::vector<Cpu> cpus = {
      {"x86-64", {}},
      {"x86-64-v2", {"sse4.1"}},
      {"x86-64-v3", kAvx2},
      {"x86-64-v4", kAvx512},
      {"haswell", kAvx2},
      {"broadwell", kAvx2},
      {"skylake", kAvx2},
      {"core-avx2", kAvx2},
      {"znver2", kAvx2},
      {"znver3", kAvx2},
      {"skylake-avx512", kAvx512},
      {"cascadelake", More(kAvx512, {"avx512vnni"})},
      {"icelake-server", More(kAvx512, {"avx512vnni", "avx512vbmi"})},
      {"znver4", More(kAvx512, {"avx512vnni", "avx512vbmi", "avx512bf16"})},
      {"sapphirerapids",
       More(kAvx512, {"avx512vnni", "avx512vbmi", "avx512bf16", "avx512fp16", "amx-tile", "amx-bf16", "amx-int8"})},
      {"generic", {}},
  };
  return cpus;
}

/// The 64-bit x86 processors that LLVM 19 knows. For others LLVM prints a warning and generates generic code.
const std::vector<std::string>& X86Names() {
  static const std::vector<std::string> names = {"alderlake",
                                                 "amdfam10",
                                                 "arrowlake",
                                                 "arrowlake-s",
                                                 "atom",
                                                 "barcelona",
                                                 "bdver1",
                                                 "bdver2",
                                                 "bdver3",
                                                 "bdver4",
                                                 "bonnell",
                                                 "broadwell",
                                                 "btver1",
                                                 "btver2",
                                                 "cannonlake",
                                                 "cascadelake",
                                                 "clearwaterforest",
                                                 "cooperlake",
                                                 "core-avx-i",
                                                 "core-avx2",
                                                 "core2",
                                                 "corei7",
                                                 "corei7-avx",
                                                 "emeraldrapids",
                                                 "generic",
                                                 "goldmont",
                                                 "goldmont-plus",
                                                 "gracemont",
                                                 "grandridge",
                                                 "graniterapids",
                                                 "graniterapids-d",
                                                 "haswell",
                                                 "icelake-client",
                                                 "icelake-server",
                                                 "ivybridge",
                                                 "k8",
                                                 "k8-sse3",
                                                 "knl",
                                                 "knm",
                                                 "lunarlake",
                                                 "meteorlake",
                                                 "nehalem",
                                                 "nocona",
                                                 "opteron",
                                                 "opteron-sse3",
                                                 "pantherlake",
                                                 "penryn",
                                                 "raptorlake",
                                                 "rocketlake",
                                                 "sandybridge",
                                                 "sapphirerapids",
                                                 "sierraforest",
                                                 "silvermont",
                                                 "skx",
                                                 "skylake",
                                                 "skylake-avx512",
                                                 "slm",
                                                 "tigerlake",
                                                 "tremont",
                                                 "westmere",
                                                 "x86-64",
                                                 "x86-64-v2",
                                                 "x86-64-v3",
                                                 "x86-64-v4",
                                                 "znver1",
                                                 "znver2",
                                                 "znver3",
                                                 "znver4",
                                                 "znver5"};
  return names;
}

struct Kind {
  std::string_view name;
  DLDeviceType device;
  std::string_view labels;  ///< options that targets of the kind may name besides those of all kinds
};
constexpr std::string_view kOfNvidia = "mcpu mtriple mattr arch system-lib",
                           kOfVulkan =
                               "supports_float16 supports_float32 supports_float64 supports_int8 supports_int16 "
                               "supports_int32 supports_int64 supports_8bit_buffer supports_16bit_buffer "
                               "supports_storage_buffer_storage_class supports_push_descriptor "
                               "supports_dedicated_allocation supports_integer_dot_product "
                               "supported_subgroup_operations max_block_size_x max_block_size_y max_block_size_z "
                               "max_push_constants_size max_uniform_buffer_range max_storage_buffer_range "
                               "max_per_stage_descriptor_storage_buffer device_type device_name driver_name "
                               "driver_version vulkan_api_version max_spirv_version mattr";
// Programs name these to choose by them, though no code is made for them.
constexpr Kind kNamesAlone[] = {
    {"nvptx", kDLCUDA, kOfNvidia},
    {"rocm", kDLROCM, kOfNvidia},
    {"vulkan", kDLVulkan, kOfVulkan},
    {"hexagon", kDLHexagon, "mcpu mtriple mattr llvm-options vtcm-capacity num-cores"},
    {"ext_dev", kDLExtDev, ""},
    {"aocl", kDLOpenCL, ""},
    {"aocl_sw_emu", kDLOpenCL, ""},
    {"sdaccel", kDLOpenCL, ""},
    {"stackvm", kDLCPU, ""},
    {"hybrid", kDLCPU, ""},
    {"composite", kDLCPU, "devices"},
    {"test", kDLCPU, ""},
};
const Kind* FindName(std::string_view name) {
  for (const Kind& k : kNamesAlone) {
    if (k.name == name) return &k;
  }
  return nullptr;
}

std::map<std::string, TargetKind, std::less<>>& Kinds() {
  static auto* kinds = new std::map<std::string, TargetKind, std::less<>>();
  return *kinds;
}
const TargetKind* FindKind(std::string_view name) {
  const auto it = Kinds().find(name);
  return it == Kinds().end() ? nullptr : &it->second;
}
/// "c, llvm and opencl"
std::string KindNames() {
  std::string out;
  size_t left = Kinds().size();
  for (const auto& [name, kind] : Kinds()) {
    out += name;
    if (--left > 0) out += left == 1 ? " and " : ", ";
  }
  return out;
}
/// Descriptive options of a target, for programs to read; they do not affect compilation.
constexpr std::string_view kLabels =
    "keys device model libs tag mfloat-abi mabi march runtime executor host cl-opt interface-api from_device";
constexpr std::string_view kNumbers =
    "constants-byte-alignment workspace-byte-alignment max_num_threads thread_warp_size max_shared_memory_per_block "
    "shared_memory_per_block registers_per_block max_threads_per_block max_function_args texture_spatial_limit "
    "max_block_size_x max_block_size_y max_block_size_z num-cores";
std::vector<std::string_view> Words(std::string_view text) {
  std::vector<std::string_view> out;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    if (end) out.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}
bool HasWord(std::string_view text, std::string_view word) {
  const auto words = Words(text);
  return std::find(words.begin(), words.end(), word) != words.end();
}
/// Labels that are on or off: `-system-lib` is `-system-lib=1`.
bool IsSwitch(std::string_view key) {
  for (std::string_view k :
       {"system-lib", "link-params", "unpacked-api", "fast-math", "fast-math-nnan", "fast-math-ninf", "fast-math-nsz",
        "fast-math-arcp", "fast-math-contract", "fast-math-reassoc"}) {
    if (key == k) return true;
  }
  return false;
}

const RegisterNodes<TargetNode> registered_target;

}  // namespace

bool TargetNode::Has(std::string_view feature) const {
  for (const String& f : features) {
    if (f == feature) return true;
  }
  return false;
}

void RegisterTargetKind(TargetKind kind) {
  const std::string name = kind.name;
  if (!Kinds().emplace(name, std::move(kind)).second) throw InternalError("target kind `" + name + "` is there twice");
}
std::vector<const TargetKind*> TargetKinds() {
  std::vector<const TargetKind*> out;
  for (const auto& [name, kind] : Kinds()) out.push_back(&kind);
  return out;
}
const TargetKind* TargetKindFor(int64_t device_type) {
  const TargetKind* found = nullptr;
  for (const auto& [name, kind] : Kinds()) {
    const auto& d = kind.devices;
    // The one that tunes its kernels, if there are several.
    if (std::find(d.begin(), d.end(), device_type) != d.end() && (!found || kind.vector_kernels)) found = &kind;
  }
  return found;
}

const TargetKind& TargetNode::traits() const {
  const TargetKind* k = FindKind(kind.view());
  if (!k) {
    throw UnsupportedError("no code is made for the target `" + kind.str() + "`; there is code for " + KindNames());
  }
  return *k;
}
void TargetNode::CheckCode() const { traits(); }

int TargetNode::device_type() const {
  if (const TargetKind* k = FindKind(kind.view())) return static_cast<int>(k->devices[0]);
  const Kind* k = FindName(kind.view());
  return k ? k->device : kDLCPU;
}

int64_t TargetNode::vector_bits() const { return Has("avx512f") ? 512 : Has("avx2") ? 256 : 128; }

namespace {
/// Adds or removes the features that `attr` lists as +name and -name.
void ApplyAttributes(std::string_view attr, std::vector<std::string>* features) {
  while (!attr.empty()) {
    std::string_view one = attr.substr(0, attr.find(','));
    attr.remove_prefix(std::min(one.size() + 1, attr.size()));
    if (one.size() < 2 || (one[0] != '+' && one[0] != '-')) {
      throw runtime::ValueError("target option -mattr lists features as +name or -name, got \"" + std::string(one) +
                                "\"");
    }
    std::string name(one.substr(1));
    features->erase(std::remove(features->begin(), features->end(), name), features->end());
    if (one[0] == '+') features->push_back(name);
  }
}

/// AVX-512 is used where its instructions take short vectors too (avx512vl): LLVM selects none for masks of 8 lanes
/// otherwise. Without them vectors have 256 bits.
void DropLoneAvx512(std::vector<std::string>* features) {
  if (std::find(features->begin(), features->end(), "avx512vl") != features->end()) return;
  std::erase_if(*features, [](const std::string& f) { return f.starts_with("avx512"); });
}

// The number that option `key` is given, from lo to hi.
int64_t OptionNumber(std::string_view key, std::string_view value, int64_t lo, int64_t hi) {
  int64_t v = 0;
  auto [p, ec] = std::from_chars(value.data(), value.data() + value.size(), v);
  if (ec != std::errc() || p != value.data() + value.size() || v < lo || v > hi) {
    throw runtime::ValueError("target option -" + std::string(key) + " is a number from " + std::to_string(lo) +
                              " to " + std::to_string(hi) + ", got \"" + std::string(value) + "\"");
  }
  return v;
}

/// `own`: the options of the kind.
[[noreturn]] void ThrowUnknownOption(std::string_view key, std::string_view own) {
  std::vector<std::string> names;
  std::string list;
  for (std::string_view w : Words(own)) {
    names.emplace_back(w);
    list += (list.empty() ? "; there are -" : ", -") + std::string(w);
  }
  for (std::string_view all : {kLabels, kNumbers}) {
    for (std::string_view w : Words(all)) names.emplace_back(w);
  }
  throw runtime::ValueError("unknown target option -" + std::string(key) + support::DidYouMean(key, names) + list);
}

}  // namespace

Target Target::Make(std::string_view text) {
  TargetNode n;
  size_t at = 0;
  auto word = [&]() -> std::string_view {
    while (at < text.size() && text[at] == ' ') ++at;
    const size_t begin = at;
    for (char quote = 0; at < text.size() && (quote || text[at] != ' '); ++at) {
      if (quote ? text[at] == quote : text[at] == '"' || text[at] == '\'') quote = quote ? 0 : text[at];
    }
    return text.substr(begin, at - begin);
  };
  std::string_view kind = word();
  const TargetKind* known = FindKind(kind);
  if (!known && !FindName(kind)) {
    std::vector<std::string> kinds;
    for (const TargetKind* k : TargetKinds()) kinds.push_back(k->name);
    throw runtime::ValueError("unknown target kind \"" + std::string(kind.substr(0, 40)) + "\"" +
                              support::DidYouMean(kind, kinds) + "; there are " + KindNames() +
                              ", with options as in \"llvm -mcpu=skylake-avx512\"");
  }
  n.kind = String(kind);
  for (std::string_view w = word(); !w.empty(); w = word()) {
    std::string_view body = w;
    while (!body.empty() && body[0] == '-') body.remove_prefix(1);
    size_t eq = body.find('=');
    std::string_view key = body.substr(0, eq), value = eq == std::string_view::npos ? "" : body.substr(eq + 1);
    auto number = [&](int64_t lo, int64_t hi) { return OptionNumber(key, value, lo, hi); };
    const std::string_view own = known ? std::string_view(known->labels) : FindName(kind)->labels;
    const bool counts = HasWord(kNumbers, key) && !(known && key == "num-cores");
    if (w[0] == '-' && (counts || HasWord(kLabels, key) || HasWord(own, key) || IsSwitch(key))) {
      if (counts) number(0, std::numeric_limits<int32_t>::max());
      std::string label = "-" + std::string(body);
      if (IsSwitch(key)) {
        const bool off = value == "0" || value == "False" || value == "false";
        if (!off && eq != std::string_view::npos && value != "1" && value != "True" && value != "true")
          throw runtime::ValueError("target option -" + std::string(key) + " is 0 or 1, got \"" + std::string(value) +
                                    "\"");
        label = "-" + std::string(key) + (off ? "=0" : "=1");
      }
      n.options = String(n.options.str() + (n.options.empty() ? "" : " ") + label);
      continue;
    }
    if (w[0] != '-' || eq == std::string_view::npos) {
      throw runtime::ValueError("target options are written -name=value, got \"" + std::string(w) + "\"");
    }
    if (!known) ThrowUnknownOption(key, own);
    if (key == "mcpu") {
      n.mcpu = String(value);
    } else if (key == "mtriple" || key == "target") {
      n.mtriple = String(value);
    } else if (key == "mattr") {
      n.mattr = String(value);
    } else if (key == "opt-level") {
      n.opt_level = number(0, 3);
    } else if (key == "num-cores") {
      n.num_cores = number(0, 4096);
    } else {
      ThrowUnknownOption(key, "mcpu mtriple mattr opt-level num-cores");
    }
  }
  std::vector<std::string> features;
  if (!known) return Target(std::move(n));
  if (!known->no_processor.empty()) {
    // Nothing of a processor is known, and nothing is used.
    if (!n.mcpu.empty() || !n.mtriple.empty() || !n.mattr.empty()) {
      throw runtime::ValueError("target " + known->name +
                                " has no options -mcpu, -mtriple and -mattr: " + known->no_processor);
    }
  } else if (n.mcpu.empty() && n.mtriple.empty()) {
    for (const std::string& f : support::CpuFeatures()) features.push_back(f);
  } else {
    const Cpu* cpu = nullptr;
    for (const Cpu& c : Cpus()) {
      if (n.mcpu == c.name) cpu = &c;
    }
    bool x86 = n.mtriple.empty() || n.mtriple.view().starts_with("x86_64");
#ifndef __x86_64__
    x86 = x86 && !n.mtriple.empty();
#endif
    const std::vector<std::string>& names = X86Names();
    if (x86 && kind == "llvm" && !n.mcpu.empty() &&
        std::find(names.begin(), names.end(), n.mcpu.str()) == names.end()) {
      throw runtime::ValueError("unknown processor \"" + n.mcpu.str().substr(0, 40) + "\" in target option -mcpu" +
                                support::DidYouMean(n.mcpu.view(), names) + "; without -mcpu code is for this machine");
    }
    // Schedules for those that are not in the table use the base features.
    if (cpu) {
      for (std::string_view f : cpu->features) features.push_back(std::string(f));
    }
  }
  ApplyAttributes(n.mattr.view(), &features);
  DropLoneAvx512(&features);
  std::sort(features.begin(), features.end());
  for (const std::string& f : features) n.features.push_back(f);
  return Target(std::move(n));
}

std::string Target::str() const {
  const TargetNode* n = get();
  std::string s = n->kind.str();
  if (!n->mcpu.empty()) s += " -mcpu=" + n->mcpu.str();
  if (!n->mtriple.empty()) s += " -mtriple=" + n->mtriple.str();
  if (!n->mattr.empty()) s += " -mattr=" + n->mattr.str();
  if (n->opt_level != 2) s += " -opt-level=" + std::to_string(n->opt_level);
  if (n->num_cores != 0) s += " -num-cores=" + std::to_string(n->num_cores);
  if (!n->options.empty()) s += " " + n->options.str();
  return s;
}

Target Target::Current() { return Stack().empty() ? Host() : Stack().back(); }
void Target::EnterWithScope() { Stack().push_back(*this); }
void Target::ExitWithScope() {
  if (Stack().empty() || !Stack().back().same_as(*this))
    throw runtime::ValueError("this target is not the innermost one of this thread");
  Stack().pop_back();
}

BATON_REGISTER_GLOBAL("target.Target").set_body_typed([](String text) { return Target::Make(text.view()); });
BATON_REGISTER_GLOBAL("target.TargetStr").set_body_typed([](Target t) { return String(t.str()); });
BATON_REGISTER_GLOBAL("target.TargetCurrent").set_body_typed([](bool allow_none) {
  return allow_none && Stack().empty() ? Target(ObjectPtr<Object>()) : Target::Current();
});
/// Scopes for languages without destructors.
struct TargetScopes {
  static void Enter(Target t) { t.EnterWithScope(); }
  static void Exit(Target t) { t.ExitWithScope(); }
};
BATON_REGISTER_GLOBAL("target.TargetEnterScope").set_body_typed([](Target t) { TargetScopes::Enter(t); });
BATON_REGISTER_GLOBAL("target.TargetExitScope").set_body_typed([](Target t) { TargetScopes::Exit(t); });
/// Whether a target makes machine code of this process's kind, not the text of a device's program.
BATON_REGISTER_GLOBAL("target.OnHost").set_body_typed([](Target t) { return t->traits().on_host; });
BATON_REGISTER_GLOBAL("target.VectorBits").set_body_typed([](Target t) { return t->vector_bits(); });

}  // namespace baton
