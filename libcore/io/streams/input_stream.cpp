#include "libcore/io/streams/input_stream.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libcore/base/error.h"
#include "libcore/io/streams/stop_signal.h"

namespace megalith {
namespace {

constexpr size_t kLeastRawBytes = size_t{1} << 12, kRawBytes = size_t{1} << 18;

}  // namespace

Interrupt::Interrupt() : descriptor_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (descriptor_ < 0) fail(ErrorKind::kIo, "cannot make an event descriptor: ", std::strerror(errno));
}

Interrupt::~Interrupt() {
  ::close(descriptor_);
}

void Interrupt::set() const noexcept {
  const uint64_t one = 1;
  const ssize_t written = ::write(descriptor_, &one, sizeof one);
  // A failure can be ignored: write() fails only if the counter is at its maximum, so the interrupt is
  // already set.
  static_cast<void>(written);
}

void Interrupt::clear() const noexcept {
  uint64_t count = 0;
  const ssize_t taken = ::read(descriptor_, &count, sizeof count);  // fails if it is not set
  static_cast<void>(taken);
}

std::string head_of_file(const std::string& path) {
  std::array<char, 6> head{};  // the longest magic number
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  const ssize_t n = ::pread(fd, head.data(), head.size(), 0);
  ::close(fd);
  return {head.data(), static_cast<size_t>(std::max<ssize_t>(n, 0))};
}

bool begins_compressed(std::string_view head) {
  return !head.empty() && make_decoder(head) != nullptr;
}

bool is_compressed(const std::string& path) {
  return begins_compressed(head_of_file(path));
}

void InputStream::open(const std::string& command) {
  if (!command.empty()) {
    command_.emplace(command);
    descriptor_ = ::fcntl(command_->descriptor(), F_DUPFD_CLOEXEC, 0);
  } else {
    descriptor_ = path_ == "-" ? ::dup(STDIN_FILENO) : ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  }
  if (descriptor_ >= 0) return;
  const bool absent =
      errno == ENOENT || errno == ENOTDIR || errno == EACCES || errno == ELOOP || errno == ENAMETOOLONG;
  fail(absent ? ErrorKind::kNoInput : ErrorKind::kIo, path_, ": cannot open: ", std::strerror(errno));
}

InputStream::InputStream(InputOrigin origin, const Interrupt* interrupt, const StreamPart& part)
    : path_(std::move(origin.path)), interrupt_(interrupt), part_(part), source_(origin.source) {
  if (source_) return;
  open(origin.command);
  try {
    struct stat info {};
    if (::fstat(descriptor_, &info) != 0)
      fail(ErrorKind::kIo, path_, ": cannot inspect: ", std::strerror(errno));
    if (S_ISDIR(info.st_mode)) fail(ErrorKind::kNoInput, path_, ": is a folder, wanted a file");
    regular_ = S_ISREG(info.st_mode);
    if (regular_) size_ = static_cast<uint64_t>(info.st_size);
    // A small file gets a buffer of its size: a corpus may have a file for each text.
    raw_size_ = regular_ ? std::clamp(static_cast<size_t>(size_) + 1, kLeastRawBytes, kRawBytes) : kRawBytes;
    raw_.reset(new char[raw_size_]);
    sniff();
    enter_part();
  } catch (...) {
    ::close(descriptor_);
    throw;
  }
}

InputStream::~InputStream() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void InputStream::sniff() {
  while (magic_undecided({raw_.get(), raw_end_})) {
    const size_t n = read_raw(raw_.get() + raw_end_, raw_size_ - raw_end_);
    if (n == 0) break;
    raw_end_ += n;
  }
  decoder_ = make_decoder({raw_.get(), raw_end_});
  if (const std::string_view format = compression_of(path_); !decoder_ && !format.empty())
    fail(ErrorKind::kData, path_, ": is named as ", format, ", but its content is not ", format,
         raw_end_ == 0 ? " (it is empty)" : "", "; restore the file, or rename it");
  if (regular_ && size_ > raw_size_)
    ::posix_fadvise(descriptor_, 0, 0, POSIX_FADV_SEQUENTIAL);  // a failed hint does no harm
}

/// Goes from the beginning of the file to that of the part.
void InputStream::enter_part() {
  const bool whole = part_.begin == StreamPlace{} && !part_.end;
  if (whole) return;
  if (!regular_) fail(ErrorKind::kUsage, path_, ": is not a regular file, so no part of it can be read");
  if (const uint64_t last = part_.end.value_or(part_.begin).at; last > size_) fail_too_short(last - size_);
  if (part_.begin.at > 0) {
    raw_begin_ = raw_end_ = 0;
    go_to(part_.begin.at);
    if (part_.begin.at == size_) in_member_ = false;
  }
  look_for_end();
  skip(part_.begin.skip);
}

/// Called where a member begins; data that is not compressed counts as one of its own at each byte.
void InputStream::look_for_end() {
  if (!part_.end || left_ || (decoder_ && position() < part_.end->at)) return;
  left_ = part_.end->skip;
  if (!decoder_) *left_ += part_.end->at - std::min(position(), part_.end->at);
}

