// SPDX-License-Identifier: Apache-2.0
#include <baton/runtime/array.h>
#include <baton/runtime/c_backend_api.h>
#include <baton/runtime/executor_queries.h>
#include <baton/runtime/module.h>
#include <baton/runtime/ndarray.h>
#include <baton/runtime/registry.h>
#include <baton/support/file.h>
#include <baton/support/json.h>
#include <baton/support/machine.h>
#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <thread>

using namespace baton::runtime;
using baton::support::ReadFile;
using baton::support::WriteFileAtomic;

namespace {

/// out = x * 2 + constants[0]; counts how often it reads x where the caller has it.
std::atomic<const void*> last_x{nullptr};
std::atomic<int> hold{0};
extern "C" int32_t TestEntry(void** io, const uint8_t* constants, uint8_t*) {
  while (hold.load() == 1) std::this_thread::yield();
  last_x = io[0];
  const float* x = static_cast<const float*>(io[0]);
  float* out = static_cast<float*>(io[1]);
  if (x[0] == 99) return BatonBackendSetError("99 is refused");
  for (int i = 0; i < 4; ++i) out[i] = x[i] * 2 + reinterpret_cast<const float*>(constants)[0];
  return 0;
}

alignas(64) const float kConstants[16] = {1};

class InProcess final : public ModuleNode {
 public:
  InProcess() {
    desc.inputs = {{"x", {2, 2}, DataType::Float(32)}};
    desc.outputs = {{"out", {4}, DataType::Float(32)}};
    desc.arena_bytes = 100;
    desc.constants = reinterpret_cast<const uint8_t*>(kConstants);
    desc.constants_bytes = sizeof(kConstants);
    desc.entry = "TestEntry";
  }
  const char* type_key() const override { return "test"; }
  PackedFunc GetFunction(std::string_view, const ObjectPtr<Object>&) override { return PackedFunc(); }
  void* GetSymbol(const char* name) override {
    return std::strcmp(name, "TestEntry") == 0 ? reinterpret_cast<void*>(&TestEntry) : nullptr;
  }
  const ExecutableDesc* GetExecutable() const override { return &desc; }
  ExecutableDesc desc;
};

NDArray Floats(const std::vector<int64_t>& shape, std::vector<float> values) {
  return NDArray::FromBytes(values.data(), shape, DataType::Float(32));
}
std::vector<float> Values(const NDArray& a) { return {a.ptr<float>(), a.ptr<float>() + a.numel()}; }

template <class F>
std::string Error_(F f) {
  try {
    f();
  } catch (const Error& e) {
    return e.kind() + ": " + e.message();
  }
  return "";
}

struct Folder {
  std::string path;
  Folder() {
    char name[] = "/tmp/baton-artifact-XXXXXX";
    REQUIRE(mkdtemp(name) != nullptr);
    path = name;
  }
  ~Folder() {
    for (const char* n : {"/model.so", "/cut.so", "/copy.so"}) unlink((path + n).c_str());
    rmdir(path.c_str());
  }
};

ExecutableDesc ModelDesc(const float* weights) {
  ExecutableDesc d;
  d.inputs = {{"x", {8}, DataType::Float(32)}, {"y", {8}, DataType::Float(32)}};
  d.outputs = {{"sum", {8}, DataType::Float(32)}};
  d.arena_bytes = 64;
  d.constants = reinterpret_cast<const uint8_t*>(weights);
  d.constants_bytes = 32;
  d.target = "llvm -mcpu=test";
  return d;
}

}  // namespace

TEST_CASE("the executor runs what it is given") {
  Module code = MakeModule<InProcess>();
  Module e = code.GetFunction("default")(Cpu()).As<Module>();
  CHECK(std::string(e->type_key()) == "executor");
  e.GetFunction("set_input")("x", Floats({2, 2}, {1, 2, 3, 4}));
  e.GetFunction("run")();
  CHECK(Values(e.GetFunction("get_output")(0).As<NDArray>()) == std::vector<float>{3, 5, 7, 9});
  CHECK(Values(e.GetFunction("get_output")("out").As<NDArray>()) == std::vector<float>{3, 5, 7, 9});
  NDArray into = NDArray::Zeros({4}, DataType::Float(32));
  e.GetFunction("get_output")(0, into);
  CHECK(Values(into) == std::vector<float>{3, 5, 7, 9});
  CHECK(e.GetFunction("get_num_inputs")().As<int>() == 1);
  CHECK(e.GetFunction("get_num_outputs")().As<int>() == 1);
  CHECK(e.GetFunction("get_input_index")("x").As<int>() == 0);
  CHECK(e.GetFunction("get_input_index")("nope").As<int>() == -1);
  CHECK(e.GetFunction("get_input_name")(0).As<std::string>() == "x");
  Array<Any> info = e.GetFunction("get_output_info")(0).As<Array<Any>>();
  CHECK(info[0].As<std::string>() == "out");
  CHECK(info[1].As<Array<int64_t>>()[0] == 4);
  CHECK(info[2].As<DataType>() == DataType::Float(32));
  CHECK_FALSE(e.GetFunction("no_such_function").defined());
  // A function outlives the reference to its module.
  PackedFunc run = e.GetFunction("run");
  e = Module();
  code = Module();
  run();
}

