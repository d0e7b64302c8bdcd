#include "libcore/io/parquet/column_values.h"

#include <array>
#include <cstring>
#include <string>
#include <type_traits>

#include "libcore/io/parquet/packed_numbers.h"

namespace megalith {
namespace {

using parquet::Encoding;
using parquet::Physical;

/// Takes bytes from the beginning of a page.
class Taker {
 public:
  Taker(std::string_view bytes, const ParquetPlace& place) : bytes_(bytes), place_(place) {}

  std::string_view take(uint64_t count) {
    if (count > bytes_.size())
      fail_damaged(place_, "found a value of ", count, " bytes with ", bytes_.size(), " bytes left");
    const std::string_view taken = bytes_.substr(0, count);
    bytes_.remove_prefix(taken.size());
    return taken;
  }
  template <class T>
  T number() {  // little-endian, as we are
    T value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  std::string_view rest() const { return bytes_; }

 private:
  std::string_view bytes_;
  const ParquetPlace& place_;
};

template <class T>
void set_number(ColumnValue& value, T number) {
  if constexpr (std::is_floating_point_v<T>)
    value.real = static_cast<double>(number);
  else
    value.integer = number;
}

template <class T>
class PlainNumbers final : public ColumnValues {
 public:
  explicit PlainNumbers(const StoredValues& stored) : in_(stored.bytes, stored.place) {}
  void next(ColumnValue& value) override { set_number(value, in_.number<T>()); }

 private:
  Taker in_;
};

class PlainTexts final : public ColumnValues {
 public:
  explicit PlainTexts(const StoredValues& stored) : in_(stored.bytes, stored.place) {}
  void next(ColumnValue& value) override { value.text = in_.take(in_.number<uint32_t>()); }

 private:
  Taker in_;
};

class PlainTruths final : public ColumnValues {
 public:
  explicit PlainTruths(const StoredValues& stored) : in_(stored.bytes, stored.place) {}
  void next(ColumnValue& value) override {
    if (left_ == 0) {
      bits_ = in_.number<uint8_t>();
      left_ = 8;
    }
    value.integer = bits_ & 1;
    bits_ = static_cast<uint8_t>(bits_ >> 1);
    --left_;
  }

 private:
  Taker in_;
  uint8_t bits_ = 0;
  int left_ = 0;
};

/// Truths as runs, after the number of their bytes.
class RunTruths final : public ColumnValues {
 public:
  explicit RunTruths(const StoredValues& stored) : runs_(bytes_of(stored), 1, stored.place) {}
  void next(ColumnValue& value) override { value.integer = runs_.next(); }

 private:
  static std::string_view bytes_of(const StoredValues& stored) {
    Taker in(stored.bytes, stored.place);
    return in.take(in.number<uint32_t>());
  }
  RunDecoder runs_;
};

/// Numbers of entries of the dictionary. The first byte says how many bits each has.
class DictionaryValues final : public ColumnValues {
 public:
  explicit DictionaryValues(const StoredValues& stored)
      : entries_(stored.dictionary),
        place_(stored.place),
        numbers_(stored.bytes.empty() ? RunDecoder({}, 1, stored.place)  // which has no number
                                      : RunDecoder(stored.bytes.substr(1),
                                                   static_cast<uint8_t>(stored.bytes[0]), stored.place)) {}
  void next(ColumnValue& value) override {
    const uint32_t number = numbers_.next();
    if (number >= entries_.size())
      fail_damaged(place_, "found entry ", number, " of a dictionary of ", entries_.size());
    value = entries_[number];
  }

 private:
  const std::vector<ColumnValue>& entries_;
  const ParquetPlace& place_;
  RunDecoder numbers_;
};

class DeltaNumbers final : public ColumnValues {
 public:
  explicit DeltaNumbers(const StoredValues& stored)
      : narrow_(stored.type == Physical::kInt32), numbers_(stored.bytes, stored.place) {}
  void next(ColumnValue& value) override {
    const int64_t number = numbers_.next();
    value.integer = narrow_ ? static_cast<int32_t>(number) : number;  // sums of 32 bits wrap around
  }

 private:
  bool narrow_;
  DeltaDecoder numbers_;
};

/// Texts end to end after all of their lengths.
class LengthTexts final : public ColumnValues {
 public:
  LengthTexts(std::string_view bytes, const ParquetPlace& place)
      : place_(place), lengths_(bytes, place), in_(bytes.substr(DeltaDecoder(bytes, place).size()), place) {}
  void next(ColumnValue& value) override {
    const int64_t length = lengths_.next();
    if (length < 0) fail_damaged(place_, "found a text of ", length, " bytes");
    value.text = in_.take(static_cast<uint64_t>(length));
  }

