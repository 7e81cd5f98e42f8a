// SPDX-License-Identifier: Apache-2.0
// Operators with floating results that have no gradient, and why.
#include <baton/relay/gradient.h>

namespace baton::relay {
namespace {

constexpr auto kNotYet = "nobody wrote its rule yet";
constexpr auto kDynamic = "its result's shape is an operand; run DynamicToStatic first";
constexpr auto kHost = "it selects or orders on the host, where adjoints have no way back";
constexpr auto kDrawn = "it draws random numbers";
constexpr auto kBoxes = "it selects boxes by comparing them";

const bool registered_none = [] {
  DefineNoGradients({{"unique", kHost},
                     {"compress", kHost},
                     {"linalg.cofactor", kNotYet},
                     {"one_hot", "its positions are whole numbers"},
                     {"arange", "how many numbers it gives is no smooth function"},
                     {"vision.roi_align", kNotYet},
                     {"vision.roi_pool", kNotYet},
                     {"vision.all_class_non_max_suppression", kBoxes},
                     {"vision.get_valid_counts", kBoxes},
                     {"vision.non_max_suppression", kBoxes},
                     {"vision.multibox_prior", kBoxes},
                     {"vision.multibox_transform_loc", kBoxes},
                     {"random.uniform", kDrawn},
                     {"random.normal", kDrawn},
                     {"random.bernoulli", kDrawn},
                     {"random.multinomial", kDrawn},
                     {"dyn.full", kDynamic},
                     {"dyn.image.resize2d", kDynamic},
                     {"dyn.nn.pad", kDynamic},
                     {"dyn.nn.upsampling", kDynamic},
                     {"dyn.one_hot", kDynamic},
                     {"dyn.onnx", kDynamic},
                     {"dyn.sparse_to_dense", kDynamic},
                     {"dyn.strided_slice", kDynamic},
                     {"dyn.tile", kDynamic},
                     {"dyn.topk", kDynamic},
                     {"onnx.tfidf", "it counts words"},
                     {"vm.invoke_tvm_op", "it calls compiled code; differentiate before lowering"},
                     {"vm.reshape_tensor", "it belongs to lowered programs; differentiate before lowering"}});
  return true;
}();

}  // namespace
}  // namespace baton::relay
