#include "libcore/data/indexed/indexed_dataset.h"

#include <array>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/data/indexed/dataset_pair.h"
#include "libcore/data/indexed/sidecar.h"
#include "libcore/io/files/file.h"
#include "tests/support/files.h"
#include "tests/support/processes.h"

namespace megalith {
namespace {

using test::TempDir;

template <class T>
void put(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof(T));
}

/// An .idx written by hand from the format's table, so that each part can be damaged.
struct HandMade {
  std::string magic = std::string("MMIDIDX\0\0", 9);
  uint64_t version = 1;
  uint8_t code = 8;
  uint64_t sequences = 4, entries = 5;
  std::vector<int32_t> lengths = {3, 0, 2, 1};
  std::vector<int64_t> pointers = {0, 6, 6, 10};
  std::vector<int64_t> documents = {0, 1, 1, 3, 4};  // the second document is empty
  std::vector<uint16_t> tokens = {1, 2, 3, 40000, 50256, 65499};
  std::string after;

  std::string idx() const {
    std::string bytes = magic;
    put(bytes, version);
    put(bytes, code);
    put(bytes, sequences);
    put(bytes, entries);
    for (const int32_t x : lengths) put(bytes, x);
    for (const int64_t x : pointers) put(bytes, x);
    for (const int64_t x : documents) put(bytes, x);
    return bytes + after;
  }
  std::string bin() const {
    std::string bytes;
    for (const uint16_t x : tokens) put(bytes, x);
    return bytes;
  }
  void write(const std::string& prefix) const {
    write_file(prefix + ".idx", idx());
    write_file(prefix + ".bin", bin());
  }
};

std::vector<int64_t> tokens_of(const TokenSpan& span) {
  std::vector<int64_t> ids(static_cast<size_t>(span.size()));
  span.copy_to(ids.data());
  return ids;
}

/// Writes a file without the sync of write_file(), since a thousand variants are written.
void overwrite(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

/// The message if the dataset is refused as damaged; empty if it opens.
std::string refusal(const std::string& prefix) {
  try {
    const IndexedDataset dataset(prefix);
    return {};
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kData) << error.what();
    return error.what();
  }
}

TEST(IndexedDataset, ReadsHandMadeBytes) {
  const TempDir dir;
  HandMade().write(dir / "c");
  const IndexedDataset d(dir / "c");
  EXPECT_EQ(d.dtype(), IndexedDType::kU16);
  EXPECT_EQ(d.sequences(), 4);
  EXPECT_EQ(d.documents(), 4);
  EXPECT_EQ(d.tokens(), 6);
  EXPECT_EQ(d.longest_sequence(), 3);
  EXPECT_EQ(tokens_of(d.sequence(0)), (std::vector<int64_t>{1, 2, 3}));
  EXPECT_EQ(tokens_of(d.sequence(0, 1, 1)), (std::vector<int64_t>{2}));
  EXPECT_EQ(tokens_of(d.sequence(1)), (std::vector<int64_t>{}));
  EXPECT_EQ(tokens_of(d.sequence(2)), (std::vector<int64_t>{40000, 50256}));
  EXPECT_EQ(tokens_of(d.sequence(3)), (std::vector<int64_t>{65499}));
  EXPECT_EQ(d.sequence(2)[1], 50256);
  EXPECT_EQ(tokens_of(d.all_tokens()), (std::vector<int64_t>{1, 2, 3, 40000, 50256, 65499}));
  EXPECT_EQ(d.document_begin(3), 3);
  EXPECT_EQ(d.document_begin(4), 4);
  EXPECT_EQ(d.document_of(0), 0);
  EXPECT_EQ(d.document_of(1), 2);  // sequences 1 and 2 belong to the third document
  EXPECT_EQ(d.document_of(2), 2);
  EXPECT_EQ(d.document_of(3), 3);
  EXPECT_THROW(static_cast<void>(d.sequence(4)), Error);
  EXPECT_THROW(static_cast<void>(d.sequence(-1)), Error);
  EXPECT_THROW(static_cast<void>(d.sequence(0, 2, 2)), Error);
}

struct Damage {
  const char* name;
  std::function<void(HandMade&)> apply;
  const char* says;
};

TEST(IndexedDataset, RefusesEveryDamageByName) {
  const Damage damages[] = {
      {"magic", [](HandMade& h) { h.magic[3] = 'X'; }, "c.idx: begins with \"MMIXIDX"},
      {"version", [](HandMade& h) { h.version = 2; }, "c.idx: version 2"},
      {"dtype 0", [](HandMade& h) { h.code = 0; }, "c.idx: token type code 0"},
      {"dtype 9", [](HandMade& h) { h.code = 9; }, "c.idx: token type code 9"},
      {"wider dtype", [](HandMade& h) { h.code = 4; }, "sequence 1 begins at byte 6"},
      {"2^40 sequences", [](HandMade& h) { h.sequences = uint64_t{1} << 40; },
       "1099511627776 sequences declared"},
      {"2^40 documents", [](HandMade& h) { h.entries = uint64_t{1} << 40; },
       "1099511627776 document entries"},
      {"2^63 sequences", [](HandMade& h) { h.sequences = uint64_t{1} << 63; },
       "9223372036854775808 sequences"},
      {"all bits", [](HandMade& h) { h.entries = ~uint64_t{0}; }, "18446744073709551615 document entries"},
      {"negative length", [](HandMade& h) { h.lengths[1] = -1; }, "c.idx: sequence 1 has the length -1"},
      {"longer length", [](HandMade& h) { h.lengths[0] = 4; }, "c.idx: sequence 1 begins at byte 6"},
      {"longest length", [](HandMade& h) { h.lengths[3] = 0x7fffffff; },
       "c.bin: is 12 bytes, but sequence 3"},
      {"pointer", [](HandMade& h) { h.pointers[2] = 8; }, "sequence 2 begins at byte 8"},
      {"negative pointer", [](HandMade& h) { h.pointers[0] = -2; }, "sequence 0 begins at byte -2"},
      {"first document", [](HandMade& h) { h.documents[0] = 1; }, "document 0 begins at sequence 1"},
      {"falling documents", [](HandMade& h) { h.documents[2] = 0; },
       "document 1 begins at sequence 1 and ends at 0"},
      {"last document", [](HandMade& h) { h.documents[4] = 3; }, "the last document ends at sequence 3 of 4"},
      {"no document array", [](HandMade& h) { h.entries = 0, h.documents = {}; },
       "the document array is empty"},
      {"trailing byte", [](HandMade& h) { h.after = "x"; }, "c.idx: 4 sequences and 5 document entries"},
      {"modes", [](HandMade& h) { h.after = std::string(4, '\0'); }, "multimodal"},
      {"short bin", [](HandMade& h) { h.tokens.pop_back(); }, "c.bin: is 10 bytes, but sequence 3 of 4 in "},
      {"long bin", [](HandMade& h) { h.tokens.push_back(7); },
       "c.bin: is 14 bytes, but the 6 tokens of type uint16"},
  };
  for (const Damage& damage : damages) {
    const TempDir dir;
    HandMade hand_made;
    damage.apply(hand_made);
    hand_made.write(dir / "c");
    EXPECT_NE(refusal(dir / "c").find(damage.says), std::string::npos)
        << damage.name << ": " << refusal(dir / "c");
  }
}

TEST(IndexedDataset, RefusesAnIndexTruncatedAtAnyByte) {
  const TempDir dir;
  HandMade().write(dir / "c");
  const std::string whole = HandMade().idx();
  for (size_t n = 0; n < whole.size(); ++n) {
    overwrite(dir / "c.idx", whole.substr(0, n));
    EXPECT_NE(refusal(dir / "c").find("truncated"), std::string::npos)
        << n << " bytes: " << refusal(dir / "c");
  }
}

TEST(IndexedDataset, RefusesAnyFlippedBitThatChangesWhatItMeans) {
  const TempDir dir;
  HandMade().write(dir / "c");
  const std::string whole = HandMade().idx();
  const size_t documents_at = kIndexedHeaderBytes + 12 * 4;
  int moved_boundaries = 0;
  for (size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::string flipped = whole;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    overwrite(dir / "c.idx", flipped);
    if (!refusal(dir / "c").empty()) continue;
    // If the dataset still opens, a boundary has moved but all boundaries are still in order. Nothing in the
    // two files reveals this.
    ++moved_boundaries;
    EXPECT_GE(bit / 8, documents_at) << "bit " << bit;
  }
  // In the boundaries {0,1,1,3,4}, one bit can turn the first 1 into 0, the second 1 into 3, and the 3 into 2
  // or 1.
  EXPECT_EQ(moved_boundaries, 4);
}

TEST(IndexedDataset, NamesTheMissingHalf) {
  const TempDir dir;
  HandMade().write(dir / "c");
  const auto message = [](const std::string& prefix) -> std::string {
    try {
      const IndexedDataset dataset(prefix);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kNoInput);
      return error.what();
    }
    return "opened";
  };
  EXPECT_EQ(message(dir / "c.bin"), "opened") << "a shell completes a prefix to a file";
  EXPECT_EQ(message(dir / "c.idx"), "opened");
  EXPECT_EQ(IndexedDataset(dir / "c.idx").prefix(), dir / "c");
  EXPECT_NE(message(dir / "d").find("d: there is neither "), std::string::npos);
  write_file(dir / "code_content_document.idx", "");
  EXPECT_NE(message(dir / "code").find("; did you mean \"" + (dir / "code_content_document") + "\"?"),
            std::string::npos)
      << message(dir / "code");
  std::filesystem::remove(dir / "c.idx");
  EXPECT_NE(message(dir / "c").find("c.idx: is not there, but"), std::string::npos);
  EXPECT_NE(message(dir / "c.bin").find("c.idx: is not there, but"), std::string::npos);
  write_file(dir / "train.bin", "ab");
  const std::string nanogpt =
      "run megalith-data from-nanogpt " + (dir / "train.bin") + ", and give " + (dir / "train_document");
  EXPECT_NE(message(dir / "train.bin").find(nanogpt), std::string::npos) << message(dir / "train.bin");
}

