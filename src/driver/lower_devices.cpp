// SPDX-License-Identifier: Apache-2.0
#include "driver/lower_devices.h"

#include <baton/codegen/backend.h>
#include <baton/relay/device.h>
#include <baton/relay/functor.h>
#include <baton/relay/lower.h>
#include <baton/relay/op.h>
#include <baton/relay/op/annotation.h>
#include <baton/runtime/plan_memory.h>
#include <baton/tir/op.h>

#include <algorithm>
#include <array>
#include <map>
#include <unordered_map>

#include "driver/compiled_graph.h"
#include "driver/kernel_table.h"
#include "driver/lower_graph.h"

namespace baton::driver {

using runtime::PlanMemory;
using runtime::PlannedBuffer;

using relay::CallNode;
using relay::ConstantNode;
using relay::Expr;
using relay::Function;
using relay::FunctionNode;
using relay::TupleGetItemNode;
using relay::TupleNode;
using relay::VarNode;
using vm::DevicePlace;

relay::Function WithoutAnnotations(const relay::Function& f) {
  struct Remover : relay::MixedModeMutator {
    using MixedModeMutator::Rewrite_;
    Expr Rewrite_(const CallNode* pre, const Expr& post) final {
      return relay::AsOnDevice(pre->op, pre->attrs) ? post.as<CallNode>()->args[0] : post;
    }
  };
  return Downcast<Function>(Remover().Mutate(f));
}

namespace {

struct DeviceLeaf {
  DevicePlace place;  // kArena: `at` is the number of the buffer until storage is planned
  TensorType type;
};
using DeviceLeaves = std::vector<DeviceLeaf>;

class DeviceLowerer {
 public:
  DeviceLowerer(const std::vector<DeviceTarget>& targets, int64_t fallback) : targets_(targets) {
    for (const DeviceTarget& t : targets_) {
      vm::GraphDevice d;
      d.type = t.type;
      out_.graph.devices.push_back(d);
    }
    constants_.resize(targets_.size());
    host_target_ = targets_[0].target;
    for (const DeviceTarget& t : targets_) {
      if (IsHost(t.type)) host_target_ = t.target;
    }
    fallback_ = IndexOf(fallback);
  }

  LoweredStretches RunAll(const std::vector<Function>& graphs) {
    LoweredStretches out;
    for (const Function& f : graphs) {
      const std::vector<Expr> order = DataflowOrder(f->body);
      FindDevices(f, order);
      Inputs(f);
      for (const Expr& e : order) Visit(e);
      Outputs(f);
      Storage();
      Steps();
      vm::GraphDevice& d = out_.graph.devices[0];
      out.stretches.push_back({std::move(out_.graph.steps), d.arena_bytes});
      // What belongs to this one alone.
      d.arena_bytes = 0;
      out_.graph.inputs.clear(), out_.graph.outputs.clear(), out_.graph.steps.clear();
      out_.desc.inputs.clear(), out_.desc.outputs.clear();
      copied_.clear(), origin_.clear(), device_.clear(), value_.clear(), buffers_.clear(), steps_.clear();
    }
    Kernels();
    out.kernels = out_.kernels;
    out.device = out_.graph.devices[0];
    out.constants = std::move(constants_[0]);
    return out;
  }

  LoweredDevices Run(const Function& main) {
    const std::vector<Expr> order = DataflowOrder(main->body);
    FindDevices(main, order);
    Inputs(main);
    for (const Expr& e : order) Visit(e);
    Outputs(main);
    Kernels();
    Storage();
    Finish();
    return std::move(out_);
  }

 private:
  struct Step {
    GlobalVar kernel;  // null: a copy
    int64_t device = 0;
    std::vector<DevicePlace> args;
    uint64_t bytes = 0;
    size_t reads = 1;
  };
  struct BufferInfo {
    PlannedBuffer planned;
    int64_t device = 0;
    int slot = -1;  // of the output that it is
  };

