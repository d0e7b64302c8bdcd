#include "libcore/data/indexed/token_file.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <span>
#include <string_view>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/data/indexed/indexed_dataset.h"
#include "libcore/io/files/file.h"

namespace megalith {
namespace {

/// Passes ids on to a dataset and divides them into documents.
class Divider {
 public:
  Divider(IndexedDatasetWriter& writer, std::string path, uint16_t end)
      : writer_(writer), path_(std::move(path)), end_(end) {}

  void take(std::string_view bytes) {
    size_t from = 0;
    for (size_t at = 0; at < bytes.size(); at += sizeof(uint16_t)) {
      ++length_;
      uint16_t id = 0;
      std::memcpy(&id, bytes.data() + at, sizeof id);
      if (id != end_) continue;
      end_document(bytes.substr(from, at + sizeof id - from));
      from = at + sizeof id;
    }
    writer_.add_ids(bytes.substr(from));
  }
  void finish() {
    if (length_ > 0) end_document({});
  }
  const TokenFileCounts& counts() const { return counts_; }

 private:
  /// Ends a document, whose last ids these are.
  void end_document(std::string_view ids) {
    if (length_ > std::numeric_limits<int32_t>::max())
      fail(ErrorKind::kData, path_, ": document ", counts_.documents, " has ", length_,
           " tokens, the format of a dataset allows 2147483647; give --eod, the id that ends a document");
    writer_.add_ids(ids);
    const auto length = static_cast<int32_t>(length_);
    constexpr int32_t kOne = 1;
    writer_.end_documents({&length, 1}, {&kOne, 1});
    counts_.tokens += length_;
    ++counts_.documents;
    length_ = 0;
  }

  IndexedDatasetWriter& writer_;
  const std::string path_;
  const uint16_t end_;
  int64_t length_ = 0;  // tokens of the document so far
  TokenFileCounts counts_;
};

}  // namespace

TokenFileCounts index_token_file(const std::string& path, const std::string& prefix, uint16_t end) {
  constexpr uint64_t kBlock = uint64_t{1} << 20;
  const ReadableFile file(path);
  if (file.size() == 0 || file.size() % sizeof(uint16_t) != 0)
    fail(ErrorKind::kData, path, ": is ", file.size(),
         " bytes; wanted ids of two bytes each, as nanoGPT's prepare.py writes them");
  IndexedDatasetWriter writer(prefix, IndexedDType::kU16);
  Divider divider(writer, path, end);
  std::string block;
  for (uint64_t at = 0; at < file.size(); at += block.size()) {
    block.resize(std::min(kBlock, file.size() - at));
    file.read_at(at, block.data(), block.size());
    divider.take(block);
  }
  divider.finish();
  writer.finish();
  return divider.counts();
}

std::string prefix_of_token_file(const std::string& path) {
  constexpr std::string_view kEnd = ".bin";
  return (path.ends_with(kEnd) ? path.substr(0, path.size() - kEnd.size()) : path) + "_document";
}

}  // namespace megalith