TEST_CASE("an output that is still held is not overwritten; one that is not is used again") {
  Module e = CreateExecutor(MakeModule<InProcess>());
  PackedFunc run_with = e.GetFunction("run_with");
  NDArray a = run_with(Floats({2, 2}, {1, 1, 1, 1})).As<Array<NDArray>>()[0];
  NDArray b = run_with(Floats({2, 2}, {2, 2, 2, 2})).As<Array<NDArray>>()[0];
  CHECK(Values(a) == std::vector<float>{3, 3, 3, 3});
  CHECK(Values(b) == std::vector<float>{5, 5, 5, 5});
  const void* place = b.data();
  b = NDArray();
  CHECK(run_with(Floats({2, 2}, {0, 0, 0, 0})).As<Array<NDArray>>()[0].data() == place);
}

TEST_CASE("the value of a call has the tuples that the description says; a tree that is none is refused") {
  const auto with = [](std::vector<int64_t> tree) {
    Module m = MakeModule<InProcess>();
    static_cast<InProcess*>(const_cast<ModuleNode*>(m.get()))->desc.result_tree = std::move(tree);
    return CreateExecutor(m);
  };
  const NDArray x = Floats({2, 2}, {1, 1, 1, 1});
  for (const std::vector<int64_t>& tree : {std::vector<int64_t>{}, std::vector<int64_t>{-1}}) {
    CHECK(Values(with(tree).GetFunction("call")(x).As<NDArray>())[0] == 3);
  }
  const auto pair = with({2, 0, 1, -1}).GetFunction("call")(x).As<Array<ObjectRef>>();
  CHECK(pair.size() == 2);
  CHECK(Downcast<Array<ObjectRef>>(pair[0]).empty());
  CHECK(Values(Downcast<NDArray>(Downcast<Array<ObjectRef>>(pair[1])[0]))[0] == 3);
  for (const std::vector<int64_t>& tree :
       {std::vector<int64_t>{0}, {-1, -1}, {1}, {2, -1}, {2, -1, -1}, {-2}, {1, -1, 0}, {2147483647, -1}}) {
    CHECK_THROWS_AS(with(tree), RuntimeError);
  }
  // Of several outputs, in the order in which they stand.
  std::vector<NDArray> outputs;
  for (float v : {0.f, 1.f, 2.f}) outputs.push_back(Floats({1}, {v}));
  const auto value = Downcast<Array<ObjectRef>>(ResultValue({2, 2, -1, -1, -1}, outputs));
  CHECK(Downcast<NDArray>(value[1]).same_as(outputs[2]));
  CHECK(Downcast<NDArray>(Downcast<Array<ObjectRef>>(value[0])[1]).same_as(outputs[1]));
  CHECK(Downcast<Array<NDArray>>(ResultValue({}, outputs)).size() == 3);
}

