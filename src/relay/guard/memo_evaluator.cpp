// SPDX-License-Identifier: Apache-2.0
#include "relay/guard/memo_evaluator.h"

#include <baton/ir/structural.h>
#include <baton/relay/op.h>
#include <baton/runtime/scalar.h>
#include <baton/support/hash.h>
#include <baton/support/stack.h>

#include <cmath>
#include <cstring>
#include <unordered_set>

#include "relay/guard/reference.h"

namespace baton::relay {
namespace {

using runtime::LoadDouble;
using support::HashBytes;
using support::HashCombine;

/// Arrays smaller than this are found by their bytes alone: there are too many that are alike by chance.
constexpr int64_t kSnapElements = 16;
/// Arrays of one type that a new one is compared with, latest first.
constexpr size_t kSnapCandidates = 512;

uint64_t TypeHash(const NDArray& a) {
  const DataType t = a.dtype();
  uint64_t h = HashCombine(static_cast<uint64_t>(t.code()), static_cast<uint64_t>(t.bits()));
  h = HashCombine(h, static_cast<uint64_t>(t.lanes()));
  h = HashCombine(h, static_cast<uint64_t>(a.device().device_type));
  for (int64_t d : a.shape()) h = HashCombine(h, static_cast<uint64_t>(d));
  return h;
}

bool SameType(const NDArray& a, const NDArray& b) {
  return a.dtype() == b.dtype() && a.device().device_type == b.device().device_type && a.shape() == b.shape();
}

uint64_t ContentHash(const NDArray& dense) { return HashBytes(dense.data(), dense.nbytes(), TypeHash(dense)); }

bool OnHost(const NDArray& a) { return a.device().device_type == kDLCPU; }

/// The distance from 1 to the next number.
double Epsilon(DataType t) {
  if (t.is_bfloat16()) return 0x1p-7;
  if (t.bits() == 16) return 0x1p-10;
  if (t.bits() == 32) return 0x1p-23;
  if (t.bits() == 64) return 0x1p-52;
  return 0;  // the small types are not perturbed
}
bool IsFloat(DataType t) { return (t.is_float() || t.is_bfloat16()) && t.lanes() == 1 && Epsilon(t) > 0; }

bool Near(double a, double b, double relative, double absolute) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return true;
  if (!std::isfinite(a) || !std::isfinite(b)) return false;
  return std::fabs(a - b) <= absolute + relative * std::fmax(std::fabs(a), std::fabs(b));
}

/// All elements; some first, which tell most arrays apart.
template <class Load>
bool AllNear(const NDArray& a, const NDArray& b, double scale, Load load) {
  const double eps = Epsilon(a.dtype()), relative = 32 * eps, absolute = 8 * eps * scale;
  const int64_t n = a.numel(), step = n / 13 + 1;
  for (int64_t i = 0; i < n; i += step) {
    if (!Near(load(a, i), load(b, i), relative, absolute)) return false;
  }
  for (int64_t i = 0; i < n; ++i) {
    if (!Near(load(a, i), load(b, i), relative, absolute)) return false;
  }
  return true;
}

double LargestFinite(const NDArray& a) {
  double most = 0;
  for (int64_t i = 0; i < a.numel(); ++i) {
    const double x = std::fabs(LoadDouble(a.data(), a.dtype(), i));
    if (std::isfinite(x) && x > most) most = x;
  }
  return most;
}

bool IsExact(const Op& op) {
  const OpDef* def = DefOf(op);
  return def && def->traits.values >= Values::kExact;
}

uint64_t Mix(uint64_t x) {  // splitmix64
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

ObjectRef Run(const Op& op, const Attrs& attrs, const Array<ObjectRef>& args) {
  NDArray out = RunReference(op, attrs, args);
  return out.defined() ? ObjectRef(out) : Evaluator::Get().EvalOp(op, attrs, args);
}

void Flatten(const ObjectRef& value, Array<ObjectRef>* out, uint64_t* key) {
  std::vector<ObjectRef> work{value};
  while (!work.empty()) {
    ObjectRef v = work.back();
    work.pop_back();
    if (v.as<runtime::ArrayObj>()) {
      Array<ObjectRef> fields = Downcast<Array<ObjectRef>>(v);
      *key = HashCombine(*key, 0x7u + fields.size());
      for (size_t i = fields.size(); i-- > 0;) work.push_back(fields[static_cast<int64_t>(i)]);
    } else {
      *key = HashCombine(*key, reinterpret_cast<uintptr_t>(v.get()));
      out->push_back(v);
    }
  }
}

bool SameObjects(const Array<ObjectRef>& a, const Array<ObjectRef>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!a[static_cast<int64_t>(i)].same_as(b[static_cast<int64_t>(i)])) return false;
  }
  return true;
}

