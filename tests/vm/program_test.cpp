// SPDX-License-Identifier: Apache-2.0
#include <baton/runtime/array.h>
#include <baton/runtime/packed_func.h>
#include <baton/vm/program.h>
#include <baton/vm/value.h>
#include <doctest/doctest.h>

#include <random>

using namespace baton;      // NOLINT
using namespace baton::vm;  // NOLINT

namespace {

int32_t W(Opcode op) { return static_cast<int32_t>(op); }

/// main(n, x): if n then (x, constant) else f(x), where f puts its argument into data and takes it out again.
Program Sample() {
  Program p;
  p.constants.push_back(NDArray::FromBytes("\1\2\3\4", {4}, DataType::UInt(8)));
  p.views.push_back({"", {2, 2}, DataType::UInt(8)});
  p.messages.push_back("no clause fits");
  p.functions.push_back({"main",
                         2,
                         4,
                         {W(Opcode::kJumpIfFalse), ~0, 13,  //
                          W(Opcode::kConst), 2, 0,          //
                          W(Opcode::kTuple), 3, 2, ~1, ~2,  //
                          W(Opcode::kReturn), ~3,           //
                          W(Opcode::kTailCall), 1, 1, ~1}});
  p.functions.push_back({"f",
                         1,
                         3,
                         {W(Opcode::kData),
                          1,
                          7,
                          1,
                          ~0,  //
                          W(Opcode::kJumpIfTagNot),
                          1,
                          7,
                          18,  //
                          W(Opcode::kField),
                          2,
                          ~1,
                          0,  //
                          W(Opcode::kView),
                          0,
                          ~2,
                          0,  //
                          W(Opcode::kJump),
                          20,
                          W(Opcode::kFail),
                          0,
                          W(Opcode::kReturn),
                          ~0}});
  // The jump lands on the return, the failed test on the failure.
  p.functions[1].code[8] = 19;
  p.functions[1].code[18] = 21;
  p.entries.push_back(
      {"main", 0, {{"n", {}, DataType::Bool()}, {"x", {-1}, DataType::UInt(8)}}, {{"y", {}, DataType::Handle()}}});
  return p;
}

/// main(n, x) on the CPU and ext_dev: a kernel there, of one step that copies x, and what it gives on the CPU, with a
/// constant of ext_dev.
Program OnTwo() {
  Program p;
  p.devices.resize(2);
  p.devices[0].type = kDLCPU;
  p.devices[1].type = kDLExtDev;
  p.constants.push_back(NDArray::FromBytes("\1\2\3\4", {4}, DataType::UInt(8)));
  p.constant_devices = {1};
  Kernel k{"k", {{"a", {4}, DataType::UInt(8)}}, {{"", {4}, DataType::UInt(8)}}, 64, 1, {}};
  k.steps.push_back({"", {{StepPlace::kIo, 0}, {StepPlace::kArena, 32}}, 4});
  k.steps.push_back({"", {{StepPlace::kArena, 32}, {StepPlace::kIo, 1}}, 4});
  p.kernels.push_back(k);
  p.functions.push_back({"main", 2, 5, {W(Opcode::kKernel),      0,  1,  1,  ~1, 2,  //
                                        W(Opcode::kConst),       3,  0,              //
                                        W(Opcode::kTuple),       4,  2,  ~2, ~3,     //
                                        W(Opcode::kJumpIfFalse), ~0, 21,             //
                                        W(Opcode::kCopy),        4,  ~4, 0,          //
                                        W(Opcode::kReturn),      ~4}});
  p.entries.push_back({"main",
                       0,
                       {{"n", {}, DataType::Bool()}, {"x", {-1}, DataType::UInt(8)}},
                       {{"y", {}, DataType::Handle()}},
                       {-1, 1}});
  p.copies.push_back({0, 17, "a tuple", "f:3", 1, 0, 8, "8", "for the result of @main"});
  p.packed.push_back({"exp", PackedFunc(), 1, "host.exp", "{}"});
  return p;
}

ObjectRef Invoke(const Program& p, bool n, const NDArray& x) {
  auto exe = std::make_shared<Executable>();
  exe->program = p;
  Module m = CreateExecutor(exe);
  return m.GetFunction("invoke")(std::string("main"), NDArray::Scalar(int64_t{n}, DataType::Bool()), x).As<ObjectRef>();
}

}  // namespace

