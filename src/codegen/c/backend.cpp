// SPDX-License-Identifier: Apache-2.0
#include <baton/codegen/backend.h>
#include <baton/support/with.h>
#include <baton/tir/transform.h>

#include "codegen/c/c.h"
#include "runtime/artifact_format.h"

namespace baton::codegen {
namespace {

/// That of processors, without vectors.
transform::Pass Pipeline() {
  const transform::PassContext outer = transform::PassContext::Current();
  Map<String, runtime::Any> config = outer->config;
  config.Set("tir.disable_vectorize", runtime::Any(true));
  With<transform::PassContext> scope(transform::PassContext::Make(outer->opt_level, {}, {}, {}, config));
  return tir::transform::LowerPipeline();
}

/// The symbols that an artifact's loader looks for, beside the functions.
std::string ForArtifacts(const std::string& text) {
  using namespace runtime::artifact;  // NOLINT: its format
  const auto variable = [](const char* symbol, const char* none) {
    return std::string("char ") + symbol + "[" + std::to_string(kDigest) + "] = " + c::Quoted(none) + ";\n";
  };
  return text + variable(kManifestSymbol, kNoManifest) + variable(kNumbersSymbol, kNoNumbers);
}

Code EmitCode(const IRModule& mod, const Target& target, const EmitOptions& options) {
  Code code;
  code.objects.debug = options.debug;
  const std::string text = ForArtifacts(c::PrintModule(mod));
  code.objects.missing = c::WhyNoCompiler(target);
  if (!code.objects.missing.empty()) return code;
  code.objects.objects.push_back(c::CompileC(text, target));
  code.objects.features = c::FeaturesOf(target);
  return code;
}

const RegisterBackendAs registered_backend({
    .kind = {.name = "c", .devices = {kDLCPU}, .on_host = true, .plain_loops = true},
    .tir_pipeline = Pipeline,
    .emit = EmitCode,
    .formats = {"c"},
    .print = [](const IRModule& mod, const Target&, const std::string&, DebugLevel) { return c::PrintModule(mod); },
    .compile = c::CompileC,
    .print_code = [](const IRModule& mod) { return ForArtifacts(c::PrintModule(mod)); },
    .print_model = c::PrintModel,
});

}  // namespace
}  // namespace baton::codegen
