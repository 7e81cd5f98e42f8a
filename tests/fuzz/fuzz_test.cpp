// SPDX-License-Identifier: Apache-2.0
// Mutants of the corpus through the readers: an error of ours is an answer, anything else is a defect. A few hundred by
// default; `./dev fuzz` runs many under sanitizers.
#include <baton/frontend/onnx.h>
#include <baton/ir/pipeline.h>
#include <baton/ir/structural.h>
#include <baton/ir/target.h>
#include <baton/relay/text.h>
#include <baton/relay/transform.h>
#include <baton/runtime/executor.h>
#include <baton/runtime/params.h>
#include <baton/support/file.h>
#include <baton/support/sha256.h>
#include <doctest/doctest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "frontend/onnx/reader/check.h"
#include "frontend/onnx/reader/reader.h"
#include "harness.h"

namespace baton::fuzz {
namespace {

Corpus Folder(const char* name) { return ReadCorpus(std::string(BATON_FUZZ_CORPUS) + "/" + name); }

TEST_CASE("fuzz: onnx files") {
  auto mutate = [](const std::string& s, const Corpus& corpus, Random* r) {
    return r->OneIn(3) ? MutateBytes(s, corpus, r) : MutateOnnx(s, corpus, r);
  };
  Fuzz("onnx", Folder("onnx"), mutate, [](const std::string& text) {
    auto model = onnx::ParseModel(text);
    std::string scratch;
    std::shared_ptr<const onnx::Bytes> keep;
    for (const onnx::Tensor& t : model->graph.initializers) {
      if (t.data_type == onnx::kString) {
        onnx::TensorStrings(t);
      } else {
        onnx::TensorBytes(*model, t, &scratch, &keep);
      }
    }
    frontend::FromOnnxBytes(text);
  });
}

TEST_CASE("fuzz: the corpus is valid") {
  for (const std::string& text : Folder("onnx")) {
    frontend::OnnxOptions options;
    if (text.find("ConcatFromSequence") != std::string::npos) {
      options.inputs.push_back({"t", frontend::OnnxInput::kSequence, {{2}}});
    }
    CHECK_NOTHROW(frontend::FromOnnxBytes(text, options));
  }
  for (const std::string& text : Folder("relay")) {
    CHECK_NOTHROW(relay::transform::InferType()(relay::ParseModule(text)));
  }
}

TEST_CASE("fuzz: relay texts") {
  Fuzz("relay", Folder("relay"), MutateText, [](const std::string& text) {
    IRModule mod = relay::ParseModule(text);
    // What was read can be printed, and what was printed can be read.
    relay::ParseModule(relay::PrintText(mod));
    relay::transform::InferType()(mod);
  });
}

TEST_CASE("fuzz: json texts") {
  Corpus corpus;
  for (const std::string& text : Folder("relay")) corpus.push_back(SaveJSON(relay::ParseModule(text)));
  auto mutate = [](const std::string& s, const Corpus& all, Random* r) {
    if (r->OneIn(2)) return MutateNumbers(s, r);
    return r->OneIn(4) ? MutateBytes(s, all, r) : MutateText(s, all, r);
  };
  Fuzz("json", corpus, mutate, [](const std::string& text) {
    ObjectRef object = LoadJSON(text);
    SaveJSON(object);
    // What was read may be no sound program; that is an error of ours too.
    if (object.as<IRModuleNode>() == nullptr) return;
    IRModule mod = Downcast<IRModule>(object);
    relay::PrintText(mod);
    relay::transform::InferType()(mod);
  });
}

TEST_CASE("fuzz: saved graphs") {
  auto mutate = [](const std::string& s, const Corpus& all, Random* r) {
    if (r->OneIn(2)) return MutateNumbers(s, r);
    return r->OneIn(4) ? MutateBytes(s, all, r) : MutateText(s, all, r);
  };
  Fuzz("graph", Folder("graph"), mutate, [](const std::string& text) {
    ObjectRef object = LoadJSON(text);
    LoadJSON(SaveJSON(object));
    if (const auto* f = object.as<relay::FunctionNode>()) object = IRModule::FromExpr(GetRef<relay::Function>(f));
    if (object.as<IRModuleNode>() != nullptr) relay::transform::InferType()(Downcast<IRModule>(object));
  });
}

TEST_CASE("fuzz: pipelines") {
  const Corpus corpus = {
      "InferType,FuseOps(max_depth=64),tir.UnrollLoop(auto_max_step=16)",
      "relay.FoldConstant,Sequential(SimplifyExpr,EliminateCommonSubexpr),DeadCodeElimination",
      R"(ConvertLayout(desired_layouts={"nn.conv2d": ["NHWC", "default"]}),AlterOpLayout)",
      "Inline, LambdaLift,\n ToANormalForm,PartialEvaluate(),CombineParallelDense(min_num_branches=3)"};
  auto mutate = [](const std::string& s, const Corpus& all, Random* r) {
    return r->OneIn(3) ? MutateBytes(s, all, r) : MutateText(s, all, r);
  };
  Fuzz("pipeline", corpus, mutate, [](const std::string& text) {
    const String printed = transform::PipelineText(transform::ParsePipeline(text));
    if (transform::PipelineText(transform::ParsePipeline(printed)) != printed)
      throw InternalError("not the same again");
  });
}

TEST_CASE("fuzz: targets") {
  const Corpus corpus = {"llvm", "llvm -mcpu=skylake-avx512 -mattr=+avx512f,-fma -num-cores=4",
                         "opencl -device=intel_graphics", "cuda -arch=sm_75 -libs=cudnn,cublas -max_num_threads=1024",
                         "c -keys=arm_cpu,cpu -mtriple=x86_64-linux-gnu"};
  auto mutate = [](const std::string& s, const Corpus& all, Random* r) {
    return r->OneIn(2) ? MutateBytes(s, all, r) : MutateText(s, all, r);
  };
  Fuzz("target", corpus, mutate, [](const std::string& text) {
    const std::string printed = Target::Make(text).str();
    if (Target::Make(printed).str() != printed) throw InternalError("not the same again");
  });
}

Map<String, NDArray> SomeParams(int64_t seed) {
  Map<String, NDArray> params;
  DataType types[] = {DataType::Float(32), DataType::Int(8), DataType::Float(16), DataType::Int(64), DataType::Bool()};
  for (int64_t i = 0; i <= seed; ++i) {
    std::vector<int64_t> shape(static_cast<size_t>(i % 4), 1 + seed % 3);
    NDArray a = NDArray::Empty(shape, types[(seed + i) % 5]);
    std::memset(a.data(), static_cast<int>(i & 1), a.nbytes());
    params.Set(String("weight" + std::to_string(i)), a);
  }
  return params;
}

TEST_CASE("fuzz: parameter files") {
  Corpus corpus;
  for (int64_t i = 0; i < 6; ++i) corpus.push_back(runtime::SaveParams(SomeParams(i)));
  Fuzz("params", corpus, MutateBytes, [](const std::string& bytes) {
    // What was read can be written, and reads as the same again.
    std::string again = runtime::SaveParams(runtime::LoadParams(bytes));
    if (runtime::SaveParams(runtime::LoadParams(again)) != again) throw InternalError("not the same when read again");
  });
}

/// The end of an artifact with the right digest, so that what lies before it is looked at.
void Seal(std::string* artifact) {
  constexpr size_t kDigest = 32, kMagic = 8;
  if (artifact->size() < kDigest + kMagic) return;
  size_t covered = artifact->size() - kDigest - kMagic;
  auto digest = support::Sha256Of(reinterpret_cast<const uint8_t*>(artifact->data()), covered);
  std::memcpy(artifact->data() + covered, digest.data(), kDigest);
  std::memcpy(artifact->data() + covered + kDigest, "BATONART", kMagic);
}

TEST_CASE("fuzz: metadata of artifacts") {
  const std::string path = std::filesystem::temp_directory_path() / ("baton-fuzz-" + std::to_string(getpid()) + ".so");
  Corpus corpus;
  for (int k = 0; k < 4; ++k) {
    runtime::ExecutableDesc desc;
    std::string constants(static_cast<size_t>(k) * 40, 'c');
    desc.entry = "run" + std::to_string(k);
    desc.target = "llvm -mcpu=x86-64-v3";
    desc.inputs = {{"x", {1, k}, DataType::Float(32)}, {"y", {}, DataType::Int(64)}};
    desc.outputs = {{"z", {k, 2, 3}, DataType::Float(16)}};
    desc.arena_bytes = 64 * static_cast<uint64_t>(k);
    desc.constants = reinterpret_cast<const uint8_t*>(constants.data());
    desc.constants_bytes = constants.size();
    runtime::WriteArtifact(path,
                           "\x7f"
                           "ELF and what follows",
                           20, desc);
    std::ifstream file(path, std::ios::binary);
    corpus.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  auto mutate = [](const std::string& s, const Corpus& all, Random* r) {
    // Mostly the manifest and the trailer, behind the code: at 64 or 128 and further.
    size_t keep = r->OneIn(4) ? 0 : s.rfind("{\"format\"");
    std::string head = s.substr(0, keep), tail = s.substr(keep);
    std::string out = head + (r->OneIn(2) ? MutateBytes(tail, all, r) : MutateText(tail, all, r));
    if (!r->OneIn(4)) Seal(&out);
    return out;
  };
  Fuzz("artifact", corpus, mutate, [&](const std::string& bytes) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
    runtime::ReadManifest(path);
  });
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace baton::fuzz
