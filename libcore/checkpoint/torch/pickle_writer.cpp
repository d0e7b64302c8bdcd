#include "libcore/checkpoint/torch/pickle_writer.h"

#include <bit>
#include <cstring>

namespace megalith {
namespace {

template <class T>
void append_little_endian(std::string& out, T value) {
  for (size_t byte = 0; byte < sizeof value; ++byte)
    out += static_cast<char>(static_cast<uint64_t>(value) >> (8 * byte));
}

}  // namespace

PickleWriter::PickleWriter() : out_("\x80\x02") {}

void PickleWriter::integer(int64_t value) {
  if (value >= INT32_MIN && value <= INT32_MAX) {
    op('J');
    return append_little_endian(out_, static_cast<int32_t>(value));
  }
  out_ += "\x8a\x08";  // the opcode LONG1 and its length, 8 bytes
  append_little_endian(out_, value);
}

void PickleWriter::real(double value) {
  op('G');
  const auto bits = std::bit_cast<uint64_t>(value);
  for (int byte = 7; byte >= 0; --byte) op(static_cast<char>(bits >> (8 * byte)));  // big-endian
}

void PickleWriter::text(std::string_view utf8) {
  op('X');
  append_little_endian(out_, static_cast<uint32_t>(utf8.size()));
  out_ += utf8;
}

void PickleWriter::json(const Json& value) {
  if (value.is_bool()) return boolean(value.as_bool());
  if (value.is_int()) return integer(value.as_int());
  if (value.is_number()) return real(value.as_double());
  if (value.is_string()) return text(value.as_string());
  if (value.is_array()) {
    begin_list();
    for (const Json& element : value.as_array()) json(element);
    return end_list();
  }
  if (!value.is_object()) return none();
  begin_dict();
  for (const auto& [key, member] : value.as_object()) {
    text(key);
    json(member);
  }
  end_dict();
}

void PickleWriter::global(std::string_view module, std::string_view name) {
  out_.append("c").append(module).append("\n").append(name).append("\n");
}

std::string PickleWriter::finish() {
  op('.');
  return std::move(out_);
}

}  // namespace megalith
