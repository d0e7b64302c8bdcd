#include "libcore/text/formats/sentencepiece/sentencepiece_table.h"

#include <cstring>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/base/utf8.h"

namespace megalith {
namespace {

// The fields of a protocol buffer, one after the other.
class Fields {
 public:
  Fields(std::string_view bytes, const std::string& where) : bytes_(bytes), where_(where) {}

  struct Field {
    uint64_t number = 0;
    uint64_t value = 0;           // value of a varint or of fixed bytes
    std::string_view bytes = {};  // contents of a field with a length
  };
  bool next(Field& field) {
    if (bytes_.empty()) return false;
    const uint64_t tag = varint();
    field = {.number = tag >> 3};
    switch (tag & 7) {
      case 0:
        field.value = varint();
        return true;
      case 1:
        field.value = fixed(8);
        return true;
      case 2:
        field.bytes = take(varint());
        return true;
      case 5:
        field.value = fixed(4);
        return true;
      default:
        refuse();
    }
  }

 private:
  [[noreturn]] void refuse() const {
    fail(ErrorKind::kData, where_, ": not a SentencePiece model, or damaged");
  }
  std::string_view take(uint64_t bytes) {
    if (bytes > bytes_.size()) refuse();
    const std::string_view taken = bytes_.substr(0, bytes);
    bytes_.remove_prefix(bytes);
    return taken;
  }
  uint64_t fixed(size_t bytes) {
    uint64_t value = 0;
    std::memcpy(&value, take(bytes).data(), bytes);
    return value;
  }
  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<uint8_t>(take(1)[0]);
      value |= uint64_t{byte & 0x7FU} << shift;
      if (byte < 0x80) return value;
    }
    refuse();
  }

  std::string_view bytes_;
  const std::string& where_;
};

/// Whether the value is one of an enumeration's, from 1 to `last`. Others are ignored, as by protobuf.
bool is_one_of(uint64_t value, int32_t last) {
  return value >= 1 && value <= static_cast<uint64_t>(last);
}

SentencePieceTable::Token token_of(std::string_view bytes, const std::string& where) {
  SentencePieceTable::Token token;
  Fields fields(bytes, where);
  for (Fields::Field field; fields.next(field);) {
    if (field.number == 1) token.text = field.bytes;
    if (field.number == 2) {
      const auto bits = static_cast<uint32_t>(field.value);
      std::memcpy(&token.score, &bits, sizeof bits);
    }
    if (field.number == 3 && is_one_of(field.value, SentencePieceTable::kByte))
      token.type = static_cast<int32_t>(field.value);
  }
  return token;
}

void read_trainer(std::string_view bytes, const std::string& where, SentencePieceTable::Trainer& out) {
  Fields fields(bytes, where);
  for (Fields::Field field; fields.next(field);) {
    if (field.number == 3 && is_one_of(field.value, SentencePieceTable::kChar))
      out.kind = static_cast<int32_t>(field.value);
    if (field.number == 24) out.space_after = field.value != 0;
    if (field.number == 35) out.byte_fallback = field.value != 0;
    if (field.number == 44) out.unknown_text = field.bytes;
    if (field.number == 47) out.end_token = field.bytes;
  }
}

void read_rules(std::string_view bytes, const std::string& where, SentencePieceTable::Rules& out) {
  Fields fields(bytes, where);
  for (Fields::Field field; fields.next(field);) {
    if (field.number == 2) out.charsmap = field.bytes;
    if (field.number == 3) out.add_space = field.value != 0;
    if (field.number == 4) out.remove_extra_spaces = field.value != 0;
    if (field.number == 5) out.escape_spaces = field.value != 0;
  }
}

}  // namespace

SentencePieceTable parse_sentencepiece_table(std::string_view bytes, const std::string& where) {
  SentencePieceTable table;
  Fields fields(bytes, where);
  for (Fields::Field field; fields.next(field);) {
    if (field.number == 1) table.tokens.push_back(token_of(field.bytes, where));
    if (field.number == 2) read_trainer(field.bytes, where, table.trainer);
    if (field.number == 3) read_rules(field.bytes, where, table.rules);
    if (field.number == 5) {
      SentencePieceTable::Rules back;
      read_rules(field.bytes, where, back);
      table.denormalizes = !back.charsmap.empty();
    }
  }
  if (table.tokens.empty()) fail(ErrorKind::kData, where, ": the SentencePiece model has no pieces");
  return table;
}

const SentencePieceTable::Token* find_invalid_text(const SentencePieceTable& table) {
  for (const SentencePieceTable::Token& token : table.tokens)
    if (valid_utf8_prefix(token.text) != token.text.size()) return &token;
  return nullptr;
}

void check_token_texts(const SentencePieceTable& table, const std::string& where) {
  if (const auto* token = find_invalid_text(table))
    fail(ErrorKind::kData, where, ": piece ", quote(token->text), " is not valid UTF-8");
}

}  // namespace megalith
