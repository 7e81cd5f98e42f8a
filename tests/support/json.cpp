// SPDX-License-Identifier: Apache-2.0
#include <baton/support/json.h>
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <stdexcept>

using baton::support::Json;
using baton::support::JsonLimits;
using baton::support::JsonReader;
using baton::support::JsonWriter;

namespace {
std::string Error(std::string_view text, JsonLimits limits = {}) {
  try {
    Json::Parse(text, "f.json", limits);
  } catch (const std::runtime_error& e) {
    return e.what();
  }
  return "";
}
uint64_t Bits(double d) {
  uint64_t b;
  std::memcpy(&b, &d, 8);
  return b;
}
}  // namespace

TEST_CASE("text and value round trip") {
  const char* text = R"({"a":[1,-2.5,true,null,"x\n\"\\\u0001é"],"b":{},"c":[],"d":{"e":{"f":[[]]}}})";
  const Json j = Json::Parse(text);
  CHECK(j.Dump() == text);
  CHECK(j.Clone().Dump() == text);
  CHECK(Json::Parse(j.Dump(false)).Dump() == text);
  CHECK(Json::Parse("{\"a\":1}").Dump(false) == "{\n  \"a\": 1\n}");
  CHECK(j.At("a")[1].AsDouble() == -2.5);
  CHECK(j.Find("z") == nullptr);
  CHECK_THROWS_WITH(j.At("z"), "JSON: the object has no member `z`");
  CHECK_THROWS_WITH(j.At("b").AsInt(), "JSON: expected an integer, got an object");
  CHECK_THROWS_AS(j.At("a")[9], std::runtime_error);
  Json o = Json::Object();
  o.Set("k", 1);
  o.Set("k", "two");
  o.Set("n", int64_t(3));
  CHECK(o.Dump() == R"({"k":"two","n":3})");
}

TEST_CASE("integers are exact and doubles keep their bits") {
  const Json j = Json::Parse("[9223372036854775807,-9223372036854775808,9223372036854775808,-0,1e2,1.0]");
  CHECK(j[0].AsInt() == INT64_MAX);
  CHECK(j[1].AsInt() == INT64_MIN);
  CHECK(j[2].AsDouble() == 9223372036854775808.0);
  CHECK(std::signbit(j[3].AsDouble()));
  CHECK(j[4].kind() == Json::kDouble);
  CHECK(j.Dump() == "[9223372036854775807,-9223372036854775808,9223372036854775808.0,-0.0,100.0,1.0]");
  uint64_t state = 1;
  for (int i = 0; i < 2000; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    double d;
    std::memcpy(&d, &state, 8);
    if (!std::isfinite(d)) continue;
    std::string out;
    JsonWriter(&out).Double(d);
    CHECK(Bits(Json::Parse(out).AsDouble()) == Bits(d));
  }
  CHECK(Json::Parse("1e-400").AsDouble() == 0);
  CHECK(Error("1e400").find("does not fit into a double") != std::string::npos);
}

TEST_CASE("NaN and infinity only when asked for") {
  CHECK(Error("NaN") != "");
  CHECK(Error("[-Infinity]") != "");
  CHECK_THROWS_AS(Json(NAN).Dump(), std::runtime_error);
  JsonLimits limits;
  limits.allow_nonfinite = true;
  const Json j = Json::Parse("[NaN,Infinity,-Infinity]", "x", limits);
  CHECK(std::isnan(j[0].AsDouble()));
  CHECK(j.Dump(true, true) == "[NaN,Infinity,-Infinity]");
}

