#pragma once

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace megalith {

/// The folder of this program; kIo.
std::filesystem::path own_folder();

/// Names of the programs megalith-NAME in a folder, in alphabetical order.
std::vector<std::string> find_apps(const std::filesystem::path& folder);
std::filesystem::path app_path(const std::filesystem::path& folder, const std::string& app);

/// A pipe from which to read what a program prints for one option, such as --help-purpose; empty if the
/// program cannot be started.
using Pipe = std::unique_ptr<FILE, int (*)(FILE*)>;
Pipe ask_app(const std::filesystem::path& program, const std::string& option);

/// "; megalith-convert has it": which of the other programs next to this one has an option of this name ("-"
/// and "_" are equal); empty: none. Starts each of them at the first call, so use it only for a message that
/// ends the run.
std::string who_has(const std::string& option);

}  // namespace megalith
