#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace megalith::test {

/// A member of a zip archive, and the false values that a hostile writer may state for it.
struct ZipMember {
  std::string name, bytes;
  uint16_t method = 0, flags = 0;
  int64_t directory_size = -1;  // size stated in the directory; -1: the true one
  uint32_t crc_error = 0;       // added to the true CRC in the headers
  uint32_t local = 0;           // added to the true offset of the local header
};
/// A zip archive that stores its members uncompressed. `zip64`: with ZIP64's end record and sizes.
std::string zip_of(const std::vector<ZipMember>& members, bool zip64 = false);

/// Little-endian numbers.
std::string u8(int value);
std::string u16(int value);
std::string u32(uint32_t value);
std::string u64(uint64_t value);

/// Functions that return pickle opcodes with their arguments.
std::string text(std::string_view value);                            // BINUNICODE
std::string whole(int64_t value);                                    // LONG1
std::string global(std::string_view module, std::string_view name);  // GLOBAL
std::string tuple(const std::vector<std::string>& items);
std::string wholes(const std::vector<int64_t>& items);  // a tuple of LONG1
/// The pickle of the dict {key: value, …}, complete from PROTO 2 to STOP.
std::string pickled_dict(const std::vector<std::pair<std::string, std::string>>& items);
/// Where the value of a text key begins in `pickle`, after the key and its memo: that of the key's first or
/// last place. npos if the key is not there.
size_t first_value(const std::string& pickle, const std::string& key);
size_t last_value(const std::string& pickle, const std::string& key);

struct PickledTensor {
  std::vector<int64_t> extents, strides;
  int64_t offset = 0, elements = 16;
  std::string key = "0", type = "FloatStorage";
};
std::string tensor(const PickledTensor& t);

/// The members of a torch.save file with this pickle. Its only storage, "0", holds 0, 1, …, 15 in fp32.
std::vector<ZipMember> torch_members(const std::string& pickle);
std::string torch_zip(const std::string& pickle);

}  // namespace megalith::test
