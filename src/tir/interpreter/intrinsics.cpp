// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "tir/interpreter/interpreter_impl.h"

namespace baton::tir::interpreter {

Scalar Interpreter::EvalCall(const CallNode* c, int lane) {
  if (c->op.as<GlobalVarNode>()) return CallFunction(c, lane);
  const IntrinDef* row = IntrinOf(c);
  const DataType t = c->dtype.element_of();
  const auto held = [t](Scalar v) { return t.is_void() ? v : IsFloat(t) ? OfFloat(v.f, t) : OfInt(v.i, t); };
  if (row && row->interpret) return held(row->interpret(*this, c, lane));
  if (row && row->host && row->host.gives_float() == IsFloat(t)) {
    Scalar args[3];
    for (int i = 0; i < static_cast<int>(std::min<size_t>(c->args.size(), 3)); ++i) {
      const DataType from = c->args[i].dtype().element_of();
      args[i] = Eval(c->args[i], lane);
      if (row->host.takes_floats() && !IsFloat(from)) args[i] = Convert(args[i], from, DataType::Float(64));
    }
    return held(row->host(args, c->args[0].dtype().element_of()));
  }
  throw UnsupportedError("the interpreter does not know the intrinsic " + std::string(IntrinName(c)));
}

}  // namespace baton::tir::interpreter
