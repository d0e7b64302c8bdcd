#include "libcore/data/cache/npy_file.h"

namespace megalith {

// numpy leaves room for the first axis to grow in place, and begins the data at a multiple of 64. What is
// written here is so short that both together give 128 bytes.
std::string npy_header(const std::string& type, const std::string& shape) {
  constexpr size_t kBegin = 10, kBytes = 128;
  std::string header("\x93NUMPY\x01\x00", 8);
  header += static_cast<char>(kBytes - kBegin);
  header += '\0';
  header += concat("{'descr': '", type, "', 'fortran_order': False, 'shape': ", shape, ", }");
  if (header.size() >= kBytes) fail(ErrorKind::kInternal, "a .npy header of ", header.size(), " bytes");
  header.resize(kBytes - 1, ' ');
  return header + '\n';
}

NpyFile::NpyFile(const std::string& path, const std::string& type, const std::string& shape) : file_(path) {
  file_.write_back_early();
  file_.write(npy_header(type, shape));
}

void NpyFile::finish() {
  file_.flush();
  file_.publish();
}

}  // namespace megalith
