// SPDX-License-Identifier: Apache-2.0
#include "driver/donations.h"

#include <baton/arith/extent.h>
#include <baton/relay/op.h>
#include <baton/support/pointer_map.h>
#include <baton/tir/functor.h>

#include <functional>

#include "driver/debug_source.h"
#include "driver/kernel_table.h"
#include "driver/size_words.h"

namespace baton::driver {
namespace {

using relay::Expr;

bool SameExtents(const TensorType& a, const TensorType& b) {
  bool same = a->shape.size() == b->shape.size();
  for (size_t i = 0; same && i < a->shape.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    same = tir::ExprDeepEqual(arith::CanonicalExtent(a->shape[at]), arith::CanonicalExtent(b->shape[at]));
  }
  return same;
}

/// Whether a group may write its result over these parameters. Its operators are elementwise, and what it computes of
/// the parameters has the result's shape throughout: element i of them is read for element i of the result alone, and
/// a store waits for what it stores. Kernels of such groups store no element twice.
bool ReadsBeforeWrites(const relay::Function& f, const PointerSet& over) {
  const auto* out = f->body->checked_type_.as<TensorTypeNode>();
  if (!out) return false;
  const TensorType result = GetRef<TensorType>(out);
  PointerSet from;  // what is computed of the parameters
  for (const Expr& e : DataflowOrder(f->body)) {
    bool depends = over.Has(e.get());
    if (const auto* call = e.as<relay::CallNode>()) {
      const auto* op = call->op.as<OpNode>();
      const relay::OpDef* def = op ? relay::DefOf(op) : nullptr;
      if (!def || def->pattern > relay::OpPattern::kBroadcast) return false;
      for (const Expr& a : call->args) depends = depends || from.Has(a.get());
    } else if (!e.as<relay::VarNode>() && !e.as<relay::ConstantNode>()) {
      return false;
    }
    if (!depends) continue;
    from.Add(e.get());
    const auto* type = e->checked_type_.as<TensorTypeNode>();
    if (!type || !SameExtents(GetRef<TensorType>(type), result)) return false;
    if (over.Has(e.get()) && type->dtype != result->dtype) return false;
  }
  return true;
}

class Pairing {
 public:
  Pairing(const std::vector<DonationSide>& io, size_t inputs, const std::vector<StepUse>& steps)
      : io_(io), inputs_(inputs), steps_(steps), taker_(io.size(), -1) {}

  /// Finds an output for an input; outputs that others have may change hands.
  bool Find(int input) {
    tried_.assign(io_.size(), false);
    return Augment(input);
  }
  /// Why an input has none.
  std::string Why(int input) const {
    std::string of_size, text = io_[static_cast<size_t>(input)].name;
    for (size_t o = inputs_; o < io_.size(); ++o) {
      if (!SameBytes(input, static_cast<int>(o))) continue;
      std::string why = Obstacle(input, static_cast<int>(o));
      if (why.empty()) why = "takes the memory of `" + io_[static_cast<size_t>(taker_[o])].name + "`";
      of_size += "; output `" + io_[o].name + "` " + why;
    }
    return of_size.empty() ? "; no output has its bytes" : of_size;
  }
  int OutputOf(int input) const {
    for (size_t o = inputs_; o < io_.size(); ++o) {
      if (taker_[o] == input) return static_cast<int>(o - inputs_);
    }
    return -1;
  }

 private:
  bool SameBytes(int a, int b) const {
    return tir::ExprDeepEqual(SizeWords::BytesFormula(io_[static_cast<size_t>(a)].type),
                              SizeWords::BytesFormula(io_[static_cast<size_t>(b)].type));
  }
  static bool Has(const std::vector<int>& list, int n) {
    for (int x : list) {
      if (x == n) return true;
    }
    return false;
  }
  static std::string NameOf(const StepUse& s) { return s.function.defined() ? OperatorsOf(s.function, 60) : "a copy"; }

