#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace megalith {

/// The range of memory in which a file is mapped, for as long as this object lives. Reading it where the file
/// was cut meanwhile raises SIGBUS, and the handler looks here which file that was. When some thousand are
/// mapped at once, the last ones are not known.
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

/// From now on such a read ends the process with a line on stderr, `NAME: error: FILE: …`, and kData's exit
/// code, because nobody could go on. Other SIGBUSes do as before. `name` lives as long as the process.
void report_cut_files(const char* name);

}  // namespace megalith
