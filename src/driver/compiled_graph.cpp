// SPDX-License-Identifier: Apache-2.0
#include "driver/compiled_graph.h"

#include <baton/codegen/backend.h>
#include <baton/ir/transform.h>
#include <baton/support/file.h>
#include <baton/support/json.h>
#include <baton/tir/lower.h>

#include <algorithm>
#include <cstring>

namespace baton::driver {

IRModule LowerTir(const IRModule& mod, const Target& target) {
  Map<GlobalVar, BaseFunc> entries, others;
  for (const auto& [var, func] : mod->functions) {
    (func->HasNonzeroAttr("model_entry") ? entries : others).Set(var, func);
  }
  // Lowering is not a matter of choice: a separate context, in which instruments that observe see its passes, but the
  // user's level, disabled passes and `should_run` do not count. Functions are independent: two threads at least.
  transform::PassContext outer = transform::PassContext::Current();
  transform::PassContext inner = transform::PassContext::Make(4, {}, {}, {}, outer->config);
  inner->num_threads = std::max(outer->num_threads, 2);
  inner->inherit_instruments = outer->inherit_instruments;
  IRModule lowered;
  {
    With<transform::PassContext> scope(inner);
    With<Target> on(target);
    lowered = codegen::BackendOf(target).tir_pipeline()(IRModule(others));
  }
  Map<GlobalVar, BaseFunc> out;
  for (const auto& [var, func] : mod->functions) {
    out.Set(var, entries.count(var) ? func : lowered->functions.at(var));
  }
  return IRModule(out);
}

NDArray PackConstants(const ConstantTable& constants, std::vector<RemadeConstant>* remade) {
  NDArray blob = NDArray::Empty({static_cast<int64_t>(constants.bytes)}, DataType::UInt(8));
  uint64_t end = 0;
  auto* p = blob.ptr<uint8_t>();
  for (const auto& [offset, value] : constants.list) {
    memset(p + end, 0, offset - end);  // gaps are part of the artifact: the same bytes every time
    if (value.HasSource()) {
      if (remade) remade->push_back({offset, runtime::PackedFunc(ObjectPtr<Object>(value.obj()->source))});
      value.MoveTo(p + offset, blob);
    } else {
      NDArray dense = value.Contiguous();
      memcpy(p + offset, dense.data(), dense.nbytes());
    }
    end = offset + value.nbytes();
  }
  memset(p + end, 0, constants.bytes - end);
  return blob;
}

BATON_REGISTER_PASS_CONFIG_OPTION(
    "llvm.debug_info", String, "What compiled code tells debuggers and profilers: \"none\", \"names\" or \"lines\".");
BATON_REGISTER_PASS_CONFIG_OPTION("llvm.debug_source", String,
                                  "File to write the PrimFuncs to that debuggers show; asks for \"lines\".");

DebugOptions DebugOptions::FromContext(const char* default_value) {
  transform::PassContext ctx = transform::PassContext::Current();
  DebugOptions o;
  o.level = codegen::DebugLevelOf(ctx->GetConfig<String>("llvm.debug_info", default_value).str());
  o.source = ctx->GetConfig<String>("llvm.debug_source", "").str();
  if (!o.source.empty()) o.level = codegen::DebugLevel::kLines;
  return o;
}

void DebugOptions::WriteSource(const std::string& text) const {
  if (!source.empty()) support::WriteFileAtomic(source, text);
}

std::string FormsOf(const relay::Function& main) {
  std::string out;
  support::JsonWriter w(&out);
  bool any = false;
  w.BeginObject();
  for (auto [attribute, key] :
       {std::pair<const char*, const char*>{"input_forms", "inputs"}, {"output_forms", "outputs"}}) {
    const auto forms = main->GetAttr<Array<String>>(attribute, Array<String>());
    any = any || !forms.empty();
    w.Key(key);
    w.BeginArray();
    for (const String& form : forms) w.String(form.str());
    w.EndArray();
  }
  w.EndObject();
  return any ? out : "";
}

CompiledGraph CompileGraph(const relay::Function& main, const Target& target, int num_threads,
                           const DebugOptions& debug) {
  LoweredModel model = LowerGraph(main, target, debug.Lowering());
  debug.WriteSource(model.debug_source);
  CompiledGraph g;
  g.code = codegen::LoadObjects(codegen::BackendOf(target).emit(model.mod, target, {num_threads, debug.level}).objects);
  g.entry = reinterpret_cast<runtime::EntryFunction>(g.code->GetSymbol(model.desc.entry.c_str()));
  if (!g.entry) throw InternalError("the compiled code has no symbol " + model.desc.entry);
  g.constants = PackConstants(model.constants);
  g.desc = model.desc;
  g.desc.constants = g.constants.ptr<uint8_t>();
  return g;
}

}  // namespace baton::driver
