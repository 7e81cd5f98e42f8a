// SPDX-License-Identifier: Apache-2.0
// A tree walk that evaluates one lane at a time: a vector expression is asked for each of its lanes.
#include <baton/runtime/registry.h>
#include <baton/support/stack.h>
#include <baton/tir/functor.h>
#include <baton/tir/interpreter.h>
#include <baton/tir/op.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <unordered_map>
#include <unordered_set>

#include "tir/thread_axes.h"

namespace baton::tir {
namespace {

/// A scalar: `i` for integers and bools (uint64 by its bits), `f` for floats.
struct Value {
  int64_t i = 0;
  double f = 0;
};

struct Memory {
  NDArray array;
  int64_t size = 0;    // elements
  int64_t offset = 0;  // bytes, of a part of an arena
  int64_t first = 0;   // element of the array that is element 0
  bool raw = false;    // not typed yet
};

int64_t WrapInt(int64_t v, DataType t) {
  if (t.is_bool()) return v != 0;
  if (t.bits() >= 64) return v;
  int shift = 64 - t.bits();
  uint64_t u = static_cast<uint64_t>(v) << shift;
  return t.is_uint() ? static_cast<int64_t>(u >> shift) : static_cast<int64_t>(u) >> shift;
}

/// double rounding is harmless for + - * / and sqrt of float32.
double Round(double v, DataType t) {
  return t.is_float() && t.bits() == 64 ? v : static_cast<double>(static_cast<float>(v));
}

class Interpreter {
 public:
  Interpreter(const PrimFunc& f, const std::vector<NDArray>& args, const InterpretOptions& options)
      : options_(options), max_steps_(options.max_steps) {
    if (f->params.size() != args.size()) {
      throw RuntimeError("the function takes " + std::to_string(f->params.size()) + " arrays, got " +
                         std::to_string(args.size()));
    }
    for (size_t i = 0; i < args.size(); ++i) {
      const Var& p = f->params[static_cast<int64_t>(i)];
      if (!f->buffer_map.count(p)) {
        Number(p, args[i]);
        continue;
      }
      const Buffer& b = f->buffer_map.at(p);
      if (!(args[i].dtype() == b->dtype)) {
        throw RuntimeError("buffer `" + b->name.str() + "` is " + DataType2String(b->dtype) + ", the array " +
                           DataType2String(args[i].dtype()));
      }
      now_.memory[b->data.get()] = {args[i], args[i].numel()};
      now_.memory[p.get()] = now_.memory[b->data.get()];
      // Sizes that are no parameters are what the array has.
      for (size_t d = 0; d < b->shape.size() && b->shape.size() == args[i].shape().size(); ++d) {
        const PrimExpr& size = b->shape[static_cast<int64_t>(d)];
        if (size.as<VarNode>()) now_.vars.emplace(size.get(), Value{args[i].shape()[d], 0});
      }
    }
  }
  explicit Interpreter(const InterpretOptions& options) : options_(options), max_steps_(options.max_steps) {}
  void Run(const Stmt& s) { Exec(s); }

 private:
  /// What a thread knows. Arrays are shared.
  struct State {
    std::unordered_map<const Object*, Value> vars;
    std::unordered_map<const Object*, std::vector<Value>> vectors;  // bound by statements
    std::unordered_map<const Object*, Memory> memory;
  };
  using Team = std::vector<State*>;

  /// A parameter without a buffer: a number, as an array of one, or a pointer to data.
  void Number(const Var& p, const NDArray& array) {
    if (p.dtype().is_handle()) {
      now_.memory[p.get()] = {array, array.numel()};
      now_.memory[p.get()].raw = true;
      return;
    }
    if (array.numel() != 1 || !(array.dtype() == p.dtype())) {
      throw RuntimeError("parameter `" + p->name_hint.str() + "` is one " + DataType2String(p.dtype()) +
                         ", got an array of " + std::to_string(array.numel()) + " " + DataType2String(array.dtype()));
    }
    now_.vars[p.get()] = IsFloat(p.dtype()) ? Value{0, array.GetDouble(0)} : Value{array.GetInt(0), 0};
  }
  void Step() {
    if (max_steps_ && ++steps_ > max_steps_)
      throw RuntimeError("the interpreter's budget of " + std::to_string(max_steps_) + " steps is used up");
  }

  // ---- Expressions

