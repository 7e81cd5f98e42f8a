// SPDX-License-Identifier: Apache-2.0
// Mutants of the corpus through the readers: an error of ours is an answer, anything else is a defect. A few hundred by
// default; `python tests/fuzz/run.py` runs many under sanitizers.
#include <baton/frontend/onnx.h>
#include <baton/relay/text.h>
#include <baton/relay/transform.h>
#include <doctest/doctest.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

#include "frontend/onnx/check.h"
#include "frontend/onnx/reader.h"
#include "mutate.h"

namespace baton::fuzz {
namespace {

size_t FromEnv(const char* name, size_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : static_cast<size_t>(std::strtoull(text, nullptr, 10));
}

/// Runs `use` on mutants BATON_FUZZ_FIRST, ... of BATON_FUZZ_COUNT. The mutant under way stands in BATON_FUZZ_KEEP, so
/// that one that kills the process is not lost.
template <typename Mutate, typename Use>
void Fuzz(const char* folder, size_t count, Mutate&& mutate, Use&& use) {
  std::vector<std::string> corpus = ReadCorpus(std::string(BATON_FUZZ_CORPUS) + "/" + folder);
  REQUIRE(!corpus.empty());
  size_t first = FromEnv("BATON_FUZZ_FIRST", 0);
  const char* keep = std::getenv("BATON_FUZZ_KEEP");
  size_t refused = 0, total = FromEnv("BATON_FUZZ_COUNT", count);
  for (size_t i = first; i < first + total; ++i) {
    Random random(i);
    std::string mutant = mutate(corpus[i % corpus.size()], corpus, &random);
    if (keep != nullptr) {
      std::ofstream(keep, std::ios::binary) << mutant;
      std::ofstream(std::string(keep) + ".index") << i;
    }
    std::string wrong;
    try {
      use(mutant);
    } catch (const InternalError& e) {
      wrong = e.what();
    } catch (const Error&) {
      ++refused;
    } catch (const std::exception& e) {
      wrong = e.what();
    }
    INFO("mutant ", i, " of ", folder, ": ", wrong);
    CHECK(wrong.empty());
  }
  // Mutants that are all refused, or none, would show little.
  CHECK(refused * 20 > total);
  CHECK(refused < total);
}

TEST_CASE("fuzz: onnx files") {
  auto mutate = [](const std::string& s, const std::vector<std::string>& corpus, Random* r) {
    return r->OneIn(3) ? MutateBytes(s, corpus, r) : MutateOnnx(s, corpus, r);
  };
  Fuzz("onnx", 400, mutate, [](const std::string& text) {
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
  for (const std::string& text : ReadCorpus(std::string(BATON_FUZZ_CORPUS) + "/onnx")) {
    frontend::OnnxOptions options;
    if (text.find("ConcatFromSequence") != std::string::npos) {
      options.inputs.push_back({"t", frontend::OnnxInput::kSequence, {{2}}});
    }
    CHECK_NOTHROW(frontend::FromOnnxBytes(text, options));
  }
  for (const std::string& text : ReadCorpus(std::string(BATON_FUZZ_CORPUS) + "/relay")) {
    CHECK_NOTHROW(relay::transform::InferType()(relay::ParseModule(text)));
  }
}

TEST_CASE("fuzz: relay texts") {
  Fuzz("relay", 400, MutateText, [](const std::string& text) {
    IRModule mod = relay::ParseModule(text);
    // What was read can be printed, and what was printed can be read.
    relay::ParseModule(relay::PrintText(mod));
    relay::transform::InferType()(mod);
  });
}

}  // namespace
}  // namespace baton::fuzz
