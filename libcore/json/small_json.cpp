#include "libcore/json/small_json.h"

#include "libcore/base/error.h"
#include "libcore/io/file.h"

namespace megalith {
namespace {

void refuse_large(const std::string& path) {
  constexpr uint64_t kMax = uint64_t{4} << 20;
  if (const uint64_t size = file_size(path); size > kMax)
    fail(ErrorKind::kData, path, ": has ", size, " bytes, wanted at most ", kMax,
         "; it is no file of settings");
}

}  // namespace

Json load_small(const std::string& path) {
  refuse_large(path);
  return Json::load(path);
}

Json load_own_small(const std::string& path) {
  refuse_large(path);
  return Json::parse(read_own_file(path), path);
}

}  // namespace megalith
