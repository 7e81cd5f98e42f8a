// SPDX-License-Identifier: Apache-2.0
#include <baton/ir/attrs.h>
#include <baton/ir/structural.h>

#include <ostream>

namespace baton {

using runtime::FieldInfo;
using runtime::TypeInfo;

bool BaseAttrsNode::IsDefault(const FieldInfo& f, const Any& v) {
  const Any& d = f.default_value;
  if (v.Same(d)) return true;
  return v.object() && d.object() &&
         StructuralEqual(ObjectRef(ObjectPtr<Object>(v.object())), ObjectRef(ObjectPtr<Object>(d.object())));
}

void BaseAttrsNode::InitByPackedArgs(const runtime::Args& args, bool allow_unknown) {
  const TypeInfo* info = TypeInfo::Get(type_index());
  if (args.size() % 2) throw runtime::TypeError("attributes are given as names and values in turn");
  std::vector<bool> given(info->fields.size());
  for (int i = 0; i < args.size(); i += 2) {
    std::string name = args[i].As<std::string>();
    const FieldInfo* f = info->Find(name);
    if (!f) {
      if (allow_unknown) continue;
      std::string known;
      for (const FieldInfo& k : info->fields) known += (known.empty() ? "" : ", ") + std::string(k.name);
      throw Error("AttributeError", "`" + info->key + "` has no field `" + name + "`; it has " + known);
    }
    f->Set(this, args.values[i + 1]);
    given[f - info->fields.data()] = true;
  }
  for (size_t i = 0; i < given.size(); ++i) {
    if (!given[i] && (info->fields[i].flags & kRequired)) {
      throw runtime::TypeError("`" + info->key + "` needs the field `" + info->fields[i].name + "`");
    }
  }
}

void BaseAttrsNode::VisitNonDefaultAttrs(runtime::AttrVisitor* v) {
  for (const FieldInfo& f : TypeInfo::Get(type_index())->fields) {
    if ((f.flags & kRequired) || !IsDefault(f, f.Get(this))) runtime::VisitField(this, f, v);
  }
}

Array<AttrFieldInfo> BaseAttrsNode::ListFieldInfo() const {
  Array<AttrFieldInfo> out;
  for (const FieldInfo& f : TypeInfo::Get(type_index())->fields) {
    std::string type = f.type_name;
    if (!(f.flags & kRequired)) {
      const Any& d = f.default_value;
      std::string text = d.type_code() == kBatonInt     ? std::to_string(d.As<int64_t>())
                         : d.type_code() == kBatonBool  ? (d.As<bool>() ? "True" : "False")
                         : d.type_code() == kBatonFloat ? std::to_string(d.As<double>())
                         : d.Is<std::string>()          ? "\"" + d.As<std::string>() + "\""
                         : d.is_null()                  ? "None"
                                                        : AsText(ObjectRef(ObjectPtr<Object>(d.object())));
      type += ", default=" + text;
    }
    out.push_back(AttrFieldInfo(String(f.name), String(type), String(f.doc)));
  }
  return out;
}

void BaseAttrsNode::PrintDocString(std::ostream& os) const {
  for (const AttrFieldInfo& f : ListFieldInfo()) {
    os << f->name.view() << " : " << f->type_info.view() << "\n    " << f->description.view() << "\n";
  }
}

DictAttrs::DictAttrs(Map<String, Any> dict) {
  auto n = make_object<DictAttrsNode>();
  n->dict = std::move(dict);
  data_ = std::move(n);
}

namespace {
const RegisterNodes<AttrFieldInfoNode, BaseAttrsNode, DictAttrsNode> registered_attrs;
}  // namespace

}  // namespace baton
