#include "libcore/json/small_json.h"

#include "libcore/base/error.h"
#include "libcore/io/files/file.h"

namespace megalith {
namespace {

void refuse_large(const std::string& path, uint64_t size) {
  constexpr uint64_t kMax = uint64_t{4} << 20;
  if (size > kMax)
    fail(ErrorKind::kData, path, ": has ", size, " bytes, wanted at most ", kMax,
         "; it is not a settings file");
}

}  // namespace

std::string read_small(const std::string& path) {
  refuse_large(path, file_size(path));  // checks the size before reading
  std::string text = read_file(path);
  refuse_large(path, text.size());  // a pipe's size is known only now
  return text;
}

Json load_small(const std::string& path) {
  return Json::parse(read_small(path), path);
}

Json load_own_small(const std::string& path) {
  refuse_large(path, file_size(path));
  return Json::parse(read_own_file(path), path);
}

}  // namespace megalith
