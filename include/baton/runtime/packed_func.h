// SPDX-License-Identifier: Apache-2.0
// PackedFunc: the one function type that crosses language boundaries, and its typed wrapper.
#pragma once

#include <baton/runtime/any.h>
#include <baton/runtime/signature.h>

#include <string>
#include <tuple>
#include <utility>

namespace baton::runtime {

/// The arguments of a call, borrowed.
class Args {
 public:
  const BatonValue* values;
  int num_args;
  Args(const BatonValue* v, int n) : values(v), num_args(n) {}
  int size() const { return num_args; }
  ArgValue operator[](int i) const {
    if (i < 0 || i >= num_args) ThrowMissingArg(i, num_args);
    return ArgValue(values[i]);
  }
  [[noreturn]] BATON_DLL static void ThrowMissingArg(int i, int n);
};
using RetValue = Any;

/// A function object: a C function and what it closes over.
class PackedFuncObj : public Object {
 public:
  static constexpr const char* _type_key = "runtime.PackedFunc";
  static constexpr uint32_t _type_index = TypeIndex::kRuntimePackedFunc;
  BatonCFunc call = nullptr;
  void* self = nullptr;
  const char* name = nullptr;       ///< given when it was made, if any; lives as long as the process
  const char* signature = nullptr;  ///< "(int, str) -> float" of a typed function; null: takes anything
  BATON_DECLARE_FINAL_OBJECT_INFO(PackedFuncObj, Object)
};

template <class F>
struct PackedFuncImpl final : PackedFuncObj {
  F f;
  explicit PackedFuncImpl(F fn) : f(std::move(fn)) {
    self = this;
    call = [](void* self, const BatonValue* args, int n, BatonValue* ret) -> int {
      try {
        Any rv;
        static_cast<PackedFuncImpl*>(self)->f(Args(args, n), &rv);
        *ret = rv.Release();
        return 0;
      } catch (...) {
        return CatchToSlot();
      }
    };
  }
};

class PackedFunc : public ObjectRef {
 public:
  BATON_DEFINE_OBJECT_REF_METHODS(PackedFunc, ObjectRef, PackedFuncObj)
  PackedFunc(std::nullptr_t) {}  // NOLINT
  /// From anything callable as `void(Args, RetValue*)`.
  template <class F, class = std::enable_if_t<!std::is_base_of_v<ObjectRef, std::decay_t<F>> &&
                                              std::is_invocable_v<std::decay_t<F>&, Args, RetValue*>>>
  PackedFunc(F&& f) {  // NOLINT
    using D = std::decay_t<F>;
    if constexpr (std::is_empty_v<D> && std::is_default_constructible_v<D>) {
      // Closes over nothing.
#ifdef BATON_COMPACT_FUNCTIONS
      *this = FromPlain([](Args args, RetValue* rv) { D{}(args, rv); });
#else
      *this = FromEntry(
          [](void*, const BatonValue* args, int n, BatonValue* ret) -> int {
            try {
              Any rv;
              D{}(Args(args, n), &rv);
              *ret = rv.Release();
              return 0;
            } catch (...) {
              return CatchToSlot();
            }
          },
          nullptr, nullptr);
#endif
    } else {
      using Impl = PackedFuncImpl<D>;
      auto* p = new Impl(std::forward<F>(f));
      ObjectAccess::Init(p, PackedFuncObj::RuntimeTypeIndex(), [](Object* o) { delete static_cast<Impl*>(o); });
      data_ = ObjectPtr<Object>(p);
    }
  }
  /// Shares its code with all functions made so: smaller, and a call slower. BATON_COMPACT_FUNCTIONS, defined before
  /// this header, chooses it for the functions of a library that has to be small.
  BATON_DLL static PackedFunc FromPlain(void (*f)(Args, RetValue*));
  /// The same for a function that receives its registered name.
  BATON_DLL static PackedFunc FromNamed(void (*f)(const char*, Args, RetValue*), const char* name,
                                        const char* signature);
  /// A function without a closure; its entry receives `name` as `self`.
  BATON_DLL static PackedFunc FromEntry(BatonCFunc entry, const char* name, const char* signature);
  /// Packs the arguments on the stack and calls; throws what the callee throws.
  template <class... A>
  Any operator()(A&&... args) const {
    if constexpr (sizeof...(A) == 0) {
      return CallPacked(nullptr, 0);
    } else if constexpr ((IsBoxed<std::decay_t<A>>::value || ...)) {
      // Boxes need an owner for the time of the call.
      const Any held[] = {Any(std::forward<A>(args))...};
      return CallPacked(&held[0].raw(), sizeof...(A));
    } else {
      BatonValue values[sizeof...(A)];
      int i = 0;
      (PackOne(args, &values[i++]), ...);
      return CallPacked(values, sizeof...(A));
    }
  }
#ifdef BATON_COMPACT_FUNCTIONS
  __attribute__((noinline))
#endif
  Any CallPacked(const BatonValue* values, int n) const {
    const PackedFuncObj* f = get();
    if (!f) ThrowNullCall();
    Any ret;
    if (f->call(f->self, values, n, ret.Slot()) != 0) ThrowFromSlot();
    return ret;
  }
  bool operator==(std::nullptr_t) const { return !defined(); }
  bool operator!=(std::nullptr_t) const { return defined(); }
  /// Sets the name and signature of a new function; both texts must live as long as the process.
  void Describe(const char* name, const char* signature) const {
    auto* f = const_cast<PackedFuncObj*>(get());
    f->name = name;
    f->signature = signature;
  }

