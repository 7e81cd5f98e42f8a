// SPDX-License-Identifier: Apache-2.0
#include <baton/ir/op.h>
#include <baton/runtime/registry.h>
#include <baton/support/nearest.h>

#include <deque>
#include <map>
#include <mutex>
#include <shared_mutex>

namespace baton {
namespace {

struct OpTable {
  std::shared_mutex mutex;
  std::map<std::string, Op, std::less<>> ops;
  std::deque<std::map<std::string, Any, std::less<>>> attrs;  // by op index
  std::map<std::string, Any (*)(const Op&), std::less<>> slots;
  static OpTable& Get() {
    static auto* t = new OpTable;
    return *t;
  }
};

const RegisterNodes<OpArgNode, OpNode> registered_op;

}  // namespace

const Op* Op::Find(std::string_view name) {
  OpTable& t = OpTable::Get();
  std::shared_lock lock(t.mutex);
  auto it = t.ops.find(name);
  return it == t.ops.end() ? nullptr : &it->second;
}

const Op& Op::Get(std::string_view name) {
  if (const Op* op = Find(name)) return *op;
  throw CompileError("there is no operator `" + std::string(name) + "`" + support::DidYouMean(name, ListNames()));
}

Op Op::GetOrCreate(std::string_view name) {
  if (const Op* op = Find(name)) return *op;
  OpTable& t = OpTable::Get();
  std::unique_lock lock(t.mutex);
  auto it = t.ops.find(name);
  if (it == t.ops.end()) {
    OpNode n;
    n.name = String(name);
    n.index = static_cast<int64_t>(t.attrs.size());
    t.attrs.emplace_back();
    it = t.ops.emplace(std::string(name), Op(std::move(n))).first;
  }
  return it->second;
}

std::vector<std::string> Op::ListNames() {
  OpTable& t = OpTable::Get();
  std::shared_lock lock(t.mutex);
  std::vector<std::string> out;
  for (const auto& [name, op] : t.ops) out.push_back(name);
  return out;
}

Any Op::GetAttrValue(const char* key) const {
  OpTable& t = OpTable::Get();
  std::shared_lock lock(t.mutex);
  const auto& m = t.attrs[(*this)->index];
  auto it = m.find(std::string_view(key));
  if (it != m.end()) return it->second;
  auto slot = t.slots.find(std::string_view(key));
  if (slot == t.slots.end()) return Any();
  lock.unlock();
  return slot->second(*this);
}

void Op::DefineSlot(const char* key, Any (*get)(const Op&)) {
  OpTable& t = OpTable::Get();
  std::unique_lock lock(t.mutex);
  t.slots[key] = get;
}

void Op::SetAttrValue(const char* key, Any value) const {
  OpTable& t = OpTable::Get();
  std::unique_lock lock(t.mutex);
  t.attrs[(*this)->index][key] = std::move(value);
}

BATON_REGISTER_GLOBAL("ir.ListOpNames").set_body_typed([] {
  Array<String> out;
  for (const std::string& n : Op::ListNames()) out.push_back(n);
  return out;
});
BATON_REGISTER_GLOBAL("ir.GetOp").set_body_typed([](String name) { return Op::Get(name.view()); });
BATON_REGISTER_GLOBAL("ir.OpGetAttr").set_body_typed([](Op op, String key) { return op.GetAttrValue(key.c_str()); });
BATON_REGISTER_GLOBAL("ir.OpSetAttr").set_body_typed([](Op op, String key, Any v) { op.SetAttrValue(key.c_str(), v); });

}  // namespace baton
