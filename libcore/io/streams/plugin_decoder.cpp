// The plugin libmegalith_decoder.so; see decoder.h.

#include <algorithm>
#include <memory>
#include <new>

#include <bzlib.h>
#include <lzma.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "libcore/io/streams/decoder.h"

namespace megalith {
namespace {

/// The size of a buffer for one call of a library, which counts bytes in 32 bits.
unsigned clamped(size_t bytes) {
  return static_cast<unsigned>(std::min(bytes, size_t{1} << 30));
}

class GzipDecoder final : public Decoder {
 public:
  GzipDecoder() {
    if (inflateInit2(&stream_, 15 + 16) != Z_OK) throw std::bad_alloc();  // 16: gzip header and checksum
  }
  ~GzipDecoder() override { inflateEnd(&stream_); }
  GzipDecoder(const GzipDecoder&) = delete;
  GzipDecoder& operator=(const GzipDecoder&) = delete;

  Step decode(std::span<const char> in, std::span<char> out) override {
    const unsigned room = clamped(out.size()), given = clamped(in.size());
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(in.data()));  // zlib only reads it
    stream_.avail_in = given;
    stream_.next_out = reinterpret_cast<Bytef*>(out.data());
    stream_.avail_out = room;
    const int status = inflate(&stream_, Z_NO_FLUSH);
    Step step{.taken = given - stream_.avail_in, .made = room - stream_.avail_out};
    if (status == Z_MEM_ERROR) throw std::bad_alloc();
    if (status == Z_STREAM_END) {
      step.member_ended = true;
      inflateReset(&stream_);
    } else if (status != Z_OK && status != Z_BUF_ERROR) {
      step.error = stream_.msg ? stream_.msg : "unknown reason";
    }
    return step;
  }
  const char* format() const override { return "gzip"; }
  bool allows_padding() const override { return true; }
  uint64_t memory() const override { return uint64_t{1} << 16; }

 private:
  z_stream stream_{};
};

class ZstdDecoder final : public Decoder {
 public:
  ZstdDecoder() : stream_(ZSTD_createDStream()) {
    if (!stream_) throw std::bad_alloc();
  }
  ~ZstdDecoder() override { ZSTD_freeDStream(stream_); }
  ZstdDecoder(const ZstdDecoder&) = delete;
  ZstdDecoder& operator=(const ZstdDecoder&) = delete;

  Step decode(std::span<const char> in, std::span<char> out) override {
    ZSTD_inBuffer input{in.data(), in.size(), 0};
    ZSTD_outBuffer output{out.data(), out.size(), 0};
    const size_t status = ZSTD_decompressStream(stream_, &output, &input);
    if (ZSTD_getErrorCode(status) == ZSTD_error_memory_allocation) throw std::bad_alloc();
    if (ZSTD_isError(status)) return {.error = ZSTD_getErrorName(status)};
    return {.taken = input.pos, .made = output.pos, .member_ended = status == 0};
  }
  const char* format() const override { return "zstd"; }
  bool allows_padding() const override { return false; }
  uint64_t memory() const override { return ZSTD_sizeof_DStream(stream_); }

 private:
  ZSTD_DStream* stream_;
};

class Bzip2Decoder final : public Decoder {
 public:
  Bzip2Decoder() { begin(); }
  ~Bzip2Decoder() override { BZ2_bzDecompressEnd(&stream_); }
  Bzip2Decoder(const Bzip2Decoder&) = delete;
  Bzip2Decoder& operator=(const Bzip2Decoder&) = delete;

  Step decode(std::span<const char> in, std::span<char> out) override {
    const unsigned room = clamped(out.size()), given = clamped(in.size());
    stream_.next_in = const_cast<char*>(in.data());  // bzip2 only reads it
    stream_.avail_in = given;
    stream_.next_out = out.data();
    stream_.avail_out = room;
    const int status = BZ2_bzDecompress(&stream_);
    Step step{.taken = given - stream_.avail_in, .made = room - stream_.avail_out};
    if (status == BZ_MEM_ERROR) throw std::bad_alloc();
    if (status == BZ_STREAM_END) {
      step.member_ended = true;
      BZ2_bzDecompressEnd(&stream_);
      begin();
    } else if (status == BZ_DATA_ERROR_MAGIC) {
      step.error = "other data follows the compressed data";
    } else if (status != BZ_OK) {
      step.error = "a block's checksum or structure is wrong";
    }
    return step;
  }
  const char* format() const override { return "bzip2"; }
  bool allows_padding() const override { return false; }
  uint64_t memory() const override { return uint64_t{4} << 20; }  // the largest blocks need 3.7 MB

 private:
  void begin() {
    stream_ = {};
    if (BZ2_bzDecompressInit(&stream_, 0, 0) != BZ_OK) throw std::bad_alloc();
  }
  bz_stream stream_{};
};

class XzDecoder final : public Decoder {
 public:
  XzDecoder() { begin(); }
  ~XzDecoder() override { lzma_end(&stream_); }
  XzDecoder(const XzDecoder&) = delete;
  XzDecoder& operator=(const XzDecoder&) = delete;

  Step decode(std::span<const char> in, std::span<char> out) override {
    stream_.next_in = reinterpret_cast<const uint8_t*>(in.data());
    stream_.avail_in = in.size();
    stream_.next_out = reinterpret_cast<uint8_t*>(out.data());
    stream_.avail_out = out.size();
    const lzma_ret status = lzma_code(&stream_, LZMA_RUN);
    Step step{.taken = in.size() - stream_.avail_in, .made = out.size() - stream_.avail_out};
    if (status == LZMA_STREAM_END) {
      step.member_ended = true;
      begin();
    } else if (status == LZMA_MEM_ERROR) {
      throw std::bad_alloc();
    } else if (status != LZMA_OK && status != LZMA_BUF_ERROR) {
      step.error = reason(status);
    }
    return step;
  }
  const char* format() const override { return "xz"; }
  bool allows_padding() const override { return true; }
  uint64_t memory() const override { return lzma_memusage(&stream_); }

 private:
  void begin() {  // begins a stream, in the previous stream's memory
    if (lzma_stream_decoder(&stream_, kXzMemoryLimit, 0) != LZMA_OK) throw std::bad_alloc();
  }
  static const char* reason(lzma_ret status) {
    switch (status) {
      case LZMA_FORMAT_ERROR:
        return "other data follows the compressed data";
      case LZMA_MEMLIMIT_ERROR:
        return "it needs a window of more than 64 MiB; decompress it with xz -dc FILE | … --input -";
      case LZMA_OPTIONS_ERROR:
        return "it uses options that liblzma does not know";
      default:
        return "a block's checksum or structure is wrong";
    }
  }
  lzma_stream stream_ = LZMA_STREAM_INIT;
};

std::unique_ptr<Decoder> make(Compression compression) {
  switch (compression) {
    case Compression::kGzip:
      return std::make_unique<GzipDecoder>();
    case Compression::kZstd:
      return std::make_unique<ZstdDecoder>();
    case Compression::kBzip2:
      return std::make_unique<Bzip2Decoder>();
    case Compression::kXz:
      return std::make_unique<XzDecoder>();
  }
  return nullptr;
}

}  // namespace
}  // namespace megalith

extern "C" {

/// Creates a decoder, which the caller owns.
__attribute__((visibility("default"))) megalith::Decoder* megalith_decoder(
    megalith::Compression compression) {
  return megalith::make(compression).release();
}
}