TEST_CASE("inputs: copied by set_input, used in place by the others when they fit") {
  Module e = CreateExecutor(MakeModule<InProcess>());
  NDArray x = Floats({2, 2}, {1, 2, 3, 4});
  e.GetFunction("set_input")(0, x);
  x.ptr<float>()[0] = 50;
  e.GetFunction("run")();
  CHECK(Values(e.GetFunction("get_output")(0).As<NDArray>())[0] == 3);
  CHECK(last_x != x.data());
  e.GetFunction("set_input_zero_copy")("x", x);
  e.GetFunction("run")();
  CHECK(last_x == x.data());
  CHECK(Values(e.GetFunction("get_output")(0).As<NDArray>())[0] == 101);
  e.GetFunction("run_with")(x.tensor());  // a borrowed tensor, for the time of the call
  CHECK(last_x == x.data());
  CHECK(Error_([&] { e.GetFunction("run")(); }).find("has not been set") != std::string::npos);
  // Not aligned, or with strides: copied.
  NDArray wide = Floats({5}, {0, 1, 2, 3, 4});
  int64_t shape[] = {2, 2}, strides[] = {2, 1}, transposed[] = {1, 2};
  DLTensor t{wide.ptr<float>() + 1, Cpu(), 2, DataType::Float(32), shape, strides, 0};
  CHECK(Values(e.GetFunction("run_with")(&t).As<Array<NDArray>>()[0]) == std::vector<float>{3, 5, 7, 9});
  CHECK(last_x != t.data);
  t.strides = transposed;
  CHECK(Values(e.GetFunction("run_with")(&t).As<Array<NDArray>>()[0]) == std::vector<float>{3, 7, 5, 9});
}

TEST_CASE("wrong inputs are errors that name the input, what is expected and what came") {
  Module e = CreateExecutor(MakeModule<InProcess>());
  PackedFunc set = e.GetFunction("set_input"), run = e.GetFunction("run"), run_with = e.GetFunction("run_with");
  CHECK(Error_([&] { run(); }) == "ValueError: input 0 `x`: it has not been set; expected float32[2, 2]");
  CHECK(Error_([&] { e.GetFunction("get_output")(0); }).find("has not run yet") != std::string::npos);
  CHECK(Error_([&] { set("y", Floats({2, 2}, {1, 2, 3, 4})); }) == "KeyError: the model has no input `y`; it has `x`");
  CHECK(Error_([&] { set(1, Floats({2, 2}, {1, 2, 3, 4})); }) == "IndexError: there is no input 1: the model has 1");
  CHECK(Error_([&] { set("x", Floats({4}, {1, 2, 3, 4})); }) ==
        "ValueError: input 0 `x`: expected float32[2, 2], got float32[4]");
  CHECK(Error_([&] { set("x", NDArray::Zeros({2, 2}, DataType::Int(32))); }) ==
        "ValueError: input 0 `x`: expected float32[2, 2], got int32[2, 2]");
  CHECK(Error_([&] { set("x", nullptr); }) == "ValueError: input 0 `x`: expected a tensor, got None");
  CHECK(Error_([&] { set("x", 3); }) == "ValueError: input 0 `x`: expected a tensor, got int");
  CHECK(Error_([&] { set("x"); }) != "");
  CHECK(Error_([&] { run_with(); }) == "TypeError: the model has 1 inputs, got 0");
  CHECK(Error_([&] { run_with("text"); }) == "ValueError: input 0 `x`: expected a tensor, got str");
  CHECK(Error_([&] { run_with(Floats({2, 2}, {99, 0, 0, 0})); }) == "RuntimeError: 99 is refused");
  CHECK(Error_([&] { e.GetFunction("get_output")(0); }).find("has not run yet") != std::string::npos);
  int64_t shape[] = {2, 2};
  DLTensor bad{nullptr, Cpu(), 2, DataType::Float(32), shape, nullptr, 0};
  CHECK(Error_([&] { run_with(&bad); }) == "ValueError: input 0 `x`: a tensor without data");
  bad.shape = nullptr;
  CHECK(Error_([&] { run_with(&bad); }) == "ValueError: input 0 `x`: not a tensor");
  run_with(Floats({2, 2}, {1, 0, 0, 0}));  // and goes on working
  CHECK(Error_([&] { CreateExecutor(e); }).find("holds no model") != std::string::npos);
  CHECK(Error_([&] { CreateExecutor(Module()); }).find("holds no model") != std::string::npos);
  CHECK(Error_([&] { CreateExecutor(MakeModule<InProcess>(), Device{kDLCUDA, 0}); }).find("cuda(0)") !=
        std::string::npos);
}

