// SPDX-License-Identifier: Apache-2.0
// Random nests of contexts, passes, instruments, threads and exceptions against a small model of the documented rules
// (PassContext in transform.h, docs/design/passes.md): every call of a hook and of a pass, in order.
#include <baton/ir/transform.h>
#include <baton/relay/expr.h>
#include <baton/relay/transform.h>
#include <baton/runtime/registry.h>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace baton;             // NOLINT
using namespace baton::transform;  // NOLINT

namespace {

using Names = std::vector<std::string>;
using Log = std::vector<std::string>;

enum Hook { kEnter, kExit, kShould, kBefore, kAfter, kFailed, kSkipped, kHooks };
constexpr const char* kHookNames[] = {"enter_pass_ctx", "exit_pass_ctx",  "should_run",     "run_before_pass",
                                      "run_after_pass", "on_pass_failed", "on_pass_skipped"};

/// What the manager refuses, in its words.
constexpr const char* kElsewhere = "is entered in another thread";
constexpr const char* kCycle = "the passes require each other in a cycle";

// ---- Programs

struct InstrumentSpec {
  bool observes = false, says_yes = true;
  int fails = kHooks;  ///< the hook that throws, from its `from`th call on
  int from = 1;
};
using Chosen = std::vector<int>;
struct ContextSpec {
  int level = 2;
  Names required, disabled;
  Chosen instruments;
  bool inherit = true, isolate = false;
};
struct Statement;
struct PassSpec {
  enum Kind { kModule, kFunctions, kSequence } kind = kModule;
  std::string name;
  int level = 0;
  Names required;
  bool throws = false;
  std::vector<Statement> body;
  std::vector<PassSpec> passes;
};
struct Statement {
  enum Kind { kWith, kTry, kRun, kOverride, kThread, kAdopt } kind = kRun;
  int context = 0;
  Chosen instruments;
  PassSpec pass;
  std::vector<Statement> body;
};
struct Program {
  std::vector<InstrumentSpec> instruments;
  std::vector<ContextSpec> contexts;
  std::vector<Statement> body;
};

const std::map<std::string, Names> kPrerequisites = {
    {"TestModelLeaf", {}}, {"TestModelMid", {"TestModelLeaf"}}, {"TestModelTop", {"TestModelMid", "TestModelLeaf"}}};
/// Function passes see them in this order; the one in the middle says SkipOptimization.
constexpr const char* kFunctionsSeen[] = {"f", "h"};

class Maker {
 public:
  explicit Maker(uint32_t seed) : random_(seed) {}
  Program Make() {
    Program p;
    for (int i = 0; i < 5; ++i) {
      InstrumentSpec one{.observes = Chance(35), .says_yes = Chance(85)};
      if (Chance(35)) one.fails = Below(kHooks), one.from = 1 + Below(3);
      p.instruments.push_back(one);
    }
    for (int i = 0; i < 4; ++i) {
      ContextSpec c{.level = Below(5)};
      if (Chance(40)) c.required.push_back(PassName());
      if (Chance(40)) c.disabled.push_back(PassName());
      c.instruments = Some();
      c.inherit = Chance(80), c.isolate = Chance(35);
      p.contexts.push_back(c);
    }
    p.body = Body(0);
    return p;
  }

