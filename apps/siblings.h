#pragma once

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace megalith {

/// The folder of this program. Throws kIo if it cannot be determined.
std::filesystem::path own_folder();

/// Names of the programs megalith-NAME in a folder, in alphabetical order.
std::vector<std::string> find_apps(const std::filesystem::path& folder);
std::filesystem::path app_path(const std::filesystem::path& folder, const std::string& app);

/// A pipe with the text that a program prints for one option, such as --help-purpose. Empty if the program
/// cannot be started.
using Pipe = std::unique_ptr<FILE, int (*)(FILE*)>;
Pipe ask_app(const std::filesystem::path& program, const std::string& option);

/// Text for an error message that says which of the other programs in this program's folder have the option:
/// "; megalith-convert has it". Empty if none has it. The name has the form of option_key(). The first call
/// starts each of the programs, so use it only for a message that ends the run.
std::string who_has(const std::string& option);

}  // namespace megalith