TEST(IndexedDatasetWriter, WritesTheBytesOfTheTable) {
  const TempDir dir;
  IndexedDatasetWriter writer(dir / "sub/c", IndexedDType::kU16);
  writer.add_document(std::vector<int32_t>{1, 2, 3}, std::array<int32_t, 1>{3});
  writer.add_document({}, {});
  writer.add_document(std::vector<int32_t>{40000, 50256}, std::array<int32_t, 2>{0, 2});
  writer.add_document(std::vector<int32_t>{65499}, std::array<int32_t, 1>{1});
  EXPECT_FALSE(file_exists(dir / "sub/c.bin") || file_exists(dir / "sub/c.idx"));
  writer.finish();
  EXPECT_EQ(read_file(dir / "sub/c.idx"), HandMade().idx());
  EXPECT_EQ(read_file(dir / "sub/c.bin"), HandMade().bin());
  EXPECT_EQ(writer.sequences(), 4);
  EXPECT_EQ(writer.documents(), 4);
  EXPECT_EQ(writer.tokens(), 6);
}

TEST(IndexedDatasetWriter, TakesManyDocumentsInPieces) {
  const test::TempDir dir;
  for (const IndexedDType dtype :
       {IndexedDType::kU16, IndexedDType::kI32, IndexedDType::kU8, IndexedDType::kI64}) {
    IndexedDatasetWriter one(dir / "one", dtype), many(dir / "many", dtype);
    const std::vector<int32_t> ids = {1, 2, 3, 4, 255}, lengths = {2, 1, 2}, sequences = {2, 0, 1};
    one.add_document(std::span(ids).first(3), std::span(lengths).first(2));
    one.add_document({}, {});
    one.add_document(std::span(ids).last(2), std::span(lengths).last(1));
    ByteBuffer tokens;
    ASSERT_FALSE(narrow_ids(ids, dtype, tokens));
    const std::span<const char> all(tokens.data(), tokens.size());
    many.add_ids(all.first(1));
    many.add_ids({});
    EXPECT_THROW(many.end_documents(lengths, sequences), Error);  // too few ids were added
    many.add_ids(all.subspan(1));
    EXPECT_THROW(many.end_documents(lengths, lengths), Error);  // the numbers of sequences do not match
    many.end_documents(lengths, sequences);
    EXPECT_THROW(many.end_documents(lengths, sequences), Error);  // nothing was added
    one.finish();
    many.finish();
    EXPECT_EQ(read_file(dir / "many.bin"), read_file(dir / "one.bin"));
    EXPECT_EQ(read_file(dir / "many.idx"), read_file(dir / "one.idx"));
  }
}

