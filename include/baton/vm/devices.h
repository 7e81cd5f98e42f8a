// SPDX-License-Identifier: Apache-2.0
// Devices of a program: which ones it runs on, and their code and constants.
#pragma once

#include <baton/runtime/device_api.h>
#include <baton/runtime/module.h>
#include <baton/runtime/ndarray.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace baton::vm {

struct ProgramDevice;

/// The devices to run on: of each kind the one that is given, type by type the first, else number 0. Throws
/// RuntimeError for one that `what` was not compiled for, and where this machine does not have one.
BATON_DLL std::vector<runtime::Device> ChooseDevices(const std::vector<int64_t>& types,
                                                     const std::vector<runtime::Device>& given, const char* what);
/// Constants of `owner` on a device: there once, for all executors that keep what is returned.
BATON_DLL std::shared_ptr<NDArray> UploadConstants(const ObjectRef& owner, const uint8_t* data, uint64_t bytes,
                                                   runtime::Device device);

/// A module of the kernels in a text that a backend made for this type of device. Where no library launches them its
/// functions throw RuntimeError.
BATON_DLL runtime::Module CreateDeviceModule(int64_t device_type, const std::string& text);
/// The module of kernels for each of a program's devices, null for code of the host: `code` imports them, and those
/// that it has not got are made of their texts.
BATON_DLL std::vector<runtime::Module> DeviceModulesOf(const runtime::Module& code,
                                                       const std::vector<ProgramDevice>& devices);

}  // namespace baton::vm