  /// Returns the reason why an output cannot be in an input's memory; empty: it can.
  std::string Obstacle(int input, int output) const {
    if (io_[static_cast<size_t>(output)].state) return "is a state, which stays with its session";
    int read = -1, written = -1;
    for (size_t i = 0; i < steps_.size(); ++i) {
      if (Has(steps_[i].in, input)) read = static_cast<int>(i);
      if (written < 0 && Has(steps_[i].out, output)) written = static_cast<int>(i);
    }
    if (read < written) return "";
    if (written < 0) return "is written by no step";
    const StepUse& step = steps_[static_cast<size_t>(written)];
    if (read > written) {
      return "is written (" + NameOf(step) + ") before `" + io_[static_cast<size_t>(input)].name +
             "` is read for the last time (" + NameOf(steps_[static_cast<size_t>(read)]) + ")";
    }
    if (!step.function.defined()) return "";  // a copy to itself
    PointerSet over;
    size_t at = 0;
    for (const relay::Var& p : step.function->params) {
      std::vector<TensorType> types;
      FlattenSymbolic(p->checked_type(), &types);
      for (size_t i = 0; i < types.size(); ++i, ++at) {
        if (at < step.in.size() && step.in[at] == input) over.Add(p.get());
      }
    }
    if (step.out.size() == 1 && ReadsBeforeWrites(step.function, over)) return "";
    return "is written by the step that reads `" + io_[static_cast<size_t>(input)].name + "` last (" + NameOf(step) +
           "), which is not elementwise in it";
  }

  bool Augment(int input) {
    for (size_t o = inputs_; o < io_.size(); ++o) {
      if (tried_[o] || !SameBytes(input, static_cast<int>(o)) || !Obstacle(input, static_cast<int>(o)).empty())
        continue;
      tried_[o] = true;
      if (taker_[o] >= 0 && !Augment(taker_[o])) continue;
      taker_[o] = input;
      return true;
    }
    return false;
  }

  const std::vector<DonationSide>& io_;
  size_t inputs_;
  const std::vector<StepUse>& steps_;
  std::vector<int> taker_;  // of each output, the input whose memory it takes
  std::vector<bool> tried_;
};

}  // namespace

std::vector<std::pair<int64_t, int64_t>> PairDonations(const Array<runtime::String>& names,
                                                       const std::vector<DonationSide>& io, size_t inputs,
                                                       const std::vector<StepUse>& steps) {
  Pairing pairing(io, inputs, steps);
  std::vector<int> donated;
  for (const runtime::String& name : names) {
    int input = -1;
    for (size_t i = 0; i < inputs; ++i) {
      if (io[i].name == name.str()) input = static_cast<int>(i);
    }
    const std::string which = "donate: input `" + name.str() + "` ";
    if (input < 0) throw CompileError(which + "is not there");
    if (io[static_cast<size_t>(input)].state) throw CompileError(which + "is a state, which stays with its session");
    if (!pairing.Find(input)) {
      throw CompileError(which + "cannot give its memory to an output" + pairing.Why(input) +
                         "; leave it out of donate=");
    }
    donated.push_back(input);
  }
  std::vector<std::pair<int64_t, int64_t>> pairs;
  for (int input : donated) pairs.push_back({input, pairing.OutputOf(input)});
  return pairs;
}

std::vector<std::pair<int64_t, int64_t>> PairOverwrites(const std::vector<DonationSide>& io, size_t inputs,
                                                        const std::vector<StepUse>& steps) {
  Pairing pairing(io, inputs, steps);
  std::vector<int> found;
  for (size_t i = 0; i < inputs; ++i) {
    if (pairing.Find(static_cast<int>(i))) found.push_back(static_cast<int>(i));
  }
  std::vector<std::pair<int64_t, int64_t>> pairs;
  for (int input : found) pairs.push_back({input, pairing.OutputOf(input)});
  return pairs;
}

}  // namespace baton::driver
