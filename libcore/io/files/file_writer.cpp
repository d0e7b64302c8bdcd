#include "libcore/io/files/file_writer.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include "libcore/base/error.h"
#include "libcore/io/files/direct_writer.h"
#include "libcore/io/files/file.h"
#include "libcore/io/files/file_calls.h"
#include "libcore/io/files/kernel_copy.h"
#include "libcore/threads/beside.h"

namespace megalith {
namespace {

/// write_back_early() asks the system to write back whenever this many bytes were appended.
constexpr uint64_t kWriteBackPiece = uint64_t{8} << 20;

}  // namespace

FileWriter::FileWriter(int fd, std::string path, uint64_t size)
    : fd_(fd), path_(std::move(path)), size_(size) {
  buffer_.reserve(kWritePiece);
}

FileWriter::~FileWriter() {
  direct_.reset();  // first ends the thread, which still writes to fd_
  if (fd_ >= 0) ::close(fd_);
}

bool FileWriter::close() {
  return ::close(std::exchange(fd_, -1)) == 0;
}

void FileWriter::write(const void* data, size_t bytes) {
  if (stream_ == Stream::kAroundCache && !direct_ && size_ + bytes >= direct_from_) begin_stream();
  size_ += bytes;
  if (direct_) return direct_->append(data, bytes);
  const size_t max_buffered =
      stream_ == Stream::kAroundCache && direct_from_ <= kWaiting ? kWaiting : kWritePiece;
  if (buffer_.size() + bytes > max_buffered) flush();
  if (bytes >= max_buffered)
    append_all(fd_, {static_cast<const char*>(data), bytes}, path_);
  else
    buffer_.append(static_cast<const char*>(data), bytes);
  if (stream_ == Stream::kWriteBack) start_write_back(kWriteBackPiece);
}

/// Sends all bytes around the page cache from now on, including those in buffer_, which are not written yet.
void FileWriter::begin_stream() {
  direct_ = DirectWriter::open(fd_, path_, size_ - buffer_.size());
  if (!direct_) {
    stream_ = Stream::kWriteBack;
    return;
  }
  direct_->append(buffer_.data(), buffer_.size());
  buffer_ = std::string();
}

/// Moves the descriptor to the end of the file, where append_all() and copy_to_end() will write.
void FileWriter::leave_stream() {
  flush();
  if (direct_ && ::lseek(fd_, static_cast<off_t>(size_), SEEK_SET) < 0) fail_write("go to the end", path_);
  direct_.reset();
}

void FileWriter::write_at(uint64_t offset, const void* data, size_t bytes) {
  if (direct_) return direct_->write_at(offset, data, bytes);
  flush();
  write_at_place(fd_, {offset, data, bytes}, path_);
}

void FileWriter::append(const ReadableFile& source, uint64_t offset, uint64_t bytes,
                        const std::function<void(uint64_t)>& progress) {
  leave_stream();
  size_ += bytes;
  copy_to_end({source, offset, bytes}, {fd_, path_}, progress);
}

void FileWriter::fill(const std::vector<Piece>& pieces, size_t threads,
                      const std::function<void(size_t piece, uint64_t bytes)>& progress) {
  leave_stream();
  std::atomic<size_t> next{0};
  run_beside(std::clamp<size_t>(pieces.size(), 1, threads), [&](size_t) {
    for (size_t i = next++; i < pieces.size(); i = next++) {
      const Piece& piece = pieces[i];
      const ReadableFile source(piece.path);
      if (source.size() != piece.bytes) fail_cut(piece.path, source.size(), piece.bytes);
      copy_to_place({source, 0, piece.bytes}, {fd_, size_ + piece.offset, path_},
                    [&](uint64_t bytes) { progress(i, bytes); });
    }
  });
  for (const Piece& piece : pieces) size_ += piece.bytes;
  if (::lseek(fd_, static_cast<off_t>(size_), SEEK_SET) < 0) fail_write("go to the end", path_);
}

void FileWriter::read_back(uint64_t offset, void* out, size_t bytes) {
  flush();
  if (read_at_place(fd_, {offset, out, bytes}, path_) < bytes)
    fail(ErrorKind::kIo, path_, ": holds less than was written to it");
}

void FileWriter::flush() {
  if (direct_) return direct_->flush();
  if (buffer_.empty()) return;
  append_all(fd_, buffer_, path_);
  buffer_.clear();
}

void FileWriter::sync() {
  flush();
  sync_to_disk(fd_, path_);
}

void FileWriter::start_write_back(uint64_t min_bytes) {
  const uint64_t there = size_ - buffer_.size();
  if (there - written_back_ < min_bytes) return;
  // Errors are ignored: if the file system does not support this call, commit() only has more to wait for.
  ::sync_file_range(fd_, static_cast<off_t>(written_back_), static_cast<off_t>(there - written_back_),
                    SYNC_FILE_RANGE_WRITE);
  written_back_ = there;
}

std::string FileWriter::open_path() const {
  return link_of(fd_);
}

void FileWriter::start_sync() {
  if (direct_) return direct_->start_sync();
  flush();
  start_write_back(1);
}

void FileWriter::finish_sync() {
  if (!direct_) return sync();
  direct_->finish_sync();
  direct_.reset();
}

}  // namespace megalith
