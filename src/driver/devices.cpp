// SPDX-License-Identifier: Apache-2.0
// Programs on several devices: planned, fused on each device, and compiled; those with control flow are interpreted
// over compiled kernels.
#include <baton/driver/driver.h>
#include <baton/ir/structural.h>
#include <baton/relay/device.h>
#include <baton/relay/evaluator.h>
#include <baton/relay/functor.h>
#include <baton/relay/op.h>
#include <baton/relay/op/annotation.h>
#include <baton/relay/transform.h>
#include <baton/runtime/registry.h>
#include <baton/support/nearest.h>

#include <algorithm>
#include <atomic>

#include "driver/device_module.h"
#include "driver/lower_graph.h"

namespace baton::driver {

using relay::Expr;
using relay::Function;
using relay::Var;

namespace {

Function MainOf(const IRModule& mod) { return Downcast<Function>(mod->Lookup("main")); }

std::vector<std::string> ParamNames(const Function& f) {
  std::vector<std::string> names;
  for (const Var& p : f->params) names.push_back(p->name_hint().str());
  return names;
}

/// The interpreter behind an executor's functions: it moves inputs to where the plan wants them.
class DeviceExecutor : public runtime::ModuleNode {
 public:
  DeviceExecutor(IRModule mod, Function main)
      : mod_(std::move(mod)), main_(std::move(main)), inputs_(main_->params.size()) {}
  const char* type_key() const override { return "devices"; }
  PackedFunc GetFunction(std::string_view name, const ObjectPtr<Object>& self) override {
    auto make = [&](auto body) {
      return PackedFunc([self, this, body](runtime::Args args, runtime::RetValue* rv) {
        if (busy_.exchange(true))
          throw RuntimeError("this executor is in use by another thread; make one for each thread");
        struct Release {
          std::atomic<bool>* b;
          ~Release() { *b = false; }
        } release{&busy_};
        body(this, args, rv);
      });
    };
    using Self = DeviceExecutor*;
    using runtime::Args;
    using runtime::RetValue;
    if (name == "set_input" || name == "set_input_zero_copy") {
      return make([](Self s, Args a, RetValue*) { s->Set(s->Index(a[0]), a[1]); });
    }
    if (name == "run") return make([](Self s, Args, RetValue*) { s->Run(); });
    if (name == "run_with") {
      return make([](Self s, Args a, RetValue* rv) {
        if (a.size() != static_cast<int>(s->inputs_.size())) {
          throw runtime::ValueError("the model has " + std::to_string(s->inputs_.size()) + " inputs, got " +
                                    std::to_string(a.size()));
        }
        for (int i = 0; i < a.size(); ++i) s->Set(static_cast<size_t>(i), a[i]);
        s->Run();
        *rv = s->outputs_;
      });
    }
    if (name == "get_output") {
      return make([](Self s, Args a, RetValue* rv) {
        int64_t i = a[0];
        if (i < 0 || i >= static_cast<int64_t>(s->outputs_.size())) {
          throw Error("IndexError", "output " + std::to_string(i) + " of " + std::to_string(s->outputs_.size()) +
                                        (s->outputs_.empty() ? "; has the model run?" : ""));
        }
        if (a.size() > 1) {
          Downcast<NDArray>(s->outputs_[i]).CopyTo(a[1].As<DLTensor*>());
        } else {
          *rv = s->outputs_[i];
        }
      });
    }
    if (name == "get_input") return make([](Self s, Args a, RetValue* rv) { *rv = s->inputs_[s->Index(a[0])]; });
    if (name == "get_num_inputs")
      return make([](Self s, Args, RetValue* rv) { *rv = static_cast<int64_t>(s->inputs_.size()); });
    if (name == "get_num_outputs")
      return make([](Self s, Args, RetValue* rv) { *rv = static_cast<int64_t>(s->NumOutputs()); });
    if (name == "get_input_index") {
      return make([](Self s, Args a, RetValue* rv) {
        std::vector<std::string> names = ParamNames(s->main_);
        auto it = std::find(names.begin(), names.end(), a[0].As<std::string>());
        *rv = it == names.end() ? int64_t{-1} : static_cast<int64_t>(it - names.begin());
      });
    }
    if (name == "get_input_name")
      return make([](Self s, Args a, RetValue* rv) { *rv = s->main_->params[a[0].As<int64_t>()]->name_hint(); });
    if (name == "get_output_name") return make([](Self s, Args a, RetValue* rv) { *rv = String(s->OutputName(a[0])); });
    if (name == "get_input_info") {
      return make([](Self s, Args a, RetValue* rv) {
        const Var& p = s->main_->params[a[0].As<int64_t>()];
        *rv = s->Info(p->name_hint().str(),
                      p->checked_type_.defined() ? Downcast<Type>(p->checked_type_) : p->type_annotation);
      });
    }
    if (name == "get_output_info") {
      return make([](Self s, Args a, RetValue* rv) {
        int64_t i = a[0];
        Type t = s->main_->body->checked_type();
        if (const auto* tuple = t.as<TupleTypeNode>()) t = tuple->fields[i];
        *rv = s->Info(s->OutputName(i), t);
      });
    }
    return nullptr;
  }

