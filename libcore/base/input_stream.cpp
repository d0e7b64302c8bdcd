#include "libcore/base/input_stream.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "libcore/base/error.h"

namespace megalith {
namespace {

constexpr size_t kRawBytes = size_t{1} << 18;
constexpr std::string_view kGzip = "\x1f\x8b";
constexpr std::string_view kZstd = "\x28\xb5\x2f\xfd";
constexpr std::string_view kBzip2 = "BZh";
constexpr std::string_view kXz{
    "\xfd"
    "7zXZ\0",
    6};

/// Whether more bytes are needed to know how the stream is compressed.
bool undecided(std::string_view head) {
  for (const std::string_view magic : {kGzip, kZstd, kBzip2, kXz})
    if (head.size() < magic.size() && magic.starts_with(head)) return true;
  return false;
}

[[noreturn]] void refuse(const std::string& path, const char* format, const char* command) {
  fail(ErrorKind::kData, path, ": is ", format, "-compressed, which is read only through a pipe: ", command,
       " -dc ", path == "-" ? "" : path + " ", "| megalith-preprocess --input - …");
}

}  // namespace

struct InputStream::GzipDecoder {
  z_stream stream{};
  bool in_member = true;
  bool full = false;  // the last call filled its room: more may come without more input
  GzipDecoder() {
    if (inflateInit2(&stream, 15 + 16) != Z_OK) throw std::bad_alloc();  // 16: gzip header and checksum
  }
  ~GzipDecoder() { inflateEnd(&stream); }
  GzipDecoder(const GzipDecoder&) = delete;
  GzipDecoder& operator=(const GzipDecoder&) = delete;
};

struct InputStream::ZstdDecoder {
  ZSTD_DStream* stream = ZSTD_createDStream();
  size_t wanted = 1;  // 0: at the end of a frame
  bool full = false;  // as above
  ZstdDecoder() {
    if (!stream) throw std::bad_alloc();
  }
  ~ZstdDecoder() { ZSTD_freeDStream(stream); }
  ZstdDecoder(const ZstdDecoder&) = delete;
  ZstdDecoder& operator=(const ZstdDecoder&) = delete;
};

Interrupt::Interrupt() : descriptor_(::eventfd(0, EFD_CLOEXEC)) {
  if (descriptor_ < 0) fail(ErrorKind::kIo, "cannot make an event descriptor: ", std::strerror(errno));
}

Interrupt::~Interrupt() {
  ::close(descriptor_);
}

void Interrupt::set() const noexcept {
  const uint64_t one = 1;
  const ssize_t written = ::write(descriptor_, &one, sizeof one);
  static_cast<void>(written);  // fails only when the counter is full: then it is set
}

InputStream::InputStream(std::string path, const Interrupt* interrupt)
    : path_(std::move(path)), interrupt_(interrupt), raw_(new char[kRawBytes]) {
  descriptor_ = path_ == "-" ? ::dup(STDIN_FILENO) : ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor_ < 0) {
    const bool absent = errno == ENOENT || errno == ENOTDIR || errno == EACCES;
    fail(absent ? ErrorKind::kNoInput : ErrorKind::kIo, path_, ": cannot open: ", std::strerror(errno));
  }
  try {
    struct stat info {};
    if (::fstat(descriptor_, &info) != 0)
      fail(ErrorKind::kIo, path_, ": cannot inspect: ", std::strerror(errno));
    if (S_ISDIR(info.st_mode)) fail(ErrorKind::kNoInput, path_, ": is a folder, wanted a file");
    regular_ = S_ISREG(info.st_mode);
    if (regular_) size_ = static_cast<uint64_t>(info.st_size);
    sniff();
  } catch (...) {
    ::close(descriptor_);
    throw;
  }
}

InputStream::~InputStream() {
  ::close(descriptor_);
}

void InputStream::sniff() {
  while (undecided({raw_.get(), raw_end_})) {
    const size_t n = read_raw(raw_.get() + raw_end_, kRawBytes - raw_end_);
    if (n == 0) break;
    raw_end_ += n;
  }
  const std::string_view head(raw_.get(), raw_end_);
  if (head.starts_with(kGzip)) gzip_ = std::make_unique<GzipDecoder>();
  if (head.starts_with(kZstd)) zstd_ = std::make_unique<ZstdDecoder>();
  if (head.starts_with(kBzip2)) refuse(path_, "bzip2", "bzip2");
  if (head.starts_with(kXz)) refuse(path_, "xz", "xz");
}

