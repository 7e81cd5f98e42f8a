// SPDX-License-Identifier: Apache-2.0
// Programs on several devices: planned, fused on each device, and interpreted over compiled kernels.
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
        "this program is interpreted over compiled kernels, because it runs on several devices; only "
        "its Relay text can be shown");
  }
  void SaveToFile(const std::string&, std::string_view) override {
    throw UnsupportedError("this program cannot be exported as an artifact, because it runs on several devices");
  }

 private:
  IRModule mod_;
};

}  // namespace

runtime::Module CompileForDevices(const IRModule& mod, const Map<String, Target>& targets) {
  // By the devices' numbers, the host first: it takes what no annotation decides.
  int64_t first = 0;
  for (const auto& [name, target] : targets) {
    const Device d = runtime::String2Device(name.view());
    if (d.device_type != kDLCPU && d.device_type != kDLExtDev) {
      throw UnsupportedError("no code is made for " + runtime::Device2String(d) + "; code is made for cpu and ext_dev");
    }
    if (target->kind != "llvm") {
      throw UnsupportedError("the target of " + runtime::Device2String(d) + " is `" + target->kind.str() +
                             "`; code is made by llvm");
    }
    first = first == 0 || d.device_type == kDLCPU ? d.device_type : first;
  }
  if (first == 0) throw runtime::ValueError("no target is given");
  IRModule planned = relay::transform::PlanDevices(static_cast<int>(first))(relay::transform::InferType()(mod));
  for (const auto& [var, func] : planned->functions) {
    if (!func.as<relay::FunctionNode>()) continue;
    relay::PostOrder(Downcast<Expr>(func), [&](const Expr& e) {
      const auto* call = e.as<relay::CallNode>();
      if (!call) return;
      std::vector<int64_t> devices;
      if (call->op.same_as(relay::op::on_device)) {
        devices = {relay::AttrsAs<relay::OnDeviceAttrs>(call->attrs).device_type};
      } else if (call->op.same_as(relay::op::device_copy)) {
        const auto& copy = relay::AttrsAs<relay::DeviceCopyAttrs>(call->attrs);
        devices = {copy.src_dev_type, copy.dst_dev_type};
      }
      for (int64_t device : devices) {
        bool given = device < 0;
        for (const auto& [name, target] : targets)
          given = given || runtime::String2Device(name.view()).device_type == device;
        if (given) continue;
        throw runtime::ValueError("the program runs on " + relay::DeviceTypeName(device) +
                                  ", for which no target is given; give one: {\"" + relay::DeviceTypeName(device) +
                                  "\": \"llvm\"}");
      }
    });
  }
  using namespace relay::transform;  // NOLINT: passes
  Pass passes = Sequential(Array<Pass>{FuseOps(-1), InferType()}, "DevicePipeline");
  return runtime::MakeModule<DeviceModule>(passes(InferType()(planned)));
}

BATON_REGISTER_GLOBAL("driver.CompileForDevices").set_body_typed([](IRModule m, Map<String, Target> t) {
  return CompileForDevices(m, t);
});

}  // namespace baton::driver