TEST_CASE("vm: a program runs, is saved, and runs the same when it is loaded") {
  const Program p = Sample();
  p.Validate();
  std::string data;
  const std::string text = p.Save(&data);
  const NDArray aligned = NDArray::FromBytes(data.data(), {static_cast<int64_t>(data.size())}, DataType::UInt(8));
  const Program q = Program::Load(text, aligned.ptr<uint8_t>(), data.size(), aligned);
  CHECK(q.Disassemble() == p.Disassemble());
  const NDArray x = NDArray::FromBytes("abcd", {4}, DataType::UInt(8));
  for (const Program* each : {&p, &q}) {
    const auto pair = Downcast<runtime::Array<ObjectRef>>(Invoke(*each, true, x));
    CHECK(pair.size() == 2);
    CHECK(pair[0].same_as(x));
    CHECK(Downcast<NDArray>(pair[1]).GetInt(2) == 3);
    const NDArray y = Downcast<NDArray>(Invoke(*each, false, x));
    CHECK(y.shape() == std::vector<int64_t>{2, 2});
    CHECK(y.GetInt(3) == 'd');
  }
}

TEST_CASE("vm: a host function is named with its parameters, and only one of libbaton_host") {
  Program p = OnTwo();
  p.packed.push_back({"topk", PackedFunc(), 1, "host.topk", R"({"k":3,"scale":NaN})"});
  std::string data;
  const std::string text = p.Save(&data);
  const NDArray aligned = NDArray::FromBytes(data.data(), {static_cast<int64_t>(data.size())}, DataType::UInt(8));
  const Program q = Program::Load(text, aligned.ptr<uint8_t>(), data.size(), aligned);
  std::string again;
  CHECK(q.Save(&again) == text);
  CHECK(q.packed[1].maker == "host.topk");
  CHECK(q.packed[1].params == p.packed[1].params);
  CHECK(q.packed[1].device == 1);
  std::string old = text;
  const std::string slot = R"({"name":"exp","maker":"host.exp","params":"{}","device":1})";
  REQUIRE(old.find(slot) != std::string::npos);
  old.replace(old.find(slot), slot.size(), R"(["exp","{}"])");
  CHECK_THROWS_WITH_AS(Program::Load(old, aligned.ptr<uint8_t>(), data.size(), aligned),
                       doctest::Contains("compile it anew"), RuntimeError);
  p.packed[1].maker = "";
  CHECK_THROWS_AS(p.Validate(), RuntimeError);
  p.packed[1].function = PackedFunc([](runtime::Args, runtime::RetValue*) {});
  p.Validate();
  CHECK_THROWS_WITH_AS(p.Save(&again), doctest::Contains("`topk` is a function of this process"),
                       runtime::UnsupportedError);
  p.packed[1].maker = "runtime.LoadModule";
  CHECK_THROWS_WITH_AS(p.Validate(), "`runtime.LoadModule` is no function that programs call", RuntimeError);
}

TEST_CASE("vm: a program for two devices runs, is saved, and runs the same when it is loaded") {
  const Program p = OnTwo();
  p.Validate();
  std::string data;
  const std::string text = p.Save(&data);
  const NDArray aligned = NDArray::FromBytes(data.data(), {static_cast<int64_t>(data.size())}, DataType::UInt(8));
  const Program q = Program::Load(text, aligned.ptr<uint8_t>(), data.size(), aligned);
  std::string again;
  CHECK(q.Save(&again) == text);
  CHECK(q.packed[0].device == 1);
  CHECK(q.copies[0].because == "for the result of @main");
  CHECK(q.Disassemble().find("kernel k on ext_dev 1 1") != std::string::npos);
  CHECK(q.Disassemble().find("copy r4= r4! to cpu") != std::string::npos);
  const NDArray x = NDArray::FromBytes("abcd", {4}, DataType::UInt(8));
  for (const Program* each : {&p, &q}) {
    for (bool home : {true, false}) {
      const auto pair = Downcast<runtime::Array<ObjectRef>>(Invoke(*each, home, x));
      const NDArray first = Downcast<NDArray>(pair[0]), second = Downcast<NDArray>(pair[1]);
      CHECK(first.device().device_type == (home ? kDLCPU : kDLExtDev));
      CHECK(second.device().device_type == (home ? kDLCPU : kDLExtDev));
      CHECK(first.Copy().GetInt(3) == 'd');
      CHECK(second.Copy().GetInt(2) == 3);
    }
  }
}