  static bool IsHost(int64_t type) {
    const TargetKind* kind = TargetKindFor(type);
    return kind && kind->on_host;
  }
  int64_t IndexOf(int64_t type) const {
    for (size_t i = 0; i < targets_.size(); ++i) {
      if (targets_[i].type == type) return static_cast<int64_t>(i);
    }
    throw runtime::ValueError("the program runs on " + relay::DeviceTypeName(type) + ", for which no target is given");
  }
  KernelTable& TableOf(int64_t device) { return IsHost(targets_[device].type) ? host_ : others_; }
  static const relay::DeviceCopyAttrs* CopyOf(const Expr& e) {
    const auto* call = e.as<CallNode>();
    return call ? relay::AsDeviceCopy(call->op, call->attrs) : nullptr;
  }

  /// Where each value lies, from its readers: an operator's arguments are on its device, copies say both.
  void FindDevices(const Function& main, const std::vector<Expr>& order) {
    // The annotation of the planner on the function; for unused parameters it is the only source.
    if (auto devices = main->GetAttr<Array<runtime::Any>>("param_device_types", Array<runtime::Any>());
        devices.size() == main->params.size()) {
      for (size_t i = 0; i < main->params.size(); ++i) {
        const runtime::Any& d = devices[static_cast<int64_t>(i)];
        if (d.Is<int64_t>()) device_[main->params[static_cast<int64_t>(i)].get()] = IndexOf(d.As<int64_t>());
      }
    }
    auto place = [&](const Expr& e, int64_t device) {
      auto [it, fresh] = device_.try_emplace(e.get(), device);
      if (fresh || it->second == device || e.as<ConstantNode>()) return;
      throw InternalError("a value is wanted on " + relay::DeviceTypeName(targets_[device].type) + " and lies on " +
                          relay::DeviceTypeName(targets_[it->second].type) + ", without a copy between");
    };
    const int64_t result = main->GetAttr<int64_t>("result_device_type", targets_[fallback_].type);
    place(main->body, IndexOf(result));
    for (size_t i = order.size(); i-- > 0;) {
      const Expr& e = order[i];
      const int64_t here = device_.at(e.get());
      if (const auto* call = e.as<CallNode>()) {
        const relay::DeviceCopyAttrs* copy = CopyOf(e);
        for (const Expr& a : call->args) place(a, copy ? IndexOf(copy->src_dev_type) : here);
      } else if (const auto* t = e.as<TupleNode>()) {
        for (const Expr& f : t->fields) place(f, here);
      } else if (const auto* g = e.as<TupleGetItemNode>()) {
        place(g->tuple, here);
      }
    }
  }

  void Inputs(const Function& main) {
    for (const relay::Var& p : main->params) {
      std::vector<TensorType> types;
      FlattenType(p->checked_type(), &types);
      const auto found = device_.find(p.get());
      const int64_t device = found == device_.end() ? fallback_ : found->second;
      DeviceLeaves leaves;
      for (size_t i = 0; i < types.size(); ++i) {
        std::string name = p->name_hint().str() + (types.size() > 1 ? "." + std::to_string(i) : "");
        leaves.push_back({{DevicePlace::kIo, device, static_cast<int64_t>(out_.desc.inputs.size())}, types[i]});
        out_.desc.inputs.push_back({name, ShapeOf(types[i]), types[i]->dtype});
        out_.graph.inputs.push_back(device);
      }
      value_[p.get()] = leaves;
    }
  }

