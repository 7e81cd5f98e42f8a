// SPDX-License-Identifier: Apache-2.0
#include "opencl/cl_api.h"

#include <baton/support/text.h>
#include <dlfcn.h>

#include <cstdlib>

namespace baton::opencl {
using support::Cat;
namespace {

struct Loaded {
  Api api;
  bool good = false;
  std::string why;

  Loaded() {
    const char* chosen = std::getenv("BATON_OPENCL_LIBRARY");
    void* library = nullptr;
    for (const char* name : {chosen && *chosen ? chosen : "libOpenCL.so.1", chosen && *chosen ? "" : "libOpenCL.so"}) {
      if (library || !*name) continue;
      library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
      const char* error = library ? nullptr : dlerror();
      if (error) why = why.empty() ? error : Cat(why, "; ", error);
    }
    if (!library) return;
    good = true;
#define BATON_OPENCL_FIND(Name, Result, Params)                               \
  api.Name = reinterpret_cast<Result(*) Params>(dlsym(library, #Name));       \
  if (!api.Name && good) {                                                    \
    good = false;                                                             \
    why = "the OpenCL library has no function " #Name ", so it is no OpenCL"; \
  }
    BATON_OPENCL_FUNCTIONS(BATON_OPENCL_FIND)
#undef BATON_OPENCL_FIND
  }
};

}  // namespace

const Api* Api::Find(std::string* why) {
  static const Loaded* loaded = new Loaded;  // drivers have threads: never unloaded
  if (!loaded->good && why) *why = loaded->why;
  return loaded->good ? &loaded->api : nullptr;
}

std::string ErrorName(cl_int code) {
  static constexpr struct {
    cl_int code;
    const char* name;
  } kNames[] = {{0, "CL_SUCCESS"},
                {-1, "CL_DEVICE_NOT_FOUND"},
                {-2, "CL_DEVICE_NOT_AVAILABLE"},
                {-3, "CL_COMPILER_NOT_AVAILABLE"},
                {-4, "CL_MEM_OBJECT_ALLOCATION_FAILURE"},
                {-5, "CL_OUT_OF_RESOURCES"},
                {-6, "CL_OUT_OF_HOST_MEMORY"},
                {-11, "CL_BUILD_PROGRAM_FAILURE"},
                {-14, "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST"},
                {-30, "CL_INVALID_VALUE"},
                {-33, "CL_INVALID_DEVICE"},
                {-34, "CL_INVALID_CONTEXT"},
                {-36, "CL_INVALID_COMMAND_QUEUE"},
                {-38, "CL_INVALID_MEM_OBJECT"},
                {-44, "CL_INVALID_PROGRAM"},
                {-45, "CL_INVALID_PROGRAM_EXECUTABLE"},
                {-46, "CL_INVALID_KERNEL_NAME"},
                {-48, "CL_INVALID_KERNEL"},
                {-49, "CL_INVALID_ARG_INDEX"},
                {-51, "CL_INVALID_ARG_SIZE"},
                {-52, "CL_INVALID_KERNEL_ARGS"},
                {-54, "CL_INVALID_WORK_GROUP_SIZE"},
                {-61, "CL_INVALID_BUFFER_SIZE"},
                {-63, "CL_INVALID_GLOBAL_WORK_SIZE"},
                {-1001, "CL_PLATFORM_NOT_FOUND_KHR"}};
  for (const auto& n : kNames) {
    if (n.code == code) return n.name;
  }
  return Cat("OpenCL error ", code);
}

}  // namespace baton::opencl
