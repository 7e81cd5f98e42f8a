// SPDX-License-Identifier: Apache-2.0
// Recurrent layers: one direction of an RNN, a GRU or an LSTM over a whole sequence. The input's part of the gates
// is a product of all steps at once, outside; here is the loop over the steps.
#include <baton/ir/target.h>
#include <baton/relay/op/nn.h>
#include <baton/relay/op/transform.h>
#include <relay/kernel/recurrence.h>

#include <algorithm>
#include <string>

#include "../common.h"
#include "../gradient.h"

namespace baton::relay {
namespace op {
extern const Op recurrence_pack;
}
namespace {

using kernel::Cell;

/// Terms of a sum of bytes that are side by side in a panel, and what the kernel adds to a state's whole numbers.
constexpr int64_t kTerms = 4, kToUnsigned = 128;

struct RecurrenceAttrs : AttrsNode<RecurrenceAttrs> {
  static constexpr auto _type_key = "relay.attrs.RecurrenceAttrs";
  String cell = "lstm";
  Array<String> functions;
  Array<double> alpha;
  Array<double> beta;
  double clip = 0;
  bool linear_before_reset = false;
  bool backward = false;
  bool peepholes = false;
  bool lengths = false;
  bool bytes = false;
  bool zeros = false;
  static constexpr void Describe(auto& d) {
    d(F<&RecurrenceAttrs::cell>, "\"rnn\", \"gru\" or \"lstm\".");
    d(F<&RecurrenceAttrs::functions>,
      "Activations in lower case, as ONNX has them: of an RNN one, of a GRU those of gates and of the state, of an "
      "LSTM "
      "those of gates, of the cell's input and of its output.",
      kRequired);
    d(F<&RecurrenceAttrs::alpha>, "The activations' first number, one each.", kRequired);
    d(F<&RecurrenceAttrs::beta>, "The activations' second number, one each.", kRequired);
    d(F<&RecurrenceAttrs::clip>, "Bound of what activations are given; 0: none.");
    d(F<&RecurrenceAttrs::linear_before_reset>, "Whether a GRU resets the state's product, not the state.");
    d(F<&RecurrenceAttrs::backward>, "Whether the last step comes first.");
    d(F<&RecurrenceAttrs::peepholes>, "Whether `peepholes` is there.");
    d(F<&RecurrenceAttrs::lengths>, "Whether `lengths` is there.");
    d(F<&RecurrenceAttrs::bytes>,
      "Whether the weight is int8, and stands for scale * (weight - zero). Each step then quantizes the state to whole "
      "numbers from -127 to 127, a scale for each sequence, and multiplies bytes.");
    d(F<&RecurrenceAttrs::zeros>, "Whether zero points of a weight in bytes are there; else they are 0.");
  }
};

/// Where the operands are; -1 where there is none.
struct Places {
  Cell cell;
  int candidate = -1, scale = -1, offset = -1, zero = -1;
  int h0 = -1, c0 = -1, bias = -1, peepholes = -1, lengths = -1, count = 2;
  /// `packed`: kGru's second weight is a separate operand.
  Places(const RecurrenceAttrs& a, bool packed) {
    cell = a.cell == "lstm"        ? Cell::kLstm
           : a.cell == "rnn"       ? Cell::kRnn
           : a.linear_before_reset ? Cell::kGruAfter
                                   : Cell::kGru;
    if (packed && cell == Cell::kGru) candidate = count++;
    if (a.bytes) scale = count++;
    if (a.bytes && packed) offset = count++;
    if (a.zeros) zero = count++;
    h0 = count++;
    if (cell == Cell::kLstm) c0 = count++;
    if (cell == Cell::kGruAfter) bias = count++;
    if (a.peepholes) peepholes = count++;
    if (a.lengths) lengths = count++;
  }
  int64_t gates() const { return kernel::GatesOf(cell); }
};

Places CheckOperands(const RecurrenceAttrs& a, const TypeArgs& in, bool packed) {
  if (a.cell != "lstm" && a.cell != "gru" && a.cell != "rnn")
    in.Fail("R1", "cell is \"" + a.cell.str() + "\"; it is \"rnn\", \"gru\" or \"lstm\"");
  if (a.zeros && !a.bytes) in.Fail("R1", "there are zero points of a weight that is not of bytes");
  const Places p(a, packed);
  const size_t functions = p.cell == Cell::kRnn ? 1 : p.cell == Cell::kLstm ? 3 : 2;
  if (a.functions.size() != functions || a.alpha.size() != functions || a.beta.size() != functions)
    in.Fail("R1", "a cell of this kind has " + Str(static_cast<int64_t>(functions)) + " activations");
  if (in.size() != p.count)
    in.Fail("R2", "there are " + Str(in.size()) + " operands, where " + Str(p.count) + " are wanted");
  in.Floating(0, "R3");
  in.Rank(0, 3, "R3");
  for (int i = 1; i < p.count; ++i) {
    if (i == p.lengths) {
      in.Integral(i, "R3");
      in.Rank(i, 1, "R3");
    } else if (i == p.zero || i == p.offset || (a.bytes && (i == 1 || i == p.candidate))) {
      const DataType wanted = DataType::Int(i == p.zero || i == p.offset ? 32 : 8);
      if (in.dtype(i) != wanted) in.Fail("R3", in.Show(i) + ", where " + DataType2String(wanted) + " is wanted");
    } else if (!packed || (i != 1 && i != p.candidate)) {
      in.SameDtype(0, i, "R3");
    }
  }
  in.Rank(p.h0, 2, "R3");
  for (int i : {p.scale, p.offset, p.zero}) {
    if (i >= 0 && (in.ndim(i) != 1 || in.dim(i, 0) != p.gates() * in.dim(p.h0, 1)))
      in.Fail("R4", in.Show(i) + " does not hold a number for each gate of " + in.Show(p.h0));
  }
  return p;
}

/// (states of all steps, the last state[, the last cell])
Type ResultOf(const TypeArgs& in, const Places& p) {
  const Shape &x = in.shape(0), &h = in.shape(p.h0);
  const PrimExpr hidden = h[1];
  if (!in.Same(x[1], h[0]))
    in.Fail("R4", in.Show(0) + " and " + in.Show(p.h0) + " differ in their number of sequences");
  if (DimOf(hidden) < 0 || !in.Same(x[2], PrimExpr(p.gates() * DimOf(hidden))))
    in.Fail("R4", in.Show(0) + " does not hold " + Str(p.gates()) + " gates for each element of " + in.Show(p.h0));
  const Type state = in.type(p.h0), all = TensorType(Shape{x[0], x[1], hidden}, in.dtype(0));
  return p.c0 >= 0 ? TupleType(Array<Type>{all, state, state}) : TupleType(Array<Type>{all, state});
}

Type RecurrenceType(const RecurrenceAttrs& a, const TypeArgs& in) {
  const Places p = CheckOperands(a, in, false);
  in.Rank(1, 2, "R4");
  const int64_t hidden = in.dim(p.h0, 1);
  if (in.dim(1, 0) != p.gates() * hidden || in.dim(1, 1) != hidden)
    in.Fail("R4", in.Show(1) + " does not fit " + in.Show(p.h0));
  return ResultOf(in, p);
}
Type RecurrencePackType(const RecurrenceAttrs& a, const TypeArgs& in) {
  const Places p = CheckOperands(a, in, true);
  for (int i : {1, p.candidate}) {
    if (i < 0) continue;
    in.Number(i, "R4");
    in.Rank(i, a.bytes ? 5 : 4, "R4");
    const int64_t hidden = in.dim(p.h0, 1), terms = a.bytes ? kTerms : 1, units = in.dim(i, 3), gates = in.dim(i, 2);
    const int64_t wanted = p.candidate < 0 ? p.gates() : i == 1 ? 2 : 1;
    if (a.bytes && in.dim(i, 4) != terms) in.Fail("R4", in.Show(i) + " does not end with four terms of a sum");
    if (in.dim(i, 1) != (hidden + terms - 1) / terms || gates != wanted || units < 1 ||
        in.dim(i, 0) != (hidden + units - 1) / units)
      in.Fail("R4", in.Show(i) + " does not fit " + in.Show(p.h0));
  }
  return ResultOf(in, p);
}

/// Rows of gates (gates * hidden, hidden) as panels (hidden / units, hidden, gates, units), of bytes with four terms of
/// a sum side by side (hidden / units, hidden / 4, gates, units, 4); units and terms that are missing are 0.
Expr Panels(Expr weight, int64_t gates, int64_t hidden, int64_t units, DataType t) {
  const int64_t panels = (hidden + units - 1) / units, terms = t == DataType::Int(8) ? kTerms : 1;
  const int64_t depth = (hidden + terms - 1) / terms;
  Expr w = Reshape(weight, {gates, hidden, hidden});
  if (panels * units != hidden || depth * terms != hidden) {
    w = MakeCall<PadAttrs>(op::pad, {w, MakeScalar(0, t)}, [&](PadAttrs* a) {
      a->pad_width = {Array<int64_t>{0, 0}, Array<int64_t>{0, panels * units - hidden},
                      Array<int64_t>{0, depth * terms - hidden}};
    });
  }
  if (terms == 1) return Transpose(Reshape(w, {gates, panels, units, hidden}), {1, 3, 0, 2});
  return Transpose(Reshape(w, {gates, panels, units, depth, terms}), {1, 3, 0, 2, 4});
}
Expr Rows(Expr e, int64_t begin, int64_t end) {
  return MakeCall<StridedSliceAttrs>(op::strided_slice, {e}, [&](StridedSliceAttrs* a) {
    a->begin = Array<int64_t>{begin}, a->end = Array<int64_t>{end}, a->axes = Array<int64_t>{0};
  });
}

Expr DecomposeRecurrence(const Call& call, const Array<Expr>& args) {
  const auto& a = AttrsOf<RecurrenceAttrs>(call);
  const Places p(a, false);
  const auto *x = AsTensor(call->args[0]->checked_type()), *h = AsTensor(call->args[p.h0]->checked_type());
  const DataType given = x->dtype, t = Wide(given);
  const int64_t hidden = DimOf(h->shape[1]), batch = DimOf(h->shape[0]);
  auto wide = [&](const Expr& e) { return given == t ? e : Cast(e, t); };
  const Target target = Target::Current();
  const int64_t lanes = target->traits().vector_kernels ? target->Lanes(t) : 1;
  auto panels = [&](const Expr& w, int64_t gates) {
    return Panels(w, gates, hidden, lanes * kernel::PanelVectors(gates, batch, hidden, lanes),
                  a.bytes ? DataType::Int(8) : t);
  };
  Array<Expr> packed{wide(args[0])};
  const Expr weight = a.bytes ? args[1] : wide(args[1]);
  if (p.cell == Cell::kGru) {
    packed.push_back(panels(Rows(weight, 0, 2 * hidden), 2));
    packed.push_back(panels(Rows(weight, 2 * hidden, 3 * hidden), 1));
  } else {
    packed.push_back(panels(weight, p.gates()));
  }
  if (a.bytes) {
    packed.push_back(wide(args[p.scale]));
    const Expr sums = MakeCall<ReduceAttrs>(op::sum, {Cast(weight, DataType::Int(32))},
                                            [](ReduceAttrs* r) { r->axis = Array<int64_t>{1}; });
    packed.push_back(Multiply(sums, MakeScalar(kToUnsigned, DataType::Int(32))));
  }
  for (int i = a.bytes ? 3 : 2; i < p.count; ++i)
    packed.push_back(i == p.lengths || i == p.zero ? args[i] : wide(args[i]));
  Expr made = MakeCall(op::recurrence_pack, packed, call->attrs);
  if (given == t) return made;
  Array<Expr> fields;
  for (int i = 0; i < (p.c0 >= 0 ? 3 : 2); ++i) fields.push_back(Cast(TupleGetItem(made, i), given));
  return Tuple(fields);
}

Tensors LowerRecurrence(const RecurrenceAttrs& a, const Tensors& in, const Type& out_type) {
  const Places p(a, true);
  Array<tir::Buffer> buffers;
  auto flat = [](const Shape& shape, DataType t, const String& name) {
    PrimExpr n = PrimExpr(int64_t{1});
    for (const PrimExpr& d : shape) n = n * d;
    return tir::Buffer::Make({n}, t, name);
  };
  for (const Tensor& t : in) buffers.push_back(flat(t.shape(), t.dtype(), t->op->name));
  auto at = [&](int i) { return i < 0 ? tir::Buffer() : buffers[i]; };
  kernel::Recurrence r;
  r.cell = p.cell;
  for (size_t i = 0; i < a.functions.size(); ++i) {
    const auto k = static_cast<int64_t>(i);
    r.functions.push_back({a.functions[k], a.alpha[k], a.beta[k]});
  }
  r.clip = a.clip, r.backward = a.backward, r.bytes = a.bytes;
  r.scale = at(p.scale), r.offset = at(p.offset), r.zero = at(p.zero);
  r.steps = in[0].shape()[0], r.batch = in[0].shape()[1], r.hidden = DimOf(in[p.h0].shape()[1]),
  r.dtype = in[0].dtype();
  r.projected = at(0), r.weight = at(1), r.candidate_weight = at(p.candidate);
  r.units = DimOf(in[1].shape()[3]);
  if (p.candidate >= 0) r.candidate_units = DimOf(in[p.candidate].shape()[3]);
  r.h0 = at(p.h0), r.c0 = at(p.c0), r.inner_bias = at(p.bias), r.peepholes = at(p.peepholes), r.lengths = at(p.lengths);
  const auto* types = out_type.as<TupleTypeNode>();
  te::ExternOpNode op;
  op.name = String("recurrence"), op.tag = String("extern");
  op.inputs = in, op.input_buffers = buffers;
  for (const Type& t : types->fields) op.output_buffers.push_back(flat(AsTensor(t)->shape, r.dtype, "out"));
  r.y = op.output_buffers[0], r.h = op.output_buffers[1];
  if (p.c0 >= 0) r.c = op.output_buffers[2];
  kernel::Machine mc = kernel::MachineOf(Target::Current(), r.dtype);
  // Panels were made for a processor's vectors; another's are read in its own.
  if (r.units % mc.lanes || (p.candidate >= 0 && r.candidate_units % mc.lanes)) mc.lanes = 1;
  op.body = kernel::WriteRecurrence(r, mc);
  const te::ExternOp made(std::move(op));
  Tensors out;
  for (size_t i = 0; i < types->fields.size(); ++i) {
    te::TensorNode t;
    t.shape = AsTensor(types->fields[static_cast<int64_t>(i)])->shape, t.dtype = r.dtype, t.op = made;
    t.value_index = static_cast<int64_t>(i);
    out.push_back(Tensor(std::move(t)));
  }
  return out;
}

}  // namespace

namespace gradient {
namespace {

Val ApplyFunction(const String& name, double alpha, double beta, const Val& x) {
  const double at = alpha;
  if (name == "sigmoid") return Do(op::sigmoid, x);
  if (name == "tanh") return Do(op::tanh, x);
  if (name == "relu") return Do(op::relu, x);
  if (name == "affine") return at * x + beta;
  if (name == "scaledtanh") return at * Do(op::tanh, beta * x);
  if (name == "hardsigmoid") return {Maximum(Minimum(at * x + beta, Num(1, x.t)), Num(0, x.t)), x.t};
  if (name == "softsign") return x / (Do(op::abs, x) + 1);
  if (name == "leakyrelu") return Pick(Test(op::less, x, 0), at * x, x);
  if (name == "thresholdedrelu") return Pick(Test(op::greater, x, at), x, 0);
  if (name == "elu") return Pick(Test(op::less, x, 0), at * (Do(op::exp, x) - 1), x);
  if (name == "softplus") return Do(op::log, Do(op::exp, x) + 1);
  throw CompileError("there is no activation \"" + name.str() + "\" for a recurrent layer");
}

/// A layer as steps, which are differentiated one by one.
class Steps {
 public:
  Steps(const Call& call, const Array<Expr>& args) : a_(AttrsOf<RecurrenceAttrs>(call)), p_(a_, false), args_(args) {
    const auto *x = AsTensor(call->args[0]->checked_type()), *h = AsTensor(call->args[p_.h0]->checked_type());
    t_ = x->dtype, steps_ = DimOf(x->shape[0]), hidden_ = DimOf(h->shape[1]);
  }
  int64_t steps() const { return steps_; }