 private:
  [[noreturn]] BATON_DLL static void ThrowNullCall();
  template <class T>
  static void PackOne(const T& x, BatonValue* v) {
    using D = std::decay_t<T>;
    if constexpr (std::is_same_v<D, std::string>) {
      ValueTraits<const char*>::To(x.c_str(), v);
    } else if constexpr (std::is_convertible_v<D, const char*> && !std::is_same_v<D, std::nullptr_t>) {
      ValueTraits<const char*>::To(x, v);
    } else if constexpr (std::is_same_v<D, ArgValue>) {
      *v = x.raw();
    } else {
      ValueTraits<D>::To(x, v);
    }
  }
};

[[noreturn]] BATON_DLL void RethrowArg(const Error& e, int index, const char* name);
[[noreturn]] BATON_DLL void ThrowArity(const char* name, const char* signature, int want, int got);

template <class F>
struct FuncSig;
template <class R, class... A>
struct FuncSig<R(A...)> {
  using Ret = R;
  using Params = std::tuple<A...>;
  static constexpr int arity = sizeof...(A);
};
template <class R, class... A>
struct FuncSig<R (*)(A...)> : FuncSig<R(A...)> {};
template <class C, class R, class... A>
struct FuncSig<R (C::*)(A...) const> : FuncSig<R(A...)> {};
template <class C, class R, class... A>
struct FuncSig<R (C::*)(A...)> : FuncSig<R(A...)> {};
template <class F>
  requires requires { &F::operator(); }
struct FuncSig<F> : FuncSig<decltype(&F::operator())> {};

template <class T>
struct DecayTuple;
template <class... A>
struct DecayTuple<std::tuple<A...>> {
  using type = std::tuple<std::decay_t<A>...>;
};
/// The signature of a callable, as text.
template <class R, class T>
struct SignatureOf;
template <class R, class... A>
struct SignatureOf<R, std::tuple<A...>> {
  static constexpr const char* Text() { return SignatureText<std::decay_t<R>, std::decay_t<A>...>(); }
};

template <class T>
T UnpackArg(const Args& args, int i, const char* name) {
  try {
    return ValueTraits<T>::From(args.values[i]);
  } catch (const Error& e) {
    RethrowArg(e, i, name);
  }
}

template <class F, class Ret, class... P, size_t... I>
inline void CallTyped(const F& f, const char* name, const Args& args, RetValue* rv, std::tuple<P...>*,
                      std::index_sequence<I...>) {
  if (args.num_args != static_cast<int>(sizeof...(P))) {
    ThrowArity(name, SignatureText<std::decay_t<Ret>, std::decay_t<P>...>(), sizeof...(P), args.num_args);
  }
  if constexpr (std::is_void_v<Ret>) {
    f(UnpackArg<std::decay_t<P>>(args, I, name)...);
  } else {
    *rv = Any(f(UnpackArg<std::decay_t<P>>(args, I, name)...));
  }
  (void)rv;
}
/// The same for a callable whose types are its own.
template <class F>
inline void CallOwnTyped(const F& f, const char* name, const Args& args, RetValue* rv) {
  using Sig = FuncSig<F>;
  CallTyped<F, typename Sig::Ret>(f, name, args, rv,
                                  static_cast<typename DecayTuple<typename Sig::Params>::type*>(nullptr),
                                  std::make_index_sequence<Sig::arity>());
}

/// Wraps a typed callable; `name` (which must live for ever) appears in errors.
template <class F>
PackedFunc MakeTyped(F f, const char* name = "") {
  using Sig = FuncSig<F>;
  constexpr const char* signature = SignatureOf<typename Sig::Ret, typename Sig::Params>::Text();
  if constexpr (std::is_empty_v<F> && std::is_default_constructible_v<F>) {
#ifdef BATON_COMPACT_FUNCTIONS
    return PackedFunc::FromNamed([](const char* name, Args args, RetValue* rv) { CallOwnTyped(F{}, name, args, rv); },
                                 name, signature);
#else
    return PackedFunc::FromEntry(
        [](void* self, const BatonValue* args, int n, BatonValue* ret) -> int {
          try {
            Any rv;
            CallOwnTyped(F{}, static_cast<const char*>(self), Args(args, n), &rv);
            *ret = rv.Release();
            return 0;
          } catch (...) {
            return CatchToSlot(static_cast<const char*>(self));
          }
        },
        name, signature);
#endif
  } else {
    PackedFunc made([f = std::move(f), name](Args args, RetValue* rv) { CallOwnTyped(f, name, args, rv); });
    made.Describe(name, signature);
    return made;
  }
}

template <class F>
class TypedPackedFunc;
/// A PackedFunc whose signature is known at compile time.
template <class R, class... A>
class TypedPackedFunc<R(A...)> {
 public:
  TypedPackedFunc() = default;
  TypedPackedFunc(std::nullptr_t) {}                                   // NOLINT
  TypedPackedFunc(PackedFunc f) : packed_(std::move(f)) {}             // NOLINT
  TypedPackedFunc(const ArgValue& v) : packed_(v.As<PackedFunc>()) {}  // NOLINT
  TypedPackedFunc(const Any& v) : packed_(v.As<PackedFunc>()) {}       // NOLINT
  template <class F, class = std::enable_if_t<!std::is_base_of_v<ObjectRef, std::decay_t<F>> &&
                                              std::is_invocable_r_v<R, std::decay_t<F>&, A...>>>
  TypedPackedFunc(F&& f, const char* name = "") {  // NOLINT
    packed_ = PackedFunc([f = std::decay_t<F>(std::forward<F>(f)), name](Args args, RetValue* rv) {
      CallTyped<std::decay_t<F>, R>(f, name, args, rv, static_cast<std::tuple<std::decay_t<A>...>*>(nullptr),
                                    std::make_index_sequence<sizeof...(A)>());
    });
    packed_.Describe(name, SignatureText<std::decay_t<R>, std::decay_t<A>...>());
  }
  R operator()(A... args) const {
    if constexpr (std::is_void_v<R>) {
      packed_(std::forward<A>(args)...);
    } else {
      return packed_(std::forward<A>(args)...).template As<R>();
    }
  }
  const PackedFunc& packed() const { return packed_; }
  operator PackedFunc() const { return packed_; }  // NOLINT
  bool defined() const { return packed_.defined(); }
  bool operator==(std::nullptr_t) const { return !defined(); }
  bool operator!=(std::nullptr_t) const { return defined(); }

 private:
  PackedFunc packed_;
};
template <class R, class... A>
struct ValueTraits<TypedPackedFunc<R(A...)>> {
  using T = TypedPackedFunc<R(A...)>;
  static std::string Name() { return "PackedFunc"; }
  static bool Is(const BatonValue& v) { return ValueTraits<PackedFunc>::Is(v); }
  static T From(const BatonValue& v) { return T(ValueTraits<PackedFunc>::From(v)); }
  static void To(const T& x, BatonValue* v) { ValueTraits<PackedFunc>::To(x.packed(), v); }
};

}  // namespace baton::runtime

namespace baton {
using runtime::PackedFunc;
using runtime::TypedPackedFunc;
}  // namespace baton