 private:
  int Below(int n) { return static_cast<int>(random_() % static_cast<uint32_t>(n)); }
  bool Chance(int percent) { return Below(100) < percent; }
  std::string PassName() { return Chance(15) ? "TestModelMid" : std::string(1, static_cast<char>('A' + Below(5))); }
  Chosen Some() {
    Chosen all = {0, 1, 2, 3, 4}, out;
    for (int n = Below(4); n > 0; --n) {
      const int at = Below(static_cast<int>(all.size()));
      out.push_back(all[static_cast<size_t>(at)]);
      all.erase(all.begin() + at);
    }
    return out;
  }
  std::vector<Statement> Body(int depth) {
    std::vector<Statement> out;
    for (int n = 1 + Below(3); n > 0; --n) out.push_back(One(depth));
    return out;
  }
  Statement One(int depth) {
    Statement s;
    const int kind = depth >= 4 ? 99 : Below(100);
    if (kind < 22) {
      s.kind = Statement::kWith, s.context = Below(4), s.body = Body(depth + 1);
    } else if (kind < 36) {
      s.kind = Statement::kTry, s.body = Body(depth + 1);
    } else if (kind < 46) {
      s.kind = Statement::kOverride, s.instruments = Some();
    } else if (kind < 49) {
      s.kind = Statement::kThread, s.body = Body(depth + 1);
    } else if (kind < 54) {
      s.kind = Statement::kAdopt, s.body = Body(depth + 1);
    } else {
      s.pass = Pass(depth);
    }
    return s;
  }
  PassSpec Pass(int depth) {
    PassSpec p;
    p.name = PassName(), p.level = Below(5);
    if (depth < 3 && Chance(40)) {
      p.kind = PassSpec::kSequence;
      for (int n = Below(4); n > 0; --n) p.passes.push_back(Pass(depth + 1));
      return p;
    }
    if (Chance(30)) p.kind = PassSpec::kFunctions;
    for (const auto& [name, needs] : kPrerequisites) {
      if (Chance(15)) p.required.push_back(name);
    }
    p.throws = Chance(12);
    if (depth < 3 && Chance(25)) p.body = Body(depth + 1);
    return p;
  }

  std::mt19937 random_;
};

bool Has(const Names& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}
bool Has(const Chosen& all, int i) { return std::find(all.begin(), all.end(), i) != all.end(); }
void TakeOut(Chosen* all, int i) { all->erase(std::remove(all->begin(), all->end(), i), all->end()); }

// ---- The model: what the rules say, on numbers and lists

struct Boom {
  std::string what;
};

class Model {
 public:
  Log log;

  explicit Model(const Program& p) : program_(p), calls_(p.instruments.size() * kHooks) {
    for (const ContextSpec& c : p.contexts) states_.push_back(std::make_shared<State>(State{.spec = c}));
    threads_.push_back(NewThread());
  }
  void Run() { Guarded(program_.body); }
  Chosen LeftOn(int context) const { return states_[static_cast<size_t>(context)]->spec.instruments; }
  Names Errors(int context) const { return states_[static_cast<size_t>(context)]->errors; }
  Chosen LeftOnDefault() const { return threads_[0][0].state->spec.instruments; }

 private:
  struct State {
    ContextSpec spec;  ///< its instruments change
    Names errors;
    size_t thread = 0;                                 ///< that it is entered in
    std::vector<std::shared_ptr<Chosen>> inherited{};  ///< each time that it is entered
  };
  struct Scope {
    std::shared_ptr<State> state;
    std::shared_ptr<Chosen> inherited;
  };
  using Stack = std::vector<Scope>;

  static Stack NewThread() { return {{std::make_shared<State>(), std::make_shared<Chosen>()}}; }
  Stack& Here() { return threads_.back(); }
  Scope Top() { return Here().back(); }

  void Call(int i, Hook hook, const std::string& pass = "") {
    log.push_back(std::to_string(i) + " " + kHookNames[hook] + " " + pass);
    const InstrumentSpec& spec = program_.instruments[static_cast<size_t>(i)];
    const int seen = ++calls_[static_cast<size_t>(i * kHooks + hook)];
    if (spec.fails == hook && seen >= spec.from) throw Boom{std::to_string(i) + " " + kHookNames[hook]};
  }
  /// With isolation an instrument that throws leaves its context, and the throw is noted there.
  void Careful(const Scope& at, int i, Hook hook, const std::string& pass = "") {
    try {
      Call(i, hook, pass);
    } catch (const Boom& b) {
      if (!at.state->spec.isolate) throw;
      at.state->errors.push_back("i" + std::to_string(i) + ", " + kHookNames[hook] + ": ValueError: " + b.what);
      TakeOut(&at.state->spec.instruments, i);
      for (const auto& use : at.state->inherited) TakeOut(use.get(), i);
    }
  }
  static Chosen Around(const Scope& at) {
    Chosen out;
    for (int i : *at.inherited) {
      if (!Has(at.state->spec.instruments, i)) out.push_back(i);
    }
    out.insert(out.end(), at.state->spec.instruments.begin(), at.state->spec.instruments.end());
    return out;
  }