  static bool IsFloat(DataType t) { return t.is_floating(); }
  int64_t Int(const PrimExpr& e, int lane = 0) { return Eval(e, lane).i; }
  double Float(const PrimExpr& e, int lane = 0) { return Eval(e, lane).f; }
  static Value OfInt(int64_t v, DataType t) { return {WrapInt(v, t), 0}; }
  static Value OfFloat(double v, DataType t) { return {0, Round(v, t)}; }

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
  Value Load(const Buffer& b, int64_t at) {
    Memory& m = MemoryOf(b);
    CheckBounds(b, m, at);
    at += m.first;
    if (IsFloat(b->dtype)) return {0, m.array.GetDouble(at)};
    return {m.array.GetInt(at), 0};
  }
  void Store(const Buffer& b, int64_t at, Value v) {
    Memory& m = MemoryOf(b);
    CheckBounds(b, m, at);
    at += m.first;
    DataType t = b->dtype;
    if (IsFloat(t)) {
      m.array.SetDouble(at, v.f);
      return;
    }
    char* p = static_cast<char*>(m.array.data()) + at * t.bytes();
    memcpy(p, &v.i, static_cast<size_t>(t.bytes()));  // little-endian: the low bytes
  }

  Value Eval(const PrimExpr& e, int lane) {
    Step();
    return support::WithStack([&] { return EvalNode(e, lane); });
  }

  template <class FF, class FI, class FU>
  Value Arith(const PrimExpr& ea, const PrimExpr& eb, DataType t, int lane, FF ff, FI fi, FU fu) {
    Value a = Eval(ea, lane), b = Eval(eb, lane);
    if (IsFloat(t)) return OfFloat(ff(a.f, b.f), t);
    if (t.is_uint()) return OfInt(static_cast<int64_t>(fu(static_cast<uint64_t>(a.i), static_cast<uint64_t>(b.i))), t);
    return OfInt(fi(a.i, b.i), t);
  }
  template <class FF, class FI, class FU>
  Value Compare(const PrimExpr& ea, const PrimExpr& eb, int lane, FF ff, FI fi, FU fu) {
    Value a = Eval(ea, lane), b = Eval(eb, lane);
    DataType t = ea.dtype();
    bool r = IsFloat(t)    ? ff(a.f, b.f)
             : t.is_uint() ? fu(static_cast<uint64_t>(a.i), static_cast<uint64_t>(b.i))
                           : fi(a.i, b.i);
    return {r, 0};
  }

