// SPDX-License-Identifier: Apache-2.0
// Relay text outside of dataflow: names, names of types, attributes, patterns, metadata.
#include <baton/ir/attrs.h>
#include <baton/ir/structural.h>
#include <baton/ir/text_stream.h>
#include <baton/support/stack.h>
#include <relay/text/printer.h>

#include <algorithm>

namespace baton::relay {

using runtime::ArrayObj;
using runtime::FieldInfo;
using runtime::StringObj;
using runtime::TypeInfo;

std::string_view Printer::Unique(support::NameMap<uint32_t>* taken, std::string_view hint) {
  if (hint.empty()) hint = "v";
  bool fresh = false;
  uint32_t& count = taken->Insert(hint, &fresh);
  if (fresh) return hint;
  // The counter belongs to the hint, so that a million of one name cost no more than a million names.
  std::string name;
  do {
    name = hint;
    name += std::to_string(++count);
  } while (taken->Find(name));
  name_store_.push_back(std::move(name));
  taken->Insert(name_store_.back());
  return name_store_.back();
}

void Printer::VarName(const VarNode* v) {
  bool fresh = false;
  std::string_view& name = names_.Insert(v, &fresh);
  if (fresh) {
    std::string_view hint = v->vid.defined() ? v->name_hint().view() : "";
    // A number would be that of a line.
    if (!hint.empty() && hint[0] >= '0' && hint[0] <= '9') hint = name_store_.emplace_back("v" + std::string(hint));
    name = Unique(&taken_, hint);
  }
  Sigil('%', name);
}

std::string Printer::NameOf(const TypeVarNode* var) {
  bool fresh = false;
  std::string_view& name = names_.Insert(var, &fresh);
  if (fresh) name = Unique(&taken_types_, IsName(var->name_hint.view()) ? var->name_hint.view() : "T");
  return std::string(name);
}

std::string Printer::DimName(const Object* var, const std::string& hint) {
  bool fresh = false;
  std::string_view& name = names_.Insert(var, &fresh);
  if (fresh) name = Unique(&taken_types_, IsName(hint) ? std::string_view(name_store_.emplace_back(hint)) : "n");
  return std::string(name);
}

int32_t Printer::Height(const Type& root) {
  auto known = [this](const Type& t) -> const int32_t* {
    static constexpr int32_t kFlat = 0, kOpen = -1;
    if (const auto* tensor = t.as<TensorTypeNode>()) {
      for (const PrimExpr& d : tensor->shape) {
        if (!d.as<IntImmNode>()) return &kOpen;
      }
      return &kFlat;
    }
    const bool has_parts = t.as<TupleTypeNode>() || t.as<FuncTypeNode>() || t.as<RelayRefTypeNode>();
    return has_parts ? heights_.Find(t.get()) : &kOpen;
  };
  // Parts first; each type once, of however many it is a part.
  std::vector<Type> work{root};
  while (!work.empty()) {
    const Type t = work.back();
    if (known(t)) {
      work.pop_back();
      continue;
    }
    int32_t height = 0;
    bool ready = true;
    auto child = [&](const Type& p) {
      if (!p.defined()) {
        height = -1;
      } else if (const int32_t* h = known(p)) {
        height = *h < 0 || height < 0 ? -1 : std::max(height, *h + 1);
      } else {
        ready = false;
        work.push_back(p);
      }
    };
    if (const auto* tuple = t.as<TupleTypeNode>()) {
      for (const Type& f : tuple->fields) child(f);
    } else if (const auto* f = t.as<FuncTypeNode>()) {
      if (!f->type_params.empty() || !f->type_constraints.empty()) height = -1;
      for (const Type& a : f->arg_types) child(a);
      child(f->ret_type);
    } else {
      child(t.as<RelayRefTypeNode>()->value);
    }
    if (!ready) continue;
    heights_[t.get()] = height;
    work.pop_back();
  }
  return *known(root);
}

void Printer::Meta(const ObjectRef& obj) {
  const std::string key = obj.defined() ? obj->GetTypeKey() : "None";
  bool fresh = false;
  int64_t& index = meta_index_.Insert(obj.get(), &fresh);
  if (fresh) {
    size_t i = 0;
    while (i < meta_.size() && meta_[i].first != key) ++i;
    if (i == meta_.size()) meta_.push_back({key, Array<Any>()});
    index = static_cast<int64_t>(meta_[i].second.size());
    meta_[i].second.push_back(Any(obj));
  }
  text_ += "meta[" + key + "][" + std::to_string(index) + "]";
}

void Printer::MetaSection() {
  if (meta_.empty() || (!options_.meta_data && !options_.objects)) return;
  Map<String, Any> map;
  for (auto& [key, list] : meta_) map.Set(String(key), Any(list));
  if (options_.objects) {
    *options_.objects = map;
    return;
  }
  if (text_.back() != '\n') text_ += '\n';
  text_ += "\n#[metadata]\n" + SaveJSON(map, false);
}

/// `, name=value` for each entry; a name that means something else in this place is quoted.
void Printer::Entries(const DictAttrsNode* attrs, bool first) {
  if (!attrs->dict.get()) return;
  for (const auto& e : attrs->dict.get()->entries) {
    if (!first) text_ += ", ";
    first = false;
    const auto* key = static_cast<const StringObj*>(e.key.object());
    std::string_view name(key->data, key->size);
    if (IsName(name) && name != "attrs")
      text_ += name;
    else
      QuoteText(name, &text_);
    text_ += '=';
    Value(e.value, false);
  }
}

void Printer::Signature(const FunctionNode* f) {
  if (!f->type_params.empty()) {
    text_ += '[';
    for (size_t i = 0; i < f->type_params.size(); ++i) {
      if (i) text_ += ", ";
      text_ += NameOf(f->type_params[i].get());
    }
    text_ += ']';
  }
  text_ += '(';
  bool first = true;
  for (const Var& p : f->params) {
    if (!first) text_ += ", ";
    first = false;
    Atom(p.get());
    if (p.defined() && p->type_annotation.defined()) {
      text_ += ": ";
      Print(p->type_annotation);
    }
  }
  if (f->attrs.defined()) Entries(f->attrs.get(), first);
  text_ += ") ";
  if (f->ret_type.defined()) {
    text_ += "-> ";
    Print(f->ret_type);
    text_ += ' ';
  }
  text_ += "{\n";
}

void Printer::Value(const Any& v, bool plain_ints) {
  support::WithStack([&] {
    switch (v.type_code()) {
      case kBatonNull:
        text_ += "None";
        return;
      case kBatonInt:
        text_ += std::to_string(v.raw().v_int64);
        return;
      case kBatonBool:
        text_ += v.raw().v_int64 ? "True" : "False";
        return;
      case kBatonFloat: {
        std::string s = DoubleText(v.raw().v_float64);
        text_ += s;
        if (s.back() >= '0' && s.back() <= '9') text_ += 'f';
        return;
      }
      case kBatonDType:
        text_ += DataType2String(v.raw().v_dtype);
        return;
      case kBatonObject:
        break;
      default:
        text_ += "None /* " + runtime::ValueKindName(v.raw()) + " */";
        return;
    }
    const Object* o = v.object();
    if (o->IsInstance<StringObj>()) {
      const auto* s = static_cast<const StringObj*>(o);
      QuoteText({s->data, s->size}, &text_);
    } else if (o->IsInstance<ArrayObj>()) {
      text_ += '[';
      bool first = true;
      for (const Any& a : static_cast<const ArrayObj*>(o)->items) {
        if (!first) text_ += ", ";
        first = false;
        Value(a, plain_ints);
      }
      text_ += ']';
    } else if (o->IsInstance<IntImmNode>() && !static_cast<const IntImmNode*>(o)->dtype.is_bool()) {
      const auto* i = static_cast<const IntImmNode*>(o);
      text_ += std::to_string(i->value);
      if (plain_ints && i->dtype == DataType::Int(64)) return;
      text_ += (i->dtype.is_int() ? "i" : "u") + std::to_string(i->dtype.bits());
    } else if (o->GetTypeKey() == "tir.Any") {
      text_ += '?';
    } else if (const auto e = GetRef<ObjectRef>(o).as<PrimExprNode>(); e && IsExtentText(GetRef<PrimExpr>(e))) {
      PrintDim(GetRef<PrimExpr>(e));
    } else {
      Meta(GetRef<ObjectRef>(o));
    }
  });
}

void Printer::FieldValue(const FieldInfo& f, const Any& v) {
  if (f.kind == runtime::FieldKind::kDataType) {
    QuoteText(DataType2String(v.As<DataType>()), &text_);
    return;
  }
  bool plain = false;
  if (const Object* o = v.object()) {
    // Where plain numbers become literals, as in shapes, they are written plain.
    Any probe, out;
    if (o->IsInstance<IntImmNode>())
      probe = Any(int64_t{1});
    else if (o->IsInstance<ArrayObj>())
      probe = Any(Array<Any>{Any(int64_t{1})});
    try {
      if (!probe.is_null() && f.convert && f.convert(probe.raw(), &out)) {
        const Object* c = out.object();
        if (c && c->IsInstance<ArrayObj>()) c = static_cast<const ArrayObj*>(c)->items[0].object();
        plain = c && c->IsInstance<IntImmNode>();
      }
    } catch (const runtime::Error&) {
      plain = false;
    }
  }
  Value(v, plain);
}

namespace {
struct Told {
  std::string_view type, field;
  bool with_types;  ///< only where the text says types too: the text that programs of Relay read
};
/// Attributes that Relay's text has in any case, since they had no default, or another one than Python's functions.
constexpr Told kTold[] = {
    {"MaxPool1DAttrs", "pool_size", false}, {"MaxPool2DAttrs", "pool_size", false},
    {"MaxPool3DAttrs", "pool_size", false}, {"AvgPool1DAttrs", "pool_size", false},
    {"AvgPool2DAttrs", "pool_size", false}, {"AvgPool3DAttrs", "pool_size", false},
    {"LRNAttrs", "alpha", false},           {"DenseAttrs", "units", true},
    {"MatmulAttrs", "units", true},         {"BatchMatmulAttrs", "transpose_b", true},
    {"TransposeAttrs", "axes", true},       {"StridedSliceAttrs", "strides", true},
    {"StridedSliceAttrs", "axes", true},    {"ArangeAttrs", "dtype", true},
    {"ArgsortAttrs", "dtype", true},        {"TopKAttrs", "dtype", true},
    {"ShapeOfAttrs", "dtype", true},        {"UpSamplingAttrs", "scale_h", true},
    {"UpSamplingAttrs", "scale_w", true},   {"UpSampling3DAttrs", "scale_d", true},
    {"UpSampling3DAttrs", "scale_h", true}, {"UpSampling3DAttrs", "scale_w", true},
};
std::vector<std::string_view> AlwaysPrinted(std::string_view type, bool with_types) {
  static constexpr std::string_view kPrefix = "relay.attrs.";
  std::vector<std::string_view> out;
  if (type.substr(0, kPrefix.size()) != kPrefix) return out;
  type.remove_prefix(kPrefix.size());
  for (const Told& t : kTold) {
    if (t.type == type && (with_types || !t.with_types)) out.push_back(t.field);
  }
  return out;
}
}  // namespace

void Printer::CallAttrs(const CallNode* call, bool first) {
  const auto* op = call->op.as<OpNode>();
  const std::string_view want = op ? op->attrs_type_key.view() : "";
  if (!call->attrs.defined()) {
    if (!want.empty()) text_ += first ? "attrs=None" : ", attrs=None";
    return;
  }
  if (const auto* own = op ? nullptr : call->attrs.as<DictAttrsNode>(); own && !own->dict.empty()) {
    Entries(own, first);
    return;
  }
  const TypeInfo* info = TypeInfo::Get(call->attrs->type_index());
  if (!info || info->key != want) {
    if (!first) text_ += ", ";
    text_ += "attrs=";
    Meta(call->attrs);
    return;
  }
  auto print = [&](const char* name, const Any& v) {
    if (!first) text_ += ", ";
    first = false;
    text_ += name;
    text_ += '=';
    FieldValue(*info->Find(name), v);
  };
  std::vector<std::string_view> told = AlwaysPrinted(info->key, options_.types);
  if (told.empty()) return call->attrs->VisitFields(print, true);
  call->attrs->VisitFields([&](const char* name, const Any&) { told.emplace_back(name); }, true);
  call->attrs->VisitFields([&](const char* name, const Any& v) {
    if (std::find(told.begin(), told.end(), name) != told.end()) print(name, v);
  });
}

void Printer::PrintPattern(const Pattern& p) {
  support::WithStack([&] {
    auto list = [&](const Array<Pattern>& patterns, bool tuple) {
      text_ += '(';
      bool first = true;
      for (const Pattern& x : patterns) {
        if (!first) text_ += ", ";
        first = false;
        PrintPattern(x);
      }
      text_ += tuple && patterns.size() == 1 ? ",)" : ")";
    };
    if (const auto* v = p.as<PatternVarNode>()) {
      Atom(v->var.get());
      if (v->var.defined() && v->var->type_annotation.defined()) {
        text_ += ": ";
        Print(v->var->type_annotation);
      }
    } else if (const auto* c = p.as<PatternConstructorNode>()) {
      text_ += c->constructor.defined() ? c->constructor->name_hint.view() : "(nullptr)";
      if (!c->patterns.empty()) list(c->patterns, false);
    } else if (const auto* t = p.as<PatternTupleNode>()) {
      list(t->patterns, true);
    } else {
      text_ += '_';
    }
  });
}

}  // namespace baton::relay
