// SPDX-License-Identifier: Apache-2.0
// A tree walk that evaluates one lane at a time: a vector expression is asked for each of its lanes.
// expressions.cpp and intrinsics.cpp evaluate (calls by their rows), statements.cpp executes, threads.cpp runs kernels.
#pragma once

#include <baton/support/stack.h>
#include <baton/tir/functor.h>
#include <baton/tir/interpreter.h>
#include <baton/tir/intrin.h>

#include <cstring>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "tir/interpreter/races.h"
#include "tir/thread_axes.h"

namespace baton::tir::interpreter {

using Scalar = HostNumber;

struct Memory {
  NDArray array;
  int64_t size = 0;    // elements
  int64_t offset = 0;  // bytes, of a part of an arena
  int64_t first = 0;   // element of the array that is element 0
  bool raw = false;    // not typed yet
  /// The threads that it belongs to: all of them; those of a block, by the variable `root`; one.
  enum class Of { kAll, kBlock, kThread } of = Of::kAll;
  const Object* root = nullptr;
};

inline int64_t WrapInt(int64_t v, DataType t) {
  if (t.is_bool()) return v != 0;
  if (t.bits() >= 64) return v;
  int shift = 64 - t.bits();
  uint64_t u = static_cast<uint64_t>(v) << shift;
  return t.is_uint() ? static_cast<int64_t>(u >> shift) : static_cast<int64_t>(u) >> shift;
}

/// double rounding is harmless for + - * / and sqrt of float32.
inline double Round(double v, DataType t) {
  return t.is_float() && t.bits() == 64 ? v : static_cast<double>(static_cast<float>(v));
}

/// Ends an interpretation that takes more steps than it may.
struct OutOfSteps {};

class Interpreter final : public Machine {
 public:
  Interpreter(const PrimFunc& f, const std::vector<NDArray>& args, const InterpretOptions& options);
  explicit Interpreter(const InterpretOptions& options) : options_(options), max_steps_(options.max_steps) {
    if (!options.races) return;
    own_races_ = std::make_unique<RaceFinder>(options.races);
    races_ = own_races_.get();
  }
  void Run(const Stmt& s) { Exec(s); }

  Scalar Eval(const PrimExpr& e, int lane) override {
    Step();
    const uint32_t kind = e.get()->type_index();
    // Leaves, the most of what is evaluated, recurse no further.
    if (kind == IntImmNode::RuntimeTypeIndex() || kind == VarNode::RuntimeTypeIndex()) return EvalNode(e, lane);
    return support::WithStack([&] { return EvalNode(e, lane); });
  }
  Scalar ReadPlace(const BufferLoadNode* place, int lane) override {
    return Load(place->buffer, Position(place->buffer, place->indices, lane));
  }
  void WritePlace(const BufferLoadNode* place, int lane, Scalar v) override {
    Store(place->buffer, Position(place->buffer, place->indices, lane), v);
  }

 private:
  /// The state of a thread. Arrays are shared.
  struct State {
    std::unordered_map<const Object*, Scalar> vars;
    std::unordered_map<const Object*, std::vector<Scalar>> vectors;  // bound by statements
    std::unordered_map<const Object*, Memory> memory;
    int64_t thread = 0;  // of the block
  };
  using Team = std::vector<State*>;

  /// A parameter without a buffer: a number, as an array of one, or a pointer to data.
  void Number(const Var& p, const NDArray& array);
  void Step() {
    if (max_steps_ && ++steps_ > max_steps_) throw OutOfSteps();
  }

  // ---- Expressions

  static bool IsFloat(DataType t) { return t.is_floating(); }
  int64_t Int(const PrimExpr& e, int lane = 0) { return Eval(e, lane).i; }
  double Float(const PrimExpr& e, int lane = 0) { return Eval(e, lane).f; }
  static Scalar OfInt(int64_t v, DataType t) { return {WrapInt(v, t), 0}; }
  static Scalar OfFloat(double v, DataType t) { return {0, Round(v, t)}; }