  Value EvalNode(const PrimExpr& e, int lane) {
    const Object* n = e.get();
    DataType t = e.dtype();
    uint32_t k = n->type_index();
    if (k == VarNode::RuntimeTypeIndex() || k == SizeVarNode::RuntimeTypeIndex()) {
      auto it = now_.vars.find(n);
      if (it != now_.vars.end()) return it->second;
      auto wide = now_.vectors.find(n);
      if (wide != now_.vectors.end()) return wide->second.at(static_cast<size_t>(lane));
      throw InternalError("variable `" + e.as<VarNode>()->name_hint.str() + "` has no value");
    }
    if (const auto* i = e.as<IntImmNode>()) return {i->value, 0};
    if (const auto* l = e.as<BufferLoadNode>()) return Load(l->buffer, Position(l->buffer, l->indices, lane));
#define BATON_BINARY(Node, FF, FI, FU) \
  if (const auto* o = e.as<Node>()) return Arith(o->a, o->b, t, lane, FF, FI, FU);
    auto wrap = [](auto f) {
      return [f](int64_t a, int64_t b) {
        return static_cast<int64_t>(f(static_cast<uint64_t>(a), static_cast<uint64_t>(b)));
      };
    };
    auto add = [](uint64_t a, uint64_t b) { return a + b; };
    auto sub = [](uint64_t a, uint64_t b) { return a - b; };
    auto mul = [](uint64_t a, uint64_t b) { return a * b; };
    BATON_BINARY(AddNode, [](double a, double b) { return a + b; }, wrap(add), add)
    BATON_BINARY(MulNode, [](double a, double b) { return a * b; }, wrap(mul), mul)
    BATON_BINARY(SubNode, [](double a, double b) { return a - b; }, wrap(sub), sub)
    // As compiled code has it: division by zero gives 0, the smallest by -1 wraps.
    auto div = [](int64_t a, int64_t b) {
      return b == 0 ? 0 : b == -1 ? static_cast<int64_t>(-static_cast<uint64_t>(a)) : a / b;
    };
    auto mod = [](int64_t a, int64_t b) { return b == 0 || b == -1 ? 0 : a % b; };
    auto udiv = [](uint64_t a, uint64_t b) { return b == 0 ? 0 : a / b; };
    auto umod = [](uint64_t a, uint64_t b) { return b == 0 ? 0 : a % b; };
    BATON_BINARY(DivNode, [](double a, double b) { return a / b; }, div, udiv)
    BATON_BINARY(ModNode, [](double a, double b) { return std::fmod(a, b); }, mod, umod)
    auto fdiv = [div, mod](int64_t a, int64_t b) { return div(a, b) - (mod(a, b) != 0 && ((a ^ b) < 0)); };
    auto fmod_i = [mod](int64_t a, int64_t b) {
      int64_t r = mod(a, b);
      return r != 0 && ((r ^ b) < 0) ? r + b : r;
    };
    BATON_BINARY(FloorDivNode, [](double a, double b) { return std::floor(a / b); }, fdiv, udiv)
    auto fmod_f = [](double a, double b) {
      double r = std::fmod(a, b);
      return r != 0 && ((r < 0) != (b < 0)) ? r + b : r;
    };
    BATON_BINARY(FloorModNode, fmod_f, fmod_i, umod)
    auto fmin = [](double a, double b) { return std::isnan(a) ? a : std::isnan(b) ? b : a < b ? a : b; };
    auto fmax = [](double a, double b) { return std::isnan(a) ? a : std::isnan(b) ? b : a > b ? a : b; };
    auto imin = [](auto a, auto b) { return a < b ? a : b; };
    auto imax = [](auto a, auto b) { return a > b ? a : b; };
    BATON_BINARY(MinNode, fmin, imin, imin)
    BATON_BINARY(MaxNode, fmax, imax, imax)
#undef BATON_BINARY
#define BATON_COMPARE(Node, OP)                     \
  if (const auto* o = e.as<Node>()) {               \
    auto f = [](auto a, auto b) { return a OP b; }; \
    return Compare(o->a, o->b, lane, f, f, f);      \
  }
    BATON_COMPARE(EQNode, ==)
    BATON_COMPARE(NENode, !=)
    BATON_COMPARE(LTNode, <)
    BATON_COMPARE(LENode, <=)
    BATON_COMPARE(GTNode, >)
    BATON_COMPARE(GENode, >=)
#undef BATON_COMPARE
    if (const auto* o = e.as<AndNode>()) return {Int(o->a, lane) && Int(o->b, lane), 0};
    if (const auto* o = e.as<OrNode>()) return {Int(o->a, lane) || Int(o->b, lane), 0};
    if (const auto* o = e.as<NotNode>()) return {!Int(o->a, lane), 0};
    if (const auto* f = e.as<FloatImmNode>()) return OfFloat(f->value, t);
    if (const auto* s = e.as<SelectNode>()) {
      bool c = Int(s->condition, s->condition.dtype().lanes() > 1 ? lane : 0) != 0;
      return Eval(c ? s->true_value : s->false_value, lane);
    }
    if (const auto* c = e.as<CastNode>()) return Convert(Eval(c->value, lane), c->value.dtype(), t);
    if (const auto* r = e.as<RampNode>()) return OfInt(Int(r->base) + lane * Int(r->stride), t);
    if (const auto* b = e.as<BroadcastNode>()) return Eval(b->value, 0);
    if (const auto* s = e.as<ShuffleNode>()) {
      int64_t at = s->indices[lane];
      for (const PrimExpr& v : s->vectors) {
        int lanes = v.dtype().lanes();
        if (at < lanes) return Eval(v, static_cast<int>(at));
        at -= lanes;
      }
      throw InternalError("a shuffle picks a lane that is not there");
    }
    if (const auto* l = e.as<LetNode>()) {
      // A bound vector is evaluated again for each lane: its value may depend on it.
      now_.vars[l->var.get()] = Eval(l->value, lane);
      return Eval(l->body, lane);
    }
    if (const auto* c = e.as<CallNode>()) return EvalCall(c, lane);
    throw UnsupportedError("the interpreter does not know " + n->GetTypeKey());
  }

  static Value Convert(Value v, DataType from, DataType to) {
    if (IsFloat(from)) {
      if (IsFloat(to)) return OfFloat(v.f, to);
      if (to.is_bool()) return {v.f != 0, 0};
      if (std::isnan(v.f)) return {0, 0};
      DataType via = to.bits() < 32 ? DataType::Int(32) : to;
      double lo = via.is_int() ? -std::ldexp(1.0, via.bits() - 1) : 0,
             hi = std::ldexp(1.0, via.is_int() ? via.bits() - 1 : via.bits());
      int64_t i;
      if (v.f <= lo) {
        i = via.is_int() ? static_cast<int64_t>(uint64_t{1} << 63) >> (64 - via.bits()) : 0;
      } else if (v.f >= hi) {
        i = via.is_int() ? static_cast<int64_t>(~uint64_t{0} >> (65 - via.bits())) : -1;
      } else {
        i = via.is_uint() ? static_cast<int64_t>(static_cast<uint64_t>(v.f)) : static_cast<int64_t>(v.f);
      }
      return OfInt(i, to);
    }
    if (IsFloat(to))
      return OfFloat(from.is_uint() ? static_cast<double>(static_cast<uint64_t>(v.i)) : static_cast<double>(v.i), to);
    return OfInt(v.i, to);
  }

