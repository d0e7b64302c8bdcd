#include "libcore/io/parquet/thrift_reader.h"

#include "libcore/io/parquet/varint.h"

namespace megalith {
namespace {

bool is_integer(ThriftReader::Type type) {
  return type == ThriftReader::kI16 || type == ThriftReader::kI32 || type == ThriftReader::kI64;
}

}  // namespace

ThriftReader::Depth::Depth(ThriftReader& reader) : reader_(reader) {
  if (reader_.depth_ == kDeepest)
    fail_damaged(reader_.place_, "found values more than ", kDeepest, " deep in each other");
  ++reader_.depth_;
}

uint8_t ThriftReader::byte() {
  if (at_ == bytes_.size()) throw RanOut();
  return static_cast<uint8_t>(bytes_[at_++]);
}

uint64_t ThriftReader::varint() {
  if (const std::optional<uint64_t> value = read_varint([&] { return byte(); })) return *value;
  fail_damaged(place_, "found a number of more than 64 bits");
}

ThriftReader::Field ThriftReader::next_field(int& last) {
  const unsigned head = byte(), delta = head >> 4;
  const auto type = static_cast<Type>(head & 0x0f);
  if (type == kStop) return {0, kStop};
  if (type > kStruct)
    fail_damaged(place_, "found a value of type ", static_cast<int>(type), ", wanted 1 to 12");
  const int64_t id = delta > 0 ? last + static_cast<int64_t>(delta) : from_zigzag(varint());
  if (id < INT16_MIN || id > INT16_MAX) fail_damaged(place_, "found a field with number ", id);
  last = static_cast<int>(id);
  return {last, type};
}

void ThriftReader::require(const Field& field, Type wanted) const {
  if (field.type != wanted)
    fail_damaged(place_, "field ", field.id, " has type ", static_cast<int>(field.type), ", wanted ",
                 static_cast<int>(wanted));
}

int64_t ThriftReader::integer(const Field& field) {
  if (!is_integer(field.type)) require(field, kI32);
  return integer();
}

int64_t ThriftReader::integer() {
  return from_zigzag(varint());
}

bool ThriftReader::truth(const Field& field) {
  if (field.type != kFalse) require(field, kTrue);
  return field.type == kTrue;
}

std::string_view ThriftReader::binary(const Field& field) {
  require(field, kBinary);
  return binary();
}

std::string_view ThriftReader::binary() {
  const uint64_t size = varint();
  const size_t begin = at_;
  skip_bytes(size);
  return bytes_.substr(begin, size);
}

void ThriftReader::skip_bytes(uint64_t count) {
  if (count > bytes_.size() - at_) throw RanOut();
  at_ += static_cast<size_t>(count);
}

ThriftReader::ListHead ThriftReader::list_head() {
  constexpr unsigned kSizeFollows = 15;
  const unsigned head = byte();
  const uint64_t size = head >> 4 == kSizeFollows ? varint() : head >> 4;
  // Each element has a byte at least, so a damaged size makes no long loop.
  if (size > bytes_.size() - at_) throw RanOut();
  return {static_cast<size_t>(size), static_cast<Type>(head & 0x0f)};
}

size_t ThriftReader::list_size(Type wanted) {
  const ListHead head = list_head();
  if (head.type != wanted && head.size > 0)
    fail_damaged(place_, "found a list of type ", static_cast<int>(head.type), ", wanted ",
                 static_cast<int>(wanted));
  return head.size;
}

void ThriftReader::skip_map() {
  const uint64_t size = varint();
  if (size == 0) return;
  const unsigned types = byte();
  if (size > bytes_.size() - at_) throw RanOut();
  for (uint64_t left = size; left > 0; --left) {
    skip_element(static_cast<Type>(types >> 4));
    skip_element(static_cast<Type>(types & 0x0f));
  }
}

/// Skips a value in a list, set or map. There a truth is a byte of its own; in a struct it is in the field's
/// type.
void ThriftReader::skip_element(Type type) {
  type == kTrue || type == kFalse ? skip_bytes(1) : skip(type);
}

/// Skips the value of a field.
void ThriftReader::skip(Type type) {
  const Depth depth(*this);
  switch (type) {
    case kTrue:
    case kFalse:
      return;
    case kByte:
      return skip_bytes(1);
    case kI16:
    case kI32:
    case kI64:
      varint();
      return;
    case kDouble:
      return skip_bytes(sizeof(double));
    case kBinary:
      binary();
      return;
    case kList:
    case kSet: {
      const ListHead head = list_head();
      for (size_t left = head.size; left > 0; --left) skip_element(head.type);
      return;
    }
    case kMap:
      return skip_map();
    case kStruct:
      return read_struct([](ThriftReader&, const Field&) { return false; });
    case kStop:
      break;
  }
  fail_damaged(place_, "found a value of type ", static_cast<int>(type));
}

}  // namespace megalith
