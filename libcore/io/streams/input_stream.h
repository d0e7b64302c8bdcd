#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "libcore/io/streams/command_pipe.h"
#include "libcore/io/streams/decoder.h"
#include "libcore/io/streams/input_origin.h"
#include "libcore/io/streams/stream_part.h"

namespace megalith {

/// Lets one thread wake another that waits for the next bytes of a pipe and might otherwise wait until the
/// pipe's writer ends. Once set, an Interrupt stays set until clear().
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;
  void set() const noexcept;
  void clear() const noexcept;
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

/// The first bytes of a regular file, enough for the magic number of any format. Empty if it cannot be opened
/// or read: whoever reads it next has that error.
std::string head_of_file(const std::string& path);
/// Whether the data begin with the magic number of a compressed format. kDevice as for make_decoder().
bool begins_compressed(std::string_view head);
/// Whether a regular file begins with the magic number of a compressed format. False if it cannot be opened
/// or read: whoever reads it next has that error. kDevice as for make_decoder().
bool is_compressed(const std::string& path);

/// Reads the bytes of a file, a pipe, stdin (path "-"), of a command, or of a source, from beginning to end.
/// If the data has the magic number of gzip, zstd, bzip2 or xz, it is decompressed, all members of it, and
/// its checksums are verified. Throws kNoInput if the file does not exist, kIo if reading fails, kData for a
/// damaged or truncated stream, kComm if a command's exit code is not 0. Each read calls stop_if_asked(), so
/// that a signal ends a line without end or a long skip.
class InputStream {
 public:
  /// If `interrupt` is set while a read waits for a pipe, that read acts as if the pipe had ended; while it
  /// waits for a command, it throws Stopped or kComm. The stream begins and ends where `part` does; a part of
  /// anything but a regular file is refused (kUsage).
  explicit InputStream(InputOrigin origin, const Interrupt* interrupt = nullptr, const StreamPart& part = {});
  ~InputStream();
  InputStream(const InputStream&) = delete;
  InputStream& operator=(const InputStream&) = delete;

  /// Copies up to `room` (> 0) bytes to `out`; returns 0 only at the end.
  size_t read(char* out, size_t room);
  /// Skips `bytes` bytes of the (decompressed) data. kData if there are fewer.
  void skip(uint64_t bytes);

  const std::string& path() const { return path_; }
  // bytes of the part that were taken from the file, before decompression
  uint64_t consumed() const { return source_ ? source_->consumed() : consumed_ - part_.begin.at; }
  uint64_t size() const { return size_; }  // size of the file in bytes; 0 for a pipe
  bool compressed() const { return source_ || decoder_; }
  uint64_t decoder_memory() const {
    if (source_) return source_->memory();
    return decoder_ ? decoder_->memory() : 0;
  }

 private:
  void open(const std::string& command);
  void sniff();
  void enter_part();
  void seek(uint64_t bytes);
  void go_to(uint64_t place);
  uint64_t position() const { return consumed_ - (raw_end_ - raw_begin_); }  // in the file
  void look_for_end();
  [[noreturn]] void fail_too_short(uint64_t missing) const;
  bool fill();
  bool wait_for_bytes();
  size_t read_raw(char* out, size_t room);
  size_t read_plain(char* out, size_t room);
  size_t read_decoded(char* out, size_t room);
  bool next_member();

  std::string path_;
  const Interrupt* interrupt_;
  StreamPart part_;
  ByteSource* source_;  // null: the stream opens and decompresses the input itself
  std::optional<CommandPipe> command_;
  int descriptor_ = -1;
  bool regular_ = false, at_end_ = false;  // the second: of a regular file
  uint64_t consumed_ = 0, size_ = 0;
  size_t raw_size_ = 0;
  std::unique_ptr<char[]> raw_;  // buffer; its unused bytes are [raw_begin_, raw_end_)
  size_t raw_begin_ = 0, raw_end_ = 0;
  std::unique_ptr<Decoder> decoder_;
  bool in_member_ = true;
  std::optional<uint64_t> left_;  // bytes up to the end of the part, once that end's member has begun
  bool full_ = false;             // the last step filled its output: it may yield more
};

}  // namespace megalith