 private:
  const ParquetPlace& place_;
  DeltaDecoder lengths_;
  Taker in_;
};

/// Texts that begin as the one before does: the lengths of these beginnings, then the rests as LengthTexts.
class PrefixTexts final : public ColumnValues {
 public:
  explicit PrefixTexts(const StoredValues& stored)
      : place_(stored.place),
        prefixes_(stored.bytes, place_),
        rests_(stored.bytes.substr(DeltaDecoder(stored.bytes, place_).size()), place_) {}
  void next(ColumnValue& value) override {
    const int64_t kept = prefixes_.next();
    if (kept < 0 || static_cast<uint64_t>(kept) > last_.size())
      fail_damaged(place_, "found a text that shares ", kept, " bytes with one of ", last_.size());
    rests_.next(value);
    last_.resize(static_cast<size_t>(kept));
    last_ += value.text;
    value.text = last_;
  }

 private:
  const ParquetPlace& place_;
  DeltaDecoder prefixes_;
  LengthTexts rests_;
  std::string last_;
};

/// Numbers of which all first bytes come first, then all second ones, and so on.
template <class T>
class SplitNumbers final : public ColumnValues {
 public:
  explicit SplitNumbers(const StoredValues& stored)
      : bytes_(stored.bytes), place_(stored.place), count_(bytes_.size() / sizeof(T)) {}
  void next(ColumnValue& value) override {
    if (at_ == count_) fail_damaged(place_, "found more values than the ", count_, " that are stored");
    std::array<char, sizeof(T)> own;
    for (size_t i = 0; i < own.size(); ++i) own[i] = bytes_[i * count_ + at_];
    ++at_;
    T number;
    std::memcpy(&number, own.data(), sizeof number);
    set_number(value, number);
  }

 private:
  std::string_view bytes_;
  const ParquetPlace& place_;
  size_t count_, at_ = 0;
};

/// Calls `make` with a number of the type that the column has; null if it holds no numbers.
template <template <class> class Reader>
std::unique_ptr<ColumnValues> open_numbers(const StoredValues& stored) {
  switch (stored.type) {
    case Physical::kInt32:
      return std::make_unique<Reader<int32_t>>(stored);
    case Physical::kInt64:
      return std::make_unique<Reader<int64_t>>(stored);
    case Physical::kFloat:
      return std::make_unique<Reader<float>>(stored);
    case Physical::kDouble:
      return std::make_unique<Reader<double>>(stored);
    default:
      return nullptr;
  }
}

std::unique_ptr<ColumnValues> open_plain(const StoredValues& stored) {
  if (stored.type == Physical::kByteArray) return std::make_unique<PlainTexts>(stored);
  if (stored.type == Physical::kBoolean) return std::make_unique<PlainTruths>(stored);
  return open_numbers<PlainNumbers>(stored);
}

/// Null if the encoding is none of the type's.
std::unique_ptr<ColumnValues> open_known(const StoredValues& stored) {
  const bool texts = stored.type == Physical::kByteArray, truths = stored.type == Physical::kBoolean,
             integers = stored.type == Physical::kInt32 || stored.type == Physical::kInt64;
  switch (stored.encoding) {
    case Encoding::kPlain:
      return open_plain(stored);
    case Encoding::kPlainDictionary:
    case Encoding::kRleDictionary:
      return std::make_unique<DictionaryValues>(stored);
    case Encoding::kRle:
      return truths ? std::make_unique<RunTruths>(stored) : nullptr;
    case Encoding::kDeltaBinaryPacked:
      return integers ? std::make_unique<DeltaNumbers>(stored) : nullptr;
    case Encoding::kDeltaLengthByteArray:
      return texts ? std::make_unique<LengthTexts>(stored.bytes, stored.place) : nullptr;
    case Encoding::kDeltaByteArray:
      return texts ? std::make_unique<PrefixTexts>(stored) : nullptr;
    case Encoding::kByteStreamSplit:
      return open_numbers<SplitNumbers>(stored);
    case Encoding::kBitPacked:
      break;
  }
  return nullptr;
}

}  // namespace

std::unique_ptr<ColumnValues> open_values(const StoredValues& stored) {
  std::unique_ptr<ColumnValues> values = open_known(stored);
  if (!values)
    fail_damaged(stored.place, "found values of type ", static_cast<int32_t>(stored.type), " in encoding ",
                 static_cast<int32_t>(stored.encoding), ", which it does not have");
  return values;
}

}  // namespace megalith