  void EnterAll(const Scope& at) {
    Chosen entered;
    for (int i : Chosen(at.state->spec.instruments)) {
      try {
        Careful(at, i, kEnter);
        if (Has(at.state->spec.instruments, i)) entered.push_back(i);
      } catch (const Boom&) {
        at.state->spec.instruments.clear();
        try {
          for (int e : entered) Call(e, kExit);
        } catch (const Boom&) {  // the first counts
        }
        throw;
      }
    }
  }
  void ExitAll(const Scope& at) {
    try {
      for (int i : Chosen(at.state->spec.instruments)) Careful(at, i, kExit);
    } catch (const Boom&) {
      at.state->spec.instruments.clear();
      throw;
    }
  }

  void With(const Statement& s) {
    Scope inner{states_[static_cast<size_t>(s.context)], std::make_shared<Chosen>()};
    State& state = *inner.state;
    if (!state.inherited.empty() && state.thread != threads_.size()) throw Boom{kElsewhere};
    if (state.spec.inherit) {
      for (int i : Around(Top())) {
        if (program_.instruments[static_cast<size_t>(i)].observes) inner.inherited->push_back(i);
      }
    }
    state.thread = threads_.size();
    state.inherited.push_back(inner.inherited);
    try {
      EnterAll(inner);
    } catch (const Boom&) {
      state.inherited.pop_back();
      throw;
    }
    Here().push_back(inner);
    try {
      Body(s.body);
    } catch (const Boom&) {
      Here().pop_back();
      state.inherited.pop_back();
      try {
        ExitAll(inner);
      } catch (const Boom&) {  // the first counts
      }
      throw;
    }
    Here().pop_back();
    state.inherited.pop_back();
    ExitAll(inner);
  }

  void Guarded(const std::vector<Statement>& body) {
    try {
      Body(body);
    } catch (const Boom& b) {
      log.push_back("caught " + b.what);
    }
  }
  void Body(const std::vector<Statement>& body) {
    for (const Statement& s : body) {
      switch (s.kind) {
        case Statement::kWith:
          With(s);
          break;
        case Statement::kTry:
          Guarded(s.body);
          break;
        case Statement::kRun:
          RunPass(s.pass, Top());
          break;
        case Statement::kOverride:
          ExitAll(Top());
          Top().state->spec.instruments = s.instruments;
          EnterAll(Top());
          break;
        case Statement::kThread:
        case Statement::kAdopt: {
          Stack fresh = NewThread();
          if (s.kind == Statement::kAdopt) fresh.push_back(Top());
          threads_.push_back(fresh);
          Guarded(s.body);
          threads_.pop_back();
        }
      }
    }
  }

