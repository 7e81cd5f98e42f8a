// SPDX-License-Identifier: Apache-2.0
/// Where the tensors of a graph lie, and which of them each expression stands for.
#pragma once

#include <baton/relay/expr.h>

#include <deque>
#include <unordered_map>
#include <utility>
#include <vector>

#include "driver/size_words.h"

namespace baton::driver {

/// The place of a tensor.
struct TensorPlace {
  enum Kind { kIo, kConstant, kArena } kind = kArena;
  int index = 0;      // io slot, constant, or planned buffer
  int32_t word = -1;  // of an io slot: the word with the offset in it, -1 for its beginning
};

struct Leaf {
  TensorPlace place;
  TensorType type;
};
using Leaves = std::vector<Leaf>;

/// The tensors that each expression stands for. A tuple refers to its fields and copies nothing: tuples nested n deep
/// take n entries.
class GraphValues {
 public:
  bool Has(const relay::Expr& e) const { return values_.count(e.get()); }
  void Set(const Object* e, Leaves leaves) {
    lists_.push_back(std::move(leaves));
    values_[e] = {nullptr, lists_.back().data(), lists_.back().size()};
  }
  void SetSame(const relay::Expr& e, const relay::Expr& other) { values_[e.get()] = values_.at(other.get()); }
  void SetTuple(const relay::TupleNode* t) { values_[t] = {t, nullptr, 0}; }
  void SetField(const relay::TupleGetItemNode* g) {
    const Value of = values_.at(g->tuple.get());
    if (of.tuple) return SetSame(GetRef<relay::Expr>(g), of.tuple->fields[g->index]);
    // The fields before it may be tuples themselves.
    const auto* type = g->tuple->checked_type_.as<TupleTypeNode>();
    std::vector<TensorType> before, own;
    for (int64_t i = 0; i < g->index; ++i) FlattenSymbolic(type->fields[i], &before);
    FlattenSymbolic(type->fields[g->index], &own);
    values_[g] = {nullptr, of.list + before.size(), own.size()};
  }
  /// The place of a tensor.
  const Leaf& At(const relay::Expr& e) const { return *values_.at(e.get()).list; }
  Leaves LeavesOf(const relay::Expr& e) const {
    Leaves all;
    std::vector<Value> work{values_.at(e.get())};
    while (!work.empty()) {
      const Value v = work.back();
      work.pop_back();
      if (v.tuple) {
        for (size_t i = v.tuple->fields.size(); i-- > 0;) {
          work.push_back(values_.at(v.tuple->fields[static_cast<int64_t>(i)].get()));
        }
      } else {
        all.insert(all.end(), v.list, v.list + v.count);
      }
    }
    return all;
  }

 private:
  /// A tuple of the program's, or tensors in a row.
  struct Value {
    const relay::TupleNode* tuple = nullptr;
    const Leaf* list = nullptr;
    size_t count = 0;
  };
  std::unordered_map<const Object*, Value> values_;
  std::deque<Leaves> lists_;
};

}  // namespace baton::driver
