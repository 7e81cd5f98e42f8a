// SPDX-License-Identifier: Apache-2.0
#include <baton/runtime/interrupt.h>
#include <relay/transform/device_domains.h>

#include <utility>

namespace baton::relay {

DeviceDomains::Id DeviceDomains::OfType(const Type& type) {
  const auto* f = type.as<FuncTypeNode>();
  if (!f) return Leaf();
  keep_.push_back(type);
  functions_.push_back({f});
  return -static_cast<Id>(functions_.size());
}

DeviceDomains::Id DeviceDomains::FindFunction(Id id) {
  auto same = [this](Id i) -> Id& { return functions_[-i - 1].same; };
  Id root = id;
  while (same(root)) root = same(root);
  while (id != root) {
    Id next = same(id);
    same(id) = root;
    id = next;
  }
  return root;
}

const std::vector<DeviceDomains::Id>& DeviceDomains::SignatureOf(Id function) {
  Func& f = functions_[-FindFunction(function) - 1];
  if (f.signature.empty()) {
    std::vector<Id> signature;
    for (const Type& t : f.type->arg_types) signature.push_back(OfType(t));
    signature.push_back(OfType(f.type->ret_type));
    f.signature = std::move(signature);
  }
  return f.signature;
}

DeviceDomains::Id DeviceDomains::ResultOf(Id id) {
  std::vector<Id> path;
  while (IsFunction(id)) {
    const Id function = FindFunction(id);
    const Id known = functions_[-function - 1].result;
    if (known == kNoResult) path.push_back(function);
    id = known == kNoResult ? SignatureOf(function).back() : known;
  }
  for (Id function : path) functions_[-function - 1].result = id;
  return id;
}

void DeviceDomains::Leaves(Id id, std::vector<Id>* out) {
  std::vector<Id> work{id};
  while (!work.empty()) {
    Id i = work.back();
    work.pop_back();
    if (!IsFunction(i)) {
      out->push_back(i);
      continue;
    }
    const auto& signature = SignatureOf(i);
    work.insert(work.end(), signature.rbegin(), signature.rend());
  }
}

void DeviceDomains::Merge(Id a, Id b, const ExprNode* by, const char* rule) {
  Id x = Find(a), y = Find(b);
  if (x == y) return;
  if (device_[x] != kUnknown && device_[y] != kUnknown && device_[x] != device_[y]) {
    if (conflicts_.size() < 50) conflicts_.push_back({Nearest(a), Nearest(b), {a, b, by, rule}});
    return;
  }
  edges_.push_back({a, b, by, rule});
  // The older one stays: roots do not depend on anything but the order of equations.
  if (x > y) std::swap(x, y);
  if (device_[x] == kUnknown) device_[x] = device_[y];
  parent_[y] = x;
}

void DeviceDomains::Unify(Id a, Id b, const ExprNode* by, const char* rule) {
  if (!IsFunction(a) && !IsFunction(b)) return Merge(a, b, by, rule);
  std::vector<std::pair<Id, Id>> work{{a, b}};
  std::vector<Id> leaves;
  while (!work.empty()) {
    auto [x, y] = work.back();
    work.pop_back();
    if (IsFunction(x)) x = FindFunction(x);
    if (IsFunction(y)) y = FindFunction(y);
    if (x == y) continue;
    if (!IsFunction(x) && !IsFunction(y)) {
      Merge(x, y, by, rule);
    } else if (IsFunction(x) && IsFunction(y) && ArityOf(x) == ArityOf(y)) {
      Share(x, y, &work);
    } else {
      // A function in a tuple, a reference or data: all of it lives where that does.
      leaves.clear();
      Leaves(x, &leaves);
      Leaves(y, &leaves);
      for (size_t i = 1; i < leaves.size(); ++i) Merge(leaves[0], leaves[i], by, rule);
    }
  }
}

void DeviceDomains::Share(Id x, Id y, std::vector<std::pair<Id, Id>>* work) {
  Func &f = functions_[-x - 1], &g = functions_[-y - 1];
  // Each of the two types keeps its own components: a type parameter may stand for a function type.
  const bool one = f.type == g.type;
  if (!one || (!f.signature.empty() && !g.signature.empty())) {
    const std::vector<Id>&p = SignatureOf(x), &q = SignatureOf(y);
    for (size_t i = p.size(); i-- > 0;) work->push_back({p[i], q[i]});
  }
  if (!one) return;
  if (f.signature.empty() && !g.signature.empty()) {
    f.same = y;
  } else {
    g.same = x;
  }
}

void DeviceDomains::Set(Id id, int64_t device, const ExprNode* by, const char* what) {
  std::vector<Id> leaves;
  Leaves(id, &leaves);
  for (Id leaf : leaves) {
    Id root = Find(leaf);
    if (device_[root] != kUnknown && device_[root] != device) {
      if (conflicts_.size() < 50)
        conflicts_.push_back({Nearest(leaf), {leaf, device, by, what}, {leaf, leaf, by, what}});
      continue;
    }
    device_[root] = device;
    sources_.push_back({leaf, device, by, what});
  }
}

bool DeviceDomains::Try(Id a, Id b, const ExprNode* by, const char* rule) {
  if (IsFunction(a) || IsFunction(b)) {
    Unify(a, b, by, rule);  // functions are not copied
    return true;
  }
  const int64_t x = DeviceOf(a), y = DeviceOf(b);
  if (x != kUnknown && y != kUnknown && x != y) return false;
  Merge(a, b, by, rule);
  return true;
}

void DeviceDomains::Default(int64_t device) {
  default_ = device;
  for (size_t i = 0; i < parent_.size(); ++i) {
    if (parent_[i] == static_cast<Id>(i) && device_[i] == kUnknown) device_[i] = device;
  }
}

DeviceDomains::Adjacency DeviceDomains::Adjacent() const {
  Adjacency out;
  out.first.assign(parent_.size() + 1, 0);
  for (const Edge& e : edges_) ++out.first[e.a + 1], ++out.first[e.b + 1];
  for (size_t i = 1; i < out.first.size(); ++i) out.first[i] += out.first[i - 1];
  out.edge.resize(2 * edges_.size());
  std::vector<int32_t> at(out.first.begin(), out.first.end() - 1);
  for (size_t i = 0; i < edges_.size(); ++i) {
    out.edge[at[edges_[i].a]++] = static_cast<int32_t>(i);
    out.edge[at[edges_[i].b]++] = static_cast<int32_t>(i);
  }
  return out;
}

DeviceDomains::Source DeviceDomains::Nearest(Id leaf) const {
  Adjacency adjacent = Adjacent();
  std::vector<int32_t> source(parent_.size(), -1);
  for (size_t i = sources_.size(); i-- > 0;) source[sources_[i].leaf] = static_cast<int32_t>(i);
  std::vector<bool> seen(parent_.size());
  std::vector<Id> queue{leaf};
  seen[leaf] = true;
  for (size_t q = 0; q < queue.size(); ++q) {
    baton::runtime::PollInterrupt();
    Id i = queue[q];
    if (source[i] >= 0) return sources_[source[i]];
    for (int32_t k = adjacent.first[i]; k < adjacent.first[i + 1]; ++k) {
      const Edge& e = edges_[adjacent.edge[k]];
      Id other = e.a == i ? e.b : e.a;
      if (!seen[other]) {
        seen[other] = true;
        queue.push_back(other);
      }
    }
  }
  return {leaf, kUnknown, nullptr, "the default"};
}

std::vector<DeviceDomains::Cause> DeviceDomains::Causes() const {
  Adjacency adjacent = Adjacent();
  std::vector<Cause> out(parent_.size());
  std::vector<Id> queue;
  for (size_t i = 0; i < sources_.size(); ++i) {
    if (out[sources_[i].leaf].source >= 0) continue;
    out[sources_[i].leaf].source = static_cast<int32_t>(i);
    queue.push_back(sources_[i].leaf);
  }
  for (size_t q = 0; q < queue.size(); ++q) {
    baton::runtime::PollInterrupt();
    Id i = queue[q];
    for (int32_t k = adjacent.first[i]; k < adjacent.first[i + 1]; ++k) {
      const Edge& e = edges_[adjacent.edge[k]];
      Id other = e.a == i ? e.b : e.a;
      if (out[other].source >= 0) continue;
      out[other] = {out[i].source, adjacent.edge[k]};
      queue.push_back(other);
    }
  }
  return out;
}

}  // namespace baton::relay