  void Skip(const std::string& name, const Scope& at) {
    for (int i : Around(at)) Careful(at, i, kSkipped, name);
  }
  void RunPass(const PassSpec& p, const Scope& at) {
    if (!Has(at.state->spec.required, p.name)) {
      bool blocked = false;
      for (int i : Chosen(at.state->spec.instruments)) {
        Careful(at, i, kShould, p.name);
        blocked =
            blocked || (Has(at.state->spec.instruments, i) && !program_.instruments[static_cast<size_t>(i)].says_yes);
      }
      if (blocked) return Skip(p.name, at);
    }
    for (int i : Around(at)) Careful(at, i, kBefore, p.name);
    try {
      Inside(p, at);
    } catch (const Boom&) {
      for (int i : Around(at)) {
        try {
          Careful(at, i, kFailed, p.name);
        } catch (const Boom&) {  // the pass's own counts
        }
      }
      throw;
    }
    for (int i : Around(at)) Careful(at, i, kAfter, p.name);
  }
  void Inside(const PassSpec& p, const Scope& at) {
    if (p.kind == PassSpec::kSequence) {
      for (const PassSpec& one : p.passes) {
        const ContextSpec& c = at.state->spec;
        if (Has(c.disabled, one.name) || (c.level < one.level && !Has(c.required, one.name))) {
          Skip(one.name, at);
          continue;
        }
        Names path;
        Prerequisites(one.name, one.required, at, &path);
        RunPass(one, at);
      }
      return;
    }
    const bool functions = p.kind == PassSpec::kFunctions;
    for (int i = 0; i < (functions ? 2 : 1); ++i) {
      log.push_back("pass " + p.name + (functions ? std::string(" ") + kFunctionsSeen[i] : ""));
      if (i == 0) Body(p.body);
      if (p.throws) throw Boom{"pass " + p.name};
    }
  }
  void Prerequisites(const std::string& of, const Names& names, const Scope& at, Names* path) {
    path->push_back(of);
    for (const std::string& name : names) {
      if (Has(*path, name)) throw Boom{kCycle};
      Prerequisites(name, kPrerequisites.at(name), at, path);
      RunPass(PassSpec{.name = name}, at);
    }
    path->pop_back();
  }

  const Program& program_;
  std::vector<int> calls_;
  std::vector<std::shared_ptr<State>> states_;
  std::vector<Stack> threads_;
};

// ---- The real thing

class Real;
Real* running = nullptr;

class Real {
 public:
  Log log;

  explicit Real(const Program& p) : program_(p), calls_(p.instruments.size() * kHooks) {
    running = this;
    for (size_t i = 0; i < p.instruments.size(); ++i) instruments_.push_back(Instrument(static_cast<int>(i)));
    for (const ContextSpec& c : p.contexts) {
      PassContext made = PassContext::Make(c.level, Texts(c.required), Texts(c.disabled), Some(c.instruments), {});
      made->inherit_instruments = c.inherit;
      made->isolate_instruments = c.isolate;
      contexts_.push_back(made);
    }
    relay::Var x("x", TensorType(Array<PrimExpr>{PrimExpr(2)}, DataType::Float(32)));
    module_.CopyOnWrite()->Add(GlobalVar("f"), relay::Function({x}, x));
    module_.CopyOnWrite()->Add(GlobalVar("g"), WithAttr(relay::Function({x}, x), attr::kSkipOptimization, Any(1)));
    module_.CopyOnWrite()->Add(GlobalVar("h"), relay::Function({x}, x));
  }
  ~Real() { running = nullptr; }
  void Run() { Guarded(program_.body); }
  Chosen LeftOn(const PassContext& c) const {
    Chosen out;
    for (const auto& i : c->instruments) {
      for (size_t k = 0; k < instruments_.size(); ++k) {
        if (i.same_as(instruments_[k])) out.push_back(static_cast<int>(k));
      }
    }
    return out;
  }
  const PassContext& context(int i) const { return contexts_[static_cast<size_t>(i)]; }

  Pass Make(const PassSpec& p) {
    if (p.kind == PassSpec::kSequence) {
      Array<Pass> passes;
      for (const PassSpec& one : p.passes) passes.push_back(Make(one));
      return Sequential(passes, PassInfo(p.level, p.name, {}));
    }
    if (p.kind == PassSpec::kModule) {
      return CreateModulePass(TypedPackedFunc<IRModule(IRModule, PassContext)>([p](IRModule m, PassContext) {
                                running->Inside(p, "", true);
                                return m;
                              }),
                              p.level, p.name, Texts(p.required));
    }
    return relay::transform::CreateFunctionPass(
        TypedPackedFunc<relay::Function(relay::Function, IRModule, PassContext)>(
            [p](relay::Function f, IRModule m, PassContext) {
              const bool first = m->Lookup("f").same_as(f);
              running->Inside(p, first ? " f" : m->Lookup("h").same_as(f) ? " h" : " another", first);
              return f;
            }),
        p.level, p.name, Texts(p.required));
  }

