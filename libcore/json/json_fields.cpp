#include "libcore/json/json_fields.h"

#include "libcore/base/error.h"
#include "libcore/hash/xxh64.h"
#include "libcore/json/json_names.h"

namespace megalith {

Json FieldWriter::saved(Hex64 number) {
  return hex64(number.value);
}

void FieldReader::read(const Json& value, bool& out) {
  out = value.as_bool();
}

void FieldReader::read(const Json& value, int& out) {
  out = static_cast<int>(value.as_int());
}

void FieldReader::read(const Json& value, int64_t& out) {
  out = value.as_int();
}

void FieldReader::read(const Json& value, uint64_t& out) {
  const int64_t number = value.as_int();
  if (number < 0) fail(ErrorKind::kData, JsonNames::of(value), " is ", number, ", wanted at least 0");
  out = static_cast<uint64_t>(number);
}

void FieldReader::read(const Json& value, double& out) {
  out = value.as_double();
}

void FieldReader::read(const Json& value, std::string& out) {
  out = value.as_string();
}

void FieldReader::read(const Json& value, Json& out) {
  out = value;
}

void FieldReader::read(const Json& value, Hex64 out) {
  const std::optional<uint64_t> number = parse_hex64(value.as_string());
  if (!number)
    fail(ErrorKind::kData, JsonNames::of(value), " is ", value.dump(), ", wanted 16 hexadecimal digits");
  out.value = *number;
}

}  // namespace megalith