  /// The flat position of a lane's element.
  int64_t Position(const Buffer& b, const Array<PrimExpr>& indices, int lane) {
    int64_t at = 0;
    for (size_t k = 0; k < indices.size(); ++k) {
      const PrimExpr& i = indices[static_cast<int64_t>(k)];
      int64_t v = Int(i, i.dtype().lanes() > 1 ? lane : 0);
      if (k > 0) at *= Int(b->shape[static_cast<int64_t>(k)]);
      at += v;
    }
    return at;
  }
  Memory& MemoryOf(const Buffer& b) {
    auto it = now_.memory.find(b->data.get());
    if (it == now_.memory.end()) throw InternalError("buffer `" + b->name.str() + "` has no memory");
    Memory& m = it->second;
    if (m.raw) {
      // Offsets are multiples of 64 bytes, and so of the element's size.
      int64_t bytes = b->dtype.bytes(), all = static_cast<int64_t>(m.array.nbytes()) / bytes;
      m.array = m.array.View({static_cast<int64_t>(m.array.nbytes())}, DataType::UInt(8)).View({all}, b->dtype);
      m.size = all - m.offset / bytes;
      m.raw = false;
      m.first = m.offset / bytes;
    }
    return m;
  }
  void CheckBounds(const Buffer& b, const Memory& m, int64_t at) {
    if (at < 0 || at >= m.size) {
      throw RuntimeError("index " + std::to_string(at) + " leaves buffer `" + b->name.str() + "` of " +
                         std::to_string(m.size) + " elements");
    }
  }
  Scalar Load(const Buffer& b, int64_t at) {
    Memory& m = MemoryOf(b);
    CheckBounds(b, m, at);
    at += m.first;
    if (races_) Note(b, m, at, false);
    if (IsFloat(b->dtype)) return {0, m.array.GetDouble(at)};
    return {m.array.GetInt(at), 0};
  }
  void Store(const Buffer& b, int64_t at, Scalar v) {
    Memory& m = MemoryOf(b);
    CheckBounds(b, m, at);
    at += m.first;
    if (races_) Note(b, m, at, true);
    DataType t = b->dtype;
    if (IsFloat(t)) {
      m.array.SetDouble(at, v.f);
      return;
    }
    char* p = static_cast<char*>(m.array.data()) + at * t.bytes();
    memcpy(p, &v.i, static_cast<size_t>(t.bytes()));  // little-endian: the low bytes
  }

  template <class FF, class FI, class FU>
  Scalar Arith(const PrimExpr& ea, const PrimExpr& eb, DataType t, int lane, FF ff, FI fi, FU fu) {
    Scalar a = Eval(ea, lane), b = Eval(eb, lane);
    if (IsFloat(t)) return OfFloat(ff(a.f, b.f), t);
    if (t.is_uint()) return OfInt(static_cast<int64_t>(fu(static_cast<uint64_t>(a.i), static_cast<uint64_t>(b.i))), t);
    return OfInt(fi(a.i, b.i), t);
  }
  template <class FF, class FI, class FU>
  Scalar Compare(const PrimExpr& ea, const PrimExpr& eb, int lane, FF ff, FI fi, FU fu) {
    Scalar a = Eval(ea, lane), b = Eval(eb, lane);
    DataType t = ea.dtype();
    bool r = IsFloat(t)    ? ff(a.f, b.f)
             : t.is_uint() ? fu(static_cast<uint64_t>(a.i), static_cast<uint64_t>(b.i))
                           : fi(a.i, b.i);
    return {r, 0};
  }

  Scalar EvalNode(const PrimExpr& e, int lane);

  static Scalar Convert(Scalar v, DataType from, DataType to);

  Scalar EvalCall(const CallNode* c, int lane);

  // ---- Statements

  using Stores = std::vector<std::pair<int64_t, Scalar>>;
  static int LanesOf(const BufferStoreNode* st);
  Stores StoresOf(const BufferStoreNode* st);
  void Write(const Buffer& b, const Stores& stores);
  Memory Allocated(const Buffer& b);
  void Check(const AssertStmtNode* a);
  /// Tells the finder of races of an access of an array's element.
  void Note(const Buffer& b, const Memory& m, int64_t at, bool writes);

  void Exec(const Stmt& s) {
    Step();
    place_ = s.get();
    support::WithStack([&] { ExecNode(s); });
  }
  void ExecNode(const Stmt& s);

  // ---- Calls of functions of the module

  Scalar CallFunction(const CallNode* c, int lane);

  // ---- Threads

  /// Runs the blocks of a kernel one after the other.
  void Launch(const Stmt& kernel);

  /// Calls f() as one of the threads.
  template <class F>
  void As(State* state, F f) {
    std::swap(now_, *state);
    f();
    std::swap(now_, *state);
  }
  template <class F>
  void WithReducer(const AttrStmtNode* mark, F f) {
    const AttrStmtNode* outer = reduce_;
    reduce_ = mark;
    f();
    reduce_ = outer;
  }
  /// Notes the statements of a kernel within which threads wait for each other.
  void FindWaits(const Stmt& kernel);

  void ExecAll(const Stmt& s, const Team& team);
  /// Runs a statement for all threads of a team, which is not empty.
  void ExecAllNode(const Stmt& s, const Team& team);

  void Allreduce(const CallNode* call, const Team& team);

  void Bind(const LetStmtNode* l);

  InterpretOptions options_;
  State now_;
  int64_t steps_ = 0, max_steps_;
  // Within a kernel.
  bool in_kernel_ = false;
  std::vector<KernelAxis> axes_;
  size_t block_ = 0;                      // threads of a block
  const AttrStmtNode* reduce_ = nullptr;  // the mark that says how values are combined
  std::unordered_set<const Object*> waits_;
  std::unordered_map<const Object*, Memory> of_block_;  // arrays of scope "shared"
  bool in_parallel_ = false;                            // within the outermost parallel loop
  std::unique_ptr<RaceFinder> own_races_;
  RaceFinder* races_ = nullptr;    // null: races are not looked for
  const Object* place_ = nullptr;  // the statement that runs
};

}  // namespace baton::tir::interpreter