 private:
  static Array<String> Texts(const Names& names) {
    Array<String> out;
    for (const std::string& n : names) out.push_back(String(n));
    return out;
  }
  Array<instrument::PassInstrument> Some(const Chosen& which) {
    Array<instrument::PassInstrument> out;
    for (int i : which) out.push_back(instruments_[static_cast<size_t>(i)]);
    return out;
  }
  void Called(int i, Hook hook, const std::string& pass = "") {
    log.push_back(std::to_string(i) + " " + kHookNames[hook] + " " + pass);
    const InstrumentSpec& spec = program_.instruments[static_cast<size_t>(i)];
    const int seen = ++calls_[static_cast<size_t>(i * kHooks + hook)];
    if (spec.fails == hook && seen >= spec.from) {
      throw runtime::ValueError(std::to_string(i) + " " + kHookNames[hook]);
    }
  }
  instrument::PassInstrument Instrument(int i) {
    auto scope = [this, i](Hook h) { return runtime::MakeTyped([this, i, h] { Called(i, h); }); };
    auto around = [this, i](Hook h) {
      return runtime::MakeTyped([this, i, h](IRModule, PassInfo info) { Called(i, h, info->name); });
    };
    auto told = [this, i](Hook h) {
      return runtime::MakeTyped([this, i, h](IRModule, PassInfo info, String) { Called(i, h, info->name); });
    };
    const bool yes = program_.instruments[static_cast<size_t>(i)].says_yes;
    auto should = runtime::MakeTyped([this, i, yes](IRModule, PassInfo info) {
      Called(i, kShould, info->name);
      return yes;
    });
    return instrument::MakePassInstrument(
        String("i" + std::to_string(i)),
        {scope(kEnter), scope(kExit), should, around(kBefore), around(kAfter), told(kFailed), told(kSkipped)},
        program_.instruments[static_cast<size_t>(i)].observes);
  }

  void Inside(const PassSpec& p, const char* function, bool first) {
    log.push_back("pass " + p.name + function);
    if (first) Body(p.body);
    if (p.throws) throw runtime::ValueError("pass " + p.name);
  }
  void Guarded(const std::vector<Statement>& body) {
    try {
      Body(body);
    } catch (const Error& e) {
      std::string what = e.message();
      for (const char* refusal : {kElsewhere, kCycle}) {
        if (what.find(refusal) != std::string::npos) what = refusal;
      }
      log.push_back("caught " + what);
    }
  }
  void Body(const std::vector<Statement>& body) {
    for (const Statement& s : body) {
      switch (s.kind) {
        case Statement::kWith: {
          With<PassContext> scope(contexts_[static_cast<size_t>(s.context)]);
          Body(s.body);
          break;
        }
        case Statement::kTry:
          Guarded(s.body);
          break;
        case Statement::kRun:
          Make(s.pass)(module_);
          break;
        case Statement::kOverride:
          PassContext::Current().OverrideInstruments(Some(s.instruments));
          break;
        case Statement::kThread:
          std::thread([&] { Guarded(s.body); }).join();
          break;
        case Statement::kAdopt: {
          PassContext ctx = PassContext::Current();
          std::thread([&] {
            AdoptPassContext adopt(ctx);
            Guarded(s.body);
          }).join();
          break;
        }
      }
    }
  }