 private:
  size_t NumOutputs() {
    const auto* t = main_->body->checked_type_.as<TupleTypeNode>();
    return t ? t->fields.size() : 1;
  }
  std::string OutputName(int64_t i) {
    auto names = main_->GetAttr<Array<String>>("output_names", Array<String>());
    return i < static_cast<int64_t>(names.size()) ? names[i].str() : "output" + std::to_string(i);
  }
  /// [name, shape (-1: any), dtype].
  Array<runtime::Any> Info(const std::string& name, const Type& type) {
    Array<int64_t> shape;
    const auto* t = type.as<TensorTypeNode>();
    if (t) {
      for (const PrimExpr& d : t->shape) shape.push_back(relay::DimOf(d));
    }
    return {runtime::Any(name), runtime::Any(shape),
            runtime::Any(t ? DataType2String(t->dtype) : std::string("tuple"))};
  }
  size_t Index(const runtime::ArgValue& v) {
    std::vector<std::string> names = ParamNames(main_);
    if (v.Is<std::string>()) {
      auto it = std::find(names.begin(), names.end(), v.As<std::string>());
      if (it == names.end()) {
        throw runtime::ValueError("the model has no input `" + v.As<std::string>() + "`" +
                                  support::DidYouMean(v.As<std::string>(), names));
      }
      return static_cast<size_t>(it - names.begin());
    }
    int64_t i = v.As<int64_t>();
    if (i < 0 || i >= static_cast<int64_t>(names.size()))
      throw Error("IndexError", "input " + std::to_string(i) + " of " + std::to_string(names.size()));
    return static_cast<size_t>(i);
  }
  void Set(size_t i, const runtime::ArgValue& v) {
    NDArray a = v.Is<NDArray>() && !v.is_null() ? v.As<NDArray>() : FromTensor(v.As<DLTensor*>());
    const Var& p = main_->params[static_cast<int64_t>(i)];
    const auto* t =
        p->checked_type_.defined() ? p->checked_type_.as<TensorTypeNode>() : p->type_annotation.as<TensorTypeNode>();
    if (t) {
      bool ok = a.dtype() == t->dtype && a.shape().size() == t->shape.size();
      for (size_t d = 0; ok && d < t->shape.size(); ++d) {
        int64_t want = relay::DimOf(t->shape[static_cast<int64_t>(d)]);
        ok = want < 0 || want == a.shape()[d];
      }
      if (!ok) {
        std::string got = DataType2String(a.dtype()) + "(";
        for (int64_t d : a.shape()) got += std::to_string(d) + ",";
        throw runtime::ValueError("input `" + p->name_hint().str() + "` is " + got + "), the model wants " +
                                  AsText(GetRef<TensorType>(t)));
      }
    }
    inputs_[i] = a;
  }
  static NDArray FromTensor(const DLTensor* t) {
    NDArray a = NDArray::Empty({t->shape, t->shape + t->ndim}, t->dtype);
    a.CopyFrom(t);
    return a;
  }
  void Run() {
    Array<ObjectRef> args;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (!inputs_[i].defined()) {
        throw runtime::ValueError("input `" + main_->params[static_cast<int64_t>(i)]->name_hint().str() +
                                  "` is not set");
      }
      args.push_back(inputs_[i]);
    }
    ObjectRef value = relay::InterpretCall(main_, args, mod_);
    Array<ObjectRef> outputs;
    std::vector<ObjectRef> work{value};
    while (!work.empty()) {
      ObjectRef v = work.back();
      work.pop_back();
      if (v.as<runtime::ArrayObj>()) {
        Array<ObjectRef> fields = Downcast<Array<ObjectRef>>(v);
        for (size_t i = fields.size(); i-- > 0;) work.push_back(fields[static_cast<int64_t>(i)]);
      } else {
        outputs.push_back(v);
      }
    }
    outputs_ = outputs;
  }
  IRModule mod_;
  Function main_;
  std::vector<NDArray> inputs_;
  Array<ObjectRef> outputs_;
  std::atomic<bool> busy_{false};
};

class DeviceModule : public runtime::ModuleNode {
 public:
  explicit DeviceModule(IRModule mod) : mod_(std::move(mod)) {}
  const char* type_key() const override { return "devices"; }
  PackedFunc GetFunction(std::string_view name, const ObjectPtr<Object>& self) override {
    if (name != "default") return nullptr;
    return PackedFunc([self, this](runtime::Args, runtime::RetValue* rv) {
      *rv = runtime::MakeModule<DeviceExecutor>(mod_, MainOf(mod_));
    });
  }
  std::string GetSource(std::string_view format) override {
    if (format == "relay") return AsText(mod_);
    throw UnsupportedError(
        "this program is interpreted over compiled kernels, because it runs on several devices and has control flow; "
        "only its Relay text can be shown");
  }
  void SaveToFile(const std::string&, std::string_view) override {
    throw UnsupportedError(
        "this program cannot be exported as an artifact, because it runs on several devices and has control flow");
  }

