// SPDX-License-Identifier: Apache-2.0
#include <baton/ir/module.h>
#include <baton/ir/op.h>
#include <baton/ir/structural.h>
#include <baton/support/hash.h>
#include <ir/node/structural_plan.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <unordered_map>

namespace baton::structural {

namespace {
std::unique_ptr<Plan> MakePlan(uint32_t index) {
  auto p = std::make_unique<Plan>();
  const std::string key = Object::TypeIndex2Key(index);
  p->seed = support::HashString(key);
  switch (index) {
    case TypeIndex::kRuntimeString:
      p->shape = Shape::kString;
      return p;
    case TypeIndex::kRuntimeArray:
      p->shape = Shape::kArray, p->leaf = false;
      return p;
    case TypeIndex::kRuntimeMap:
      p->shape = Shape::kMap, p->leaf = false;
      return p;
    case TypeIndex::kRuntimeNDArray:
      p->shape = Shape::kNDArray;
      return p;
    default:
      break;
  }
  const TypeInfo* info = TypeInfo::Get(index);
  if (!info || info->identity || !info->create || !info->has_equal || !info->has_hash) return p;
  p->shape = index == IRModuleNode::RuntimeTypeIndex() ? Shape::kModule : Shape::kTable;
  p->is_var = info->is_var;
  for (const TypeInfo* i = info; i; i = i->index == i->parent ? nullptr : TypeInfo::Get(i->parent)) {
    if (i->key == "relay.Pattern") p->keeps_level = true;
  }
  p->graph = !info->is_value;
  p->tuple = key == "relay.Tuple";
  p->by_name = key == "GlobalVar" || key == "GlobalTypeVar";
  p->is_id = key == "relay.Id";
  if (const FieldInfo* id = p->is_var ? info->Find("vid") : nullptr) {
    p->has_id = true;
    p->id = {id->offset, id->kind, id->name};
  }
  p->type_data = key == "relay.TypeData";
  p->infers_var = key == "relay.Let" || key == "relay.PatternVar";
  for (const FieldInfo& f : info->fields) {
    if (f.flags & runtime::kIgnored) continue;
    // The name and data type of a constructor say what its use means; its fields are compared with the type.
    if (key == "relay.Constructor" && std::strcmp(f.name, "inputs") == 0) continue;
    if (f.kind == FieldKind::kObject) p->leaf = false;
    ((f.flags & runtime::kBinds) ? p->binds : p->fields).push_back({f.offset, f.kind, f.name});
  }
  return p;
}
}  // namespace

std::atomic<const Plan*> plans[kMaxTypes];

[[gnu::noinline]] const Plan& NewPlan(uint32_t index) {
  std::unique_ptr<Plan> made = MakePlan(index);
  if (index >= kMaxTypes || (made->shape == Shape::kIdentity && !TypeInfo::Get(index))) {
    // Its table may come later, so `plans` has none of it. Until then one serves all.
    static std::mutex mutex;
    static auto* without_table = new std::unordered_map<uint32_t, std::unique_ptr<Plan>>;
    std::lock_guard lock(mutex);
    auto& kept = (*without_table)[index];
    if (!kept || (kept->shape == Shape::kIdentity && made->shape != Shape::kIdentity)) {
      kept.release();  // another thread may read it
      kept = std::move(made);
    }
    return *kept;
  }
  const Plan* there = nullptr;
  if (!plans[index].compare_exchange_strong(there, made.get(), std::memory_order_acq_rel)) return *there;
  return *made.release();
}

std::string_view NameOf(const Object* o) {
  return o->IsInstance<GlobalVarNode>() ? static_cast<const GlobalVarNode*>(o)->name_hint.view()
                                        : static_cast<const GlobalTypeVarNode*>(o)->name_hint.view();
}

std::string_view VarName(const Object* o) {
  const TypeInfo* info = TypeInfo::Get(o->type_index());
  const FieldInfo* f = info ? info->Find("name_hint") : nullptr;
  if (!f && info) {
    if (const FieldInfo* id = info->Find("vid"); id && id->Ref(o).defined()) return VarName(id->Ref(o).get());
  }
  const auto* s = f ? f->Ref(o).as<StringObj>() : nullptr;
  return s ? std::string_view(s->data, s->size) : "";
}

std::string Brief(const Object* o) {
  if (!o) return "nothing";
  if (const Plan& p = PlanOf(o); p.shape == Shape::kString) {
    const auto* s = static_cast<const StringObj*>(o);
    return "\"" + std::string(s->data, std::min<size_t>(s->size, 60)) + "\"";
  } else if (p.shape == Shape::kArray) {
    return "an array of " + std::to_string(static_cast<const ArrayObj*>(o)->items.size());
  } else if (p.shape == Shape::kMap) {
    return "a map of " + std::to_string(static_cast<const MapObj*>(o)->entries.size());
  } else if (p.shape == Shape::kNDArray) {
    const auto& t = static_cast<const NDArrayObj*>(o)->dl_tensor;
    std::string s = "an NDArray " + runtime::DataType2String(t.dtype) + "[";
    for (int i = 0; i < t.ndim; ++i) s += (i ? ", " : "") + std::to_string(t.shape[i]);
    return s + "]";
  } else if (o->IsInstance<GlobalVarNode>()) {
    return "@" + std::string(NameOf(o));
  } else if (p.is_var) {
    return (o->IsInstance<RelayExprNode>() ? "%" : "") + std::string(VarName(o));
  } else if (o->IsInstance<TypeNode>() || o->IsInstance<PrimExprNode>() || o->IsInstance<OpNode>()) {
    std::string s = AsText(GetRef<ObjectRef>(o), false);
    size_t end = std::min<size_t>(s.find('\n'), 60);
    return s.substr(0, end);
  }
  // A larger expression is named by its kind and its callee.
  std::string s = o->GetTypeKey();
  if (const TypeInfo* info = TypeInfo::Get(o->type_index())) {
    if (const FieldInfo* f = info->Find("op"); f && f->kind == FieldKind::kObject) {
      if (const auto* op = f->Ref(o).as<OpNode>()) s += " of " + op->name.str();
    }
  }
  return s;
}

std::string ScalarText(const char* p, FieldKind kind) {
  char buf[40];
  switch (kind) {
    case FieldKind::kBool:
      return *reinterpret_cast<const bool*>(p) ? "True" : "False";
    case FieldKind::kInt32:
      return std::to_string(*reinterpret_cast<const int32_t*>(p));
    case FieldKind::kInt64:
      return std::to_string(*reinterpret_cast<const int64_t*>(p));
    case FieldKind::kUInt64:
      return std::to_string(*reinterpret_cast<const uint64_t*>(p));
    case FieldKind::kDouble:
      snprintf(buf, sizeof buf, "%.17g", *reinterpret_cast<const double*>(p));
      return buf;
    case FieldKind::kDataType:
      return runtime::DataType2String(*reinterpret_cast<const DataType*>(p));
    case FieldKind::kStdString:
      return "\"" + *reinterpret_cast<const std::string*>(p) + "\"";
    default:
      return "";
  }
}

std::string AnyText(const Any& a) {
  switch (a.type_code()) {
    case kBatonNull:
      return "None";
    case kBatonObject:
      return Brief(a.object());
    case kBatonFloat:
      return ScalarText(reinterpret_cast<const char*>(&a.raw().v_float64), FieldKind::kDouble);
    case kBatonInt:
      return std::to_string(a.raw().v_int64);
    case kBatonBool:
      return a.raw().v_int64 ? "True" : "False";
    case kBatonDType:
      return runtime::DataType2String(a.raw().v_dtype);
    default:
      return runtime::ValueKindName(a.raw());
  }
}

void Require(const Object* o, const char* what) {
  if (!o || PlanOf(o).shape != Shape::kIdentity) return;
  const TypeInfo* info = TypeInfo::Get(o->type_index());
  if (info && info->identity) return;
  throw runtime::TypeError("objects of type `" + o->GetTypeKey() + "` have no structural " + what);
}

}  // namespace baton::structural
