// SPDX-License-Identifier: Apache-2.0
#include "codegen/llvm/kernels.h"

#include <baton/tir/lower.h>
#include <fmt/format.h>
#include <llvm-c/Analysis.h>
#include <llvm-c/TargetMachine.h>
#include <llvm-c/Transforms/PassBuilder.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <unordered_set>

#include "codegen/llvm/function_emitter.h"
#include "codegen/llvm/init.h"
#include "codegen/llvm/memory_limit.h"

namespace baton::codegen {

using namespace tir;  // NOLINT: node kinds are named below

namespace {

/// Address spaces of NVPTX and AMDGPU.
constexpr unsigned kGlobalSpace = 1, kSharedSpace = 3;

std::string Taken(char* text) {
  std::string s = text ? text : "";
  LLVMDisposeMessage(text);
  return s;
}

/// The data variables that a kernel uses and does not allocate, in the order of their first use.
class UsedBuffers : public StmtExprVisitor {
 public:
  using StmtExprVisitor::VisitExpr_;
  using StmtExprVisitor::VisitStmt_;
  void VisitStmt_(const AllocateNode* op) final {
    own_.insert(op->buffer->data.get());
    StmtExprVisitor::VisitStmt_(op);
  }
  void VisitExpr_(const BufferLoadNode* op) final {
    Use(op->buffer);
    StmtExprVisitor::VisitExpr_(op);
  }
  void VisitStmt_(const BufferStoreNode* op) final {
    Use(op->buffer);
    StmtExprVisitor::VisitStmt_(op);
  }
  std::vector<const Object*> order;

 private:
  void Use(const Buffer& b) {
    if (!own_.count(b->data.get()) && seen_.insert(b->data.get()).second) order.push_back(b->data.get());
  }
  std::unordered_set<const Object*> own_, seen_;
};

/// A kernel of NVPTX: threads of blocks, barriers, memory that a block shares.
class KernelEmitter final : public Emitter {
 public:
  KernelEmitter(LLVMModuleRef module, const Target& target, const DeviceProcessor& processor, std::string function)
      : Emitter(module, target, IRModule(), processor.cpu, processor.features, nullptr),
        function_(std::move(function)) {
    symbol_ = function_;
    in_parallel_ = true;  // the rounds of loops that are left are a thread's
  }

  void Kernel(const kernels::KernelBody& k, const std::vector<Var>& sizes, std::vector<const Object*>* args) {
    UsedBuffers used;
    used.VisitStmt(k.body);
    *args = used.order;
    std::vector<LLVMTypeRef> params(used.order.size(), LLVMPointerTypeInContext(ctx_, kGlobalSpace));
    params.resize(params.size() + sizes.size(), i64_);
    LLVMTypeRef none = LLVMVoidTypeInContext(ctx_);
    LLVMValueRef f = LLVMAddFunction(module_, k.name.c_str(),
                                     LLVMFunctionType(none, params.data(), static_cast<unsigned>(params.size()), 0));
    AddAttr(f, LLVMAttributeFunctionIndex, "nounwind", 0);
    Annotate(f, "kernel", 1);
    BlockSize(f, k.axes);
    Start(f);
    unsigned at = 0;
    for (const Object* b : used.order) {
      AddParamAttr(f, at, "noalias", 0);
      vars_[static_cast<const VarNode*>(b)] = LLVMGetParam(f, at++);
    }
    for (const Var& v : sizes) vars_[v.get()] = Convert(LLVMGetParam(f, at++), DataType::Int(64), v.dtype());
    for (const KernelAxis& axis : k.axes) {
      const std::string name =
          fmt::format("llvm.nvvm.read.ptx.sreg.{}.{}", IsBlockAxis(axis.axis) ? "ctaid" : "tid", "xyz"[axis.axis % 3]);
      LLVMValueRef value = Intrinsic(name.c_str(), {}, {});
      for (const VarNode* v : axis.vars) vars_[v] = Convert(value, DataType::UInt(32), v->dtype);
    }
    LLVMBasicBlockRef done = Block("done");
    if (k.index.defined()) {
      auto read = [&](const char* name) { return LLVMBuildZExt(builder_, Intrinsic(name, {}, {}), i64_, ""); };
      LLVMValueRef item =
          LLVMBuildMul(builder_, read("llvm.nvvm.read.ptx.sreg.ctaid.x"), read("llvm.nvvm.read.ptx.sreg.ntid.x"), "");
      item = LLVMBuildAdd(builder_, item, read("llvm.nvvm.read.ptx.sreg.tid.x"), "");
      vars_[k.index.get()] = Convert(item, DataType::Int(64), k.index.dtype());
      LLVMValueRef items = Convert(VisitExpr(k.items), k.items.dtype(), DataType::Int(64));
      LLVMBasicBlockRef body = Block("item");
      LLVMBuildCondBr(builder_, LLVMBuildICmp(builder_, LLVMIntSLT, item, items, ""), body, done);
      LLVMPositionBuilderAtEnd(builder_, body);
    }
    for (const auto& [var, value] : k.lets) Bind(var, value);
    VisitStmt(k.body);
    LLVMBuildBr(builder_, done);
    LLVMPositionBuilderAtEnd(builder_, done);
    LLVMBuildRetVoid(builder_);
  }

