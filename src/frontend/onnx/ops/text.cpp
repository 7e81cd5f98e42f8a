// SPDX-License-Identifier: Apache-2.0
// TfIdfVectorizer over integers, on the host: which n-grams of a pool occur, and how often.
#include <baton/relay/op.h>
#include <host/functions.h>

#include <algorithm>

#include "common.h"

namespace baton::onnx {
namespace {

struct TfIdfAttrs : AttrsNode<TfIdfAttrs> {
  static constexpr const char* _type_key = "relay.attrs.OnnxTfIdfAttrs";
  String mode = "TF";
  int64_t min_gram_length = 1;
  int64_t max_gram_length = 1;
  int64_t max_skip_count = 0;
  Array<int64_t> ngram_counts;
  Array<int64_t> ngram_indexes;
  Array<int64_t> pool;
  Array<double> weights;
  static constexpr void Describe(auto& d) {
    d(F<&TfIdfAttrs::mode>, "\"TF\": counts; \"IDF\": weights of what occurs; \"TFIDF\": counts times weights.");
    d(F<&TfIdfAttrs::min_gram_length>, "Shortest n-gram, in words.");
    d(F<&TfIdfAttrs::max_gram_length>, "Longest n-gram, in words.");
    d(F<&TfIdfAttrs::max_skip_count>, "Words between those of an n-gram, at most.");
    d(F<&TfIdfAttrs::ngram_counts>, "Where the n-grams of each length begin in `pool`.");
    d(F<&TfIdfAttrs::ngram_indexes>, "Place in the result of each n-gram.");
    d(F<&TfIdfAttrs::pool>, "The n-grams, one after the other.");
    d(F<&TfIdfAttrs::weights>, "Weight of each n-gram; none is 1.");
  }
};

int64_t Columns(const TfIdfAttrs& a) {
  int64_t most = -1;
  for (int64_t i : a.ngram_indexes) most = std::max(most, i);
  return most + 1;
}

/// The preconditions of the host code, checked for every call.
void CheckTfIdf(const TfIdfAttrs& a, const TensorTypeNode& data) {
  auto fail = [](const char* rule, const std::string& text) {
    throw CompileError(std::string("[onnx.tfidf ") + rule + "] " + text);
  };
  if (!data.dtype.is_integral() || data.shape.empty() || data.shape.size() > 2)
    fail("R1", "`data` has rank " + std::to_string(data.shape.size()) + " and dtype " + DataType2String(data.dtype) +
                   ", where one or two dimensions of integers are wanted");
  if (a.mode != "TF" && a.mode != "IDF" && a.mode != "TFIDF")
    fail("R2", "mode is \"" + a.mode.str() + "\"; it is \"TF\", \"IDF\" or \"TFIDF\"");
  if (a.min_gram_length < 1 || a.max_gram_length < a.min_gram_length || a.max_skip_count < 0 ||
      a.max_gram_length > static_cast<int64_t>(a.ngram_counts.size()))
    fail("R3", "n-grams of " + std::to_string(a.min_gram_length) + " to " + std::to_string(a.max_gram_length) +
                   " words, where ngram_counts is for 1 to " + std::to_string(a.ngram_counts.size()));
  for (int64_t at : a.ngram_counts) {
    if (at < 0 || at > static_cast<int64_t>(a.pool.size()))
      fail("R4", "ngram_counts has " + std::to_string(at) + ", which is not within the pool");
  }
  for (int64_t i : a.ngram_indexes) {
    if (i < 0 || i > (1 << 24)) fail("R4", "ngram_indexes has " + std::to_string(i));
  }
}

bool TfIdfRel(const Array<baton::Type>& types, int, const Attrs& attrs, relay::TypeReporter& reporter) {
  const auto* t = relay::AsTensor(types[0]);
  if (t == nullptr) return false;
  const auto& a = relay::AttrsAs<TfIdfAttrs>(attrs);
  CheckTfIdf(a, *t);
  Array<PrimExpr> shape;
  if (t->shape.size() == 2) shape.push_back(t->shape[0]);
  shape.push_back(IntImm(DataType::Int(64), Columns(a)));
  reporter.Assign(types.back(), TensorType(shape, DataType::Float(32)));
  return true;
}

const Op tfidf = relay::DefineOp({
    .name = "onnx.tfidf",
    .doc = "Counts, in each row, the n-grams of a pool.",
    .inputs = {{"data", "(C) or (N, C), words by number. R1: integers, rank 1 or 2."}},
    .output =
        "(K) or (N, K) float32. R2: a known mode. R3: ngram_counts is for all lengths. R4: it lies within the pool, "
        "and no place is negative.",
    .attrs = relay::TypeOf<TfIdfAttrs>,
    .type_rel = TfIdfRel,
    .host = host::TfIdf,
    .gradient = relay::NoGradient("it counts words"),
    .source = "ONNX TfIdfVectorizer-9",
});

Values TfIdfVectorizer(Ctx& c) {
  Value x = c.T(0);
  if (c.HasAttr("pool_strings") || !IsInt(x.dtype)) c.Unsupported("strings");
  if (c.Rank(x) != 1 && c.Rank(x) != 2) c.Fail("the input must have one or two axes");
  std::string mode = c.Str("mode", "");
  if (mode != "TF" && mode != "IDF" && mode != "TFIDF") c.Fail("`mode` is `" + mode + "`");
  int64_t least = c.Int("min_gram_length"), most = c.Int("max_gram_length"), skips = c.Int("max_skip_count");
  Dims counts = c.Ints("ngram_counts"), indexes = c.Ints("ngram_indexes"), pool = c.Ints("pool_int64s");
  std::vector<float> weights = c.Floats("weights");
  if (least < 1 || most < least || skips < 0 || most > static_cast<int64_t>(counts.size()))
    c.Fail("its lengths of n-grams do not fit");
  for (int64_t at : counts) {
    if (at < 0 || at > static_cast<int64_t>(pool.size())) c.Fail("`ngram_counts` points out of the pool");
  }
  for (int64_t i : indexes) {
    if (i < 0 || i > (1 << 24)) c.Fail("`ngram_indexes` holds " + std::to_string(i));
  }
  return {c.Call("onnx.tfidf", {x},
                 {{"mode", mode},
                  {"min_gram_length", least},
                  {"max_gram_length", most},
                  {"max_skip_count", skips},
                  {"ngram_counts", IntsAny(counts)},
                  {"ngram_indexes", IntsAny(indexes)},
                  {"pool", IntsAny(pool)},
                  {"weights", Array<double>(weights.begin(), weights.end())}})};
}

}  // namespace

void AddText(OpTable* table) { table->push_back({"", "TfIdfVectorizer", TfIdfVectorizer}); }

}  // namespace baton::onnx
