// SPDX-License-Identifier: Apache-2.0
#include "driver/size_words.h"

#include <baton/arith/extent.h>
#include <baton/relay/op.h>
#include <baton/tir/functor.h>
#include <baton/tir/intrin.h>
#include <baton/tir/lower.h>
#include <relay/types/extent_guards.h>

#include <set>

namespace baton::driver {

using runtime::Any;

namespace {

/// Sizes in bytes that no machine has.
constexpr double kTooLarge = 1e18;
/// Values that sizes are made of: no extent is as large, and two of them still have a product.
constexpr int64_t kLargestValue = int64_t{1} << 40;

/// An integer formula in float64, which does not wrap: whether it is too large is asked of this one.
class InDouble : public tir::ExprMutator {
 public:
  using tir::ExprMutator::VisitExpr_;
  PrimExpr VisitExpr_(const IntImmNode* op) final {
    return FloatImm(DataType::Float(64), static_cast<double>(op->value));
  }
  PrimExpr VisitExpr_(const tir::VarNode* op) final { return cast(DataType::Float(64), GetRef<PrimExpr>(op)); }
  PrimExpr VisitExpr_(const tir::FloorDivNode* op) final { return VisitExpr(op->a) / VisitExpr(op->b); }
  PrimExpr VisitExpr_(const tir::FloorModNode* op) final { return VisitExpr(op->b); }
  PrimExpr VisitExpr_(const tir::DivNode* op) final { return VisitExpr(op->a) / VisitExpr(op->b); }
  PrimExpr VisitExpr_(const tir::ModNode* op) final { return VisitExpr(op->b); }
  PrimExpr VisitExpr_(const tir::SelectNode* op) final {
    return tir::Select(op->condition, VisitExpr(op->true_value), VisitExpr(op->false_value));
  }
  PrimExpr VisitExpr_(const tir::CallNode* op) final { return cast(DataType::Float(64), GetRef<PrimExpr>(op)); }
};

tir::Buffer WordsBuffer(const tir::Var& s, int32_t words) {
  tir::BufferNode n = *tir::Buffer::Make({PrimExpr(int64_t{words})}, DataType::Int(64), "s").get();
  n.data = s;
  return tir::Buffer(std::move(n));
}

tir::Stmt Assert(PrimExpr condition, const std::string& message) {
  tir::AssertStmtNode n;
  n.condition = std::move(condition), n.message = tir::StringImm(message), n.body = tir::Evaluate(PrimExpr(0));
  return tir::AssertStmt(std::move(n));
}

}  // namespace

bool FlattenSymbolic(const Type& type, std::vector<TensorType>* out) {
  std::vector<Type> work{type};
  while (!work.empty()) {
    const Type t = work.back();
    work.pop_back();
    if (const auto* tensor = t.as<TensorTypeNode>()) {
      if (!relay::HasKnownExtents(tensor->shape)) return false;
      out->push_back(GetRef<TensorType>(tensor));
    } else if (const auto* tuple = t.as<TupleTypeNode>()) {
      for (size_t i = tuple->fields.size(); i-- > 0;) work.push_back(tuple->fields[static_cast<int64_t>(i)]);
    } else {
      return false;
    }
  }
  return true;
}

bool IsDynamic(const TensorType& t) {
  for (const PrimExpr& d : t->shape) {
    if (!tir::as_const_int(d)) return true;
  }
  return false;
}

std::vector<std::string> GuardTexts(const relay::Function& main) {
  std::vector<std::string> texts;
  for (const Any& guard : main->GetAttr<Array<Any>>(relay::kExtentGuards, Array<Any>())) {
    texts.push_back(guard.As<Array<Any>>()[2].As<String>().str());
  }
  return texts;
}

bool BoundDims(const relay::Function& main, std::vector<tir::Var>* dims, std::string* why) {
  std::set<const Object*> bound;
  std::vector<tir::Var> used;
  for (const relay::Var& p : main->params) {
    std::vector<TensorType> types;
    FlattenSymbolic(p->checked_type(), &types);
    for (const TensorType& t : types) {
      for (const PrimExpr& d : t->shape) {
        if (d.as<tir::VarNode>() && bound.insert(d.get()).second) dims->push_back(Downcast<tir::Var>(d));
        tir::PostOrderVisitExpr(d, [&](const PrimExpr& x) {
          if (x.as<tir::VarNode>()) used.push_back(Downcast<tir::Var>(x));
        });
      }
    }
  }
  for (const Any& value : main->GetAttr<Array<Any>>(kValueDims, Array<Any>())) {
    const auto v = value.As<Array<Any>>()[0].As<tir::Var>();
    if (bound.insert(v.get()).second) dims->push_back(v);
  }
  for (const Any& guard : main->GetAttr<Array<Any>>(relay::kExtentGuards, Array<Any>())) {
    const auto fields = guard.As<Array<Any>>();
    for (int64_t side : {0, 1}) {
      tir::PostOrderVisitExpr(fields[side].As<PrimExpr>(), [&](const PrimExpr& x) {
        if (x.as<tir::VarNode>()) used.push_back(Downcast<tir::Var>(x));
      });
    }
  }
  for (const tir::Var& v : used) {
    if (bound.count(v.get())) continue;
    *why = "no input has the extent `" + v->name_hint.str() + "` by itself";
    return false;
  }
  return true;
}

void SizeWords::AddDims(const relay::Function& main) {
  std::string why;
  if (!BoundDims(main, &dims_, &why)) throw CompileError(why);
  AddValues(main);
  const auto bounds = main->GetAttr<Map<String, Array<int64_t>>>(kDynamicDims, Map<String, Array<int64_t>>());
  for (const tir::Var& v : dims_) {
    dim_words_[v.get()] = static_cast<int32_t>(shapes_.dims.size());
    runtime::Dim dim;
    dim.name = v->name_hint.str();
    if (bounds.count(v->name_hint)) {
      const Array<int64_t> b = bounds.at(v->name_hint);
      dim.min = b[0], dim.max = b[1], dim.multiple = b[2];
    }
    shapes_.dims.push_back(dim);
  }
  for (const Any& guard : main->GetAttr<Array<Any>>(relay::kExtentGuards, Array<Any>())) {
    const auto fields = guard.As<Array<Any>>();
    guards_.push_back({fields[0].As<PrimExpr>(), fields[1].As<PrimExpr>(), fields[2].As<String>().str()});
  }
}

void SizeWords::AddValues(const relay::Function& main) {
  std::vector<TensorType> inputs;
  for (const relay::Var& p : main->params) FlattenSymbolic(p->checked_type(), &inputs);
  for (const Any& value : main->GetAttr<Array<Any>>(kValueDims, Array<Any>())) {
    const auto fields = value.As<Array<Any>>();
    const auto input = fields[1].As<int64_t>();
    values_.push_back({fields[0].As<tir::Var>(), input, fields[2].As<int64_t>(),
                       inputs[static_cast<size_t>(input)]->dtype, fields[3].As<int64_t>() != 0});
    std::erase_if(dims_, [&](const tir::Var& v) { return v.same_as(values_.back().var); });
  }
  for (size_t i = 0; i < values_.size(); ++i) {
    dim_words_[values_[i].var.get()] = static_cast<int32_t>(dims_.size() + i);
    formulas_.push_back(values_[i].var);
  }
  shapes_.reads_values = !values_.empty();
}

int32_t SizeWords::Formula(const PrimExpr& formula) {
  if (const auto it = dim_words_.find(formula.get()); it != dim_words_.end()) return it->second;
  for (size_t i = 0; i < formulas_.size(); ++i) {
    if (tir::ExprDeepEqual(formulas_[i], formula)) return static_cast<int32_t>(dims_.size() + i);
  }
  formulas_.push_back(formula);
  return static_cast<int32_t>(dims_.size() + formulas_.size()) - 1;
}

int32_t SizeWords::WordOf(const PrimExpr& extent) {
  if (tir::as_const_int(extent)) return -1;
  const int32_t word = Formula(arith::CanonicalExtent(extent));
  extents_.insert(word);
  return word;
}

int32_t SizeWords::Bytes(const PrimExpr& formula) { return Formula(arith::CanonicalExtent(formula)); }

PrimExpr SizeWords::BytesFormula(const TensorType& t) {
  PrimExpr n = PrimExpr(int64_t{t->dtype.bytes()});
  for (const PrimExpr& d : t->shape) n = n * cast(DataType::Int(64), d);
  return arith::CanonicalExtent(n);
}

runtime::TensorInfo SizeWords::AddTensor(const std::string& name, const TensorType& t) {
  runtime::TensorInfo info{name, {}, t->dtype};
  std::vector<int32_t> words;
  for (const PrimExpr& d : t->shape) {
    words.push_back(WordOf(d));
    info.shape.push_back(words.back() < 0 ? *tir::as_const_int(d) : -1);
    info.extents.push_back(words.back() < 0 ? std::string() : arith::ExtentText(d));
  }
  shapes_.extents.push_back(words);
  return info;
}

size_t SizeWords::AddBuffer(int32_t first, int32_t last, int32_t bytes) {
  shapes_.buffers.push_back({first, last, bytes, 0});
  return shapes_.buffers.size() - 1;
}

PrimExpr SizeWords::Load(const tir::Var& s, int32_t word) const {
  return tir::BufferLoad(WordsBuffer(s, shapes_.words), {PrimExpr(int64_t{word})});
}

int32_t SizeWords::WordOfVar(const tir::Var& dim) const {
  const auto it = dim_words_.find(dim.get());
  if (it == dim_words_.end()) throw InternalError("a kernel asks for the dimension `" + dim->name_hint.str() + "`");
  return it->second;
}

void SizeWords::Finish(const std::string& symbol) {
  auto word = static_cast<int32_t>(dims_.size() + formulas_.size());
  for (runtime::DynamicBuffer& b : shapes_.buffers) b.offset = word++;
  shapes_.words = word;
  shapes_.sizes = symbol;
}

/// `body` with the values that it speaks of, read through `pointers`.
tir::Stmt SizeWords::ReadValues(const std::vector<tir::Var>& pointers, tir::Stmt body) const {
  const PrimExpr most = PrimExpr(kLargestValue), least = PrimExpr(-kLargestValue);
  for (size_t i = values_.size(); i-- > 0;) {
    const Value& v = values_[i];
    tir::BufferNode b = *tir::Buffer::Make({PrimExpr(v.element + 1)}, v.dtype, pointers[i]->name_hint).get();
    b.data = pointers[i];
    const PrimExpr element = cast(DataType::Int(64), tir::BufferLoad(tir::Buffer(std::move(b)), {PrimExpr(v.element)}));
    if (!v.negative) {
      const std::string bound = "`" + v.var->name_hint.str() + "` must be 0 to 2^40";
      body = tir::SeqStmt::Flatten(Array<tir::Stmt>{Assert(element >= PrimExpr(0) && element <= most, bound), body});
    }
    tir::LetStmtNode value;
    value.var = v.var, value.value = max(min(element, most), least), value.body = body;
    body = tir::LetStmt(std::move(value));
  }
  return body;
}

/// The values that a formula speaks of, for messages: " by `s[0]`".
std::string SizeWords::OfValues(const PrimExpr& formula) const {
  std::string names;
  for (const Value& v : values_) {
    bool used = false;
    tir::PostOrderVisitExpr(formula, [&](const PrimExpr& x) { used = used || x.same_as(v.var); });
    if (used) names += (names.empty() ? " by `" : ", `") + v.var->name_hint.str() + "`";
  }
  return names;
}

tir::PrimFunc SizeWords::Function() const {
  tir::Var dims("dims", DataType::Handle()), io("io", DataType::Handle()), threads("threads", DataType::Int(64)),
      s("s", DataType::Handle());
  const tir::Buffer from = WordsBuffer(dims, static_cast<int32_t>(dims_.size())), to = WordsBuffer(s, shapes_.words);
  auto store = [&](int32_t word, const PrimExpr& value) {
    tir::BufferStoreNode n;
    n.buffer = to, n.indices = {PrimExpr(int64_t{word})}, n.value = value;
    return tir::Stmt(tir::BufferStore(std::move(n)));
  };
  Array<tir::Stmt> seq;
  for (const Guard& g : guards_) seq.push_back(Assert(tir::EQ(g.a, g.b), g.text));
  for (size_t i = 0; i < dims_.size(); ++i) seq.push_back(store(static_cast<int32_t>(i), dims_[i]));
  for (size_t i = 0; i < formulas_.size(); ++i) {
    const PrimExpr size = InDouble()(formulas_[i]);
    // A value beyond the largest is taken for it: no extent is as large.
    const auto word = static_cast<int32_t>(dims_.size() + i);
    const double most = extents_.count(word) != 0 ? static_cast<double>(kLargestValue - 1) : kTooLarge;
    seq.push_back(Assert(size <= FloatImm(DataType::Float(64), most),
                         "the shapes ask for more memory than there is" + OfValues(formulas_[i])));
    seq.push_back(store(word, formulas_[i]));
  }
  std::vector<tir::Var> pointers;
  for (size_t i = 0; i < values_.size(); ++i) {
    pointers.push_back(tir::Var("value" + std::to_string(i), DataType::Handle()));
  }
  tir::Stmt body = ReadValues(pointers, tir::SeqStmt::Flatten(seq));
  for (size_t i = dims_.size(); i-- > 0;) {
    tir::LetStmtNode n;
    n.var = dims_[i], n.value = tir::BufferLoad(from, {PrimExpr(static_cast<int64_t>(i))}), n.body = body;
    body = tir::LetStmt(std::move(n));
  }
  body = tir::RenewBindings(body);
  for (size_t i = values_.size(); i-- > 0;) {
    tir::LetStmtNode n;
    n.var = pointers[i], n.body = body;
    n.value = tir::load_handle(io, PrimExpr(values_[i].input));
    body = tir::LetStmt(std::move(n));
  }
  tir::PrimFunc f({dims, io, threads, s}, body);
  return tir::LowerPipeline(WithAttr(f, attr::kGlobalSymbol, runtime::Any(shapes_.sizes)), Target::Current());
}

std::vector<Type> InputTypesOf(const relay::Function& f) {
  const auto names = f->GetAttr<Map<String, Array<String>>>(kInputExtents, Map<String, Array<String>>());
  std::unordered_map<std::string, tir::Var> symbols;
  std::vector<Type> out;
  for (const relay::Var& p : f->params) {
    out.push_back(p->checked_type_.defined() ? p->checked_type() : p->type_annotation);
    const auto* t = out.back().as<TensorTypeNode>();
    if (!t || !names.count(p->name_hint()) || names.at(p->name_hint()).size() != t->shape.size()) continue;
    const Array<String> called = names.at(p->name_hint());
    Array<PrimExpr> shape = t->shape;
    for (size_t i = 0; i < t->shape.size(); ++i) {
      const auto at = static_cast<int64_t>(i);
      if (!t->shape[at].as<tir::AnyNode>() || called[at].empty()) continue;
      tir::Var& v = symbols[called[at].str()];
      if (!v.defined()) v = tir::SizeVar(called[at]);
      shape.Set(at, v);
    }
    out.back() = TensorType(shape, t->dtype);
  }
  return out;
}

EntryShapes ShapesOfEntry(const relay::Function& main, const std::vector<std::string>& outputs,
                          const std::string& symbol) {
  EntryShapes out;
  std::vector<tir::Var> dims;
  std::string why;
  std::vector<std::vector<TensorType>> inputs;
  Array<relay::Var> params;
  const std::vector<Type> types = InputTypesOf(main);
  for (size_t i = 0; i < types.size(); ++i) {
    inputs.emplace_back();
    if (!types[i].as<TensorTypeNode>() || !FlattenSymbolic(types[i], &inputs.back())) return out;
    params.push_back(relay::Var(main->params[static_cast<int64_t>(i)]->name_hint(), types[i]));
    params.back()->checked_type_ = types[i];
  }
  relay::Function plain(params, main->body, Type(), {}, main->attrs);
  plain = WithAttr(plain, relay::kExtentGuards, Any(Array<Any>()));
  if (!BoundDims(plain, &dims, &why) || dims.empty()) return out;
  SizeWords words;
  words.AddDims(plain);
  for (size_t i = 0; i < inputs.size(); ++i) {
    out.inputs.push_back(words.AddTensor(main->params[static_cast<int64_t>(i)]->name_hint().str(), inputs[i][0]));
  }
  std::set<const Object*> bound;
  for (const tir::Var& v : dims) bound.insert(v.get());
  std::vector<TensorType> results;
  bool known = main->body->checked_type_.defined() && FlattenSymbolic(main->body->checked_type(), &results) &&
               results.size() == outputs.size();
  for (const TensorType& t : results) {
    for (const PrimExpr& d : t->shape) {
      tir::PostOrderVisitExpr(
          d, [&](const PrimExpr& x) { known = known && (!x.as<tir::VarNode>() || bound.count(x.get())); });
    }
  }
  for (size_t i = 0; known && i < results.size(); ++i) out.outputs.push_back(words.AddTensor(outputs[i], results[i]));
  words.Finish(symbol);
  out.shapes = words.shapes();
  out.sizes = words.Function();
  return out;
}

}  // namespace baton::driver
