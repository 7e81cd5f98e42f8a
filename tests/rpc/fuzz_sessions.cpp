// SPDX-License-Identifier: Apache-2.0
// Mutated frames, values, greetings and whole conversations through both sides of a session; RPC-011. A few hundred
// of each with the other tests; `./dev fuzz rpc` runs many under sanitizers.
#include <baton/runtime/array.h>
#include <baton/runtime/bytes.h>
#include <baton/runtime/executor.h>
#include <baton/runtime/interrupt.h>
#include <baton/runtime/map.h>
#include <baton/runtime/module.h>
#include <baton/runtime/ndarray.h>
#include <baton/runtime/registry.h>
#include <baton/support/sha256.h>
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "fuzz_streams.h"
#include "rpc/value.h"
#include "rpc/worker.h"

namespace baton::rpc::fuzzing {
using namespace runtime;  // NOLINT
using fuzz::Fuzz;

namespace {

/// Errors of the bounded reader are answers, too.
template <class F>
void Reading(F&& read) {
  try {
    read();
  } catch (const Error&) {
    throw;
  } catch (const std::runtime_error& e) {
    Throw(kProtocolError, e.what());
  }
}

struct TakesTensors final : ValueMapper {
  void WriteObject(const BatonValue& v, support::ByteWriter* out) final {
    WriteTensor(ArgValue(v).As<DLTensor*>(), out);
  }
  Any ReadObject(Tag, support::ByteReader* in) final { in->Fail("an object"); }
};

Corpus Values() {
  return {Bytes().Int(-5).Take(),
          Bytes().Float(2.5).Take(),
          Bytes().Text("text").Take(),
          Bytes().Text(std::string(300, 'b'), Tag::kBytes).Take(),
          Bytes().Device(1, 3).Take(),
          Bytes().Tensor({2, 3}).Take(),
          Bytes().Tensor({}).Take(),
          Bytes().Tensor({0, 7}).Take(),
          Bytes().Many(Tag::kArray, 3).Int(1).Bool(true).Null().Take(),
          Bytes().Many(Tag::kMap, 2).Text("k").Int(1).Int(7).Many(Tag::kArray, 1).Tensor({1}).Take(),
          Bytes().Many(Tag::kArray, 1).Many(Tag::kArray, 1).Many(Tag::kArray, 1).Many(Tag::kArray, 0).Take()};
}

std::string MutateValue(const std::string& s, const Corpus& corpus, Random* r) {
  std::string out = s;
  if (r->OneIn(2)) out = fuzz::MutateBytes(out, corpus, r);
  if (r->OneIn(2)) Overwrite(&out, r->Below(out.size()), Hard(r), size_t{1} << r->Below(4));
  return out;
}

std::string ScratchFolder(const char* name) {
  const auto path =
      std::filesystem::temp_directory_path() / ("baton-" + std::string(name) + "-" + std::to_string(getpid()));
  std::filesystem::create_directories(path);
  return path;
}

}  // namespace

TEST_CASE("rpc fuzz: headers") {
  const Corpus corpus = {Frame(FrameType::kCall, 5, ""), Frame(FrameType::kData, 1, "x"),
                         Frame(FrameType::kCredit, 9, "")};
  Fuzz("headers", corpus, MutateFrames, [](const std::string& mutant) {
    unsigned char head[kHeaderBytes] = {}, again[kHeaderBytes];
    std::memcpy(head, mutant.data(), std::min(mutant.size(), kHeaderBytes));
    EncodeHeader(DecodeHeader(head), again);
    if (std::memcmp(head, again, kHeaderBytes) != 0) throw InternalError("not the same again");
  });
}

TEST_CASE("rpc fuzz: values") {
  Fuzz("values", Values(), MutateValue, [](const std::string& mutant) {
    Reading([&] {
      TakesTensors mapper;
      support::ByteReader in(mutant.data(), mutant.size(), "value");
      const Any value = ReadValue(&in, &mapper);
      in.ExpectEnd();
      support::ByteWriter out, again;
      WriteValue(value.raw(), &out, &mapper);
      support::ByteReader back(out.bytes().data(), out.size(), "value");
      WriteValue(ReadValue(&back, &mapper).raw(), &again, &mapper);
      if (out.bytes() != again.bytes()) throw InternalError("not the same when read again");
    });
  });
}

TEST_CASE("rpc fuzz: greetings") {
  const std::string error = Bytes().Raw(uint32_t{10}).Take() + "ValueError" + Bytes().Raw(uint32_t{3}).Take() + "why" +
                            Bytes().Raw(uint32_t{4}).Take() + "a\nb\n";
  const Corpus corpus = {Hello("credit resume"), Hello(""), Frame(FrameType::kError, 0, error)};
  Fuzz("greetings", corpus, MutateFrames, [](const std::string& mutant) {
    MemoryChannel first(mutant, 7), whole(mutant);
    const std::string taken = ReadFirst(&first, Deadline::Never());
    if (mutant.compare(0, taken.size(), taken) != 0) throw InternalError("other bytes than came");
    const Any said = ReadGreeting(&whole, Deadline::Never());
    HasFeature(said, "resume");
    TextOption(said, "resume");
    NumberOption(said, "taken");
  });
}

// ---- A server.

namespace {

const uint64_t kFirst = uint64_t{1} << 32;

std::string Name(std::string_view s) { return Bytes().Text(s).Take(); }
std::string DigestOf(std::string_view s) {
  const auto digest = support::Sha256Of(s.data(), s.size());
  return std::string(reinterpret_cast<const char*>(digest.data()), digest.size());
}
std::string FileArgs(std::string_view name, std::string_view content) {
  return Bytes().Text(name).Int(static_cast<int64_t>(content.size())).Text(DigestOf(content), Tag::kBytes).Take();
}
std::string Put(uint64_t id, std::string_view name, std::string_view content) {
  std::string out = CallFrame(id, Op::kUpload, 0, 3, FileArgs(name, content)) +
                    CallFrame(id + 1, Op::kPut, 0, 3, FileArgs(name, content), content.size());
  return content.empty() ? out : out + Frame(FrameType::kData, id + 1, content);
}

/// Conversations that clients hold.
Corpus Conversations() {
  const std::string bye = Frame(FrameType::kBye, 0, "");
  const auto call = [](uint64_t id, uint64_t handle, uint32_t count, std::string_view args, uint64_t ack = 0) {
    return CallFrame(id, Op::kCall, handle, count, args, 0, ack);
  };
  const std::string alloc = CallFrame(1, Op::kAlloc, 0, 2, Bytes().Device(1, 0).Int(64).Take());
  const std::string copy =
      alloc + CallFrame(2, Op::kAlloc, 0, 2, Bytes().Device(1, 0).Int(64).Take()) +
      CallFrame(3, Op::kWrite, kFirst, 2, Bytes().Int(0).Int(64).Take(), 64) +
      Frame(FrameType::kData, 3, std::string(40, 'x')) + Frame(FrameType::kData, 3, std::string(24, 'y')) +
      CallFrame(4, Op::kCopy, kFirst + 1, 2, Bytes().Int(static_cast<int64_t>(kFirst)).Int(64).Take()) +
      CallFrame(5, Op::kRead, kFirst + 1, 2, Bytes().Int(0).Int(64).Take()) +
      CallFrame(6, Op::kSync, 0, 1, Bytes().Device(1, 0).Take()) +
      CallFrame(7, Op::kExists, 0, 1, Bytes().Device(2, 0).Take()) +
      Frame(FrameType::kRelease, 0, Bytes().Raw(kFirst).Raw(kFirst + 1).Take());
  const std::string echo = CallFrame(1, Op::kGetFunction, 0, 1, Name("fuzz.echo")) +
                           call(2, kFirst, 1, Bytes().Many(Tag::kArray, 2).Int(1).Tensor({2, 2}).Take()) +
                           call(3, kFirst, 1, Bytes().Ref(Tag::kTheirs, kFirst, 0).Take()) +
                           call(4, kFirst, 1, Bytes().Tensor({40, 500}).Take()) +
                           call(5, kFirst, 1, Bytes().Ref(Tag::kTheirs, kFirst + 1, 1).Head({3}).Take()) +
                           call(6, kFirst, 1, Bytes().Ref(Tag::kTheirs, kFirst + 1, 2).Raw(uint64_t{16}).Take());
  // The reply to a callback comes before it is asked for: so it is in a recording.
  const std::string callback = CallFrame(1, Op::kGetFunction, 0, 1, Name("fuzz.apply")) +
                               call(2, kFirst, 2, Bytes().Ref(Tag::kOurs, kFirst, 4).Raw(uint8_t{0}).Int(3).Take()) +
                               call(3, kFirst, 2, Bytes().Ref(Tag::kTheirs, kFirst, 0).Int(4).Take(), 1) +
                               Frame(FrameType::kReply, 1, Bytes().Int(9).Take()) +
                               Frame(FrameType::kReply, 2, Bytes().Null().Take());
  const std::string files = Put(1, "f", "content") + Put(3, "g", "content") +
                            CallFrame(5, Op::kDownload, 0, 1, Name("g")) + CallFrame(6, Op::kRemove, 0, 1, Name("f")) +
                            CallFrame(7, Op::kLoadModule, 0, 1, Name("g")) +
                            CallFrame(8, Op::kSystemLib, 0, 1, Name(""));
  const std::string make = CallFrame(1, Op::kGetFunction, 0, 1, Name("fuzz.make")) + call(2, kFirst, 0, "") +
                           call(3, kFirst + 1, 1, Bytes().Int(5).Take()) +
                           CallFrame(4, Op::kModuleFunction, kFirst + 1, 2, Bytes().Text("run").Bool(true).Take()) +
                           Frame(FrameType::kCancel, 3, "") + Frame(FrameType::kPing, 3, "");
  const std::string timed =
      CallFrame(1, Op::kGetFunction, 0, 1, Name("fuzz.echo")) + CallFrame(2, Op::kTime, 0, 9,
                                                                          Bytes()
                                                                              .Ref(Tag::kTheirs, kFirst, 0)
                                                                              .Device(1, 0)
                                                                              .Int(1)
                                                                              .Int(2)
                                                                              .Int(0)
                                                                              .Int(0)
                                                                              .Int(1)
                                                                              .Text("fuzz.echo")
                                                                              .Int(1)
                                                                              .Take());
  const std::string poll = CallFrame(1, Op::kGetFunction, 0, 1, Name("fuzz.poll")) + call(2, kFirst, 0, "") +
                           Frame(FrameType::kCancel, 2, "") + call(3, kFirst, 0, "");
  Corpus out;
  for (const std::string& one : {copy, echo, callback, files, make, timed, poll}) {
    out.push_back(Hello("credit") + one + bye);
    out.push_back(Hello("") + one);
  }
  return out;
}

/// Functions that a session of the fuzz tests may call.
void RegisterFunctions() {
  static const bool registered = [] {
    Registry::Register("fuzz.echo").set_body(PackedFunc([](Args a, RetValue* rv) { *rv = a[0]; }));
    Registry::Register("fuzz.apply").set_body(PackedFunc([](Args a, RetValue* rv) {
      *rv = a[0].As<PackedFunc>().CallPacked(a.values + 1, a.num_args - 1);
    }));
    Registry::Register("fuzz.make").set_body(PackedFunc([](Args, RetValue* rv) {
      *rv = PackedFunc([](Args a, RetValue* r) { *r = a[0].As<int64_t>() + 1; });
    }));
    Registry::Register("fuzz.poll").set_body(PackedFunc([](Args, RetValue*) {
      if (const PackedFunc* ask = Registry::Get("runtime.CheckSignals")) (*ask)();
    }));
    return true;
  }();
  (void)registered;
}

/// The server's side of a conversation, in this process.
void Serve(const std::string& stream, const std::string& folder, const ServerOptions& options, size_t piece) {
  auto channel = std::make_unique<MemoryChannel>(stream, piece);
  const auto out = channel->out;
  ServeSession(std::move(channel), options, folder);
  for (const auto& entry : std::filesystem::directory_iterator(folder)) std::filesystem::remove_all(entry);
  CheckWritten(*out);
}

ServerOptions SessionOptions() {
  ServerOptions options;
  options.policy = "session";
  options.allow = {"fuzz.*"};
  options.memory_bytes = options.disk_bytes = 1 << 20;
  return options;
}

/// A call with a number of repeats or of milliseconds that a client may well ask for, but not a test that has to end.
bool TakesLong(const std::string& stream) {
  for (const std::string& f : Cut(stream)) {
    if (f.size() < kHeaderBytes + 4 || f[4] != static_cast<char>(FrameType::kCall)) continue;
    uint32_t op;
    std::memcpy(&op, f.data() + kHeaderBytes, sizeof op);
    if (op == static_cast<uint32_t>(Op::kTime)) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("rpc fuzz: sessions of a server") {
  RegisterFunctions();
  const Corpus corpus = Conversations();
  const std::string folder = ScratchFolder("fuzz-session");
  const ServerOptions options = SessionOptions();
  for (const std::string& one : corpus) {
    try {
      Serve(one, folder, options, SIZE_MAX);
    } catch (const InternalError&) {
      throw;
    } catch (const Error&) {
      // `g` is no module.
    }
  }
  const auto mutate = [](const std::string& s, const Corpus& all, Random* r) {
    const std::string mutant = MutateFrames(s, all, r);
    return TakesLong(mutant) && s != mutant ? std::string(s) : mutant;
  };
  Fuzz("sessions", corpus, mutate, [&](const std::string& mutant) {
    Serve(mutant, folder, options, mutant.size() % 3 ? SIZE_MAX : 1 + mutant.size() % 61);
  });
  std::filesystem::remove_all(folder);
}

TEST_CASE("rpc fuzz: modules on upload") {
  const std::string folder = ScratchFolder("fuzz-modules"), path = folder + "/made.so";
  Corpus corpus;
  for (int k = 0; k < 3; ++k) {
    ExecutableDesc desc;
    const std::string constants(static_cast<size_t>(k) * 40, 'c'), code =
                                                                       "\x7f"
                                                                       "ELF and what follows";
    desc.entry = "run";
    desc.target = "llvm";
    desc.inputs = {{"x", {1, k}, DataType::Float(32)}};
    desc.outputs = {{"z", {k, 2}, DataType::Float(16)}};
    desc.constants = reinterpret_cast<const uint8_t*>(constants.data());
    desc.constants_bytes = constants.size();
    WriteArtifact(path, code.c_str(), code.size(), desc);
    std::ifstream file(path, std::ios::binary);
    corpus.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  std::filesystem::remove(path);
  const auto mutate = [](const std::string& s, const Corpus& all, Random* r) {
    const size_t keep = r->OneIn(4) ? 0 : s.rfind("{\"format\"");
    const std::string tail = s.substr(keep);
    std::string out =
        s.substr(0, keep) + (r->OneIn(2) ? fuzz::MutateBytes(tail, all, r) : fuzz::MutateText(tail, all, r));
    constexpr size_t kTrailer = 40;  // digest and magic
    if (out.size() > kTrailer && !r->OneIn(4)) {
      out.replace(out.size() - 8, 8, "BATONART");
      out.replace(out.size() - kTrailer, 32, DigestOf(std::string_view(out).substr(0, out.size() - kTrailer)));
    }
    if (out.size() > 60000) out.resize(60000);
    return out;
  };
  ServerOptions open = SessionOptions(), with_signatures = SessionOptions();
  with_signatures.load = Load::kSigned;
  with_signatures.signers = {std::string(32, 'k')};
  Fuzz("modules", corpus, mutate, [&](const std::string& mutant) {
    if (mutant.size() % 16 == 0) {  // content that is not asked to be a module is a file
      return Serve(Hello("") + Put(1, "m.so", mutant) + CallFrame(3, Op::kDownload, 0, 1, Name("m.so")), folder, open,
                   SIZE_MAX);
    }
    const std::string stream =
        Hello("") + Put(1, "m.so", mutant) + Put(3, "m.so.sig", "baton-signature-1 " + std::string(86, 'A') + "==\n") +
        CallFrame(5, Op::kLoadModule, 0, 1, Name("m.so")) +
        CallFrame(6, Op::kModuleFunction, kFirst, 2, Bytes().Text("get_input_info").Bool(true).Take());
    Serve(stream, folder, mutant.size() % 4 ? open : with_signatures, SIZE_MAX);
  });
  std::filesystem::remove_all(folder);
}

// ---- A client.

namespace {

/// What a program does with a server that may be hostile; every step fails or gives something.
void UseSession(const Module& session) {
  const auto attempt = [](auto&& step) {
    try {
      step();
    } catch (const Error& e) {
      if (e.kind() == "InternalError") throw;
    }
  };
  const auto ask = [&](const char* name) { return session.GetFunction(name); };
  const PackedFunc back([](Args a, RetValue* rv) { *rv = static_cast<int64_t>(a.size()); });
  attempt([&] {
    const PackedFunc f = ask("get_function")("f").As<PackedFunc>();
    const Any value = f(1, "x", back, NDArray::Zeros({3}, DataType::Float(32)));
    if (value.Is<PackedFunc>() && !value.is_null()) value.As<PackedFunc>()(2);
    const Any later = ask("call_later")(f, 5);
    later.As<PackedFunc>()();
  });
  attempt([&] {
    const Device d = ask("device")(1, 0).As<Device>();
    const NDArray a = NDArray::Empty({4}, DataType::Float(32), d);
    a.CopyFrom(NDArray::Zeros({4}, DataType::Float(32)));
    NDArray::Zeros({4}, DataType::Float(32)).CopyFrom(a);
  });
  attempt([&] {
    const Any module = ask("load_module")("m");
    if (module.Is<Module>() && !module.is_null()) module.As<Module>().GetFunction("run", true);
  });
  attempt([&] { ask("download")("file"); });
  attempt([&] { ask("upload")("file", runtime::Bytes(std::string("content"))); });
}

/// What servers answer to it: call ids count from 1.
Corpus Answers() {
  const auto reply = [](uint64_t id, std::string payload) { return Frame(FrameType::kReply, id, payload); };
  const std::string function = Bytes().Ref(Tag::kOurs, kFirst, 4).Raw(uint8_t{0}).Take();
  const std::string array = Bytes().Ref(Tag::kOurs, kFirst + 1, 1).Head({2, 2}).Raw(int32_t{1}).Raw(int32_t{0}).Take();
  const std::string module = Bytes().Ref(Tag::kOurs, kFirst + 2, 5).Take(),
                    other = Bytes().Ref(Tag::kOurs, kFirst + 3, 0).Take();
  const std::string text = Bytes().Ref(Tag::kText, kFirst + 4, 2).Raw(uint64_t{6}).Take();
  const std::string error = Bytes().Raw(uint32_t{10}).Take() + "ValueError" + Bytes().Raw(uint32_t{3}).Take() + "why" +
                            Bytes().Raw(uint32_t{0}).Take();
  const std::string number = Bytes().Int(7).Take(), handle = Bytes().Int(static_cast<int64_t>(kFirst + 9)).Take();
  // The function's call is 2; within it a callback of the client's function, whose handle is the first.
  const std::string back = CallFrame(50, Op::kCall, kFirst, 2, Bytes().Int(1).Text("y").Take(), 0, 2);
  const std::string transfer = reply(4, handle) + reply(5, Bytes().Null().Take()) + reply(6, Bytes().Int(16).Take()) +
                               Frame(FrameType::kData, 6, std::string(16, 'z'));
  const std::string files = reply(7, module) + reply(8, function) + reply(9, Bytes().Int(4).Take()) +
                            Frame(FrameType::kData, 9, "abcd") + reply(10, Bytes().Bool(false).Take()) +
                            reply(11, Bytes().Bool(true).Take());
  Corpus out;
  for (const std::string& result :
       {number, array, other, function, Bytes().Many(Tag::kArray, 2).Tensor({2}).Text("q").Take()}) {
    out.push_back(Hello("credit") + reply(1, function) + back + Frame(FrameType::kPing, 2, "") + reply(2, result) +
                  reply(3, number) + transfer + files);
  }
  out.push_back(Hello("credit") + reply(1, function) + reply(2, text) + reply(3, Bytes().Int(6).Take()) +
                Frame(FrameType::kData, 3, "abcdef") + reply(4, number) + files);
  out.push_back(Hello("") + Frame(FrameType::kError, 1, error) + reply(2, handle) + reply(3, Bytes().Null().Take()) +
                Frame(FrameType::kBye, 0, ""));
  out.push_back(Hello("credit resume") + reply(1, function) +
                Frame(FrameType::kRelease, 0, Bytes().Raw(kFirst).Take()) + Frame(FrameType::kCredit, 30, "") +
                reply(2, number));
  return out;
}

}  // namespace

TEST_CASE("rpc fuzz: sessions of a client") {
  Fuzz("clients", Answers(), MutateFrames, [](const std::string& mutant) {
    auto channel = std::make_unique<MemoryChannel>(mutant, mutant.size() % 3 ? SIZE_MAX : 1 + mutant.size() % 61);
    const auto out = channel->out;
    UseSession(SessionOn(std::move(channel)));
    CheckWritten(*out);
  });
}

// ---- A connection in place of one that was lost.

namespace {

/// An endpoint whose connection is cut where one of several streams ends.
class Resuming final : public Endpoint {
 public:
  explicit Resuming(std::vector<std::string> streams)
      : Endpoint(std::make_shared<MemoryChannel>(streams[0])), streams_(std::move(streams)) {
    Begin(true, true);
  }
  void Run() {
    FrameHeader h;
    std::string payload;
    for (int i = 0; i < 1000; ++i) {
      h = ReceiveFrame(&payload, Deadline::Never());
      if (h.type == FrameType::kBye) return;
      if (h.type == FrameType::kCall) Serve(h, payload);
      if (h.type == FrameType::kRelease) TakeReleases(payload);
      if (h.type == FrameType::kData) Lose(kProtocolError, "bytes of no call");
    }
  }

 protected:
  bool KeepsArrays() const final { return true; }
  bool IsTheirs(const DLTensor*, uint64_t*) final { return false; }
  NDArray ImportArray(uint64_t, const TensorHead&, Device) final { Throw(kProtocolError, "an array"); }
  Any Answer(Incoming* call) final {
    std::string taken(std::min<size_t>(call->data_left, 1 << 16), '\0');
    for (size_t have = 0; have < taken.size();) {
      const size_t n = ReceiveData(call->id, taken.data() + have, taken.size() - have);
      have += n;
      call->data_left -= n;
    }
    call->reply_data = std::string(2000, 'r');
    call->reply_size = call->reply_data.size();
    return Any(static_cast<int64_t>(call->reply_size));
  }
  std::shared_ptr<Channel> Reconnect(uint64_t taken, uint64_t* peer_taken, Deadline) final {
    if (++at_ >= streams_.size()) Throw(kSessionLost, "no more");
    // The stream begins with what its peer says to have taken, in two bytes; mostly it goes on where it should.
    std::string& next = streams_[at_];
    if (next.size() >= 2) {
      *peer_taken = static_cast<unsigned char>(next[0]) | static_cast<uint64_t>(static_cast<unsigned char>(next[1]))
                                                              << 8;
      next.erase(0, 2);
    }
    if (next.size() % 4) next = whole().substr(std::min<size_t>(whole().size(), taken)) + next;
    return std::make_shared<MemoryChannel>(next);
  }

 private:
  const std::string& whole() const { return streams_.back(); }
  std::vector<std::string> streams_;
  size_t at_ = 0;
};

}  // namespace

TEST_CASE("rpc: a connection that comes behind a later one ends no session") {
  const std::string bye = Frame(FrameType::kBye, 0, "");
  // The reply and its 2,000 bytes take 2,057, which are said to be taken; the next connection says 10, the one after it
  // 2,057.
  std::vector<std::string> streams = {CallFrame(1, Op::kCall, 0, 0, "") + Frame(FrameType::kCredit, 2057, ""),
                                      std::string("\x0a\0", 2), std::string("\x09\x08", 2) + bye};
  CHECK_NOTHROW(std::make_shared<Resuming>(std::move(streams))->Run());
}

TEST_CASE("rpc fuzz: connections that are cut") {
  const std::string whole = CallFrame(1, Op::kCall, 0, 1, Bytes().Int(1).Take()) +
                            CallFrame(2, Op::kCall, 0, 0, "", 100) + Frame(FrameType::kData, 2, std::string(60, 'a')) +
                            Frame(FrameType::kCredit, 2000, "") + Frame(FrameType::kData, 2, std::string(40, 'b')) +
                            CallFrame(3, Op::kCall, 0, 0, "") + Frame(FrameType::kBye, 0, "");
  const auto mutate = [](const std::string& s, const Corpus& all, Random* r) {
    return r->OneIn(3) ? std::string(s) : MutateFrames(s, all, r);
  };
  size_t number = fuzz::FromEnv("BATON_FUZZ_FIRST", 0);
  Fuzz("cuts", {whole}, mutate, [&](const std::string& mutant) {
    Random r(number++);
    std::vector<std::string> streams;
    for (size_t n = 1 + r.Below(3); n > 0; --n) streams.push_back(mutant.substr(0, r.Below(mutant.size() + 1)));
    for (size_t i = 1; i < streams.size(); ++i) {
      const size_t said = r.OneIn(2) ? 0 : r.Below(9000);
      streams[i] = std::string{static_cast<char>(said), static_cast<char>(said >> 8)} + streams[i];
    }
    streams.push_back(whole);
    std::make_shared<Resuming>(std::move(streams))->Run();
  });
}

}  // namespace baton::rpc::fuzzing
