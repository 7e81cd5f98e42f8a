// SPDX-License-Identifier: Apache-2.0
#include <baton/ir/module.h>
#include <baton/runtime/named.h>
#include <baton/runtime/registry.h>
#include <baton/support/hash.h>
#include <baton/support/nearest.h>

namespace baton {
namespace {

const runtime::NamedNode<GlobalVarNode> named_functions;
const runtime::NamedNode<GlobalTypeVarNode> named_types;

/// Names are unique, and equal names are one function.
const runtime::MapObj::Entry* FindByName(const Map<GlobalVar, BaseFunc>& functions, std::string_view name) {
  return runtime::FindNamed(functions.get(), name);
}

/// Numbers the constructors of a data type, from a hash of its name on: constructors of two types have two tags, and
/// a type has the same ones in every module.
void NumberConstructors(const TypeData& type) {
  const uint64_t hash = support::HashString(type->header->name_hint.view());
  const auto first = static_cast<int64_t>(hash % 0x7ffff0) << 8;
  for (size_t i = 0; i < type->constructors.size(); ++i) {
    const ConstructorNode* c = type->constructors[static_cast<int64_t>(i)].get();
    const int64_t tag = first + static_cast<int64_t>(i);
    if (c->tag != tag) c->tag = tag;
  }
}

GlobalVar KeyOf(const runtime::MapObj::Entry& e) { return runtime::SlotAs<GlobalVar>(e.key); }

std::string Names(const Map<GlobalVar, BaseFunc>& functions) {
  std::string s;
  for (const auto& [v, f] : functions) s += (s.empty() ? "@" : ", @") + v->name_hint.str();
  return s.empty() ? "none" : s;
}

const RegisterNodes<ConstructorNode, TypeDataNode, IRModuleNode> registered_module;

}  // namespace

IRModule::IRModule(Map<GlobalVar, BaseFunc> functions, Map<GlobalTypeVar, TypeData> types) {
  IRModuleNode n;
  for (const auto& [var, type] : types) NumberConstructors(type);
  n.type_definitions = std::move(types);
  data_ = make_object<IRModuleNode>(std::move(n));
  auto* node = static_cast<IRModuleNode*>(data_.get());
  for (const auto& [var, func] : functions) node->Add(var, func);
}

GlobalVar IRModuleNode::GetGlobalVar(std::string_view name) const {
  if (const auto* e = FindByName(functions, name)) return KeyOf(*e);
  throw runtime::ValueError("the module has no function @" + std::string(name) + "; it has " + Names(functions));
}

bool IRModuleNode::ContainGlobalVar(std::string_view name) const { return FindByName(functions, name) != nullptr; }

BaseFunc IRModuleNode::Lookup(const GlobalVar& var) const {
  if (functions.count(var)) return functions.at(var);
  return Lookup(var->name_hint.view());
}

BaseFunc IRModuleNode::Lookup(std::string_view name) const { return functions.at(GetGlobalVar(name)); }

GlobalTypeVar IRModuleNode::GetGlobalTypeVar(std::string_view name) const {
  if (const auto* e = runtime::FindNamed(type_definitions.get(), name)) return runtime::SlotAs<GlobalTypeVar>(e->key);
  throw runtime::ValueError("the module has no data type " + std::string(name));
}

TypeData IRModuleNode::LookupTypeDef(const GlobalTypeVar& var) const {
  if (type_definitions.count(var)) return type_definitions.at(var);
  return type_definitions.at(GetGlobalTypeVar(var->name_hint.view()));
}

void IRModuleNode::Add(const GlobalVar& var, const BaseFunc& func, bool update) {
  if (!var.defined() || !func.defined())
    throw runtime::ValueError("a module maps a GlobalVar to a function, neither null");
  if (update && functions.count(var)) {
    functions.Set(var, func);
    return;
  }
  if (const auto* e = FindByName(functions, var->name_hint.view())) {
    if (!update)
      throw runtime::ValueError("the module has a function @" + var->name_hint.str() +
                                " already; ask for an update to replace it");
    GlobalVar old = KeyOf(*e);
    functions.Set(old, func);
    return;
  }
  functions.Set(var, func);
}

void IRModuleNode::Remove(const GlobalVar& var) {
  const auto* e = FindByName(functions, var->name_hint.view());
  if (!e)
    throw runtime::ValueError("the module has no function @" + var->name_hint.str() + "; it has " + Names(functions));
  functions.erase(KeyOf(*e));
}

void IRModuleNode::AddTypeDef(const GlobalTypeVar& var, const TypeData& type, bool update) {
  NumberConstructors(type);
  if (const auto* e = runtime::FindNamed(type_definitions.get(), var->name_hint.view())) {
    if (!update) throw runtime::ValueError("the module has a data type " + var->name_hint.str() + " already");
    const GlobalTypeVar old = runtime::SlotAs<GlobalTypeVar>(e->key);
    type_definitions.Set(old, type);
    return;
  }
  type_definitions.Set(var, type);
}

void IRModuleNode::Update(const ObjectRef& mod) {
  IRModule other = Downcast<IRModule>(mod);
  for (const auto& [var, type] : other->type_definitions) AddTypeDef(var, type, true);
  for (const auto& [var, func] : other->functions) Add(var, func, true);
}

namespace {
// For front ends modules are mutable; passes copy before they change one.
IRModuleNode* Mutable(const IRModule& m) { return const_cast<IRModuleNode*>(m.get()); }
}  // namespace

BATON_REGISTER_GLOBAL("ir.IRModule")
    .set_body_typed([](Map<GlobalVar, BaseFunc> functions, Map<GlobalTypeVar, TypeData> types) {
      return IRModule(functions, types);
    });
BATON_REGISTER_GLOBAL("ir.Module_Add").set_body_typed([](IRModule m, GlobalVar v, BaseFunc f, bool update) {
  Mutable(m)->Add(v, f, update);
});
BATON_REGISTER_GLOBAL("ir.Module_AddDef").set_body_typed([](IRModule m, GlobalTypeVar v, TypeData t, bool update) {
  Mutable(m)->AddTypeDef(v, t, update);
});
BATON_REGISTER_GLOBAL("ir.Module_Remove").set_body_typed([](IRModule m, GlobalVar v) { Mutable(m)->Remove(v); });
BATON_REGISTER_GLOBAL("ir.Module_GetGlobalVar").set_body_typed([](IRModule m, String name) {
  return m->GetGlobalVar(name.view());
});
BATON_REGISTER_GLOBAL("ir.Module_ContainGlobalVar").set_body_typed([](IRModule m, String name) {
  return m->ContainGlobalVar(name.view());
});
BATON_REGISTER_GLOBAL("ir.Module_Lookup").set_body_typed([](IRModule m, GlobalVar v) { return m->Lookup(v); });
BATON_REGISTER_GLOBAL("ir.Module_Lookup_str").set_body_typed([](IRModule m, String name) {
  return m->Lookup(name.view());
});
BATON_REGISTER_GLOBAL("ir.Module_GetGlobalVars").set_body_typed([](IRModule m) {
  Array<GlobalVar> out;
  for (const auto& [v, f] : m->functions) out.push_back(v);
  return out;
});
BATON_REGISTER_GLOBAL("ir.Module_Update").set_body_typed([](IRModule m, IRModule other) { Mutable(m)->Update(other); });
BATON_REGISTER_GLOBAL("ir.Module_Copy").set_body_typed([](IRModule m) { return m.Copy(); });
BATON_REGISTER_GLOBAL("ir.Module_GetGlobalTypeVar").set_body_typed([](IRModule m, String n) {
  return m->GetGlobalTypeVar(n.view());
});
BATON_REGISTER_GLOBAL("ir.Module_LookupDef").set_body_typed([](IRModule m, GlobalTypeVar v) {
  return m->LookupTypeDef(v);
});
BATON_REGISTER_GLOBAL("ir.Module_FromExpr").set_body_typed([](RelayExpr e, Map<GlobalVar, BaseFunc> more) {
  return IRModule::FromExpr(e, more);
});
BATON_REGISTER_GLOBAL("ir.BaseFunc_Attrs").set_body_typed([](BaseFunc f) { return f->attrs; });
BATON_REGISTER_GLOBAL("ir.BaseFuncWithAttr").set_body_typed([](BaseFunc f, String key, Any value) -> BaseFunc {
  const runtime::TypeInfo* info = runtime::TypeInfo::Get(f.type_index());
  BaseFunc copy(info->copy(f.get()));
  auto* n = const_cast<BaseFuncNode*>(copy.get());
  Map<String, Any> dict = n->attrs.defined() ? n->attrs->dict : Map<String, Any>();
  dict.Set(key, value);
  n->attrs = DictAttrs(dict);
  return copy;
});

}  // namespace baton
