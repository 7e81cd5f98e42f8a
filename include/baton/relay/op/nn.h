// SPDX-License-Identifier: Apache-2.0
// Operators of neural networks.
#pragma once

#include <baton/relay/op/tensor.h>

namespace baton::relay {

/// The name for 1, 2 or 3 spatial dimensions.
template <int N>
constexpr const char* ForSpace(const char* w, const char* hw, const char* dhw) {
  static_assert(N >= 1 && N <= 3);
  return N == 1 ? w : N == 2 ? hw : dhw;
}

/// Fields of all convolutions over N spatial dimensions, with attributes D. They are described in groups, since Relay
/// orders them differently.
template <class D, int N>
struct ConvFields : AttrsNode<D> {
  Array<int64_t> strides = Array<int64_t>(size_t{N}, 1);
  Array<int64_t> padding = Array<int64_t>(size_t{N}, 0);
  Array<int64_t> dilation = Array<int64_t>(size_t{N}, 1);
  int64_t groups = 1;
  PrimExpr channels;
  Array<int64_t> kernel_size = NoInts();
  String data_layout = ForSpace<N>("NCW", "NCHW", "NCDHW");
  String kernel_layout = ForSpace<N>("OIW", "OIHW", "OIDHW");
  String out_layout = "";
  DataType out_dtype;

