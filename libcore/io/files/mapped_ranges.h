#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace megalith {

/// Registers the memory range of a mapped file for as long as this object lives. If the file is truncated
/// during that time, reading the range raises SIGBUS, and the handler of report_cut_files() finds the file's
/// name here. At most 4096 ranges are registered at once; further ones are ignored.
class MappedRange {
 public:
  MappedRange() = default;
  MappedRange(const void* begin, size_t bytes, const std::string& path);

 private:
  friend struct CutFiles;
  struct Entry;
  struct Remove {
    void operator()(Entry* entry) const noexcept;
  };
  std::unique_ptr<Entry, Remove> entry_;
};

/// Installs a SIGBUS handler. From then on, reading a truncated mapped file ends the process with kData's
/// exit code and a line on stderr, `NAME: error: FILE: …`: there is no way to continue. Any other SIGBUS has
/// its usual effect. `name` must live as long as the process.
void report_cut_files(const char* name);

}  // namespace megalith
