// SPDX-License-Identifier: Apache-2.0
// Products of matrices.
#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "common.h"

namespace baton::onnx {
namespace {

Values MatMulOp(Ctx& c) {
  if (const auto& few = c.T(1).few_bits) {
    if (Value y = TimesFewBits(c, c.T(0), *few)) return {y};
  }
  return {c.MatMul(c.T(0), c.T(1))};
}

Values Gemm(Ctx& c) {
  Value a = c.T(0), b = c.T(1);
  double alpha = c.Float("alpha", 1.0), beta = c.Float("beta", 1.0);
  bool trans_a = c.Int("transA", 0) != 0, trans_b = c.Int("transB", 0) != 0;
  c.Ignore("broadcast");
  if (c.Rank(a) != 2 || c.Rank(b) != 2) c.Fail("`A` and `B` must be matrices");
  if (trans_a) a = c.Transpose(a, {1, 0});
  // nn.dense takes (units, inputs): the same as transB.
  Value w = trans_b ? b : c.Transpose(b, {1, 0});
  Value y = c.CallWith("nn.dense", {a, w}, {{"units", w.dims[0] >= 0 ? Any(w.dims[0]) : Any()}});
  if (alpha != 1.0) y = c.Mul(y, alpha);
  if (c.Has(2) && beta != 0.0) y = c.Add(y, beta == 1.0 ? c.T(2) : c.Mul(c.T(2), beta));
  return {y};
}

/// sum over the letters left out of `out`, of the product of the operands.
/// Takes the diagonal for a letter that occurs twice in a term. The term and the shape lose the second one.
Value Diagonal(Ctx& c, Value v, std::string* letters, Dims* dims) {
  std::string& term = *letters;
  Dims& shape = *dims;
  for (size_t k = 0; k < term.size(); ++k) {
    size_t first = term.find(term[k]);
    if (first == k) continue;
    int64_t n = c.Dim(v, static_cast<int>(k));
    if (shape[first] != n) c.Fail("a repeated letter has two lengths");
    Dims line_a(shape.size(), 1), line_b(shape.size(), 1);
    line_a[first] = n;
    line_b[k] = n;
    Value index = Arange(c, n, DataType::Int(64));
    Value on = c.Call("equal", {c.Reshape(index, line_a), c.Reshape(index, line_b)});
    v = Reduce(c, "sum", c.Where(on, v, c.Scalar(v.dtype, 0)), {static_cast<int64_t>(k)}, false);
    term.erase(k, 1);
    shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(k));
    --k;
  }
  return v;
}

/// The einsum of two operands as one batched product of matrices; absent where it is none.
Value ProductOfTwo(Ctx& c, const std::vector<std::string>& terms, const Values& operands, const std::string& all,
                   const std::string& out, const std::map<char, int64_t>& length) {
  std::string batch, rows, columns, inner;
  bool plain = true;
  for (char ch : all) {
    bool a = terms[0].find(ch) != std::string::npos, b = terms[1].find(ch) != std::string::npos;
    bool o = out.find(ch) != std::string::npos;
    if (a && b) (o ? batch : inner) += ch;
    if (a && !b) rows += ch;
    if (b && !a) columns += ch;
    plain = plain && (o || (a && b));
    for (size_t i = 0; i < 2 && plain; ++i) {
      size_t at = terms[i].find(ch);
      plain = at == std::string::npos || operands[i].dims[at] == length.at(ch) || operands[i].dims[at] != 1;
    }
  }
  const bool sized =
      std::all_of(length.begin(), length.end(), [](const auto& l) { return l.second >= 0 || Ctx::IsSymbol(l.second); });
  if (plain && !inner.empty() && sized) {
    auto arrange = [&](size_t i, const std::string& order, const Dims& shape) {
      Dims perm;
      for (char ch : order) perm.push_back(static_cast<int64_t>(terms[i].find(ch)));
      return c.Reshape(c.Transpose(operands[i], perm), shape);
    };
    auto count = [&](const std::string& s) {
      int64_t n = 1;
      for (char ch : s) n = c.Times(n, length.at(ch));
      return n;
    };
    Value a = arrange(0, batch + rows + inner, {count(batch), count(rows), count(inner)});
    Value b = arrange(1, batch + inner + columns, {count(batch), count(inner), count(columns)});
    Value y = c.MatMul(a, b);
    std::string order = batch + rows + columns;
    Dims shape, perm;
    for (char ch : order) shape.push_back(length.at(ch));
    for (char ch : out) perm.push_back(static_cast<int64_t>(order.find(ch)));
    return c.Transpose(c.Reshape(y, shape), perm);
  }
  if (plain && !inner.empty() && rows.size() == 1 && columns.size() == 1 && inner.size() == 1) {
    auto matrix = [&](size_t i, const std::string& order) {
      Dims perm;
      for (char ch : order) perm.push_back(static_cast<int64_t>(terms[i].find(ch)));
      return c.Transpose(operands[i], perm);
    };
    const std::string order = batch + rows + columns;
    Dims perm;
    for (char ch : out) perm.push_back(static_cast<int64_t>(order.find(ch)));
    return c.Transpose(c.MatMul(matrix(0, batch + rows + inner), matrix(1, batch + inner + columns)), perm);
  }
  return Value();
}

Values Einsum(Ctx& c) {
  std::string equation = c.Str("equation", "");
  equation.erase(std::remove(equation.begin(), equation.end(), ' '), equation.end());
  std::string left = equation, out;
  size_t arrow = equation.find("->");
  bool explicit_out = arrow != std::string::npos;
  if (explicit_out) {
    left = equation.substr(0, arrow);
    out = equation.substr(arrow + 2);
  }
  std::vector<std::string> terms(1);
  for (char ch : left) {
    if (ch == ',') {
      terms.emplace_back();
    } else {
      terms.back() += ch;
    }
  }
  if (terms.size() != c.num_inputs()) c.Fail("`equation` has " + std::to_string(terms.size()) + " terms");
  // The axes of an ellipsis get new letters: A is the last, B the one before it.
  size_t most = 0;
  auto expand = [&](std::string* term, int rank) {
    size_t at = term->find("...");
    size_t letters = term->size() - (at == std::string::npos ? 0 : 3);
    size_t extra = 0;
    if (at != std::string::npos) {
      if (rank >= 0 && static_cast<size_t>(rank) < letters) c.Fail("an operand has fewer axes than its term");
      extra = rank >= 0 ? static_cast<size_t>(rank) - letters : most;
      if (extra > 20) c.Unsupported("an ellipsis of more than 20 axes");
      std::string names;
      for (size_t i = 0; i < extra; ++i) names += static_cast<char>(1 + extra - 1 - i);
      term->replace(at, 3, names);
      most = std::max(most, extra);
    }
    if (rank >= 0 && letters + extra != static_cast<size_t>(rank))
      c.Fail("a term does not fit the rank of its operand");
  };
  for (size_t i = 0; i < terms.size(); ++i) expand(&terms[i], c.Rank(c.T(i)));
  if (explicit_out) {
    expand(&out, -1);
  } else {
    std::map<char, int> count;
    for (const std::string& t : terms) {
      for (char ch : t) ++count[ch];
    }
    for (size_t i = 0; i < most; ++i) out += static_cast<char>(most - i);
    for (const auto& [ch, n] : count) {
      if (ch > 31 && n == 1) out += ch;
    }
  }
  std::map<char, int64_t> length;
  std::string all = out;
  Values operands;
  for (size_t i = 0; i < terms.size(); ++i) {
    Value v = c.T(i);
    std::string term = terms[i];
    const bool repeats = std::set<char>(term.begin(), term.end()).size() != term.size();
    Dims shape = repeats ? c.Lengths(v) : v.dims;
    v = Diagonal(c, v, &term, &shape);
    for (size_t k = 0; k < term.size(); ++k) {
      const auto [it, fresh] = length.try_emplace(term[k], shape[k]);
      if (int64_t& n = it->second; !fresh && shape[k] != 1 && shape[k] != -1) {
        if (n != 1 && n != -1 && !c.AssumeEqual(n, shape[k])) c.Fail("a letter has two lengths");
        if (n == 1 || n == -1 || Ctx::IsSymbol(n)) n = shape[k];
      }
      if (all.find(term[k]) == std::string::npos) all += term[k];
    }
    terms[i] = term;
    operands.push_back(v);
  }
  for (char ch : out) {
    if (length.find(ch) == length.end()) c.Fail("the output of `equation` has a letter that no operand has");
  }
  // Batched products of two matrices are the common case, and use the matrix kernels.
  if (operands.size() == 2) {
    if (Value y = ProductOfTwo(c, terms, operands, all, out, length)) return {y};
  }
  Value product;
  for (size_t i = 0; i < operands.size(); ++i) {
    Dims perm, fresh;
    for (size_t k = 0; k < all.size(); ++k) {
      size_t at = terms[i].find(all[k]);
      if (at == std::string::npos) {
        fresh.push_back(static_cast<int64_t>(k));
      } else {
        perm.push_back(static_cast<int64_t>(at));
      }
    }
    Value v = c.Unsqueeze(c.Transpose(operands[i], perm), fresh);
    product = i == 0 ? v : c.Mul(product, v);
  }
  return {Reduce(c, "sum", product,
                 Iota(static_cast<int64_t>(all.size() - out.size()), static_cast<int64_t>(out.size())), false)};
}

Values Det(Ctx& c) { return {c.Call("linalg.det", {c.T(0)})}; }

}  // namespace

void AddMatrix(OpTable* table) {
  for (const OpRow& row :
       {OpRow{"", "MatMul", MatMulOp}, {"", "Gemm", Gemm}, {"", "Einsum", Einsum}, {"", "Det", Det}}) {
    table->push_back(row);
  }
}

}  // namespace baton::onnx