 private:
  [[noreturn]] void No(const std::string& why) const {
    throw UnsupportedError(fmt::format("`{}` cannot be compiled for CUDA: {}", function_, why));
  }

  void Annotate(LLVMValueRef f, const char* key, int64_t value) {
    LLVMMetadataRef parts[] = {LLVMValueAsMetadata(f), LLVMMDStringInContext2(ctx_, key, strlen(key)),
                               LLVMValueAsMetadata(Int32(value))};
    LLVMAddNamedMetadataOperand(module_, "nvvm.annotations",
                                LLVMMetadataAsValue(ctx_, LLVMMDNodeInContext2(ctx_, parts, 3)));
  }
  /// The most threads of a block, where they are literals: registers are dealt out by it.
  void BlockSize(LLVMValueRef f, const std::vector<KernelAxis>& axes) {
    int64_t sizes[3] = {1, 1, 1};
    for (const KernelAxis& axis : axes) {
      if (IsBlockAxis(axis.axis)) continue;
      const int64_t* n = as_const_int(axis.extent);
      if (!n) return;
      sizes[axis.axis - 3] = *n;
    }
    if (sizes[0] * sizes[1] * sizes[2] > kMostThreads) {
      No(
          fmt::format("its blocks have {} threads, and a device takes at most {}; split the axes that are bound to "
                      "threadIdx",
                      sizes[0] * sizes[1] * sizes[2], kMostThreads));
    }
    if (axes.empty()) return;
    for (int i = 0; i < 3; ++i) Annotate(f, std::string("maxntid").append(1, "xyz"[i]).c_str(), sizes[i]);
  }

  LLVMValueRef Libm(const std::string& base, const CallNode* op) final {
    if (base == "fmod" && op->dtype.is_scalar()) return Remainder(op);
    No(fmt::format("`{}` of {} has no code for this device; compute it in float32, or on the CPU", base,
                   DataType2String(op->dtype)));
  }

