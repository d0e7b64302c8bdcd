#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace megalith {

/// The members of a zip archive that stores them uncompressed, as torch writes it. The constructor trusts
/// only the central directory and checks everything else against it: each member's local header, plain
/// relative names, no duplicates (nor names that differ only in case), one disk, ranges within the archive
/// that do not overlap. Zip64 and data descriptors are supported. The constructor does not check the members'
/// bytes: call checked_bytes_of() to compare them with their CRC. `where` begins every message (kData).
class ZipArchive {
 public:
  struct Member {
    std::string_view name;
    uint64_t begin, end;  // where its bytes are in the archive
    uint32_t crc;
  };

  /// `bytes` must outlive the archive.
  ZipArchive(std::string_view bytes, std::string where);

  const std::vector<Member>& members() const { return members_; }  // sorted by name
  const Member* find(std::string_view name) const;                 // nullptr if there is no such member
  std::string_view bytes_of(const Member& member) const {
    return bytes_.substr(member.begin, member.end - member.begin);
  }
  /// As bytes_of(), but first compares the bytes with their CRC.
  std::string_view checked_bytes_of(const Member& member) const;

  static bool is_zip(std::string_view bytes) { return bytes.starts_with("PK\x03\x04"); }

 private:
  struct Entry;
  struct Directory;
  template <class... Parts>
  [[noreturn]] void refuse(const Parts&... parts) const;
  Directory directory() const;
  Directory zip64_directory(size_t locator) const;
  Entry entry_at(size_t& at, size_t end) const;
  void check_name(std::string_view name) const;
  Member member_of(const Entry& entry, size_t directory) const;
  void check_overlaps();
  void check_cases() const;
  [[noreturn]] void refuse_disks() const;

  std::string_view bytes_;
  std::string where_;
  std::vector<Member> members_;
};

}  // namespace megalith
