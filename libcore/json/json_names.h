#pragma once

#include <string>

#include "libcore/json/json.h"

namespace megalith {

/// While it lives, this thread's complaints about a value of `root` (of another type than asked for, or
/// without a member) name the file and the way to the value: "config.json: heads[1].size is not an integer".
/// `root` stays where it is, as it is.
class JsonNames {
 public:
  JsonNames(const Json& root, std::string file);
  ~JsonNames();
  JsonNames(const JsonNames&) = delete;
  JsonNames& operator=(const JsonNames&) = delete;

  /// "FILE: WAY" of a value of a root that lives now; "JSON value" for any other one.
  static std::string of(const Json& value);

 private:
  const Json& root_;
  std::string file_;
  JsonNames* outer_;
};

}  // namespace megalith
