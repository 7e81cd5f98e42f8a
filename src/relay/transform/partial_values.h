// SPDX-License-Identifier: Apache-2.0
// Abstract values of partial evaluation, and the blocks that receive the residual program.
#pragma once

#include <baton/relay/expr.h>
#include <baton/runtime/interrupt.h>
#include <baton/support/pointer_map.h>

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

namespace baton::relay::transform::partial {

struct PartialValue;
using PValue = std::shared_ptr<const PartialValue>;
/// Values of a few variables.
using Bindings = std::vector<std::pair<const Object*, PValue>>;

/// Types that stand for type parameters.
using Types = std::vector<std::pair<const Object*, Type>>;

struct Closure {
  Function func;
  std::shared_ptr<const Bindings> captured;
  const Object* self = nullptr;  ///< variable by which the function calls itself
  bool recursive = false;
  bool typed = true;  ///< what the type parameters around it stand for is known: `types`
  Types types;
};

struct PartialValue {
  enum Kind { kUnknown, kTensor, kTuple, kData, kClosure, kRef } kind = kUnknown;
  Expr left;  ///< stands for the value in what is left
  ObjectRef tensor;
  std::vector<PValue> fields;  ///< of a tuple or of data
  Constructor constructor;
  std::shared_ptr<Closure> closure;
  int64_t ref = -1;
  int64_t size = 0;  ///< number of constructors that are known

  PartialValue() = default;
  PartialValue(const PartialValue&) = default;
  PartialValue& operator=(const PartialValue&) = default;
  /// Values are as deep as the program: what only this one holds ends one after the other, not one within the other.
  ~PartialValue() {
    PValue list;
    GiveUp(&list);
    while (list) {
      const PValue v = std::move(list);
      auto* last = const_cast<PartialValue*>(v.get());  // not shared
      list = std::move(last->next);
      last->GiveUp(&list);
    }
  }

 private:
  /// Hangs what only this value holds onto `list`.
  void GiveUp(PValue* list) {
    const auto give = [list](PValue& v) {
      if (!v || v.use_count() != 1) return;
      const_cast<PartialValue*>(v.get())->next = std::move(*list);
      *list = std::move(v);
    };
    for (PValue& f : fields) give(f);
    if (!closure || closure.use_count() != 1 || !closure->captured || closure->captured.use_count() != 1) return;
    for (auto& [name, v] : const_cast<Bindings&>(*closure->captured)) give(v);
  }
  PValue next;  ///< while it ends
};

PValue Unknown(Expr left);

using Uses = PointerMap<int64_t>;

/// Bindings of one block, in order.
class LetBlock {
 public:
  LetBlock(Uses* uses, const String& name) : uses_(uses), name_(name) {}
  Expr Push(Expr value, const Type& type, const Span& span) {
    Var v(name_, type);
    v->span = span;
    return Bind(v, std::move(value));
  }
  Expr Bind(const Var& v, Expr value);
  /// The block as an expression. Values used only during evaluation are not bound: their types would be unknown.
  Expr Close(Expr result);

 private:
  Uses* uses_;
  const String& name_;  ///< of what had none
  std::vector<std::pair<Var, Expr>> bindings_;
};

/// Known contents of references.
using Store = std::unordered_map<int64_t, PValue>;

/// Values of the variables of a function, which may be as many as the program has.
class Env {
 public:
  Env() = default;
  Env(Env&&) = default;
  Env& operator=(Env&&) = default;
  /// One by one, so that an interrupt does not have to wait for the last.
  void Clear() {
    for (; !values_.empty(); values_.pop_back()) baton::runtime::PollInterrupt();
    places_.Clear();
  }
  const PValue* Find(const Object* var) const {
    const uint32_t* at = places_.Find(var);
    return at ? &values_[*at] : nullptr;
  }
  void Set(const Object* var, PValue value) {
    bool fresh = false;
    uint32_t& at = places_.Insert(var, &fresh);
    if (!fresh) {
      values_[at] = std::move(value);
      return;
    }
    at = static_cast<uint32_t>(values_.size());
    values_.push_back(std::move(value));
  }

 private:
  PointerMap<uint32_t> places_;  ///< in `values_`
  std::vector<PValue> values_;
};

struct EvalFrame {
  Env env;
  bool typed = true;  ///< what type parameters stand for is known: `types`
  Types types;
};

}  // namespace baton::relay::transform::partial
