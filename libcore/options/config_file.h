#pragma once

#include <functional>
#include <string>
#include <vector>

#include "libcore/options/problems.h"

namespace megalith {

/// One key of a config file with its value. The maps around a key only form groups: {model: {num-layers: 12}}
/// sets num-layers.
struct FileOption {
  std::string key;  // as written
  /// The keys of the maps around it, outermost first: "model.model_config"; lists are left out.
  std::string group = {};
  std::vector<std::string> words;  // values: one for a scalar, any number for a list
  bool is_null = false;            // "key:" or "key: ~": leaves the option unchanged
  std::string where;               // "run.yaml:3"

  std::string path() const;  // "model.model_config.seq_length"
  bool is_empty() const;     // whether the value is null or all words are empty
};

/// A config file during the translation from another tool's keys to ours.
struct FileTranslation {
  std::vector<FileOption> options;                // in: as read; out: our own options
  std::vector<std::string> ignored = {};          // out: keys without effect here, to be named in the log
  Problems& problems;                             // the translator's complaints go here
  std::function<bool(const std::string&)> knows;  // whether this app has an option of this name
};

/// Reads YAML (and so JSON). A list of maps is read as one map after another, each under the list's name.
/// Throws kNoInput; kDevice when the YAML library, which is opened at the first call (base/plugins/plugin.h),
/// is missing; kData with file:line:column when the file is not YAML or not a map, when a list holds anything
/// except words or maps, and when the file is larger than 4 MiB or holds more than 262,144 keys and values.
std::vector<FileOption> read_config_file(const std::string& path);

}  // namespace megalith
