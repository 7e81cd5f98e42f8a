// SPDX-License-Identifier: Apache-2.0
// Tables and visitors, each made of the other.
#include <baton/runtime/reflection.h>

namespace baton::runtime {

void VisitField(Object* obj, const FieldInfo& f, AttrVisitor* v) {
  char* p = reinterpret_cast<char*>(obj) + f.offset;
  switch (f.kind) {
    case FieldKind::kBool:
      v->Visit(f.name, reinterpret_cast<bool*>(p));
      break;
    case FieldKind::kInt32:
      v->Visit(f.name, reinterpret_cast<int*>(p));
      break;
    case FieldKind::kInt64:
      v->Visit(f.name, reinterpret_cast<int64_t*>(p));
      break;
    case FieldKind::kUInt64:
      v->Visit(f.name, reinterpret_cast<uint64_t*>(p));
      break;
    case FieldKind::kDouble:
      v->Visit(f.name, reinterpret_cast<double*>(p));
      break;
    case FieldKind::kDataType:
      v->Visit(f.name, reinterpret_cast<DataType*>(p));
      break;
    case FieldKind::kObject:
      v->Visit(f.name, reinterpret_cast<ObjectRef*>(p));
      break;
    case FieldKind::kStdString:
      v->Visit(f.name, reinterpret_cast<std::string*>(p));
      break;
    case FieldKind::kHandle:
      v->Visit(f.name, reinterpret_cast<void**>(p));
      break;
  }
}

void VisitTable(Object* obj, AttrVisitor* v) {
  const TypeInfo* info = TypeInfo::Get(obj->type_index());
  for (size_t i = 0; info && i < info->fields.size(); ++i) VisitField(obj, info->fields[i], v);
}

namespace {

class Collector final : public AttrVisitor {
 public:
  Collector(TypeInfo* info, Object* instance) : info_(info), instance_(instance) {}
  void Visit(const char* key, double* p) final { Put(key, p, FieldKind::kDouble, "float"); }
  void Visit(const char* key, int64_t* p) final { Put(key, p, FieldKind::kInt64, "int"); }
  void Visit(const char* key, uint64_t* p) final { Put(key, p, FieldKind::kUInt64, "int"); }
  void Visit(const char* key, int* p) final { Put(key, p, FieldKind::kInt32, "int"); }
  void Visit(const char* key, bool* p) final { Put(key, p, FieldKind::kBool, "bool"); }
  void Visit(const char* key, std::string* p) final { Put(key, p, FieldKind::kStdString, "str"); }
  void Visit(const char* key, void** p) final { Put(key, p, FieldKind::kHandle, "handle"); }
  void Visit(const char* key, DataType* p) final { Put(key, p, FieldKind::kDataType, "dtype"); }
  void Visit(const char* key, ObjectRef* p) final {
    VisitRef(key, p, {"Object", [](const BatonValue& in, Any* out) {
                        *out = Any(ValueTraits<ObjectRef>::From(in));
                        return true;
                      }});
  }

 protected:
  void VisitRef(const char* key, ObjectRef* p, const RefKind& kind) final {
    Put(key, p, FieldKind::kObject, kind.name, kind.convert);
  }

 private:
  void Put(const char* key, const void* p, FieldKind kind, const std::string& type,
           bool (*convert)(const BatonValue&, Any*) = nullptr) {
    FieldInfo f;
    f.name = key;
    f.doc = "";
    f.type_name = type;
    f.kind = kind;
    // Such a class cannot say which of its references may be null.
    if (kind == FieldKind::kObject) f.flags = kNullable;
    f.offset = static_cast<uint32_t>(static_cast<const char*>(p) - reinterpret_cast<const char*>(instance_));
    f.convert = convert;
    f.default_value = f.Get(instance_);
    info_->fields.push_back(std::move(f));
  }
  TypeInfo* info_;
  Object* instance_;
};

}  // namespace

void CollectVisited(TypeInfo* info, Object* instance, void (*visit)(Object*, AttrVisitor*)) {
  Collector c(info, instance);
  visit(instance, &c);
}

}  // namespace baton::runtime