TEST_CASE("a second thread in the same executor is refused; executors of one module run at once") {
  Module code = MakeModule<InProcess>();
  Module e = CreateExecutor(code);
  e.GetFunction("set_input")(0, Floats({2, 2}, {1, 2, 3, 4}));
  hold = 1;
  // The asking below may be inside just when this thread wants in, and then it is this one that is refused.
  std::thread other([&] {
    while (!Error_([&] { e.GetFunction("run")(); }).empty()) std::this_thread::yield();
  });
  std::string got;
  while (got.empty()) got = Error_([&] { e.GetFunction("get_input")(0); });
  CHECK(e.GetFunction("get_num_inputs")().As<int>() == 1);  // what never changes can be asked all the same
  hold = 0;
  other.join();
  CHECK(got.find("in use by another thread") != std::string::npos);
  std::vector<std::thread> threads;
  std::atomic<int> bad{0};
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      Module mine = CreateExecutor(code);
      PackedFunc f = mine.GetFunction("run_with");
      const float v = static_cast<float>(i);
      for (int round = 0; round < 200; ++round) {
        NDArray out = f(Floats({2, 2}, {v, v, v, v})).As<Array<NDArray>>()[0];
        if (out.ptr<float>()[3] != v * 2 + 1) ++bad;
      }
    });
  }
  for (auto& t : threads) t.join();
  CHECK(bad == 0);
}

TEST_CASE("time_evaluator") {
  Module e = CreateExecutor(MakeModule<InProcess>());
  e.GetFunction("set_input")(0, Floats({2, 2}, {1, 2, 3, 4}));
  PackedFunc timer = (*Registry::Get("runtime.TimeEvaluator"))(e, "run", Cpu(), 10, 3, 1).As<PackedFunc>();
  Array<double> seconds = timer().As<Array<double>>();
  CHECK(seconds.size() == 3);
  for (double s : seconds) {
    CHECK(s > 0);
    CHECK(s < 1);
  }
  CHECK_THROWS_AS((*Registry::Get("runtime.TimeEvaluator"))(e, "walk", Cpu(), 1, 1, 0), Error);
}

