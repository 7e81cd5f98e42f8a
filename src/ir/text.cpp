// SPDX-License-Identifier: Apache-2.0
// Text of any object: by the printer of its IR, else its fields.
#include <baton/ir/attrs.h>
#include <baton/ir/structural.h>
#include <baton/ir/text_stream.h>
#include <baton/ir/type.h>
#include <baton/runtime/ndarray.h>
#include <baton/runtime/registry.h>

#include <cstdio>
#include <mutex>
#include <vector>

namespace baton {
namespace {

using runtime::ArrayObj;
using runtime::FieldInfo;
using runtime::MapObj;
using runtime::StringObj;
using runtime::TypeIndex;
using runtime::TypeInfo;

struct Printers {
  std::mutex mutex;
  std::vector<TextPrinter> list;
  std::vector<TextWriter> writers;
  static Printers& Get() {
    static auto* p = new Printers;
    return *p;
  }
};

constexpr int kMaxDepth = 6;

void Quote(std::string_view s, std::string* out) {
  *out += '"';
  for (char c : s) {
    if (c == '"' || c == '\\') *out += '\\';
    if (c == '\n')
      *out += "\\n";
    else
      *out += c;
  }
  *out += '"';
}

void Dump(const Any& v, int depth, bool meta, std::string* out);

/// Fields of an object that belongs to no IR, a few levels deep; deeper objects are shown by their kind. The depth
/// bounds the recursion.
void DumpObject(const Object* o, int depth, bool meta, std::string* out) {
  if (!o) {
    *out += "None";
    return;
  }
  ObjectRef ref = GetRef<ObjectRef>(o);
  if (o->type_index() == TypeIndex::kRuntimeString) {
    const auto* s = static_cast<const StringObj*>(o);
    if (depth == 0)
      out->append(s->data, s->size);
    else
      Quote({s->data, s->size}, out);
    return;
  }
  if (depth >= kMaxDepth) {
    *out += o->GetTypeKey() + "(...)";
    return;
  }
  if (o->type_index() == TypeIndex::kRuntimeArray) {
    const auto& items = static_cast<const ArrayObj*>(o)->items;
    *out += '[';
    for (size_t i = 0; i < items.size(); ++i) {
      if (i) *out += ", ";
      if (i == 1000) {
        *out += "... " + std::to_string(items.size()) + " in all";
        break;
      }
      Dump(items[i], depth + 1, meta, out);
    }
    *out += ']';
    return;
  }
  if (o->type_index() == TypeIndex::kRuntimeMap) {
    *out += '{';
    bool first = true;
    for (const auto& e : static_cast<const MapObj*>(o)->entries) {
      if (!first) *out += ", ";
      first = false;
      Dump(e.key, depth + 1, meta, out);
      *out += ": ";
      Dump(e.value, depth + 1, meta, out);
    }
    *out += '}';
    return;
  }
  if (o->type_index() == TypeIndex::kRuntimeNDArray) {
    NDArray a = GetRef<NDArray>(static_cast<const runtime::NDArrayObj*>(o));
    *out += "NDArray(" + runtime::DataType2String(a.dtype()) + "[";
    for (int i = 0; i < a->ndim; ++i) *out += (i ? ", " : "") + std::to_string(a->shape[i]);
    *out += "])";
    return;
  }
  const TypeInfo* info = TypeInfo::Get(o->type_index());
  *out += o->GetTypeKey();
  if (!info) return;
  *out += '(';
  bool first = true;
  for (const FieldInfo& f : info->fields) {
    if (f.flags & runtime::kIgnored) continue;
    if (!first) *out += ", ";
    first = false;
    *out += f.name;
    *out += '=';
    Dump(f.Get(o), depth + 1, meta, out);
  }
  *out += ')';
}

void Dump(const Any& v, int depth, bool meta, std::string* out) {
  char buf[40];
  switch (v.type_code()) {
    case kBatonNull:
      *out += "None";
      return;
    case kBatonInt:
      *out += std::to_string(v.raw().v_int64);
      return;
    case kBatonBool:
      *out += v.raw().v_int64 ? "True" : "False";
      return;
    case kBatonFloat:
      snprintf(buf, sizeof buf, "%.17g", v.raw().v_float64);
      if (double back; sscanf(buf, "%lf", &back) == 1) {
        char shorter[40];
        snprintf(shorter, sizeof shorter, "%.9g", v.raw().v_float64);
        if (sscanf(shorter, "%lf", &back) == 1 && back == v.raw().v_float64) {
          *out += shorter;
          return;
        }
      }
      *out += buf;
      return;
    case kBatonDType:
      *out += runtime::DataType2String(v.raw().v_dtype);
      return;
    case kBatonObject:
      if (depth > 0) {
        // Objects of an IR use its printer, unless the text is long.
        const Object* o = v.object();
        std::string s;
        if (o->IsInstance<BaseExprNode>() || o->IsInstance<TypeNode>()) s = AsText(GetRef<ObjectRef>(o), false);
        if (!s.empty() && s.find('\n') == std::string::npos) {
          *out += s;
          return;
        }
      }
      DumpObject(v.object(), depth, meta, out);
      return;
    default:
      *out += runtime::ValueKindName(v.raw());
      return;
  }
}

}  // namespace

void RegisterTextPrinter(TextPrinter printer) {
  std::lock_guard<std::mutex> lock(Printers::Get().mutex);
  Printers::Get().list.push_back(printer);
}

void RegisterTextWriter(TextWriter writer) {
  std::lock_guard<std::mutex> lock(Printers::Get().mutex);
  Printers::Get().writers.push_back(writer);
}

void WriteText(const ObjectRef& obj, bool show_meta_data, const TextSink& sink) {
  std::vector<TextWriter> list;
  {
    std::lock_guard<std::mutex> lock(Printers::Get().mutex);
    list = Printers::Get().writers;
  }
  for (const TextWriter& w : list) {
    if (obj.defined() && w.accepts(obj.get())) return w.write(obj, show_meta_data, sink);
  }
  sink.write(AsText(obj, show_meta_data), sink.context);
}

std::string AsText(const ObjectRef& obj, bool show_meta_data) {
  if (!obj.defined()) return "None";
  std::vector<TextPrinter> list;
  {
    std::lock_guard<std::mutex> lock(Printers::Get().mutex);
    list = Printers::Get().list;
  }
  for (const TextPrinter& p : list) {
    if (p.accepts(obj.get())) return p.print(obj, show_meta_data);
  }
  std::string out;
  DumpObject(obj.get(), 0, show_meta_data, &out);
  return out;
}

}  // namespace baton

namespace {
using namespace baton;  // NOLINT
BATON_REGISTER_GLOBAL("ir.AsText").set_body([](runtime::Args args, runtime::RetValue* rv) {
  *rv = Any(AsText(args[0].As<ObjectRef>(), args.size() < 2 || args[1].As<bool>()));
});
BATON_REGISTER_GLOBAL("ir.PrettyPrint").set_body_typed([](ObjectRef obj) { return AsText(obj, false); });
}  // namespace
