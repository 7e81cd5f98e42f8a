// SPDX-License-Identifier: Apache-2.0
// Operators on strings that come with a call, and decoders: functions of the host compute them.
#include "common.h"
#include "frontend/onnx/import/host_values.h"
#include "frontend/onnx/import/importer_impl.h"

namespace baton::onnx {
namespace {

/// They are known when it runs; constants, too, are left to the host.
Values OnHost(Ctx& c) {
  for (const Attribute& a : c.node().attributes) c.Ignore(std::string(a.name).c_str());
  throw NeedsValue{"the strings of an operand"};
}

/// Lengths of operand i, strings of either kind.
Dims LengthsOf(Ctx& c, size_t i) {
  const Value& v = c.In(i);
  if (v.kind != Value::kText && !(v.host && v.host->is_string)) c.Unsupported("an operand of other than strings");
  return v.dims;
}

Dims BroadcastLengths(Ctx& c) {
  Dims dims;
  if (!c.Broadcast(LengthsOf(c, 0), LengthsOf(c, 1), &dims)) c.Fail("the strings do not broadcast");
  return dims;
}

Values StringConcatTypes(Ctx& c) { return {TextOf(BroadcastLengths(c))}; }
Values StringNormalizerTypes(Ctx& c) { return {TextOf(Dims(LengthsOf(c, 0).size(), -1))}; }
Values StringSplitTypes(Ctx& c) {
  Dims dims = LengthsOf(c, 0), parts = dims;
  parts.push_back(-1);
  return {TextOf(parts), c.Unknown(DataType::Int(64), dims)};
}
Values RegexTypes(Ctx& c) { return {c.Unknown(DataType::Bool(), LengthsOf(c, 0))}; }

Values TokenizerTypes(Ctx& c) {
  Dims dims = LengthsOf(c, 0);
  if (dims.empty() || dims.size() > 2) c.Fail("strings of one or two dimensions are wanted");
  dims.push_back(-1);
  return {TextOf(dims)};
}

Values ImageDecoderTypes(Ctx& c) {
  return {c.Unknown(DataType::UInt(8), {-1, -1, c.Str("pixel_format", "RGB") == "Grayscale" ? 1 : 3})};
}

}  // namespace

bool AnyText(const Ctx& c) {
  for (size_t i = 0; i < c.num_inputs(); ++i) {
    if (c.In(i).kind == Value::kText) return true;
  }
  return false;
}

Value EqualTexts(Ctx& c) {
  Importer* importer = c.importer();
  const Values both = {importer->Text(c.In(0)), importer->Text(c.In(1))};
  return importer->CallHost("EqualTexts", both, c.Unknown(DataType::Bool(), BroadcastLengths(c)));
}

void AddStrings(OpTable* table) {
  for (const OpRow& row : {
           OpRow{"", "StringConcat", OnHost, StringConcatTypes},
           {"", "StringNormalizer", OnHost, StringNormalizerTypes},
           {"", "StringSplit", OnHost, StringSplitTypes},
           {"", "RegexFullMatch", OnHost, RegexTypes},
           {"com.microsoft", "Tokenizer", OnHost, TokenizerTypes},
           {"", "ImageDecoder", OnHost, ImageDecoderTypes},
       }) {
    table->push_back(row);
  }
}

}  // namespace baton::onnx
