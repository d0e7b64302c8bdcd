#pragma once

#include <optional>
#include <string>

namespace megalith {

/// Why a shard cannot be done, in PREFIX-00003-of-00020.failed.json: another attempt would end in the same
/// way.
struct ShardFailure {
  int code = 0;  // the exit code
  std::string reason = {};

  template <class V>
  void fields(V&& v) {  // see json/json_fields.h
    v("code", code);
    v("reason", reason);
  }
};

/// `prefix`: the name that the shard's outputs have in common, with its suffix.
std::string failure_path(const std::string& prefix);
/// Writes the file; its folder is made if it does not exist. kIo.
void write_failure(const std::string& prefix, const ShardFailure& failure);
/// Reads the file; nothing if there is none. kData if it is damaged.
std::optional<ShardFailure> read_failure(const std::string& prefix);

}  // namespace megalith