TEST_CASE(
    "vm: a kernel whose sizes come when the program runs is saved with them, and refused where they contradict it") {
  auto open = [] {
    Program p = Sample();
    Kernel k{"k", {{"x", {-1, 3}, DataType::Float(32), {"n", ""}}}, {{"", {-1}, DataType::Float(32), {"2*n"}}}, 0, 0,
             {}};
    k.dynamic.dims.push_back({"n", 0, 64, 2});
    k.dynamic.sizes = "k.sizes";
    k.dynamic.words = 3;
    k.dynamic.reads_values = true;
    k.dynamic.extents = {{0, -1}, {1}};
    k.dynamic.buffers.push_back({0, 1, 1, 2});
    p.kernels.push_back(k);
    return p;
  };
  const Program p = open();
  std::string data;
  const std::string text = p.Save(&data);
  const NDArray aligned = NDArray::FromBytes(data.data(), {static_cast<int64_t>(data.size())}, DataType::UInt(8));
  const Program q = Program::Load(text, aligned.ptr<uint8_t>(), data.size(), aligned);
  std::string again;
  CHECK(q.Save(&again) == text);
  CHECK(q.kernels.back().dynamic.dims[0].multiple == 2);
  CHECK(q.kernels.back().outputs[0].extents[0] == "2*n");
  auto refused = [&](auto change) {
    Program r = open();
    change(&r.kernels.back());
    CHECK_THROWS_AS(r.Validate(), Error);
  };
  refused([](Kernel* k) { k->dynamic.extents[0][0] = 3; });      // a word that is not there
  refused([](Kernel* k) { k->dynamic.extents.pop_back(); });     // an output without extents
  refused([](Kernel* k) { k->dynamic.buffers[0].offset = 0; });  // that of a dimension
  refused([](Kernel* k) { k->dynamic.extents[0] = {-1, -1}; });  // nothing binds the dimension
  refused([](Kernel* k) { k->outputs[0].extents.clear(); });
}

TEST_CASE("vm: programs that name devices, or places on them, that there are not are refused") {
  auto refused = [](auto change) {
    Program p = OnTwo();
    change(&p);
    std::string data;
    const std::string text = p.Save(&data);
    const NDArray aligned = NDArray::FromBytes(data.data(), {static_cast<int64_t>(data.size())}, DataType::UInt(8));
    CHECK_THROWS_AS(Program::Load(text, aligned.ptr<uint8_t>(), data.size(), aligned), Error);
  };
  refused([](Program* p) { p->functions[0].code[20] = 2; });             // a copy to a device that is not there
  refused([](Program* p) { p->devices.pop_back(); });                    // all that is on it
  refused([](Program* p) { p->devices[0].type = kDLExtDev; });           // no CPU
  refused([](Program* p) { p->devices[1].type = 64; });                  // no device
  refused([](Program* p) { p->devices[1].constants_bytes = 1 << 20; });  // constants that are not there
  refused([](Program* p) { p->devices[1].constants_begin = 32; });       // not aligned
  refused([](Program* p) { p->constant_devices = {2}; });
  refused([](Program* p) { p->constant_devices = {0, 0}; });
  refused([](Program* p) { p->entries[0].devices = {0}; });
  refused([](Program* p) { p->entries[0].devices = {0, 2}; });
  refused([](Program* p) { p->kernels[0].device = 2; });
  refused([](Program* p) { p->packed[0].device = 2; });
  refused([](Program* p) { p->copies[0].function = 1; });
  refused([](Program* p) { p->copies[0].at = 23; });
  refused([](Program* p) { p->copies[0].at = -1; });
  refused([](Program* p) { p->copies[0].to = 2; });
  refused([](Program* p) { p->copies[0].bytes = -2; });
  refused([](Program* p) { p->kernels[0].device = 0; });           // steps on the CPU
  refused([](Program* p) { p->kernels[0].steps[0].bytes = 33; });  // beyond the arena
  refused([](Program* p) { p->kernels[0].steps[0].args[1].at = 65; });
  refused([](Program* p) { p->kernels[0].steps[0].args[0].at = 2; });  // neither input nor output
  refused([](Program* p) { p->kernels[0].steps[0].args.pop_back(); });
  refused([](Program* p) { p->kernels[0].steps[0].args[0].kind = 7; });
  refused([](Program* p) { p->kernels[0].steps[0].args[0] = {StepPlace::kConstant, 0}; });  // there are none
  refused([](Program* p) { p->kernels[0].steps[0].args[0] = {StepPlace::kArenaWord, 0}; });
  refused([](Program* p) { p->kernels[0].steps[0].word = 0; });
  refused([](Program* p) { p->kernels[0].steps[0].bytes = 5; });  // more than x has
}