TEST_CASE("strings: escapes, surrogates, UTF-8") {
  CHECK(Json::Parse(R"("\u00e9\ud83d\ude00\u20ac\/")").AsString() == "\xc3\xa9\xf0\x9f\x98\x80\xe2\x82\xac/");
  CHECK(Error(R"("\ud83d")").find("surrogate") != std::string::npos);
  CHECK(Error(R"("\ude00")").find("surrogate") != std::string::npos);
  CHECK(Error(R"("\ud83d\u0041")").find("surrogate") != std::string::npos);
  CHECK(Error("\"\xff\"").find("UTF-8") != std::string::npos);
  CHECK(Error("\"\xc0\x80\"").find("UTF-8") != std::string::npos);      // overlong
  CHECK(Error("\"\xed\xa0\x80\"").find("UTF-8") != std::string::npos);  // surrogate
  CHECK(Error("\"\xe2\x82").find("UTF-8") != std::string::npos);        // cut
  CHECK(Error("\"a\nb\"").find("control character") != std::string::npos);
  CHECK_THROWS_AS(Json("\xff").Dump(), std::runtime_error);
  CHECK(Json::Parse("\"a\\u0000b\"").AsString() == std::string("a\0b", 3));
  CHECK(Json(std::string("a\0b", 3)).Dump() == "\"a\\u0000b\"");
}

TEST_CASE("errors have line and column") {
  CHECK(Error("{\"a\": 1,\n  \"b\" 2}") == "f.json:2:7: expected `:`");
  CHECK(Error("[1,\n 2,\n x]") == "f.json:3:2: expected a value");
  CHECK(Error("") == "f.json:1:1: the text is empty");
  CHECK(Error("1 2") == "f.json:1:3: text follows the end of the value");
  CHECK(Error("[1 2]") == "f.json:1:4: expected `,` or `]`");
  CHECK(Error("{\"a\":1,\"a\":2}") == "f.json:1:13: the object that ends here has `a` twice");
  for (const char* bad :
       {"[1,]",    "{\"a\":1,}",  "[,1]", "01", "1.", "1e", "-",  "+1", ".5", "tru",    "nul",     "'a'", "{a:1}",
        "\"\\x\"", "\"\\u12g4\"", "[",    "{",  "]",  "}",  "[}", "{]", "\"", "{\"a\"", "{\"a\":", "nan"}) {
    CAPTURE(bad);
    CHECK(Error(bad).find("f.json:1:") == 0);
  }
  std::string many = "{";
  for (int i = 0; i < 100; ++i) many += "\"k" + std::to_string(i) + "\":0,";
  CHECK(Error(many + "\"k50\":0}").find("`k50` twice") != std::string::npos);
}

TEST_CASE("a text cut anywhere is an error") {
  const std::string text = R"({"a":[1,-2.5e3,true,null,"x\u00e9\n"],"b":{"c":false}})";
  Json::Parse(text);
  for (size_t cut = 0; cut < text.size(); ++cut) {
    CAPTURE(cut);
    CHECK(Error(text.substr(0, cut)) != "");
  }
}

TEST_CASE("depth is limited, and within the limit costs no stack") {
  CHECK(Error(std::string(1001, '[')).find("deeper than the limit of 1000") != std::string::npos);
  const size_t n = 1000000;
  JsonLimits limits;
  limits.depth = n;
  std::string text;
  for (size_t i = 0; i < n / 2; ++i) text += "[{\"a\":";
  text += "1";
  for (size_t i = 0; i < n / 2; ++i) text += "}]";
  Json j = Json::Parse(text, "deep", limits);
  CHECK(j.Clone().Dump() == text);
}

TEST_CASE("the reader gives the pieces and can pass over a value") {
  JsonReader r(R"({"skip":[1,{"x":[2]}],"s":"v","n":7})", "x");
  CHECK(r.Next() == JsonReader::kBeginObject);
  CHECK(r.Next() == JsonReader::kKey);
  CHECK(r.Next() == JsonReader::kBeginArray);
  r.SkipValue();
  CHECK(r.Next() == JsonReader::kKey);
  CHECK(r.text() == "s");
  r.SkipValue();
  CHECK(r.Next() == JsonReader::kKey);
  CHECK(r.Next() == JsonReader::kInt);
  CHECK(r.int_value() == 7);
  CHECK_THROWS_WITH(r.Fail("no"), "x:1:35: no");
  CHECK(r.Next() == JsonReader::kEndObject);
  CHECK(r.Next() == JsonReader::kEnd);
  CHECK(r.Next() == JsonReader::kEnd);
}