  /// A constant is put on each device that reads it when the model is loaded, not copied there in each run.
  DeviceLeaf ConstantOn(const ConstantNode* c, int64_t device) {
    auto [it, fresh] = constant_.try_emplace({c->data.get(), device}, 0);
    if (fresh) {
      auto& list = constants_[static_cast<size_t>(device)];
      uint64_t& size = out_.graph.devices[static_cast<size_t>(device)].constants_bytes;
      it->second = static_cast<int64_t>(size);
      list.push_back({size, c->data});
      // A line of slack, so that a vector load at the end stays inside.
      size += (c->data.nbytes() + 127) / 64 * 64;
    }
    return {{DevicePlace::kConstant, device, it->second}, c->tensor_type()};
  }
  DeviceLeaves ValueOn(const Expr& e, int64_t device) {
    if (const auto* c = e.as<ConstantNode>()) return {ConstantOn(c, device)};
    return value_.at(e.get());
  }
  DeviceLeaf NewBuffer(int64_t device, const TensorType& type) {
    const int step = static_cast<int>(steps_.size());
    buffers_.push_back({{BytesOf(type), step, step, 0}, device});
    return {{DevicePlace::kArena, device, static_cast<int64_t>(buffers_.size()) - 1}, type};
  }

  void Visit(const Expr& e) {
    if (value_.count(e.get()) || e.as<ConstantNode>()) return;
    const int64_t here = device_.at(e.get());
    if (const auto* t = e.as<TupleNode>()) {
      DeviceLeaves all;
      for (const Expr& f : t->fields) {
        const DeviceLeaves l = ValueOn(f, here);
        all.insert(all.end(), l.begin(), l.end());
      }
      value_[e.get()] = all;
    } else if (const auto* g = e.as<TupleGetItemNode>()) {
      // The fields before it may be tuples themselves.
      const auto* type = g->tuple->checked_type_.as<TupleTypeNode>();
      std::vector<TensorType> before, own;
      for (int64_t i = 0; i < g->index; ++i) FlattenType(type->fields[i], &before);
      FlattenType(type->fields[g->index], &own);
      const DeviceLeaves& l = value_.at(g->tuple.get());
      const auto begin = l.begin() + static_cast<std::ptrdiff_t>(before.size());
      value_[e.get()] = DeviceLeaves(begin, begin + static_cast<std::ptrdiff_t>(own.size()));
    } else if (const auto* call = e.as<CallNode>()) {
      std::vector<TensorType> types;
      FlattenType(e->checked_type(), &types);
      if (CopyOf(e)) {
        value_[e.get()] = Copy(call->args[0], here);
      } else if (relay::IsView(call->op)) {
        value_[e.get()] = {{ValueOn(call->args[0], here)[0].place, types[0]}};
      } else {
        Step s;
        s.kernel = TableOf(here).Of(Downcast<Function>(call->op));
        s.device = here;
        DeviceLeaves results;
        for (const Expr& a : call->args) {
          for (const DeviceLeaf& l : ValueOn(a, here)) s.args.push_back(l.place);
        }
        s.reads = s.args.size();
        for (const TensorType& t : types) {
          results.push_back(NewBuffer(here, t));
          s.args.push_back(results.back().place);
        }
        steps_.push_back(s);
        value_[e.get()] = results;
      }
    }
  }

  /// The value on another device; copied once, however many readers have asked for copies of their own.
  DeviceLeaves Copy(const Expr& from, int64_t to) {
    if (const auto* c = from.as<ConstantNode>()) return {ConstantOn(c, to)};
    DeviceLeaves out;
    for (DeviceLeaf l : value_.at(from.get())) {
      // There and back: what was copied is still there.
      if (auto it = origin_.find(l.place.at);
          l.place.kind == DevicePlace::kArena && it != origin_.end() && it->second.device == to) {
        l.place = it->second;
      }
      if (l.place.device == to) {
        out.push_back(l);
        continue;
      }
      const std::array<int64_t, 4> key{l.place.kind, l.place.device, l.place.at, to};
      auto it = copied_.find(key);
      if (it == copied_.end()) {
        DeviceLeaf made = NewBuffer(to, l.type);
        steps_.push_back({GlobalVar(), to, {l.place, made.place}, BytesOf(l.type)});
        it = copied_.emplace(key, made.place).first;
        origin_[made.place.at] = l.place;
      }
      out.push_back({it->second, l.type});
    }
    return out;
  }

