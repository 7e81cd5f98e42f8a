// SPDX-License-Identifier: Apache-2.0
// Operators of ai.onnx.ml that turn columns into other columns: encoders, imputers, normalizers. Strings are numbers
// with a form: places in a list of texts that is known, or hashes of texts that an input has.
#include <baton/support/json.h>

#include <algorithm>
#include <cmath>

#include "common.h"
#include "frontend/onnx/reader/check.h"
#include "ml.h"

namespace baton::onnx {

int64_t TextHash(std::string_view text) {
  uint64_t h = 0xcbf29ce484222325u;
  for (char ch : text) h = (h ^ static_cast<unsigned char>(ch)) * 0x100000001b3u;
  return static_cast<int64_t>(h);
}

std::string Form::Json() const {
  static constexpr const char* kNames[] = {"labels", "hashes", "maps"};
  std::string out;
  support::JsonWriter w(&out);
  w.BeginObject();
  w.Key("kind");
  w.String(kNames[kind]);
  w.Key(numbers.empty() ? "texts" : "numbers");
  w.BeginArray();
  if (numbers.empty()) {
    for (const std::string& t : texts) w.String(t);
  } else {
    for (int64_t n : numbers) w.Int(n);
  }
  w.EndArray();
  w.EndObject();
  return out;
}

Value Labelled(const Value& numbers, std::vector<std::string> texts) {
  auto form = std::make_shared<Form>();
  form->texts = std::move(texts);
  Value v = numbers;
  v.form = form;
  return v;
}

Value FloatList(Ctx& c, DataType t, const std::vector<float>& v) {
  return c.Constant(HostFromFloats(t, {static_cast<int64_t>(v.size())}, {v.begin(), v.end()}));
}

namespace {

DataType FloatOf(DataType t) { return t.is_float() && t.bits() == 64 ? t : DataType::Float(32); }

std::vector<int64_t> Hashes(const std::vector<std::string>& texts) {
  std::vector<int64_t> out;
  for (const std::string& t : texts) out.push_back(TextHash(t));
  return out;
}

/// Operand 0 as numbers that stand for its elements, and these numbers for the keys of a table.
Value Keyed(Ctx& c, const std::vector<std::string>& texts, Value* keys) {
  Value x = c.Texts(0);
  if (x.host && x.host->is_string) {
    // A constant: its hashes.
    x = c.Constant(HostFromInts(DataType::Int(64), x.host->dims, Hashes(x.host->strings)));
    *keys = c.Int64s(Hashes(texts));
    return x;
  }
  if (!x.form) c.Fail("it has keys that are strings for an input of numbers");
  if (x.form->kind == Form::kHashes) {
    *keys = c.Int64s(Hashes(texts));
  } else {
    // The place of each key among the input's texts; -1 never occurs.
    std::vector<int64_t> places;
    for (const std::string& t : texts) {
      auto at = std::find(x.form->texts.begin(), x.form->texts.end(), t);
      places.push_back(at == x.form->texts.end() ? -1 : at - x.form->texts.begin());
    }
    *keys = c.Int64s(places);
  }
  x.form = nullptr;
  return x;
}

/// values[k] where x is keys[k], else `default_value`.
Value LookUp(Ctx& c, const Value& x, const Value& keys, const Value& values, const Value& default_value) {
  const int64_t n = c.Dim(keys, 0);
  if (n > 4096) c.Unsupported("more than 4096 keys");
  Value y = c.Call("full_like", {c.Cast(x, default_value.dtype), default_value});
  for (int64_t i = n - 1; i >= 0; --i) {
    Value key = c.Reshape(c.Slice(keys, 0, i, i + 1), {});
    Value hit = c.Call("equal", {x, key});
    if (IsFloat(x.dtype) && std::isnan(keys.host->FloatAt(i))) hit = c.Call("isnan", {x});
    y = c.Where(hit, c.Reshape(c.Slice(values, 0, i, i + 1), {}), y);
  }
  return y;
}

/// Places in a list of texts for `texts`, which grows; equal texts are one.
Value PlacesOf(Ctx& c, const std::vector<std::string>& texts, std::vector<std::string>* known) {
  std::vector<int64_t> places;
  for (const std::string& t : texts) {
    auto at = std::find(known->begin(), known->end(), t);
    places.push_back(at - known->begin());
    if (at == known->end()) known->push_back(t);
  }
  return c.Int64s(places);
}

Values LabelEncoder(Ctx& c) {
  auto strings = [&](const char* list, const char* tensor) {
    std::vector<std::string> out = c.Strs(list);
    if (const Tensor* t = out.empty() ? c.TensorAttr(tensor) : nullptr) {
      Value v = c.FromTensor(*t);
      if (v.host->is_string) out = v.host->strings;
    }
    return out;
  };
  if (c.since() < 2) {  // texts are numbered in their order
    std::vector<std::string> classes = c.Strs("classes_strings");
    const int64_t default_value = c.Int("default_int64", -1);
    const std::string other = c.Str("default_string", "_Unused");
    Value numbers = c.Int64s(Iota(static_cast<int64_t>(classes.size())));
    if (c.In(0).form || (c.In(0).host && c.In(0).host->is_string)) {
      Value keys, x = Keyed(c, classes, &keys);
      return {LookUp(c, x, keys, numbers, c.Int64(default_value))};
    }
    classes.push_back(other);
    return {Labelled(LookUp(c, c.T(0), numbers, numbers, c.Int64(static_cast<int64_t>(classes.size()) - 1)), classes)};
  }
  Value keys, values, default_value, x;
  std::vector<std::string> key_texts = strings("keys_strings", "keys_tensor");
  std::vector<std::string> texts = strings("values_strings", "values_tensor");
  if (!key_texts.empty()) {
    x = Keyed(c, key_texts, &keys);
  } else {
    x = c.T(0);
    if (c.HasAttr("keys_int64s")) keys = c.Int64s(c.Ints("keys_int64s"));
    if (c.HasAttr("keys_floats")) keys = FloatList(c, DataType::Float(32), c.Floats("keys_floats"));
    if (c.HasAttr("keys_tensor")) keys = c.FromTensor(*c.TensorAttr("keys_tensor"));
  }
  if (c.HasAttr("values_int64s")) values = c.Int64s(c.Ints("values_int64s"));
  if (c.HasAttr("values_floats")) values = FloatList(c, DataType::Float(32), c.Floats("values_floats"));
  if (c.HasAttr("values_tensor") && texts.empty()) values = c.FromTensor(*c.TensorAttr("values_tensor"));
  if (!texts.empty()) {
    std::vector<std::string> known;
    values = PlacesOf(c, texts, &known);
    std::string other = c.Str("default_string", "_Unused");
    if (c.HasAttr("default_tensor")) other = c.FromTensor(*c.TensorAttr("default_tensor")).host->strings.at(0);
    default_value = c.Reshape(PlacesOf(c, {other}, &known), {});
    texts = known;
  } else if (!values) {
    c.Fail("it has no values");
  } else if (c.HasAttr("default_tensor")) {
    default_value = c.Reshape(c.FromTensor(*c.TensorAttr("default_tensor")), {});
  } else if (IsFloat(values.dtype)) {
    default_value = c.Scalar(values.dtype, c.Float("default_float", -0.0));
  } else {
    default_value = c.Scalar(values.dtype, static_cast<double>(c.Int("default_int64", -1)));
  }
  for (const char* name : {"default_float", "default_int64", "default_string"}) c.Ignore(name);
  if (!keys || c.Rank(keys) != 1 || c.Rank(values) != 1) c.Fail("its keys and values must be lists");
  if (!(keys.dtype == x.dtype) || c.Dim(values, 0) != c.Dim(keys, 0))
    c.Fail("its keys fit neither the input nor the values");
  Value y = LookUp(c, x, keys, values, default_value);
  return {texts.empty() ? y : Labelled(y, texts)};
}

Values CategoryMapper(Ctx& c) {
  std::vector<std::string> texts = c.Strs("cats_strings");
  Value numbers = c.Int64s(c.Ints("cats_int64s"));
  const int64_t default_value = c.Int("default_int64", -1);
  const std::string other = c.Str("default_string", "_Unused");
  if (c.Dim(numbers, 0) != static_cast<int64_t>(texts.size()))
    c.Fail("`cats_strings` and `cats_int64s` differ in length");
  if (c.In(0).form || (c.In(0).host && c.In(0).host->is_string)) {
    Value keys, x = Keyed(c, texts, &keys);
    return {LookUp(c, x, keys, numbers, c.Int64(default_value))};
  }
  std::vector<std::string> known;
  Value places = PlacesOf(c, texts, &known), last = c.Reshape(PlacesOf(c, {other}, &known), {});
  return {Labelled(LookUp(c, c.Cast(c.T(0), DataType::Int(64)), numbers, places, last), known)};
}

/// (..., n) zeros with a one for the category of each value; a value without one is an error of the call.
Value EachHas(Ctx& c, const Value& hits, int64_t n) {
  const DataType i64 = DataType::Int(64);
  Value none = c.Call("equal", {Reduce(c, "max", hits, {c.Rank(hits) - 1}, false), c.Scalar(hits.dtype, 0)});
  const String place(NodeLabel(c.node()) + ", given a value that is none of its categories (`zeros` is 0)");
  Value checked = c.Call("contrib_check_index", {c.Mul(c.Cast(none, i64), c.Int64(n))},
                         {{"extents", IntsAny({n})}, {"axis", int64_t{0}}, {"place", place}});
  return c.Add(hits, c.Cast(checked, hits.dtype));
}

Values OneHotEncoder(Ctx& c) {
  std::vector<std::string> texts = c.Strs("cats_strings");
  Dims numbers = c.Ints("cats_int64s");
  const bool refuses = c.Int("zeros", 1) == 0;
  Value keys, x;
  if (!texts.empty()) {
    x = Keyed(c, texts, &keys);
  } else {
    keys = c.Int64s(numbers);
    x = c.Cast(c.T(0), DataType::Int(64));
  }
  Value hits = c.Cast(c.Call("equal", {c.Unsqueeze(x, {c.Rank(x)}), keys}), DataType::Float(32));
  return {refuses ? EachHas(c, hits, c.Dim(keys, 0)) : hits};
}

Values ArrayFeatureExtractor(Ctx& c) {
  Value x = c.Texts(0), at = c.T(1);
  std::vector<std::string> texts;
  if (x.host && x.host->is_string) {
    texts = x.host->strings;
    x = c.Constant(HostFromInts(DataType::Int(64), x.host->dims, Iota(static_cast<int64_t>(texts.size()))));
  } else if (x.form) {
    if (x.form->kind != Form::kLabels) c.Unsupported("strings of an input");
    texts = x.form->texts;
    x.form = nullptr;
  }
  int rank = c.Rank(x);
  Value y = Take(c, x, c.Reshape(at, {-1}), rank - 1);
  // A vector gives one row.
  if (rank == 1) y = c.Unsqueeze(y, {0});
  return {texts.empty() ? y : Labelled(y, texts)};
}

Values Binarizer(Ctx& c) {
  Value x = c.T(0);
  Value threshold = c.Scalar(x.dtype, c.Float("threshold", 0));
  return {c.Cast(c.Call("greater", {x, threshold}), x.dtype)};
}

Values Scaler(Ctx& c) {
  Value x = c.T(0);
  std::vector<float> offset = c.Floats("offset"), scale = c.Floats("scale");
  DataType t = DataType::Float(32);
  Value y = c.Cast(x, t);
  if (!offset.empty()) y = c.Sub(y, FloatList(c, t, offset));
  if (!scale.empty()) y = c.Mul(y, FloatList(c, t, scale));
  return {y};
}

Values Imputer(Ctx& c) {
  Value x = c.T(0), with;
  if (IsFloat(x.dtype)) {
    std::vector<float> floats = c.Floats("imputed_value_floats");
    if (floats.empty()) c.Fail("`imputed_value_floats` is missing");
    with = FloatList(c, x.dtype, floats);
  } else {
    Dims ints = c.Ints("imputed_value_int64s");
    if (ints.empty()) c.Fail("`imputed_value_int64s` is missing");
    with = c.Cast(c.Int64s(ints), x.dtype);
  }
  const double replaced = c.Float("replaced_value_float", 0);
  const int64_t number = c.Int("replaced_value_int64", 0);
  for (const char* name : {"imputed_value_floats", "imputed_value_int64s"}) c.Ignore(name);
  Value hole;
  if (!IsFloat(x.dtype)) {
    hole = c.Call("equal", {x, c.Scalar(x.dtype, static_cast<double>(number))});
  } else {
    hole = std::isnan(replaced) ? c.Call("isnan", {x}) : c.Call("equal", {x, c.Scalar(x.dtype, replaced)});
  }
  return {c.Where(hole, with, x)};
}

Values Normalizer(Ctx& c) {
  Value x = c.T(0);
  const std::string norm = c.Str("norm", "MAX");
  x = c.Cast(x, FloatOf(x.dtype));
  const Dims last = {c.Rank(x) - 1};
  Value by;
  if (norm == "MAX") {
    by = Reduce(c, "max", c.Call("abs", {x}), last, true);
  } else if (norm == "L1") {
    by = Reduce(c, "sum", c.Call("abs", {x}), last, true);
  } else if (norm == "L2") {
    by = c.Call("sqrt", {Reduce(c, "sum", c.Mul(x, x), last, true)});
  } else {
    c.Fail("`norm` is `" + norm + "`");
  }
  // A row of zeros stays one.
  Value none = c.Call("equal", {by, c.Scalar(x.dtype, 0)});
  return {c.Cast(c.Div(x, c.Where(none, c.Scalar(x.dtype, 1), by)), DataType::Float(32))};
}

Values FeatureVectorizer(Ctx& c) {
  Dims widths = c.Ints("inputdimensions");
  Values columns;
  for (size_t i = 0; i < c.num_inputs(); ++i) {
    Value x = c.Cast(c.T(i), DataType::Float(32));
    if (c.Rank(x) == 1) x = c.Unsqueeze(x, {1});
    if (c.Rank(x) != 2) c.Fail("its operands must have one or two axes");
    const int64_t have = c.Dim(x, 1), want = i < widths.size() ? widths[i] : have;
    if (want < have) x = c.Slice(x, 1, 0, want);
    if (want > have) {
      c.Reserve(want, 4);
      x = c.Call("nn.pad", {x, c.Scalar(x.dtype, 0)},
                 {{"pad_width", Array<Array<int64_t>>{{0, 0}, {0, want - have}}}, {"pad_mode", "constant"}});
    }
    columns.push_back(x);
  }
  return {c.Concat(columns, 1)};
}

Values ZipMap(Ctx& c) {
  Value x = c.T(0);
  auto form = std::make_shared<Form>();
  form->kind = Form::kMaps;
  form->texts = c.Strs("classlabels_strings");
  form->numbers = c.Ints("classlabels_int64s");
  const auto n = static_cast<int64_t>(std::max(form->texts.size(), form->numbers.size()));
  if (c.Rank(x) == 1) x = c.Unsqueeze(x, {0});
  if (form->texts.empty() == form->numbers.empty() || c.Rank(x) != 2 || c.Dim(x, 1) != n)
    c.Fail("its labels do not fit its operand");
  x.form = form;
  return {x};
}

}  // namespace

void AddMlEncoders(OpTable* table) {
  for (const OpRow& row : {
           OpRow{kMl, "ArrayFeatureExtractor", ArrayFeatureExtractor},
           {kMl, "Binarizer", Binarizer},
           {kMl, "CategoryMapper", CategoryMapper},
           {kMl, "FeatureVectorizer", FeatureVectorizer},
           {kMl, "Imputer", Imputer},
           {kMl, "LabelEncoder", LabelEncoder},
           {kMl, "Normalizer", Normalizer},
           {kMl, "OneHotEncoder", OneHotEncoder},
           {kMl, "Scaler", Scaler},
           {kMl, "ZipMap", ZipMap},
       }) {
    table->push_back(row);
  }
}

}  // namespace baton::onnx
