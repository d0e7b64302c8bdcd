#pragma once

#include <string>
#include <utility>

namespace megalith {

/// What an input is read from: a file or pipe by its path ("-": stdin), or what a shell command writes to its
/// stdout; then the path is only its name, for messages.
struct InputOrigin {
  std::string path;
  std::string command = {};  // empty: `path` is opened

  // A path alone is an origin.
  InputOrigin(std::string file) : path(std::move(file)) {}  // NOLINT(google-explicit-constructor): see above
  InputOrigin(const char* file) : path(file) {}             // NOLINT(google-explicit-constructor): see above
  InputOrigin(std::string name, std::string shell_command)
      : path(std::move(name)), command(std::move(shell_command)) {}
};

}  // namespace megalith
