#include "libcore/io/parquet/column_reader.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "libcore/base/text.h"
#include "libcore/hash/crc32.h"
#include "libcore/io/parquet/snappy.h"
#include "libcore/io/streams/stop_signal.h"

namespace megalith {
namespace {

using parquet::Codec;
using parquet::PageType;

std::string_view view(const ByteBuffer& buffer) {
  return {buffer.data(), buffer.size()};
}

/// How many bytes one byte of a codec stands for at most, rounded up: an element of snappy copies 64 bytes by
/// three, deflate 258 by two bits, a block of zstd 128 KiB by four.
uint64_t most_from_byte(Codec codec) {
  return codec == Codec::kSnappy ? 22 : codec == Codec::kGzip ? 1032 : 32768;
}

}  // namespace

ColumnReader::ColumnReader(const ReadableFile& file, ColumnShape shape, const std::string& name)
    : file_(file), shape_(std::move(shape)), place_{name, "column " + quote(shape_.path), 0} {}

void ColumnReader::begin(const ColumnChunk& chunk) {
  chunk_ = chunk;
  if (chunk.values == 0) chunk_.bytes = 0;
  at_ = static_cast<uint64_t>(chunk_.begin);
  end_ = at_ + static_cast<uint64_t>(chunk_.bytes);
  place_.byte = at_;
  taken_ = paged_ = 0;
  read_ = false;
  values_.reset();
  dictionary_.clear();
}

uint64_t ColumnReader::memory() const {
  return head_.capacity() + stored_.capacity() + page_.capacity() + dictionary_page_.capacity() +
         dictionary_.capacity() * sizeof(ColumnValue) + (decoder_ ? decoder_->memory() : 0);
}

const ColumnReader::Entry& ColumnReader::entry() {
  if (std::exchange(read_, true)) return entry_;
  while (taken_ == paged_) next_page();
  entry_ = {static_cast<int>(repetitions_.next()), static_cast<int>(definitions_.next())};
  if (entry_.repetition > shape_.repetition || entry_.definition > shape_.definition)
    fail_damaged(place_, "found levels ", entry_.repetition, " and ", entry_.definition, ", wanted at most ",
                 shape_.repetition, " and ", shape_.definition);
  return entry_;
}

const ColumnValue& ColumnReader::take() {
  if (entry().definition == shape_.definition) values_->next(value_);
  read_ = false;
  ++taken_;
  return value_;
}

/// Reads the next page, whatever its type.
void ColumnReader::next_page() {
  stop_if_asked();
  values_.reset();  // which views the page
  const PageHeader page = read_header();
  if (page.type != PageType::kData && page.type != PageType::kDataV2 && page.type != PageType::kDictionary) {
    at_ += static_cast<uint64_t>(page.bytes);
    return;
  }
  read_body(page);
  if (page.type == PageType::kDictionary) return take_dictionary(page);
  if (page.values > chunk_.values - paged_)
    fail_damaged(place_, "found a page of ", page.values, " values, wanted ", chunk_.values - paged_,
                 " as its row group has left");
  paged_ += page.values;
  page.type == PageType::kData ? take_data(page) : take_data_v2(page);
}

/// Reads the header at at_ and moves behind it. It may be long: it may hold the smallest and largest text.
PageHeader ColumnReader::read_header() {
  constexpr uint64_t kUsual = uint64_t{1} << 14;
  place_.byte = at_;
  for (uint64_t size = kUsual;; size *= 4) {
    const uint64_t left = end_ - at_, read = std::min(size, left);
    head_.clear();
    file_.read_at(at_, head_.extend(static_cast<size_t>(read)), static_cast<size_t>(read));
    if (const std::optional<PageHeader> page = parse_page_header(view(head_), place_)) {
      at_ += page->size;
      if (static_cast<uint64_t>(page->bytes) > end_ - at_)
        fail_damaged(place_, "found a page of ", page->bytes, " bytes with ", end_ - at_, " bytes left");
      return *page;
    }
    if (read == left) fail_damaged(place_, "its pages end after ", paged_, " of ", chunk_.values, " values");
  }
}

void ColumnReader::read_body(const PageHeader& page) {
  const auto bytes = static_cast<size_t>(page.bytes);
  const size_t head = head_.size() - page.size;  // bytes behind the header that are already read
  stored_.clear();
  char* const out = stored_.extend(bytes);
  const size_t known = std::min(bytes, head);
  if (known > 0) std::memcpy(out, head_.data() + page.size, known);
  if (bytes > known) file_.read_at(at_ + known, out + known, bytes - known);
  at_ += bytes;
  if (!page.crc) return;
  if (const uint32_t crc = crc32(0, stored_.data(), stored_.size()); crc != *page.crc)
    fail_damaged(place_, "found a page with CRC-32 ", crc, ", wanted ", *page.crc);
}

void ColumnReader::take_dictionary(const PageHeader& page) {
  const std::string_view bytes = decompress(view(stored_), page.plain_bytes, dictionary_page_);
  if (bytes.data() == stored_.data()) std::swap(stored_, dictionary_page_);  // whose bytes the entries view
  // PLAIN_DICTIONARY is an old name of PLAIN here.
  if (page.encoding != parquet::Encoding::kPlain && page.encoding != parquet::Encoding::kPlainDictionary)
    fail_damaged(place_, "found a dictionary in encoding ", static_cast<int32_t>(page.encoding));
  constexpr size_t kSmallest = 4;              // bytes of an entry; truths have no dictionary
  constexpr int64_t kMost = int64_t{1} << 24;  // which take 512 MiB; writers stop at a page of about 1 MiB
  if (page.values > kMost)
    fail_unread(place_, "has a dictionary of ", page.values, " entries, wanted at most ", kMost);
  if (static_cast<uint64_t>(page.values) > bytes.size() / kSmallest)
    fail_damaged(place_, "found a dictionary of ", page.values, " entries in ", bytes.size(), " bytes");
  const auto values = open_values({parquet::Encoding::kPlain, shape_.type, bytes, dictionary_, place_});
  dictionary_.assign(static_cast<size_t>(page.values), {});
  for (ColumnValue& value : dictionary_) values->next(value);
}

/// The levels at the beginning of a page's bytes, after the number of their bytes. Removes both from `bytes`.
RunDecoder ColumnReader::levels_before(std::string_view& bytes, parquet::Encoding encoding,
                                       int highest) const {
  if (highest == 0) return RunDecoder({}, 0, place_);
  if (encoding != parquet::Encoding::kRle)
    fail_unread(place_, "has levels in encoding ", static_cast<int32_t>(encoding),
                " (BIT_PACKED is 4), which is out of use; wanted RLE");
  uint32_t size = 0;
  if (bytes.size() < sizeof size)
    fail_damaged(place_, "found a page of ", bytes.size(), " bytes without levels");
  std::memcpy(&size, bytes.data(), sizeof size);
  bytes.remove_prefix(sizeof size);
  if (size > bytes.size())
    fail_damaged(place_, "found levels of ", size, " bytes with ", bytes.size(), " bytes left");
  const RunDecoder levels(bytes.substr(0, size), bits_for(static_cast<uint32_t>(highest)), place_);
  bytes.remove_prefix(size);
  return levels;
}

void ColumnReader::take_data(const PageHeader& page) {
  std::string_view bytes = decompress(view(stored_), page.plain_bytes, page_);
  repetitions_ = levels_before(bytes, page.repetition_levels, shape_.repetition);
  definitions_ = levels_before(bytes, page.definition_levels, shape_.definition);
  open_page_values(page, bytes);
}

void ColumnReader::take_data_v2(const PageHeader& page) {
  const auto repetitions = static_cast<size_t>(page.repetition_bytes),
             definitions = static_cast<size_t>(page.definition_bytes);
  const std::string_view stored = view(stored_);
  const auto levels = [&](size_t begin, size_t size, int highest) {
    return RunDecoder(highest > 0 ? stored.substr(begin, size) : std::string_view(),
                      bits_for(static_cast<uint32_t>(highest)), place_);
  };
  repetitions_ = levels(0, repetitions, shape_.repetition);
  definitions_ = levels(repetitions, definitions, shape_.definition);
  std::string_view values = stored.substr(repetitions + definitions);
  const int64_t plain = page.plain_bytes - page.repetition_bytes - page.definition_bytes;
  // Some writers store a block that decompresses to nothing, which is no value's.
  if (page.compressed) values = plain > 0 ? decompress(values, plain, page_) : std::string_view();
  open_page_values(page, values);
}

void ColumnReader::open_page_values(const PageHeader& page, std::string_view bytes) {
  // A page of nulls may hold no bytes at all, not even the head that its encoding wants, and have no
  // dictionary.
  const bool empty = bytes.empty() && page.encoding != parquet::Encoding::kRleDictionary &&
                     page.encoding != parquet::Encoding::kPlainDictionary;
  values_ = open_values(
      {empty ? parquet::Encoding::kPlain : page.encoding, shape_.type, bytes, dictionary_, place_});
}

/// The `size` bytes that `stored` decompresses to, in `out`; `stored` itself if it is not compressed.
std::string_view ColumnReader::decompress(std::string_view stored, int64_t size, ByteBuffer& out) {
  const auto wanted = static_cast<size_t>(size);
  if (chunk_.codec == Codec::kUncompressed) {
    if (stored.size() != wanted)
      fail_damaged(place_, "found a page of ", stored.size(), " bytes, wanted ", wanted);
    return stored;
  }
  if (chunk_.codec != Codec::kSnappy && chunk_.codec != Codec::kGzip && chunk_.codec != Codec::kZstd)
    fail_unread(place_, "is compressed by ", name(chunk_.codec), "; wanted SNAPPY, GZIP, ZSTD or none");
  if (wanted == 0) return {};  // for which not every writer stores an empty block
  if (wanted > stored.size() * most_from_byte(chunk_.codec))
    fail_damaged(place_, "found a page of ", stored.size(), " bytes in ", name(chunk_.codec), ", wanted ",
                 wanted, " after decompression");
  if (chunk_.codec == Codec::kSnappy && snappy_size(stored) != wanted)
    fail_damaged(place_, "found a page of ", snappy_size(stored).value_or(0), " bytes in snappy, wanted ",
                 wanted);
  out.clear();
  char* const begin = out.extend(wanted);
  if (chunk_.codec != Codec::kSnappy)
    decompress_stream(stored, begin, wanted);
  else if (const char* const error = decompress_snappy(stored, begin))
    fail_damaged(place_, "found a damaged block of snappy: ", error);
  return view(out);
}

void ColumnReader::decompress_stream(std::string_view stored, char* out, size_t size) {
  // A damaged member leaves a decoder in its middle, but then the column is not read on.
  if (!decoder_ || decoder_codec_ != chunk_.codec)
    decoder_ = make_decoder(chunk_.codec == Codec::kGzip ? Compression::kGzip : Compression::kZstd);
  decoder_codec_ = chunk_.codec;
  size_t made = 0;
  bool ended = false;
  while (!stored.empty()) {
    const Decoder::Step step = decoder_->decode(stored, {out + made, size - made});
    if (step.error) fail_damaged(place_, "found a damaged page of ", name(chunk_.codec), ": ", step.error);
    stored.remove_prefix(step.taken);
    made += step.made;
    ended = step.member_ended;
    if (step.taken == 0 && step.made == 0) break;
  }
  if (!ended || !stored.empty() || made != size)
    fail_damaged(place_, "found a page of ", made, " bytes", stored.empty() && ended ? "" : " or more",
                 " after decompression, wanted ", size);
}

}  // namespace megalith
