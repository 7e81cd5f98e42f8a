// SPDX-License-Identifier: Apache-2.0
#include <baton/relay/functor.h>
#include <baton/relay/op.h>
#include <baton/relay/op/annotation.h>
#include <baton/relay/transform.h>
#include <baton/runtime/device_types.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace baton::relay::transform {
namespace {

struct KeepDTypesOnHostOptions : PassOptions<KeepDTypesOnHostOptions> {
  static constexpr auto _type_key = "relay.transform.KeepDTypesOnHostOptions";
  Array<String> dtypes;
  int64_t device = kDLCPU;
  static constexpr void Describe(auto& d) {
    d(F<&KeepDTypesOnHostOptions::dtypes>, "Dtypes that code of the device has no values of.");
    d(F<&KeepDTypesOnHostOptions::device>, "Device of the other calls, by its DLPack number.");
  }
};

class Keeper : public MixedModeMutator {
 public:
  explicit Keeper(const KeepDTypesOnHostOptions& options) : device_(options.device) {
    for (const String& name : options.dtypes) lacks_.push_back(runtime::String2DataType(name.str()));
  }

 private:
  using MixedModeMutator::Rewrite_;
  Expr Rewrite_(const CallNode* pre, const Expr& post) final {
    if (!IsLacking(pre)) return post;
    // Its operands are computed on the device, where they can be.
    const auto* call = post.as<CallNode>();
    Array<Expr> args;
    for (size_t i = 0; i < call->args.size(); ++i) {
      const Expr& arg = call->args[static_cast<int64_t>(i)];
      const auto* own = pre->args[static_cast<int64_t>(i)].as<CallNode>();
      args.push_back(own && own->op.as<OpNode>() && !IsLacking(own) && !AsOnDevice(own->op, own->attrs)
                         ? OnDevice(arg, device_)
                         : arg);
    }
    CallNode made = *call;
    made.args = args;
    return OnDevice(Call(std::move(made)), kDLCPU);
  }
  /// Whether an operator takes or gives a tensor of such a dtype. One that the program has annotated is its own.
  bool IsLacking(const CallNode* call) const {
    if (!call->op.as<OpNode>() || AsOnDevice(call->op, call->attrs) || AsDeviceCopy(call->op, call->attrs))
      return false;
    return Has(call->checked_type_) ||
           std::any_of(call->args.begin(), call->args.end(), [&](const Expr& a) { return Has(a->checked_type_); });
  }
  bool Has(const ObjectRef& type) const {
    if (const auto* t = type.as<TensorTypeNode>()) {
      return std::find(lacks_.begin(), lacks_.end(), t->dtype) != lacks_.end();
    }
    const auto* tuple = type.as<TupleTypeNode>();
    return tuple && std::any_of(tuple->fields.begin(), tuple->fields.end(), [&](const Type& f) { return Has(f); });
  }

  const int64_t device_;
  std::vector<DataType> lacks_;
};

}  // namespace

Pass KeepDTypesOnHost(const KeepDTypesOnHostOptions& options) {
  return MakePass<KeepDTypesOnHost>(
      options,
      {
          .doc = "Annotates calls that take or give tensors of some dtypes with the CPU, and what they take with a "
                 "device: for devices whose code lacks these dtypes.",
          .opt_level = 0,
          .required = {"InferType"},
          .run = [options](Function f, IRModule, PassContext) { return Downcast<Function>(Keeper(options).Mutate(f)); },
      });
}

namespace {
const RegisterPass<KeepDTypesOnHost> registered_keep_dtypes_on_host;
}

}  // namespace baton::relay::transform