 protected:
  static constexpr void DescribeWindow(auto& d) {
    d(F<&ConvFields::strides>, "Steps of the window, in elements.", AtLeast(1));
    d(F<&ConvFields::padding>, "Zeros around data: one number, one a dimension, or begins and then ends.", AtLeast(0));
    DescribeDilation(d);
  }
  static constexpr void DescribeDilation(auto& d) {
    d(F<&ConvFields::dilation>, "Steps within the window, in elements.", AtLeast(1));
  }
  static constexpr void DescribeGroups(auto& d) {
    d(F<&ConvFields::groups>, "Number of groups that channels are divided into.", AtLeast(1));
  }
  static constexpr void DescribeWeight(auto& d) {
    d(F<&ConvFields::channels>, "Number of output channels; None: as weight says.");
    d(F<&ConvFields::kernel_size>, "Spatial extents of the window; None: as weight says.");
  }
  static constexpr void DescribeLayouts(auto& d, const char* data, const char* kernel) {
    d(F<&ConvFields::data_layout>, data);
    d(F<&ConvFields::kernel_layout>, kernel);
    d(F<&ConvFields::out_layout>, "Layout of the result; \"\": that of data.");
  }
  static constexpr void DescribeDtype(auto& d) {
    d(F<&ConvFields::out_dtype>, "Dtype of sum and result; not given: that of data.");
  }
};

/// Attributes of nn.conv1d, nn.conv2d, nn.conv3d (N spatial dimensions).
template <int N>
struct ConvAttrs : ConvFields<ConvAttrs<N>, N> {
  using Fields = ConvFields<ConvAttrs<N>, N>;
  static constexpr auto _type_key =
      ForSpace<N>("relay.attrs.Conv1DAttrs", "relay.attrs.Conv2DAttrs", "relay.attrs.Conv3DAttrs");
  static constexpr void Describe(auto& d) {
    Fields::DescribeWindow(d);
    Fields::DescribeGroups(d);
    Fields::DescribeWeight(d);
    Fields::DescribeLayouts(
        d, "Layout of data: N, C and the spatial letters, C possibly split.",
        "Layout of weight: O, I (channels of a group) and the spatial letters, O and I possibly split.");
    Fields::DescribeDtype(d);
  }
};
using Conv1DAttrs = ConvAttrs<1>;
using Conv2DAttrs = ConvAttrs<2>;
using Conv3DAttrs = ConvAttrs<3>;

/// Attributes of nn.conv1d_transpose, nn.conv2d_transpose, nn.conv3d_transpose.
template <int N>
struct ConvTransposeAttrs : ConvFields<ConvTransposeAttrs<N>, N> {
  using Fields = ConvFields<ConvTransposeAttrs<N>, N>;
  static constexpr auto _type_key = ForSpace<N>("relay.attrs.Conv1DTransposeAttrs", "relay.attrs.Conv2DTransposeAttrs",
                                                "relay.attrs.Conv3DTransposeAttrs");
  Array<int64_t> output_padding = Array<int64_t>(size_t{N}, 0);
  ConvTransposeAttrs() { this->kernel_layout = ForSpace<N>("IOW", "IOHW", "IODHW"); }
  static constexpr void Describe(auto& d) {
    d(F<&Fields::strides>, "Steps between inputs in the result, in elements.", AtLeast(1));
    d(F<&Fields::padding>, "Elements cut from the result: one number, one a dimension, or begins and then ends.");
    Fields::DescribeDilation(d);
    Fields::DescribeWeight(d);
    Fields::DescribeGroups(d);
    Fields::DescribeLayouts(d, "Layout of data: N, C and the spatial letters.",
                            "Layout of weight: I (input channels), O (output channels of a group), spatial letters.");
    d(F<&ConvTransposeAttrs::output_padding>, "Elements added to the result's ends.", AtLeast(0));
    Fields::DescribeDtype(d);
  }
};
using Conv1DTransposeAttrs = ConvTransposeAttrs<1>;
using Conv2DTransposeAttrs = ConvTransposeAttrs<2>;
using Conv3DTransposeAttrs = ConvTransposeAttrs<3>;

struct DenseAttrs : AttrsNode<DenseAttrs> {
  static constexpr auto _type_key = "relay.attrs.DenseAttrs";
  PrimExpr units;
  DataType out_dtype;
  static constexpr void Describe(auto& d) {
    d(F<&DenseAttrs::units>, "Number of outputs; None: as weight says.");
    d(F<&DenseAttrs::out_dtype>, "Dtype of sum and result; not given: that of data.");
  }
};
struct MatmulNBitsAttrs : AttrsNode<MatmulNBitsAttrs> {
  static constexpr auto _type_key = "relay.attrs.MatmulNBitsAttrs";
  int64_t bits = 4;
  int64_t block = 32;
  int64_t panel = 0;
  int64_t units = 0;
  int64_t activations = 0;
  int64_t terms = 1;
  static constexpr void Describe(auto& d) {
    d(F<&MatmulNBitsAttrs::bits>, "Bits of an element of the weight. R3: 2, 4 or 8.", AtLeast(2));
    d(F<&MatmulNBitsAttrs::block>, "Rows of the weight with one scale. R3: a multiple of the elements of a byte.",
      AtLeast(1));
    d(F<&MatmulNBitsAttrs::panel>,
      "Columns that are side by side in memory: weight, scale and zero are (N / panel, rows, panel) then. 0: they are "
      "(rows, N).",
      AtLeast(0));
    d(F<&MatmulNBitsAttrs::units>, "N of a weight in panels, the last of which may have columns that are not there.",
      AtLeast(0));
    d(F<&MatmulNBitsAttrs::activations>,
      "Bits that a product rounds its data to: 8, or 0 for none. A block of a row becomes whole numbers from -127 to "
      "127 "
      "with a scale. R3: 0 or 8.",
      AtLeast(0));
    d(F<&MatmulNBitsAttrs::terms>,
      "Terms of the sum that are side by side in a panel, as products of bytes take them: with 4 a line of a panel is "
      "panel * 4 bytes, of 4 bits the low halves four terms and the high halves the next four. R3: 1, or 4 in panels.",
      AtLeast(1));
  }
};
struct MatmulAttrs : AttrsNode<MatmulAttrs> {
  static constexpr auto _type_key = "relay.attrs.MatmulAttrs";
  PrimExpr units;
  DataType out_dtype;
  bool transpose_a = false;
  bool transpose_b = false;
  static constexpr void Describe(auto& d) {
    d(F<&MatmulAttrs::units>, "Columns of the result; None: as tensor_b says.");
    d(F<&MatmulAttrs::out_dtype>, "Dtype of sum and result; not given: that of tensor_a.");
    d(F<&MatmulAttrs::transpose_a>, "Whether the last two dimensions of tensor_a are swapped.");
    d(F<&MatmulAttrs::transpose_b>, "The same of tensor_b.");
  }
};
struct MatmulPermutedAttrs : AttrsNode<MatmulPermutedAttrs> {
  static constexpr auto _type_key = "relay.attrs.MatmulPermutedAttrs";
  Array<int64_t> axes;
  static constexpr void Describe(auto& d) {
    d(F<&MatmulPermutedAttrs::axes>,
      "The order in which the product takes the dimensions of tensor_b, as of transpose.", kRequired);
  }
};
struct AttentionAttrs : AttrsNode<AttentionAttrs> {
  static constexpr auto _type_key = "relay.attrs.AttentionAttrs";
  double scale = 1;
  bool causal = false;
  int64_t window = 0;
  int64_t guard = 0;
  String query_layout = "BHSD";
  String key_layout = "BHSD";
  String value_layout = "BHSD";
  String out_layout = "BHSD";
  static constexpr void Describe(auto& d) {
    d(F<&AttentionAttrs::scale>, "What products of query and key are multiplied by; 1 / sqrt(D) as a rule.");
    d(F<&AttentionAttrs::causal>,
      "Whether a query sees only keys up to its own place; the last query has the place of the last key.");
    d(F<&AttentionAttrs::window>,
      "Keys up to its own place that a causal query sees, in elements; 0: all of them. R7: causal where it is not 0.",
      AtLeast(0));
    d(F<&AttentionAttrs::guard>,
      "Queries whose result is 0 in place of NaN: 0 none, 1 a query whose scores are all -inf, which sees no key, 2 "
      "also one "
      "whose "
      "weights are NaN otherwise. R8: 0, 1 or 2.",
      AtLeast(0));
    d(F<&AttentionAttrs::query_layout>,
      "Order of the dimensions of query: batch (B), head (H), place in the sequence (S), element of a head (D). R3: "
      "each letter once.");
    d(F<&AttentionAttrs::key_layout>, "The same of key.");
    d(F<&AttentionAttrs::value_layout>, "The same of value.");
    d(F<&AttentionAttrs::out_layout>, "The same of the result.");
  }
};
struct BatchMatmulAttrs : AttrsNode<BatchMatmulAttrs> {
  static constexpr auto _type_key = "relay.attrs.BatchMatmulAttrs";
  DataType out_dtype;
  bool transpose_a = false;
  bool transpose_b = true;
  static constexpr void Describe(auto& d) {
    d(F<&BatchMatmulAttrs::out_dtype>, "Dtype of sum and result; not given: that of tensor_a.");
    d(F<&BatchMatmulAttrs::transpose_a>, "Whether tensor_a is (batch, K, M).");
    d(F<&BatchMatmulAttrs::transpose_b>, "Whether tensor_b is (batch, N, K).");
  }
};

/// Fields of normalisations with scale and shift, with attributes D.
template <class D, int64_t kAxis>
struct NormFields : AttrsNode<D> {
  int64_t axis = kAxis;
  double epsilon = 1e-5;
  bool center = true;
  bool scale = true;

