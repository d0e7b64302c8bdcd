#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "libcore/json/json.h"

namespace megalith {

/// A value in a tokenizer.json and its path ("pre_tokenizer.pretokenizers[0].pattern"). The path begins every
/// error message about the value, so that a user finds the place in a file of megabytes. Refers to the
/// document and the file's name.
class JsonCursor {
 public:
  JsonCursor(const Json& value, const std::string& file) : value_(&value), file_(&file) {}

  const Json& json() const { return *value_; }
  const std::string& file() const { return *file_; }
  std::string place() const;  // of the value, for a message

  /// Throws kData for a value that is unsupported or wrong; `wanted` says what is expected.
  [[noreturn]] void refuse(const std::string& wanted) const;

  /// at(): a member that must exist. find(): a member that may be absent or null.
  JsonCursor at(const char* key) const;
  std::optional<JsonCursor> find(const char* key) const;
  std::vector<JsonCursor> list() const;  // the elements of an array

  const std::string& text() const;
  int64_t integer() const;
  /// The member `key`, or `absent` if there is none.
  bool flag(const char* key, bool absent) const;
  bool must_flag(const char* key) const;  // the member `key`; kData if it is absent
  std::string text(const char* key, const char* absent) const;
  /// Refuses an object with members other than these: a misspelt one would otherwise change ids silently.
  void only(std::span<const char* const> known) const;
  /// The member "type"; empty if this is not an object or has no such member.
  std::string type() const;

 private:
  JsonCursor(const Json& value, const std::string& file, std::string path)
      : value_(&value), file_(&file), path_(std::move(path)) {}

  const Json* value_;
  const std::string* file_;
  std::string path_;
};

}  // namespace megalith
