// SPDX-License-Identifier: Apache-2.0
// The children of a node, derived from its Describe at compile time. A child is a described field whose type belongs to
// the family that the caller names (expressions, statements, types), or an element of an array of such. Children come
// in the order of the description. Default visits, rebuilds and comparisons are written over these functions, so that a
// new node, or a new field of a node, is declared in one place.
#pragma once

#include <baton/runtime/reflection.h>

#include <type_traits>
#include <utility>

namespace baton {

/// The kinds of reference that count as children.
template <class... Bases>
struct Family {
  template <class T>
  static constexpr bool kHas = (std::is_base_of_v<Bases, T> || ...);
  static constexpr bool Takes(unsigned) { return true; }
};
/// The same without fields that bind a variable.
template <class... Bases>
struct FamilyOfUses : Family<Bases...> {
  static constexpr bool Takes(unsigned flags) { return !(flags & runtime::kBinds); }
};
/// Those fields alone.
template <class... Bases>
struct FamilyOfBinders : Family<Bases...> {
  static constexpr bool Takes(unsigned flags) { return flags & runtime::kBinds; }
};

namespace detail {

/// The type of an array's elements; void for anything else.
template <class T>
struct ElementOf {
  using Type = void;
};
template <class T>
struct ElementOf<Array<T>> {
  using Type = T;
};
template <class Fam, class T>
inline constexpr bool kIsArrayOf = Fam::template kHas<typename ElementOf<T>::Type>;

inline bool IsMissing(const ObjectRef& child, unsigned flags) {
  return (flags & runtime::kNullable) && !child.defined();
}

constexpr unsigned FlagOf(runtime::FieldFlag flag) { return flag; }
constexpr unsigned FlagOf(const auto&) { return 0; }

/// Receives the fields from Describe.
template <class F>
struct FieldReceiver {
  F& f;
  template <auto M, class... Opts>
  constexpr void operator()(runtime::FieldTag<M> tag, const char*, Opts... opts) {
    f(tag, (FlagOf(opts) | ... | 0u));
  }
};
template <class T, class D>
constexpr void DescribeFields(D& d) {
  if constexpr (requires { typename T::ParentType; }) {
    using P = typename T::ParentType;
    DescribeFields<P>(d);
    if constexpr (runtime::HasOwnDescribe<T>) {
      if constexpr (runtime::HasOwnDescribe<P>) {
        if (&T::template Describe<D> != &P::template Describe<D>) T::Describe(d);
      } else {
        T::Describe(d);
      }
    }
  }
}

/// The elements mapped by `map`; the same array if none changed.
template <class T, class F>
Array<T> MapArray(const Array<T>& in, F& map) {
  Array<T> out{ObjectPtr<Object>(nullptr)};
  for (size_t i = 0; i < in.size(); ++i) {
    T x = Downcast<T>(map(in[i]));
    if (!out.get()) {
      if (x.same_as(in[i])) continue;
      out = Array<T>();
      out.reserve(in.size());
      for (size_t j = 0; j < i; ++j) out.push_back(in[j]);
    }
    out.push_back(x);
  }
  return out.get() ? out : in;
}

}  // namespace detail

/// Calls `f(FieldTag<M>, flags)` for each field of class N, parents' first.
template <class N, class F>
void ForEachField(F f) {
  detail::FieldReceiver<F> receiver{f};
  detail::DescribeFields<N>(receiver);
}

/// Calls `f(child)` for each child of the node, with the reference type of its field. Children that are missing where
/// the description allows it (kNullable) are left out; others may be null in a program that was not made by Baton.
template <class Fam, class N, class F>
void ForEachChildOf(const N* node, F f) {
  ForEachField<N>([&]<auto M>(runtime::FieldTag<M>, [[maybe_unused]] unsigned flags) {
    using T = typename runtime::MemberOf<decltype(M)>::Type;
    if constexpr (Fam::template kHas<T>) {
      if (Fam::Takes(flags) && !detail::IsMissing(node->*M, flags)) f(node->*M);
    } else if constexpr (detail::kIsArrayOf<Fam, T>) {
      if (Fam::Takes(flags)) {
        for (const auto& element : node->*M) f(element);
      }
    }
  });
}

/// `map(child)` for each child: null if all stay the same, else a copy of the node with the new ones.
template <class Fam, class N, class F>
ObjectPtr<N> MapChildren(const N* node, F map) {
  ObjectPtr<N> copy{nullptr};
  const auto put = [&]<auto M, class T>(runtime::FieldTag<M>, T made) {
    if (made.same_as(node->*M)) return;
    if (!copy.get()) copy = make_object<N>(*node);
    copy.get()->*M = std::move(made);
  };
  ForEachField<N>([&]<auto M>(runtime::FieldTag<M> tag, unsigned flags) {
    using T = typename runtime::MemberOf<decltype(M)>::Type;
    if constexpr (Fam::template kHas<T>) {
      if (!Fam::Takes(flags)) return;
      if (detail::IsMissing(node->*M, flags)) return;
      put(tag, Downcast<T>(map(node->*M)));
    } else if constexpr (detail::kIsArrayOf<Fam, T>) {
      if (!Fam::Takes(flags)) return;
      if (!(node->*M).empty()) put(tag, detail::MapArray(node->*M, map));
    }
  });
  return copy;
}

/// A node that differs from this one only in its children, which `next()` returns in order. The node is not copied and
/// then changed: counting references to the old children would load each of them.
template <class Fam, class N, class F>
ObjectPtr<N> WithChildren(const N* node, F next) {
  auto out = make_object<N>();
  ForEachField<N>([&]<auto M>(runtime::FieldTag<M>, [[maybe_unused]] unsigned flags) {
    using T = typename runtime::MemberOf<decltype(M)>::Type;
    if constexpr (Fam::template kHas<T>) {
      if (!detail::IsMissing(node->*M, flags)) out.get()->*M = Downcast<T>(next());
    } else if constexpr (detail::kIsArrayOf<Fam, T>) {
      auto list = make_object<runtime::ArrayObj>();
      const size_t n = (node->*M).size();
      list->items.reserve(n);
      for (size_t i = 0; i < n; ++i) list->items.emplace_back(Downcast<typename detail::ElementOf<T>::Type>(next()));
      out.get()->*M = T(std::move(list));
    } else {
      out.get()->*M = T(node->*M);  // by copy construction, as in a copied node: the checked type is not copied
    }
  });
  return out;
}

/// Calls `f(static_cast<const N*>(node))` for the class of the list that the node is of; false if it is of none.
template <class... N, class B, class F>
bool DispatchKind(const B* node, F f) {
  return ((node->template IsInstance<N>() && (f(static_cast<const N*>(node)), true)) || ...);
}

}  // namespace baton