 protected:
  static constexpr void DescribeNorm(auto& d, const char* axis) {
    d(F<&NormFields::axis>, axis);
    d(F<&NormFields::epsilon>, "Added to the variance.");
    d(F<&NormFields::center>, "Whether beta is added.");
    d(F<&NormFields::scale>, "Whether gamma is multiplied.");
  }
};
/// The layout of data, of attributes D of pools.
template <class D, int N>
struct PoolLayout : AttrsNode<D> {
  String layout = ForSpace<N>("NCW", "NCHW", "NCDHW");
  String out_layout = "";
  static constexpr void Describe(auto& d) {
    d(F<&PoolLayout::layout>, "Layout of data: N, C and the spatial letters, C possibly split.");
    d(F<&PoolLayout::out_layout>, "That of data or \"\".");
  }
};
/// Fields of all pools with a window.
template <class D, int N>
struct PoolFields : PoolLayout<D, N> {
  Array<int64_t> pool_size = Array<int64_t>(size_t{N}, 1);
  Array<int64_t> strides = Array<int64_t>(size_t{N}, 1);
  Array<int64_t> dilation = Array<int64_t>(size_t{N}, 1);
  Array<int64_t> padding = Array<int64_t>(size_t{N}, 0);
  bool ceil_mode = false;
  static constexpr void Describe(auto& d) {
    d(F<&PoolFields::pool_size>, "Extents of the window, in elements.", AtLeast(1));
    d(F<&PoolFields::strides>, "Steps of the window.", AtLeast(1));
    d(F<&PoolFields::dilation>, "Steps within the window.", AtLeast(1));
    d(F<&PoolFields::padding>, "Around data: one number, one a dimension, or begins and then ends.", AtLeast(0));
    PoolLayout<D, N>::Describe(d);
    d(F<&PoolFields::ceil_mode>, "Whether a window that begins inside and ends outside counts.");
  }
};

/// Attributes of nn.max_pool1d, nn.max_pool2d, nn.max_pool3d.
template <int N>
struct MaxPoolAttrs : PoolFields<MaxPoolAttrs<N>, N> {
  static constexpr auto _type_key =
      ForSpace<N>("relay.attrs.MaxPool1DAttrs", "relay.attrs.MaxPool2DAttrs", "relay.attrs.MaxPool3DAttrs");
};
/// Attributes of nn.avg_pool1d, nn.avg_pool2d, nn.avg_pool3d.
template <int N>
struct AvgPoolAttrs : PoolFields<AvgPoolAttrs<N>, N> {
  static constexpr auto _type_key =
      ForSpace<N>("relay.attrs.AvgPool1DAttrs", "relay.attrs.AvgPool2DAttrs", "relay.attrs.AvgPool3DAttrs");
  bool count_include_pad = false;
  static constexpr void Describe(auto& d) {
    PoolFields<AvgPoolAttrs, N>::Describe(d);
    d(F<&AvgPoolAttrs::count_include_pad>, "Whether zeros of the padding count as elements.");
  }
};
struct MaxPoolWithIndicesAttrs : AttrsNode<MaxPoolWithIndicesAttrs> {
  static constexpr auto _type_key = "relay.attrs.MaxPoolWithIndicesAttrs";
  Array<int64_t> pool_size;
  Array<int64_t> strides = NoInts();
  Array<int64_t> dilation = NoInts();
  Array<int64_t> padding = NoInts();
  bool ceil_mode = false;
  int64_t storage_order = 0;
  static constexpr void Describe(auto& d) {
    d(F<&MaxPoolWithIndicesAttrs::pool_size>, "Extents of the window, one a spatial dimension.", kRequired, AtLeast(1));
    d(F<&MaxPoolWithIndicesAttrs::strides>, "Steps of the window; None: 1.");
    d(F<&MaxPoolWithIndicesAttrs::dilation>, "Steps within the window; None: 1.");
    d(F<&MaxPoolWithIndicesAttrs::padding>, "Begins, then ends; None: 0.");
    d(F<&MaxPoolWithIndicesAttrs::ceil_mode>, "Whether a window that begins inside and ends outside counts.");
    d(F<&MaxPoolWithIndicesAttrs::storage_order>,
      "How indices count within data: 0 row-major, 1 column-major in space.", AtLeast(0), runtime::AtMost(1));
  }
};
/// Attributes of pools over all of space.
template <int N>
struct GlobalPoolAttrs : PoolLayout<GlobalPoolAttrs<N>, N> {
  static constexpr auto _type_key =
      ForSpace<N>("relay.attrs.GlobalPool1DAttrs", "relay.attrs.GlobalPool2DAttrs", "relay.attrs.GlobalPool3DAttrs");
};
struct UpSamplingAttrs : AttrsNode<UpSamplingAttrs> {
  static constexpr auto _type_key = "relay.attrs.UpSamplingAttrs";
  double scale_h = 1;
  double scale_w = 1;
  String layout = "NCHW";
  String method = "nearest_neighbor";
  bool align_corners = false;
  static constexpr void Describe(auto& d) {
    d(F<&UpSamplingAttrs::scale_h>, "Factor of the height.", AtLeast(0));
    d(F<&UpSamplingAttrs::scale_w>, "Factor of the width.", AtLeast(0));
    d(F<&UpSamplingAttrs::layout>, "\"NCHW\" or \"NHWC\".");
    d(F<&UpSamplingAttrs::method>, "\"nearest_neighbor\", \"bilinear\" or \"bicubic\".");
    d(F<&UpSamplingAttrs::align_corners>, "Whether corner elements keep their place.");
  }
};

namespace op {
extern BATON_DLL const Op conv1d, conv2d, conv3d, conv2d_nchwc, depthwise_conv2d_nchwc, conv1d_transpose,
    conv2d_transpose, conv3d_transpose, deformable_conv2d, dense, dense_pack, unpack_panels, matmul, matmul_nbits,
    matmul_permuted, unpack_nbits, recurrence, batch_matmul, einsum, attention;
extern BATON_DLL const Op batch_norm, instance_norm, layer_norm, group_norm, rms_norm, l2_normalize, lp_normalize, lrn,
    log_softmax, hardmax, dropout;
extern BATON_DLL const Op max_pool1d, max_pool2d, max_pool3d, avg_pool1d, avg_pool2d, avg_pool3d, lp_pool1d, lp_pool2d,
    lp_pool3d, max_pool_with_indices, max_unpool, global_max_pool1d, global_max_pool2d, global_max_pool3d,
    global_avg_pool1d, global_avg_pool2d, global_avg_pool3d, adaptive_max_pool1d, adaptive_max_pool2d,
    adaptive_max_pool3d, adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d;
extern BATON_DLL const Op conv1d_backward_weight, conv2d_backward_weight, conv3d_backward_weight, max_pool1d_grad,
    max_pool2d_grad, max_pool3d_grad, avg_pool1d_grad, avg_pool2d_grad, avg_pool3d_grad;
extern BATON_DLL const Op nll_loss, cross_entropy, cross_entropy_with_logits, upsampling, dft, dilate;
}  // namespace op

/// The convolution over 1, 2 or 3 spatial dimensions.
BATON_DLL const Op& ConvOp(int spatial);
/// The spatial dimensions of such an operator; 0 of any other.
BATON_DLL int ConvDims(const RelayExpr& op);
struct OpDef;
/// Whether a definition is that of a norm by the data's own moments which SimplifyInference takes apart when asked.
BATON_DLL bool IsNormOfMoments(const OpDef* def);

}  // namespace baton::relay
