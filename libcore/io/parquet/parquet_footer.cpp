#include "libcore/io/parquet/parquet_footer.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/io/parquet/thrift_reader.h"
#include "libcore/io/streams/input_stream.h"

namespace megalith {
namespace {

using parquet::Meaning;
using Field = ThriftReader::Field;

/// Bytes behind the footer: its size, and "PAR1".
constexpr uint64_t kEnd = sizeof(uint32_t) + parquet::kMagic.size();

/// The memory that a footer takes. A damaged one may name more row groups and columns than fit: a byte is
/// enough for each.
class FooterMemory {
 public:
  FooterMemory(uint64_t bytes, const ParquetPlace& place) : place_(place) { take(bytes); }
  template <class Element>
  void take_element() {
    take(2 * sizeof(Element));  // of a vector that grows
  }
  void take(uint64_t bytes) {
    constexpr uint64_t kMost = uint64_t{512} << 20;
    taken_ += bytes;
    if (taken_ > kMost)
      fail(ErrorKind::kData, place_.path, ": ", place_.part, ", from byte ", place_.byte,
           " on, takes more than ", format_bytes(static_cast<double>(kMost)),
           " of memory; restore the file, or write it again with fewer row groups");
  }
  uint64_t taken() const { return taken_; }

 private:
  const ParquetPlace& place_;
  uint64_t taken_ = 0;
};

bool is_signed(ThriftReader& in) {
  bool is_signed = true;
  in.read_struct([&](ThriftReader& value, const Field& field) {
    if (field.id != 2) return false;
    is_signed = value.truth(field);
    return true;
  });
  return is_signed;
}

/// A LogicalType is a union: the number of its one field says which.
Meaning logical_meaning(ThriftReader& in) {
  constexpr int kInteger = 10;
  constexpr std::array<std::pair<int, Meaning>, 8> kMeanings = {{{1, Meaning::kUtf8},
                                                                 {2, Meaning::kMap},
                                                                 {3, Meaning::kList},
                                                                 {4, Meaning::kEnum},
                                                                 {5, Meaning::kDecimal},
                                                                 {6, Meaning::kDate},
                                                                 {11, Meaning::kNone},  // a column of nulls
                                                                 {12, Meaning::kJson}}};
  Meaning meaning = Meaning::kOther;
  in.read_struct([&](ThriftReader& value, const Field& field) {
    if (field.id == kInteger) {
      value.require(field, ThriftReader::kStruct);
      meaning = is_signed(value) ? Meaning::kInt64 : Meaning::kUint64;
      return true;
    }
    for (const auto& [id, known] : kMeanings)
      if (id == field.id) meaning = known;
    return false;
  });
  return meaning;
}

SchemaElement schema_element(ThriftReader& in) {
  SchemaElement element;
  std::optional<Meaning> logical;
  in.read_struct([&](ThriftReader& value, const Field& field) {
    switch (field.id) {
      case 1:
        element.type = static_cast<parquet::Physical>(value.integer(field));
        return true;
      case 2:
        element.type_length = static_cast<int32_t>(value.integer(field));
        return true;
      case 3:
        element.repetition = static_cast<parquet::Repetition>(value.integer(field));
        return true;
      case 4:
        element.name = value.binary(field);
        return true;
      case 5:
        element.children = static_cast<int32_t>(value.integer(field));
        return true;
      case 6:
        element.meaning = static_cast<Meaning>(value.integer(field));
        return true;
      case 10:
        value.require(field, ThriftReader::kStruct);
        logical = logical_meaning(value);
        return true;
      default:
        return false;
    }
  });
  if (logical) element.meaning = *logical;
  return element;
}

void read_column_metadata(ThriftReader& in, ColumnChunk& chunk) {
  int64_t data = -1, dictionary = -1;
  in.read_struct([&](ThriftReader& value, const Field& field) {
    switch (field.id) {
      case 4:
        chunk.codec = static_cast<parquet::Codec>(value.integer(field));
        return true;
      case 5:
        chunk.values = value.integer(field);
        return true;
      case 7:
        chunk.bytes = value.integer(field);
        return true;
      case 9:
        data = value.integer(field);
        return true;
      case 11:
        dictionary = value.integer(field);
        return true;
      default:
        return false;
    }
  });
  // Some writers say 0 where there is no dictionary.
  chunk.begin = dictionary > 0 ? std::min(dictionary, data) : data;
}

ColumnChunk column_chunk(ThriftReader& in) {
  ColumnChunk chunk;
  in.read_struct([&](ThriftReader& value, const Field& field) {
    switch (field.id) {
      case 1:
        chunk.in_this_file = value.binary(field).empty();
        return true;
      case 3:
        value.require(field, ThriftReader::kStruct);
        read_column_metadata(value, chunk);
        return true;
      case 8:  // how it is encrypted
        chunk.encrypted = true;
        return false;
      default:
        return false;
    }
  });
  return chunk;
}

RowGroup row_group(ThriftReader& in, FooterMemory& memory) {
  RowGroup group;
  in.read_struct([&](ThriftReader& value, const Field& field) {
    if (field.id == 1)
      value.read_list(field, ThriftReader::kStruct, [&](ThriftReader& element) {
        memory.take_element<ColumnChunk>();
        group.columns.push_back(column_chunk(element));
      });
    else if (field.id == 3)
      group.rows = value.integer(field);
    else
      return false;
    return true;
  });
  return group;
}

ParquetFooter parse(std::string_view bytes, const ParquetPlace& place, FooterMemory& memory) try {
  ParquetFooter footer;
  ThriftReader in(bytes, place);
  in.read_struct([&](ThriftReader& value, const Field& field) {
    if (field.id == 2)
      value.read_list(field, ThriftReader::kStruct, [&](ThriftReader& element) {
        memory.take_element<SchemaElement>();
        footer.schema.push_back(schema_element(element));
        memory.take(footer.schema.back().name.capacity());
      });
    else if (field.id == 4)
      value.read_list(field, ThriftReader::kStruct, [&](ThriftReader& element) {
        memory.take_element<RowGroup>();
        memory.take_element<uint64_t>();  // of `begins`
        footer.groups.push_back(row_group(element, memory));
      });
    else
      return false;
    return true;
  });
  footer.memory = memory.taken();
  return footer;
} catch (const ThriftReader::RanOut&) {
  fail_damaged(place, "a value goes beyond its ", bytes.size(), " bytes");
}

/// Checks that the chunks lie between the file's first bytes and its footer.
void check_group(const RowGroup& group, size_t number, size_t columns, const ParquetPlace& footer) {
  const ParquetPlace place{footer.path, concat("row group ", number, " of its footer"), footer.byte};
  if (group.columns.size() != columns)
    fail_damaged(place, "found ", group.columns.size(), " columns, wanted the schema's ", columns);
  if (group.rows < 0) fail_damaged(place, "found ", group.rows, " rows");
  const auto end = static_cast<int64_t>(footer.byte), begin = static_cast<int64_t>(parquet::kMagic.size());
  for (const ColumnChunk& chunk : group.columns) {
    if (!chunk.in_this_file)
      fail(ErrorKind::kData, footer.path, ": its columns are in other files; name those instead");
    if (chunk.encrypted) fail_unread(footer, "says that columns are encrypted");
    // Nothing is read of a column without values: pyarrow writes an empty dictionary, and 0 as the offset.
    if (chunk.values == 0 && chunk.bytes >= 0) continue;
    if (chunk.values < 0 || chunk.bytes < 0 || chunk.begin < begin || chunk.begin > end ||
        chunk.bytes > end - chunk.begin)
      fail_damaged(place, "found a column of ", chunk.values, " values in ", chunk.bytes, " bytes from byte ",
                   chunk.begin, " on, wanted bytes between ", begin, " and ", end);
  }
}

void check(const ParquetFooter& footer, const ParquetPlace& place) {
  if (footer.schema.empty()) fail_damaged(place, "found no schema");
  const auto columns = std::count_if(footer.schema.begin(), footer.schema.end(),
                                     [](const SchemaElement& element) { return element.type.has_value(); });
  int64_t rows = 0;
  for (size_t i = 0; i < footer.groups.size(); ++i) {
    check_group(footer.groups[i], i, static_cast<size_t>(columns), place);
    if (__builtin_add_overflow(rows, footer.groups[i].rows, &rows))
      fail_damaged(place, "found more rows than 64 bits can count");
  }
}

/// The byte at which the first of a row group's columns begins; `otherwise` if the footer does not say it.
uint64_t begin_of(const RowGroup& group, uint64_t otherwise) {
  const auto first =
      std::min_element(group.columns.begin(), group.columns.end(),
                       [](const ColumnChunk& a, const ColumnChunk& b) { return a.begin < b.begin; });
  return first == group.columns.end() || first->begin < 0 ? otherwise : static_cast<uint64_t>(first->begin);
}

/// The number of bytes of the footer, which the file's last eight bytes say.
uint64_t footer_size(const ReadableFile& file, const std::string& name) {
  constexpr uint64_t kLeast = kEnd + parquet::kMagic.size();
  const ParquetPlace place{name, "its last bytes", file.size() - std::min(file.size(), kEnd)};
  if (file.size() < kLeast)
    fail_damaged(place, "the file has ", file.size(), " bytes, wanted at least ", kLeast,
                 "; it was truncated");
  std::array<char, kEnd> end{};
  file.read_at(place.byte, end.data(), end.size());
  const std::string_view magic(end.data() + sizeof(uint32_t), parquet::kMagic.size());
  if (magic == parquet::kEncryptedMagic) fail_unread({name, "its footer", place.byte}, "is encrypted");
  if (magic != parquet::kMagic)
    fail_damaged(place, "found no \"PAR1\" at the end; the file was truncated, or is still being written");
  uint32_t size;
  std::memcpy(&size, end.data(), sizeof size);  // the format is little-endian, as we are
  if (size > file.size() - kLeast)
    fail_damaged(place, "found a footer of ", size, " bytes in a file of ", file.size());
  return size;
}

}  // namespace

bool is_parquet(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored) && begins_as_parquet(head_of_file(path));
}

