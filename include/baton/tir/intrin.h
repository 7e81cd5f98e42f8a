// SPDX-License-Identifier: Apache-2.0
// One row per intrinsic of TIR: DefineIntrin({...}) in src/tir/intrin/<family>.cpp says all that passes, front ends,
// the interpreter and te ask of it. A code generator adds a column (IntrinColumn).
#pragma once

#include <baton/tir/op.h>

#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace baton::tir {

/// A slot that every definition fills: one that leaves it out does not compile.
template <class T>
struct Needed {
  constexpr Needed(T v) : value(v) {}             // NOLINT
  constexpr operator T() const { return value; }  // NOLINT
  T value;
};

/// The effect of a call besides its value. The numbers are Relay's (TCallEffectKind).
enum class Effect : int32_t {
  kAnnotation = 0,  ///< its value is its first argument
  kPure = 1,        ///< the same arguments give the same value
  kReads = 2,       ///< reads memory
  kUpdates = 3,     ///< writes memory, or calls what may: happens as often as it is written, in order
  kArgument = 4,    ///< means something as an argument of another call alone
  kJumps = 6,       ///< leaves the function
};
/// The form of a call in a loop that becomes vectors (TVectorizable).
enum class LaneForm : int32_t {
  kEach = 0,  ///< on vectors it gives, in each lane, its value for that lane of its arguments
  kNone = 1,  ///< it has no such form
};
/// The use of the place that the first argument of a call, a BufferLoad, names.
enum class PlaceUse : int32_t {
  kNone = 0,     ///< its first argument is a value as others are
  kReads = 1,    ///< reads it
  kWrites = 2,   ///< writes it
  kAddress = 3,  ///< gives its address, by which anything may happen to it
  kHint = 4,     ///< neither reads nor writes
};
/// How a call takes and gives float16 and bfloat16, which processors compute as float32.
enum class Halves : int32_t {
  kWiden = 0,    ///< they are float32
  kBits = 1,     ///< they stay, for their bits count
  kRefused = 2,  ///< an error: the callee takes none
  kTaken = 3,    ///< operands stay, the result is of another type
};
/// Numbers that the function of an intrinsic (baton::exp) takes.
enum class Domain : int32_t {
  kFloats = 0,
  kNumbers = 1,  ///< integers or floats
  kInts = 2,
  kBits = 3,  ///< integers or bools
};

/// A number on the host: `i` for integers and bools (uint64 by its bits), `f` for floats.
struct HostNumber {
  int64_t i = 0;
  double f = 0;
};
/// The value of a call for numbers: folding and the interpreter ask it, and round to the dtype. `dtype`: of an
/// operand's element; those of less than 64 bits compute in float32 what rounds more than once.
class HostFn {
 public:
  HostFn() = default;
  HostFn(double (*f)(double)) : kind_(Kind::kF), f_(reinterpret_cast<void*>(f)) {}             // NOLINT
  HostFn(double (*f)(double, double)) : kind_(Kind::kFF), f_(reinterpret_cast<void*>(f)) {}    // NOLINT
  HostFn(double (*f)(double, DataType)) : kind_(Kind::kFT), f_(reinterpret_cast<void*>(f)) {}  // NOLINT
  HostFn(double (*f)(double, double, double, DataType))
      : kind_(Kind::kFFFT), f_(reinterpret_cast<void*>(f)) {}                                             // NOLINT
  HostFn(bool (*f)(double)) : kind_(Kind::kTest), f_(reinterpret_cast<void*>(f)) {}                       // NOLINT
  HostFn(int64_t (*f)(int64_t, DataType)) : kind_(Kind::kI), f_(reinterpret_cast<void*>(f)) {}            // NOLINT
  HostFn(int64_t (*f)(int64_t, int64_t, DataType)) : kind_(Kind::kII), f_(reinterpret_cast<void*>(f)) {}  // NOLINT
  explicit operator bool() const { return f_ != nullptr; }
  bool takes_floats() const { return kind_ < Kind::kI; }
  /// Whether the value is in `f`; else it is in `i`.
  bool gives_float() const { return kind_ < Kind::kTest; }
  BATON_DLL HostNumber operator()(const HostNumber* args, DataType dtype) const;

 private:
  enum class Kind { kF, kFF, kFT, kFFFT, kTest, kI, kII };
  Kind kind_ = Kind::kF;
  void* f_ = nullptr;
};

/// The interpreter, as rules of intrinsics see it. A vector is evaluated lane by lane.
class BATON_DLL Machine {
 public:
  virtual ~Machine() = default;
  virtual HostNumber Eval(const PrimExpr& e, int lane) = 0;
  virtual HostNumber ReadPlace(const BufferLoadNode* place, int lane) = 0;
  virtual void WritePlace(const BufferLoadNode* place, int lane, HostNumber v) = 0;
};
/// The value of a lane of a call, for an intrinsic that reads or writes memory, or looks at its arguments' form.
using InterpretFn = HostNumber (*)(Machine& machine, const CallNode* call, int lane);

