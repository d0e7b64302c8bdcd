#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace megalith {

/// The range of memory in which a file is mapped, as long as this object lives. If the file is cut in the
/// meantime, reading the range raises SIGBUS, and the handler finds the file here. If some thousand files are
/// mapped at once, the last ones are not recorded.
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

/// From now on such a read ends the process with kData's exit code and a line on stderr, `NAME: error: FILE:
/// …`: there is no way to continue. Any other SIGBUS acts as before. `name` must live as long as the process.
void report_cut_files(const char* name);

}  // namespace megalith
