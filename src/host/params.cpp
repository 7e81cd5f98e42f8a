// SPDX-License-Identifier: Apache-2.0
#include <baton/host/function.h>
#include <baton/runtime/error.h>
#include <baton/runtime/registry.h>
#include <baton/support/text.h>

#include <memory>

namespace baton::host {

using runtime::NDArray;
using runtime::RuntimeError;
using support::Cat;
using support::Json;

Params::Params(std::string function, Json values) : function_(std::move(function)), values_(std::move(values)) {
  if (!values_.is_object()) Fail("its parameters are no object of JSON");
}

Params Params::Parse(std::string function, std::string_view json) {
  Json values;
  try {
    values = Json::Parse(json, "parameters", {.depth = 8, .allow_nonfinite = true});
  } catch (const std::runtime_error& e) {
    throw RuntimeError(Cat(function, ": ", e.what()));
  }
  return Params(std::move(function), std::move(values));
}

void Params::Fail(const std::string& what) const { throw RuntimeError(Cat(function_, ": ", what)); }

const Json* Params::Find(const char* name) const {
  const Json* v = values_.Find(name);
  return v && !v->is_null() ? v : nullptr;
}

const Json& Params::At(const char* name) const {
  const Json* v = values_.Find(name);
  if (!v) Fail(Cat("parameter `", name, "` is missing"));
  return *v;
}

bool Params::Has(const char* name) const { return !At(name).is_null(); }

namespace {

[[noreturn]] void FailKind(const Params& p, const char* name, const char* wanted) {
  p.Fail(Cat("parameter `", name, "` is ", p.At(name).Dump(true, true), ", where ", wanted, " is wanted"));
}

template <class T, class F>
std::vector<T> ListOf(const Params& p, const char* name, bool (Json::*is)() const, F get, const char* wanted) {
  const Json& list = p.At(name);
  if (!list.is_array()) FailKind(p, name, wanted);
  std::vector<T> out;
  out.reserve(list.size());
  for (const Json& v : list.AsArray()) {
    if (!(v.*is)()) FailKind(p, name, wanted);
    out.push_back(get(v));
  }
  return out;
}

}  // namespace

int64_t Params::Int(const char* name) const {
  const Json& v = At(name);
  if (!v.is_int()) FailKind(*this, name, "an integer");
  return v.AsInt();
}

bool Params::Bool(const char* name) const {
  const Json& v = At(name);
  if (v.kind() != Json::kBool) FailKind(*this, name, "true or false");
  return v.AsBool();
}

double Params::Double(const char* name) const {
  const Json& v = At(name);
  if (!v.is_number()) FailKind(*this, name, "a number");
  return v.AsDouble();
}

const std::string& Params::Text(const char* name) const {
  const Json& v = At(name);
  if (!v.is_string()) FailKind(*this, name, "a string");
  return v.AsString();
}

DataType Params::Dtype(const char* name) const {
  const std::string& text = Text(name);
  try {
    return runtime::String2DataType(text);
  } catch (const runtime::Error&) {
    FailKind(*this, name, "a data type");
  }
}

std::vector<int64_t> Params::Ints(const char* name) const {
  return ListOf<int64_t>(*this, name, &Json::is_int, [](const Json& v) { return v.AsInt(); }, "a list of integers");
}

std::vector<double> Params::Doubles(const char* name) const {
  return ListOf<double>(*this, name, &Json::is_number, [](const Json& v) { return v.AsDouble(); }, "a list of numbers");
}

namespace {

/// The arrays of an argument; a tuple's are in a row.
void Flatten(const Params& p, const runtime::ObjectRef& value, Arrays* out) {
  std::vector<runtime::ObjectRef> work{value};
  while (!work.empty()) {
    const runtime::ObjectRef v = work.back();
    work.pop_back();
    if (v.as<runtime::NDArrayObj>()) {
      out->push_back(Downcast<NDArray>(v).Contiguous());
    } else if (v.as<runtime::ArrayObj>()) {
      const auto fields = Downcast<runtime::Array<runtime::ObjectRef>>(v);
      for (size_t i = fields.size(); i-- > 0;) work.push_back(fields[static_cast<int64_t>(i)]);
    } else {
      p.Fail("an argument is no tensor");
    }
  }
}

}  // namespace

Register::Register(const char* op, int arrays, Function function) {
  runtime::Registry::Register(std::string("host.") + op).set_body_typed([op, arrays, function](runtime::String json) {
    auto params = std::make_shared<Params>(Params::Parse(op, json.view()));
    return PackedFunc([params, arrays, function](runtime::Args args, runtime::RetValue* rv) {
      Arrays in;
      for (int i = 0; i < args.size(); ++i) {
        if (!args[i].Is<runtime::ObjectRef>()) params->Fail(Cat("argument ", i, " is no tensor"));
        Flatten(*params, args[i].As<runtime::ObjectRef>(), &in);
      }
      if (arrays >= 0 && static_cast<int>(in.size()) != arrays)
        params->Fail(Cat("it takes ", arrays, arrays == 1 ? " tensor, got " : " tensors, got ", in.size()));
      const Arrays out = function(*params, in);
      if (out.size() == 1) {
        *rv = out[0];
      } else {
        *rv = out;
      }
    });
  });
}

}  // namespace baton::host