TEST(NarrowIds, NamesTheFirstIdThatDoesNotFit) {
  ByteBuffer out;
  EXPECT_EQ(narrow_ids(std::vector<int32_t>{1, 65535}, IndexedDType::kU16, out), std::nullopt);
  EXPECT_EQ(narrow_ids(std::vector<int32_t>{1, 65536, -1}, IndexedDType::kU16, out), 65536);
  EXPECT_EQ(narrow_ids(std::vector<int32_t>{-1}, IndexedDType::kU16, out), -1);
  EXPECT_EQ(out.size(), 4U);
}

// Writes more lengths and boundaries than are kept in memory. The expected arrays are computed in the test.
TEST(IndexedDatasetWriter, KeepsMillionsOfDocumentsInOrder) {
  const test::TempDir dir;
  IndexedDatasetWriter writer(dir / "many", IndexedDType::kU8);
  constexpr int kDocuments = 600'000;
  const std::vector<int32_t> ids = {7, 7, 7};
  for (int i = 0; i < kDocuments; ++i) {
    const int32_t length = i % 4;
    writer.add_document(std::span(ids).first(static_cast<size_t>(length)),
                        std::span(&length, length > 0 ? 1 : 0));
  }
  writer.finish();
  const IndexedDataset many(dir / "many");
  ASSERT_EQ(many.documents(), kDocuments);
  ASSERT_EQ(many.sequences(), kDocuments / 4 * 3);
  for (int64_t i = 0; i < kDocuments; ++i)
    ASSERT_EQ(many.document_begin(i), i / 4 * 3 + std::max<int64_t>(i % 4 - 1, 0));
  for (int64_t i = 0; i < many.sequences(); ++i) ASSERT_EQ(many.sequence_length(i), i % 3 + 1);
}

