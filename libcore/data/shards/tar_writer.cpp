#include "libcore/data/shards/tar_writer.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <span>

#include "libcore/base/error.h"
#include "libcore/io/files/file.h"

namespace megalith {
namespace {

constexpr size_t kBlock = 512;  // headers and contents begin at multiples of it

/// A header of POSIX.1-1988 ("ustar"). Numbers are octal, and each ends with a zero byte.
struct Header {
  char name[100], mode[8], user[8], group[8], size[12], time[12], sum[8], type, link[100], magic[6],
      version[2], user_name[32], group_name[32], major[8], minor[8], prefix[155], padding[12];
};
static_assert(sizeof(Header) == kBlock);

/// Writes `value` in octal digits with leading zeros, and a zero byte.
template <size_t N>
void put_octal(char (&field)[N], uint64_t value) {
  field[N - 1] = '\0';
  for (size_t i = N - 1; i-- > 0; value >>= 3) field[i] = static_cast<char>('0' + (value & 7));
}

/// GNU tar's form of a number that has too many octal digits: a first bit of 1, then big-endian bytes.
template <size_t N>
void put_large(char (&field)[N], uint64_t value) {
  std::memset(field, 0, N);
  for (size_t i = N; i-- > N - sizeof value; value >>= 8) field[i] = static_cast<char>(value & 0xff);
  field[0] = static_cast<char>(0x80);
}

Header header_of(const std::string& name, uint64_t size) {
  constexpr uint64_t kLarge = uint64_t{1} << 33;
  Header header{};
  if (name.size() > sizeof header.name)
    fail(ErrorKind::kUsage, name, ": has more than ", sizeof header.name,
         " bytes, which a tar archive cannot hold; give a shorter key");
  std::memcpy(header.name, name.data(), name.size());
  put_octal(header.mode, 0644);
  put_octal(header.user, 0);
  put_octal(header.group, 0);
  if (size < kLarge)
    put_octal(header.size, size);
  else
    put_large(header.size, size);
  put_octal(header.time, 0);
  header.type = '0';
  std::memcpy(header.magic, "ustar", sizeof header.magic);
  std::memcpy(header.version, "00", sizeof header.version);
  std::memset(header.sum, ' ', sizeof header.sum);
  std::array<unsigned char, kBlock> bytes;
  std::memcpy(bytes.data(), &header, kBlock);
  const auto sum = std::accumulate(bytes.begin(), bytes.end(), uint64_t{0});
  char digits[7];
  put_octal(digits, sum);
  std::memcpy(header.sum, digits, sizeof digits);
  return header;
}

}  // namespace

void TarWriter::add(const std::string& name, const std::string& path) {
  const ReadableFile file(path);
  const Header header = header_of(name, file.size());
  sink_({reinterpret_cast<const char*>(&header), sizeof header});
  uint64_t written = 0;
  file.stream([&](std::span<const std::byte> block) {
    sink_({reinterpret_cast<const char*>(block.data()), block.size()});
    written += block.size();
  });
  sink_(std::string((kBlock - written % kBlock) % kBlock, '\0'));
}

void TarWriter::finish() {
  sink_(std::string(2 * kBlock, '\0'));
}

}  // namespace megalith
