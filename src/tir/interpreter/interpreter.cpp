// SPDX-License-Identifier: Apache-2.0
// A tree walk that evaluates one lane at a time: a vector expression is asked for each of its lanes.
#include <baton/runtime/registry.h>
#include <baton/support/stack.h>
#include <baton/tir/functor.h>
#include <baton/tir/interpreter.h>
#include <baton/tir/op.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <unordered_map>

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
  Interpreter(const PrimFunc& f, const std::vector<NDArray>& args, int64_t max_steps) : max_steps_(max_steps) {
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
      memory_[b->data.get()] = {args[i], args[i].numel()};
      memory_[p.get()] = memory_[b->data.get()];
      // Sizes that are no parameters are what the array has.
      for (size_t d = 0; d < b->shape.size() && b->shape.size() == args[i].shape().size(); ++d) {
        const PrimExpr& size = b->shape[static_cast<int64_t>(d)];
        if (size.as<VarNode>()) vars_.emplace(size.get(), Value{args[i].shape()[d], 0});
      }
    }
  }
  void Run(const Stmt& s) { Exec(s); }

 private:
  /// A parameter without a buffer: a number, as an array of one, or a pointer to data.
  void Number(const Var& p, const NDArray& array) {
    if (p.dtype().is_handle()) {
      memory_[p.get()] = {array, array.numel()};
      memory_[p.get()].raw = true;
      return;
    }
    if (array.numel() != 1 || !(array.dtype() == p.dtype())) {
      throw RuntimeError("parameter `" + p->name_hint.str() + "` is one " + DataType2String(p.dtype()) +
                         ", got an array of " + std::to_string(array.numel()) + " " + DataType2String(array.dtype()));
    }
    vars_[p.get()] = IsFloat(p.dtype()) ? Value{0, array.GetDouble(0)} : Value{array.GetInt(0), 0};
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
    auto it = memory_.find(b->data.get());
    if (it == memory_.end()) throw InternalError("buffer `" + b->name.str() + "` has no memory");
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
      auto it = vars_.find(n);
      if (it != vars_.end()) return it->second;
      auto wide = vectors_.find(n);
      if (wide != vectors_.end()) return wide->second.at(static_cast<size_t>(lane));
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
      vars_[l->var.get()] = Eval(l->value, lane);
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
    if (name == "prefetch") return {0, 0};
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

  void Exec(const Stmt& s) {
    Step();
    support::WithStack([&] { ExecNode(s); });
  }
  void ExecNode(const Stmt& s) {
    if (const auto* st = s.as<BufferStoreNode>()) {
      int lanes = 1;
      for (const PrimExpr& i : st->indices) lanes = std::max(lanes, static_cast<int>(i.dtype().lanes()));
      if (lanes == 1) {
        Store(st->buffer, Position(st->buffer, st->indices, 0), Eval(st->value, 0));
        return;
      }
      // All lanes are read before one is written.
      std::vector<Value> values;
      for (int i = 0; i < lanes; ++i) values.push_back(Eval(st->value, st->value.dtype().lanes() > 1 ? i : 0));
      for (int i = 0; i < lanes; ++i)
        Store(st->buffer, Position(st->buffer, st->indices, i), values[static_cast<size_t>(i)]);
    } else if (const auto* f = s.as<ForNode>()) {
      int64_t begin = Int(f->min), n = Int(f->extent);
      Value& slot = vars_[f->loop_var.get()];
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
      std::vector<int64_t> shape;
      for (const PrimExpr& d : a->buffer->shape) shape.push_back(Int(d));
      NDArray array = NDArray::Empty(shape, a->buffer->dtype);
      memory_[a->buffer->data.get()] = {array, array.numel()};
      Exec(a->body);
    } else if (const auto* l = s.as<LetStmtNode>()) {
      Bind(l);
      Exec(l->body);
    } else if (const auto* a = s.as<AttrStmtNode>()) {
      Exec(a->body);
    } else if (const auto* e = s.as<EvaluateNode>()) {
      Eval(e->value, 0);
    } else if (const auto* a = s.as<AssertStmtNode>()) {
      if (!Int(a->condition)) {
        const auto* text = a->message.as<StringImmNode>();
        throw RuntimeError(text ? text->value.str() : "an assertion failed");
      }
      Exec(a->body);
    } else {
      throw UnsupportedError("the interpreter does not know " + s.get()->GetTypeKey());
    }
  }

  void Bind(const LetStmtNode* l) {
    const auto* call = l->value.as<CallNode>();
    if (call && IntrinName(call) == "tir.ptr_offset") {
      // A buffer inside an arena: its type is known when it is used.
      auto base = memory_.find(call->args[0].get());
      if (base == memory_.end()) throw UnsupportedError("the interpreter knows pointers into workspaces only");
      Memory m = base->second;
      m.offset += Int(call->args[1]);
      m.raw = true;
      memory_[l->var.get()] = m;
      return;
    }
    int lanes = l->value.dtype().lanes();
    if (lanes == 1) {
      vars_[l->var.get()] = Eval(l->value, 0);
      return;
    }
    std::vector<Value> all;
    for (int i = 0; i < lanes; ++i) all.push_back(Eval(l->value, i));
    vectors_[l->var.get()] = std::move(all);
  }

  std::unordered_map<const Object*, Value> vars_;
  std::unordered_map<const Object*, std::vector<Value>> vectors_;  // bound by statements
  std::unordered_map<const Object*, Memory> memory_;
  int64_t steps_ = 0, max_steps_;
};

}  // namespace

void Interpret(const PrimFunc& func, const std::vector<NDArray>& args, int64_t max_steps) {
  Interpreter(func, args, max_steps).Run(func->body);
}

/// The same for front ends: the arrays as a list, which the function writes to.
BATON_REGISTER_GLOBAL("tir.Interpret").set_body_typed([](PrimFunc func, Array<NDArray> args) {
  Interpret(func, std::vector<NDArray>(args.begin(), args.end()));
});

}  // namespace baton::tir
