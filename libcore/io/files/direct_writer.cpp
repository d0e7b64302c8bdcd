#include "libcore/io/files/direct_writer.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>

#include "libcore/base/error.h"

namespace megalith {

std::unique_ptr<DirectWriter> DirectWriter::open(int fd, std::string path, uint64_t size) {
  auto file = std::make_unique<DirectFile>(fd, std::move(path));
  if (!file->is_direct()) return nullptr;
  try {
    return std::unique_ptr<DirectWriter>(new DirectWriter(std::move(file), fd, size));
  } catch (const Error&) {
    throw;
  } catch (const std::exception&) {  // no thread can be started, or memory is exhausted
    return nullptr;
  }
}

DirectWriter::DirectWriter(std::unique_ptr<DirectFile> file, int fd, uint64_t size)
    : file_(std::move(file)), memory_(kBufferBytes * kBuffers) {
  for (size_t i = kBuffers; i-- > 0;) free_.push_back(memory_.as<char>().data() + i * kBufferBytes);
  const uint64_t begin = size / DirectFile::kBlock * DirectFile::kBlock;
  filled_ = {.offset = begin, .memory = take_free(), .bytes = size - begin};
  if (read_at_place(fd, {begin, filled_.memory, filled_.bytes}, file_->path()) < filled_.bytes)
    fail(ErrorKind::kIo, file_->path(), ": holds less than was written to it");
}

char* DirectWriter::take_free() {
  char* const buffer = free_.back();
  free_.pop_back();
  return buffer;
}

void DirectWriter::append(const void* data, size_t bytes) {
  const auto* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const size_t n = std::min(bytes, kBufferBytes - filled_.bytes);
    std::memcpy(filled_.memory + filled_.bytes, at, n);
    filled_.bytes += n;
    at += n;
    bytes -= n;
    if (filled_.bytes == kBufferBytes) hand_over();
  }
}

/// Gives the full buffer to the writing thread and continues in a free buffer, so that the caller rarely
/// waits for the disk.
void DirectWriter::hand_over() {
  const Buffer full = filled_;
  thread_.give([this, full] {
    file_->write({full.offset, full.memory, full.bytes});
    const SerialExecutor::Lock lock = thread_.state().lock();
    free_.push_back(full.memory);
  });
  SerialExecutor::Lock lock = thread_.state().lock();
  thread_.state().wait(lock, [this] { return !free_.empty(); });
  filled_ = {.offset = full.offset + kBufferBytes, .memory = take_free(), .bytes = 0};
}

/// Writes the last, partly filled buffer through the page cache and keeps it: once full, it is written again
/// as a whole.
void DirectWriter::flush() {
  thread_.wait_for_jobs();
  file_->write_cached({filled_.offset, filled_.memory, filled_.bytes});
}

void DirectWriter::start_sync() {
  if (std::exchange(syncing_, true)) return;
  thread_.give([this] {
    file_->write({filled_.offset, filled_.memory, filled_.bytes});
    file_->sync();
  });
}

void DirectWriter::finish_sync() {
  start_sync();
  thread_.wait_for_jobs();
}

void DirectWriter::write_at(uint64_t offset, const void* data, size_t bytes) {
  const auto* at = static_cast<const char*>(data);
  const size_t before = offset < filled_.offset ? std::min<uint64_t>(bytes, filled_.offset - offset) : 0;
  if (before > 0) {
    thread_.wait_for_jobs();
    file_->write_cached({offset, at, before});
  }
  if (before < bytes)
    std::memcpy(filled_.memory + (offset + before - filled_.offset), at + before, bytes - before);
}

}  // namespace megalith