  template <class F>
  Value Halves(const PrimExpr& v, F combine) {
    int lanes = v.dtype().lanes();
    std::vector<Value> x;
    for (int i = 0; i < lanes; ++i) x.push_back(Eval(v, i));
    while (x.size() > 1) {
      size_t half = x.size() / 2;
      std::vector<Value> y;
      for (size_t i = 0; i < half; ++i) y.push_back(combine(x[i], x[i + half]));
      if (x.size() % 2) y.push_back(x.back());
      x = y;
    }
    return x[0];
  }

  Value EvalCall(const CallNode* c, int lane) {
    std::string_view name = IntrinName(c);
    if (name.substr(0, 4) == "tir.") name.remove_prefix(4);
    DataType t = c->dtype, s = t.element_of();
    auto f = [&](int i) { return Float(c->args[i], lane); };
    auto n = [&](int i) { return Int(c->args[i], lane); };
    if (name == "if_then_else") {
      bool cond = Int(c->args[0], c->args[0].dtype().lanes() > 1 ? lane : 0) != 0;
      return Eval(c->args[cond ? 1 : 2], lane);
    }
    if (name == "likely") return Eval(c->args[0], lane);
    if (name == "masked_load") {
      if (!n(1)) return {0, 0};
      const auto* l = c->args[0].as<BufferLoadNode>();
      return Load(l->buffer, Position(l->buffer, l->indices, lane));
    }
    if (name == "masked_store") {
      const auto* l = c->args[0].as<BufferLoadNode>();
      int lanes = c->args[1].dtype().lanes();
      std::vector<Value> v;
      for (int i = 0; i < lanes; ++i) v.push_back(Eval(c->args[1], i));
      for (int i = 0; i < lanes; ++i) {
        if (Int(c->args[2], i)) Store(l->buffer, Position(l->buffer, l->indices, i), v[static_cast<size_t>(i)]);
      }
      return {0, 0};
    }
    if (c->op.as<GlobalVarNode>()) return CallFunction(c, lane);
    // Where threads go together, or one is alone, nobody is waited for.
    if (name == "prefetch" || name == "tvm_storage_sync") return {0, 0};
    if (name == "tvm_thread_allreduce")
      throw RuntimeError("tvm_thread_allreduce stands in no kernel, or in a branch or loop that not all threads take");
    bool is_float = IsFloat(t);
    if (name == "vector_sum")
      return Halves(c->args[0],
                    [&](Value a, Value b) { return is_float ? OfFloat(a.f + b.f, s) : OfInt(a.i + b.i, s); });
    if (name == "vector_prod")
      return Halves(c->args[0],
                    [&](Value a, Value b) { return is_float ? OfFloat(a.f * b.f, s) : OfInt(a.i * b.i, s); });
    if (name == "vector_max" || name == "vector_min") {
      bool max = name == "vector_max";
      return Halves(c->args[0], [&](Value a, Value b) {
        if (is_float) return std::isnan(a.f) || (!std::isnan(b.f) && (max ? a.f > b.f : a.f < b.f)) ? a : b;
        bool less = s.is_uint() ? static_cast<uint64_t>(a.i) < static_cast<uint64_t>(b.i) : a.i < b.i;
        return less == max ? b : a;
      });
    }
    if (name == "isnan") return {std::isnan(f(0)), 0};
    if (name == "isinf") return {std::isinf(f(0)), 0};
    if (name == "isfinite") return {std::isfinite(f(0)), 0};
    if (name == "reinterpret") return Reinterpret(Eval(c->args[0], lane), c->args[0].dtype().element_of(), s);
    if (is_float) {
      bool single = s.bits() < 64;
      auto out = [&](double v) { return OfFloat(v, s); };
      if (name == "fma")
        return out(single ? static_cast<double>(
                                std::fmaf(static_cast<float>(f(0)), static_cast<float>(f(1)), static_cast<float>(f(2))))
                          : std::fma(f(0), f(1), f(2)));
      if (name == "ldexp") return out(std::isnan(f(1)) ? f(1) : std::ldexp(f(0), static_cast<int>(f(1))));
      if (name == "pow") return out(std::pow(f(0), f(1)));
      if (name == "fmod") return out(std::fmod(f(0), f(1)));
      if (name == "atan2") return out(std::atan2(f(0), f(1)));
      if (name == "sigmoid") return out(1 / (1 + std::exp(-f(0))));
      if (name == "rsqrt") return out(1 / Round(std::sqrt(f(0)), s));
      using Fn = double (*)(double);
      static const std::unordered_map<std::string_view, Fn> unary = {{"exp", std::exp},
                                                                     {"exp2", std::exp2},
                                                                     {"log", std::log},
                                                                     {"log2", std::log2},
                                                                     {"log10", std::log10},
                                                                     {"log1p", std::log1p},
                                                                     {"sqrt", std::sqrt},
                                                                     {"sin", std::sin},
                                                                     {"cos", std::cos},
                                                                     {"tan", std::tan},
                                                                     {"sinh", std::sinh},
                                                                     {"cosh", std::cosh},
                                                                     {"tanh", std::tanh},
                                                                     {"asin", std::asin},
                                                                     {"acos", std::acos},
                                                                     {"atan", std::atan},
                                                                     {"asinh", std::asinh},
                                                                     {"acosh", std::acosh},
                                                                     {"atanh", std::atanh},
                                                                     {"erf", std::erf},
                                                                     {"floor", std::floor},
                                                                     {"ceil", std::ceil},
                                                                     {"trunc", std::trunc},
                                                                     {"round", std::round},
                                                                     {"nearbyint", std::nearbyint},
                                                                     {"fabs", std::fabs},
                                                                     {"abs", std::fabs}};
      if (auto it = unary.find(name); it != unary.end()) return out(it->second(f(0)));
    } else {
      if (name == "abs")
        return OfInt(t.is_uint() || n(0) >= 0 ? n(0) : static_cast<int64_t>(-static_cast<uint64_t>(n(0))), s);
      if (name == "bitwise_and") return OfInt(n(0) & n(1), s);
      if (name == "bitwise_or") return OfInt(n(0) | n(1), s);
      if (name == "bitwise_xor") return OfInt(n(0) ^ n(1), s);
      if (name == "bitwise_not") return OfInt(t.is_bool() ? !n(0) : ~n(0), s);
      if (name == "popcount")
        return OfInt(__builtin_popcountll(static_cast<uint64_t>(n(0)) & (~uint64_t{0} >> (64 - s.bits()))), s);
      if (name == "shift_left" || name == "shift_right") {
        int64_t a = n(0), k = n(1);
        bool big = k < 0 || k >= s.bits();
        if (name == "shift_left") return OfInt(big ? 0 : static_cast<int64_t>(static_cast<uint64_t>(a) << k), s);
        if (s.is_int()) return OfInt(a >> (big ? s.bits() - 1 : k), s);
        return OfInt(big ? 0 : static_cast<int64_t>(static_cast<uint64_t>(a) >> k), s);
      }
    }
    throw UnsupportedError("the interpreter does not know the intrinsic tir." + std::string(name));
  }

