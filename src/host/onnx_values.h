// SPDX-License-Identifier: Apache-2.0
// Functions over values other than tensors: lists, of arrays and of lists.
#pragma once

#include <baton/runtime/registry.h>

#include <memory>

#include "host/arrays.h"

namespace baton::host {

using runtime::ObjectRef;
using runtime::PackedFunc;
using List = runtime::Array<ObjectRef>;
using Values = std::vector<ObjectRef>;

/// The list at place i.
inline List ListAt(const Params& p, const Values& in, size_t i) {
  if (i >= in.size() || !in[i].as<runtime::ArrayObj>()) p.Fail(Cat("operand ", i, " is no sequence or optional"));
  return Downcast<List>(in[i]);
}
inline NDArray TensorOf(const Params& p, const ObjectRef& v, const std::string& what) {
  if (!v.as<runtime::NDArrayObj>()) p.Fail(Cat(what, " is no tensor"));
  return Downcast<NDArray>(v).Contiguous();
}
inline NDArray TensorAt(const Params& p, const Values& in, size_t i) {
  return TensorOf(p, i < in.size() ? in[i] : ObjectRef(), Cat("operand ", i));
}

/// Registers the global function "host.<operator>": given parameters as JSON, it gives the function over values.
struct RegisterValues {
  RegisterValues(const char* op, ObjectRef (*function)(const Params&, const Values&)) {
    runtime::Registry::Register(std::string("host.") + op).set_body_typed([op, function](runtime::String json) {
      auto params = std::make_shared<Params>(Params::Parse(op, json.view()));
      return PackedFunc([params, function](runtime::Args args, runtime::RetValue* rv) {
        Values in;
        for (int i = 0; i < args.size(); ++i) {
          if (!args[i].Is<ObjectRef>()) params->Fail(Cat("argument ", i, " is no value"));
          in.push_back(args[i].As<ObjectRef>());
        }
        *rv = function(*params, in);
      });
    });
  }
};

}  // namespace baton::host
