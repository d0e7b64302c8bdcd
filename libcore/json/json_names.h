#pragma once

#include <string>

#include "libcore/json/json.h"

namespace megalith {

/// While this object lives, error messages of its thread about a value in `root` (a wrong type, a missing
/// member) name the file and the path of the value: "config.json: heads[1].size is not an integer". `root`
/// must be neither moved nor changed.
class JsonNames {
 public:
  JsonNames(const Json& root, std::string file);
  ~JsonNames();
  JsonNames(const JsonNames&) = delete;
  JsonNames& operator=(const JsonNames&) = delete;

  /// "FILE: PATH" for a value inside the root of a JsonNames that is alive in this thread; "JSON value" for
  /// any other value.
  static std::string of(const Json& value);

 private:
  const Json& root_;
  std::string file_;
  JsonNames* outer_;
};

}  // namespace megalith