  static Value Reinterpret(Value v, DataType from, DataType to) {
    NDArray cell = NDArray::Empty({8}, DataType::UInt(8));
    memset(cell.data(), 0, 8);
    if (IsFloat(from)) {
      cell.View({8 / from.bytes()}, from).SetDouble(0, v.f);
    } else {
      memcpy(cell.data(), &v.i, 8);
    }
    NDArray as = cell.View({8 / to.bytes()}, to);
    return IsFloat(to) ? Value{0, as.GetDouble(0)} : Value{as.GetInt(0), 0};
  }

  // ---- Statements

  using Stores = std::vector<std::pair<int64_t, Value>>;
  static int LanesOf(const BufferStoreNode* st) {
    int lanes = 1;
    for (const PrimExpr& i : st->indices) lanes = std::max(lanes, static_cast<int>(i.dtype().lanes()));
    return lanes;
  }
  Stores StoresOf(const BufferStoreNode* st) {
    Stores out;
    const bool vector = st->value.dtype().lanes() > 1;
    for (int i = 0; i < LanesOf(st); ++i)
      out.push_back({Position(st->buffer, st->indices, i), Eval(st->value, vector ? i : 0)});
    return out;
  }
  void Write(const Buffer& b, const Stores& stores) {
    for (const auto& [at, value] : stores) Store(b, at, value);
  }
  Memory Allocated(const Buffer& b) {
    std::vector<int64_t> shape;
    for (const PrimExpr& d : b->shape) shape.push_back(Int(d));
    NDArray array = NDArray::Empty(shape, b->dtype);
    const int64_t size = array.numel();
    return {std::move(array), size};
  }
  void Check(const AssertStmtNode* a) {
    if (Int(a->condition)) return;
    const auto* text = a->message.as<StringImmNode>();
    throw RuntimeError(text ? text->value.str() : "an assertion failed");
  }

