#pragma once

#include <string>

namespace megalith {

/// What a program prints for --version. The first line is its name and version. The others say what a report
/// of a fault needs: the commit and the compiler, the kernels for this processor, and the plugins in the
/// program's installation.
std::string version_text(const std::string& program);

}  // namespace megalith
