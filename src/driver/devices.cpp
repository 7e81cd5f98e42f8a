// SPDX-License-Identifier: Apache-2.0
// What code is made for, and whether a program fits it.
#include "driver/devices.h"

#include <baton/ir/diagnostic.h>
#include <baton/relay/device.h>
#include <baton/relay/functor.h>
#include <baton/relay/op.h>
#include <baton/relay/op/annotation.h>
#include <baton/relay/transform.h>
#include <baton/runtime/device_types.h>
#include <baton/runtime/registry.h>

#include <algorithm>
#include <set>

namespace baton::driver {

using relay::Expr;
using relay::Function;
using relay::Var;

namespace {
/// "cpu, ext_dev and opencl"
std::string DevicesWithCode() {
  std::set<int64_t> types;
  for (const TargetKind* k : TargetKinds()) types.insert(k->devices.begin(), k->devices.end());
  // Those of the host first.
  std::vector<std::string> names;
  for (const bool host : {true, false}) {
    for (int64_t t : types) {
      if (TargetKindFor(t)->on_host == host) names.push_back(relay::DeviceTypeName(t));
    }
  }
  std::string out = names[0];
  for (size_t i = 1; i < names.size(); ++i) out += (i + 1 == names.size() ? " and " : ", ") + names[i];
  return out;
}
}  // namespace

std::vector<DeviceTarget> CheckDeviceTargets(const Map<String, Target>& targets) {
  std::vector<DeviceTarget> out;
  Target host;
  for (const auto& [name, target] : targets) {
    const Device d = runtime::String2Device(name.view());
    const std::string device = relay::DeviceTypeName(d.device_type);
    const TargetKind* kind = TargetKindFor(d.device_type);
    if (!kind) {
      throw UnsupportedError("no code is made for " + device + "; code is made for " + DevicesWithCode());
    }
    if (target->kind != kind->name) {
      throw UnsupportedError("the target of " + device + " is `" + target->kind.str() + "`; its code is made by " +
                             kind->name);
    }
    if (kind->on_host) {
      if (host.defined() && host.str() != target.str()) {
        throw UnsupportedError("cpu and ext_dev run on one processor, and have two targets: `" + host.str() +
                               "` and `" + target.str() + "`; give both the same");
      }
      host = target;
    }
    for (const DeviceTarget& t : out) {
      if (t.type == d.device_type) throw runtime::ValueError("two targets are given for " + device);
    }
    out.push_back({d.device_type, target});
  }
  if (out.empty()) throw runtime::ValueError("no target is given");
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.type < b.type; });
  return out;
}

Target HostOf(const std::vector<DeviceTarget>& targets) {
  for (const DeviceTarget& t : targets) {
    if (t.target->traits().on_host) return t.target;
  }
  return Target::Host();
}

int64_t FallbackDevice(const std::vector<DeviceTarget>& targets) {
  const int64_t asked = baton::transform::PassContext::Current()->GetConfig<int64_t>("relay.fallback_device_type",
                                                                                     relay::kInvalidDeviceType);
  for (const DeviceTarget& t : targets) {
    if (t.type == asked) return asked;
  }
  if (asked != relay::kInvalidDeviceType) {
    throw runtime::ValueError("the option `relay.fallback_device_type` is " + std::to_string(asked) +
                              ", a device for which no target is given");
  }
  for (const DeviceTarget& t : targets) {
    if (t.type == kDLCPU) return t.type;
  }
  return targets[0].type;
}

