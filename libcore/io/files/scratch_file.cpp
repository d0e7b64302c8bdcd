#include "libcore/io/files/scratch_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <unistd.h>

#include "libcore/base/error.h"
#include "libcore/io/files/file_calls.h"

namespace megalith {
namespace {

constexpr size_t kBlock = size_t{1} << 20;

}  // namespace

ScratchFile::~ScratchFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void ScratchFile::append(const void* data, size_t bytes) {
  const auto* at = static_cast<const std::byte*>(data);
  buffer_.reserve(kBlock);  // reserved memory that is never used costs nothing
  while (bytes > 0) {
    const size_t n = std::min(bytes, kBlock - buffer_.size());
    buffer_.insert(buffer_.end(), at, at + n);
    at += n;
    bytes -= n;
    if (buffer_.size() == kBlock) flush();
  }
}

ScratchFile::ScratchFile(std::string path, const KeptBytes& kept)
    : folder_(std::move(path)), written_(kept.bytes / kBlock * kBlock), hash_(std::in_place) {
  descriptor_ = ::open(folder_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
  if (descriptor_ < 0) fail(ErrorKind::kIo, folder_, ": cannot open: ", std::strerror(errno));
  try {
    take_kept(kept);
  } catch (...) {
    ::close(descriptor_);
    throw;
  }
}

void ScratchFile::take_kept(const KeptBytes& kept) {
  buffer_.resize(written_ > 0 ? kBlock : 0);
  for (uint64_t at = 0; at < written_; at += kBlock) {
    read_at(at, buffer_);
    hash_->update(buffer_.data(), kBlock);
  }
  buffer_.resize(static_cast<size_t>(kept.bytes - written_));
  read_at(written_, buffer_);
  Xxh64 all = *hash_;
  all.update(buffer_.data(), buffer_.size());
  check_kept(folder_, kept, all);
}

KeptBytes ScratchFile::save() {
  write_buffer();
  sync_to_disk(descriptor_, folder_);
  Xxh64 all = *hash_;
  all.update(buffer_.data(), buffer_.size());
  return {size(), all.digest()};
}

void ScratchFile::flush() {
  if (descriptor_ < 0) descriptor_ = make_nameless(folder_);
  write_buffer();
  if (hash_) hash_->update(buffer_.data(), buffer_.size());
  written_ += buffer_.size();
  buffer_.clear();
}

void ScratchFile::write_buffer() const {
  write_at_place(descriptor_, {written_, buffer_.data(), buffer_.size()}, folder_);
}

void ScratchFile::read_at(uint64_t place, std::span<std::byte> out) const {
  const size_t done = read_at_place(descriptor_, {place, out.data(), out.size()}, folder_);
  if (done < out.size())
    fail(ErrorKind::kData, folder_, ": ends at byte ", place + done, "; it was truncated");
}

void ScratchFile::read(const std::function<void(std::span<const std::byte>)>& take) const {
  std::vector<std::byte> block(written_ > 0 ? kBlock : 0);
  for (uint64_t at = 0; at < written_; at += kBlock) {  // written_ is a multiple of kBlock
    read_at(at, block);
    take(block);
  }
  if (!buffer_.empty()) take(buffer_);
}

}  // namespace megalith
