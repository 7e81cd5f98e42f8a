// SPDX-License-Identifier: Apache-2.0
#include "frontend/onnx/reader/reader.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "frontend/onnx/reader/check.h"
#include "frontend/onnx/reader/op_versions.h"
#include "proto_writer.h"

namespace baton::onnx {
namespace {

using namespace testing;  // NOLINT: the writer's short names are the language of these tests

std::string ErrorOf(std::string_view text, const std::string& folder = "") {
  try {
    ParseModel(text, folder);
  } catch (const CompileError& e) {
    return e.what();
  }
  return "";
}

bool Has(const std::string& text, std::string_view part) {
  INFO("in: ", text, "\nlooked for: ", std::string(part));
  bool has = text.find(part) != std::string::npos;
  CHECK(has);
  return has;
}

Proto AddModel() {
  return ModelP(GraphP({.nodes = {NodeP("Add", {"x", "w"}, {"y"}, {}, "add_1")},
                        .inputs = {ValueP("x", {2, 3})},
                        .outputs = {ValueP("y", {2, 3})},
                        .initializers = {FloatsP("w", {3}, {1, 2, 3})}}));
}

/// A folder of its own that goes away with the test.
struct Folder {
  std::string path;
  Folder() {
    char name[] = "/tmp/baton_onnx_XXXXXX";
    path = mkdtemp(name);
  }
  ~Folder() { std::filesystem::remove_all(path); }
  std::string Write(const std::string& name, std::string_view text) const {
    std::ofstream(path + "/" + name, std::ios::binary) << text;
    return path + "/" + name;
  }
};

std::string LoadError(const std::string& path) {
  try {
    LoadModel(path);
  } catch (const CompileError& e) {
    return e.what();
  }
  return "";
}

TEST_CASE("onnx reader: a model becomes structs, its weights stay views") {
  auto model = ParseModel(AddModel().bytes);
  CHECK(model->ir_version == 8);
  CHECK(model->producer_name == "tests");
  REQUIRE(model->opset_imports.size() == 1);
  CHECK(model->opset_imports[0].version == 17);
  const Graph& g = model->graph;
  REQUIRE(g.nodes.size() == 1);
  CHECK(g.nodes[0].op_type == "Add");
  CHECK(g.nodes[0].inputs.size() == 2);
  CHECK(g.inputs[0].type.kind == Type::kTensor);
  CHECK(g.inputs[0].type.shape[1].value == 3);
  std::string scratch;
  std::shared_ptr<const Bytes> keep;
  std::string_view w = TensorBytes(*model, g.initializers[0], &scratch, &keep);
  REQUIRE(w.size() == 12);
  float last;
  std::memcpy(&last, w.data() + 8, 4);
  CHECK(last == 3.0f);
  CHECK(scratch.empty());
  CHECK(keep == model->storage);
  CHECK(w.data() > model->storage->view().data());
}

TEST_CASE("onnx reader: every kind of attribute and type") {
  Proto sparse = Proto().Msg(1, FloatsP("v", {1}, {5})).Msg(2, Int64sP("i", {1}, {2})).Ints(3, {4});
  Proto seq = Proto().Msg(4, Proto().Msg(1, TensorTypeP(1, {2})));
  Proto map = Proto().Msg(5, Proto().Int(1, 7).Msg(2, TensorTypeP(1, {})));
  Proto opt = Proto().Msg(9, Proto().Msg(1, seq));
  Proto node = NodeP(
      "Foo", {"x", ""}, {"y"},
      {AttrInt("i", -4), AttrInts("is", {1, -1}), AttrFloat("f", 0.5f), AttrStr("s", "abc"),
       Proto().Str(1, "fs").Float(7, 1).Float(7, 2).Int(20, 6), Proto().Str(1, "ss").Str(9, "a").Str(9, "b").Int(20, 8),
       Proto().Str(1, "t").Msg(5, FloatsP("", {1}, {7})).Int(20, 4), Proto().Str(1, "sp").Msg(22, sparse).Int(20, 11),
       Proto().Str(1, "tp").Msg(14, opt).Int(20, 13), Proto().Str(1, "empty").Int(20, 7),
       Proto().Str(1, "untyped").Int(3, 9)});
  auto model = ParseModel(ModelP(GraphP({.nodes = {node},
                                         .inputs = {Proto().Str(1, "x").Msg(2, seq), Proto().Str(1, "m").Msg(2, map)},
                                         .outputs = {ValueP("y", {})}}))
                              .bytes);
  const Node& n = model->graph.nodes[0];
  CHECK(n.Find("i")->i == -4);
  CHECK(n.Find("is")->ints == std::vector<int64_t>{1, -1});
  CHECK(n.Find("f")->f == 0.5f);
  CHECK(n.Find("s")->s == "abc");
  CHECK(n.Find("fs")->floats == std::vector<float>{1, 2});
  CHECK(n.Find("ss")->strings.size() == 2);
  CHECK(n.Find("t")->tensors.size() == 1);
  CHECK(n.Find("sp")->sparse_tensors[0].dims == std::vector<int64_t>{4});
  CHECK(n.Find("tp")->types[0].kind == Type::kOptional);
  CHECK(n.Find("tp")->types[0].elem->kind == Type::kSequence);
  CHECK(n.Find("empty")->kind == Attribute::kInts);
  CHECK(n.Find("untyped")->kind == Attribute::kInt);
  CHECK(model->graph.inputs[0].type.kind == Type::kSequence);
  CHECK(model->graph.inputs[1].type.kind == Type::kMap);
  CHECK(model->graph.inputs[1].type.elem_type == kInt64);
}

TEST_CASE("onnx reader: tensor data of every type and field") {
  auto bytes = [](const Proto& tensor) {
    auto model = ReadTensorFile(Bytes::Copy(tensor.bytes), "t.pb");
    std::string scratch;
    std::shared_ptr<const Bytes> keep;
    return std::string(TensorBytes(*model, model->graph.initializers[0], &scratch, &keep));
  };
  using namespace std::string_literals;
  CHECK(bytes(Proto().Ints(1, {2}).Int(2, kInt8).Ints(5, {-1, 2})) == "\xff\x02"s);
  CHECK(bytes(Proto().Ints(1, {2}).Int(2, kFloat16).Ints(5, {0x3c00, 0xbc00})) == "\0\x3c\0\xbc"s);
  CHECK(bytes(Proto().Ints(1, {1}).Int(2, kInt64).Int(7, -2)) == "\xfe\xff\xff\xff\xff\xff\xff\xff"s);
  CHECK(bytes(Proto().Ints(1, {2}).Int(2, kUInt32).Ints(11, {1, 0xffffffff})) == "\1\0\0\0\xff\xff\xff\xff"s);
  CHECK(bytes(Proto().Ints(1, {2}).Int(2, kFloat).Float(4, 1).Float(4, -1)) == "\0\0\x80\x3f\0\0\x80\xbf"s);
  CHECK(bytes(Proto().Ints(1, {3}).Int(2, kInt4).Str(9, "\xf1\x07")) == "\x01\xff\x07"s);
  CHECK(bytes(Proto().Ints(1, {3}).Int(2, kUInt4).Ints(5, {0xf1, 0x07})) == "\x01\x0f\x07"s);
  CHECK(bytes(Proto().Ints(1, {5}).Int(2, kInt2).Str(9, "\xe4\x02")) == "\x00\x01\xfe\xff\xfe"s);
  CHECK(bytes(Proto().Ints(1, {4}).Int(2, kFloat6E2M3).Str(9, "\x41\x30\x10")) == "\x01\x01\x03\x04"s);
  CHECK(bytes(Proto().Ints(1, {2}).Int(2, kFloat6E2M3).Ints(5, {1, 63})) == "\x01\x3f"s);
  CHECK(bytes(Proto().Ints(1, {1}).Int(2, kComplex64).Float(4, 1).Float(4, 0)) == "\0\0\x80\x3f\0\0\0\0"s);
  CHECK(bytes(Proto().Ints(1, {2, 0}).Int(2, kFloat)).empty());
  CHECK(bytes(Proto().Ints(1, {1}).Int(2, kBool).Ints(5, {1})) == "\1"s);
  auto fails = [&](const Proto& tensor, std::string_view part) {
    std::string what;
    try {
      bytes(tensor);
    } catch (const CompileError& e) {
      what = e.what();
    }
    Has(what, part);
  };
  fails(Proto().Ints(1, {2}).Int(2, kFloat).Str(9, "1234567"), "needs 8 bytes of data but has 7");
  fails(Proto().Ints(1, {2}).Int(2, kFloat), "needs 8 bytes of data but has 0");
  fails(Proto().Ints(1, {-2}).Int(2, kFloat), "negative length");
  fails(Proto().Ints(1, {1 << 30, 1 << 30, 1 << 30}).Int(2, kFloat), "more elements than any memory");
  fails(Proto().Ints(1, {1}).Int(2, 99).Str(9, "1"), "type that ONNX does not define");
  fails(Proto().Ints(1, {1}).Int(2, kBool).Str(9, "\x02"), "other than 0 and 1");
  fails(Proto().Ints(1, {1}).Int(2, kFloat).Ints(5, {1}), "which is for other types");
  fails(Proto().Ints(1, {1}).Int(2, kFloat).Float(4, 1).Ints(5, {1}), "data in two fields");
  fails(Proto().Ints(1, {1}).Int(2, kInt64).Str(7, "\x80"), "has 0 numbers");
  auto strings = ReadTensorFile(Bytes::Copy(Proto().Ints(1, {2}).Int(2, kString).Str(6, "a").Str(6, "").bytes), "t");
  CHECK(TensorStrings(strings->graph.initializers[0]).size() == 2);
}

TEST_CASE("onnx reader: a file cut at any byte is a clean error") {
  std::string whole = AddModel().bytes;
  for (size_t n = 0; n < whole.size(); ++n) {
    CHECK_THROWS_AS(ParseModel(whole.substr(0, n)), CompileError);
  }
}

TEST_CASE("onnx reader: every flipped bit is a clean error or another model") {
  std::string whole = AddModel().bytes;
  int refused = 0;
  for (size_t i = 0; i < whole.size() * 8; ++i) {
    std::string flipped = whole;
    flipped[i / 8] = static_cast<char>(flipped[i / 8] ^ (1 << (i % 8)));
    try {
      auto model = ParseModel(flipped);
      std::string scratch;
      std::shared_ptr<const Bytes> keep;
      for (const Tensor& t : model->graph.initializers) TensorBytes(*model, t, &scratch, &keep);
    } catch (const CompileError&) {
      ++refused;
    }
  }
  CHECK(refused > 100);
}

TEST_CASE("onnx reader: errors say byte, field and node") {
  std::string bad =
      ModelP(GraphP({.nodes = {NodeP("Relu", {"x"}, {"y"}),
                               NodeP("Conv", {"x"}, {"z"}, {Proto().Str(1, "pads").Ints(8, {1}).Int(20, 2)}, "conv_7")},
                     .inputs = {ValueP("x", {1})},
                     .outputs = {ValueP("y", {1})}}))
          .bytes;
  std::string what = ErrorOf(bad);
  Has(what, "graph.node[1] (conv_7).attribute[0] (pads): the attribute has type INT but holds a value of type INTS");
  Has(what, "`<model>`: byte ");
  Has(ErrorOf(AddModel().bytes.substr(0, 60)), "truncated");
}

TEST_CASE("onnx reader: nesting has a limit") {
  Proto graph = GraphP({});
  for (int i = 0; i < 60; ++i)
    graph = GraphP({.nodes = {NodeP("If", {"c"}, {"y"}, {AttrGraph("then_branch", graph)})}});
  Has(ErrorOf(ModelP(graph).bytes), "nest deeper than 100");
  Proto type = TensorTypeP(1, {});
  for (int i = 0; i < 200; ++i) type = Proto().Msg(4, Proto().Msg(1, type));
  Has(ErrorOf(ModelP(GraphP({.inputs = {Proto().Str(1, "x").Msg(2, type)}})).bytes), "nest deeper than 100");
}

TEST_CASE("onnx reader: foreign files are told apart") {
  Folder folder;
  Has(LoadError(folder.path + "/none.onnx"), "no such file");
  Has(LoadError(folder.path), "is a directory");
  Has(LoadError(folder.Write("empty.onnx", "")), "is empty (0 bytes)");
  Has(LoadError(folder.Write("a", "PK\x03\x04rest")), "looks like a zip archive");
  Has(LoadError(folder.Write("b",
                             "\x7f"
                             "ELF\x02\x01\x01 and so on")),
      "compiled program or library (ELF)");
  Has(LoadError(folder.Write("c", "Hello, this is text.\n")), "looks like text");
  Has(LoadError(folder.Write("d", "<!DOCTYPE html><html></html>")), "HTML or XML");
  Has(LoadError(folder.Write("e", "version https://git-lfs.github.com/spec/v1\n")), "Git LFS pointer");
  Has(LoadError(folder.Write("f", std::string(1000, '\0'))), "file of zeros");
  Has(LoadError("/dev/null"), "not a regular file");
  Has(LoadError(""), "path of the model is empty");
  std::string random;
  uint32_t seed = 1;
  for (int i = 0; i < 1000; ++i) random += static_cast<char>((seed = seed * 1664525 + 1013904223) >> 24);
  CHECK(!LoadError(folder.Write("g", random)).empty());
}

TEST_CASE("onnx reader: memory asked for stays below a multiple of the input") {
  // Two bytes an empty dimension, 32 bytes a struct: the worst ratio the schema offers.
  std::string dims;
  for (int i = 0; i < 4000000; ++i) dims += std::string("\x0a\x00", 2);
  Proto type = Proto().Msg(1, Proto().Int(1, 1).Str(2, dims));
  Proto g = GraphP({.inputs = {Proto().Str(1, "x").Msg(2, type)}});
  CHECK(ErrorOf(ModelP(g).bytes).empty());
  Has(ErrorOf(ModelP(GraphP({.nodes = {Proto()}})).bytes), "no operator");
}

TEST_CASE("onnx check: names and order") {
  auto graph = [](GraphParts g) {
    g.inputs.push_back(ValueP("x", {1}));
    if (g.outputs.empty()) g.outputs.push_back(ValueP("y", {1}));
    return ModelP(GraphP(g)).bytes;
  };
  SUBCASE("a missing initializer is named with its reader and the nearest name") {
    std::string what = ErrorOf(graph({.nodes = {NodeP("Add", {"x", "weight_1"}, {"y"}, {}, "add")},
                                      .initializers = {FloatsP("weight_l", {1}, {1})}}));
    Has(what, "node `add` (Add) reads `weight_1`; did you mean `weight_l`?");
    Has(what, "initializer may have been lost");
  }
  SUBCASE("a cycle names its nodes") {
    std::string what = ErrorOf(
        graph({.nodes = {NodeP("Relu", {"x"}, {"r"}, {}, "before"), NodeP("Add", {"r", "c"}, {"b"}, {}, "first"),
                         NodeP("Neg", {"b"}, {"c"}, {}, "second"), NodeP("Abs", {"c"}, {"y"}, {}, "after")}}));
    Has(what, "cycle");
    Has(what, "node `first` (Add) needs `c`");
    Has(what, "node `second` (Neg) needs `b`");
    CHECK(what.find("`before`") == std::string::npos);
    CHECK(what.find("`after`") == std::string::npos);
  }
  SUBCASE("nodes out of order are sorted, others keep their places") {
    auto model = ParseModel(graph({.nodes = {NodeP("Abs", {"b"}, {"y"}), NodeP("Relu", {"x"}, {"a"}),
                                             NodeP("Neg", {"a"}, {"b"}), NodeP("Exp", {"x"}, {"z"})}}));
    std::string order;
    for (const Node& n : model->graph.nodes) order += std::string(n.op_type) + " ";
    CHECK(order == "Relu Neg Abs Exp ");
  }
  SUBCASE("two definitions of a value") {
    Has(ErrorOf(graph({.nodes = {NodeP("Abs", {"x"}, {"y"}, {}, "a"), NodeP("Neg", {"x"}, {"y"}, {}, "b")}})),
        "node `a` (Abs) and node `b` (Neg) both define `y`");
    Has(ErrorOf(graph({.nodes = {NodeP("Abs", {"x"}, {"x"}, {}, "a")}})), "is an input or initializer already");
    Has(ErrorOf(graph({.initializers = {FloatsP("w", {1}, {1}), FloatsP("w", {1}, {1})}})), "two initializers");
    Has(ErrorOf(graph({.inputs = {ValueP("x", {1})}})), "two inputs of the name `x`");
  }
  SUBCASE("an output that nothing defines") { Has(ErrorOf(graph({.nodes = {}})), "output `y`, which nothing defines"); }
  SUBCASE("a subgraph sees outer values, its own stay its own") {
    Proto inner = GraphP({.nodes = {NodeP("Neg", {"late"}, {"in"})}, .outputs = {ValueP("in", {1})}});
    std::string ok =
        graph({.nodes = {NodeP("If", {"x"}, {"y"}, {AttrGraph("then_branch", inner)}), NodeP("Abs", {"x"}, {"late"})}});
    auto model = ParseModel(ok);
    CHECK(model->graph.nodes[0].op_type == "Abs");
    CHECK(FreeNames(model->graph.nodes[1].attributes[0].graphs[0]).count("late") == 1);
    std::string leak = graph(
        {.nodes = {NodeP("If", {"x"}, {"y"}, {AttrGraph("then_branch", inner)}), NodeP("Abs", {"in"}, {"late"})}});
    Has(ErrorOf(leak), "reads `in`");
  }
  SUBCASE("operator sets") {
    Has(ErrorOf(Proto().Int(1, 8).Msg(7, GraphP({})).bytes), "imports no operator set");
    CHECK(ErrorOf(Proto().Int(1, 2).Msg(7, GraphP({})).bytes).empty());
    Has(ErrorOf(ModelP(GraphP({}), 17, 99).bytes), "IR version 99 is not known");
    Has(ErrorOf(ModelP(GraphP({})).Msg(8, Proto().Str(1, "ai.onnx").Int(2, 3)).bytes), "`ai.onnx` twice");
  }
  SUBCASE("functions") {
    auto with = [&](std::initializer_list<Proto> functions) {
      Proto p = ModelP(GraphP({}));
      for (const Proto& f : functions) p.Msg(25, f);
      return ErrorOf(p.bytes);
    };
    auto fn = [](std::string_view name, const Proto& node) {
      return Proto().Str(1, name).Str(4, "x").Str(5, "y").Msg(7, node).Str(10, "d").Msg(9,
                                                                                        Proto().Str(1, "").Int(2, 17));
    };
    CHECK(with({fn("F", NodeP("Abs", {"x"}, {"y"}))}).empty());
    Has(with({fn("F", NodeP("Abs", {"z"}, {"y"}))}), "reads `z`");
    Has(with({fn("F", NodeP("G", {"x"}, {"y"}, {}, "", "d")), fn("G", NodeP("F", {"x"}, {"y"}, {}, "", "d"))}),
        "calls itself");
    Has(with({fn("F", NodeP("Abs", {"x"}, {"y"})), fn("F", NodeP("Abs", {"x"}, {"y"}))}), "defined twice");
  }
}

TEST_CASE("onnx check: a long chain") {
  // Reversed, so that the sort has work to do; no recursion may follow the chain.
  Proto g;
  constexpr int kNodes = 200000;
  for (int i = kNodes; i > 0; --i) {
    g.Msg(1, Proto().Str(1, i == 1 ? "x" : std::to_string(i - 1)).Str(2, std::to_string(i)).Str(4, "Neg"));
  }
  g.Msg(11, ValueP("x", {1})).Msg(12, ValueP(std::to_string(kNodes), {1}));
  auto model = ParseModel(ModelP(g).bytes);
  CHECK(model->graph.nodes[0].inputs[0] == "x");
}

TEST_CASE("onnx external data: read through one door, refused everywhere else") {
  Folder folder;
  auto model_with = [](std::string_view location, std::string_view offset = "4", std::string_view length = "8") {
    Proto t = Proto().Ints(1, {2}).Int(2, 1).Str(8, "w").Int(14, 1);
    t.Msg(13, Proto().Str(1, "location").Str(2, location));
    if (!offset.empty()) t.Msg(13, Proto().Str(1, "offset").Str(2, offset));
    if (!length.empty()) t.Msg(13, Proto().Str(1, "length").Str(2, length));
    return ModelP(GraphP({.initializers = {t}})).bytes;
  };
  auto read = [&](const std::string& text) {
    auto model = LoadModel(folder.Write("m.onnx", text));
    std::string scratch;
    std::shared_ptr<const Bytes> keep;
    return std::string(TensorBytes(*model, model->graph.initializers[0], &scratch, &keep));
  };
  auto refused = [&](const std::string& text, std::string_view part) {
    std::string what;
    try {
      read(text);
    } catch (const CompileError& e) {
      what = e.what();
    }
    Has(what, part);
  };
  folder.Write("w.bin", "0123456789abcdef");
  std::filesystem::create_directory(folder.path + "/sub");
  folder.Write("sub/w.bin", "sub.tuvwxyz");
  CHECK(read(model_with("w.bin")) == "456789ab");
  CHECK(read(model_with("w.bin", "", "8")) == "01234567");
  CHECK(read(model_with("w.bin", "8", "")) == "89abcdef");
  CHECK(read(model_with("sub/w.bin", "3", "8")) == ".tuvwxyz");
  CHECK(read(model_with("./w.bin")) == "456789ab");
  refused(model_with("w.bin", "12", "8"), "truncated or belongs to another model");
  refused(model_with("w.bin", "99", "8"), "lies outside its 16 bytes");
  refused(model_with("w.bin", "-1", "8"), "not a number of bytes");
  refused(model_with("w.bin", "4", "7"), "needs 8 bytes of data but has 7");
  refused(model_with("none.bin"), "no such file");
  refused(model_with(""), "empty `location`");
  refused(model_with("sub"), "not a regular file");
  for (const char* path : {"/etc/passwd", "../w.bin", "sub/../w.bin", "sub/../../w.bin", "..", "C:\\w.bin",
                           "\\\\host\\w", "sub\\..\\w.bin", "//etc/passwd"}) {
    refused(model_with(path), "is refused");
  }
  refused(model_with(std::string_view("w.bin\0x", 7)), "zero byte");
  REQUIRE(symlink("w.bin", (folder.path + "/link").c_str()) == 0);
  refused(model_with("link"), "goes through a link");
  REQUIRE(symlink("sub", (folder.path + "/linked").c_str()) == 0);
  refused(model_with("linked/w.bin"), "refused");
  REQUIRE(link((folder.path + "/w.bin").c_str(), (folder.path + "/hard").c_str()) == 0);
  refused(model_with("hard"), "hard link");
  REQUIRE(mkfifo((folder.path + "/pipe").c_str(), 0600) == 0);
  refused(model_with("pipe"), "not a regular file");
  auto model = ParseModel(model_with("w.bin"));
  std::string scratch;
  std::shared_ptr<const Bytes> keep;
  CHECK_THROWS_AS(TensorBytes(*model, model->graph.initializers[0], &scratch, &keep), CompileError);
}

TEST_CASE("onnx operator versions") {
  CHECK(FindOpVersion("", "Add", 6).since == 6);
  CHECK(FindOpVersion("", "Add", 28).since == 14);
  CHECK(FindOpVersion("", "Gelu", 19).since == 0);
  CHECK(FindOpVersion("", "Gelu", 19).first == 20);
  CHECK(FindOpVersion("", "Gelu", 20).has_body);
  CHECK(FindOpVersion("", "Upsample", 10).deprecated);
  CHECK(!FindOpVersion("", "Upsample", 9).deprecated);
  CHECK(FindOpVersion("", "Nonsense", 28).first == 0);
  CHECK(FindOpVersion("ai.onnx.ml", "TreeEnsemble", 5).since == 5);
}

}  // namespace
}  // namespace baton::onnx
