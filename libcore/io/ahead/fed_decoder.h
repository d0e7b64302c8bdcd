#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "libcore/io/streams/byte_source.h"
#include "libcore/io/streams/decoder.h"

namespace megalith {

/// Decompresses a piece of a file, whose compressed bytes a derived class gives window by window. kData if
/// they are damaged, or are not what the derived class expects.
class FedDecoder : public ByteSource {
 public:
  size_t read(char* out, size_t room) override;
  uint64_t memory() const override { return decoder_->memory(); }

 protected:
  /// `path`: of the file, for messages.
  FedDecoder(std::string path, Compression compression);

  /// The next bytes for the decoder, which stay valid until the next call; empty at the end of the piece.
  virtual std::span<const char> more() = 0;
  /// Whether a piece that made `made` bytes is whole. `ended`: a member has ended with its last byte.
  virtual bool is_whole(uint64_t made, bool ended) const = 0;

  const std::string& path() const { return path_; }

 private:
  [[noreturn]] void fail_damaged(const char* why) const;

  std::string path_;
  std::unique_ptr<Decoder> decoder_;
  std::span<const char> window_;
  uint64_t made_ = 0;
  bool full_ = false;   // the last step filled its output: it may yield more
  bool ended_ = false;  // a member has ended, and nothing followed it so far
};

}  // namespace megalith
