// SPDX-License-Identifier: Apache-2.0
// Counts of n-grams.
#include <algorithm>
#include <map>

#include "host/arrays.h"
#include "host/functions.h"

namespace baton::host {
namespace {

struct Settings {
  Ints ngram_counts, ngram_indexes, pool;
  std::vector<double> weights;
  int64_t min_gram_length, max_gram_length, max_skip_count, columns = 0;
  explicit Settings(const Params& p)
      : ngram_counts(p.Ints("ngram_counts")),
        ngram_indexes(p.Ints("ngram_indexes")),
        pool(p.Ints("pool")),
        weights(p.Doubles("weights")),
        min_gram_length(p.Int("min_gram_length")),
        max_gram_length(p.Int("max_gram_length")),
        max_skip_count(p.Int("max_skip_count")) {
    if (min_gram_length < 1 || max_gram_length < min_gram_length || max_skip_count < 0 ||
        max_gram_length > static_cast<int64_t>(ngram_counts.size())) {
      p.Fail("ngram_counts is not for all lengths");
    }
    for (int64_t at : ngram_counts) {
      if (at < 0 || at > static_cast<int64_t>(pool.size())) p.Fail(Cat("ngram_counts has ", at));
    }
    for (int64_t i : ngram_indexes) {
      if (i < 0 || i > (1 << 24)) p.Fail(Cat("ngram_indexes has ", i));
      columns = std::max(columns, i + 1);
    }
  }
};

}  // namespace

Arrays TfIdf(const Params& p, const Arrays& in) {
  const Settings a(p);
  const NDArray& x = in[0];
  Want(p, in, 0, x.dtype().is_integral() && x->ndim >= 1 && x->ndim <= 2, "one or two dimensions of integers");
  std::vector<int64_t> shape = x.shape(), words = x.ToInts();
  int64_t rows = shape.size() == 2 ? shape[0] : 1, length = shape.empty() ? 1 : shape.back(), columns = a.columns;
  // The n-grams of each length, with the number that each has.
  std::map<std::vector<int64_t>, int64_t> known;
  int64_t number = 0;
  for (size_t n = 0; n < a.ngram_counts.size(); ++n) {
    int64_t begin = a.ngram_counts[n];
    int64_t end = n + 1 < a.ngram_counts.size() ? a.ngram_counts[n + 1] : static_cast<int64_t>(a.pool.size());
    const auto size = static_cast<int64_t>(n) + 1;
    for (int64_t at = begin; at + size <= end; at += size) {
      std::vector<int64_t> gram;
      for (int64_t k = 0; k < size; ++k) gram.push_back(a.pool[at + k]);
      known.emplace(gram, number++);
    }
  }
  std::vector<int64_t> out_shape = {columns};
  if (shape.size() == 2) out_shape.insert(out_shape.begin(), rows);
  NDArray y = NDArray::Empty(out_shape, DataType::Float(32));
  auto* out = y.ptr<float>();
  std::fill(out, out + rows * columns, 0.0f);
  const std::string& mode = p.Text("mode");
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t n = a.min_gram_length; n <= a.max_gram_length; ++n) {
      // The search ends when the words of an n-gram are farther apart than a row is long.
      for (int64_t skip = 0; skip <= (n == 1 ? 0 : a.max_skip_count) && skip < length; ++skip) {
        for (int64_t start = 0; start + (n - 1) * (skip + 1) < length; ++start) {
          std::vector<int64_t> gram;
          for (int64_t k = 0; k < n; ++k)
            gram.push_back(words[static_cast<size_t>(r * length + start + k * (skip + 1))]);
          auto it = known.find(gram);
          if (it == known.end() || it->second >= static_cast<int64_t>(a.ngram_indexes.size())) continue;
          float& slot = out[r * columns + a.ngram_indexes[it->second]];
          double weight = it->second < static_cast<int64_t>(a.weights.size()) ? a.weights[it->second] : 1.0;
          if (mode == "TF") slot += 1;
          if (mode == "IDF") slot = static_cast<float>(weight);
          if (mode == "TFIDF") slot += static_cast<float>(weight);
        }
      }
    }
  }
  return {y};
}

namespace {
const Register kTfIdf("onnx.tfidf", 1, TfIdf);
}
}  // namespace baton::host
