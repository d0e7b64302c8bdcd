#include "libcore/io/files/placed_files.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libcore/base/error.h"
#include "libcore/io/files/file.h"
#include "libcore/io/files/file_calls.h"

namespace megalith {
namespace {

constexpr size_t kBlock = DirectFile::kBlock;
constexpr size_t kMaxOpen = 16;  // the number of files that may be open for writing at once

size_t round_up(size_t value, size_t step) {
  return (value + step - 1) / step * step;
}

/// Owns an open descriptor.
struct Descriptor {
  explicit Descriptor(int opened) : fd(opened) {}
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int fd;
};

/// Opens the file at `open_path`; error messages call it `path`.
int open_or_fail(const std::string& open_path, int flags, const std::string& path) {
  const int fd = ::open(open_path.c_str(), flags | O_CLOEXEC, 0666);
  if (fd < 0) fail_write(flags & O_CREAT ? "create" : "open", path);
  return fd;
}

void take_room(int fd, uint64_t size, const std::string& path) {
  if (size == 0 || ::fallocate(fd, 0, 0, static_cast<off_t>(size)) == 0) return;
  if (errno != EOPNOTSUPP && errno != ENOSYS) fail_write("take room for", path);
  if (::ftruncate(fd, static_cast<off_t>(size)) != 0) fail_write("extend", path);
}

}  // namespace

struct PlacedFiles::OpenFile {
  OpenFile(size_t opened, const File& file)
      : number(opened),
        descriptor(open_or_fail(file.open_path, O_RDWR, file.path)),
        direct(descriptor.fd, file.path) {}
  size_t number;
  Descriptor descriptor;
  DirectFile direct;
};

PlacedFiles::PlacedFiles(size_t memory)
    : memory_(round_up(memory, kBuffers * kBlock)),
      thread_("the thread that writes a model", [this] { wake_reader(); }) {}

PlacedFiles::~PlacedFiles() = default;

size_t PlacedFiles::create(const std::string& path, uint64_t size) {
  const Descriptor file(open_or_fail(path, O_RDWR | O_CREAT | O_EXCL, path));
  return add(file.fd, {.path = path, .open_path = path}, size);
}

size_t PlacedFiles::fill(const AtomicFile& file, uint64_t size) {
  const Descriptor opened(open_or_fail(file.open_path(), O_RDWR, file.path()));
  return add(opened.fd, {.path = file.path(), .open_path = file.open_path()}, size);
}

size_t PlacedFiles::add(int fd, File file, uint64_t size) {
  take_room(fd, size, file.path);
  struct stat info {};
  if (::fstat(fd, &info) != 0) fail_write("inspect", file.path);
  file.device = info.st_dev;
  file.node = info.st_ino;
  const SerialExecutor::Lock lock = thread_.state().lock();
  files_.push_back(std::move(file));
  return files_.size() - 1;
}

void PlacedFiles::put(size_t file, const std::vector<FilePart>& parts) {
  File& to = files_[file];
  const Descriptor open(open_or_fail(to.open_path, O_RDWR, to.path));
  for (const FilePart& part : parts)
    write_at_place(open.fd, {part.offset, part.bytes.data(), part.bytes.size()}, to.path);
  const SerialExecutor::Lock lock = thread_.state().lock();
  for (const FilePart& part : parts) note(to, part.offset, part.bytes.size());
  wake_reader();
}

// Wakes the reader; must be called with the lock held. The reader counts as not stuck from now on, even
// before its thread runs.
void PlacedFiles::wake_reader() {
  waiting_ = false;
  bytes_.notify_one();
}

// Records that bytes [offset, offset + bytes) can now be read from the file; joins adjacent ranges.
void PlacedFiles::note(File& file, uint64_t offset, uint64_t bytes) {
  uint64_t end = offset + bytes;
  auto next = file.there.upper_bound(offset);
  if (next != file.there.begin() && std::prev(next)->second >= offset) {
    --next;
    offset = next->first;
  }
  while (next != file.there.end() && next->first <= end) {
    end = std::max(end, next->second);
    next = file.there.erase(next);
  }
  file.there.emplace_hint(next, offset, end);
}

// Looks for `room` contiguous free bytes in the ring. If the head has wrapped around, the free bytes lie
// between the head and the oldest buffer. Otherwise they lie after the head, up to the end of the memory, and
// before the oldest buffer; if the part after the head is too small, the head wraps around. Returns whether
// there is room.
bool PlacedFiles::finds_room(size_t room) {
  const size_t all = memory_.as<char>().size();
  if (buffers_.empty()) {
    head_ = 0;
    return room <= all;
  }
  const size_t oldest = buffers_.front().place;
  if (head_ <= oldest) return head_ + room <= oldest;
  if (head_ + room <= all) return true;
  if (room > oldest) return false;
  head_ = 0;
  return true;
}

// Removes buffers, oldest first, until `room` contiguous bytes are free. A buffer with unread bytes is
// removed only if the reader is stuck.
bool PlacedFiles::make_room(size_t room) {
  while (!finds_room(room)) {
    if (buffers_.empty()) return false;
    const Buffer& first = buffers_.front();
    if (!first.written || first.readers > 0 || (reading_ && first.unread > 0 && !reader_is_stuck()))
      return false;
    buffers_.pop_front();
  }
  return true;
}

std::byte* PlacedFiles::begin(size_t file, uint64_t offset, size_t bytes) {
  const size_t before = offset % kBlock, room = round_up(before + bytes, kBlock);
  if (filling_ || bytes == 0 || bytes > max_bytes())
    fail(ErrorKind::kInternal, files_[file].path, ": a buffer of ", bytes, " bytes out of turn");
  SerialExecutor::Lock lock = thread_.state().lock();
  thread_.state().wait(lock, [&] { return make_room(room); });
  char* const data = memory_.as<char>().data() + head_ + before;
  buffers_.push_back({file, offset, bytes, head_, data, bytes});
  head_ += room;
  filling_ = true;
  return reinterpret_cast<std::byte*>(data);
}

void PlacedFiles::end() {
  Buffer* buffer = nullptr;
  {
    const SerialExecutor::Lock lock = thread_.state().lock();
    buffer = &buffers_.back();  // a deque's elements never move
    filling_ = false;
    wake_reader();
  }
  thread_.give([this, buffer] {
    opened(buffer->file).direct.write({buffer->offset, buffer->data, buffer->bytes});
    const SerialExecutor::Lock lock = thread_.state().lock();
    buffer->written = true;
    note(files_[buffer->file], buffer->offset, buffer->bytes);
  });
}

void PlacedFiles::finish() {
  thread_.wait_for_jobs();
}

PlacedFiles::Reader::Reader(PlacedFiles& files) : files_(files) {
  const SerialExecutor::Lock lock = files_.thread_.state().lock();
  files_.reading_ = true;
}

PlacedFiles::Reader::~Reader() {
  {
    const SerialExecutor::Lock lock = files_.thread_.state().lock();
    files_.reading_ = false;
  }
  files_.thread_.state().changed();
}

size_t PlacedFiles::find(int fd) const {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return kNone;
  const SerialExecutor::Lock lock = thread_.state().lock();
  for (size_t i = 0; i < files_.size(); ++i)
    if (files_[i].device == info.st_dev && files_[i].node == info.st_ino) return i;
  return kNone;
}

PlacedFiles::Buffer* PlacedFiles::buffer_at(size_t file, uint64_t offset) {
  const size_t filled = buffers_.size() - (filling_ ? 1 : 0);
  for (size_t i = filled; i-- > 0;)
    if (Buffer& buffer = buffers_[i];
        buffer.file == file && buffer.offset <= offset && offset < buffer.offset + buffer.bytes)
      return &buffer;
  return nullptr;
}

PlacedFiles::Served PlacedFiles::serve(size_t file, uint64_t offset, void* out, size_t bytes) {
  SerialExecutor::Lock lock = thread_.state().lock();
  const File& from = files_[file];
  while (true) {
    if (Buffer* const buffer = buffer_at(file, offset)) {
      const size_t n = std::min<uint64_t>(bytes, buffer->offset + buffer->bytes - offset);
      ++buffer->readers;  // while this is not 0, make_room() keeps the buffer
      lock.unlock();
      std::memcpy(out, buffer->data + (offset - buffer->offset), n);
      lock.lock();
      --buffer->readers;
      buffer->unread -= std::min(n, buffer->unread);
      if (buffer->unread == 0) thread_.state().changed();
      return {.copied = n, .in_file = 0};
    }
    if (auto next = from.there.upper_bound(offset); next != from.there.begin())
      if (const uint64_t end = std::prev(next)->second; end > offset)
        return {.copied = 0, .in_file = static_cast<size_t>(std::min<uint64_t>(bytes, end - offset))};
    if (abandoned_ || thread_.state().failed(lock))
      fail(ErrorKind::kIo, from.path, ": was not written to its end");
    waiting_ = true;
    thread_.state().changed();
    bytes_.wait(lock, [&] { return !waiting_; });
  }
}

void PlacedFiles::abandon() {
  const SerialExecutor::Lock lock = thread_.state().lock();
  abandoned_ = true;
  wake_reader();
}

PlacedFiles::OpenFile& PlacedFiles::opened(size_t file) {
  for (const auto& open : open_)
    if (open->number == file) return *open;
  if (open_.size() == kMaxOpen) open_.pop_front();
  const auto named = [&]() -> const File& {
    const SerialExecutor::Lock lock = thread_.state().lock();
    return files_[file];  // used without the lock later: the paths do not change
  };
  return *open_.emplace_back(std::make_unique<OpenFile>(file, named()));
}

}  // namespace megalith