int64_t BytesOf(const ObjectRef& value) {
  int64_t out = 0;
  std::vector<ObjectRef> work{value};
  while (!work.empty()) {
    ObjectRef v = work.back();
    work.pop_back();
    if (v.as<runtime::NDArrayObj>()) {
      out += static_cast<int64_t>(Downcast<NDArray>(v).nbytes());
    } else if (v.as<runtime::ArrayObj>()) {
      for (const ObjectRef& f : Downcast<Array<ObjectRef>>(v)) work.push_back(f);
    }
  }
  return out;
}

}  // namespace

void MemoEvaluator::Start(const EvalMode& mode) {
  mode_ = mode;
  calls_ = bytes_ = 0;
  draws_ = Mix(mode.seed);
}

void MemoEvaluator::Charge(int64_t bytes) {
  bytes_ += bytes;
  if (calls_ > mode_.max_calls) {
    throw RuntimeError("BudgetError: the evaluation takes more than " + std::to_string(mode_.max_calls) + " calls");
  }
  if (bytes_ > mode_.max_bytes) {
    throw RuntimeError("BudgetError: the evaluation makes more than " + std::to_string(mode_.max_bytes >> 20) + " MiB");
  }
}

void MemoEvaluator::OnCall() {
  ++calls_;
  Charge(0);
}

uint64_t MemoEvaluator::HashOf(const Attrs& attrs) {
  if (!attrs.defined()) return 0;
  auto [it, added] = attrs_.try_emplace(attrs.get());
  if (added) it->second = {attrs, StructuralHash(attrs)};
  return it->second.hash;
}

ObjectRef MemoEvaluator::EvalOp(const Op& op, const Attrs& attrs, const Array<ObjectRef>& args) {
  ++calls_;
  if (Evaluator::Get().OnlyPlaces(op)) return args[0];
  if (mode_.noise > 0) {
    ObjectRef out = Run(op, attrs, args);
    Charge(BytesOf(out));
    return IsExact(op) ? out : Perturbed(out);
  }
  const OpDef* def = DefOf(op);
  if (!def || def->stateful) {
    ObjectRef out = Run(op, attrs, args);
    Charge(BytesOf(out));
    return out;
  }
  Array<ObjectRef> known, flat;
  uint64_t key = HashCombine(reinterpret_cast<uintptr_t>(op.get()), HashOf(attrs));
  for (const ObjectRef& a : args) {
    known.push_back(Canonical(a));
    Flatten(known[static_cast<int64_t>(known.size()) - 1], &flat, &key);
  }
  auto [begin, end] = calls_by_key_.equal_range(key);
  for (auto it = begin; it != end; ++it) {
    Entry& e = it->second;
    if (!e.op.same_as(op) || !SameObjects(e.args, flat)) continue;
    if (!e.attrs.same_as(attrs) && !StructuralEqual(e.attrs, attrs)) continue;
    e.generation = generation_;
    Charge(e.bytes);
    return e.result;
  }
  ++misses_;
  ObjectRef out = CanonicalResult(Run(op, attrs, known), flat);
  const int64_t bytes = BytesOf(out);
  calls_by_key_.emplace(key, Entry{op, attrs, flat, out, bytes, generation_});
  Charge(bytes);
  return out;
}

ObjectRef MemoEvaluator::EvalPrimitive(const Function& func, const Array<ObjectRef>& args) {
  return InterpretCall(Function(func->params, func->body), args, IRModule(Map<GlobalVar, BaseFunc>()), *this);
}

ObjectRef MemoEvaluator::Canonical(const ObjectRef& value) {
  if (value.as<runtime::NDArrayObj>()) return CanonicalArray(Downcast<NDArray>(value));
  if (!value.as<runtime::ArrayObj>()) return value;
  Array<ObjectRef> out;
  bool changed = false;
  for (const ObjectRef& f : Downcast<Array<ObjectRef>>(value)) {
    out.push_back(support::WithStack([&] { return Canonical(f); }));
    changed |= !out[static_cast<int64_t>(out.size()) - 1].same_as(f);
  }
  return changed ? ObjectRef(out) : value;
}

ObjectRef MemoEvaluator::CanonicalResult(const ObjectRef& value, const Array<ObjectRef>& operands) {
  if (value.as<runtime::ArrayObj>()) {
    Array<ObjectRef> out;
    for (const ObjectRef& f : Downcast<Array<ObjectRef>>(value)) {
      out.push_back(support::WithStack([&] { return CanonicalResult(f, operands); }));
    }
    return out;
  }
  if (!value.as<runtime::NDArrayObj>()) return value;
  NDArray given = Downcast<NDArray>(value), found = CanonicalArray(given);
  if (!OnHost(found) || !IsFloat(found.dtype()) || found.numel() < kSnapElements) return found;
  // One that was there before is not new; whether it was a result decides if it stands for others.
  auto [begin, end] = by_content_.equal_range(ContentHash(found));
  for (auto it = begin; it != end; ++it) {
    Known& k = it->second;
    if (!k.array.same_as(found)) continue;
    if (k.result) return found;
    if (mode_.snap) {
      if (NDArray near = FindNear(found, operands); near.defined()) {
        canonical_[given.get()] = Alias{given, near, generation_};
        canonical_[found.get()] = Alias{found, near, generation_};
        return near;
      }
    }
    k.result = true;
    near_[TypeHash(found)].push_back(found);
    return found;
  }
  return found;
}

