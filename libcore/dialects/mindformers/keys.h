#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "libcore/options/config_file.h"

namespace megalith {

/// A key that has to have one of these values when a model is trained.
struct FixedKey {
  const char* path;
  std::vector<std::string> values;  // words without regard to case; "true" and "false" are flags
  const char* remedy;
};

/// What a key of a MindFormers run file is here, by its path ("model.model_config.seq_length").
/// Our option under another name; null: it is none.
const char* renamed_key(std::string_view path);
/// Null: any value may stand there.
const FixedKey* fixed_key(std::string_view path);
/// Whether the key means something only together with others.
bool is_combined_key(std::string_view path);
/// Whether the key lies in a group of which nothing else means anything here, whatever its keys are called.
bool in_named_group(const FileOption&);
/// Whether the key says how the framework runs, or repeats what another key says; in such a group our own
/// options may stand.
bool is_named_key(std::string_view path);

}  // namespace megalith