TEST_CASE("vm: the list of steps that earlier versions made for devices is refused with a way out") {
  const std::string graph =
      R"({"devices":[{"type":1,"arena_bytes":0,"constants":[0,0],"code":""}],"inputs":[],"outputs":[],"steps":[]})";
  CHECK_THROWS_WITH_AS(Program::Load(graph, nullptr, 0, ObjectRef()),
                       "the model was compiled by an earlier version, for its devices; compile it anew", RuntimeError);
}

TEST_CASE("vm: values of any depth go to another device, and shared parts stay shared") {
  const NDArray x = NDArray::FromBytes("abcd", {4}, DataType::UInt(8));
  const Device there{kDLExtDev, 0};
  ADT list(1, 0);
  for (int i = 0; i < 300000; ++i) {
    ADT next(0, 2);
    const_cast<ADTObj*>(next.get())->fields()[0] = x;
    const_cast<ADTObj*>(next.get())->fields()[1] = list;
    list = next;
  }
  CHECK(MoveTo(list, runtime::Cpu()).same_as(list));
  const auto pair =
      Downcast<runtime::Array<ObjectRef>>(MoveTo(runtime::Array<ObjectRef>(std::vector<ObjectRef>{list, list}), there));
  CHECK(pair[0].same_as(pair[1]));
  ObjectRef at = pair[0];
  int n = 0;
  for (; at.as<ADTObj>()->size; at = at.as<ADTObj>()->fields()[1], ++n) {
    const NDArray h = Downcast<NDArray>(at.as<ADTObj>()->fields()[0]);
    if (h.device().device_type != kDLExtDev) break;
  }
  CHECK(n == 300000);
}

TEST_CASE("vm: a value of another shape than the bytecode counts on is an error") {
  const NDArray x = NDArray::FromBytes("abc", {3}, DataType::UInt(8));
  CHECK_THROWS_AS(Invoke(Sample(), false, x), Error);
}

TEST_CASE("vm: bytecode that leads out of bounds is refused") {
  auto refused = [](auto change) {
    Program p = Sample();
    change(&p);
    CHECK_THROWS_AS(p.Validate(), Error);
  };
  refused([](Program* p) { p->functions[0].code[0] = 99; });         // an unknown instruction
  refused([](Program* p) { p->functions[0].code.pop_back(); });      // a cut one
  refused([](Program* p) { p->functions[0].code[1] = 17; });         // a register too high
  refused([](Program* p) { p->functions[0].code[2] = 0; });          // a jump back
  refused([](Program* p) { p->functions[0].code[2] = 14; });         // into an instruction
  refused([](Program* p) { p->functions[0].code[2] = 1000; });       // beyond the end
  refused([](Program* p) { p->functions[0].code[5] = 3; });          // a constant that is not there
  refused([](Program* p) { p->functions[0].code[14] = 5; });         // a function that is not there
  refused([](Program* p) { p->functions[0].code[15] = 0; });         // a call with other arguments
  refused([](Program* p) { p->functions[0].registers = -1; });       // fewer registers than parameters
  refused([](Program* p) { p->functions[0].registers = 1 << 30; });  // more than anyone needs
  refused([](Program* p) { p->functions[1].code.resize(15); });      // over the end
  refused([](Program* p) { p->entries[0].function = 2; });
  refused([](Program* p) { p->entries[0].inputs.pop_back(); });
}

TEST_CASE("vm: mutated programs are refused or sound, and never crash the loader") {
  std::mt19937 random(7);
  int accepted = 0, refused = 0;
  std::string data;
  const std::string two = OnTwo().Save(&data);
  data.clear();
  const std::string one = Sample().Save(&data);
  const NDArray aligned = NDArray::FromBytes(data.data(), {static_cast<int64_t>(data.size())}, DataType::UInt(8));
  for (int i = 0; i < 8000; ++i) {
    const std::string& text = i % 2 ? one : two;
    std::string mutant = text;
    for (unsigned n = 1 + random() % 3; n > 0; --n) {
      const size_t at = random() % mutant.size();
      switch (random() % 4) {
        case 0:
          mutant[at] = static_cast<char>(random() % 96 + 32);
          break;
        case 1:
          mutant[at] = static_cast<char>('0' + random() % 10);
          break;
        case 2:
          mutant.erase(at, 1 + random() % 4);
          break;
        default:
          mutant.insert(at, mutant.substr(random() % mutant.size(), random() % 8));
      }
    }
    try {
      Program::Load(mutant, aligned.ptr<uint8_t>(), data.size(), aligned).Disassemble();
      ++accepted;
    } catch (const Error&) {
      ++refused;
    }
  }
  CHECK(accepted > 0);
  CHECK(refused > 4000);
}