  Expr Run() {
    Val h{args_[p_.h0], t_}, c = h;
    if (p_.c0 >= 0) c = {args_[p_.c0], t_};
    std::vector<Expr> rows(static_cast<size_t>(steps_));
    for (int64_t s = 0; s < steps_; ++s) {
      const int64_t at = a_.backward ? steps_ - 1 - s : s;
      const Val x{Squeeze(Slice(args_[0], {at}, {at + 1}), {0}), t_}, before_h = h, before_c = c;
      p_.cell == Cell::kLstm ? Lstm(x, &h, &c) : p_.cell == Cell::kRnn ? Rnn(x, &h) : Gru(x, &h);
      Val row = h;
      if (p_.lengths >= 0) {
        const Expr number = MakeScalar(static_cast<double>(at), DataType::Int(64));
        const Val inside{ExpandDims(MakeCall(op::greater, {Cast(args_[p_.lengths], DataType::Int(64)), number}), 1),
                         t_};
        row = Pick(inside, h, 0), h = Pick(inside, h, before_h), c = Pick(inside, c, before_c);
      }
      rows[static_cast<size_t>(at)] = ExpandDims(row, 0);
    }
    Array<Expr> out{Concat(Tuple(Array<Expr>(rows.begin(), rows.end())), 0), h};
    if (p_.c0 >= 0) out.push_back(c);
    return Tuple(out);
  }

