#include "libcore/io/files/temporary_folder.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <sys/stat.h>

#include "libcore/base/error.h"
#include "libcore/base/terminal.h"

namespace megalith {

std::filesystem::path temporary_folder() {
  const char* variable = "TMPDIR";
  const char* path = nullptr;
  for (const char* const name : {"TMPDIR", "TMP", "TEMP", "TEMPDIR"})  // in the order of std::filesystem's
    if (const char* const value = path ? nullptr : std::getenv(name); value && *value) {
      variable = name;
      path = value;
    }
  if (!path) path = "/tmp";
  struct stat info {};
  const bool found = ::stat(path, &info) == 0;
  if (found && S_ISDIR(info.st_mode)) return path;
  fail(ErrorKind::kUsage, variable, '=', quote_name(path),
       " in the environment: ", std::strerror(found ? ENOTDIR : errno),
       "; wanted a folder for temporary files");
}

}  // namespace megalith