  /// The exact remainder: the mantissa's, times powers of two, eleven bits of the quotient a round.
  LLVMValueRef Remainder(const CallNode* op) {
    const DataType f64 = DataType::Float(64), i64 = DataType::Int(64);
    const auto named = [&](const char* name, const PrimExpr& value) {
      Var v(name, value.dtype());
      vars_[v.get()] = VisitExpr(value);
      return v;
    };
    const auto number = [&](int64_t v) { return make_int(i64, v); };
    const Var x = named("x", cast(f64, op->args[0])), y = named("y", cast(f64, op->args[1]));
    const Var bits_x = named("bits_x", reinterpret(i64, fabs(x))), bits_y = named("bits_y", reinterpret(i64, fabs(y)));
    const auto exponent = [&](const Var& bits) { return max(shift_right(bits, number(52)), number(1)); };
    const auto mantissa = [&](const Var& bits) {
      const PrimExpr one = number(int64_t{1} << 52);
      const PrimExpr low = bitwise_and(bits, one - number(1));
      return Select(bits < one, low, bitwise_or(low, one));
    };
    const Var at = named("at", exponent(bits_y)), by = named("by", max(mantissa(bits_y), number(1)));
    const Var steps = named("steps", exponent(bits_x) - at);
    const Var first = named("first", truncmod(mantissa(bits_x), by));
    // while (left > 0) { rest = (rest << min(left, 11)) % by; left -= 11; }
    LLVMBasicBlockRef from = LLVMGetInsertBlock(builder_), head = Block("remainder"), round = Block("bits"),
                      end = Block("remains");
    LLVMBuildBr(builder_, head);
    LLVMPositionBuilderAtEnd(builder_, head);
    LLVMValueRef rest = LLVMBuildPhi(builder_, i64_, "rest"), left = LLVMBuildPhi(builder_, i64_, "left");
    LLVMBuildCondBr(builder_, LLVMBuildICmp(builder_, LLVMIntSGT, left, Int64(0), ""), round, end);
    LLVMPositionBuilderAtEnd(builder_, round);
    LLVMValueRef few = LLVMBuildICmp(builder_, LLVMIntSLT, left, Int64(11), "");
    LLVMValueRef count = LLVMBuildSelect(builder_, few, left, Int64(11), "");
    LLVMValueRef next = LLVMBuildURem(builder_, LLVMBuildShl(builder_, rest, count, ""), vars_.at(by.get()), "");
    LLVMValueRef fewer = LLVMBuildSub(builder_, left, count, "");
    LLVMBuildBr(builder_, head);
    LLVMValueRef rests[] = {vars_.at(first.get()), next}, lefts[] = {vars_.at(steps.get()), fewer};
    LLVMBasicBlockRef blocks[] = {from, round};
    LLVMAddIncoming(rest, rests, blocks, 2);
    LLVMAddIncoming(left, lefts, blocks, 2);
    LLVMPositionBuilderAtEnd(builder_, end);
    const Var remains("remains", i64);
    vars_[remains.get()] = rest;
    const auto power = [&](const PrimExpr& k) { return reinterpret(f64, shift_left(k + number(1023), number(52))); };
    const Var half = named("half", shift_right(at - number(1075), number(1)));
    PrimExpr value = cast(f64, remains) * power(half) * power(at - number(1075) - half);
    value = Select(steps < number(0), fabs(x), value);
    value = reinterpret(f64, bitwise_or(reinterpret(i64, value), bitwise_and(reinterpret(i64, x), number(INT64_MIN))));
    const double inf = std::numeric_limits<double>::infinity();
    const PrimExpr known = fabs(x) < make_const(f64, inf) && equal(y, y) && !equal(y, make_const(f64, 0));
    return VisitExpr(cast(op->dtype, Select(known, value, make_const(f64, std::nan("")))));
  }

  using Emitter::VisitExpr_;
  using Emitter::VisitStmt_;
  LLVMValueRef VisitExpr_(const StringImmNode*) final { No("it has a text, which belongs to calls of the host"); }
  void VisitStmt_(const AllocateNode* op) final {
    const Buffer& b = op->buffer;
    int64_t count = 1;
    for (const PrimExpr& d : b->shape) {
      const int64_t* n = as_const_int(d);
      if (!n) No(fmt::format("buffer `{}` has a size that is not known", b->name.str()));
      count *= *n;
    }
    const std::string scope = b->scope().str();
    const int64_t bytes = count * b->dtype.bytes();
    LLVMTypeRef type = MemoryType(ctx_, b->dtype);
    if (scope == kShared) {
      LLVMTypeRef array = LLVMArrayType2(type, static_cast<uint64_t>(count > 0 ? count : 1));
      shared_ += bytes;
      if (shared_ > kMostShared) {
        No(fmt::format("its blocks share {} bytes, and a device has {} for each; choose smaller tiles", shared_,
                       kMostShared));
      }
      std::string name = b->name.str();
      for (char& c : name) c = isalnum(static_cast<unsigned char>(c)) ? c : '_';
      LLVMValueRef memory = LLVMAddGlobalInAddressSpace(module_, array, ("shared_" + name).c_str(), kSharedSpace);
      LLVMSetLinkage(memory, LLVMInternalLinkage);
      LLVMSetInitializer(memory, LLVMGetUndef(array));
      LLVMSetAlignment(memory, 16);
      vars_[b->data.get()] = memory;
      return VisitStmt(op->body);
    }
    if (!scope.empty() && scope != "local" && scope != "global") {
      No(fmt::format("buffer `{}` has the scope \"{}\"; in a kernel there are \"local\" and \"shared\"", b->name.str(),
                     scope));
    }
    if (bytes > kernels::kMaxPrivateBytes) {
      No(fmt::format("buffer `{}` of {} bytes in a loop is too large for a thread", b->name.str(), bytes));
    }
    vars_[b->data.get()] = Alloca(type, count > 0 ? count : 1, 16);
    VisitStmt(op->body);
  }
  void VisitStmt_(const AssertStmtNode* op) final {
    if (!is_const_int(op->condition, 1)) No("it checks a condition while it runs, which a device cannot report");
    VisitStmt(op->body);
  }
  void VisitStmt_(const AttrStmtNode* op) final {
    if (ThreadAxis(op) >= 0 && !vars_.count(BoundThreadVar(op))) {
      No("thread axes are within a loop or a condition; let the axes be around it, so that all of it is one kernel");
    }
    VisitStmt(op->body);
  }
  void VisitStmt_(const EvaluateNode* op) final {
    const CallNode* sync = SyncOf(GetRef<Stmt>(op));
    if (!sync) return Emitter::VisitStmt_(op);
    // A barrier of a block orders its accesses of all memory.
    const std::string call = kernels::BarrierOf(sync, {.shared = "block", .global = "block", .warp = "warp"});
    if (call == "block") {
      Intrinsic("llvm.nvvm.barrier0", {}, {});
    } else {
      Intrinsic("llvm.nvvm.bar.warp.sync", {}, {Int32(-1)});
    }
  }

