// SPDX-License-Identifier: Apache-2.0
// Errors: an object that crosses the C ABI, and the C++ exception that carries it.
#pragma once

#include <baton/runtime/object.h>

#include <exception>
#include <source_location>
#include <string>
#include <string_view>

namespace baton::runtime {

/// An error. It crosses language boundaries by reference, so the same object comes back.
class ErrorObj : public Object {
 public:
  static constexpr const char* _type_key = "runtime.Error";
  static constexpr uint32_t _type_index = TypeIndex::kRuntimeError;
  std::string kind;  ///< "CompileError", "RuntimeError", "InternalError", "TypeError", ... ; Python picks a class by it
  std::string message;     ///< what was seen, the rule, a way out
  std::string trace;       ///< functions that it passed, a line each, innermost first: "file:line name" or "C++ name"
  ObjectRef payload;       ///< owned and opaque: a foreign exception that must come out as the same object
  bool ends_work = false;  ///< not a failure: a request to stop (KeyboardInterrupt, SystemExit)
  BATON_DECLARE_FINAL_OBJECT_INFO(ErrorObj, Object)
};

/// The exception. Thrown by value; copies share one ErrorObj.
class BATON_DLL Error : public std::exception {
 public:
  explicit Error(ObjectPtr<ErrorObj> obj) : obj_(std::move(obj)) {}
  Error(std::string_view kind, std::string_view message);
  const char* what() const noexcept override { return obj_->message.c_str(); }
  const std::string& kind() const { return obj_->kind; }
  const std::string& message() const { return obj_->message; }
  /// Code that catches errors in order to fall back rethrows those for which this is true.
  bool ends_work() const { return obj_->ends_work; }
  ErrorObj* get() const { return obj_.get(); }
  const ObjectPtr<ErrorObj>& object() const { return obj_; }

 private:
  ObjectPtr<ErrorObj> obj_;
};

/// The program that the user gave is wrong.
struct BATON_DLL CompileError : Error {
  explicit CompileError(std::string_view message) : Error("CompileError", message) {}
  CompileError(std::string_view kind, std::string_view message) : Error(kind, message) {}
};
/// The call is wrong: shapes, devices, files.
struct BATON_DLL RuntimeError : Error {
  explicit RuntimeError(std::string_view message) : Error("RuntimeError", message) {}
};
struct BATON_DLL TypeError : Error {
  explicit TypeError(std::string_view message) : Error("TypeError", message) {}
};
struct BATON_DLL ValueError : Error {
  explicit ValueError(std::string_view message) : Error("ValueError", message) {}
};
/// A feature that does not exist was requested; the message says what and where.
struct BATON_DLL UnsupportedError : Error {
  explicit UnsupportedError(std::string_view message) : Error("UnsupportedError", message) {}
};
/// A bug in Baton. Carries file and line.
struct BATON_DLL InternalError : Error {
  explicit InternalError(std::string_view message) : Error("InternalError", message) {}
};

/// Puts the exception in flight (any type) into this thread's error slot; returns -1. Call inside `catch (...)`.
BATON_DLL int CatchToSlot() noexcept;
/// The same at the border of a function with a name: the error's trace says that it passed there.
BATON_DLL int CatchToSlot(const char* function) noexcept;
/// Throws the error in this thread's slot.
[[noreturn]] BATON_DLL void ThrowFromSlot();

/// Collects a check's message and throws at the end of the statement.
class BATON_DLL CheckFailure {
 public:
  CheckFailure(const char* file, int line, const char* cond, const char* kind = "InternalError");
  ~CheckFailure() noexcept(false);
  CheckFailure& operator<<(std::string_view s) {
    text_.append(s);
    return *this;
  }
  CheckFailure& operator<<(const char* s) { return *this << std::string_view(s); }
  CheckFailure& operator<<(const std::string& s) { return *this << std::string_view(s); }
  CheckFailure& operator<<(char c) { return *this << std::string_view(&c, 1); }
  CheckFailure& operator<<(bool v) { return *this << (v ? "true" : "false"); }
  CheckFailure& operator<<(double v);
  template <class I, std::enable_if_t<std::is_integral_v<I> || std::is_enum_v<I>, int> = 0>
  CheckFailure& operator<<(I v) {
    return *this << std::to_string(static_cast<long long>(v));
  }
  /// Anything else: its text form, found by the reflection tables.
  CheckFailure& operator<<(const ObjectRef& r);

 private:
  std::string text_;
  const char* kind_;
  int uncaught_;
};
struct CheckVoidify {
  void operator&(const CheckFailure&) {}
};

}  // namespace baton::runtime

namespace baton {
using runtime::CompileError;
using runtime::Error;
using runtime::InternalError;
using runtime::RuntimeError;
using runtime::UnsupportedError;
}  // namespace baton

/// Internal check: never reachable from user input. Throws InternalError with the streamed text.
#define ICHECK(cond)              \
  (__builtin_expect(!!(cond), 1)) \
      ? (void)0                   \
      : ::baton::runtime::CheckVoidify() & ::baton::runtime::CheckFailure(__FILE__, __LINE__, #cond)
#define ICHECK_EQ(a, b) ICHECK((a) == (b))
#define ICHECK_NE(a, b) ICHECK((a) != (b))
#define ICHECK_LT(a, b) ICHECK((a) < (b))
#define ICHECK_LE(a, b) ICHECK((a) <= (b))
#define ICHECK_GT(a, b) ICHECK((a) > (b))
#define ICHECK_GE(a, b) ICHECK((a) >= (b))
