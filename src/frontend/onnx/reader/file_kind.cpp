// SPDX-License-Identifier: Apache-2.0
#include "file_kind.h"

namespace baton::onnx {

std::string LooksLike(std::string_view text) {
  static constexpr struct {
    size_t at;
    std::string_view magic;
    const char* what;
  } kMagic[] = {
      {0, "PK\x03\x04", "a zip archive (a PyTorch checkpoint, .npz or downloaded archive); unpack or export it first"},
      {0,
       "\x7f"
       "ELF",
       "a compiled program or library (ELF); run a compiled model with `baton run model.so`"},
      {0, "\x1f\x8b", "gzip-compressed data; unpack it first"},
      {0, "\x28\xb5\x2f\xfd", "zstd-compressed data; unpack it first"},
      {0, "BZh", "bzip2-compressed data; unpack it first"},
      {0,
       "\xfd"
       "7zXZ",
       "xz-compressed data; unpack it first"},
      {0, "\x89PNG", "a PNG image"},
      {0, "\xff\xd8\xff", "a JPEG image"},
      {0, "%PDF", "a PDF document"},
      {0, "\x93NUMPY", "a NumPy array (.npy)"},
      {0, "\x89HDF", "an HDF5 file (Keras weights); export the model to ONNX first"},
      {0, "version https://git-lfs", "a Git LFS pointer, not the file itself; fetch it with `git lfs pull`"},
      {0, "MZ", "a Windows program"},
      {0, "\xca\xfe\xba\xbe", "a Java class or macOS program"},
      {0, "GGUF", "a GGUF model; export the model to ONNX first"},
      {0, "\x80\x02", "a Python pickle (a PyTorch checkpoint); export the model to ONNX first"},
      {0, "\x80\x04", "a Python pickle; export the model to ONNX first"},
      {4, "TFL3", "a TensorFlow Lite model; export the model to ONNX first"},
      {4, "ORTM", "an ONNX Runtime (.ort) model; use the .onnx file it was made from"},
      {8, "{\"", "a safetensors file: weights without a graph; export the model to ONNX first"},
      {257, "ustar", "a tar archive; unpack it first"},
  };
  for (const auto& m : kMagic) {
    if (text.size() >= m.at + m.magic.size() && text.substr(m.at, m.magic.size()) == m.magic) return m.what;
  }
  std::string_view head = text.substr(0, 512);
  size_t plain = 0, zero = 0;
  for (char c : head) {
    unsigned char b = static_cast<unsigned char>(c);
    plain += (b >= 0x20 && b < 0x7f) || b == '\n' || b == '\r' || b == '\t';
    zero += b == 0;
  }
  if (zero == head.size()) return "a file of zeros (an interrupted download or copy?)";
  if (plain + head.size() / 50 < head.size()) return "";
  size_t first = head.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && head[first] == '<') return "an HTML or XML page (a failed download?)";
  if (first != std::string_view::npos && head[first] == '{') return "JSON text";
  if (head.find("#[version") != std::string_view::npos || head.find("def @") != std::string_view::npos) {
    return "Relay text; use it with `baton opt` or give it the suffix .relay";
  }
  if (head.find("ir_version:") != std::string_view::npos) {
    return "ONNX in protobuf's text form; convert it to the binary form with the `onnx` package";
  }
  return "text";
}

}  // namespace baton::onnx