  static constexpr int64_t kMostThreads = 1024, kMostShared = 48 << 10;
  std::string function_;
  int64_t shared_ = 0;
};

}  // namespace

struct KernelModule::Parts {
  DeviceProcessor processor;
  Target target;
  LLVMContextRef context = LLVMContextCreate();
  LLVMModuleRef module = nullptr;
  LLVMTargetMachineRef machine = nullptr;
  const Unwinding unwinding;
  ~Parts() {
    if (unwinding) return;
    if (module) LLVMDisposeModule(module);
    if (machine) LLVMDisposeTargetMachine(machine);
    LLVMContextDispose(context);
  }
};

KernelModule::KernelModule(const DeviceProcessor& processor, const Target& target) {
  RequireMemory(kLeastMemory);
  InitLLVM();
  parts_ = std::make_unique<Parts>();
  parts_->processor = processor;
  parts_->target = target;
  LLVMTargetRef t = nullptr;
  char* error = nullptr;
  if (LLVMGetTargetFromTriple(processor.triple.c_str(), &t, &error)) {
    throw UnsupportedError("this LLVM makes no code for \"" + processor.triple + "\" (" + Taken(error) +
                           "); the text of kernels in another language is there (get_source)");
  }
  parts_->machine =
      LLVMCreateTargetMachine(t, processor.triple.c_str(), processor.cpu.c_str(), processor.features.c_str(),
                              LLVMCodeGenLevelDefault, LLVMRelocDefault, LLVMCodeModelDefault);
  if (!parts_->machine) throw runtime::ValueError("LLVM cannot make code for " + processor.cpu);
  parts_->module = LLVMModuleCreateWithNameInContext("baton", parts_->context);
  LLVMSetTarget(parts_->module, processor.triple.c_str());
  LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(parts_->machine);
  LLVMSetModuleDataLayout(parts_->module, layout);
  LLVMDisposeTargetData(layout);
}
KernelModule::~KernelModule() = default;

void KernelModule::Add(const kernels::KernelBody& kernel, const std::vector<Var>& sizes, const std::string& function,
                       std::vector<const Object*>* args) {
  KernelEmitter(parts_->module, parts_->target, parts_->processor, function).Kernel(kernel, sizes, args);
}

void KernelModule::Optimize() {
  char* text = nullptr;
  if (LLVMVerifyModule(parts_->module, LLVMReturnStatusAction, &text)) {
    throw InternalError("LLVM refuses the generated kernels: " + Taken(text).substr(0, 2000));
  }
  LLVMDisposeMessage(text);
  LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
  LLVMPassBuilderOptionsSetLoopVectorization(options, 0);
  LLVMPassBuilderOptionsSetSLPVectorization(options, 0);
  LLVMErrorRef failed = LLVMRunPasses(parts_->module, "default<O2>", parts_->machine, options);
  LLVMDisposePassBuilderOptions(options);
  if (!failed) return;
  char* message = LLVMGetErrorMessage(failed);
  const std::string s = message;
  LLVMDisposeErrorMessage(message);
  throw InternalError("LLVM's passes failed: " + s);
}

std::string KernelModule::Ir() const { return Taken(LLVMPrintModuleToString(parts_->module)); }

std::string KernelModule::Assembly() const {
  char* error = nullptr;
  LLVMMemoryBufferRef buffer = nullptr;
  if (LLVMTargetMachineEmitToMemoryBuffer(parts_->machine, parts_->module, LLVMAssemblyFile, &error, &buffer)) {
    throw InternalError("LLVM cannot write kernels: " + Taken(error));
  }
  std::string out(LLVMGetBufferStart(buffer), LLVMGetBufferSize(buffer));
  LLVMDisposeMemoryBuffer(buffer);
  return out;
}

}  // namespace baton::codegen