/// Says a call in other words for these operands, which are of one dtype; null where it has none.
using RewriteFn = PrimExpr (*)(const Array<PrimExpr>& args);
/// Says a call in vector arithmetic, or null: LowerIntrin. Its result is floating.
using ExpandFn = PrimExpr (*)(const CallNode* call);
/// Returns the fault of a call whose arguments are as `takes` says, or "".
using CheckFn = std::string (*)(const CallNode* call);
/// Bounds of an integer; kNegInf and kPosInf where there are none.
struct IntRange {
  static constexpr int64_t kPosInf = INT64_MAX, kNegInf = -INT64_MAX;
  int64_t min, max;
};
/// Bounds of a call whose second argument is a literal, given those of its first argument.
using RangeFn = IntRange (*)(IntRange first, int64_t literal, IntRange of_dtype);

/// How a call is differentiated: by a factor for each argument (null: zero), by a rule that combines the derivatives of
/// the arguments, by nothing where it is constant but for jumps, or not at all, for a reason that the error gives.
struct IntrinDerivative {
  PrimExpr (*factor)(const PrimExpr& x, const PrimExpr& y) = nullptr;  ///< of one argument x; y is the call
  Array<PrimExpr> (*factors)(const CallNode* call) = nullptr;
  /// `of_args`: derivatives of the arguments; null ones are zero, and not all are.
  PrimExpr (*rule)(const CallNode* call, const Array<PrimExpr>& of_args) = nullptr;
  bool zero = false;
  const char* none = nullptr;
  constexpr IntrinDerivative(PrimExpr (*f)(const PrimExpr&, const PrimExpr&)) : factor(f) {}       // NOLINT
  constexpr IntrinDerivative(Array<PrimExpr> (*f)(const CallNode*)) : factors(f) {}                // NOLINT
  constexpr IntrinDerivative(PrimExpr (*f)(const CallNode*, const Array<PrimExpr>&)) : rule(f) {}  // NOLINT
  template <class F>
    requires(std::is_class_v<F> && std::is_convertible_v<F, PrimExpr (*)(const PrimExpr&, const PrimExpr&)>)
  constexpr IntrinDerivative(F f) : factor(f) {}  // NOLINT: a lambda
  static constexpr IntrinDerivative Zero() { return IntrinDerivative(true, nullptr); }
  /// `reason` ends the error's sentence: "its value is not a number".
  static constexpr IntrinDerivative None(const char* reason) { return IntrinDerivative(false, reason); }

 private:
  constexpr IntrinDerivative(bool z, const char* n) : zero(z), none(n) {}
};

/// Slots of type Needed, and `derivative`, have no default.
struct IntrinDef {
  const char* name = "";  ///< "exp": the operator is called tir.exp
  const char* doc = "";
  /// A letter an argument. n: a number. r: of the result's dtype. R: of the result's dtype, integers or bools. i:
  /// integers or bools. f: floating. b: bool. h: a handle. s: a literal text. l: a BufferLoad, which names a place. x:
  /// any value. In brackets: those that may be left out; `*`: any others behind them.
  Needed<const char*> takes;
  CheckFn check = nullptr;

  // ---- Its function, for those that front ends call by name (`baton.tir.exp`).
  const char* params = "";  ///< names of its parameters, as "x y"; "": it has none
  Domain domain = Domain::kFloats;
  RewriteFn instead = nullptr;  ///< asked before a call is made

  // ---- Meaning
  HostFn host = {};
  InterpretFn interpret = nullptr;
  bool gives_bool = false;  ///< its result is a bool a lane, not of the operands' dtype
  IntrinDerivative derivative;

  // ---- Asked by passes
  Needed<Effect> effect;
  Needed<LaneForm> lanes;
  Needed<double> cost;  ///< of one evaluation; 1 is an addition of a vector
  PlaceUse place = PlaceUse::kNone;
  Halves halves = Halves::kWiden;
  ExpandFn expand = nullptr;
  RangeFn range = nullptr;
  /// Where calls end that no code generator sees, as "MakePackedAPI"; null: each says in its column what they become.
  const char* ends_in = nullptr;
  bool shows_dtype = false;  ///< texts show the dtype of the result, which the arguments do not say
  bool calls_c = false;      ///< its first argument names a C function, which code finds when it is loaded

  int number = 0;  ///< in order of definition; DefineIntrin counts
};

