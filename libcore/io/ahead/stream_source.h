#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "libcore/io/streams/byte_source.h"
#include "libcore/io/streams/input_stream.h"

namespace megalith {

/// A file, or members of it, as a source of bytes. Errors as of InputStream.
class StreamSource final : public ByteSource {
 public:
  explicit StreamSource(const std::string& path, const StreamPart& part = {})
      : stream_(path, nullptr, part), begin_(part.begin.at) {}

  size_t read(char* out, size_t room) override { return stream_.read(out, room); }
  uint64_t consumed() const override { return begin_ + stream_.consumed(); }
  uint64_t memory() const override { return stream_.decoder_memory(); }

 private:
  InputStream stream_;
  uint64_t begin_;
};

}  // namespace megalith
