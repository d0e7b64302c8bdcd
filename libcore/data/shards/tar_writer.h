#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace megalith {

/// Writes files as a tar archive (POSIX ustar; sizes from 8 GiB on in GNU tar's form). It holds names and
/// bytes, and no owners or times, so that the same files give the same archive.
class TarWriter {
 public:
  using Sink = std::function<void(std::string_view)>;
  explicit TarWriter(Sink sink) : sink_(std::move(sink)) {}

  /// Adds the file `path` as `name`. kUsage if the name has more than 100 bytes; kNoInput, kIo.
  void add(const std::string& name, const std::string& path);
  /// Ends the archive.
  void finish();

 private:
  Sink sink_;
};

}  // namespace megalith
