// SPDX-License-Identifier: Apache-2.0
#include "host_params.h"

#include <baton/runtime/reflection.h>
#include <baton/runtime/registry.h>

namespace baton::relay {
namespace {

using runtime::Any;
using support::Json;

/// An attribute's value; a type that is not given is null.
Json PlainValue(const Any& v, const runtime::FieldInfo& field, const Op& op) {
  if (v.is_null()) return Json();
  if (v.type_code() == kBatonBool) return Json(v.As<bool>());
  if (v.type_code() == kBatonInt) return Json(v.As<int64_t>());
  if (v.type_code() == kBatonFloat) return Json(v.As<double>());
  if (v.Is<DataType>()) {
    const auto t = v.As<DataType>();
    return t.is_void() ? Json() : Json(DataType2String(t));
  }
  if (v.Is<ObjectRef>()) {
    const auto o = v.As<ObjectRef>();
    if (const auto* i = o.as<IntImmNode>()) return Json(i->value);
    if (const auto* f = o.as<FloatImmNode>()) return Json(f->value);
    if (o.as<runtime::StringObj>()) return Json(Downcast<String>(o).str());
    if (o.as<runtime::ArrayObj>()) {
      Json list = Json::Array();
      for (const Any& e : Downcast<Array<Any>>(o)) list.Push(PlainValue(e, field, op));
      return list;
    }
  }
  throw UnsupportedError("`" + op->name.str() + "` runs on the host, where its attribute `" + field.name +
                         "` is to be a number, a string, a data type or a list of these");
}

}  // namespace

host::Params HostParams(const Op& op, const Attrs& attrs) {
  Json values = Json::Object();
  if (attrs.defined()) {
    if (const runtime::TypeInfo* info = runtime::TypeInfo::Get(attrs->type_index())) {
      for (const runtime::FieldInfo& f : info->fields) {
        if (f.flags & (runtime::kIgnored | runtime::kTransient)) continue;
        values.Add(f.name, PlainValue(f.Get(attrs.get()), f, op));
      }
    }
  }
  return host::Params(op->name.str(), std::move(values));
}

HostCall HostCallOf(const Op& op, const Attrs& attrs) {
  const OpDef* def = DefOf(op);
  HostCall call;
  if (def && def->host) {
    call.name = "host." + op->name.str();
    if (runtime::Registry::Get(call.name)) call.params = HostParams(op, attrs).Dump();
  } else if (def && def->host_call) {
    call = def->host_call(attrs);
  }
  if (!call.name.empty() && !runtime::Registry::Get(call.name)) call.name.clear();
  return call;
}

}  // namespace baton::relay