 private:
  IRModule mod_;
};

}  // namespace

std::vector<DeviceTarget> CheckDeviceTargets(const Map<String, Target>& targets) {
  std::vector<DeviceTarget> out;
  Target host;
  for (const auto& [name, target] : targets) {
    const Device d = runtime::String2Device(name.view());
    const std::string device = relay::DeviceTypeName(d.device_type);
    const char* kind = d.device_type == kDLCPU || d.device_type == kDLExtDev ? "llvm"
                       : d.device_type == kDLOpenCL                          ? "opencl"
                                                                             : nullptr;
    if (!kind) throw UnsupportedError("no code is made for " + device + "; code is made for cpu, ext_dev and opencl");
    if (target->kind != kind) {
      throw UnsupportedError("the target of " + device + " is `" + target->kind.str() + "`; its code is made by " +
                             kind);
    }
    if (target->kind == "llvm") {
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

int64_t FallbackDevice(const std::vector<DeviceTarget>& targets) {
  for (const DeviceTarget& t : targets) {
    if (t.type == kDLCPU) return t.type;
  }
  return targets[0].type;
}

namespace {

/// Calls f with each device that an annotation or a copy names.
template <class F>
void ForNamedDevices(const IRModule& mod, F f) {
  for (const auto& [var, func] : mod->functions) {
    const BaseFunc& each = func;
    if (!each.as<relay::FunctionNode>()) continue;
    relay::PostOrder(Downcast<Expr>(each), [&](const Expr& e) {
      const auto* call = e.as<relay::CallNode>();
      if (!call) return;
      if (call->op.same_as(relay::op::on_device)) {
        f(relay::AttrsAs<relay::OnDeviceAttrs>(call->attrs).device_type);
      } else if (call->op.same_as(relay::op::device_copy)) {
        const auto& copy = relay::AttrsAs<relay::DeviceCopyAttrs>(call->attrs);
        f(copy.src_dev_type);
        f(copy.dst_dev_type);
      }
    });
  }
}

/// What runs by the interpreter: planned, and fused on each device.
IRModule FusedPlan(const IRModule& planned) {
  using namespace relay::transform;  // NOLINT: passes
  Pass passes = Sequential(Array<Pass>{FuseOps(-1), InferType()}, "DevicePipeline");
  return passes(InferType()(planned));
}

IRModule Plan(const IRModule& mod, const std::vector<DeviceTarget>& targets, int64_t fallback) {
  IRModule planned = relay::transform::PlanDevices(static_cast<int>(fallback))(relay::transform::InferType()(mod));
  ForNamedDevices(planned, [&](int64_t device) {
    bool given = device < 0;
    for (const DeviceTarget& t : targets) given = given || t.type == device;
    if (given) return;
    const std::string name = relay::DeviceTypeName(device);
    throw runtime::ValueError("the program runs on " + name + ", for which no target is given; give one: {\"" + name +
                              "\": \"" + (device == kDLOpenCL ? "opencl" : "llvm") + "\"}");
  });
  return planned;
}

}  // namespace

IRModule OptimizeForDevices(const IRModule& mod, const std::vector<DeviceTarget>& targets, int64_t fallback) {
  using namespace relay::transform;  // NOLINT: passes
  bool annotated = false;
  ForNamedDevices(mod, [&](int64_t device) { annotated = annotated || device >= 0; });
  // All on one device: nothing has to be planned, and every pass may run.
  if (targets.size() == 1 && !annotated) return Optimize(mod, targets[0].target);
  With<Target> scope(targets[0].target);
  // Before the plan what takes operators apart where they stand, so that each part is planned. After it nothing that
  // joins or moves expressions: they look alike and lie on different devices.
  IRModule out = Sequential(Array<Pass>{InferType(), DynamicToStatic(), SimplifyInference(), FoldConstant(),
                                        baton::transform::GetPass("DecomposeAll"), FoldConstant(), InferType()},
                            "BeforeDevicePlan")(mod);
  out = Plan(out, targets, fallback);
  std::string why;
  Function main = MainOf(out);
  IRModule one = out.Copy();
  one.CopyOnWrite()->Update(out->GetGlobalVar("main"), WithoutAnnotations(main));
  one = Sequential(Array<Pass>{InferType(), ToGraphNormalForm(), InferType(), FuseOps(-1), InferType()},
                   "AfterDevicePlan")(one);
  // Control flow keeps its annotations: the interpreter asks for them.
  return CanLowerGraph(MainOf(one), &why, true) ? one : FusedPlan(out);
}

runtime::Module CompileForDevices(const IRModule& mod, const Map<String, Target>& given) {
  const std::vector<DeviceTarget> targets = CheckDeviceTargets(given);
  const int64_t fallback = FallbackDevice(targets);
  const IRModule optimized = OptimizeForDevices(mod, targets, fallback);
  std::string why;
  if (CanLowerGraph(MainOf(optimized), &why, true)) return MakeDeviceModule(optimized, targets, fallback);
  for (const DeviceTarget& t : targets) {
    if (t.target->kind == "llvm") continue;
    throw UnsupportedError("a program that runs on " + relay::DeviceTypeName(t.type) +
                           " is a row of operators with known shapes, and this is none: " + why +
                           "; compile it for cpu, or give its shapes");
  }
  return runtime::MakeModule<DeviceModule>(optimized);
}

BATON_REGISTER_GLOBAL("driver.CompileForDevices").set_body_typed([](IRModule m, Map<String, Target> t) {
  return CompileForDevices(m, t);
});
/// The device of a target, as DLPack numbers them.
BATON_REGISTER_GLOBAL("target.DeviceType").set_body_typed([](Target t) {
  return static_cast<int64_t>(t->device_type());
});

}  // namespace baton::driver