bool begins_as_parquet(std::string_view head) {
  return head.starts_with(parquet::kMagic) || head.starts_with(parquet::kEncryptedMagic);
}

ParquetFooter read_parquet_footer(const ReadableFile& file, const std::string& name) {
  const uint64_t size = footer_size(file, name);
  const ParquetPlace place{name, "its footer", file.size() - kEnd - size};
  FooterMemory memory(size, place);
  std::string bytes(size, '\0');
  file.read_at(place.byte, bytes.data(), bytes.size());
  ParquetFooter footer = parse(bytes, place, memory);
  check(footer, place);
  uint64_t begin = 0;
  for (const RowGroup& group : footer.groups) {
    if (!footer.begins.empty()) begin = begin_of(group, begin);
    footer.begins.push_back(begin);
  }
  footer.begins.push_back(file.size());
  return footer;
}

std::optional<uint64_t> row_group_at_or_behind(const std::string& path, uint64_t byte) {
  const std::vector<uint64_t> begins = read_parquet_footer(ReadableFile(path)).begins;
  if (!std::is_sorted(begins.begin(), begins.end(), std::less_equal<>())) return std::nullopt;
  return *std::lower_bound(begins.begin(), begins.end() - 1, byte);  // the last is the file's size
}

}  // namespace megalith
