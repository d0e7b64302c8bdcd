#pragma once

#include <string>

#include "libcore/options/render.h"

namespace megalith {

/// Completion scripts for a shell. They complete options, the words of enumerations, a first argument that is
/// a command, files and folders. They can be sourced, or installed under the names that the shells look for
/// (apps/CMakeLists.txt).
std::string render_bash_completion(const AppDoc&);
std::string render_zsh_completion(const AppDoc&);
std::string render_fish_completion(const AppDoc&);

}  // namespace megalith
