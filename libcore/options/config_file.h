#pragma once

#include <functional>
#include <string>
#include <vector>

#include "libcore/options/problems.h"

namespace megalith {

/// One value of a config file. Maps around it only form groups: {model: {num-layers: 12}} sets num-layers.
struct FileOption {
  std::string key;         // as written
  std::string group = {};  // the maps around it, outermost first: "model.model_config"; lists do not count
  std::vector<std::string> words;  // one for a scalar, any number for a list
  bool is_null = false;            // "key:" or "key: ~": leaves the option unchanged
  std::string where;               // "run.yaml:3"

  std::string path() const;  // "model.model_config.seq_length"
  bool is_empty() const;     // null, or all words are empty
};

/// A config file during the translation from another tool's keys to ours.
struct FileTranslation {
  std::vector<FileOption> options;                // in: as read; out: our own options
  std::vector<std::string> ignored = {};          // out: keys without effect here, to be named in the log
  Problems& problems;                             // the translator's complaints go here
  std::function<bool(const std::string&)> knows;  // whether this app has an option of that name
};

/// Reads YAML (and so JSON). A list of maps is read as one map after another, all with the list's name.
/// Throws kNoInput; kData with file:line:column when the file is not YAML or not a map, when a list holds
/// anything except words or maps, and for more than 4 MiB or 262,144 keys and values; kDevice when the YAML
/// library, which is opened at the first call (base/plugin.h), is missing.
std::vector<FileOption> read_config_file(const std::string& path);

}  // namespace megalith
