#include "libcore/checkpoint/torch/zip_archive.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <unordered_map>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/hash/crc32.h"

// The format is described in PKWARE's APPNOTE.TXT, sections 4.3 and 4.5.3.
namespace megalith {
namespace {

constexpr std::string_view kLocal = "PK\x03\x04", kCentral = "PK\x01\x02", kEnd = "PK\x05\x06",
                           kEnd64 = "PK\x06\x06", kLocator64 = "PK\x06\x07";
constexpr size_t kLocalBytes = 30, kCentralBytes = 46, kEndBytes = 22, kEnd64Bytes = 56, kLocator64Bytes = 20;
constexpr size_t kGreatestComment = 65535;
constexpr uint16_t kEncrypted = 1, kDescriptorFlag = 8;
constexpr uint16_t kZip64Extra = 1;
constexpr uint32_t kIn64 = 0xFFFFFFFF;  // this value means that the number is in the zip64 extra field

// Reads a little-endian number. Assumes that the machine is little endian, too.
template <class T>
T number_at(std::string_view bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

bool has_room(std::string_view bytes, uint64_t at, uint64_t n) {
  return at <= bytes.size() && n <= bytes.size() - at;
}

bool has_signature(std::string_view bytes, uint64_t at, std::string_view signature) {
  return has_room(bytes, at, signature.size()) && bytes.substr(at, signature.size()) == signature;
}

// The data of the extra field of this kind; empty if there is none.
std::string_view extra_field(std::string_view extra, uint16_t kind) {
  while (extra.size() >= 4) {
    const auto found = number_at<uint16_t>(extra, 0);
    const size_t n = number_at<uint16_t>(extra, 2);
    if (n > extra.size() - 4) return {};
    if (found == kind) return extra.substr(4, n);
    extra.remove_prefix(4 + n);
  }
  return {};
}

// Shortens a name for a message: it may have 65,535 bytes.
std::string shown(std::string_view name) {
  constexpr size_t kMax = 100;
  if (name.size() <= kMax) return quote(name);
  return concat(quote(shortened(name, kMax)), " (", name.size(), " bytes)");
}

}  // namespace

struct ZipArchive::Directory {
  uint64_t begin, end, entries;
};

// An entry of the central directory.
struct ZipArchive::Entry {
  std::string_view name;
  uint16_t flags, method;
  uint32_t crc;
  uint64_t stored, size, local;
};

template <class... Parts>
void ZipArchive::refuse(const Parts&... parts) const {
  fail(ErrorKind::kData, where_, ": ", parts...);
}

ZipArchive::ZipArchive(std::string_view bytes, std::string where) : bytes_(bytes), where_(std::move(where)) {
  const Directory directory = this->directory();
  size_t at = directory.begin;
  for (uint64_t i = 0; i < directory.entries; ++i)
    members_.push_back(member_of(entry_at(at, directory.end), directory.begin));
  if (at != directory.end)
    refuse("the zip directory ends at byte ", directory.end, ", its ", directory.entries, " entries at byte ",
           at);
  check_overlaps();
  std::sort(members_.begin(), members_.end(),
            [](const Member& a, const Member& b) { return a.name < b.name; });
  for (size_t i = 1; i < members_.size(); ++i)
    if (members_[i].name == members_[i - 1].name)
      refuse("the zip archive holds ", shown(members_[i].name), " twice");
  check_cases();
}

// Rejects names that differ only in case: on file systems that ignore case, one file would replace the other.
void ZipArchive::check_cases() const {
  std::unordered_map<std::string, std::string_view> names;
  for (const Member& member : members_) {
    if (const auto [at, is_new] = names.emplace(lower_ascii(member.name), member.name); !is_new)
      refuse("the zip archive holds ", shown(at->second), " and ", shown(member.name),
             ", which differ by case only");
  }
}

ZipArchive::Directory ZipArchive::directory() const {
  const size_t size = bytes_.size(), max_back = std::min(size, kEndBytes + kGreatestComment);
  for (size_t back = kEndBytes; back <= max_back; ++back) {
    const size_t at = size - back;
    if (!has_signature(bytes_, at, kEnd) || number_at<uint16_t>(bytes_, at + 20) != back - kEndBytes)
      continue;
    if (at >= kLocator64Bytes && has_signature(bytes_, at - kLocator64Bytes, kLocator64))
      return zip64_directory(at - kLocator64Bytes);
    if (number_at<uint32_t>(bytes_, at + 4) != 0 ||
        number_at<uint16_t>(bytes_, at + 8) != number_at<uint16_t>(bytes_, at + 10))
      refuse_disks();
    const uint64_t begin = number_at<uint32_t>(bytes_, at + 16), n = number_at<uint32_t>(bytes_, at + 12);
    if (begin + n != at)
      refuse("its zip directory should end at byte ", at, ", but is said to lie at bytes ", begin, " to ",
             begin + n);
    return {begin, at, number_at<uint16_t>(bytes_, at + 10)};
  }
  refuse("the zip archive has no end record; the file was probably truncated");
}

void ZipArchive::refuse_disks() const {
  refuse("its zip directory is said to span several disks; wanted one file");
}

ZipArchive::Directory ZipArchive::zip64_directory(size_t locator) const {
  const auto at = number_at<uint64_t>(bytes_, locator + 8);
  if (!has_room(bytes_, at, kEnd64Bytes) || !has_signature(bytes_, at, kEnd64) || at + kEnd64Bytes > locator)
    refuse("its zip64 end record should begin at byte ", at, ", but does not");
  if (number_at<uint32_t>(bytes_, locator + 4) != 0 || number_at<uint64_t>(bytes_, at + 16) != 0 ||
      number_at<uint64_t>(bytes_, at + 24) != number_at<uint64_t>(bytes_, at + 32))
    refuse_disks();
  const auto begin = number_at<uint64_t>(bytes_, at + 48), n = number_at<uint64_t>(bytes_, at + 40);
  if (begin > at || n != at - begin)
    refuse("its zip directory should end at byte ", at, ", but is said to be ", n, " bytes from byte ",
           begin);
  return {begin, at, number_at<uint64_t>(bytes_, at + 32)};
}

ZipArchive::Entry ZipArchive::entry_at(size_t& at, size_t end) const {
  if (end - at < kCentralBytes || !has_signature(bytes_, at, kCentral))
    refuse("the zip directory has no entry at byte ", at);
  const size_t name = number_at<uint16_t>(bytes_, at + 28), extra = number_at<uint16_t>(bytes_, at + 30),
               comment = number_at<uint16_t>(bytes_, at + 32);
  const size_t whole = kCentralBytes + name + extra + comment;
  if (whole > end - at) refuse("the zip directory's entry at byte ", at, " runs past its end");
  if (number_at<uint16_t>(bytes_, at + 34) != 0) refuse_disks();
  Entry entry{.name = bytes_.substr(at + kCentralBytes, name),
              .flags = number_at<uint16_t>(bytes_, at + 8),
              .method = number_at<uint16_t>(bytes_, at + 10),
              .crc = number_at<uint32_t>(bytes_, at + 16),
              .stored = number_at<uint32_t>(bytes_, at + 20),
              .size = number_at<uint32_t>(bytes_, at + 24),
              .local = number_at<uint32_t>(bytes_, at + 42)};
  std::string_view wide = extra_field(bytes_.substr(at + kCentralBytes + name, extra), kZip64Extra);
  // the extra field has only those that do not fit in 32 bits, in this order
  for (uint64_t* value : {&entry.size, &entry.stored, &entry.local}) {
    if (*value != kIn64) continue;
    if (wide.size() < 8) refuse("zip member ", shown(entry.name), " has no zip64 sizes");
    *value = number_at<uint64_t>(wide, 0);
    wide.remove_prefix(8);
  }
  at += whole;
  return entry;
}

void ZipArchive::check_name(std::string_view name) const {
  bool plain = !name.empty() && name.find_first_of(std::string_view("\\\0", 2)) == std::string_view::npos;
  for (const std::string& part : split(name, '/'))
    plain = plain && !part.empty() && part != "." && part != "..";
  if (!plain) refuse("zip member ", shown(name), " has a name that leads out of its folder");
}

ZipArchive::Member ZipArchive::member_of(const Entry& entry, size_t directory) const {
  check_name(entry.name);
  if (entry.method != 0)
    refuse("zip member ", shown(entry.name), " is compressed (method ", entry.method,
           "); wanted stored (method 0), as torch.save and numpy.savez write it");
  if (entry.stored != entry.size)
    refuse("zip member ", shown(entry.name), " has ", entry.size, " bytes, but is said to take ",
           entry.stored);
  if ((entry.flags & kEncrypted) != 0) refuse("zip member ", shown(entry.name), " is encrypted");
  const std::string_view front = bytes_.substr(0, directory);
  if (!has_room(front, entry.local, kLocalBytes) || !has_signature(front, entry.local, kLocal))
    refuse("zip member ", shown(entry.name), " should begin at byte ", entry.local, ", but does not");
  const size_t name = number_at<uint16_t>(front, entry.local + 26),
               extra = number_at<uint16_t>(front, entry.local + 28);
  const uint64_t begin = entry.local + kLocalBytes + name + extra;
  if (!has_room(front, begin, entry.size))
    refuse("zip member ", shown(entry.name), " of ", entry.size, " bytes at byte ", begin,
           " runs into the directory at byte ", directory);
  if (front.substr(entry.local + kLocalBytes, name) != entry.name)
    refuse("zip member ", shown(entry.name), " calls itself ",
           shown(front.substr(entry.local + kLocalBytes, name)));
  if ((number_at<uint16_t>(front, entry.local + 6) & kDescriptorFlag) == 0) {
    const auto crc = number_at<uint32_t>(front, entry.local + 14),
               stored = number_at<uint32_t>(front, entry.local + 18),
               size = number_at<uint32_t>(front, entry.local + 22);
    if (crc != entry.crc || (size != kIn64 && size != entry.size) ||
        (stored != kIn64 && stored != entry.stored))
      refuse("zip member ", shown(entry.name), " and the directory disagree about its size or its CRC");
  }
  return {entry.name, begin, begin + entry.size, entry.crc};
}

void ZipArchive::check_overlaps() {
  std::sort(members_.begin(), members_.end(), [](const Member& a, const Member& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
  });
  for (size_t i = 1; i < members_.size(); ++i)
    if (members_[i].begin < members_[i - 1].end || members_[i].begin == members_[i - 1].begin)
      refuse("zip members ", shown(members_[i - 1].name), " and ", shown(members_[i].name), " overlap");
}

const ZipArchive::Member* ZipArchive::find(std::string_view name) const {
  const auto it = std::lower_bound(members_.begin(), members_.end(), name,
                                   [](const Member& m, std::string_view wanted) { return m.name < wanted; });
  return it == members_.end() || it->name != name ? nullptr : &*it;
}

std::string_view ZipArchive::checked_bytes_of(const Member& member) const {
  const std::string_view bytes = bytes_of(member);
  if (crc32(0, bytes.data(), bytes.size()) != member.crc)
    refuse("zip member ", shown(member.name), " does not match its CRC; the file is damaged");
  return bytes;
}

}  // namespace megalith
