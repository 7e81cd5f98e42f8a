// SPDX-License-Identifier: Apache-2.0
#include <baton/runtime/any.h>
#include <baton/runtime/error.h>
#include <baton/runtime/registry.h>

#include <cstdio>
#include <new>
#include <stdexcept>

namespace baton::runtime {
namespace {

// The slot that carries an error over the C border, one a thread.
thread_local ObjectPtr<ErrorObj> tls_error;

ObjectPtr<ErrorObj> MakeError(std::string_view kind, std::string_view message) {
  auto e = make_object<ErrorObj>();
  e->kind = kind;
  e->message = message;
  return e;
}

/// The error for failed allocations, which cannot be allocated then: made at load time, with two references, so that it
/// never counts as unique.
const ObjectPtr<ErrorObj> no_memory[2] = {MakeError("MemoryError", "out of memory"), no_memory[0]};

/// Fills the slot; never throws.
void Put(std::string_view kind, std::string_view message) noexcept {
  try {
    tls_error = MakeError(kind, message);
  } catch (...) {
    tls_error = no_memory[0];
  }
}

}  // namespace

Error::Error(std::string_view kind, std::string_view message) : obj_(MakeError(kind, message)) {}

int CatchToSlot() noexcept {
  try {
    throw;
  } catch (const Error& e) {
    tls_error = e.object();
  } catch (const std::bad_alloc&) {
    Put("MemoryError", "out of memory");
  } catch (const std::exception& e) {
    // `support` knows no kinds of errors: what it finds wrong with files and texts are plain runtime errors.
    const bool plain = dynamic_cast<const std::runtime_error*>(&e) != nullptr;
    Put(plain ? "RuntimeError" : "InternalError", e.what());
  } catch (...) {
    Put("InternalError", "an exception of an unknown type");
  }
  return -1;
}

int CatchToSlot(const char* function) noexcept {
  CatchToSlot();
  try {
    // A long way through recursion is not written down whole.
    // An error object that others hold is theirs to read: it stays as it is. Here are the slot's and the exception's
    // counts.
    if (tls_error && *function && tls_error->use_count() <= 2 && tls_error->trace.size() < 4000) {
      tls_error->trace.append("C++ ").append(function).append("\n");
    }
  } catch (...) {
    // Memory is short: the trace stays as it is.
  }
  return -1;
}

void ThrowFromSlot() {
  ObjectPtr<ErrorObj> e = std::move(tls_error);
  tls_error = nullptr;
  if (!e) e = MakeError("InternalError", "a call failed without saying why");
  throw Error(std::move(e));
}

CheckFailure::CheckFailure(const char* file, int line, const char* cond, const char* kind)
    : kind_(kind), uncaught_(std::uncaught_exceptions()) {
  text_.append(file).append(":").append(std::to_string(line)).append(": check failed: ").append(cond).append(": ");
}

CheckFailure::~CheckFailure() noexcept(false) {
  if (std::uncaught_exceptions() == uncaught_) throw Error(kind_, text_);
}

CheckFailure& CheckFailure::operator<<(double v) {
  char buf[32];
  snprintf(buf, sizeof buf, "%g", v);
  return *this << std::string_view(buf);
}

CheckFailure& CheckFailure::operator<<(const ObjectRef& r) {
  if (!r.defined()) return *this << "(null)";
  if (const PackedFunc* f = Registry::Get("ir.AsText")) return *this << (*f)(r).As<std::string>();
  return *this << r.get()->GetTypeKey();
}

}  // namespace baton::runtime

using namespace baton::runtime;  // NOLINT: the C functions below

extern "C" {
void BatonErrorSet(const char* kind, const char* message) { Put(kind ? kind : "RuntimeError", message ? message : ""); }
void BatonErrorPut(BatonObject* error) {
  auto* o = reinterpret_cast<Object*>(error);
  if (o && !o->IsInstance<ErrorObj>()) {
    BatonErrorSet("TypeError", "BatonErrorPut takes an error object");
    return;
  }
  tls_error = ObjectPtr<ErrorObj>(o);
}
void BatonErrorTake(BatonObject** out) {
  ObjectRef r{ObjectPtr<Object>(std::move(tls_error))};
  tls_error = nullptr;
  *out = reinterpret_cast<BatonObject*>(ObjectAccess::Steal(r));
}
const char* BatonErrorMessage(void) { return tls_error ? tls_error->message.c_str() : ""; }
const char* BatonErrorTrace(void) { return tls_error ? tls_error->trace.c_str() : ""; }
const char* BatonErrorKind(void) { return tls_error ? tls_error->kind.c_str() : ""; }
}
