// SPDX-License-Identifier: Apache-2.0
// The file around functions.
#include <baton/runtime/c_backend_api.h>
#include <baton/runtime/error.h>
#include <baton/runtime/module.h>
#include <baton/tir/lower.h>
#include <baton/tir/op.h>
#include <fmt/format.h>

#include <utility>
#include <vector>

#include "codegen/c/c.h"

namespace baton::codegen::c {
namespace {

constexpr const char* kTop =
    "/* C99, written by Baton: cc -std=c99 -O2 -c, linked with -lm. Other modes of gcc take -ffp-contract=off, too. "
    "*/\n"
    "#include <math.h>\n#include <stdbool.h>\n#include <stddef.h>\n#include <stdint.h>\n#include <stdlib.h>\n"
    "#include <string.h>\n\n#ifdef __clang__\n#pragma STDC FP_CONTRACT OFF\n#endif\n";

constexpr const char* kRuntime =
    "\n/* A runtime that loads this code sets these; without one, a fault is a number that is not 0. */\n"
    "struct baton_value {\n  int32_t type, pad;\n  union {\n    int64_t i;\n    double f;\n  } v;\n};\n"
    "struct baton_api {\n  uint32_t size, version;\n  int (*parallel_launch)(int (*)(int, int, void*), void*, int);\n"
    "  int (*num_threads)(void);\n  int (*set_error)(const char*);\n  void* (*alloc)(uint64_t);\n"
    "  void (*free)(void*);\n  int (*get_function)(void*, const char*, void**);\n"
    "  int (*call_function)(void*, const struct baton_value*, int, struct baton_value*);\n"
    "  int (*set_index_error)(const char*, int64_t, int64_t);\n};\n"
    "const struct baton_api* baton_backend_api = NULL;\nvoid* baton_module = NULL;\n";
constexpr const char* kErrors =
    "static inline int32_t baton_error(const char* message) {\n"
    "  return baton_backend_api ? baton_backend_api->set_error(message) : -1;\n}\n";
constexpr const char* kIndexErrors =
    "static inline int32_t baton_index_error(const char* format, int64_t index, int64_t extent) {\n"
    "  return baton_backend_api ? baton_backend_api->set_index_error(format, index, extent) : -1;\n}\n";
constexpr const char* kPlainErrors =
    "\nstatic inline int32_t baton_error(const char* message) {\n  (void)message;\n  return -1;\n}\n";
constexpr const char* kPlainIndexErrors =
    "\nstatic inline int32_t baton_index_error(const char* format, int64_t index, int64_t extent) {\n"
    "  (void)format, (void)index, (void)extent;\n  return -1;\n}\n";
constexpr const char* kTensors =
    "struct baton_tensor {\n  void* data;\n  int32_t device_type, device_id, ndim;\n  uint8_t code, bits;\n"
    "  uint16_t lanes;\n  int64_t *shape, *strides;\n  uint64_t byte_offset;\n};\n"
    "static inline void baton_set_tensor(struct baton_tensor* t, void* data, int ndim, int code, int bits, int lanes,\n"
    "                                    int64_t* shape) {\n"
    "  memset(t, 0, sizeof *t);\n  t->data = data;\n  t->device_type = 1;\n  t->ndim = ndim;\n"
    "  t->code = (uint8_t)code;\n  t->bits = (uint8_t)bits;\n  t->lanes = (uint16_t)lanes;\n  t->shape = shape;\n}\n";
constexpr const char* kPacked =
    "/* Calls a function by name with n values; its value is the one behind them. */\n"
    "static inline int32_t baton_call(void** slot, const char* name, struct baton_value* values, int n) {\n"
    "  int32_t status = 0;\n  if (!baton_backend_api) return -1;\n"
    "  if (!*slot) status = baton_backend_api->get_function(baton_module, name, slot);\n"
    "  return status ? status : baton_backend_api->call_function(*slot, values, n, &values[n]);\n}\n";
constexpr const char* kSpecs =
    "\n/* How functions are called with tensors and numbers. */\n"
    "struct baton_param {\n  const char* name;\n  uint8_t dtype_code, dtype_bits;\n  uint16_t dtype_lanes;\n"
    "  int32_t kind, ndim;\n  const int64_t* shape;\n};\n"
    "struct baton_spec {\n  int32_t version, num_params, num_required, result;\n  const char* name;\n"
    "  const struct baton_param* params;\n  int32_t (*call)(void* slots);\n};\n";

/// Gives a variable or function its symbol, where that is another.
std::string Renamed(const std::string& name, const std::string& symbol) {
  return name == symbol ? "" : fmt::format(" __asm__({})", Quoted(symbol));
}

std::string Spec(const std::string& symbol, const tir::PrimFunc& caller, const std::string& call) {
  const auto func = caller->GetAttr<tir::PrimFunc>(tir::attr::kPackedOf);
  const std::string name = symbol.substr(std::string(tir::kPackedCallPrefix).size());
  std::string shapes, rows;
  int number = 0;
  for (const tir::Var& p : func->params) {
    DataType t = p->dtype;
    size_t ndim = 0;
    std::string shape = "NULL", shown = p->name_hint.str();
    int kind = t.is_floating() ? kBatonParamFloat : t.is_handle() ? kBatonParamPointer : kBatonParamInt;
    if (func->buffer_map.count(p)) {
      const tir::Buffer& b = func->buffer_map.at(p);
      kind = kBatonParamTensor, t = b->dtype, shown = b->name.str(), ndim = b->shape.size();
      std::string dims;
      for (const PrimExpr& d : b->shape) {
        const int64_t* c = tir::as_const_int(d);
        dims += fmt::format("{}{}", dims.empty() ? "" : ", ", c ? *c : -1);
      }
      if (ndim) {
        shape = fmt::format("{}_shape{}", call, number++);
        shapes += fmt::format("static const int64_t {}[] = {{{}}};\n", shape, dims);
      }
    }
    rows += fmt::format("    {{{}, {}, {}, {}, {}, {}, {}}},\n", Quoted(shown), static_cast<int>(t.code()), t.bits(),
                        t.lanes(), kind, ndim, shape);
  }
  std::string out = shapes;
  if (!rows.empty()) out += fmt::format("static const struct baton_param {}_params[] = {{\n{}}};\n", call, rows);
  const std::string spec = runtime::kFunctionSpecPrefix + name, variable = Word(spec);
  out += fmt::format("extern const struct baton_spec {}{};\n", variable, Renamed(variable, spec));
  return out + fmt::format("const struct baton_spec {} = {{{}, {}, {}, {}, {}, {}, {}}};\n", variable,
                           static_cast<int>(kBatonFunctionSpecVersion), func->params.size(),
                           caller->GetAttr<int64_t>(tir::attr::kNumRequired),
                           caller->GetAttr<int64_t>(tir::attr::kResultKind, 0), Quoted(name),
                           rows.empty() ? "NULL" : call + "_params", call);
}

struct Piece {
  std::string symbol;
  tir::PrimFunc func;
  FunctionText text;
};

std::vector<Piece> Pieces(const IRModule& mod, Symbols* symbols) {
  std::vector<Piece> out;
  std::set<std::string> taken;
  for (const auto& [var, func] : mod->functions) {
    if (!func.as<tir::PrimFuncNode>()) continue;
    const std::string symbol = SymbolOf(var, func);
    // Names without `_` may be those of C's library.
    const std::string word = symbol.find('_') == symbol.npos ? Word(symbol) + "_" : Word(symbol);
    std::string name = word;
    for (int i = 1; !taken.insert(name).second; ++i) name = fmt::format("{}_{}", word, i);
    symbols->emplace(symbol, name);
    out.push_back({symbol, Downcast<tir::PrimFunc>(func), {}});
  }
  return out;
}

}  // namespace

std::string Word(const std::string& name) {
  static const std::set<std::string> kWords = {
      "auto",     "break",  "case",     "char",   "const",  "continue", "default", "do",     "double",  "else",
      "enum",     "extern", "float",    "for",    "goto",   "if",       "inline",  "int",    "long",    "register",
      "restrict", "return", "short",    "signed", "sizeof", "static",   "struct",  "switch", "typedef", "union",
      "unsigned", "void",   "volatile", "while",  "bool",   "true",     "false",   "main",   "NULL"};
  std::string out;
  for (char c : name) out += isalnum(static_cast<unsigned char>(c)) || c == '_' ? c : '_';
  if (out.empty() || isdigit(static_cast<unsigned char>(out[0]))) out = "_" + out;
  return kWords.count(out) ? out + "_" : out;
}

std::string Quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += std::string("\\") + c;
    } else if (byte < 32 || byte > 126 || c == '?') {  // `??` begins a trigraph
      out += fmt::format("\\{:03o}", byte);
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string SymbolOf(const GlobalVar& var, const BaseFunc& func) {
  return func->GetAttr<String>(baton::attr::kGlobalSymbol, var->name_hint).str();
}

std::string PrintModule(const IRModule& mod, bool closed) {
  FileNeeds needs;
  Symbols symbols;
  std::vector<Piece> pieces = Pieces(mod, &symbols);
  std::set<std::string> called;
  for (Piece& p : pieces) {
    p.text = PrintFunction(mod, symbols, p.symbol, p.func, &needs);
    called.insert(p.text.calls.begin(), p.text.calls.end());
  }
  const auto is_static = [&](const Piece& p) {
    return closed || (called.count(p.symbol) && !p.func->HasNonzeroAttr(baton::attr::kGlobalSymbol));
  };
  if (closed && needs.packed) {
    throw UnsupportedError("the model calls `" + needs.slots.begin()->first +
                           "` by name, which source without a runtime cannot; save it as a library (.so)");
  }
  std::string out = kTop;
  if (!closed && (needs.errors || needs.index_errors || needs.packed)) out += kRuntime;
  if (needs.errors) out += closed ? kPlainErrors : kErrors;
  if (needs.index_errors) out += closed ? kPlainIndexErrors : kIndexErrors;
  if (needs.tensors) out += kTensors;
  if (needs.packed) out += kPacked;
  for (const auto& [name, variable] : needs.slots) out += fmt::format("static void* {};\n", variable);
  for (const auto& [name, declaration] : needs.externs) out += declaration;
  if (!needs.builtins.empty()) out += "\n" + kDialect.Definitions(needs.builtins);
  out += "\n";
  for (const Piece& p : pieces) {
    out += fmt::format("{}{}{};\n", is_static(p) ? "static " : "", p.text.head,
                       is_static(p) ? "" : Renamed(symbols.at(p.symbol), p.symbol));
  }
  for (const Piece& p : pieces)
    out += fmt::format("\n{}{} {}", is_static(p) ? "static " : "", p.text.head, p.text.body);
  bool specs = false;
  for (const Piece& p : pieces) {
    if (!p.func->HasNonzeroAttr(tir::attr::kPackedOf)) continue;
    if (!std::exchange(specs, true)) out += kSpecs;
    out += Spec(p.symbol, p.func, symbols.at(p.symbol));
  }
  return out;
}

}  // namespace baton::codegen::c
