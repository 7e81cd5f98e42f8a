// SPDX-License-Identifier: Apache-2.0
#include "tir/thread_axes.h"

#include <baton/tir/lower.h>

namespace baton::tir {
const VarNode* BoundThreadVar(const AttrStmtNode* op) {
  if (op->attr_key != kThreadExtent && op->attr_key != "virtual_thread") return nullptr;
  const auto* axis = op->node.as<IterVarNode>();
  return axis ? axis->var.get() : op->node.as<VarNode>();
}

int ThreadAxis(const VarNode* var) {
  std::string_view name = var->name_hint.view();
  if (const size_t tail = name.find('_'); tail != std::string_view::npos) {
    if (tail + 1 == name.size() || name.find_first_not_of("0123456789", tail + 1) != std::string_view::npos) return -1;
    name = name.substr(0, tail);
  }
  for (int axis = 0; axis < 6; ++axis) {
    if (name == ThreadAxisName(axis)) return axis;
  }
  return -1;
}

int ThreadAxis(const AttrStmtNode* op) {
  if (op->attr_key != kThreadExtent) return -1;
  const VarNode* var = BoundThreadVar(op);
  const int axis = var ? ThreadAxis(var) : -1;
  if (axis < 0) {
    throw CompileError("the mark \"thread_extent\" is of " +
                       (var ? "`" + var->name_hint.str() + "`, which is no axis" : std::string("no variable")) +
                       "; call the variable blockIdx.x to blockIdx.z or threadIdx.x to threadIdx.z");
  }
  return axis;
}

void CheckNoThreadAxes(const AttrStmtNode* mark) {
  if (mark->attr_key != kThreadExtent) return;
  const VarNode* var = BoundThreadVar(mark);
  throw UnsupportedError(
      "code for processors is made of parallel loops, not of thread axes (the mark \"thread_extent\"" +
      (var ? " of `" + var->name_hint.str() + "`" : std::string()) +
      "); build it for \"opencl\", or mark a loop parallel instead");
}

const char* ThreadAxisName(int axis) {
  static constexpr const char* kNames[] = {"blockIdx.x",  "blockIdx.y",  "blockIdx.z",
                                           "threadIdx.x", "threadIdx.y", "threadIdx.z"};
  return kNames[axis];
}

std::vector<KernelAxis> AxesOf(const Stmt& kernel) {
  struct Finder : StmtVisitor {
    std::vector<KernelAxis> axes;
    using StmtVisitor::VisitStmt_;
    void VisitStmt_(const AttrStmtNode* op) final {
      if (const int axis = ThreadAxis(op); axis >= 0) Add(axis, op);
      StmtVisitor::VisitStmt_(op);
    }
    void Add(int axis, const AttrStmtNode* op) {
      const VarNode* var = BoundThreadVar(op);
      for (KernelAxis& a : axes) {
        if (a.axis != axis) continue;
        if (!ExprDeepEqual(a.extent, op->value)) {
          const int64_t *x = as_const_int(a.extent), *y = as_const_int(op->value);
          throw CompileError("`" + std::string(ThreadAxisName(axis)) + "` has two extents in one kernel" +
                             (x && y ? ": " + std::to_string(*x) + " and " + std::to_string(*y) : std::string()) +
                             "; all threads run all of a kernel: guard what fewer of them do by a condition");
        }
        a.vars.push_back(var);
        return;
      }
      axes.push_back({axis, op->value, {var}});
    }
  } finder;
  finder.VisitStmt(kernel);
  return std::move(finder.axes);
}

Stmt StorageSync(const char* scope) {
  EvaluateNode n;
  n.value = Call(DataType::Int(32), intrin::tvm_storage_sync, {StringImm(String(scope))});
  return Evaluate(std::move(n));
}

namespace {
/// The call in a statement that is just a call of this intrinsic; null for others.
const CallNode* CallIn(const Stmt& s, const Op& intrinsic) {
  const auto* e = s.as<EvaluateNode>();
  const auto* call = e ? e->value.as<CallNode>() : nullptr;
  return call && call->op == intrinsic ? call : nullptr;
}
}  // namespace
const CallNode* SyncOf(const Stmt& s) { return CallIn(s, intrin::tvm_storage_sync); }
const CallNode* AllreduceOf(const Stmt& s) { return CallIn(s, intrin::tvm_thread_allreduce); }
bool IsAllreduce(const CallNode* call) { return call->op == intrin::tvm_thread_allreduce; }

ThreadAllreduce::ThreadAllreduce(const CallNode* call) {
  const auto fail = [](const char* what) {
    throw CompileError(std::string("tvm_thread_allreduce: ") + what +
                       "; it takes a number n, n values, a condition, n places (BufferLoads) and thread variables");
  };
  const Array<PrimExpr>& args = call->args;
  const int64_t* count = args.empty() ? nullptr : as_const_int(args[0]);
  if (!count || *count < 1 || args.size() < static_cast<size_t>(2 * *count + 2)) fail("arguments are missing");
  for (int64_t i = 0; i < *count; ++i) {
    values.push_back(args[1 + i]);
    places.push_back(args[2 + *count + i].as<BufferLoadNode>());
    if (!places.back()) fail("a place is no BufferLoad");
    if (!(places.back()->dtype == values.back().dtype())) fail("a value and its place differ in dtype");
  }
  condition = args[1 + *count];
  if (!condition.dtype().is_bool()) fail("the condition is no bool");
  for (int64_t i = 2 + 2 * *count; i < static_cast<int64_t>(args.size()); ++i) {
    const auto* widened = args[i].as<CastNode>();  // the canonical form has variables of 64 bits
    vars.push_back((widened ? widened->value : args[i]).as<VarNode>());
    if (!vars.back() || ThreadAxis(vars.back()) < 3) fail("what it goes over is no threadIdx variable");
  }
}

CommReducer ReducerOf(const AttrStmtNode* mark, const ThreadAllreduce& call) {
  const auto fail = [] {
    throw CompileError(
        "tvm_thread_allreduce: the mark \"reduce_scope\" around it does not say how values are combined; its node is a "
        "CommReducer of as many values, or its value \"add\", \"mul\", \"min\" or \"max\" for one");
  };
  if (!mark) fail();
  if (mark->node.as<CommReducerNode>()) {
    const auto reducer = Downcast<CommReducer>(mark->node);
    if (reducer->result.size() != call.values.size()) fail();
    return reducer;
  }
  const auto* text = mark->value.as<StringImmNode>();
  const std::string_view kind = text ? text->value.view() : std::string_view();
  if (call.values.size() != 1) fail();
  const DataType t = call.values[0].dtype();
  const Var a("a", t), b("b", t);
  CommReducerNode n;
  n.lhs = {a}, n.rhs = {b};
  if (kind == "add") {
    n.result = {a + b}, n.identity_element = {make_int(t, 0)};
  } else if (kind == "mul") {
    n.result = {a * b}, n.identity_element = {make_int(t, 1)};
  } else if (kind == "min") {
    n.result = {min(a, b)}, n.identity_element = {highest(t)};
  } else if (kind == "max") {
    n.result = {max(a, b)}, n.identity_element = {lowest(t)};
  } else {
    fail();
  }
  return CommReducer(std::move(n));
}

std::vector<PrimExpr> Combined(const CommReducer& reducer, const std::vector<PrimExpr>& a,
                               const std::vector<PrimExpr>& b) {
  VarMap values;
  for (size_t i = 0; i < a.size(); ++i) {
    values[reducer->lhs[static_cast<int64_t>(i)].get()] = a[i];
    values[reducer->rhs[static_cast<int64_t>(i)].get()] = b[i];
  }
  std::vector<PrimExpr> out;
  for (const PrimExpr& e : reducer->result) out.push_back(Substitute(e, values));
  return out;
}

}  // namespace baton::tir