 private:
  /// Columns of gate i.
  Val Gate(const Val& x, int64_t i, int64_t n = 1) const {
    return {MakeCall<StridedSliceAttrs>(op::strided_slice, {x},
                                        [&](StridedSliceAttrs* s) {
                                          s->begin = Array<int64_t>{i * hidden_};
                                          s->end = Array<int64_t>{(i + n) * hidden_};
                                          s->axes = Array<int64_t>{1};
                                        }),
            t_};
  }
  /// h times rows of the gates [begin, end).
  Val Product(const Val& h, int64_t begin, int64_t end) const {
    const bool all = begin == 0 && end == p_.gates();
    return {MatMul(h, all ? args_[1] : Rows(args_[1], begin * hidden_, end * hidden_), false, true), t_};
  }
  Val Function(int64_t i, Val v) const {
    if (a_.clip > 0) v = {Maximum(Minimum(v, Num(a_.clip, t_)), Num(-a_.clip, t_)), t_};
    return ApplyFunction(a_.functions[i], a_.alpha[i], a_.beta[i], v);
  }
  /// Number of the peepholes' three parts, times c.
  Val Peep(const Val& sum, int64_t part, const Val& c) const {
    if (p_.peepholes < 0) return sum;
    return sum + Val{Slice(args_[p_.peepholes], {part * hidden_}, {(part + 1) * hidden_}), t_} * c;
  }
  void Lstm(const Val& x, Val* h, Val* c) const {
    const Val sums = x + Product(*h, 0, 4);
    const Val in = Function(0, Peep(Gate(sums, 0), 0, *c)), keep = Function(0, Peep(Gate(sums, 2), 2, *c));
    *c = keep * *c + in * Function(1, Gate(sums, 3));
    const Val out = Function(0, Peep(Gate(sums, 1), 1, *c));
    *h = out * ApplyFunction(a_.functions[2], a_.alpha[2], a_.beta[2], *c);
  }
  void Rnn(const Val& x, Val* h) const { *h = Function(0, x + Product(*h, 0, 1)); }
  void Gru(const Val& x, Val* h) const {
    const Val sums = Gate(x, 0, 2) + Product(*h, 0, 2);
    const Val update = Function(0, Gate(sums, 0)), reset = Function(0, Gate(sums, 1));
    const Val inner = p_.bias >= 0 ? reset * (Product(*h, 2, 3) + Val{args_[p_.bias], t_}) : Product(reset * *h, 2, 3);
    *h = (1 - update) * Function(1, Gate(x, 2) + inner) + update * *h;
  }