  void Outputs(const Function& main) {
    const int64_t on = device_.at(main->body.get());
    const DeviceLeaves results = ValueOn(main->body, on);
    out_.desc.result_tree = ResultTree(Downcast<Type>(main->body->checked_type_));
    const auto names = main->GetAttr<Array<String>>("output_names", Array<String>());
    const auto base = static_cast<int64_t>(out_.desc.inputs.size());
    std::vector<Step> copies;
    for (size_t i = 0; i < results.size(); ++i) {
      const DeviceLeaf& l = results[i];
      const DevicePlace slot{DevicePlace::kIo, l.place.device, base + static_cast<int64_t>(i)};
      out_.desc.outputs.push_back(
          {i < names.size() ? names[static_cast<int64_t>(i)].str() : "output" + std::to_string(i), ShapeOf(l.type),
           l.type->dtype});
      out_.graph.outputs.push_back(l.place.device);
      if (l.place.kind == DevicePlace::kArena && buffers_[static_cast<size_t>(l.place.at)].slot < 0) {
        // Written in place; all readers read the output.
        buffers_[static_cast<size_t>(l.place.at)].slot = static_cast<int>(slot.at);
      } else {
        copies.push_back({GlobalVar(), l.place.device, {l.place, slot}, BytesOf(l.type)});
      }
    }
    steps_.insert(steps_.end(), copies.begin(), copies.end());
  }

  void Kernels() {
    Map<GlobalVar, BaseFunc> functions = host_.Lower(host_target_, nullptr);
    static const Op load = Op::GetOrCreate("tir.load_handle");
    Map<GlobalVar, BaseFunc> with_callers = functions;
    for (const auto& [var, func] : functions) {
      // The entry that steps call: takes the addresses of the kernel's arguments.
      const size_t n = Downcast<tir::PrimFunc>(func)->params.size();
      tir::Var io("io", DataType::Handle()), constants("constants", DataType::Handle()),
          arena("arena", DataType::Handle());
      Array<PrimExpr> args;
      for (size_t i = 0; i < n; ++i) {
        args.push_back(tir::Call(DataType::Handle(), load, {io, PrimExpr(static_cast<int64_t>(i))}));
      }
      tir::PrimFunc caller({io, constants, arena}, tir::Evaluate(PrimExpr(tir::Call(DataType::Int(32), var, args))));
      const std::string symbol = CallerOf(var);
      caller = WithAttr(caller, attr::kGlobalSymbol, Any(symbol));
      with_callers.Set(GlobalVar(String(symbol)), WithAttr(caller, "model_entry", Any(1)));
    }
    out_.host = IRModule(with_callers);
    for (size_t i = 0; i < targets_.size(); ++i) {
      if (IsHost(targets_[i].type)) continue;
      out_.kernels = IRModule(others_.Loops(targets_[i].target, nullptr));
      out_.graph.devices[i].code = codegen::DeviceCode(out_.kernels, targets_[i].target);
    }
  }
  static std::string CallerOf(const GlobalVar& kernel) { return "baton_step_" + kernel->name_hint.str(); }

