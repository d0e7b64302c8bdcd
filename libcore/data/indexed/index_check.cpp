#include "libcore/data/indexed/index_check.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <limits>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/data/indexed/token_file.h"
#include "libcore/io/files/file.h"

namespace megalith {
namespace {

constexpr const char* kTruncated = "; it was probably truncated: run preprocess again, or restore the file";
constexpr const char* kDamaged = "; the file is damaged: run preprocess again, or restore the file";
/// The number of sequences that are checked before their end is compared with the .bin's size.
constexpr int64_t kStep = int64_t{1} << 20;

/// Compares the file's size with the counts in the header. If the file is too short, the message names the
/// array in which it ends.
void check_size(const IndexHeader& h, uint64_t size, const std::string& path) {
  const uint64_t wanted = h.file_size();
  const auto sequences = static_cast<uint64_t>(h.sequences);
  if (size == wanted) return;
  if (size > wanted && size - wanted == sequences)
    fail(ErrorKind::kData, path, ": one byte a sequence (", h.sequences,
         ") after the document array; it is the index of a multimodal dataset, which is not supported");
  if (size > wanted)
    fail(ErrorKind::kData, path, ": ", h.sequences, " sequences and ", h.entries,
         " document entries declared take ", wanted, " bytes, the file is ", size, kDamaged);
  if (size < h.pointers_at())
    fail(ErrorKind::kData, path, ": ", h.sequences, " sequences declared but lengths end after ",
         (size - h.lengths_at()) / 4, " (file is ", size, " bytes)", kTruncated);
  if (size < h.documents_at())
    fail(ErrorKind::kData, path, ": ", h.sequences, " sequences declared but pointers end after ",
         (size - h.pointers_at()) / 8, " (file is ", size, " bytes)", kTruncated);
  fail(ErrorKind::kData, path, ": ", h.entries, " document entries declared but they end after ",
       (size - h.documents_at()) / 8, " (file is ", size, " bytes)", kTruncated);
}

}  // namespace

namespace {
/// Returns "; did you mean …?" with the datasets whose prefixes begin with `prefix`, or an empty text.
/// preprocess appends the key and "_document" to --output-prefix, so a user who gives "codeparrot" may mean
/// codeparrot_content_document.
std::string datasets_that_begin_so(const std::string& prefix) {
  namespace fs = std::filesystem;
  constexpr size_t kMax = 4;
  std::vector<std::string> found;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(parent_or_here(prefix), error)) {
    if (entry.path().extension() != ".idx") continue;
    const std::string name = entry.path().stem().string();
    if (name.starts_with(fs::path(prefix).filename().string()))
      found.push_back(quote((fs::path(prefix).parent_path() / name).string()));
  }
  std::sort(found.begin(), found.end());
  if (found.empty() || found.size() > kMax) return {};
  return "; did you mean " + join(found, " or ") + "?";
}

constexpr std::string_view kBin = ".bin", kIdx = ".idx";

/// Whether a dataset is named by one of its two files, as a shell completes it, and not by its prefix.
bool named_by_a_file(const std::string& name) {
  return (name.ends_with(kBin) || name.ends_with(kIdx)) && file_exists(name) && !file_exists(name + ".idx");
}

}  // namespace

std::string existing_dataset(std::string prefix) {
  if (named_by_a_file(prefix)) prefix.resize(prefix.size() - kIdx.size());
  const bool idx = file_exists(prefix + ".idx"), bin = file_exists(prefix + ".bin");
  if (idx && bin) return prefix;
  if (bin && file_size(prefix + ".bin") % 2 == 0)
    fail(ErrorKind::kNoInput, prefix, ".idx: is not there, but ", prefix,
         ".bin is: if nanoGPT's prepare.py wrote it, it holds ids alone: run megalith-data from-nanogpt ",
         prefix, ".bin, and give ", prefix_of_token_file(prefix + ".bin"),
         "; otherwise preprocess did not finish, or one file of the pair was moved");
  if (idx || bin)
    fail(ErrorKind::kNoInput, prefix, idx ? ".bin" : ".idx", ": is not there, but ", prefix,
         idx ? ".idx" : ".bin", " is: preprocess did not finish, or one file of the pair was moved");
  fail(ErrorKind::kNoInput, prefix, ": there is neither ", prefix, ".idx nor ", prefix,
       ".bin; wanted the prefix of a dataset", datasets_that_begin_so(prefix));
}

