#include "tests/support/torch_bytes.h"

#include <cstring>

#include "libcore/hash/crc32.h"

namespace megalith::test {
namespace {

template <class T>
std::string bytes_of(T value) {
  std::string out(sizeof value, '\0');
  std::memcpy(out.data(), &value, sizeof value);
  return out;
}

uint32_t crc_of(const ZipMember& member) {
  return crc32(0, member.bytes.data(), member.bytes.size()) + member.crc_error;
}

// The header fields from the needed version to the sizes, which a local header and the directory have in
// common.
std::string common_header(const ZipMember& member, uint32_t stored, uint32_t size) {
  return u16(20) + u16(member.flags) + u16(member.method) + u32(0) + u32(crc_of(member)) + u32(stored) +
         u32(size);
}

std::string local_header(const ZipMember& member, bool wide) {
  const bool descriptor = (member.flags & 8) != 0;
  const auto size = static_cast<uint32_t>(descriptor || wide ? 0 : member.bytes.size());
  return "PK\x03\x04" + common_header(member, wide ? 0xFFFFFFFF : size, wide ? 0xFFFFFFFF : size) +
         u16(static_cast<int>(member.name.size())) + u16(0) + member.name;
}

std::string directory_entry(const ZipMember& member, uint64_t place, bool wide) {
  const uint64_t said =
      member.directory_size >= 0 ? static_cast<uint64_t>(member.directory_size) : member.bytes.size();
  const std::string extra =
      wide ? u16(1) + u16(24) + u64(member.bytes.size()) + u64(said) + u64(place) : std::string();
  const auto size = static_cast<uint32_t>(member.bytes.size());
  return "PK\x01\x02" + u16(20) +
         common_header(member, wide ? 0xFFFFFFFF : static_cast<uint32_t>(said), wide ? 0xFFFFFFFF : size) +
         u16(static_cast<int>(member.name.size())) + u16(static_cast<int>(extra.size())) + u16(0) + u16(0) +
         u16(0) + u32(0) + u32(wide ? 0xFFFFFFFF : static_cast<uint32_t>(place)) + member.name + extra;
}

size_t value_of_key(const std::string& pickle, size_t at, const std::string& key) {
  if (at == std::string::npos) return at;
  const size_t end = at + text(key).size();
  return end + (pickle[end] == 'q' ? 2 : pickle[end] == 'r' ? 5 : 0);  // BINPUT, LONG_BINPUT
}

}  // namespace

std::string u8(int value) {
  return {static_cast<char>(value)};
}
std::string u16(int value) {
  return bytes_of(static_cast<uint16_t>(value));
}
std::string u32(uint32_t value) {
  return bytes_of(value);
}
std::string u64(uint64_t value) {
  return bytes_of(value);
}

std::string zip_of(const std::vector<ZipMember>& members, bool zip64) {
  std::string out, directory;
  for (const ZipMember& member : members) {
    directory += directory_entry(member, out.size() + member.local, zip64);
    out += local_header(member, zip64) + member.bytes;
    if ((member.flags & 8) != 0) {
      const auto size = static_cast<uint32_t>(member.bytes.size());
      out += "PK\x07\x08" + u32(crc_of(member)) + u32(size) + u32(size);
    }
  }
  const uint64_t begin = out.size(), end = begin + directory.size(), n = members.size();
  out += directory;
  if (zip64)
    out += "PK\x06\x06" + u64(44) + u16(45) + u16(45) + u32(0) + u32(0) + u64(n) + u64(n) +
           u64(directory.size()) + u64(begin) + "PK\x06\x07" + u32(0) + u64(end) + u32(1);
  const auto count = zip64 ? 0xFFFF : static_cast<int>(n);
  return out + "PK\x05\x06" + u16(0) + u16(0) + u16(count) + u16(count) +
         u32(static_cast<uint32_t>(directory.size())) + u32(static_cast<uint32_t>(begin)) + u16(0);
}

std::string text(std::string_view value) {
  return 'X' + u32(static_cast<uint32_t>(value.size())) + std::string(value);
}
std::string whole(int64_t value) {
  return "\x8a\x08" + bytes_of(value);
}
std::string global(std::string_view module, std::string_view name) {
  return 'c' + std::string(module) + '\n' + std::string(name) + '\n';
}
std::string tuple(const std::vector<std::string>& items) {
  std::string out = "(";
  for (const std::string& item : items) out += item;
  return out + 't';
}
std::string wholes(const std::vector<int64_t>& items) {
  std::vector<std::string> texts;
  for (const int64_t item : items) texts.push_back(whole(item));
  return tuple(texts);
}
std::string pickled_dict(const std::vector<std::pair<std::string, std::string>>& items) {
  std::string out = "\x80\x02}(";
  for (const auto& [key, value] : items) out += text(key) + value;
  return out + "u.";
}
size_t first_value(const std::string& pickle, const std::string& key) {
  return value_of_key(pickle, pickle.find(text(key)), key);
}
size_t last_value(const std::string& pickle, const std::string& key) {
  return value_of_key(pickle, pickle.rfind(text(key)), key);
}
std::string tensor(const PickledTensor& t) {
  return global("torch._utils", "_rebuild_tensor_v2") +
         tuple(
             {tuple({text("storage"), global("torch", t.type), text(t.key), text("cpu"), whole(t.elements)}) +
                  'Q',
              whole(t.offset), wholes(t.extents), wholes(t.strides), "\x89",
              global("collections", "OrderedDict") + ")R"}) +
         'R';
}

std::vector<ZipMember> torch_members(const std::string& pickle) {
  std::string storage;
  for (int i = 0; i < 16; ++i) storage += bytes_of(static_cast<float>(i));
  return {{.name = "a/data.pkl", .bytes = pickle},
          {.name = "a/byteorder", .bytes = "little"},
          {.name = "a/data/0", .bytes = storage},
          {.name = "a/version", .bytes = "3\n"}};
}
std::string torch_zip(const std::string& pickle) {
  return zip_of(torch_members(pickle));
}

}  // namespace megalith::test
