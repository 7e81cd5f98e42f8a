// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>

#include "tir/index_error.h"
#include "tir/interpreter/interpreter_impl.h"

namespace baton::tir::interpreter {

Interpreter::Interpreter(const PrimFunc& f, const std::vector<NDArray>& args, const InterpretOptions& options)
    : Interpreter(options) {
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
    // Sizes that are not parameters are read from the array's shape.
    for (size_t d = 0; d < b->shape.size() && b->shape.size() == args[i].shape().size(); ++d) {
      const PrimExpr& size = b->shape[static_cast<int64_t>(d)];
      if (size.as<VarNode>()) now_.vars.emplace(size.get(), Scalar{args[i].shape()[d], 0});
    }
  }
}

void Interpreter::Number(const Var& p, const NDArray& array) {
  if (p.dtype().is_handle()) {
    now_.memory[p.get()] = {array, array.numel()};
    now_.memory[p.get()].raw = true;
    return;
  }
  if (array.numel() != 1 || !(array.dtype() == p.dtype())) {
    throw RuntimeError("parameter `" + p->name_hint.str() + "` is one " + DataType2String(p.dtype()) +
                       ", got an array of " + std::to_string(array.numel()) + " " + DataType2String(array.dtype()));
  }
  now_.vars[p.get()] = IsFloat(p.dtype()) ? Scalar{0, array.GetDouble(0)} : Scalar{array.GetInt(0), 0};
}

int Interpreter::LanesOf(const BufferStoreNode* st) {
  int lanes = 1;
  for (const PrimExpr& i : st->indices) lanes = std::max(lanes, static_cast<int>(i.dtype().lanes()));
  return lanes;
}

Interpreter::Stores Interpreter::StoresOf(const BufferStoreNode* st) {
  Stores out;
  const bool vector = st->value.dtype().lanes() > 1;
  for (int i = 0; i < LanesOf(st); ++i)
    out.push_back({Position(st->buffer, st->indices, i), Eval(st->value, vector ? i : 0)});
  return out;
}

void Interpreter::Write(const Buffer& b, const Stores& stores) {
  for (const auto& [at, value] : stores) Store(b, at, value);
}

Memory Interpreter::Allocated(const Buffer& b) {
  std::vector<int64_t> shape;
  for (const PrimExpr& d : b->shape) shape.push_back(Int(d));
  const bool shared = in_kernel_ && b->scope() == kShared;
  if (auto it = of_block_.find(b->data.get()); shared && it != of_block_.end()) {
    if (it->second.array.shape() == shape) return it->second;
  }
  NDArray array = NDArray::Empty(shape, b->dtype);
  const int64_t size = array.numel();
  Memory made{std::move(array), size};
  if (in_kernel_ || in_parallel_) made.of = shared ? Memory::Of::kBlock : Memory::Of::kThread;
  if (shared) {
    made.root = b->data.get();
    of_block_[made.root] = made;
  }
  return made;
}

void Interpreter::Note(const Buffer& b, const Memory& m, int64_t at, bool writes) {
  if (m.of == Memory::Of::kThread || !(in_kernel_ || in_parallel_)) return;
  const int64_t byte = at * b->dtype.element_of().bytes();
  std::vector<int64_t> shape;
  for (const PrimExpr& d : b->shape) {
    const int64_t* n = as_const_int(d);
    shape.push_back(n ? *n : INT64_MAX);
  }
  if (shape.size() > 1 && std::count(shape.begin() + 1, shape.end(), INT64_MAX)) shape = {INT64_MAX};
  const bool of_block = m.of == Memory::Of::kBlock;
  races_->Access({of_block ? static_cast<const void*>(m.root) : m.array.data(), byte, of_block, b, at - m.first, shape},
                 writes, now_.thread, place_);
}

void Interpreter::Check(const AssertStmtNode* a) {
  if (Int(a->condition)) return;
  if (const auto* index = tir::IndexErrorOf(a)) {
    char said[512];
    // NOLINTNEXTLINE: the format is that of the kernel
    snprintf(said, sizeof said, index->args[0].as<StringImmNode>()->value.c_str(), Int(index->args[1]),
             Int(index->args[2]));
    throw Error("IndexError", said);
  }
  const auto* text = a->message.as<StringImmNode>();
  throw RuntimeError(text ? text->value.str() : "an assertion failed");
}

void Interpreter::ExecNode(const Stmt& s) {
  if (const auto* st = s.as<BufferStoreNode>()) {
    if (LanesOf(st) == 1) {
      Store(st->buffer, Position(st->buffer, st->indices, 0), Eval(st->value, 0));
      return;
    }
    // All lanes are read before one is written.
    Write(st->buffer, StoresOf(st));
  } else if (const auto* f = s.as<ForNode>()) {
    int64_t begin = Int(f->min), n = Int(f->extent);
    Scalar& slot = now_.vars[f->loop_var.get()];
    const bool finds = races_ && f->kind == ForKind::kParallel && !in_kernel_ && !in_parallel_;
    if (finds) races_->BeginLoop(f->loop_var, begin);
    in_parallel_ = in_parallel_ || finds;
    for (int64_t i = 0; i < n; ++i) {
      if (finds) races_->BeginBlock(i);
      slot.i = begin + i;
      Exec(f->body);
    }
    in_parallel_ = in_parallel_ && !finds;
  } else if (const auto* w = s.as<WhileNode>()) {
    for (; Int(w->condition); place_ = s.get()) Exec(w->body);
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

Scalar Interpreter::CallFunction(const CallNode* c, int lane) {
  const auto* g = c->op.as<GlobalVarNode>();
  if (!options_.mod.defined() || !options_.mod->ContainGlobalVar(g->name_hint.str()))
    throw UnsupportedError("the interpreter does not know the function @" + g->name_hint.str());
  const auto f = Downcast<PrimFunc>(options_.mod->Lookup(g->name_hint.str()));
  if (f->params.size() != c->args.size())
    throw RuntimeError("@" + g->name_hint.str() + " takes " + std::to_string(f->params.size()) + " arguments, got " +
                       std::to_string(c->args.size()));
  InterpretOptions options = options_;
  options.max_steps = 0;    // steps are counted together
  options.races = nullptr;  // and races found
  Interpreter callee(options);
  callee.max_steps_ = max_steps_, callee.steps_ = steps_;
  callee.races_ = races_, callee.in_parallel_ = in_kernel_ || in_parallel_, callee.now_.thread = now_.thread;
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

void Interpreter::Bind(const LetStmtNode* l) {
  const auto* call = l->value.as<CallNode>();
  if (call && call->op == intrin::ptr_offset) {
    // A buffer inside an arena: its type is known when it is used.
    auto base = now_.memory.find(call->args[0].get());
    if (base == now_.memory.end()) throw UnsupportedError("the interpreter knows pointers into workspaces only");
    Memory m = base->second;
    m.offset += Int(call->args[1]);
    m.raw = true;
    now_.memory[l->var.get()] = m;
    return;
  }
  if (auto pointed = now_.memory.find(l->value.get()); pointed != now_.memory.end()) {
    const Memory m = pointed->second;
    now_.memory[l->var.get()] = m;
    return;
  }
  int lanes = l->value.dtype().lanes();
  if (lanes == 1) {
    now_.vars[l->var.get()] = Eval(l->value, 0);
    return;
  }
  std::vector<Scalar> all;
  for (int i = 0; i < lanes; ++i) all.push_back(Eval(l->value, i));
  now_.vectors[l->var.get()] = std::move(all);
}

}  // namespace baton::tir::interpreter
