// SPDX-License-Identifier: Apache-2.0
#include "cuda/cu_api.h"

#include <baton/support/text.h>
#include <dlfcn.h>

#include <cstdlib>

namespace baton::cuda {
using support::Cat;
namespace {

struct Loaded {
  Api api;
  bool good = false;
  std::string why;

  Loaded() {
    const char* chosen = std::getenv("BATON_CUDA_LIBRARY");
    const char* name = chosen && *chosen ? chosen : "libcuda.so.1";
    void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
      const char* error = dlerror();
      why = error ? error : name;
      return;
    }
    good = true;
#define BATON_CUDA_FIND(Name, Symbol, Params)                                            \
  api.Name = reinterpret_cast<CUresult(*) Params>(dlsym(library, Symbol));               \
  if (!api.Name && good) {                                                               \
    good = false;                                                                        \
    why = Cat("`", name, "` has no function " Symbol ", so it is not a driver of CUDA"); \
  }
    BATON_CUDA_FUNCTIONS(BATON_CUDA_FIND)
#undef BATON_CUDA_FIND
  }
};

}  // namespace

const Api* Api::Find(std::string* why) {
  static const Loaded* loaded = new Loaded;  // drivers have threads: never unloaded
  if (!loaded->good && why) *why = loaded->why;
  return loaded->good ? &loaded->api : nullptr;
}

std::string Api::ErrorName(CUresult code) const {
  const char* name = nullptr;
  if (cuGetErrorName(code, &name) == kSuccess && name) return name;
  return Cat("CUDA error ", code);
}

}  // namespace baton::cuda
