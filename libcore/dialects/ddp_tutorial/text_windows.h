#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "libcore/data/samples/gpt_dataset.h"
#include "libcore/text/tokenizer.h"

namespace megalith {

/// The token ids of a text file or of a folder. In a folder, reads all files in it and below it, sorted by
/// path, except hidden ones, and puts the tokenizer's end of text between two files. kNoInput if there is no
/// file; kData, with file and byte, for text that is not UTF-8.
std::vector<int32_t> read_texts(const std::string& path, const Tokenizer&);

/// How a row of ids is split into samples.
struct WindowSpec {
  int64_t seq_length = 0;
  int64_t stride = 0;     // ids between the starts of two windows
  int64_t batch = 1;      // samples per step; an epoch drops its incomplete last batch
  uint32_t seed = 1234;   // seed for the order in each epoch
  bool shuffled = false;  // false: the windows are in the text's order
};

/// The windows of a text, repeated endlessly. They begin at range(0, ids - seq_length, stride), as in
/// tutorials that train on text folders. Each has seq_length ids and as many labels, which are the ids
/// shifted by one. Reading is thread-safe.
class TextWindows {
 public:
  TextWindows(std::vector<int32_t> ids, const WindowSpec&);

  int64_t tokens() const { return static_cast<int64_t>(ids_.size()); }
  std::string hash() const;                     // hash of the ids
  int64_t windows() const { return windows_; }  // number of windows in the text
  int64_t epoch() const { return epoch_; }      // number of windows in an epoch, which has only full batches
  /// Bytes of memory that the ids and the orders of two epochs take.
  size_t bytes() const;
  /// Writes sample `index` of endlessly many epochs. kInternal if an epoch has no samples.
  void get(int64_t index, const SampleView& out) const;

 private:
  using Order = std::shared_ptr<const std::vector<uint32_t>>;
  Order order_of(int64_t epoch) const;

  std::vector<int32_t> ids_;
  WindowSpec spec_;
  int64_t windows_, epoch_;
  struct Kept;                  // the orders of the last two epochs that were read
  std::shared_ptr<Kept> kept_;  // shared by copies, which read the same text
};

}  // namespace megalith