  const Program& program_;
  std::vector<int> calls_;
  std::vector<instrument::PassInstrument> instruments_;
  std::vector<PassContext> contexts_;
  IRModule module_ = IRModule(Map<GlobalVar, BaseFunc>());
};

struct RegisterPrerequisites {
  RegisterPrerequisites() {
    for (const auto& [name, needs] : kPrerequisites) {
      runtime::Registry::Register("relay._transform." + name).set_body_typed([name = name, needs = needs] {
        return running->Make(PassSpec{.name = name, .level = 4, .required = needs});
      });
    }
  }
} registered;

/// What isolated instruments threw is also written to stderr.
class Quiet {
 public:
  Quiet() : saved_(dup(2)) {
    fflush(stderr);
    const int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    dup2(null, 2);
    close(null);
  }
  ~Quiet() {
    fflush(stderr);
    dup2(saved_, 2);
    close(saved_);
  }

 private:
  int saved_;
};

std::string FirstDifference(const Log& want, const Log& got) {
  size_t i = 0;
  while (i < want.size() && i < got.size() && want[i] == got[i]) ++i;
  if (i == want.size() && i == got.size()) return "";
  auto at = [i](const Log& l) { return i < l.size() ? l[i] : std::string("the end"); };
  return "event " + std::to_string(i) + ": the model says `" + at(want) + "`, it was `" + at(got) + "`";
}

/// "" if the manager does what the model says for this seed; counts the events of each kind.
std::string Compare(uint32_t seed, std::map<std::string, int>* kinds) {
  const Program p = Maker(seed).Make();
  Model model(p);
  model.Run();
  const PassContext base = PassContext::Current();
  Real real(p);
  real.Run();
  for (const std::string& event : real.log) {
    const bool hook = event[0] >= '0' && event[0] <= '9';
    for (const char* refusal : {kElsewhere, kCycle}) (*kinds)[refusal] += event.find(refusal) != std::string::npos;
    ++(*kinds)[hook ? event.substr(2, event.find(' ', 2) - 2) : event.substr(0, event.find(' '))];
  }
  std::string wrong = FirstDifference(model.log, real.log);
  if (wrong.empty() && !PassContext::Current().same_as(base)) wrong = "the stack of contexts is not what it was";
  if (wrong.empty() && model.LeftOnDefault() != real.LeftOn(base)) wrong = "instruments of the default context";
  for (int c = 0; c < static_cast<int>(p.contexts.size()) && wrong.empty(); ++c) {
    Names errors;
    for (const String& e : real.context(c)->instrument_errors) errors.push_back(e);
    (*kinds)["isolated"] += static_cast<int>(errors.size());
    if (model.LeftOn(c) != real.LeftOn(real.context(c))) wrong = "instruments of context " + std::to_string(c);
    if (model.Errors(c) != errors) wrong = "instrument_errors: " + FirstDifference(model.Errors(c), errors);
  }
  try {
    PassContext(base).OverrideInstruments({});
  } catch (const Error&) {
  }
  return wrong;
}

}  // namespace

TEST_CASE("PI-013, PI-046, IN-006, IN-015, IN-018 the manager does what a small model of the rules says") {
  std::map<std::string, int> kinds;
  std::vector<std::pair<uint32_t, std::string>> wrong;
  {
    Quiet quiet;
    for (uint32_t seed = 0; seed < 4000 && wrong.size() < 5; ++seed) {
      std::string what = Compare(seed, &kinds);
      if (!what.empty()) wrong.emplace_back(seed, what);
    }
  }
  for (const auto& [seed, what] : wrong) FAIL_CHECK("seed " << seed << ": " << what);
  // A program in which nothing happens shows nothing.
  for (const char* hook : kHookNames) CHECK_MESSAGE(kinds[hook] > 500, std::string(hook));
  for (const char* kind : {"pass", "caught", "isolated", kElsewhere, kCycle}) {
    CHECK_MESSAGE(kinds[kind] > 50, std::string(kind));
  }
}
