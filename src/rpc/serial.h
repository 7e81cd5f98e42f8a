// SPDX-License-Identifier: Apache-2.0
// A serial line to a microcontroller (src/micro/serial.h says what goes over it).
#pragma once

#include "rpc/channel.h"

namespace baton::rpc {

/// The part behind "serial:" : a device, and ?baud=N, ?key=FILE.
Address ParseSerial(std::string_view rest);
/// The key that a microcontroller is given: not the secret itself, so that other uses of the key stay apart.
std::string SerialKey(const Key& key);
/// Without zero bytes (consistent overhead byte stuffing), and one behind: a record as it goes over the line.
std::string Stuffed(std::string_view data);
/// The record that Stuffed got; empty for bytes that it did not make. `data` is without the zero byte.
std::string Unstuffed(std::string_view data);
/// A line that is open, which it owns: waits for the server's answer.
std::unique_ptr<Channel> SerialOn(int fd, const std::string& key, const std::string& what, Deadline deadline);
/// Opens the device and waits for the server's answer.
std::unique_ptr<Channel> ConnectSerial(const Address& address, Deadline deadline);

}  // namespace baton::rpc
