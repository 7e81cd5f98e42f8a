// SPDX-License-Identifier: Apache-2.0
// The run side of the ahead-of-time executor: what compiled code has to provide, and how it is called.
//
// A model is one function
//     int32_t entry(void** io, const uint8_t* constants, uint8_t* arena, const int64_t* s)
// where `io` holds the data pointers of the inputs, then of the outputs, in the order of the description. It returns 0,
// or another value after BatonBackendSetError. All of `arena` is scratch: uninitialised before, of no value after.
// `constants` and `arena` are aligned to 64 bytes, each io pointer to `io_alignment`. Inputs are dense in row-major
// order and must not be written. `s` holds the sizes of a model with dynamic shapes (dynamic_shapes.h), null for
// another. The code keeps no state, so that executors of one module can run at the same time.
#pragma once

#include <baton/runtime/data_type.h>
#include <baton/runtime/device_api.h>
#include <baton/runtime/dynamic_shapes.h>
#include <baton/runtime/object.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace baton::runtime {

class Module;

using EntryFunction = int32_t (*)(void** io, const uint8_t* constants, uint8_t* arena, const int64_t* s);

struct TensorInfo {
  std::string name;
  std::vector<int64_t> shape;  ///< -1: dynamic
  DataType dtype;
  /// In a shape with dynamic extents: how each is called ("seq", "past + 1"), empty for literal ones. Empty: not known.
  std::vector<std::string> extents = {};
};
/// "float32[2, seq]"
BATON_DLL std::string TensorInfoString(const TensorInfo& info);

/// The file that constants are read from where they lie, and when it was written last; its module keeps it open.
struct FileMark {
  const char* path = nullptr;  ///< null: they lie in memory
  int fd = -1;
  int64_t size = 0, written_s = 0, written_ns = 0;
  /// Throws RuntimeError when the file was written to since. A file that another one took the name of is as it was.
  BATON_DLL void RequireUnchanged() const;
};

/// A compiled model. The JIT fills it in directly; for an artifact it is read from the manifest.
struct ExecutableDesc {
  std::vector<TensorInfo> inputs;
  std::vector<TensorInfo> outputs;
  /// For a model whose shapes are not all known when it is compiled.
  DynamicShapes dynamic;
  /// For a static model.
  uint64_t arena_bytes = 0;
  /// Weights, kept alive by the module.
  const uint8_t* constants = nullptr;
  uint64_t constants_bytes = 0;
  FileMark constants_file;  ///< each call asks whether it is as it was
  /// Symbol of the entry function, found by ModuleNode::GetSymbol.
  std::string entry = "baton_entry";
  /// Processor features that the code uses, by LLVM's names; each is checked before anything runs.
  std::vector<std::string> features;
  /// Alignment that the code assumes of inputs and outputs, a power of two up to 64. Others are copied.
  uint32_t io_alignment = 64;
  /// The tuples of the value that the model gives, in pre-order: the number of a tuple's fields, or -1 for an output,
  /// of which there are as many. Empty: the one output, or a tuple of all.
  std::vector<int64_t> result_tree;
  /// A program of the virtual machine as JSON (vm/program.h); then the code has its kernels in place of `entry`, and
  /// the library libbaton_vm runs it. Empty for a model that is one function.
  std::string program;
  /// For a model with states that are kept between calls, as JSON: of each the number of its input, the word with its
  /// rows after a call, and whether new rows are copied. Then libbaton_vm runs it, in sessions.
  std::string state;
  /// Target string and similar facts, for people; not interpreted.
  std::string target;
  /// The meaning of numbers in inputs and outputs, as JSON for bindings; empty where they are numbers.
  std::string forms;
  /// The steps of the code for profiles (step_clock.h), as JSON; empty where it was not kept.
  std::string steps;
};

/// Throws RuntimeError that names the first feature that is unknown or that this processor lacks.
BATON_DLL void CheckFeatures(const std::vector<std::string>& features, const std::string& what);

/// An executor over the model in `code`, as a module with the functions
///   set_input(name or index, tensor)     copies; checks name, shape and dtype
///   set_input_zero_copy(name or index, tensor)   keeps a reference; an array that is not dense and aligned is copied
///   run()                                all inputs must have been set
///   get_output(index [, tensor])         the result (or a copy into the tensor); no later run overwrites an array that
///                                        is still referred to
///   get_input(name or index)  get_num_inputs()  get_num_outputs()  get_input_index(name)
///   get_input_name(index)  get_output_name(index)  get_input_info(index)  get_output_info(index): [name, shape, dtype]
///   run_with(tensors in the order of the inputs...)   run without copies; the array of outputs
///   call(tensors in the order of the inputs...)   the same; the value, with its tuples as arrays
///   profile(rounds, tensors in the order of the inputs...)   the times of a call's steps and the value (step_clock.h)
/// A second thread that calls while the executor runs gets a RuntimeError: make an executor for each thread, they share
/// code and weights.
BATON_DLL Module CreateExecutor(const Module& code, Device device = Cpu());

/// The artifact file: an ELF shared object, then the constants, then the manifest (JSON), then its length and a digest
/// over all before it. A truncated or modified file is rejected before any code is loaded. Writes the file, whole or
/// not at all. `desc.constants` go into the file; `elf` must export `desc.entry` and, if it calls the runtime,
/// `baton_backend_api` (c_backend_api.h). `guards`: what `sizes` asks of dimensions, for people. `last_constants`: the
/// last of `desc.constants_bytes`, where they lie elsewhere. `imports`: what it carries for people, as JSON; "" for
/// nothing.
BATON_DLL void WriteArtifact(const std::string& path, const void* elf, size_t elf_bytes, const ExecutableDesc& desc,
                             const std::vector<std::string>& guards = {}, std::string_view last_constants = {},
                             std::string_view imports = {});
/// The manifest text of an artifact, after all checks but without loading code.
BATON_DLL std::string ReadManifest(const std::string& path);

}  // namespace baton::runtime
