#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "libcore/io/parquet/parquet_place.h"

namespace megalith {

/// Reads structs in the compact protocol of Apache Thrift, in which Parquet writes its footer and the headers
/// of its pages (thrift's doc/specs/thrift-compact-protocol.md). Reads nothing but the bytes that it is
/// given, and allocates nothing. Throws kData for what the protocol does not allow, and RanOut where the
/// bytes end.
class ThriftReader {
 public:
  /// The bytes end inside a value. Whether that is an error is known to the caller only.
  struct RanOut {};

  /// Types of values, by their number in the protocol.
  enum Type : uint8_t {
    kStop = 0,
    kTrue = 1,
    kFalse = 2,
    kByte = 3,
    kI16 = 4,
    kI32 = 5,
    kI64 = 6,
    kDouble = 7,
    kBinary = 8,
    kList = 9,
    kSet = 10,
    kMap = 11,
    kStruct = 12
  };
  struct Field {
    int id;
    Type type;
  };

  /// `bytes` must outlive the reader; `place` also.
  ThriftReader(std::string_view bytes, const ParquetPlace& place) : bytes_(bytes), place_(place) {}

  /// Reads a struct. Calls `take(*this, field)` for each field, which reads the value and returns true, or
  /// returns false for a field that it does not know; the value is then skipped.
  template <class Take>
  void read_struct(const Take& take) {
    const Depth depth(*this);
    int last = 0;
    for (Field field = next_field(last); field.type != kStop; field = next_field(last))
      if (!take(*this, field)) skip(field.type);
  }

  /// Reads a list. Calls `take(*this)` for each element, which must read it. `wanted`: the elements' type.
  template <class Take>
  void read_list(const Field& field, Type wanted, const Take& take) {
    require(field, kList);
    for (size_t left = list_size(wanted); left > 0; --left) take(*this);
  }

  /// The value of a field of type kI16, kI32 or kI64.
  int64_t integer(const Field& field);
  int64_t integer();  // of a list's element
  bool truth(const Field& field);
  std::string_view binary(const Field& field);  // views the bytes
  std::string_view binary();
  /// Throws if the field is of another type.
  void require(const Field& field, Type wanted) const;

  size_t taken() const { return at_; }  // bytes that were read

 private:
  /// How deeply structs and lists may lie in each other; Parquet's own are 6 deep.
  static constexpr int kDeepest = 24;
  class Depth {
   public:
    explicit Depth(ThriftReader& reader);
    ~Depth() { --reader_.depth_; }
    Depth(const Depth&) = delete;
    Depth& operator=(const Depth&) = delete;

   private:
    ThriftReader& reader_;
  };
  struct ListHead {
    size_t size;
    Type type;
  };

  uint8_t byte();
  uint64_t varint();
  Field next_field(int& last);
  ListHead list_head();
  size_t list_size(Type wanted);
  void skip(Type type);
  void skip_element(Type type);
  void skip_map();
  void skip_bytes(uint64_t count);

  std::string_view bytes_;
  const ParquetPlace& place_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace megalith