// With direct I/O each of them would have a thread and 2 MiB.
TEST(IndexedDatasetWriter, WritesManyDatasetsAtATimeThroughTheCache) {
  const TempDir dir;
  constexpr size_t kDatasets = 20, kTokens = 200'000;
  const int before = test::threads_of_process();
  std::vector<std::unique_ptr<IndexedDatasetWriter>> writers;
  std::vector<DatasetPair*> pairs;
  for (size_t i = 0; i < kDatasets; ++i) {
    writers.push_back(std::make_unique<IndexedDatasetWriter>(dir / concat(i), IndexedDType::kU16));
    writers.back()->write_through_cache();
    writers.back()->add_document(std::vector<int32_t>(kTokens, static_cast<int32_t>(i)),
                                 std::array<int32_t, 1>{kTokens});
  }
  EXPECT_LE(test::threads_of_process(), before);
  for (const auto& writer : writers) pairs.push_back(&writer->complete());
  commit(pairs);
  for (size_t i = 0; i < kDatasets; ++i) {
    const IndexedDataset data(dir / concat(i));
    ASSERT_EQ(data.tokens(), static_cast<int64_t>(kTokens));
    for (int64_t k = 0; k < data.tokens(); ++k) ASSERT_EQ(data.sequence(0)[k], static_cast<int64_t>(i));
  }
}

TEST(IndexedDatasetWriter, LeavesNothingWhenNotFinished) {
  const TempDir dir;
  {
    IndexedDatasetWriter writer(dir / "c", IndexedDType::kI32);
    writer.add_document(std::vector<int32_t>(100000, 7), std::array<int32_t, 1>{100000});
  }
  EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
}

TEST(IndexedDatasetWriter, WritesAnEmptyDatasetThatOpens) {
  const TempDir dir;
  IndexedDatasetWriter(dir / "c", IndexedDType::kU16).finish();
  EXPECT_EQ(file_size(dir / "c.bin"), 0u);
  EXPECT_EQ(file_size(dir / "c.idx"), 34u + 8u);
  const IndexedDataset d(dir / "c");
  EXPECT_EQ(d.sequences(), 0);
  EXPECT_EQ(d.documents(), 0);
}

TEST(IndexedDatasetWriter, RefusesIdsThatDoNotFit) {
  const TempDir dir;
  const struct {
    IndexedDType dtype;
    int32_t fits, too_large;
  } rows[] = {{IndexedDType::kU8, 255, 256},
              {IndexedDType::kI8, -128, 128},
              {IndexedDType::kI16, 32767, 32768},
              {IndexedDType::kU16, 65535, 65536},
              {IndexedDType::kU16, 0, -1}};
  for (const auto& row : rows) {
    IndexedDatasetWriter writer(dir / "c", row.dtype);
    writer.add_document(std::array<int32_t, 1>{row.fits}, std::array<int32_t, 1>{1});
    EXPECT_THROW(writer.add_document(std::array<int32_t, 1>{row.too_large}, std::array<int32_t, 1>{1}),
                 Error);
    writer.finish();
    EXPECT_EQ(IndexedDataset(dir / "c").sequence(0)[0], row.fits);
  }
}

