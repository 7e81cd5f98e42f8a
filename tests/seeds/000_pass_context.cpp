// SPDX-License-Identifier: Apache-2.0
// NM-003: "Pass Infrastructure", PassContext: the node, the reference, the thread-local entry.
#include <baton/compat/tvm.h>
#include <doctest/doctest.h>

#include <stack>
#include <thread>

namespace seed_pass_context {
using namespace tvm;
using tvm::Object;
using tvm::runtime::Array;
namespace instrument = tvm::instrument;
using tvm::transform::PassInfo;

class PassContextNode : public Object {
 public:
  int opt_level{2};
  tvm::Array<tvm::Expr> required_pass;
  tvm::Array<tvm::Expr> disabled_pass;
  mutable Optional<DiagnosticContext> diag_ctx;
  Map<String, ObjectRef> config;
  Array<instrument::PassInstrument> instruments;
};

class PassContext : public NodeRef {
 public:
  TVM_DLL static PassContext Create();
  TVM_DLL static PassContext Current();
  TVM_DLL void InstrumentEnterPassContext();
  TVM_DLL void InstrumentExitPassContext();
  TVM_DLL bool InstrumentBeforePass(const IRModule& mod, const PassInfo& info) const;
  TVM_DLL void InstrumentAfterPass(const IRModule& mod, const PassInfo& info) const;
  /* Other fields are omitted. */
  // (The two that the rest of the example needs are not.)
  PassContext() = default;
  explicit PassContext(ObjectPtr<PassContextNode> n) : NodeRef(n) {}
  const PassContextNode* operator->() const { return static_cast<const PassContextNode*>(get()); }

 private:
  // The entry of a pass context scope.
  TVM_DLL void EnterWithScope();
  // The exit of a pass context scope.
  TVM_DLL void ExitWithScope();

  // Classes to get the Python `with` like syntax.
  friend class tvm::With<PassContext>;
};

struct PassContextThreadLocalEntry {
  /*! \brief The default pass context. */
  PassContext default_context;
  /*! \brief The current pass context. */
  std::stack<PassContext> context_stack;
  PassContextThreadLocalEntry() { default_context = PassContext(make_node<PassContextNode>()); }
};

/*! \brief The thread-local store to hold the pass context. */
typedef dmlc::ThreadLocalStore<PassContextThreadLocalEntry> PassContextThreadLocalStore;

// The bodies, which the document leaves out.
PassContext PassContext::Current() {
  PassContextThreadLocalEntry* entry = PassContextThreadLocalStore::Get();
  return entry->context_stack.empty() ? entry->default_context : entry->context_stack.top();
}
PassContext PassContext::Create() { return PassContext(make_node<PassContextNode>()); }
void PassContext::EnterWithScope() { PassContextThreadLocalStore::Get()->context_stack.push(*this); }
void PassContext::ExitWithScope() { PassContextThreadLocalStore::Get()->context_stack.pop(); }

}  // namespace seed_pass_context

TEST_CASE("NM-003 seed 000: PassContext with a store of its own for each thread") {
  using seed_pass_context::PassContext;
  PassContext outside = PassContext::Current();
  CHECK(outside->opt_level == 2);
  CHECK(!outside->diag_ctx);
  PassContext inner = PassContext::Create();
  {
    tvm::With<PassContext> scope(inner);
    CHECK(PassContext::Current().same_as(inner));
    bool other = false;
    std::thread([&] { other = PassContext::Current().same_as(inner); }).join();
    CHECK_FALSE(other);
  }
  CHECK(PassContext::Current().same_as(outside));
}

TEST_CASE("NM-003 seed 000: the real PassContext has the document's members") {
  using tvm::transform::PassContext;
  PassContext ctx = PassContext::Create();
  CHECK(ctx->opt_level == 2);
  CHECK(ctx->required_pass.size() + ctx->disabled_pass.size() + ctx->instruments.size() + ctx->config.size() == 0);
  tvm::With<PassContext> scope(ctx);
  CHECK(PassContext::Current().same_as(ctx));
}