  void Exec(const Stmt& s) {
    Step();
    support::WithStack([&] { ExecNode(s); });
  }
  void ExecNode(const Stmt& s) {
    if (const auto* st = s.as<BufferStoreNode>()) {
      if (LanesOf(st) == 1) {
        Store(st->buffer, Position(st->buffer, st->indices, 0), Eval(st->value, 0));
        return;
      }
      // All lanes are read before one is written.
      Write(st->buffer, StoresOf(st));
    } else if (const auto* f = s.as<ForNode>()) {
      int64_t begin = Int(f->min), n = Int(f->extent);
      Value& slot = now_.vars[f->loop_var.get()];
      for (int64_t i = 0; i < n; ++i) {
        slot.i = begin + i;
        Exec(f->body);
      }
    } else if (const auto* q = s.as<SeqStmtNode>()) {
      for (const Stmt& x : q->seq) Exec(x);
    } else if (const auto* i = s.as<IfThenElseNode>()) {
      if (Int(i->condition)) {
        Exec(i->then_case);
      } else if (i->else_case.defined()) {
        Exec(i->else_case);
      }
    } else if (const auto* a = s.as<AllocateNode>()) {
      now_.memory[a->buffer->data.get()] = Allocated(a->buffer);
      Exec(a->body);
    } else if (const auto* l = s.as<LetStmtNode>()) {
      Bind(l);
      Exec(l->body);
    } else if (const auto* a = s.as<AttrStmtNode>()) {
      if (a->attr_key == kThreadExtent && !in_kernel_) return Launch(s);
      if (a->attr_key == kReduceScope) return WithReducer(a, [&] { Exec(a->body); });
      Exec(a->body);
    } else if (const auto* e = s.as<EvaluateNode>()) {
      Eval(e->value, 0);
    } else if (const auto* a = s.as<AssertStmtNode>()) {
      Check(a);
      Exec(a->body);
    } else {
      throw UnsupportedError("the interpreter does not know " + s.get()->GetTypeKey());
    }
  }

  // ---- Calls of functions of the module

  Value CallFunction(const CallNode* c, int lane) {
    const auto* g = c->op.as<GlobalVarNode>();
    if (!options_.mod.defined() || !options_.mod->ContainGlobalVar(g->name_hint.str()))
      throw UnsupportedError("the interpreter does not know the function @" + g->name_hint.str());
    const auto f = Downcast<PrimFunc>(options_.mod->Lookup(g->name_hint.str()));
    if (f->params.size() != c->args.size())
      throw RuntimeError("@" + g->name_hint.str() + " takes " + std::to_string(f->params.size()) + " arguments, got " +
                         std::to_string(c->args.size()));
    InterpretOptions options = options_;
    options.max_steps = 0;  // steps are counted together
    Interpreter callee(options);
    callee.max_steps_ = max_steps_, callee.steps_ = steps_;
    for (size_t i = 0; i < f->params.size(); ++i) {
      const Var& p = f->params[static_cast<int64_t>(i)];
      const PrimExpr& arg = c->args[static_cast<int64_t>(i)];
      if (!p.dtype().is_handle()) {
        callee.now_.vars[p.get()] = Eval(arg, lane);
        continue;
      }
      auto it = now_.memory.find(arg.get());
      if (it == now_.memory.end()) throw UnsupportedError("the interpreter passes pointers to whole buffers only");
      callee.now_.memory[p.get()] = it->second;
      if (f->buffer_map.count(p)) callee.now_.memory[f->buffer_map.at(p)->data.get()] = it->second;
    }
    callee.Run(f->body);
    steps_ = callee.steps_;
    return {0, 0};
  }

  // ---- Threads