namespace {

/// Calls f(device, expression) with each device that an annotation, a copy, or a function that was planned names.
template <class F>
void ForNamedDevices(const IRModule& mod, F f) {
  for (const auto& [var, func] : mod->functions) {
    const BaseFunc& each = func;
    if (!each.as<relay::FunctionNode>()) continue;
    relay::PostOrder(Downcast<Expr>(each), [&](const Expr& e) {
      if (const auto* fn = e.as<relay::FunctionNode>()) {
        for (const runtime::Any& d : fn->GetAttr<Array<runtime::Any>>("param_device_types", Array<runtime::Any>())) {
          if (d.Is<int64_t>()) f(d.As<int64_t>(), e);
        }
        if (!fn->attrs.defined()) return;
        for (const auto& [key, value] : fn->attrs->dict) {
          if (key == "result_device_type" && value.template Is<int64_t>()) f(value.template As<int64_t>(), e);
        }
        return;
      }
      const auto* call = e.as<relay::CallNode>();
      if (!call) return;
      if (const auto* on = relay::AsOnDevice(call->op, call->attrs)) {
        f(on->device_type, e);
      } else if (const auto* copy = relay::AsDeviceCopy(call->op, call->attrs)) {
        f(copy->src_dev_type, e);
        f(copy->dst_dev_type, e);
      }
    });
  }
}

/// Throws for a program with unbound variables.
void RequireBindings(const IRModule& mod) {
  DiagnosticList unknown;
  for (const auto& [var, func] : mod->functions) {
    const BaseFunc& each = func;
    if (!each.as<relay::FunctionNode>()) continue;
    for (const Var& v : relay::FreeVars(Downcast<Expr>(each))) {
      unknown.Error(v->span, "`%" + v->name_hint().str() + "` has no value in @" + var->name_hint.str(), "",
                    "bind it by a parameter, a let or a match");
    }
  }
  unknown.ThrowIfAny(baton::transform::PassContext::Current()->diag_ctx);
}

/// Throws for a program with devices without a code generator: one error for each device, at its first use.
void RequireTargets(const IRModule& mod, const std::vector<int64_t>& given) {
  std::set<int64_t> told;
  DiagnosticList unknown;
  std::string missing;
  ForNamedDevices(mod, [&](int64_t device, const Expr& by) {
    if (device < 0 || std::find(given.begin(), given.end(), device) != given.end() || !told.insert(device).second)
      return;
    if (!runtime::IsDeviceType(device)) {
      unknown.Error(by->span, "device type " + std::to_string(device) + " is no device", "",
                    "there are " + runtime::DeviceTypes());
      return;
    }
    const std::string name = relay::DeviceTypeName(device);
    const TargetKind* kind = TargetKindFor(device);
    DiagnosticNode d;
    d.span = by->span;
    d.message = String("the program runs on " + name + ", for which no target is given; give one: {\"" + name +
                       "\": \"" + (kind ? kind->name : "llvm") + "\"}");
    missing += (missing.empty() ? "" : "\n") + RenderDiagnostic(Diagnostic(std::move(d)));
  });
  unknown.ThrowIfAny(baton::transform::PassContext::Current()->diag_ctx);
  if (!missing.empty()) throw runtime::ValueError(missing);
}

/// Annotations of a program go.
Function WithoutAnnotations(const Function& f) {
  struct Remover : relay::MixedModeMutator {
    using MixedModeMutator::Rewrite_;
    Expr Rewrite_(const relay::CallNode* pre, const Expr& post) final {
      return relay::AsOnDevice(pre->op, pre->attrs) ? post.as<relay::CallNode>()->args[0] : post;
    }
  };
  return Downcast<Function>(Remover().Mutate(f));
}

/// A program for one device without what says so.
IRModule WithoutAnnotations(const IRModule& mod) {
  bool annotated = false;
  ForNamedDevices(mod, [&](int64_t, const Expr& by) { annotated = annotated || by.as<relay::CallNode>(); });
  if (!annotated) return mod;
  IRModule out = mod.Copy();
  for (const auto& [var, func] : mod->functions) {
    if (!func.as<relay::FunctionNode>()) continue;
    const Function f = Downcast<Function>(func), plain = WithoutAnnotations(f);
    if (!plain.same_as(f)) out.CopyOnWrite()->Update(var, plain);
  }
  return out;
}

}  // namespace

IRModule ForTheseTargets(const IRModule& mod, const Targets& targets) {
  std::vector<int64_t> given;
  if (targets.planned()) given.push_back(kDLCPU);  // the host, where control flow is decided, is there anyway
  for (const DeviceTarget& t : targets.devices) given.push_back(t.type);
  if (!targets.planned()) given.push_back(targets.host->device_type());
  RequireBindings(mod);
  RequireTargets(mod, given);
  return targets.planned() ? mod : WithoutAnnotations(mod);
}

Targets Targets::Of(const Target& target) {
  if (target->traits().on_host) return {target, {}};
  return Of(OfItsDevice(target));
}

Targets Targets::Of(const Map<String, Target>& devices) {
  std::vector<DeviceTarget> checked = CheckDeviceTargets(devices);
  return {HostOf(checked), checked};
}

Map<String, Target> OfItsDevice(const Target& target) {
  return {{String(relay::DeviceTypeName(target->device_type())), target}};
}

/// The kinds of targets that code is made for.
BATON_REGISTER_GLOBAL("target.KindsWithCode").set_body_typed([] {
  Array<String> out;
  for (const TargetKind* k : TargetKinds()) out.push_back(String(k->name));
  return out;
});
/// The device of a target, as DLPack numbers them.
BATON_REGISTER_GLOBAL("target.DeviceType").set_body_typed([](Target t) {
  return static_cast<int64_t>(t->device_type());
});

}  // namespace baton::driver