  const RecurrenceAttrs& a_;
  Places p_;
  Array<Expr> args_;
  DataType t_;
  int64_t steps_ = 0, hidden_ = 0;
};

Expr UnrollRecurrence(const Call& call, const Array<Expr>& args) {
  Steps steps(call, args);
  if (AttrsOf<RecurrenceAttrs>(call).bytes)
    throw CompileError("[gradient of nn.contrib_recurrence] it has a rule for weights of floats, not of bytes");
  if (steps.steps() < 1) throw CompileError("the gradient of nn.contrib_recurrence needs a known number of steps");
  return steps.Run();
}

}  // namespace
}  // namespace gradient

namespace {

constexpr auto kProjected =
    "What the input adds to each gate, biases included: (steps, sequences, gates * hidden). R1: a known cell and its "
    "activations. R2: as many operands as it has. R3: floating, rank 3; other operands have its dtype, lengths are "
    "integers. R4: shapes that fit. Gates are in the order of ONNX.";
constexpr auto kThird = "Of a packed GRU without linear_before_reset panels of its hidden gate, else the first state.";
constexpr auto kMore =
    "What follows, in this order: the first state (sequences, hidden); of an LSTM the first cell; of a GRU with "
    "linear_before_reset the bias of its hidden gate's product (hidden); where attributes say so peepholes "
    "(3 * hidden) and lengths (sequences).";
constexpr auto kResults = "A tuple: states of all steps (steps, sequences, hidden), the last state[, the last cell].";

}  // namespace

const Op op::recurrence = DefineOp({
    .name = "nn.contrib_recurrence",
    .doc =
        "One direction of an RNN, a GRU or an LSTM over a sequence. Past a sequence's length its states stay as they "
        "are and its outputs are 0.",
    .inputs = {{"projected", kProjected},
               {"weight",
                "Of the state's product, (gates * hidden, hidden); with `bytes` int8, and behind it come its "
                "scale and, with `zeros`, its int32 zero points, a number for each row."},
               {"third", kThird},
               {"fourth", kMore},
               {"fifth", kMore},
               {"sixth", kMore}},
    .output = kResults,
    .attrs = TypeOf<RecurrenceAttrs>,
    .num_inputs = -1,
    .type_rel = Rel<"nn.contrib_recurrence", RecurrenceType>,
    .decompose = DecomposeRecurrence,
    .gradient = gradient::UnrollRecurrence,
    .pattern = OpPattern::kOpaque,
    .source = "ONNX LSTM-22, GRU-22, RNN-22",
    .traits = {.precision = Precision::kAlways},
});
const Op op::recurrence_pack = DefineOp({
    .name = "nn.contrib_recurrence_pack",
    .doc = "nn.contrib_recurrence with its weight in panels (hidden / units, hidden, gates, units); a GRU without "
           "linear_before_reset has those of its hidden gate as a third operand.",
    .inputs = {{"projected", kProjected},
               {"weight",
                "Of the state's product, in panels; of bytes (hidden / units, hidden / 4, gates, units, 4), with "
                "scale, 128 times the sum of each row, and zero points behind all weights."},
               {"third", kThird},
               {"fourth", kMore},
               {"fifth", kMore},
               {"sixth", kMore}},
    .output = kResults,
    .attrs = TypeOf<RecurrenceAttrs>,
    .num_inputs = -1,
    .type_rel = Rel<"nn.contrib_recurrence_pack", RecurrencePackType>,
    .lower = LowerRecurrence,
    .gradient = NoGradient("its weight is in panels; differentiate before DecomposeOps"),
    .pattern = OpPattern::kOpaque,
    .source = "ONNX LSTM-22, GRU-22, RNN-22",
    .traits = {.narrow_weight = true},
});

}  // namespace baton::relay