TEST_CASE("an artifact is written, inspected, loaded and run") {
  Folder f;
  const std::string elf = ReadFile(BATON_TEST_MODEL), path = f.path + "/model.so";
  float weights[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  ExecutableDesc d = ModelDesc(weights);
  if (baton::support::HasCpuFeature("sse2")) d.features = {"sse2"};
  WriteArtifact(path, elf.data(), elf.size(), d);
  const std::string first = ReadFile(path);
  WriteArtifact(path, elf.data(), elf.size(), d);
  CHECK(ReadFile(path) == first);  // the same input, the same bytes
  const auto manifest = baton::support::Json::Parse(ReadManifest(path));
  CHECK(manifest.At("inputs")[1].At("name").AsString() == "y");
  CHECK(manifest.At("target").AsString() == "llvm -mcpu=test");
  Module m = Module::LoadFromFile(path);
  CHECK(m->GetSource("") == ReadManifest(path));
  Module e = m.GetFunction("default")(Cpu()).As<Module>();
  PackedFunc run_with = e.GetFunction("run_with");
  std::vector<float> x = {1, 1, 1, 1, 1, 1, 1, 1}, y = {0, 0, 0, 0, 1, 1, 1, 1};
  CHECK(Values(run_with(Floats({8}, x), Floats({8}, y)).As<Array<NDArray>>()[0]) ==
        std::vector<float>{1, 2, 3, 4, 6, 7, 8, 9});
  x[0] = -1;
  CHECK(Error_([&] { run_with(Floats({8}, x), Floats({8}, y)); }) == "RuntimeError: x[0] is negative");
  // A model compiled anew under the same name is not mistaken for the one that is still loaded.
  weights[0] = 100;
  WriteArtifact(path, elf.data(), elf.size(), d);
  Module again = CreateExecutor(Module::LoadFromFile(path));
  x[0] = 1;
  CHECK(Values(again.GetFunction("run_with")(Floats({8}, x), Floats({8}, y)).As<Array<NDArray>>()[0])[0] == 100);
  CHECK(Values(run_with(Floats({8}, x), Floats({8}, y)).As<Array<NDArray>>()[0])[0] == 1);
  m->SaveToFile(f.path + "/copy.so", "");
  CHECK(ReadFile(f.path + "/copy.so") == first);
}

TEST_CASE("an artifact cut at any byte, or with any bit flipped, is a clean error") {
  Folder f;
  const std::string elf = ReadFile(BATON_TEST_MODEL), path = f.path + "/model.so", cut = f.path + "/cut.so";
  const float weights[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  WriteArtifact(path, elf.data(), elf.size(), ModelDesc(weights));
  const std::string whole = ReadFile(path);
  // Written without the flush to the disk, 20,000 times.
  const auto check = [&](const std::string& bytes) {
    unlink(cut.c_str());  // some file systems flush a file that replaces another by truncation
    FILE* out = fopen(cut.c_str(), "wb");
    REQUIRE(out);
    fwrite(bytes.data(), 1, bytes.size(), out);
    fclose(out);
    return Error_([&] { Module::LoadFromFile(cut); });
  };
  int accepted = 0;
  for (size_t n = 0; n < whole.size(); n += whole.size() > 40000 ? 7 : 1) {
    if (check(whole.substr(0, n)).find("RuntimeError: cannot load `" + cut + "`: ") != 0) ++accepted;
  }
  CHECK(accepted == 0);
  for (size_t i = 0; i < whole.size(); i += i < 128 || i + 600 > whole.size() ? 1 : 11) {
    std::string bytes = whole;
    bytes[i] = static_cast<char>(bytes[i] ^ (1 << (i % 8)));
    if (check(bytes).find("RuntimeError: cannot load `" + cut + "`: ") != 0) ++accepted;
  }
  CHECK(accepted == 0);
  CHECK(check(whole + "x") != "");
  CHECK(check("").find("the file is empty") != std::string::npos);
  CHECK(check("hello, world").find("not a compiled model") != std::string::npos);
  CHECK(check(elf).find("the end of a compiled model is missing") != std::string::npos);
  CHECK(Error_([&] { Module::LoadFromFile(f.path); }).find("it is a directory") != std::string::npos);
  CHECK(Error_([&] { Module::LoadFromFile(f.path + "/none"); }).find("No such file") != std::string::npos);
}

TEST_CASE("an artifact for another machine or without its entry is refused by name") {
  Folder f;
  const std::string elf = ReadFile(BATON_TEST_MODEL), path = f.path + "/model.so";
  const float weights[8] = {};
  ExecutableDesc d = ModelDesc(weights);
  d.features = {"amx-of-tomorrow"};
  WriteArtifact(path, elf.data(), elf.size(), d);
  CHECK(Error_([&] { Module::LoadFromFile(path); }).find("`amx-of-tomorrow`") != std::string::npos);
  d.features.clear();
  d.result_tree = {2, -1, -1};
  WriteArtifact(path, elf.data(), elf.size(), d);
  CHECK(Error_([&] { Module::LoadFromFile(path); }).find("the results make no tree of the outputs") !=
        std::string::npos);
  d.result_tree = {-1, -1};
  WriteArtifact(path, elf.data(), elf.size(), d);
  CHECK(Error_([&] { Module::LoadFromFile(path); }).find("the results make no tree") != std::string::npos);
  d.result_tree = {1, -1};
  WriteArtifact(path, elf.data(), elf.size(), d);
  CHECK(Downcast<Array<ObjectRef>>(
            CreateExecutor(Module::LoadFromFile(path))
                .GetFunction("call")(Floats({8}, std::vector<float>(8)), Floats({8}, std::vector<float>(8)))
                .As<ObjectRef>())
            .size() == 1);
  d.result_tree.clear();
  d.entry = "elsewhere";
  WriteArtifact(path, elf.data(), elf.size(), d);
  CHECK(Error_([&] { Module::LoadFromFile(path); }).find("no symbol `elsewhere`") != std::string::npos);
  CHECK_THROWS_AS(WriteArtifact(path, "text", 4, d), InternalError);
  CHECK(Error_([&] {
          try {
            WriteArtifact(f.path + "/no/model.so", elf.data(), elf.size(), d);
          } catch (const std::runtime_error& e) {
            throw RuntimeError(e.what());
          }
        }).find("folder does not exist") != std::string::npos);
}

TEST_CASE("modules import each other, but not in a circle") {
  Module a = MakeModule<InProcess>(), b = MakeModule<InProcess>();
  a->Import(b);
  CHECK_THROWS_AS(b->Import(a), ValueError);
  CHECK_THROWS_AS(a->Import(a), ValueError);
  CHECK_THROWS_AS(a->Import(Module()), ValueError);
  CHECK(a->imports().size() == 1);
  CHECK_THROWS_AS(a->GetSource("ll"), UnsupportedError);
  CHECK_THROWS_AS(a->SaveToFile("/tmp/x", ""), UnsupportedError);
  CHECK_FALSE(a.GetFunction("nothing", true).defined());
  CHECK_THROWS_AS(Module().GetFunction("x"), ValueError);
}
