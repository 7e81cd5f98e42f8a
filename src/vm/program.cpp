// SPDX-License-Identifier: Apache-2.0
#include <baton/support/json.h>
#include <baton/support/text.h>
#include <baton/vm/program.h>

#include <cstring>

#include "runtime/dynamic_json.h"

namespace baton::vm {

using runtime::RuntimeError;
using runtime::TensorInfo;
using support::Cat;
using support::Json;

namespace {

struct Form {
  const char* name;
  const char* operands;
};
// In the order of Opcode. The operands after `*` repeat `n` times, where `n` is the count before it.
constexpr Form kForms[] = {
    {"move", "ds"},    {"const", "dc"},       {"kernel", "knn*sd"},       {"packed", "pdn*s"},
    {"call", "fdn*s"}, {"tail_call", "fn*s"}, {"call_closure", "sdn*s"},  {"tail_closure", "sn*s"},
    {"return", "s"},   {"jump", "t"},         {"jump_if_false", "st"},    {"tuple", "dn*s"},
    {"data", "din*s"}, {"field", "dsi"},      {"jump_if_tag_not", "sit"}, {"closure", "dfn*s"},
    {"ref_new", "ds"}, {"ref_read", "ds"},    {"ref_write", "ss"},        {"view", "dsv"},
    {"fail", "m"},     {"copy", "dsx"},
};
static_assert(sizeof(kForms) / sizeof(kForms[0]) == static_cast<size_t>(Opcode::kNumOpcodes));

constexpr int32_t kMaxRegisters = 1 << 24;

constexpr const char* kCompilesItself =
    "the model was compiled by an earlier version, and parts of it are compiled when it runs; compile it anew";
constexpr const char* kOldArtifact = "the model was compiled by an earlier version, for its devices; compile it anew";

bool Ends(int32_t op) {
  return op == static_cast<int32_t>(Opcode::kReturn) || op == static_cast<int32_t>(Opcode::kTailCall) ||
         op == static_cast<int32_t>(Opcode::kTailClosure) || op == static_cast<int32_t>(Opcode::kFail) ||
         op == static_cast<int32_t>(Opcode::kJump);
}

void CheckFunction(const Program& p, const Function& f) {
  auto fail = [&](size_t at, const std::string& what) {
    throw RuntimeError(Cat("bytecode of `", f.name, "` at word ", at, ": ", what));
  };
  if (f.params < 0 || f.registers < f.params || f.registers > kMaxRegisters) fail(0, "a wrong number of registers");
  if (f.code.empty()) fail(0, "no code");
  std::vector<int32_t> code = f.code;
  std::vector<bool> begins(code.size() + 1);
  std::vector<std::pair<size_t, int32_t>> targets;
  size_t at = 0, last = 0;
  while (at < code.size()) {
    begins[at] = true;
    last = at;
    const size_t here = at;
    auto below = [&](int32_t w, size_t n, const char* what) {
      if (w < 0 || static_cast<size_t>(w) >= n) fail(here, Cat(what, " ", w, " of ", n));
    };
    at = ForEachOperand(code, at, [&](int32_t w, Operand kind) {
      switch (kind) {
        case Operand::kRead:
          below(w < 0 ? ~w : w, static_cast<size_t>(f.registers), "register");
          break;
        case Operand::kWrite:
          below(w, static_cast<size_t>(f.registers), "register");
          break;
        case Operand::kFunction:
          below(w, p.functions.size(), "function");
          break;
        case Operand::kKernel:
          below(w, p.kernels.size(), "kernel");
          break;
        case Operand::kPacked:
          below(w, p.packed.size(), "host function");
          break;
        case Operand::kConstant:
          below(w, p.constants.size(), "constant");
          break;
        case Operand::kView:
          below(w, p.views.size(), "view");
          break;
        case Operand::kMessage:
          below(w, p.messages.size(), "message");
          break;
        case Operand::kTarget:
          targets.push_back({here, w});
          break;
        case Operand::kDevice:
          below(w, p.NumDevices(), "device");
          break;
        case Operand::kNumber:
          break;
      }
    });
    const auto op = static_cast<Opcode>(code[here]);
    if (op == Opcode::kKernel) {
      const Kernel& k = p.kernels[static_cast<size_t>(code[here + 1])];
      if (static_cast<size_t>(code[here + 2]) != k.inputs.size() ||
          static_cast<size_t>(code[here + 3]) != k.outputs.size()) {
        fail(here, "a kernel with other inputs or outputs");
      }
    } else if (op == Opcode::kCall || op == Opcode::kTailCall) {
      const int32_t n = code[here + (op == Opcode::kCall ? 3 : 2)];
      if (n != p.functions[static_cast<size_t>(code[here + 1])].params) fail(here, "a call with other arguments");
    } else if (op == Opcode::kClosure) {
      if (code[here + 3] > p.functions[static_cast<size_t>(code[here + 2])].params) fail(here, "a closure of too many");
    }
  }
  if (!Ends(code[last])) fail(last, "the code runs over its end");
  for (auto [from, to] : targets) {
    if (to <= static_cast<int32_t>(from) || static_cast<size_t>(to) >= code.size() ||
        !begins[static_cast<size_t>(to)]) {
      fail(from, Cat("a jump to ", to));
    }
  }
}

void WriteInfos(support::JsonWriter* w, const char* key, const std::vector<TensorInfo>& infos) {
  w->Key(key);
  w->BeginArray();
  for (const TensorInfo& t : infos) {
    w->BeginArray();
    w->String(t.name);
    w->String(DataType2String(t.dtype));
    for (int64_t d : t.shape) w->Int(d);
    w->EndArray();
  }
  w->EndArray();
}

/// Left out where there are none.
void WriteNumbers(support::JsonWriter* w, const char* key, const std::vector<int32_t>& numbers) {
  if (numbers.empty()) return;
  w->Key(key);
  w->BeginArray();
  for (int32_t v : numbers) w->Int(v);
  w->EndArray();
}

std::vector<TensorInfo> ReadInfos(const Json& list, int64_t least) {
  std::vector<TensorInfo> out;
  for (const Json& j : list.AsArray()) {
    TensorInfo t;
    t.name = j[0].AsString();
    t.dtype = String2DataType(j[1].AsString());
    for (size_t i = 2; i < j.size(); ++i) {
      t.shape.push_back(j[i].AsInt());
      if (t.shape.back() < least) throw RuntimeError("a negative extent");
    }
    if (least == 0) runtime::TensorBytes(t.shape, t.dtype);  // refuses what overflows
    out.push_back(std::move(t));
  }
  return out;
}

void WriteDynamic(support::JsonWriter* w, const runtime::DynamicShapes& dynamic, const std::vector<TensorInfo>& inputs,
                  const std::vector<TensorInfo>& outputs) {
  if (!dynamic.defined()) return;
  w->Key("dynamic");
  runtime::WriteDynamicShapes(w, dynamic);
  w->Key("names");  // of extents
  w->BeginArray();
  for (const std::vector<TensorInfo>* list : {&inputs, &outputs}) {
    for (const TensorInfo& t : *list) {
      w->BeginArray();
      for (const std::string& e : t.extents) w->String(e);
      w->EndArray();
    }
  }
  w->EndArray();
}

void ReadDynamic(const Json& object, runtime::DynamicShapes* dynamic, std::vector<TensorInfo>* inputs,
                 std::vector<TensorInfo>* outputs) {
  const Json* shapes = object.Find("dynamic");
  if (!shapes) return;
  *dynamic = runtime::ReadDynamicShapes(*shapes);
  const Json& names = object.At("names");
  if (names.size() != inputs->size() + outputs->size()) throw RuntimeError("another number of tensors with extents");
  size_t i = 0;
  for (std::vector<TensorInfo>* list : {inputs, outputs}) {
    for (TensorInfo& t : *list) {
      for (const Json& e : names[i].AsArray()) t.extents.push_back(e.AsString());
      ++i;
    }
  }
}

int32_t Int32(const Json& j) {
  const int64_t v = j.AsInt();
  if (v < INT32_MIN || v > INT32_MAX) throw RuntimeError("a number beyond 32 bits");
  return static_cast<int32_t>(v);
}

std::vector<int32_t> ReadNumbers(const Json& object, const char* key) {
  std::vector<int32_t> out;
  if (const Json* list = object.Find(key)) {
    for (const Json& v : list->AsArray()) out.push_back(Int32(v));
  }
  return out;
}

std::vector<PackedSlot> ReadPacked(const Json& list) {
  std::vector<PackedSlot> out;
  for (const Json& s : list.AsArray()) {
    if (!s.is_object()) throw RuntimeError(kCompilesItself);
    const Json* device = s.Find("device");
    out.push_back({s.At("name").AsString(), PackedFunc(), device ? Int32(*device) : 0, s.At("maker").AsString(),
                   s.At("params").AsString()});
  }
  return out;
}

void WriteCopies(const std::vector<CopyNote>& copies, support::JsonWriter* w) {
  w->Key("copies");
  w->BeginArray();
  for (const CopyNote& c : copies) {
    w->BeginObject();
    w->Key("function"), w->Int(c.function);
    w->Key("at"), w->Int(c.at);
    w->Key("value"), w->String(c.value);
    w->Key("place"), w->String(c.place);
    w->Key("from"), w->Int(c.from);
    w->Key("to"), w->Int(c.to);
    w->Key("bytes"), w->Int(c.bytes);
    w->Key("formula"), w->String(c.formula);
    w->Key("because"), w->String(c.because);
    w->EndObject();
  }
  w->EndArray();
}

void WriteDevices(const std::vector<ProgramDevice>& devices, support::JsonWriter* w) {
  w->Key("devices");
  w->BeginArray();
  for (const ProgramDevice& d : devices) {
    w->BeginArray();
    w->Int(d.type);
    w->Int(static_cast<int64_t>(d.constants_begin));
    w->Int(static_cast<int64_t>(d.constants_bytes));
    w->String(d.code);
    w->EndArray();
  }
  w->EndArray();
}

std::vector<ProgramDevice> ReadDevices(const Json& list, uint64_t data_bytes) {
  std::vector<ProgramDevice> out;
  for (const Json& d : list.AsArray()) {
    const int64_t type = d[0].AsInt(), begin = d[1].AsInt(), bytes = d[2].AsInt();
    if (type < 1 || type > 63) throw RuntimeError("a device of no type");
    if (begin < 0 || bytes < 0 || begin % 64 || static_cast<uint64_t>(begin) > data_bytes ||
        static_cast<uint64_t>(bytes) > data_bytes - static_cast<uint64_t>(begin)) {
      throw RuntimeError("constants outside of the file");
    }
    out.push_back({type, static_cast<uint64_t>(begin), static_cast<uint64_t>(bytes), d[3].AsString()});
  }
  return out;
}

/// [symbol, bytes of a copy, the word with them, [kind, at]...]
void WriteSteps(const std::vector<KernelStep>& steps, support::JsonWriter* w) {
  if (steps.empty()) return;
  w->Key("steps");
  w->BeginArray();
  for (const KernelStep& s : steps) {
    w->BeginArray();
    w->String(s.symbol);
    w->Int(static_cast<int64_t>(s.bytes));
    w->Int(s.word);
    for (const StepPlace& p : s.args) {
      w->BeginArray();
      w->Int(p.kind);
      w->Int(p.at);
      w->EndArray();
    }
    w->EndArray();
  }
  w->EndArray();
}

std::vector<KernelStep> ReadSteps(const Json& list) {
  std::vector<KernelStep> out;
  for (const Json& s : list.AsArray()) {
    if (s.is_object()) throw RuntimeError(kOldArtifact);
    KernelStep step{s[0].AsString(), {}, static_cast<uint64_t>(s[1].AsInt()), Int32(s[2])};
    for (size_t i = 3; i < s.size(); ++i) step.args.push_back({s[i][0].AsInt(), s[i][1].AsInt()});
    out.push_back(std::move(step));
  }
  return out;
}

/// That a kernel's steps stay within its arena, its words, and the constants of its device.
void CheckSteps(const Kernel& k, const std::vector<ProgramDevice>& devices) {
  if (k.steps.empty()) return;
  auto fail = [&](const char* what) { throw RuntimeError(Cat("`", k.symbol, "`: ", what)); };
  const size_t slots = k.inputs.size() + k.outputs.size();
  const uint64_t words = k.dynamic.defined() ? static_cast<uint64_t>(k.dynamic.words) : 0;
  if (k.device == 0) fail("steps on the CPU");
  for (const KernelStep& s : k.steps) {
    const bool copy = s.symbol.empty();
    if (s.bytes > (uint64_t{1} << 62) || s.word < -1 || s.word >= static_cast<int64_t>(words))
      fail("a size that is not possible");
    if (copy && s.args.size() != 2) fail("a copy of other than two places");
    for (const StepPlace& p : s.args) {
      const auto at = static_cast<uint64_t>(p.at);
      uint64_t most = 0;  // bytes from there on, of what has a size that is known
      switch (p.kind) {
        case StepPlace::kIo: {
          if (at >= slots) fail("a place that is not there");
          const TensorInfo& t = at < k.inputs.size() ? k.inputs[at] : k.outputs[at - k.inputs.size()];
          most = k.dynamic.defined() ? s.bytes : runtime::TensorBytes(t.shape, t.dtype);
          break;
        }
        case StepPlace::kConstant:
        case StepPlace::kArena: {
          const uint64_t all =
              p.kind == StepPlace::kArena ? k.arena_bytes : devices[static_cast<size_t>(k.device)].constants_bytes;
          if (at > all) fail("a place that is not there");
          most = all - at;
          break;
        }
        case StepPlace::kArenaWord:
        case StepPlace::kWord:
          if (at >= words || (copy && p.kind == StepPlace::kWord)) fail("a place that is not there");
          most = s.bytes;
          break;
        default:
          fail("a place that is not there");
      }
      if (copy && s.bytes > most) fail("a place that is not there");
    }
  }
}

}  // namespace

const char* OpcodeName(Opcode op) { return kForms[static_cast<int>(op)].name; }
const char* OpcodeForm(Opcode op) { return kForms[static_cast<int>(op)].operands; }
void ThrowCutCode() { throw RuntimeError("bytecode with an unknown or incomplete instruction"); }

const Entry* Program::Find(std::string_view name) const {
  for (const Entry& e : entries) {
    if (e.name == name) return &e;
  }
  return nullptr;
}

void Program::Validate() const {
  auto device = [&](int32_t d, const char* what) {
    if (d < 0 || static_cast<size_t>(d) >= NumDevices())
      throw RuntimeError(Cat(what, " on a device that is not there"));
  };
  if (!devices.empty() && devices[0].type != kDLCPU) throw RuntimeError("a program whose first device is not the CPU");
  if (!constant_devices.empty() && constant_devices.size() != constants.size()) {
    throw RuntimeError("another number of constants");
  }
  for (int32_t d : constant_devices) device(d, "a constant");
  for (const PackedSlot& s : packed) {
    device(s.device, "a host function");
    if (s.maker.compare(0, 5, "host.") != 0 && !(s.maker.empty() && s.function.defined())) {
      throw RuntimeError(Cat("`", s.maker, "` is no function that programs call"));
    }
  }
  for (const Kernel& k : kernels) {
    device(k.device, "a kernel");
    if (k.dynamic.defined()) {
      CheckDynamicShapes(k.dynamic, k.inputs, k.outputs);
      if (k.dynamic.extents.size() != k.inputs.size() + k.outputs.size()) {
        throw RuntimeError(Cat("`", k.symbol, "`: another number of inputs or outputs"));
      }
    }
    CheckSteps(k, devices);
    for (size_t i = 0; i < k.over.size(); ++i) {
      const size_t n = i % 2 ? k.outputs.size() : k.inputs.size();
      if (k.over.size() % 2 || k.over[i] < 0 || static_cast<size_t>(k.over[i]) >= n)
        throw RuntimeError(Cat("`", k.symbol, "`: an input that is not there gives its memory"));
    }
  }
  for (const Entry& e : entries) {
    if (e.dynamic.defined()) CheckDynamicShapes(e.dynamic, e.inputs, e.outputs);
    if (!e.devices.empty() && e.devices.size() != e.inputs.size()) throw RuntimeError("another number of inputs");
    for (int32_t d : e.devices) device(d < 0 ? 0 : d, "an input");
    for (int32_t i : e.donated) {
      if (i < 0 || static_cast<size_t>(i) >= e.inputs.size()) throw RuntimeError("a donated input that is not there");
    }
  }
  for (const CopyNote& c : copies) {
    if (c.function < 0 || static_cast<size_t>(c.function) >= functions.size() || c.at < 0 ||
        static_cast<size_t>(c.at) >= functions[static_cast<size_t>(c.function)].code.size() || c.bytes < -1) {
      throw RuntimeError("a copy that is not there");
    }
    device(c.from, "a copy");
    device(c.to, "a copy");
  }
  for (const Function& f : functions) CheckFunction(*this, f);
  for (const Entry& e : entries) {
    if (e.function < 0 || static_cast<size_t>(e.function) >= functions.size() ||
        functions[static_cast<size_t>(e.function)].params != static_cast<int32_t>(e.inputs.size())) {
      throw RuntimeError(Cat("bytecode: entry `", e.name, "` does not fit its function"));
    }
  }
}

std::string Program::Save(std::string* data, size_t before) const {
  std::string out;
  support::JsonWriter w(&out);
  w.BeginObject();
  // First: by it the runtime knows a program that has code of devices to load.
  if (!devices.empty()) WriteDevices(devices, &w);
  w.Key("entries");
  w.BeginArray();
  for (const Entry& e : entries) {
    w.BeginObject();
    w.Key("name");
    w.String(e.name);
    w.Key("function");
    w.Int(e.function);
    WriteNumbers(&w, "devices", e.devices);
    WriteNumbers(&w, "donated", e.donated);
    WriteInfos(&w, "inputs", e.inputs);
    WriteInfos(&w, "outputs", e.outputs);
    WriteDynamic(&w, e.dynamic, e.inputs, e.outputs);
    w.EndObject();
  }
  w.EndArray();
  w.Key("functions");
  w.BeginArray();
  for (const Function& f : functions) {
    w.BeginObject();
    w.Key("name");
    w.String(f.name);
    w.Key("params");
    w.Int(f.params);
    w.Key("registers");
    w.Int(f.registers);
    w.Key("code");
    w.BeginArray();
    for (int32_t c : f.code) w.Int(c);
    w.EndArray();
    w.EndObject();
  }
  w.EndArray();
  w.Key("kernels");
  w.BeginArray();
  for (const Kernel& k : kernels) {
    w.BeginObject();
    w.Key("symbol");
    w.String(k.symbol);
    WriteInfos(&w, "inputs", k.inputs);
    WriteInfos(&w, "outputs", k.outputs);
    w.Key("arena_bytes");
    w.Int(static_cast<int64_t>(k.arena_bytes));
    if (k.device) w.Key("device"), w.Int(k.device);
    if (!k.operators.empty()) w.Key("operators"), w.String(k.operators);
    WriteNumbers(&w, "over", k.over);
    WriteSteps(k.steps, &w);
    WriteDynamic(&w, k.dynamic, k.inputs, k.outputs);
    w.EndObject();
  }
  w.EndArray();
  w.Key("packed");
  w.BeginArray();
  for (const PackedSlot& p : packed) {
    if (p.maker.empty()) {
      throw runtime::UnsupportedError(Cat("`", p.name, "` is a function of this process, a file cannot name it: ",
                                          "register it as \"host.", p.name, "\" in a library that the runtime loads"));
    }
    w.BeginObject();
    w.Key("name"), w.String(p.name);
    w.Key("maker"), w.String(p.maker);
    w.Key("params"), w.String(p.params);
    if (p.device) w.Key("device"), w.Int(p.device);
    w.EndObject();
  }
  w.EndArray();
  w.Key("constants");
  w.BeginArray();
  for (const NDArray& c : constants) {
    data->resize((before + data->size() + 63) / 64 * 64 - before);
    w.BeginArray();
    w.Int(static_cast<int64_t>(before + data->size()));
    w.String(DataType2String(c.dtype()));
    for (int64_t d : c.shape()) w.Int(d);
    w.EndArray();
    const NDArray dense = c.Contiguous();
    data->append(dense.ptr<char>(), dense.nbytes());
  }
  w.EndArray();
  WriteInfos(&w, "views", views);
  w.Key("messages");
  w.BeginArray();
  for (const std::string& m : messages) w.String(m);
  w.EndArray();
  WriteNumbers(&w, "constant_devices", constant_devices);
  if (!copies.empty()) WriteCopies(copies, &w);
  w.EndObject();
  return out;
}

Program Program::Load(std::string_view text, const uint8_t* data, uint64_t data_bytes, const ObjectRef& owner) {
  try {
    const Json j = Json::Parse(text, "program");
    if (j.Find("steps")) throw RuntimeError(kOldArtifact);
    Program p;
    for (const Json& e : j.At("entries").AsArray()) {
      p.entries.push_back({e.At("name").AsString(), Int32(e.At("function")), ReadInfos(e.At("inputs"), -1),
                           ReadInfos(e.At("outputs"), -1), ReadNumbers(e, "devices")});
      Entry& entry = p.entries.back();
      ReadDynamic(e, &entry.dynamic, &entry.inputs, &entry.outputs);
      entry.donated = ReadNumbers(e, "donated");
    }
    for (const Json& f : j.At("functions").AsArray()) {
      Function out;
      out.name = f.At("name").AsString();
      out.params = Int32(f.At("params"));
      out.registers = Int32(f.At("registers"));
      for (const Json& c : f.At("code").AsArray()) out.code.push_back(Int32(c));
      p.functions.push_back(std::move(out));
    }
    if (const Json* devices = j.Find("devices")) p.devices = ReadDevices(*devices, data_bytes);
    p.constant_devices = ReadNumbers(j, "constant_devices");
    for (const Json& k : j.At("kernels").AsArray()) {
      const int64_t least = k.Find("dynamic") ? -1 : 0;
      Kernel out{
          k.At("symbol").AsString(), ReadInfos(k.At("inputs"), least), ReadInfos(k.At("outputs"), least), 0, 0, {}};
      ReadDynamic(k, &out.dynamic, &out.inputs, &out.outputs);
      const int64_t arena = k.At("arena_bytes").AsInt();
      if (arena < 0) throw RuntimeError("a negative size");
      out.arena_bytes = static_cast<uint64_t>(arena);
      if (const Json* device = k.Find("device")) out.device = Int32(*device);
      if (const Json* operators = k.Find("operators")) out.operators = operators->AsString();
      out.over = ReadNumbers(k, "over");
      if (const Json* steps = k.Find("steps")) out.steps = ReadSteps(*steps);
      p.kernels.push_back(std::move(out));
    }
    p.packed = ReadPacked(j.At("packed"));
    if (const Json* copies = j.Find("copies")) {
      for (const Json& c : copies->AsArray()) {
        p.copies.push_back({Int32(c.At("function")), Int32(c.At("at")), c.At("value").AsString(),
                            c.At("place").AsString(), Int32(c.At("from")), Int32(c.At("to")), c.At("bytes").AsInt(),
                            c.At("formula").AsString(), c.At("because").AsString()});
      }
    }
    for (const Json& c : j.At("constants").AsArray()) {
      std::vector<int64_t> shape;
      for (size_t i = 2; i < c.size(); ++i) shape.push_back(c[i].AsInt());
      const DataType dtype = String2DataType(c[1].AsString());
      const uint64_t bytes = runtime::TensorBytes(shape, dtype);
      const int64_t at = c[0].AsInt();
      if (at < 0 || at % 64 || static_cast<uint64_t>(at) > data_bytes ||
          bytes > data_bytes - static_cast<uint64_t>(at)) {
        throw RuntimeError("a constant outside of the file");
      }
      p.constants.push_back(NDArray::Wrap(const_cast<uint8_t*>(data) + at, shape, dtype, owner, true));
    }
    p.views = ReadInfos(j.At("views"), 0);
    for (const Json& m : j.At("messages").AsArray()) p.messages.push_back(m.AsString());
    p.Validate();
    return p;
  } catch (const runtime::Error&) {
    throw;
  } catch (const std::exception& e) {
    throw RuntimeError(e.what());
  }
}

std::string Program::DeviceName(int32_t device) const {
  const int64_t type = devices.empty() ? int64_t{kDLCPU} : devices[static_cast<size_t>(device)].type;
  const std::string name = runtime::Device2String({static_cast<DLDeviceType>(type), 0});
  return name.substr(0, name.find('('));
}

std::string Program::Disassemble() const {
  std::string out;
  for (const Function& f : functions) {
    out += Cat(f.name, ": ", f.params, " parameters, ", f.registers, " registers\n");
    std::vector<int32_t> code = f.code;
    for (size_t at = 0; at < code.size();) {
      const auto op = static_cast<Opcode>(code[at]);
      out += Cat("  ", at, ": ", OpcodeName(op));
      at = ForEachOperand(code, at, [&](int32_t w, Operand kind) {
        const auto i = static_cast<size_t>(w);
        switch (kind) {
          case Operand::kRead:
            out += w < 0 ? Cat(" r", ~w, "!") : Cat(" r", w);
            break;
          case Operand::kWrite:
            out += Cat(" r", w, "=");
            break;
          case Operand::kFunction:
            out += Cat(" @", functions[i].name);
            break;
          case Operand::kKernel:
            out += Cat(" ", kernels[i].symbol);
            if (const int32_t d = kernels[i].device) out += " on " + DeviceName(d);
            break;
          case Operand::kPacked:
            out += Cat(" ", packed[i].name);
            break;
          case Operand::kConstant:
            out += Cat(" c", w, ":", constants[i].Summary());
            break;
          case Operand::kMessage:
            out += Cat(" \"", messages[i], "\"");
            break;
          case Operand::kTarget:
            out += Cat(" -> ", w);
            break;
          case Operand::kDevice:
            out += " to " + DeviceName(w);
            break;
          case Operand::kView:
          case Operand::kNumber:
            out += Cat(" ", w);
        }
      });
      out += "\n";
    }
  }
  return out;
}

}  // namespace baton::vm
