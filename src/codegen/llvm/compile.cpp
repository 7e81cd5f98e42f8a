// SPDX-License-Identifier: Apache-2.0
// LLVM's passes and object emission; functions are spread over compile threads.
#include <baton/codegen/codegen.h>
#include <baton/runtime/interrupt.h>
#include <baton/runtime/registry.h>
#include <baton/support/sha256.h>
#include <baton/tir/functor.h>
#include <baton/tir/lower.h>
#include <llvm-c/Analysis.h>
#include <llvm-c/BitWriter.h>
#include <llvm-c/Core.h>
#include <llvm-c/Support.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <llvm-c/Transforms/PassBuilder.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "codegen/cache/build_identity.h"
#include "codegen/cache/kernel_cache.h"
#include "codegen/llvm/emitter.h"
#include "codegen/llvm/init.h"
#include "codegen/llvm/jobs.h"
#include "codegen/llvm/memory_limit.h"
#include "codegen/llvm/processor.h"
#include "runtime/artifact_format.h"

namespace baton::codegen {
namespace {

std::string TakeMessage(char* text) {
  std::string s = text ? text : "";
  LLVMDisposeMessage(text);
  return s;
}

// Loop strength reduction tries so many combinations of address formulas: of the default, 65535, it takes a third of
// the time of code with many register tiles, and finds the same.
constexpr const char* kOptions = "-lsr-complexity-limit=4096";

struct Machine {
  LLVMTargetMachineRef tm = nullptr;
  std::string cpu, features, triple;
  const Unwinding unwinding;
  explicit Machine(const Target& target) {
    InitLLVM();
    // In a triple without a vendor LLVM takes the system for one, and knows neither system nor convention of calls.
    triple = target->mtriple.empty() ? TakeMessage(LLVMGetDefaultTargetTriple())
                                     : TakeMessage(LLVMNormalizeTargetTriple(target->mtriple.str().c_str()));
    if (target.get()->is_host()) {
      cpu = TakeMessage(LLVMGetHostCPUName());
      features = TakeMessage(LLVMGetHostCPUFeatures());
    } else {
      cpu = target->mcpu.str();
      if (cpu.empty()) features = ProcessorOf(triple).features;
    }
    if (triple.starts_with("x86_64")) {
      // LLVM 19 may exchange the operands of a masked vcmpph without turning the predicate round. Seen with llc 19.1.7
      // -mcpu=sapphirerapids: of (a < b) & m and (b < a) & m, both stored, one compare is left and stored twice; with
      // float32, or without the mask, there are two. (It is machine CSE that exchanges, so a compare alone is right.)
      // Without the feature lanes are converted to float32. An explicit -mattr enables it.
      features += features.empty() ? "-avx512fp16" : ",-avx512fp16";
    }
    if (!target->mattr.empty()) features += (features.empty() ? "" : ",") + target->mattr.str();
    const bool asked = target.get()->is_host() || target->mattr.view().find("avx512") != std::string_view::npos;
    if (triple.starts_with("x86_64") && asked) {
      // LLVM leaves out what the target does (Target::Make). LLVM 19 is told of registers of 512 bits apart from the
      // instructions.
      features += target->Has("avx512f") ? ",+evex512" : ",-avx512f";
    }
    LLVMTargetRef t = nullptr;
    char* error = nullptr;
    if (LLVMGetTargetFromTriple(triple.c_str(), &t, &error)) {
      throw runtime::ValueError("LLVM has no target \"" + triple + "\": " + TakeMessage(error));
    }
    LLVMCodeGenOptLevel level = target->opt_level == 0   ? LLVMCodeGenLevelNone
                                : target->opt_level >= 3 ? LLVMCodeGenLevelAggressive
                                                         : LLVMCodeGenLevelDefault;
    tm = LLVMCreateTargetMachine(t, triple.c_str(), cpu.c_str(), features.c_str(), level, LLVMRelocPIC,
                                 LLVMCodeModelDefault);
    if (!tm) throw runtime::ValueError("LLVM cannot make code for " + target.str());
  }
  Machine(const Machine&) = delete;
  ~Machine() {
    if (!unwinding) LLVMDisposeTargetMachine(tm);
  }
};

using Named = std::pair<GlobalVar, tir::PrimFunc>;

struct CompiledModule {
  LLVMContextRef ctx = LLVMContextCreate();
  LLVMModuleRef module = nullptr;
  const Unwinding unwinding;
  CompiledModule() = default;
  CompiledModule(const CompiledModule&) = delete;
  ~CompiledModule() {
    if (unwinding) return;
    if (module) LLVMDisposeModule(module);
    LLVMContextDispose(ctx);
  }
};

void Emit(CompiledModule* m, const Machine& machine, const Target& target, const IRModule& mod,
          const std::vector<Named>& functions, bool define_api, DebugLevel level) {
  m->module = LLVMModuleCreateWithNameInContext("baton", m->ctx);
  LLVMSetTarget(m->module, machine.triple.c_str());
  LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(machine.tm);
  LLVMSetModuleDataLayout(m->module, layout);
  LLVMDisposeTargetData(layout);
  LLVMTypeRef ptr = LLVMPointerTypeInContext(m->ctx, 0);
  LLVMValueRef api = LLVMAddGlobal(m->module, ptr, kBackendApiSymbol);
  LLVMValueRef self = LLVMAddGlobal(m->module, ptr, runtime::kModuleSymbol);
  if (define_api) {
    LLVMSetInitializer(api, LLVMConstNull(ptr));
    LLVMSetInitializer(self, LLVMConstNull(ptr));
    LLVMValueRef none =
        LLVMConstStringInContext(m->ctx, runtime::artifact::kNoManifest, runtime::artifact::kDigest, true);
    LLVMValueRef digest = LLVMAddGlobal(m->module, LLVMTypeOf(none), runtime::artifact::kManifestSymbol);
    LLVMSetInitializer(digest, none);  // no constant: it is written when the rest of the file is known
    none = LLVMConstStringInContext(m->ctx, runtime::artifact::kNoNumbers, runtime::artifact::kDigest, true);
    LLVMSetInitializer(LLVMAddGlobal(m->module, LLVMTypeOf(none), runtime::artifact::kNumbersSymbol), none);
  }
  std::optional<DebugInfo> debug;
  if (level == DebugLevel::kLines) debug.emplace(m->module);
  for (const auto& [var, func] : functions) {
    EmitFunction(m->module, target, mod, SymbolOf(var, func), func, machine.cpu, machine.features,
                 debug ? &*debug : nullptr);
    if (func->HasNonzeroAttr(tir::attr::kPackedOf)) EmitFunctionSpec(m->module, SymbolOf(var, func), func);
  }
  if (debug) debug->Finish();
  char* error = nullptr;
  if (LLVMVerifyModule(m->module, LLVMReturnStatusAction, &error)) {
    throw InternalError("LLVM refuses the generated code: " + TakeMessage(error).substr(0, 2000));
  }
  LLVMDisposeMessage(error);
}

/// The passes of a module.
std::string PassesOf(const Target& target) {
  // Loops come rotated, unrolled and with their vectors explicit, functions without need of inlining: these few passes
  // give the same speed as default<O2> on every kernel measured, in a quarter of its time. Level 3 is LLVM's own.
  constexpr const char* kShort =
      "function<eager-inv>(sroa,early-cse<memssa>,simplifycfg,instcombine<no-verify-fixpoint>,loop-mssa(licm),loop("
      "indvars,loop-unroll-full),sroa,"
      "early-cse<memssa>,instcombine<no-verify-fixpoint>,dse,loop-mssa(licm),simplifycfg)";
  return target->opt_level == 2 ? kShort : "default<O" + std::to_string(target->opt_level) + ">";
}

void Optimize(CompiledModule* m, const Machine& machine, const Target& target) {
  // Loops are vectorised and unrolled before; LLVM's own vectorisers only cost time here.
  LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
  LLVMPassBuilderOptionsSetLoopVectorization(options, 0);
  LLVMPassBuilderOptionsSetSLPVectorization(options, 0);
  LLVMPassBuilderOptionsSetLoopInterleaving(options, 0);
  LLVMErrorRef err = LLVMRunPasses(m->module, PassesOf(target).c_str(), machine.tm, options);
  LLVMDisposePassBuilderOptions(options);
  if (err) {
    char* text = LLVMGetErrorMessage(err);
    std::string s = text;
    LLVMDisposeErrorMessage(text);
    throw InternalError("LLVM's passes failed: " + s);
  }
}

std::string Write(CompiledModule* m, const Machine& machine, LLVMCodeGenFileType type) {
  char* error = nullptr;
  LLVMMemoryBufferRef buffer = nullptr;
  if (LLVMTargetMachineEmitToMemoryBuffer(machine.tm, m->module, type, &error, &buffer)) {
    throw InternalError("LLVM cannot write code: " + TakeMessage(error));
  }
  std::string out(LLVMGetBufferStart(buffer), LLVMGetBufferSize(buffer));
  LLVMDisposeMemoryBuffer(buffer);
  return out;
}

std::atomic<int64_t> compilations{0};

/// The inputs of the object code of `m` as it was emitted. All that code depends on is in LLVM's module, and here: no
/// pass before it need be known.
cache::Unit UnitOf(const CompiledModule& m, const Machine& machine, const Target& target,
                   const std::vector<Named>& functions, const std::string& build) {
  cache::Unit unit;
  for (const auto& [var, func] : functions) unit.functions += (unit.functions.empty() ? "" : " ") + SymbolOf(var, func);
  LLVMMemoryBufferRef bits = LLVMWriteBitcodeToMemoryBuffer(m.module);
  unit.code = support::Sha256Hex({LLVMGetBufferStart(bits), LLVMGetBufferSize(bits)});
  LLVMDisposeMemoryBuffer(bits);
  unit.target = machine.triple + " " + machine.cpu + " " + machine.features + " -O" +
                std::to_string(target->opt_level) + " " + PassesOf(target) + " " + kOptions;
  unit.build = build;
  return unit;
}

/// Which compiler and LLVM this is; "" where that cannot be told.
const std::string& Build() {
  static const std::string build = cache::BuildIdentity(reinterpret_cast<const void*>(&LLVMRunPasses));
  return build;
}

/// The functions of a module in order; a rough size of each decides on which thread it goes.
std::vector<Named> PrimFuncs(const IRModule& mod) {
  std::vector<Named> out;
  for (const auto& [var, func] : mod->functions) {
    if (func.as<tir::PrimFuncNode>()) out.push_back({var, Downcast<tir::PrimFunc>(func)});
  }
  return out;
}

struct SizeCounter : tir::StmtExprVisitor {
  int64_t n = 0;
  void VisitExpr(const PrimExpr& e) override {
    ++n;
    tir::StmtExprVisitor::VisitExpr(e);
  }
  void VisitStmt(const tir::Stmt& s) override {
    ++n;
    tir::StmtExprVisitor::VisitStmt(s);
  }
};

}  // namespace

void InitLLVM() {
  static std::once_flag once;
  std::call_once(once, [] {
    InstallErrorHandlers();
    LLVMInitializeAllTargetInfos();
    LLVMInitializeAllTargets();
    LLVMInitializeAllTargetMCs();
    LLVMInitializeAllAsmPrinters();
    LLVMInitializeAllAsmParsers();
    const char* const options[] = {"baton", kOptions};
    LLVMParseCommandLineOptions(2, options, "");
  });
}

DebugLevel DebugLevelOf(const std::string& name) {
  if (name == "none") return DebugLevel::kNone;
  if (name == "names") return DebugLevel::kNames;
  if (name == "lines") return DebugLevel::kLines;
  throw runtime::ValueError("no level of debug information is called \"" + name + "\"; there are none, names, lines");
}

ObjectCode CompileToObjects(const IRModule& mod, const Target& target, int num_threads, DebugLevel debug) {
  const std::shared_ptr<const cache::KernelCache> kept = Build().empty() ? nullptr : cache::KernelCache::Current();
  std::vector<Named> all = PrimFuncs(mod);
  size_t parts = std::max<size_t>(1, std::min<size_t>(static_cast<size_t>(num_threads), all.size() / 4));
  // Largest first, each to the part with the least so far: the same split every time.
  std::vector<std::pair<int64_t, size_t>> order;
  for (size_t i = 0; i < all.size(); ++i) {
    SizeCounter c;
    c.VisitStmt(all[i].second->body);
    order.push_back({c.n, i});
  }
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<std::vector<size_t>> split(parts);
  std::vector<int64_t> load(parts);
  for (const auto& [n, i] : order) {
    size_t p = std::min_element(load.begin(), load.end()) - load.begin();
    split[p].push_back(i);
    load[p] += n;
  }
  // Seen of networks: about a kilobyte a node of the program.
  int64_t nodes = 0;
  for (const auto& [n, i] : order) nodes += n;
  RequireMemory(kLeastMemory + static_cast<uint64_t>(nodes) * 1024);
  ObjectCode code;
  code.debug = debug;
  for (const auto& [var, func] : all) {
    std::string symbol = SymbolOf(var, func), shown = DisplayName(func, symbol);
    if (shown != symbol) code.display_names.push_back({symbol, shown});
  }
  std::vector<Job> jobs;
  auto objects = std::make_shared<std::vector<std::string>>(parts);
  auto made = std::make_shared<std::atomic<bool>>(false);
  for (size_t p = 0; p < parts; ++p) {
    std::sort(split[p].begin(), split[p].end());
    std::vector<Named> functions;
    for (size_t i : split[p]) functions.push_back(all[i]);
    // The job owns all data that it uses: LLVM cannot be interrupted, so an abandoned job runs to its end.
    jobs.push_back([=](const std::atomic<bool>& stop) {
      Machine machine(target);
      CompiledModule m;
      LLVMContextSetDiscardValueNames(m.ctx, true);  // of values within functions: they only cost time
      Emit(&m, machine, target, mod, functions, p == 0, debug);
      if (stop) return;
      std::string& object = (*objects)[p];
      std::optional<cache::Unit> unit;
      if (kept) unit = UnitOf(m, machine, target, functions, Build());
      if (std::optional<std::string> found = unit ? kept->Find(*unit) : std::nullopt) {
        object = std::move(*found);
        return;
      }
      *made = true;
      Optimize(&m, machine, target);
      if (stop) return;
      object = Write(&m, machine, LLVMObjectFile);
      if (unit) kept->Keep(*unit, object);
    });
  }
  // Of no front end, the calling thread works too.
  RunJobs(std::move(jobs), runtime::HasInterrupts() ? runtime::CheckInterrupt : nullptr);
  if (*made) ++compilations;
  code.objects = std::move(*objects);
  // The schedules rely on this; LLVM's finer choices follow from the processor.
  for (const std::string_view f : ProcessorOf(target->mtriple.view()).known) {
    if (target->Has(f)) code.features.push_back(std::string(f));
  }
  if (target->mattr.str().find("+avx512fp16") != std::string::npos) code.features.push_back("avx512fp16");
  return code;
}

std::string DataObject(const std::string& symbol, std::string_view bytes, const Target& target) {
  RequireMemory(kLeastMemory / 2 + 4 * bytes.size());
  Machine machine(target);
  CompiledModule m;
  m.module = LLVMModuleCreateWithNameInContext("baton", m.ctx);
  LLVMSetTarget(m.module, machine.triple.c_str());
  LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(machine.tm);
  LLVMSetModuleDataLayout(m.module, layout);
  LLVMDisposeTargetData(layout);
  LLVMTypeRef type = LLVMArrayType2(LLVMInt8TypeInContext(m.ctx), bytes.size());
  LLVMValueRef data = LLVMAddGlobal(m.module, type, symbol.c_str());
  LLVMSetInitializer(data, LLVMConstStringInContext2(m.ctx, bytes.data(), bytes.size(), true));
  LLVMSetGlobalConstant(data, 1);
  LLVMSetAlignment(data, 64);
  return Write(&m, machine, LLVMObjectFile);
}

std::string CompileToText(const IRModule& mod, const Target& target, const std::string& format, DebugLevel debug) {
  ++compilations;
  RequireMemory(kLeastMemory);
  Machine machine(target);
  CompiledModule m;
  Emit(&m, machine, target, mod, PrimFuncs(mod), true, debug);
  if (format == "ll-raw") return TakeMessage(LLVMPrintModuleToString(m.module));
  Optimize(&m, machine, target);
  if (format == "ll") return TakeMessage(LLVMPrintModuleToString(m.module));
  if (format == "asm") return Write(&m, machine, LLVMAssemblyFile);
  throw runtime::ValueError("no text format \"" + format + "\"; there are ll, ll-raw, asm");
}

int64_t NumCompilations() { return compilations; }
BATON_REGISTER_GLOBAL("codegen.NumCompilations").set_body_typed([] { return NumCompilations(); });

Map<String, String> Describe() {
  InitLLVM();
  unsigned major = 0, minor = 0, patch = 0;
  LLVMGetVersion(&major, &minor, &patch);
  Map<String, String> out;
  out.Set("llvm", String(std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(patch)));
  out.Set("triple", String(TakeMessage(LLVMGetDefaultTargetTriple())));
  out.Set("cpu", String(TakeMessage(LLVMGetHostCPUName())));
#ifdef BATON_HAVE_LLD
  out.Set("linker", "lld, built in");
#else
  out.Set("linker", "ld.lld or cc, found at run time");
#endif
  return out;
}

}  // namespace baton::codegen
