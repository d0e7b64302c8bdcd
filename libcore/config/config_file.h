#pragma once

#include <string>
#include <vector>

namespace megalith {

/// One value of a config file. Maps around it only group: {model: {num-layers: 12}} is num-layers.
struct FileOption {
  std::string key;                 // as written
  std::vector<std::string> words;  // one for a scalar, any number for a list
  bool is_null = false;            // "key:" or "key: ~": leaves the option as it is
  std::string where;               // "run.yaml:3"
};

/// Reads YAML (and so JSON). Throws kNoInput, or kData with file:line:column when it is no YAML, when it is
/// no map, or when a list holds something else than words; kDevice when the library for YAML, which is opened
/// at the first call (base/plugin.h), is missing.
std::vector<FileOption> read_config_file(const std::string& path);

}  // namespace megalith
