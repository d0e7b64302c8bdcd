#pragma once

#include <string>
#include <utility>

#include "libcore/io/streams/byte_source.h"

namespace megalith {

/// What an input is read from: a file or pipe by its path ("-": stdin), what a shell command writes to its
/// stdout, or what a source gives; then the path is only its name, for messages.
struct InputOrigin {
  std::string path;
  std::string command = {};      // empty: `path` is opened
  ByteSource* source = nullptr;  // bytes that were decompressed elsewhere; it outlives what reads it

  // A path alone is an origin.
  InputOrigin(std::string file) : path(std::move(file)) {}  // NOLINT(google-explicit-constructor): see above
  InputOrigin(const char* file) : path(file) {}             // NOLINT(google-explicit-constructor): see above
  InputOrigin(std::string name, std::string shell_command)
      : path(std::move(name)), command(std::move(shell_command)) {}
  InputOrigin(std::string name, ByteSource& bytes) : path(std::move(name)), source(&bytes) {}
};

}  // namespace megalith
