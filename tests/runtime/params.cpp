// SPDX-License-Identifier: Apache-2.0
#include <baton/runtime/bytes.h>
#include <baton/runtime/params.h>
#include <baton/runtime/registry.h>
#include <doctest/doctest.h>
#include <unistd.h>

#include <cstring>

using namespace baton::runtime;

namespace {
Map<String, NDArray> Sample() {
  Map<String, NDArray> m;
  const float w[6] = {1, 2, 3, 4, 5, 6};
  m.Set("w", NDArray::FromBytes(w, {2, 3}, DataType::Float(32)));
  m.Set("flag", NDArray::Scalar(1, DataType::Bool()));
  m.Set("empty", NDArray::Empty({0, 4}, DataType::Int(64)));
  m.Set("half", NDArray::Scalar(0.5, DataType::Float(16)));
  return m;
}
}  // namespace

TEST_CASE("parameters round trip, in order") {
  const std::string bytes = SaveParams(Sample());
  const Map<String, NDArray> back = LoadParams(bytes);
  CHECK(back.size() == 4);
  CHECK((*back.begin()).first == "w");
  CHECK(back.at("w").shape() == std::vector<int64_t>{2, 3});
  CHECK(back.at("w").GetDouble(5) == 6);
  CHECK(back.at("flag").dtype() == DataType::Bool());
  CHECK(back.at("half").GetDouble(0) == 0.5);
  CHECK(back.at("empty").numel() == 0);
  CHECK(SaveParams(back) == bytes);
}

TEST_CASE("the bytes are those of the Relay era") {
  Map<String, NDArray> m;
  const int32_t v = 7;
  m.Set("p", NDArray::FromBytes(&v, {1}, DataType::Int(32)));
  const unsigned char want[] = {
      0xB7, 0x9C, 0x04, 0x05, 0x4F, 0x8D, 0xE5, 0xF7, 0, 0, 0, 0, 0, 0, 0, 0,       // magic, reserved
      1,    0,    0,    0,    0,    0,    0,    0,    1, 0, 0, 0, 0, 0, 0, 0, 'p',  // names
      1,    0,    0,    0,    0,    0,    0,    0,                                  // arrays
      0x3F, 0xA1, 0xB4, 0x96, 0xF0, 0x40, 0x5E, 0xDD, 0, 0, 0, 0, 0, 0, 0, 0, 1,   0, 0, 0, 0, 0, 0, 0,  // cpu(0)
      1,    0,    0,    0,    0,    32,   1,    0,                                                       // rank, int32
      1,    0,    0,    0,    0,    0,    0,    0,    4, 0, 0, 0, 0, 0, 0, 0, 7,   0, 0, 0};
  CHECK(SaveParams(m) == std::string(reinterpret_cast<const char*>(want), sizeof(want)));
}

TEST_CASE("parameters cut at any byte or with any byte changed are read without a crash") {
  const std::string bytes = SaveParams(Sample());
  for (size_t n = 0; n < bytes.size(); ++n) {
    CAPTURE(n);
    CHECK_THROWS_AS(LoadParams(bytes.substr(0, n)), Error);
  }
  int refused = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    for (int v : {0x00, 0x01, 0x7f, 0x80, 0xff}) {
      std::string b = bytes;
      b[i] = static_cast<char>(v);
      try {
        LoadParams(b);
      } catch (const Error& e) {
        ++refused;
        CHECK(e.kind() == "RuntimeError");
      }
    }
  }
  CHECK(refused > 500);
  CHECK_THROWS_AS(LoadParams(bytes + "x"), RuntimeError);
  CHECK_THROWS_WITH(LoadParams("no", "a.params"),
                    "a.params: not a parameter file: its first 8 bytes are others at byte 0");
}

TEST_CASE("through the functions, to a file and back") {
  const std::string path = "/tmp/baton-params-" + std::to_string(getpid());
  (*Registry::Get("runtime.SaveParamsToFile"))(Sample(), path);
  auto back = (*Registry::Get("runtime.LoadParamsFromFile"))(path).As<Map<String, NDArray>>();
  CHECK(back.size() == 4);
  unlink(path.c_str());
  Any bytes = (*Registry::Get("runtime.SaveParams"))(Sample());
  CHECK(bytes.As<Bytes>().view() == SaveParams(Sample()));
  CHECK((*Registry::Get("runtime.LoadParams"))(bytes).As<Map<String, NDArray>>().size() == 4);
  CHECK_THROWS_AS((*Registry::Get("runtime.LoadParamsFromFile"))("/no/such/file"), Error);
}
