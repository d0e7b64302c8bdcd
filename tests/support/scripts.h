#pragma once

#include <filesystem>
#include <string>

#include "libcore/io/files/file.h"

namespace megalith::test {

/// Writes a script for sh that can be run; makes its folder.
inline void write_script(const std::string& path, const std::string& text) {
  make_directories(std::filesystem::path(path).parent_path().string());
  write_file(path, "#!/bin/sh\n" + text);
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
}

}  // namespace megalith::test