  /// Runs the blocks of a kernel one after the other.
  void Launch(const Stmt& kernel) {
    axes_ = AxesOf(kernel);
    FindWaits(kernel);
    const std::vector<KernelAxis>& axes = axes_;
    int64_t blocks = 1, threads = 1;
    std::vector<int64_t> extents;
    for (const KernelAxis& a : axes) {
      extents.push_back(Int(a.extent));
      if (extents.back() < 0) throw RuntimeError("a kernel of a negative number of threads");
      (IsBlockAxis(a.axis) ? blocks : threads) *= extents.back();
    }
    // The number of a block, or thread, in its variables.
    auto number = [&](int64_t n, bool block, State* state) {
      for (size_t i = axes.size(); i-- > 0;) {
        if (IsBlockAxis(axes[i].axis) != block) continue;
        for (const VarNode* v : axes[i].vars) state->vars[v] = {n % extents[i], 0};
        n /= extents[i];
      }
    };
    in_kernel_ = true;
    for (int64_t b = 0; b < blocks && threads; ++b) {
      number(b, true, &now_);
      std::vector<State> states(static_cast<size_t>(threads), now_);
      Team team;
      for (int64_t t = 0; t < threads; ++t) {
        const bool back = options_.threads == Threads::kApartBackwards;
        State& state = states[static_cast<size_t>(back ? threads - 1 - t : t)];
        number(back ? threads - 1 - t : t, false, &state);
        team.push_back(&state);
      }
      block_ = team.size();
      ExecAll(kernel, team);
    }
    in_kernel_ = false;
  }

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
  void FindWaits(const Stmt& kernel) {
    struct Finder : StmtVisitor {
      std::unordered_set<const Object*>* waits;
      size_t barriers = 0;
      void VisitStmt(const Stmt& s) final {
        const size_t before = barriers;
        barriers += CallOf(s, kStorageSync) || CallOf(s, kThreadAllreduce) ? 1 : 0;
        StmtVisitor::VisitStmt(s);
        if (barriers > before) waits->insert(s.get());
      }
    } finder;
    finder.waits = &waits_;
    finder.VisitStmt(kernel);
  }

  void ExecAll(const Stmt& s, const Team& team) {
    Step();
    support::WithStack([&] { ExecAllNode(s, team); });
  }
  /// A statement for all of a team, which is not empty.
  void ExecAllNode(const Stmt& s, const Team& team) {
    if (options_.threads != Threads::kTogether && !waits_.count(s.get())) {
      for (State* t : team) As(t, [&] { Exec(s); });
      return;
    }
    if (const auto* q = s.as<SeqStmtNode>()) {
      for (const Stmt& x : q->seq) ExecAll(x, team);
    } else if (const auto* a = s.as<AttrStmtNode>()) {
      WithReducer(a->attr_key == kReduceScope ? a : reduce_, [&] { ExecAll(a->body, team); });
    } else if (const auto* f = s.as<ForNode>()) {
      std::vector<int64_t> begins, counts;
      int64_t most = 0;
      for (State* t : team) {
        As(t, [&] {
          begins.push_back(Int(f->min));
          counts.push_back(Int(f->extent));
          most = std::max(most, counts.back());
        });
      }
      for (int64_t round = 0; round < most; ++round) {
        Team still;
        for (size_t i = 0; i < team.size(); ++i) {
          if (round >= counts[i]) continue;
          team[i]->vars[f->loop_var.get()] = {begins[i] + round, 0};
          still.push_back(team[i]);
        }
        ExecAll(f->body, still);
      }
    } else if (const auto* i = s.as<IfThenElseNode>()) {
      Team yes, no;
      for (State* t : team) As(t, [&] { (Int(i->condition) ? yes : no).push_back(t); });
      if (!yes.empty()) ExecAll(i->then_case, yes);
      if (!no.empty() && i->else_case.defined()) ExecAll(i->else_case, no);
    } else if (const auto* l = s.as<LetStmtNode>()) {
      for (State* t : team) As(t, [&] { Bind(l); });
      ExecAll(l->body, team);
    } else if (const auto* a = s.as<AllocateNode>()) {
      Memory shared;
      for (State* t : team) {
        As(t, [&] {
          Memory& own = now_.memory[a->buffer->data.get()];
          if (a->buffer->scope() != kShared || !shared.array.defined()) own = Allocated(a->buffer);
          if (a->buffer->scope() == kShared) own = shared = shared.array.defined() ? shared : own;
        });
      }
      ExecAll(a->body, team);
    } else if (const auto* a = s.as<AssertStmtNode>()) {
      for (State* t : team) As(t, [&] { Check(a); });
      ExecAll(a->body, team);
    } else if (const auto* st = s.as<BufferStoreNode>()) {
      // All threads read before one writes.
      std::vector<Stores> stores;
      for (State* t : team) As(t, [&] { stores.push_back(StoresOf(st)); });
      size_t i = 0;
      for (State* t : team) As(t, [&] { Write(st->buffer, stores[i++]); });
    } else {
      const CallNode* allreduce = CallOf(s, kThreadAllreduce);
      if ((allreduce || CallOf(s, kStorageSync)) && team.size() != block_) {
        throw RuntimeError("a barrier stands in a branch or loop that not all threads of the block take: " +
                           std::to_string(team.size()) + " of " + std::to_string(block_));
      }
      if (allreduce) return Allreduce(allreduce, team);
      for (State* t : team) As(t, [&] { Exec(s); });
    }
  }