  /// Planned for each device by itself.
  void Storage() {
    for (size_t i = 0; i < steps_.size(); ++i) {
      for (const DevicePlace& p : steps_[i].args) {
        if (p.kind != DevicePlace::kArena) continue;
        PlannedBuffer& b = buffers_[static_cast<size_t>(p.at)].planned;
        b.last = std::max(b.last, static_cast<int>(i));
      }
    }
    std::vector<uint64_t> workspace(targets_.size());
    for (size_t d = 0; d < targets_.size(); ++d) {
      std::vector<PlannedBuffer> planned;
      std::vector<size_t> index;
      for (size_t i = 0; i < buffers_.size(); ++i) {
        if (buffers_[i].device != static_cast<int64_t>(d) || buffers_[i].slot >= 0) continue;
        planned.push_back(buffers_[i].planned);
        index.push_back(i);
      }
      uint64_t& bytes = out_.graph.devices[d].arena_bytes;
      bytes = PlanMemory(&planned);
      for (size_t k = 0; k < index.size(); ++k) buffers_[index[k]].planned.offset = planned[k].offset;
      // Workspace of kernels lies behind the planned buffers. They run one after the other, so one place serves all.
      workspace[d] = (bytes + 63) / 64 * 64;
    }
    for (Step& s : steps_) {
      for (DevicePlace& p : s.args) {
        if (p.kind != DevicePlace::kArena) continue;
        const BufferInfo& b = buffers_[static_cast<size_t>(p.at)];
        if (b.slot >= 0) {
          p = {DevicePlace::kIo, p.device, b.slot};
        } else {
          p.at = static_cast<int64_t>(b.planned.offset);
        }
      }
      const auto d = static_cast<size_t>(s.device);
      const uint64_t need = s.kernel.defined() && IsHost(targets_[d].type) ? host_.Workspace(s.kernel) : 0;
      if (need == 0) continue;
      s.args.push_back({DevicePlace::kArena, s.device, static_cast<int64_t>(workspace[d])});
      uint64_t& bytes = out_.graph.devices[d].arena_bytes;
      bytes = std::max(bytes, workspace[d] + need);
    }
  }

  void Finish() {
    uint64_t begin = 0;
    for (size_t d = 0; d < targets_.size(); ++d) {
      vm::GraphDevice& device = out_.graph.devices[d];
      device.constants_begin = begin;
      for (const auto& [offset, value] : constants_[d]) out_.constants.push_back({begin + offset, value});
      begin += (device.constants_bytes + 63) / 64 * 64;
    }
    out_.desc.constants_bytes = begin;
    Steps();
    out_.desc.program = out_.graph.Save();
    for (const DeviceTarget& t : targets_) {
      out_.desc.target +=
          (out_.desc.target.empty() ? "" : ", ") + relay::DeviceTypeName(t.type) + ": " + t.target.str();
    }
  }

  void Steps() {
    for (const Step& s : steps_) {
      vm::GraphStep step;
      step.device = s.device;
      step.args = s.args;
      step.bytes = s.bytes;
      step.reads = static_cast<int64_t>(s.reads);
      if (s.kernel.defined()) {
        step.symbol =
            IsHost(targets_[static_cast<size_t>(s.device)].type) ? CallerOf(s.kernel) : s.kernel->name_hint.str();
      }
      out_.graph.steps.push_back(step);
    }
  }

  const std::vector<DeviceTarget> targets_;
  int64_t fallback_ = 0;
  Target host_target_;
  LoweredDevices out_;
  KernelTable host_, others_;
  std::vector<std::vector<std::pair<uint64_t, NDArray>>> constants_;  // of each device
  std::map<std::pair<const Object*, int64_t>, int64_t> constant_;     // looked up, never walked
  std::map<std::array<int64_t, 4>, DevicePlace> copied_;
  std::unordered_map<int64_t, DevicePlace> origin_;  // buffer -> what it is a copy of
  std::unordered_map<const Object*, int64_t> device_;
  std::unordered_map<const Object*, DeviceLeaves> value_;
  std::vector<BufferInfo> buffers_;
  std::vector<Step> steps_;
};

}  // namespace

LoweredStretches LowerStretches(const std::vector<Function>& graphs, const DeviceTarget& target) {
  return DeviceLowerer({target}, target.type).RunAll(graphs);
}

LoweredDevices LowerDevices(const Function& main, const std::vector<DeviceTarget>& targets, int64_t fallback) {
  return DeviceLowerer(targets, fallback).Run(main);
}

}  // namespace baton::driver
