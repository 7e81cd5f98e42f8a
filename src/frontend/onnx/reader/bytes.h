// SPDX-License-Identifier: Apache-2.0
/// \file bytes.h
/// Bytes of files, mapped or in memory, and the only way by which a model reads other files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "model_error.h"

namespace baton::onnx {

/// Immutable bytes that stay where they are until the last owner lets go.
class BATON_DLL Bytes {
 public:
  Bytes(const Bytes&) = delete;
  Bytes& operator=(const Bytes&) = delete;
  ~Bytes();

  const uint8_t* data() const { return data_; }
  size_t size() const { return size_; }
  bool mapped() const { return mapped_; }
  /// Takes the pages of a part of a mapped file out of this process's memory; reading them again brings them back.
  void GiveBack(std::string_view part) const;
  /// Copies a part to `to`, of a mapped file without taking its pages into this process's memory.
  /// \throws CompileError where the file was written to since.
  void Read(std::string_view part, void* to) const;
  std::string_view view() const { return {reinterpret_cast<const char*>(data_), size_}; }

  /// The contents of a regular file: mapped, or read where it is small.
  /// \throws CompileError where `path` is missing, a directory, unreadable or not a regular file.
  static std::shared_ptr<const Bytes> FromFile(const std::string& path);
  /// A copy of `text`.
  static std::shared_ptr<const Bytes> Copy(std::string_view text);
  /// The contents of an open file descriptor; `what` names it in messages. Does not close `fd`.
  static std::shared_ptr<const Bytes> FromDescriptor(int fd, const std::string& what);

 private:
  Bytes() = default;
  const uint8_t* data_ = nullptr;
  size_t size_ = 0;
  bool mapped_ = false;
  int fd_ = -1;  ///< of a mapped file
  int64_t written_s_ = 0, written_ns_ = 0;
};

/// Files beside a model. Only relative paths without `..`, resolved beneath the model's folder, through no link of any
/// kind; only regular files with one name. Each file is opened once. Safe to call from several threads.
class BATON_DLL ExternalData {
 public:
  /// \param folder The folder of the model file; opened at once, so later renames do not matter.
  explicit ExternalData(const std::string& folder);
  ~ExternalData();
  ExternalData(const ExternalData&) = delete;
  ExternalData& operator=(const ExternalData&) = delete;

  /// `length` bytes at `offset` of the file at `location` (`length` -1: to its end). `keep` gets the owner of the view.
  std::string_view Read(std::string_view location, int64_t offset, int64_t length, std::shared_ptr<const Bytes>* keep);

 private:
  std::string folder_;
  int dir_ = -1;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const Bytes>, std::less<>> files_;
};

}  // namespace baton::onnx