IndexHeader read_index_header(std::span<const std::byte> head, uint64_t file_size, const std::string& path) {
  if (head.size() < kIndexedHeaderBytes)
    fail(ErrorKind::kData, path, ": is ", file_size, " bytes, its header alone takes ", kIndexedHeaderBytes,
         kTruncated);
  if (std::memcmp(head.data(), kIndexedMagic.data(), kIndexedMagic.size()) != 0)
    fail(ErrorKind::kData, path, ": begins with ",
         quote({reinterpret_cast<const char*>(head.data()), kIndexedMagic.size()}),
         ", wanted \"MMIDIDX\" and two zero bytes; it is not the index of a dataset, or is damaged");
  const auto version = load_unaligned<uint64_t>(head.data() + 9, 0);
  if (version != kIndexedVersion)
    fail(ErrorKind::kData, path, ": version ", version, ", only version ", kIndexedVersion, " exists",
         kDamaged);
  const auto code = load_unaligned<uint8_t>(head.data() + 17, 0);
  if (!is_indexed_dtype(code))
    fail(ErrorKind::kData, path, ": token type code ", static_cast<int>(code), ", wanted 1 to 8", kDamaged);
  const auto sequences = load_unaligned<uint64_t>(head.data() + 18, 0),
             entries = load_unaligned<uint64_t>(head.data() + 26, 0);
  // With counts up to this bound, the sizes computed below fit in 64 bits.
  constexpr auto kMax = static_cast<uint64_t>(std::numeric_limits<int64_t>::max() / 64);
  if (sequences > kMax || entries > kMax)
    fail(ErrorKind::kData, path, ": ", sequences, " sequences and ", entries,
         " document entries declared in ", file_size, " bytes", kDamaged);
  const IndexHeader header{static_cast<IndexedDType>(code), static_cast<int64_t>(sequences),
                           static_cast<int64_t>(entries)};
  check_size(header, file_size, path);
  if (header.entries < 1) fail(ErrorKind::kData, path, ": the document array is empty", kDamaged);
  return header;
}

IndexChecker::IndexChecker(const std::string& prefix, const IndexHeader& header, uint64_t bin_size)
    : idx_(prefix + ".idx"),
      bin_(prefix + ".bin"),
      header_(header),
      item_(static_cast<int64_t>(size_of(header.dtype))),
      bin_size_(static_cast<int64_t>(bin_size)) {}

void IndexChecker::sequences(const std::byte* lengths, const std::byte* pointers, int64_t n) {
  for (int64_t done = 0; done < n; done += kStep) {
    const int64_t step = std::min(kStep, n - done);
    const std::byte *const step_lengths = lengths + 4 * done, *const step_pointers = pointers + 8 * done;
    // Cannot overflow: `end` is at most the .bin's size before a step and grows by at most 2^54 in it.
    int64_t end = end_;
    int32_t longest = longest_;
    bool good = true;
    for (int64_t i = 0; i < step; ++i) {
      const auto length = load_unaligned<int32_t>(step_lengths, i);
      good &= length >= 0 && load_unaligned<int64_t>(step_pointers, i) == end;
      longest = std::max(longest, length);
      end += length * item_;
    }
    if (!good || end > bin_size_) refuse_sequence(step_lengths, step_pointers, step);
    end_ = end;
    longest_ = longest;
    sequences_ += step;
  }
}

void IndexChecker::refuse_sequence(const std::byte* lengths, const std::byte* pointers, int64_t n) const {
  int64_t end = end_;
  for (int64_t i = 0; i < n; ++i) {
    const auto length = load_unaligned<int32_t>(lengths, i);
    const auto pointer = load_unaligned<int64_t>(pointers, i);
    if (length < 0)
      fail(ErrorKind::kData, idx_, ": sequence ", sequences_ + i, " has the length ", length, kDamaged);
    if (pointer != end)
      fail(ErrorKind::kData, idx_, ": sequence ", sequences_ + i, " begins at byte ", pointer,
           ", the lengths before it end at byte ", end, kDamaged);
    end += length * item_;
    if (end > bin_size_)
      fail(ErrorKind::kData, bin_, ": is ", bin_size_, " bytes, but sequence ", sequences_ + i, " of ",
           header_.sequences, " in ", idx_, " ends at byte ", end, kTruncated);
  }
  fail(ErrorKind::kInternal, idx_, ": a sequence failed the check, but none was found that is wrong");
}

void IndexChecker::end_of_sequences() const {
  if (end_ != bin_size_)
    fail(ErrorKind::kData, bin_, ": is ", bin_size_, " bytes, but the ", tokens(), " tokens of type ",
         name_of(header_.dtype), " that ", idx_, " describes take ", end_,
         "; the two files do not belong together: run preprocess again, or restore them");
}

void IndexChecker::documents(const std::byte* boundaries, int64_t n) {
  int64_t last = boundary_;
  bool good = entries_ > 0 || n == 0 || load_unaligned<int64_t>(boundaries, 0) == 0;
  for (int64_t i = 0; i < n; ++i) {
    const auto next = load_unaligned<int64_t>(boundaries, i);
    good &= next >= last;
    last = next;
  }
  if (!good) refuse_document(boundaries, n);
  boundary_ = last;
  entries_ += n;
}

void IndexChecker::refuse_document(const std::byte* boundaries, int64_t n) const {
  int64_t last = boundary_;
  for (int64_t i = 0; i < n; ++i) {
    const auto next = load_unaligned<int64_t>(boundaries, i);
    if (entries_ + i == 0 && next != 0)
      fail(ErrorKind::kData, idx_, ": document 0 begins at sequence ", next, ", not at 0", kDamaged);
    if (next < last)
      fail(ErrorKind::kData, idx_, ": document ", entries_ + i - 1, " begins at sequence ", last,
           " and ends at ", next, kDamaged);
    last = next;
  }
  fail(ErrorKind::kInternal, idx_, ": a document failed the check, but none was found that is wrong");
}

void IndexChecker::end_of_documents() const {
  if (boundary_ != header_.sequences)
    fail(ErrorKind::kData, idx_, ": the last document ends at sequence ", boundary_, " of ",
         header_.sequences, kDamaged);
}

}  // namespace megalith
