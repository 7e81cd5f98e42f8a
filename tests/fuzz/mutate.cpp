// SPDX-License-Identifier: Apache-2.0
#include "mutate.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace baton::fuzz {
namespace {

// ---- ONNX: a tree of fields, as far as the schema says which fields are messages ------------------------------------

enum Msg {
  kModel,
  kGraph,
  kNode,
  kAttr,
  kTensor,
  kValue,
  kType,
  kTensorType,
  kShape,
  kDim,
  kElem,
  kMap,
  kOpset,
  kFunction,
  kPair,
  kSparse,
  kLeaf
};

struct Edge {
  Msg of;
  int field;
  Msg to;
};
constexpr Edge kSchema[] = {
    {kModel, 7, kGraph},    {kModel, 8, kOpset},     {kModel, 25, kFunction},  {kModel, 14, kPair},
    {kGraph, 1, kNode},     {kGraph, 5, kTensor},    {kGraph, 11, kValue},     {kGraph, 12, kValue},
    {kGraph, 13, kValue},   {kGraph, 15, kSparse},   {kNode, 5, kAttr},        {kAttr, 5, kTensor},
    {kAttr, 10, kTensor},   {kAttr, 6, kGraph},      {kAttr, 11, kGraph},      {kAttr, 14, kType},
    {kAttr, 15, kType},     {kAttr, 22, kSparse},    {kAttr, 23, kSparse},     {kTensor, 13, kPair},
    {kValue, 2, kType},     {kType, 1, kTensorType}, {kType, 8, kTensorType},  {kType, 4, kElem},
    {kType, 9, kElem},      {kType, 5, kMap},        {kTensorType, 2, kShape}, {kShape, 1, kDim},
    {kElem, 1, kType},      {kMap, 2, kType},        {kFunction, 7, kNode},    {kFunction, 9, kOpset},
    {kFunction, 11, kAttr}, {kSparse, 1, kTensor},   {kSparse, 2, kTensor},
};

struct Field {
  int number = 0;
  int wire = 0;
  uint64_t value = 0;  // wire types 0, 1, 5
  std::string text;    // wire type 2 where it is no message
  Msg message = kLeaf;
  std::vector<Field> fields;
};

bool Varint(std::string_view* in, uint64_t* out) {
  *out = 0;
  for (int shift = 0; shift < 64 && !in->empty(); shift += 7) {
    auto byte = static_cast<unsigned char>(in->front());
    in->remove_prefix(1);
    *out |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

bool ParseFields(std::string_view in, Msg message, int depth, std::vector<Field>* out) {
  if (depth > 60) return false;
  while (!in.empty()) {
    uint64_t tag = 0;
    if (!Varint(&in, &tag)) return false;
    Field f;
    f.number = static_cast<int>(tag >> 3);
    f.wire = static_cast<int>(tag & 7);
    if (f.wire == 0) {
      if (!Varint(&in, &f.value)) return false;
    } else if (f.wire == 1 || f.wire == 5) {
      size_t n = f.wire == 1 ? 8 : 4;
      if (in.size() < n) return false;
      for (size_t i = 0; i < n; ++i) f.value |= static_cast<uint64_t>(static_cast<unsigned char>(in[i])) << (8 * i);
      in.remove_prefix(n);
    } else if (f.wire == 2) {
      uint64_t n = 0;
      if (!Varint(&in, &n) || n > in.size()) return false;
      std::string_view sub = in.substr(0, n);
      in.remove_prefix(n);
      for (const Edge& e : kSchema) {
        if (e.of == message && e.field == f.number) f.message = e.to;
      }
      if (f.message == kLeaf || !ParseFields(sub, f.message, depth + 1, &f.fields)) {
        f.message = kLeaf;
        f.fields.clear();
        f.text = sub;
      }
    } else {
      return false;
    }
    out->push_back(std::move(f));
  }
  return true;
}

void PutVarint(uint64_t v, std::string* out) {
  for (; v >= 0x80; v >>= 7) *out += static_cast<char>(v | 0x80);
  *out += static_cast<char>(v);
}

void WriteFields(const std::vector<Field>& fields, std::string* out) {
  for (const Field& f : fields) {
    PutVarint(static_cast<uint64_t>(f.number) << 3 | static_cast<unsigned>(f.wire), out);
    if (f.wire == 0) PutVarint(f.value, out);
    if (f.wire == 1 || f.wire == 5) {
      for (int i = 0; i < (f.wire == 1 ? 8 : 4); ++i) *out += static_cast<char>(f.value >> (8 * i));
    }
    if (f.wire == 2) {
      std::string sub = f.text;
      if (f.message != kLeaf) WriteFields(f.fields, &sub);
      PutVarint(sub.size(), out);
      *out += sub;
    }
  }
}

/// Every list of fields beneath `fields`, itself first.
void Lists(std::vector<Field>* fields, std::vector<std::vector<Field>*>* out) {
  out->push_back(fields);
  for (Field& f : *fields) {
    if (f.message != kLeaf) Lists(&f.fields, out);
  }
}

constexpr uint64_t kHard[] = {0,          1,          2,          3,          7,          8,
                              16,         100,        127,        128,        255,        256,
                              0x7fff,     0x7fffffff, 0x80000000, 0xffffffff, 1ull << 32, 1ull << 40,
                              1ull << 62, ~0ull >> 1, 1ull << 63, ~0ull,      ~1ull,      ~2ull};

uint64_t HardNumber(Random* r) { return r->OneIn(4) ? r->Next() % 64 : kHard[r->Below(std::size(kHard))]; }

void MutateNumber(Random* r, uint64_t* value) {
  switch (r->Below(4)) {
    case 0:
      *value += 1;
      return;
    case 1:
      *value -= 1;
      return;
    case 2:
      *value ^= 1ull << r->Below(64);
      return;
    default:
      *value = HardNumber(r);
  }
}

void MutateLeaf(std::vector<Field>* leaves_of, Field* f, Random* r) {
  if (f->wire != 2) {
    MutateNumber(r, &f->value);
    return;
  }
  if (f->message != kLeaf) {
    f->fields.clear();
    return;
  }
  switch (r->Below(4)) {
    case 0:
      f->text.clear();
      return;
    case 1: {
      // The text of a sibling: the way to make cycles, doubled and misspelt names.
      const Field& other = (*leaves_of)[r->Below(leaves_of->size())];
      f->text = other.text;
      return;
    }
    case 2:
      f->text = MutateBytes(f->text, {}, r);
      return;
    default: {
      // Packed numbers.
      std::string packed;
      for (size_t i = r->Below(5); i-- > 0;) PutVarint(HardNumber(r), &packed);
      f->text = packed;
    }
  }
}

// ---- text -----------------------------------------------------------------------------------------------------------

std::vector<std::string> Tokens(std::string_view text) {
  std::vector<std::string> out;
  size_t i = 0;
  auto word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.'; };
  while (i < text.size()) {
    size_t j = i + 1;
    if (word(text[i])) {
      while (j < text.size() && word(text[j])) ++j;
    } else if (std::isspace(static_cast<unsigned char>(text[i]))) {
      while (j < text.size() && std::isspace(static_cast<unsigned char>(text[j]))) ++j;
    }
    out.emplace_back(text.substr(i, j - i));
    i = j;
  }
  return out;
}

}  // namespace

std::string MutateBytes(std::string s, const std::vector<std::string>& corpus, Random* r) {
  for (size_t rounds = 1 + r->Below(4); rounds-- > 0;) {
    size_t at = r->Below(s.size());
    size_t n = 1 + r->Below(r->OneIn(4) ? 64 : 4);
    switch (r->Below(8)) {
      case 0:
        if (!s.empty()) s[at] = static_cast<char>(s[at] ^ (1 << r->Below(8)));
        break;
      case 1:
        if (!s.empty()) s[at] = static_cast<char>(r->Next());
        break;
      case 2:
        s.insert(at, n, static_cast<char>(r->Next()));
        break;
      case 3:
        if (!s.empty()) s.erase(at, n);
        break;
      case 4:
        s.insert(r->Below(s.size()), s.substr(at, n));
        break;
      case 5:
        if (r->OneIn(4)) s.resize(at);
        break;
      case 6:
        for (size_t i = at; i < s.size() && i < at + n; ++i) s[i] = static_cast<char>(r->OneIn(2) ? 0xff : 0);
        break;
      default:
        if (!corpus.empty()) {
          const std::string& other = corpus[r->Below(corpus.size())];
          s.replace(at, n, other.substr(r->Below(other.size()), n));
        }
    }
  }
  return s;
}

std::string MutateOnnx(const std::string& input, const std::vector<std::string>& corpus, Random* r) {
  std::vector<Field> model;
  if (!ParseFields(input, kModel, 0, &model)) return MutateBytes(input, corpus, r);
  for (size_t rounds = 1 + r->Below(3); rounds-- > 0;) {
    std::vector<std::vector<Field>*> lists;
    Lists(&model, &lists);
    std::vector<Field>* list = lists[r->Below(lists.size())];
    if (list->empty()) continue;
    size_t at = r->Below(list->size());
    switch (r->Below(9)) {
      case 0:
        list->erase(list->begin() + static_cast<std::ptrdiff_t>(at));
        break;
      case 1: {
        Field copy = (*list)[at];
        list->insert(list->begin() + static_cast<std::ptrdiff_t>(r->Below(list->size())), std::move(copy));
        break;
      }
      case 2:
        std::swap((*list)[at], (*list)[r->Below(list->size())]);
        break;
      case 3: {
        // A part of the same kind from another model.
        std::vector<Field> other;
        if (corpus.empty() || !ParseFields(corpus[r->Below(corpus.size())], kModel, 0, &other)) break;
        std::vector<std::vector<Field>*> donors;
        Lists(&other, &donors);
        std::vector<const Field*> fit;
        for (auto* d : donors) {
          for (const Field& f : *d) {
            if (f.number == (*list)[at].number && f.message == (*list)[at].message) fit.push_back(&f);
          }
        }
        if (!fit.empty()) (*list)[at] = *fit[r->Below(fit.size())];
        break;
      }
      case 4:
        (*list)[at].number = static_cast<int>(1 + r->Below(26));
        break;
      case 5: {
        // Within itself: nesting.
        Field& f = (*list)[at];
        for (size_t depth = r->OneIn(8) ? 50 : 1; depth-- > 0 && f.message != kLeaf;) {
          Field copy = f;
          f.fields.push_back(std::move(copy));
          if (depth > 3) f.fields.erase(f.fields.begin(), f.fields.end() - 1);
        }
        break;
      }
      default:
        MutateLeaf(list, &(*list)[at], r);
    }
  }
  std::string out;
  WriteFields(model, &out);
  return r->OneIn(16) ? MutateBytes(std::move(out), corpus, r) : out;
}

std::string MutateText(const std::string& input, const std::vector<std::string>& corpus, Random* r) {
  if (r->OneIn(4)) return MutateBytes(input, corpus, r);
  std::vector<std::string> t = Tokens(input);
  for (size_t rounds = 1 + r->Below(4); rounds-- > 0 && !t.empty();) {
    size_t at = r->Below(t.size());
    auto place = [&](size_t i) { return t.begin() + static_cast<std::ptrdiff_t>(i); };
    switch (r->Below(8)) {
      case 0:
        t.erase(place(at));
        break;
      case 1:
        t.insert(place(r->Below(t.size())), std::string(t[at]));
        break;
      case 2:
        std::swap(t[at], t[r->Below(t.size())]);
        break;
      case 3:
        if (!corpus.empty()) {
          std::vector<std::string> other = Tokens(corpus[r->Below(corpus.size())]);
          if (!other.empty()) t[at] = other[r->Below(other.size())];
        }
        break;
      case 4:
        for (size_t i = at; i < t.size(); ++i) {
          if (!std::isdigit(static_cast<unsigned char>(t[i][0]))) continue;
          t[i] = r->OneIn(2) ? std::to_string(HardNumber(r)) : "-" + t[i];
          break;
        }
        break;
      case 5: {
        // A stretch many times over: deep nesting where it opens brackets.
        size_t n = 1 + r->Below(4);
        std::vector<std::string> run(place(at), place(std::min(t.size(), at + n)));
        for (size_t k = r->OneIn(8) ? 3000 : 3; k-- > 0;) t.insert(place(at), run.begin(), run.end());
        break;
      }
      case 6:
        t[at] = t[r->Below(t.size())];
        break;
      default:
        if (r->OneIn(4)) t.resize(at);
    }
  }
  std::string out;
  for (const std::string& s : t) out += s;
  return out;
}

std::string MutateNumbers(const std::string& input, Random* r) {
  std::vector<std::string> t = Tokens(input);
  std::vector<size_t> numbers;
  for (size_t i = 0; i < t.size(); ++i) {
    if (std::isdigit(static_cast<unsigned char>(t[i][0]))) numbers.push_back(i);
  }
  if (numbers.empty()) return input;
  for (size_t rounds = 1 + r->Below(3); rounds-- > 0;) {
    std::string& at = t[numbers[r->Below(numbers.size())]];
    uint64_t value = std::strtoull(at.c_str(), nullptr, 10);
    switch (r->Below(4)) {
      case 0:
        at = t[numbers[r->Below(numbers.size())]];
        break;
      case 1:
        at = std::to_string(value + 1);
        break;
      case 2:
        at = std::to_string(value == 0 ? 1 : value - 1);
        break;
      default:
        at = std::to_string(r->Below(numbers.size()));
    }
  }
  std::string out;
  for (const std::string& s : t) out += s;
  return out;
}

std::vector<std::string> ReadCorpus(const std::string& folder) {
  std::vector<std::string> names, out;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file() && entry.path().extension() != ".md") names.push_back(entry.path().string());
  }
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    std::ifstream file(name, std::ios::binary);
    out.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return out;
}

}  // namespace baton::fuzz