  void Allreduce(const CallNode* call, const Team& team) {
    const ThreadAllreduce all(call);
    const CommReducer reducer = ReducerOf(reduce_, all);
    const size_t n = all.values.size();
    auto set = [&](const Array<Var>& to, const std::vector<Value>& values) {
      for (size_t i = 0; i < n; ++i) now_.vars[to[static_cast<int64_t>(i)].get()] = values[i];
    };
    // Those that differ in nothing but the variables that it goes over are one group.
    std::map<std::vector<int64_t>, std::vector<Value>> groups;
    std::vector<std::vector<int64_t>> key_of;
    for (State* t : team) {
      As(t, [&] {
        std::vector<int64_t> key;
        for (const KernelAxis& a : axes_) {
          bool over = false;
          for (const VarNode* v : all.vars) over = over || ThreadAxis(v) == a.axis;
          key.push_back(over ? 0 : now_.vars[a.vars[0]].i);
        }
        key_of.push_back(key);
        auto [it, fresh] = groups.try_emplace(key);
        if (fresh) {
          for (const PrimExpr& e : reducer->identity_element) it->second.push_back(Eval(e, 0));
        }
        if (!Int(all.condition)) return;
        std::vector<Value> mine, sum;
        for (const PrimExpr& e : all.values) mine.push_back(Eval(e, 0));
        set(reducer->lhs, it->second);
        set(reducer->rhs, mine);
        for (const PrimExpr& e : reducer->result) sum.push_back(Eval(e, 0));
        it->second = sum;
      });
    }
    for (size_t k = 0; k < team.size(); ++k) {
      As(team[k], [&] {
        for (size_t i = 0; i < n; ++i) {
          const BufferLoadNode* at = all.places[i];
          Store(at->buffer, Position(at->buffer, at->indices, 0), groups[key_of[k]][i]);
        }
      });
    }
  }

  void Bind(const LetStmtNode* l) {
    const auto* call = l->value.as<CallNode>();
    if (call && IntrinName(call) == "tir.ptr_offset") {
      // A buffer inside an arena: its type is known when it is used.
      auto base = now_.memory.find(call->args[0].get());
      if (base == now_.memory.end()) throw UnsupportedError("the interpreter knows pointers into workspaces only");
      Memory m = base->second;
      m.offset += Int(call->args[1]);
      m.raw = true;
      now_.memory[l->var.get()] = m;
      return;
    }
    int lanes = l->value.dtype().lanes();
    if (lanes == 1) {
      now_.vars[l->var.get()] = Eval(l->value, 0);
      return;
    }
    std::vector<Value> all;
    for (int i = 0; i < lanes; ++i) all.push_back(Eval(l->value, i));
    now_.vectors[l->var.get()] = std::move(all);
  }

  InterpretOptions options_;
  State now_;
  int64_t steps_ = 0, max_steps_;
  // Within a kernel.
  bool in_kernel_ = false;
  std::vector<KernelAxis> axes_;
  size_t block_ = 0;                      // threads of a block
  const AttrStmtNode* reduce_ = nullptr;  // the mark that says how values are combined
  std::unordered_set<const Object*> waits_;
};

}  // namespace

void Interpret(const PrimFunc& func, const std::vector<NDArray>& args, const InterpretOptions& options) {
  Interpreter(func, args, options).Run(func->body);
}
void Interpret(const PrimFunc& func, const std::vector<NDArray>& args, int64_t max_steps) {
  InterpretOptions options;
  options.max_steps = max_steps;
  Interpret(func, args, options);
}

/// The same for front ends: (function, arrays as a list, which the function writes to, how threads run: "together",
/// "apart" or "apart backwards", module whose functions can be called or null); the last two may be left out.
BATON_REGISTER_GLOBAL("tir.Interpret").set_body([](runtime::Args args, runtime::RetValue*) {
  const auto arrays = args[1].As<Array<NDArray>>();
  InterpretOptions options;
  if (args.size() > 2) {
    const String threads = args[2].As<String>();
    if (threads != "together" && threads != "apart" && threads != "apart backwards") {
      throw runtime::ValueError("threads run together, apart or apart backwards, not \"" + threads.str() + "\"");
    }
    options.threads = threads == "together" ? Threads::kTogether
                      : threads == "apart"  ? Threads::kApart
                                            : Threads::kApartBackwards;
  }
  if (args.size() > 3 && !args[3].is_null()) options.mod = args[3].As<IRModule>();
  Interpret(args[0].As<PrimFunc>(), std::vector<NDArray>(arrays.begin(), arrays.end()), options);
});

}  // namespace baton::tir
