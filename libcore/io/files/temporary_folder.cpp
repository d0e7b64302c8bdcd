#include "libcore/io/files/temporary_folder.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <system_error>

#include <stdlib.h>
#include <unistd.h>

#include "libcore/base/error.h"
#include "libcore/base/terminal.h"

namespace megalith {
namespace {

/// errno after making a folder in `path`, which is removed again; 0: it can be made. Only the attempt tells:
/// in /proc not even root can make one.
int error_of_making_in(const std::string& path) {
  std::string name = path + "/megalith-XXXXXX";
  if (::mkdtemp(name.data()) == nullptr) return errno;
  ::rmdir(name.c_str());
  return 0;
}

}  // namespace

OwnFolder::OwnFolder() : path_((temporary_folder() / "megalith-XXXXXX").string()) {
  if (!::mkdtemp(path_.data()))
    fail(ErrorKind::kIo, path_, ": cannot make this folder: ", std::strerror(errno));
}

OwnFolder::~OwnFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::filesystem::path temporary_folder() {
  const char* variable = "TMPDIR";
  const char* path = nullptr;
  for (const char* const name : {"TMPDIR", "TMP", "TEMP", "TEMPDIR"})  // in the order of std::filesystem's
    if (const char* const value = path ? nullptr : std::getenv(name); value && *value) {
      variable = name;
      path = value;
    }
  if (!path) path = "/tmp";
  const int error = error_of_making_in(path);
  if (error == 0) return path;
  fail(error == ENOSPC || error == EDQUOT ? ErrorKind::kIo : ErrorKind::kUsage, variable, '=',
       quote_name(path), " in the environment: ", std::strerror(error),
       "; wanted a folder for temporary files");
}

}  // namespace megalith
