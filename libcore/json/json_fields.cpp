#include "libcore/json/json_fields.h"

#include <limits>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/hash/xxh64.h"
#include "libcore/json/json_names.h"

namespace megalith {

Json FieldWriter::saved(Hex64 number) {
  return hex64(number.value);
}

void FieldReader::operator()(const char* name, Figure figure) {
  const Json* const found = object_.find(name);
  figure.value = found && !found->is_null() ? found->as_double() : std::numeric_limits<double>::quiet_NaN();
}

void FieldReader::read(const Json& value, bool& out) {
  out = value.as_bool();
}

void FieldReader::read(const Json& value, int& out) {
  const int64_t number = value.as_int();
  if (!std::in_range<int>(number))
    fail(ErrorKind::kData, JsonNames::of(value), " is ", number, ", wanted an integer of 32 bits");
  out = static_cast<int>(number);
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
    fail(ErrorKind::kData, JsonNames::of(value), " is ", quote(shortened(value.as_string(), 60)),
         ", wanted 16 hexadecimal digits");
  out.value = *number;
}

}  // namespace megalith
