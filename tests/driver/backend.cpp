// SPDX-License-Identifier: Apache-2.0
// A kind of target that nothing else knows: what it registers is asked of it, at the same places as of all others.
#include <baton/codegen/backend.h>
#include <baton/driver/driver.h>
#include <baton/relay/text.h>
#include <baton/tir/transform.h>
#include <doctest/doctest.h>

using namespace baton;  // NOLINT

namespace {

int toy_passes = 0, toy_texts = 0;

transform::Pass ToyCount() {
  return tir::transform::CreatePrimFuncPass(
      [](tir::PrimFunc f, IRModule, transform::PassContext) {
        ++toy_passes;
        return f;
      },
      0, "CountFunctions", {});
}

std::string ToyText(const IRModule& mod) {
  ++toy_texts;
  std::string text = "toy:";
  for (const auto& [var, func] : mod->functions) text += " " + var->name_hint.str();
  return text;
}

void RegisterToy() {
  static const bool once = [] {
    codegen::RegisterBackend({
        .kind = {.name = "toy_text", .devices = {kDLVPI}, .work_items = true, .no_processor = "it has none"},
        .tir_pipeline =
            [] {
              return transform::Pass(
                  transform::Sequential(Array<transform::Pass>{transform::GetPass("tir.StorageFlatten"), ToyCount()},
                                        "toy_text.LowerPipeline"));
            },
        .emit = [](const IRModule& mod, const Target&,
                   const codegen::EmitOptions&) { return codegen::Code{.objects = {}, .text = ToyText(mod)}; },
        .formats = {"toy"},
        .print = [](const IRModule& mod, const Target&, const std::string&,
                    codegen::DebugLevel) { return ToyText(mod); },
    });
    return true;
  }();
  (void)once;
}

constexpr const char* kToyModel = "#[version = \"0.0.5\"]\ndef @main(%x: Tensor[(4), float32]) { tanh(add(%x, 1f)) }\n";

TEST_CASE("a backend that is registered has its own passes and its own text") {
  RegisterToy();
  const Target toy = Target::Make("toy_text");
  toy_passes = toy_texts = 0;
  const std::string text = driver::EmitText(relay::ParseModule(kToyModel), toy, "toy");
  CHECK(text == "toy: fused_add_tanh");
  CHECK(toy_passes == 1);
  CHECK(toy_texts == 1);
  // Each stage before is there, and makes no code.
  CHECK(driver::EmitText(relay::ParseModule(kToyModel), toy, "tir").find("@fused_add_tanh") != std::string::npos);
  CHECK(driver::EmitText(relay::ParseModule(kToyModel), toy, "vm").find("baton_region_0") != std::string::npos);
  CHECK(toy_texts == 1);
  CHECK_THROWS_WITH_AS(driver::EmitText(relay::ParseModule(kToyModel), toy, "opencl"),
                       "the program has no part that runs on opencl", UnsupportedError);
}

TEST_CASE("the host's backend has the same interface") {
  const codegen::Backend& host = codegen::BackendOf(Target::Host());
  CHECK(host.kind.on_host);
  CHECK(host.tir_pipeline()->Info()->name == "LowerPipeline");
  CHECK(codegen::BackendFor(kDLCPU) == &host);
  CHECK(codegen::BackendFor(kDLVulkan) == nullptr);
  CHECK(host.HasFormat("asm"));
  CHECK(!codegen::IsDeviceFormat("asm"));
  CHECK(codegen::IsDeviceFormat("opencl"));
}

}  // namespace
