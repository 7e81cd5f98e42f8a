// SPDX-License-Identifier: Apache-2.0
#include "driver/asked.h"

#include <baton/ir/transform.h>

#include <map>
#include <string>

namespace baton::driver {

BATON_REGISTER_PASS_CONFIG_OPTION("precision", String,
                                  "What products of float32 are computed in: \"exact\", which is the default and "
                                  "leaves them as they are, \"bf16\" or \"f16\". Sums, "
                                  "softmax and norms are float32 in each, inputs and outputs keep their types.");

std::optional<DataType> AskedPrecision() {
  const String asked = transform::PassContext::Current()->GetConfig<String>("precision", "exact");
  if (asked == "exact") return {};
  if (asked == "bf16") return DataType::BFloat16();
  if (asked == "f16") return DataType::Float(16);
  throw runtime::ValueError("precision is \"" + asked.str() + "\"; it is \"exact\", \"bf16\" or \"f16\"");
}

BATON_REGISTER_PASS_CONFIG_OPTION(
    "activations", String,
    "How the data of products whose weights are stored in few bits (`weights`) is rounded: \"exact\", which is the "
    "default and leaves it as it is, or \"int8\", with a scale for each block of a row, so that bytes are multiplied.");
BATON_REGISTER_PASS_CONFIG_OPTION(
    "weights", String,
    "How constant weights of products are stored: \"exact\", which is the default and leaves them as they are, "
    "\"int8\" or \"int4\", with a "
    "scale and a zero point for each 32 weights of an output, or for another power of two: \"int4:128\".");

std::optional<relay::transform::QuantizeWeightsOptions> AskedWeights() {
  const std::string asked = transform::PassContext::Current()->GetConfig<String>("weights", "exact").str();
  const std::string rounded = transform::PassContext::Current()->GetConfig<String>("activations", "exact").str();
  if (rounded != "exact" && rounded != "int8")
    throw runtime::ValueError("activations is \"" + rounded + "\"; it is \"exact\" or \"int8\"");
  const int64_t data = rounded == "int8" ? 8 : 0;
  if (asked == "exact") {
    if (data == 0) return {};
    throw runtime::ValueError(
        "activations is \"int8\", which is for products whose weights are stored in few bits: say weights, \"int8\" or "
        "\"int4\", too");
  }
  static const std::map<std::string, int64_t> kBits = {{"int8", 8}, {"int4", 4}};
  static const std::map<std::string, int64_t> kBlocks = {{"", 32},    {":16", 16},   {":32", 32},
                                                         {":64", 64}, {":128", 128}, {":256", 256}};
  const size_t colon = std::min(asked.find(':'), asked.size());
  const auto bits = kBits.find(asked.substr(0, colon)), block = kBlocks.find(asked.substr(colon));
  if (bits == kBits.end() || block == kBlocks.end()) {
    throw runtime::ValueError(
        "weights is \"" + asked +
        "\"; it is \"exact\", \"int8\" or \"int4\", with the weights of a block (16, 32, 64, 128 or 256) behind a "
        "colon where they are not 32: \"int4:128\"");
  }
  relay::transform::QuantizeWeightsOptions options;
  options.bits = bits->second, options.block = block->second, options.activations = data;
  return options;
}

}  // namespace baton::driver
