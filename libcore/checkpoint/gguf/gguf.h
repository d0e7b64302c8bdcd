#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libcore/checkpoint/tensor_file.h"
#include "libcore/io/files/file.h"
#include "libcore/json/json.h"

/// GGUF version 3, llama.cpp's container, specified in ggml's docs/gguf.md.
namespace megalith {

enum class GgufType : uint32_t { kF32 = 0, kF16 = 1, kQ8 = 8, kBf16 = 30 };
constexpr int64_t kQ8Block = 32;        // number of elements that share a scale
constexpr uint64_t kQ8BlockBytes = 34;  // an fp16 scale and 32 signed bytes

/// The number of bytes that `elements` elements take. For Q8_0, they must be whole blocks.
uint64_t gguf_bytes(GgufType type, int64_t elements);
std::string_view name_of(GgufType type);  // "Q8_0"

/// Converts n floats (a multiple of 32) to Q8_0, bit for bit as ggml's reference does: scale = max magnitude
/// / 127, stored in fp16; element = round(x * (1 / scale)), halves away from zero. Returns false, with an
/// undefined result, if a value is not finite, or is so large (beyond 127 * 65504) that fp16 cannot hold the
/// scale.
bool quantize_q8_0(const float* values, int64_t n, std::byte* out);

/// Builds the metadata of a file. Members are written in the order in which they are added.
class GgufMetadata {
 public:
  void text(std::string_view key, std::string_view value);
  void u32(std::string_view key, int64_t value);
  void f32(std::string_view key, double value);
  void boolean(std::string_view key, bool value);
  void texts(std::string_view key, std::span<const std::string> values);
  void floats(std::string_view key, std::span<const float> values);
  void integers(std::string_view key, std::span<const int32_t> values);

  uint64_t size() const { return count_; }
  const std::string& bytes() const { return bytes_; }

 private:
  void begin(std::string_view key, uint32_t type);
  void begin_array(std::string_view key, uint32_t type, size_t size);

  std::string bytes_;
  uint64_t count_ = 0;
};

struct GgufTensor {
  std::string name;
  GgufType type;
  Shape shape;  // outermost axis first; the file lists the axes in reverse
  uint64_t bytes() const { return gguf_bytes(type, shape.elements()); }
};

/// How a .gguf file is laid out. The gaps between tensors are zeros.
struct GgufLayout {
  GgufLayout(const GgufMetadata& metadata, const std::vector<GgufTensor>& tensors);

  std::string head;               // the bytes before the first tensor
  std::vector<uint64_t> offsets;  // where each tensor begins in the file
  uint64_t size;                  // of the whole file, in bytes
};

/// A .gguf file, mapped. Everything is checked before the first tensor is read, so that no count or offset of
/// a damaged file is followed: counts and lengths against the file's size, known types, unique names, tensors
/// that are within the file and do not overlap. Throws kNoInput, kIo, kData.
class GgufFile final : public TensorFile {
 public:
  explicit GgufFile(std::string path);

  const std::string& path() const override { return file_.path(); }
  /// dtype_name is ggml's name. A Q8_0 tensor has dtype fp32: it is read as fp32.
  const std::vector<StoredTensor>& tensors() const override { return tensors_; }
  void read(const Box& box, View out) const override;

  /// Keys and values, in the file's order.
  const Json& metadata() const { return metadata_; }

 private:
  struct TensorSpan {
    GgufType type;
    uint64_t begin;
  };
  void read_quantized(uint64_t begin, const Box& box, View out) const;

  MappedFile file_;     // used for the header and the quantized tensors
  ReadableFile bytes_;  // used for the other tensors
  Json metadata_ = Json::object();
  std::vector<StoredTensor> tensors_;  // sorted by name
  std::vector<TensorSpan> spans_;      // parallel to tensors_
};

}  // namespace megalith