NDArray MemoEvaluator::CanonicalArray(const NDArray& a) {
  if (auto it = canonical_.find(a.get()); it != canonical_.end()) {
    it->second.generation = generation_;
    return it->second.canonical;
  }
  if (!OnHost(a) || (a.dtype().bits() * a.dtype().lanes()) % 8 != 0) return a;
  NDArray dense = a.Contiguous(), found;
  const uint64_t hash = ContentHash(dense);
  auto [begin, end] = by_content_.equal_range(hash);
  for (auto it = begin; it != end && !found.defined(); ++it) {
    const NDArray& b = it->second.array;
    if (SameType(dense, b) && std::memcmp(dense.data(), b.data(), dense.nbytes()) == 0) {
      it->second.generation = generation_;
      found = b;
    }
  }
  if (!found.defined()) {
    found = dense;
    by_content_.emplace(hash, Known{dense, false, generation_});
  }
  canonical_[a.get()] = Alias{a, found, generation_};
  if (!canonical_.count(found.get())) canonical_[found.get()] = Alias{found, found, generation_};
  return canonical_[found.get()].canonical;
}

NDArray MemoEvaluator::FindNear(const NDArray& a, const Array<ObjectRef>& operands) {
  auto it = near_.find(TypeHash(a));
  if (it == near_.end()) return NDArray();
  const std::vector<NDArray>& all = it->second;
  const double scale = LargestFinite(a);
  const size_t last = all.size() > kSnapCandidates ? all.size() - kSnapCandidates : 0;
  for (size_t i = all.size(); i-- > last;) {
    const NDArray& b = all[i];
    bool operand = false;
    for (const ObjectRef& o : operands) operand |= o.same_as(b);
    if (operand || !SameType(a, b)) continue;
    const bool same =
        a.dtype() == DataType::Float(32)
            ? AllNear(a, b, scale, [](const NDArray& x, int64_t k) -> double { return x.ptr<float>()[k]; })
            : AllNear(a, b, scale, [](const NDArray& x, int64_t k) { return LoadDouble(x.data(), x.dtype(), k); });
    if (same) return b;
  }
  return NDArray();
}

ObjectRef MemoEvaluator::Perturbed(const ObjectRef& value) {
  if (value.as<runtime::ArrayObj>()) {
    Array<ObjectRef> out;
    for (const ObjectRef& f : Downcast<Array<ObjectRef>>(value)) {
      out.push_back(support::WithStack([&] { return Perturbed(f); }));
    }
    return out;
  }
  if (!value.as<runtime::NDArrayObj>()) return value;
  NDArray a = Downcast<NDArray>(value);
  if (!OnHost(a) || !IsFloat(a.dtype())) return value;
  NDArray out = a.Copy();  // a result may be an operand, or a view of one
  const double unit = mode_.noise * Epsilon(a.dtype());
  for (int64_t i = 0; i < out.numel(); ++i) {
    // Uniform in [-1, 1).
    const double u = static_cast<double>(static_cast<int64_t>(Mix(draws_++)) >> 11) * 0x1p-52;
    const double x = LoadDouble(out.data(), out.dtype(), i);
    runtime::StoreDouble(out.data(), out.dtype(), i, x * (1 + u * unit));
  }
  return out;
}

void MemoEvaluator::NextGeneration() {
  const uint64_t oldest = generation_ > 1 ? generation_ - 1 : 1;
  std::erase_if(calls_by_key_, [&](const auto& kv) { return kv.second.generation < oldest; });
  // Arrays live as long as the calls that gave or took them.
  std::unordered_set<const Object*> live;
  for (const auto& [key, entry] : calls_by_key_) {
    Array<ObjectRef> flat = entry.args;
    uint64_t unused = 0;
    Flatten(entry.result, &flat, &unused);
    for (const ObjectRef& v : flat) live.insert(v.get());
  }
  std::erase_if(canonical_, [&](const auto& kv) {
    return kv.second.generation < oldest && !live.count(kv.second.canonical.get());
  });
  std::erase_if(by_content_,
                [&](const auto& kv) { return kv.second.generation < oldest && !live.count(kv.second.array.get()); });
  near_.clear();
  attrs_.clear();
  // The rest may be met again; in the order of the hashes, which is the same in each run.
  for (const auto& [hash, known] : by_content_) {
    if (known.result) {
      near_[TypeHash(known.array)].push_back(known.array);
    }
  }
  ++generation_;
}

}  // namespace baton::relay