size_t InputStream::read(char* out, size_t room) {
  if (gzip_) return read_gzip(out, room);
  if (zstd_) return read_zstd(out, room);
  return read_plain(out, room);
}

/// False when the stream was interrupted. Regular files never let anybody wait.
bool InputStream::wait_for_bytes() {
  if (!interrupt_ || regular_) return true;
  pollfd watched[] = {{descriptor_, POLLIN, 0}, {interrupt_->descriptor(), POLLIN, 0}};
  while (::poll(watched, 2, -1) < 0)
    if (errno != EINTR) fail(ErrorKind::kIo, path_, ": cannot wait for input: ", std::strerror(errno));
  return watched[1].revents == 0;
}

size_t InputStream::read_raw(char* out, size_t room) {
  for (;;) {
    if (!wait_for_bytes()) return 0;
    const ssize_t n = ::read(descriptor_, out, room);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(ErrorKind::kIo, path_, ": cannot read: ", std::strerror(errno));
    consumed_ += static_cast<uint64_t>(n);
    return static_cast<size_t>(n);
  }
}

/// Makes sure that there are raw bytes; false at the end of the file.
bool InputStream::fill() {
  if (raw_begin_ < raw_end_) return true;
  raw_begin_ = 0;
  raw_end_ = read_raw(raw_.get(), kRawBytes);
  return raw_end_ > 0;
}

size_t InputStream::read_plain(char* out, size_t room) {
  if (raw_begin_ == raw_end_) return read_raw(out, room);
  const size_t n = std::min(room, raw_end_ - raw_begin_);  // what sniff() has read
  std::memcpy(out, raw_.get() + raw_begin_, n);
  raw_begin_ += n;
  return n;
}

/// Behind a gzip member: another one begins, or only zeros follow (tape padding), or nothing.
bool InputStream::next_gzip_member() {
  while (fill() && raw_[raw_begin_] == '\0') ++raw_begin_;
  if (!fill()) return false;
  if (raw_[raw_begin_] != kGzip[0])
    fail(ErrorKind::kData, path_,
         ": damaged gzip data: something else follows the compressed data near byte ",
         consumed_ - (raw_end_ - raw_begin_));
  inflateReset(&gzip_->stream);
  gzip_->in_member = true;
  return true;
}

size_t InputStream::read_gzip(char* out, size_t room) {
  z_stream& z = gzip_->stream;
  const auto space = static_cast<uInt>(std::min(room, size_t{1} << 30));
  z.next_out = reinterpret_cast<Bytef*>(out);
  z.avail_out = space;
  while (z.avail_out == space) {
    if (!gzip_->in_member && !next_gzip_member()) return 0;
    if (!fill() && !gzip_->full)
      fail(ErrorKind::kData, path_, ": the gzip data end too early, after ", consumed_,
           " bytes; the file was cut");
    z.next_in = reinterpret_cast<Bytef*>(raw_.get() + raw_begin_);
    z.avail_in = static_cast<uInt>(raw_end_ - raw_begin_);
    const int status = inflate(&z, Z_NO_FLUSH);
    raw_begin_ = raw_end_ - z.avail_in;
    gzip_->full = z.avail_out == 0;
    if (status == Z_STREAM_END)
      gzip_->in_member = false;
    else if (status == Z_MEM_ERROR)
      throw std::bad_alloc();
    else if (status != Z_OK && status != Z_BUF_ERROR)
      fail(ErrorKind::kData, path_, ": damaged gzip data near byte ", consumed_ - z.avail_in, ": ",
           z.msg ? z.msg : "unknown reason");
  }
  return space - z.avail_out;
}

size_t InputStream::read_zstd(char* out, size_t room) {
  ZSTD_outBuffer output{out, room, 0};
  while (output.pos == 0) {
    if (!fill() && !zstd_->full) {
      if (zstd_->wanted == 0) return 0;
      fail(ErrorKind::kData, path_, ": the zstd data end too early, after ", consumed_,
           " bytes; the file was cut");
    }
    ZSTD_inBuffer input{raw_.get() + raw_begin_, raw_end_ - raw_begin_, 0};
    zstd_->wanted = ZSTD_decompressStream(zstd_->stream, &output, &input);
    raw_begin_ += input.pos;
    zstd_->full = output.pos == room && zstd_->wanted != 0;
    if (ZSTD_isError(zstd_->wanted))
      fail(ErrorKind::kData, path_, ": damaged zstd data near byte ", consumed_ - (raw_end_ - raw_begin_),
           ": ", ZSTD_getErrorName(zstd_->wanted));
  }
  return output.pos;
}

}  // namespace megalith
