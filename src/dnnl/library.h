// SPDX-License-Identifier: Apache-2.0
// oneDNN's C interface, of version 2 or 3, found when it is asked for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace baton::dnnl {

using Dims = std::vector<int64_t>;

/// Names by oneDNN's numbers, which versions 2 and 3 share; but for kRelu.
inline constexpr int kOk = 0, kF32 = 3, kForwardInference = 96, kConvolutionDirect = 1, kBinaryAdd = 0x1fff0,
                     kBinaryMul = 0x1fff1, kTagAny = 1, kQueryWeights = 131;
inline constexpr int kArgSrc = 1, kArgSrc1 = 2, kArgDst = 17, kArgWeights = 33, kArgBias = 41;
struct Arg {
  int what;
  void* memory;
};

/// A failure, in words for users.
struct Failure {
  std::string text;
};

/// A description of an array: a struct of version 2, or a handle of version 3.
using Desc = std::shared_ptr<void>;
/// Things of oneDNN that are destroyed with their owner.
using Handle = std::shared_ptr<void>;

class Library {
 public:
  /// The library of this process. Throws Failure that says what to install where there is none.
  static const Library& Get();
  /// Why there is none; "" where there is one.
  static std::string WhyNone();

  Desc Plain(const Dims& dims) const;                         ///< float32 in row-major order
  Desc Strided(const Dims& dims, const Dims& strides) const;  ///< float32 with steps in elements
  Desc Any(const Dims& dims) const;                           ///< float32 in the order that a primitive likes best
  Handle Memory(const void* desc, void* data) const;          ///< null data: its own memory
  void SetData(const Handle& memory, void* data) const;
  void* DataOf(const Handle& memory) const;

  struct Convolution {
    Dims strides, dilates, before, after;  ///< of the spatial dimensions; dilates: 0 for none
  };
  /// Descriptions of primitives; `bias` may be null. `relu` follows.
  Handle ConvolutionOf(const Convolution& c, const Desc& src, const Desc& weights, const Desc* bias, const Desc& dst,
                       bool relu) const;
  Handle InnerProduct(const Desc& src, const Desc& weights, const Desc* bias, const Desc& dst, bool relu) const;
  Handle Relu(const Desc& data) const;
  Handle Binary(int kind, const Desc& a, const Desc& b, const Desc& dst) const;
  Handle Reorder(const void* from, const void* to) const;
  /// The order of weights that a primitive likes best; it lives as long as `description`.
  const void* WeightsOf(const Handle& description) const;
  bool Same(const void* a, const void* b) const;
  Handle Primitive(const Handle& description) const;
  void Run(const Handle& primitive, const std::vector<Arg>& args) const;

 private:
  friend struct Loaded;
  Library() = default;
  void Check(int status, const char* what) const;
  Handle Owned(void* object, const char* destroy) const;
  Handle Attributes(bool relu) const;
  Handle DescribedV2(const void* op, const Handle& attributes) const;
  template <class F>
  F Function(const char* name) const;

  void* library_ = nullptr;
  int major_ = 0;
  void *engine_ = nullptr, *stream_ = nullptr;
};

}  // namespace baton::dnnl