/// Registers; throws InternalError for a second definition of a name.
BATON_DLL Op DefineIntrin(const IntrinDef& def);
/// The row of an intrinsic; null for operators of Relay and those that a program made ("tir.mylog").
BATON_DLL const IntrinDef* IntrinOf(const OpNode* op);
inline const IntrinDef* IntrinOf(const CallNode* call) {
  const auto* op = call->op.as<OpNode>();
  return op ? IntrinOf(op) : nullptr;
}
/// All rows, in order of definition.
BATON_DLL std::vector<Op> ListIntrins();

// ---- Questions of passes, beside CallHasSideEffect (functor.h). An operator without a row, which a program made, is
// as its TCallEffectKind and TVectorizable say; without them it is pure and works lane by lane.
/// Whether a call on vectors gives in each lane the value for that lane; false for calls of functions of the module.
BATON_DLL bool IsLaneByLane(const CallNode* call);
/// Cost of one evaluation of a call besides that of its arguments; 1 is an addition of a vector.
BATON_DLL double CostOfCall(const CallNode* call);
inline PlaceUse PlaceOf(const CallNode* call) {
  const IntrinDef* row = IntrinOf(call);
  return row ? row->place : PlaceUse::kNone;
}
/// The derivative of a call, given those of its arguments; null is zero. Throws UnsupportedError for a call without
/// one.
BATON_DLL PrimExpr DerivativeOf(const CallNode* call, const Array<PrimExpr>& of_args);

/// The function of an intrinsic: brings the operands to one dtype, folds literals, or makes a call. Throws TypeError
/// for operands that it does not take.
BATON_DLL PrimExpr Apply(const Op& intrin, Array<PrimExpr> args);

// ---- Columns of code generators
/// Notes that a backend makes code of these intrinsics; tests ask it for what is missing.
BATON_DLL void RegisterIntrinColumn(const char* backend, std::vector<Op> (*intrins)());

/// The form of each intrinsic in a backend. A column is made when it is first asked for: the constants below are
/// initialized in no order that it could rely on.
template <class T>
class IntrinColumn {
 public:
  struct Row {
    const Op& intrin;
    T form;
  };
  IntrinColumn(std::initializer_list<Row> rows) {
    for (const Row& row : rows) {
      const auto number = static_cast<size_t>(IntrinOf(row.intrin.get())->number);
      if (forms_.size() <= number) forms_.resize(number + 1, -1);
      forms_[number] = static_cast<int>(rows_.size());
      rows_.push_back(row.form);
      intrins_.push_back(row.intrin);
    }
  }
  /// Null where the backend has no code for it, and for operators without a row.
  const T* Find(const IntrinDef* row) const {
    if (!row || static_cast<size_t>(row->number) >= forms_.size()) return nullptr;
    const int at = forms_[static_cast<size_t>(row->number)];
    return at < 0 ? nullptr : &rows_[static_cast<size_t>(at)];
  }
  const std::vector<Op>& intrins() const { return intrins_; }

 private:
  std::vector<int> forms_;  // by number of the row
  std::vector<T> rows_;
  std::vector<Op> intrins_;
};

/// Intrinsics by name, for calls and for passes about one of them: `call->op == intrin::if_then_else`.
namespace intrin {
#define BATON_TIR_DECLARE_INTRIN(name) extern BATON_DLL const Op name;
BATON_TIR_UNARY_LIST(BATON_TIR_DECLARE_INTRIN)
#undef BATON_TIR_DECLARE_INTRIN
extern BATON_DLL const Op pow, fmod, atan2, fma, ldexp;
extern BATON_DLL const Op bitwise_and, bitwise_or, bitwise_xor, shift_left, shift_right, reinterpret;
extern BATON_DLL const Op if_then_else, likely, ret, index_error;
extern BATON_DLL const Op call_extern, call_packed, tvm_call_trace_packed, tvm_stack_make_array;
extern BATON_DLL const Op masked_load, masked_store, prefetch, address_of, ptr_offset, load_handle, memcpy,
    tvm_access_ptr;
extern BATON_DLL const Op vector_sum, vector_prod, vector_min, vector_max, dot4, dot2;
extern BATON_DLL const Op tvm_storage_sync, tvm_thread_allreduce;
}  // namespace intrin

/// A pointer, some bytes on.
BATON_DLL PrimExpr ptr_offset(PrimExpr pointer, PrimExpr bytes);
/// An element of an array of pointers.
BATON_DLL PrimExpr load_handle(PrimExpr array, PrimExpr index);

/// The call of if_then_else that an expression is; null for another.
inline const CallNode* AsChoice(const PrimExpr& e) {
  const auto* call = e.as<CallNode>();
  return call && call->op == intrin::if_then_else && call->args.size() == 3 ? call : nullptr;
}
inline bool IsChoice(const CallNode* call) { return call->op == intrin::if_then_else && call->args.size() == 3; }

}  // namespace baton::tir