size_t InputStream::read(char* out, size_t room) {
  stop_if_asked();
  if (left_) room = static_cast<size_t>(std::min<uint64_t>(room, *left_));
  if (room == 0) return 0;
  if (source_) return source_->read(out, room);
  const size_t n = decoder_ ? read_decoded(out, room) : read_plain(out, room);
  // The end may have become known only in this read.
  if (n == 0 && left_.value_or(0) > 0) fail_too_short(*left_);
  if (left_) *left_ -= n;
  return n;
}

void InputStream::skip(uint64_t bytes) {
  if (bytes == 0) return;
  if (!decoder_ && regular_) return seek(bytes);
  const std::unique_ptr<char[]> waste(new char[kRawBytes]);
  while (bytes > 0) {
    const size_t n = read(waste.get(), static_cast<size_t>(std::min<uint64_t>(bytes, kRawBytes)));
    if (n == 0) fail_too_short(bytes);
    bytes -= n;
  }
}

/// Skips bytes of an uncompressed file by seeking: their offsets in the data are their offsets in the file.
void InputStream::seek(uint64_t bytes) {
  const uint64_t place = position() + bytes, end = left_ ? position() + *left_ : size_;
  if (place > end) fail_too_short(place - end);
  raw_begin_ = raw_end_ = 0;
  if (left_) *left_ -= bytes;
  go_to(place);
}

void InputStream::go_to(uint64_t place) {
  consumed_ = place;
  at_end_ = false;
  if (::lseek(descriptor_, static_cast<off_t>(place), SEEK_SET) < 0)
    fail(ErrorKind::kIo, path_, ": cannot seek: ", std::strerror(errno));
}

void InputStream::fail_too_short(uint64_t missing) const {
  fail(ErrorKind::kData, path_, ": ends ", missing,
       " bytes before a place that this run reads from or to; it has changed");
}

/// Waits until a pipe has bytes. Returns false if the stream was interrupted. Does not poll a regular file:
/// reading one never blocks.
bool InputStream::wait_for_bytes() {
  if (!interrupt_ || regular_) return true;
  pollfd watched[] = {{descriptor_, POLLIN, 0}, {interrupt_->descriptor(), POLLIN, 0}};
  while (::poll(watched, 2, -1) < 0)
    if (errno != EINTR) fail(ErrorKind::kIo, path_, ": cannot wait for input: ", std::strerror(errno));
  return watched[1].revents == 0;
}

size_t InputStream::read_raw(char* out, size_t room) {
  while (!at_end_) {
    if (!wait_for_bytes()) {
      if (!command_) return 0;
      // What a command writes can be read again, so that the half of it must not pass for all.
      stop_if_asked();
      fail(ErrorKind::kComm, path_, ": reading it was interrupted; try again");
    }
    const ssize_t n = ::read(descriptor_, out, room);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(ErrorKind::kIo, path_, ": cannot read: ", std::strerror(errno));
    consumed_ += static_cast<uint64_t>(n);
    if (n == 0 && command_) command_->finish(path_, interrupt_);
    at_end_ = n == 0 && regular_;
    return static_cast<size_t>(n);
  }
  return 0;
}

/// Reads raw bytes if none are left in the buffer. Returns false at the end of the file.
bool InputStream::fill() {
  if (raw_begin_ < raw_end_) return true;
  stop_if_asked();  // a decoder may take all of its input without making a byte
  raw_begin_ = 0;
  raw_end_ = read_raw(raw_.get(), raw_size_);
  return raw_end_ > 0;
}

size_t InputStream::read_plain(char* out, size_t room) {
  if (raw_begin_ == raw_end_) return read_raw(out, room);
  const size_t n = std::min(room, raw_end_ - raw_begin_);  // begins with the bytes that sniff() has read
  std::memcpy(out, raw_.get() + raw_begin_, n);
  raw_begin_ += n;
  return n;
}

/// Call at the end of a member: skips padding and returns whether another member follows.
bool InputStream::next_member() {
  if (decoder_->allows_padding())
    while (fill() && raw_[raw_begin_] == '\0') ++raw_begin_;
  in_member_ = fill();
  if (in_member_) look_for_end();
  return in_member_;
}

size_t InputStream::read_decoded(char* out, size_t room) {
  for (;;) {
    if (!in_member_) {
      if (!next_member()) return 0;
      if (left_) room = static_cast<size_t>(std::min<uint64_t>(room, *left_));
      if (room == 0) return 0;
    }
    if (!fill() && !full_)
      fail(ErrorKind::kData, path_, ": the ", decoder_->format(), " data end too early, after ", consumed_,
           " bytes; the file was truncated");
    const Decoder::Step step =
        decoder_->decode({raw_.get() + raw_begin_, raw_end_ - raw_begin_}, {out, room});
    if (step.error)
      fail(ErrorKind::kData, path_, ": damaged ", decoder_->format(), " data near byte ",
           consumed_ - (raw_end_ - raw_begin_), ": ", step.error);
    raw_begin_ += step.taken;
    full_ = step.made == room && !step.member_ended;
    if (step.member_ended) in_member_ = false;
    if (step.made > 0) return step.made;
  }
}

}  // namespace megalith
