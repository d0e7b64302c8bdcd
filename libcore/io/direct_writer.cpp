#include "libcore/io/direct_writer.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <exception>
#include <utility>

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "libcore/base/error.h"

namespace megalith {
namespace {

/// XFS's number, which linux/magic.h lacks.
constexpr unsigned kXfs = 0x58465342;

bool is_fast(int fd) {
  struct statfs info {};
  if (::fstatfs(fd, &info) != 0) return false;
  const auto type = static_cast<unsigned>(info.f_type);
  return type == EXT4_SUPER_MAGIC || type == kXfs || type == OVERLAYFS_SUPER_MAGIC;
}

/// Memory for writers whose disk is late, so that it is bounded however many there are.
std::atomic<size_t> spare_groups{3};

bool take_spare_group() {
  size_t spare = spare_groups;
  while (spare > 0)
    if (spare_groups.compare_exchange_weak(spare, spare - 1)) return true;
  return false;
}

}  // namespace

int open_direct(int fd) {
  return is_fast(fd) ? ::open(link_of(fd).c_str(), O_WRONLY | O_DIRECT | O_CLOEXEC) : -1;
}

void write_direct(const DirectFile& file, const BytesToWrite& wish, const std::string& path) {
  const auto* const data = static_cast<const char*>(wish.data);
  size_t done = 0;
  while (done < wish.bytes) {
    const ssize_t n =
        ::pwrite(file.direct, data + done, wish.bytes - done, static_cast<off_t>(wish.offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno != EINVAL) fail_write("write", path);
    if (n <= 0) break;  // not so, or not from here: the disk wants other places
    done += static_cast<size_t>(n);
  }
  write_at_place(file.cached, {wish.offset + done, data + done, wish.bytes - done}, path);
}

std::unique_ptr<DirectWriter> DirectWriter::open(int fd, std::string path, uint64_t size) {
  const int direct = open_direct(fd);
  if (direct < 0) return nullptr;
  try {
    return std::unique_ptr<DirectWriter>(new DirectWriter(fd, direct, std::move(path), size));
  } catch (const Error&) {
    ::close(direct);
    throw;
  } catch (const std::exception&) {  // no more threads or memory
    ::close(direct);
    return nullptr;
  }
}

DirectWriter::DirectWriter(int fd, int direct, std::string path, uint64_t size)
    : fd_(fd), direct_(direct), path_(std::move(path)), memory_(kPiece * kGroup * kMostGroups) {
  const uint64_t begin = size / kAlignment * kAlignment;
  add_group();
  filled_ = {.offset = begin, .memory = free_.back(), .bytes = size - begin};
  free_.pop_back();
  if (read_at_place(fd, {begin, filled_.memory, filled_.bytes}, path_) < filled_.bytes)
    fail(ErrorKind::kIo, path_, ": holds less than was written to it");
  thread_ = std::thread([this] { serve(); });
}

DirectWriter::~DirectWriter() {
  if (thread_.joinable()) {
    {
      const std::lock_guard lock(mutex_);
      abandoned_ = true;
    }
    work_.notify_one();
    thread_.join();
  }
  ::close(direct_);
  spare_groups += groups_ - 1;
}

void DirectWriter::append(const void* data, size_t bytes) {
  const auto* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const size_t n = std::min(bytes, kPiece - filled_.bytes);
    std::memcpy(filled_.memory + filled_.bytes, at, n);
    filled_.bytes += n;
    at += n;
    bytes -= n;
    if (filled_.bytes == kPiece) hand_over();
  }
}

/// Gives the full piece to the thread and goes on with the memory of one that is written.
void DirectWriter::hand_over() {
  std::unique_lock lock(mutex_);
  if (free_.empty() && groups_ < kMostGroups && take_spare_group()) add_group();
  done_.wait(lock, [&] { return error_ || !free_.empty(); });
  if (error_) std::rethrow_exception(error_);
  waiting_.push_back(filled_);
  filled_ = {.offset = filled_.offset + kPiece, .memory = free_.back(), .bytes = 0};
  free_.pop_back();
  lock.unlock();
  work_.notify_one();
}

/// Its first piece is the first to be taken.
void DirectWriter::add_group() {
  char* const begin = memory_.as<char>().data() + groups_++ * kGroup * kPiece;
  for (size_t i = kGroup; i-- > 0;) free_.push_back(begin + i * kPiece);
}

void DirectWriter::wait_until_written() {
  std::unique_lock lock(mutex_);
  done_.wait(lock, [&] { return error_ || waiting_.empty(); });
  if (error_) std::rethrow_exception(error_);
}

/// The last piece goes through the page cache, and is kept: once it is full it is written again, whole.
void DirectWriter::flush() {
  wait_until_written();
  write_at_place(fd_, {filled_.offset, filled_.memory, filled_.bytes}, path_);
}

void DirectWriter::begin_end() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  work_.notify_one();
}

void DirectWriter::end() {
  begin_end();
  thread_.join();
  if (error_) std::rethrow_exception(error_);
}

void DirectWriter::write_at(uint64_t offset, const void* data, size_t bytes) {
  const auto* at = static_cast<const char*>(data);
  const size_t before = offset < filled_.offset ? std::min<uint64_t>(bytes, filled_.offset - offset) : 0;
  if (before > 0) {
    wait_until_written();
    write_at_place(fd_, {offset, at, before}, path_);
  }
  if (before < bytes)
    std::memcpy(filled_.memory + (offset + before - filled_.offset), at + before, bytes - before);
}

/// What does not fill a block goes through the page cache.
void DirectWriter::write_end() {
  const size_t blocks = filled_.bytes / kAlignment * kAlignment;
  write_direct({.direct = direct_, .cached = fd_}, {filled_.offset, filled_.memory, blocks}, path_);
  write_at_place(fd_, {filled_.offset + blocks, filled_.memory + blocks, filled_.bytes - blocks}, path_);
  sync_to_disk(fd_, path_);
}

void DirectWriter::serve() {
  std::unique_lock lock(mutex_);
  try {
    for (;;) {
      work_.wait(lock, [&] { return abandoned_ || ending_ || !waiting_.empty(); });
      if (abandoned_) return;
      if (waiting_.empty()) break;
      const Piece piece = waiting_.front();
      lock.unlock();
      write_direct({.direct = direct_, .cached = fd_}, {piece.offset, piece.memory, piece.bytes}, path_);
      lock.lock();
      waiting_.pop_front();
      free_.push_back(piece.memory);
      done_.notify_one();
    }
    lock.unlock();
    write_end();
  } catch (...) {
    if (!lock.owns_lock()) lock.lock();
    error_ = std::current_exception();
    waiting_.clear();
    done_.notify_one();
  }
}

}  // namespace megalith
