// SPDX-License-Identifier: Apache-2.0
#include "dnnl/library.h"

#include <dlfcn.h>

#include <cstdlib>

namespace baton::dnnl {
namespace {

/// Version 2 has structs of open fields: more bytes than the largest of them has.
constexpr size_t kStructBytes = 8192;
Handle Blank() { return Handle(calloc(1, kStructBytes), free); }
const int64_t* Data(const Dims& dims) { return dims.data(); }
int Count(const Dims& dims) { return static_cast<int>(dims.size()); }

struct Version {
  int major, minor, patch;
};

}  // namespace

template <class F>
F Library::Function(const char* name) const {
  auto* f = reinterpret_cast<F>(dlsym(library_, name));
  if (!f) throw Failure{std::string("the oneDNN library has no function ") + name};
  return f;
}

struct Loaded {
  Library library;
  std::string why;

  Loaded() {
    const char* chosen = std::getenv("BATON_DNNL_LIBRARY");
    std::vector<std::string> names = {"libdnnl.so.3", "libdnnl.so.2"};
    if (chosen && *chosen) names = {chosen};
    for (const std::string& name : names) {
      if (!library.library_) library.library_ = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    }
    if (!library.library_) {
      why = "there is no oneDNN library (";
      for (const std::string& name : names) why += (name == names[0] ? "" : ", ") + name;
      why += "): apt-get install libdnnl2 or libdnnl3, or let BATON_DNNL_LIBRARY be its path";
      return;
    }
    try {
      library.major_ = library.Function<const Version* (*)()>("dnnl_version")()->major;
      if (library.major_ != 2 && library.major_ != 3) {
        throw Failure{"the oneDNN library is of version " + std::to_string(library.major_) + "; 2 and 3 are known"};
      }
      library.Check(library.Function<int (*)(void**, int, size_t)>("dnnl_engine_create")(&library.engine_, 1, 0),
                    "the engine");
      library.Check(library.Function<int (*)(void**, void*, unsigned)>("dnnl_stream_create")(&library.stream_,
                                                                                             library.engine_, 1),
                    "the stream");
    } catch (const Failure& failure) {
      why = failure.text;
    }
  }
  static const Loaded& Get() {
    static const Loaded loaded;
    return loaded;
  }
};

const Library& Library::Get() {
  const Loaded& loaded = Loaded::Get();
  if (!loaded.why.empty()) throw Failure{loaded.why};
  return loaded.library;
}
std::string Library::WhyNone() { return Loaded::Get().why; }

void Library::Check(int status, const char* what) const {
  if (status == kOk) return;
  const char* words = status == 1   ? "no memory"
                      : status == 2 ? "an argument that it refuses"
                      : status == 3 ? "it has no code for it"
                                    : "it failed";
  throw Failure{std::string("oneDNN, ") + what + ": " + words};
}
Handle Library::Owned(void* object, const char* destroy) const {
  auto* f = Function<int (*)(void*)>(destroy);
  return Handle(object, [f](void* p) { f(p); });
}

// ---- Arrays

Desc Library::Strided(const Dims& dims, const Dims& strides) const {
  if (major_ == 2) {
    const Desc desc = Blank();
    auto* init = Function<int (*)(void*, int, const int64_t*, int, const int64_t*)>("dnnl_memory_desc_init_by_strides");
    Check(init(desc.get(), Count(dims), Data(dims), kF32, Data(strides)), "an array");
    return desc;
  }
  void* made = nullptr;
  auto* create =
      Function<int (*)(void**, int, const int64_t*, int, const int64_t*)>("dnnl_memory_desc_create_with_strides");
  Check(create(&made, Count(dims), Data(dims), kF32, Data(strides)), "an array");
  return Owned(made, "dnnl_memory_desc_destroy");
}
Desc Library::Plain(const Dims& dims) const {
  Dims strides(dims.size(), 1);
  for (size_t d = dims.size(); d-- > 1;) strides[d - 1] = strides[d] * dims[d];
  return Strided(dims, strides);
}
Desc Library::Any(const Dims& dims) const {
  if (major_ == 2) {
    const Desc desc = Blank();
    auto* init = Function<int (*)(void*, int, const int64_t*, int, int)>("dnnl_memory_desc_init_by_tag");
    Check(init(desc.get(), Count(dims), Data(dims), kF32, kTagAny), "an array");
    return desc;
  }
  void* made = nullptr;
  auto* create = Function<int (*)(void**, int, const int64_t*, int, int)>("dnnl_memory_desc_create_with_tag");
  Check(create(&made, Count(dims), Data(dims), kF32, kTagAny), "an array");
  return Owned(made, "dnnl_memory_desc_destroy");
}
Handle Library::Memory(const void* desc, void* data) const {
  void* made = nullptr;
  void* const own = reinterpret_cast<void*>(~uintptr_t{0});  // the library allocates
  Check(Function<int (*)(void**, const void*, void*, void*)>("dnnl_memory_create")(&made, desc, engine_,
                                                                                   data ? data : own),
        "memory");
  return Owned(made, "dnnl_memory_destroy");
}
void Library::SetData(const Handle& memory, void* data) const {
  static auto* set = Function<int (*)(void*, void*)>("dnnl_memory_set_data_handle");
  Check(set(memory.get(), data), "memory");
}
void* Library::DataOf(const Handle& memory) const {
  void* data = nullptr;
  Check(Function<int (*)(const void*, void**)>("dnnl_memory_get_data_handle")(memory.get(), &data), "memory");
  return data;
}
bool Library::Same(const void* a, const void* b) const {
  return Function<int (*)(const void*, const void*)>("dnnl_memory_desc_equal")(a, b) != 0;
}

// ---- Primitives

Handle Library::Attributes(bool relu) const {
  void *made = nullptr, *operations = nullptr;
  Check(Function<int (*)(void**)>("dnnl_primitive_attr_create")(&made), "attributes");
  Handle attributes = Owned(made, "dnnl_primitive_attr_destroy");
  if (!relu) return attributes;
  Check(Function<int (*)(void**)>("dnnl_post_ops_create")(&operations), "operations that follow");
  const Handle owned = Owned(operations, "dnnl_post_ops_destroy");
  Check(major_ == 2
            ? Function<int (*)(void*, float, int, float, float)>("dnnl_post_ops_append_eltwise")(operations, 1, 0x1f, 0,
                                                                                                 0)
            : Function<int (*)(void*, int, float, float)>("dnnl_post_ops_append_eltwise")(operations, 0x20, 0, 0),
        "relu that follows");
  Check(Function<int (*)(void*, const void*)>("dnnl_primitive_attr_set_post_ops")(made, operations), "attributes");
  return attributes;
}
Handle Library::DescribedV2(const void* op, const Handle& attributes) const {
  void* made = nullptr;
  auto* create = Function<int (*)(void**, const void*, const void*, void*, const void*)>("dnnl_primitive_desc_create");
  Check(create(&made, op, attributes.get(), engine_, nullptr), "a primitive");
  return Owned(made, "dnnl_primitive_desc_destroy");
}

Handle Library::ConvolutionOf(const Convolution& c, const Desc& src, const Desc& weights, const Desc* bias,
                              const Desc& dst, bool relu) const {
  const Handle attributes = Attributes(relu);
  const void* b = bias ? bias->get() : nullptr;
  if (major_ == 2) {
    const Handle op = Blank();
    auto* init =
        Function<int (*)(void*, int, int, const void*, const void*, const void*, const void*, const int64_t*,
                         const int64_t*, const int64_t*, const int64_t*)>("dnnl_dilated_convolution_forward_desc_init");
    Check(init(op.get(), kForwardInference, kConvolutionDirect, src.get(), weights.get(), b, dst.get(), Data(c.strides),
               Data(c.dilates), Data(c.before), Data(c.after)),
          "a convolution");
    return DescribedV2(op.get(), attributes);
  }
  void* made = nullptr;
  auto* create = Function<int (*)(void**, void*, int, int, const void*, const void*, const void*, const void*,
                                  const int64_t*, const int64_t*, const int64_t*, const int64_t*, const void*)>(
      "dnnl_convolution_forward_primitive_desc_create");
  Check(create(&made, engine_, kForwardInference, kConvolutionDirect, src.get(), weights.get(), b, dst.get(),
               Data(c.strides), Data(c.dilates), Data(c.before), Data(c.after), attributes.get()),
        "a convolution");
  return Owned(made, "dnnl_primitive_desc_destroy");
}
Handle Library::InnerProduct(const Desc& src, const Desc& weights, const Desc* bias, const Desc& dst, bool relu) const {
  const Handle attributes = Attributes(relu);
  const void* b = bias ? bias->get() : nullptr;
  if (major_ == 2) {
    const Handle op = Blank();
    auto* init = Function<int (*)(void*, int, const void*, const void*, const void*, const void*)>(
        "dnnl_inner_product_forward_desc_init");
    Check(init(op.get(), kForwardInference, src.get(), weights.get(), b, dst.get()), "a product");
    return DescribedV2(op.get(), attributes);
  }
  void* made = nullptr;
  auto* create = Function<int (*)(void**, void*, int, const void*, const void*, const void*, const void*, const void*)>(
      "dnnl_inner_product_forward_primitive_desc_create");
  Check(create(&made, engine_, kForwardInference, src.get(), weights.get(), b, dst.get(), attributes.get()),
        "a product");
  return Owned(made, "dnnl_primitive_desc_destroy");
}
Handle Library::Relu(const Desc& data) const {
  const Handle attributes = Attributes(false);
  if (major_ == 2) {
    const Handle op = Blank();
    auto* init = Function<int (*)(void*, int, int, const void*, float, float)>("dnnl_eltwise_forward_desc_init");
    Check(init(op.get(), kForwardInference, 0x1f, data.get(), 0, 0), "relu");
    return DescribedV2(op.get(), attributes);
  }
  void* made = nullptr;
  auto* create = Function<int (*)(void**, void*, int, int, const void*, const void*, float, float, const void*)>(
      "dnnl_eltwise_forward_primitive_desc_create");
  Check(create(&made, engine_, kForwardInference, 0x20, data.get(), data.get(), 0, 0, attributes.get()), "relu");
  return Owned(made, "dnnl_primitive_desc_destroy");
}
Handle Library::Binary(int kind, const Desc& a, const Desc& b, const Desc& dst) const {
  const Handle attributes = Attributes(false);
  if (major_ == 2) {
    const Handle op = Blank();
    auto* init = Function<int (*)(void*, int, const void*, const void*, const void*)>("dnnl_binary_desc_init");
    Check(init(op.get(), kind, a.get(), b.get(), dst.get()), "a sum or product of elements");
    return DescribedV2(op.get(), attributes);
  }
  void* made = nullptr;
  auto* create = Function<int (*)(void**, void*, int, const void*, const void*, const void*, const void*)>(
      "dnnl_binary_primitive_desc_create");
  Check(create(&made, engine_, kind, a.get(), b.get(), dst.get(), attributes.get()), "a sum or product of elements");
  return Owned(made, "dnnl_primitive_desc_destroy");
}
Handle Library::Reorder(const void* from, const void* to) const {
  void* made = nullptr;
  auto* create = Function<int (*)(void**, const void*, void*, const void*, void*, const void*)>(
      "dnnl_reorder_primitive_desc_create");
  Check(create(&made, from, engine_, to, engine_, nullptr), "weights in another order");
  return Owned(made, "dnnl_primitive_desc_destroy");
}
const void* Library::WeightsOf(const Handle& description) const {
  return Function<const void* (*)(const void*, int, int)>("dnnl_primitive_desc_query_md")(description.get(),
                                                                                          kQueryWeights, 0);
}
Handle Library::Primitive(const Handle& description) const {
  void* made = nullptr;
  Check(Function<int (*)(void**, const void*)>("dnnl_primitive_create")(&made, description.get()), "a primitive");
  return Owned(made, "dnnl_primitive_destroy");
}
void Library::Run(const Handle& primitive, const std::vector<Arg>& args) const {
  static auto* execute = Function<int (*)(const void*, void*, int, const Arg*)>("dnnl_primitive_execute");
  static auto* wait = Function<int (*)(void*)>("dnnl_stream_wait");
  Check(execute(primitive.get(), stream_, static_cast<int>(args.size()), args.data()), "a step");
  Check(wait(stream_), "a step");
}

}  // namespace baton::dnnl