TEST(IndexedDatasetWriter, ReadsBackEveryIntegerType) {
  for (const IndexedDType dtype :
       {IndexedDType::kI16, IndexedDType::kI32, IndexedDType::kI64, IndexedDType::kU16}) {
    const TempDir dir;
    std::vector<int32_t> ids(1001);
    for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int32_t>((i * 7919) % 32768);
    IndexedDatasetWriter writer(dir / "c", dtype);
    writer.add_document(ids, std::array<int32_t, 2>{17, 984});
    writer.finish();
    const IndexedDataset d(dir / "c");
    std::vector<int32_t> narrow(984);
    d.sequence(1).copy_to(narrow.data());
    EXPECT_EQ(narrow, (std::vector<int32_t>(ids.begin() + 17, ids.end()))) << name_of(dtype);
    EXPECT_EQ(tokens_of(d.sequence(0)), (std::vector<int64_t>(ids.begin(), ids.begin() + 17)))
        << name_of(dtype);
  }
}

TEST(IndexedDatasetWriter, ReplacesADatasetAndItsSidecar) {
  const TempDir dir;
  HandMade().write(dir / "c");
  make_sidecar(dir / "c", Sidecar{.tokenizer = "GPT2BPETokenizer", .max_token_id = 65499})->commit();
  IndexedDatasetWriter(dir / "c", IndexedDType::kU16).finish();
  EXPECT_EQ(IndexedDataset(dir / "c").tokens(), 0);
  EXPECT_FALSE(file_exists(dir / "c.json"));
}

TEST(Sidecar, ComesBackAsWritten) {
  const TempDir dir;
  EXPECT_FALSE(read_sidecar(dir / "c").has_value());
  Json options = Json::object();
  options.set("append-eod", true);
  make_sidecar(dir / "c", {.tokenizer = "GPT2BPETokenizer",
                           .tokenizer_hash = "abc",
                           .vocab_size = 50257,
                           .documents = 3,
                           .sequences = 2,
                           .tokens = 10,
                           .max_token_id = 50256,
                           .idx_hash = "0123456789abcdef",
                           .bin_parts = {{8, "00000000000000ff"}, {12, "fedcba9876543210"}},
                           .options = options})
      ->commit();
  const auto s = read_sidecar(dir / "c");
  ASSERT_TRUE(s.has_value());
  EXPECT_EQ(s->tokenizer, "GPT2BPETokenizer");
  EXPECT_EQ(s->tokenizer_hash, "abc");
  EXPECT_EQ(s->vocab_size, 50257);
  EXPECT_EQ(s->documents, 3);
  EXPECT_EQ(s->sequences, 2);
  EXPECT_EQ(s->tokens, 10);
  EXPECT_EQ(s->max_token_id, 50256);
  EXPECT_EQ(s->idx_hash, "0123456789abcdef");
  EXPECT_EQ(s->bin_parts, (std::vector<ContentPart>{{8, "00000000000000ff"}, {12, "fedcba9876543210"}}));
  EXPECT_EQ(s->options, options);
}

// tests/data/goldens/preprocessed.json was written by megalith-preprocess of commit 489c7940, whose code
// wrote each member separately. Today's code must write the same bytes.
TEST(Sidecar, KeepsTheBytesOfAnEarlierVersion) {
  const TempDir dir;
  const std::string golden = read_file(test::test_data("data/goldens/preprocessed.json"));
  write_file(dir / "c.json", golden);
  make_sidecar(dir / "c", *read_sidecar(dir / "c"))->commit();
  EXPECT_EQ(read_file(dir / "c.json"), golden);
}

TEST(Sidecar, LeavesACorpusOfThatNameAlone) {
  const TempDir dir;
  write_file(dir / "c.json", "{\"text\": \"a corpus\"}\n");
  EXPECT_FALSE(read_sidecar(dir / "c").has_value());
  remove_sidecar(dir / "c");
  EXPECT_EQ(make_sidecar(dir / "c", {}), nullptr);
  EXPECT_EQ(read_file(dir / "c.json"), "{\"text\": \"a corpus\"}\n");
}

}  // namespace
}  // namespace megalith
