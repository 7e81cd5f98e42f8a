// SPDX-License-Identifier: Apache-2.0
// A model on several devices as a row of steps: kernels where their data lie, and copies between devices. In an
// artifact it is the program (ExecutableDesc::program), as JSON whose first member is "devices".
#pragma once

#include <baton/runtime/device_api.h>
#include <baton/runtime/module.h>
#include <baton/runtime/ndarray.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace baton::support {
class Json;
class JsonWriter;
}  // namespace baton::support

namespace baton::vm {

/// Where a tensor lies.
struct DevicePlace {
  enum Kind : int64_t { kIo, kConstant, kArena };
  int64_t kind = kIo;
  int64_t device = 0;  ///< number in DeviceGraph::devices
  int64_t at = 0;      ///< slot of an input, or of an output behind them; else bytes from the begin
};

struct GraphDevice {
  int64_t type = 1;                                   ///< as in DLPack
  uint64_t arena_bytes = 0;                           ///< for what lives between steps
  uint64_t constants_begin = 0, constants_bytes = 0;  ///< its part of the module's constants
  std::string code;                                   ///< text of a module of that device; empty: code of the host
};

struct GraphStep {
  std::string symbol;  ///< of the kernel; empty: copy args[0] to args[1]
  int64_t device = 0;
  std::vector<DevicePlace> args;
  uint64_t bytes = 0;  ///< of a copy
  int64_t reads = 1;   ///< how many of `args` are read; results, and workspace, come after them
};

struct BATON_DLL DeviceGraph {
  std::vector<GraphDevice> devices;
  std::vector<int64_t> inputs, outputs;  ///< device of each
  std::vector<GraphStep> steps;

  std::string Save() const;
  /// Throws RuntimeError for what is no such text, or names places that there are not.
  static DeviceGraph Load(std::string_view text, size_t num_inputs, size_t num_outputs, uint64_t constants_bytes);
};

/// Steps as a JSON array, and back. Reading checks that each place lies within what `frame` says of its device, inputs
/// and outputs; throws RuntimeError.
BATON_DLL void SaveSteps(const std::vector<GraphStep>& steps, support::JsonWriter* to);
BATON_DLL std::vector<GraphStep> LoadSteps(const support::Json& steps, const DeviceGraph& frame);

/// The devices to run on: of each kind the one that is given, type by type the first, else number 0. Throws
/// RuntimeError for one that `what` was not compiled for, and where this machine does not have one.
BATON_DLL std::vector<runtime::Device> ChooseDevices(const std::vector<int64_t>& types,
                                                     const std::vector<runtime::Device>& given, const char* what);
/// Constants of `owner` on a device: there once, for all executors that keep what is returned.
BATON_DLL std::shared_ptr<NDArray> UploadConstants(const ObjectRef& owner, const uint8_t* data, uint64_t bytes,
                                                   runtime::Device device);

/// True for programs that are device graphs.
inline bool IsDeviceGraph(std::string_view program) { return program.rfind("{\"devices\"", 0) == 0; }
/// A module of the kernels in a text that a backend made for this type of device.
BATON_DLL runtime::Module CreateDeviceModule(int64_t device_type, const std::string& text);
/// Whether a module is what CreateDeviceModule makes for this type of device.
BATON_DLL bool IsDeviceModule(const runtime::Module& m, int64_t device_type);
/// Imports the modules of kernels that the program in `code` carries, if it has not got them.
BATON_DLL void ImportDeviceCode(const runtime::Module& code);
/// An executor (runtime/executor.h) of the program in `code`. `devices` say which of each type; type by type the first.
BATON_DLL runtime::Module CreateDeviceExecutor(const runtime::Module& code,
                                               const std::vector<runtime::Device>& devices);

}  // namespace baton::vm
