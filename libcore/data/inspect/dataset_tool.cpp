#include "libcore/data/inspect/dataset_tool.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "libcore/base/byte_buffer.h"
#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/terminal.h"
#include "libcore/base/text.h"
#include "libcore/data/indexed/content.h"
#include "libcore/data/indexed/sidecar.h"
#include "libcore/data/indexed/token_check.h"
#include "libcore/io/files/file.h"

namespace megalith {
namespace {

void verify_content(const std::string& path, const std::vector<ContentPart>& parts) {
  const ReadableFile file(path);
  ContentChecker checker(path, parts, file.size());
  Progress progress("verifying " + path, static_cast<int64_t>(file.size()), "B");
  int64_t done = 0;
  file.stream([&](std::span<const std::byte> block) {
    checker.update(block.data(), block.size());
    progress.advance_to(done += static_cast<int64_t>(block.size()));
  });
}

/// The first tokens of a document, at most `max_ids`. The document's sequences are joined end to end.
std::vector<int32_t> document_ids(const IndexedDataset& data, int64_t document, int64_t max_ids) {
  std::vector<int32_t> ids;
  for (int64_t s = data.document_begin(document); s < data.document_begin(document + 1); ++s) {
    const size_t before = ids.size();
    const int64_t n = std::min<int64_t>(data.sequence_length(s), max_ids - static_cast<int64_t>(before));
    ids.resize(before + static_cast<size_t>(n));
    data.sequence(s, 0, n).copy_to(ids.data() + before);
  }
  return ids;
}

int64_t document_length(const IndexedDataset& data, int64_t document) {
  int64_t tokens = 0;
  for (int64_t s = data.document_begin(document); s < data.document_begin(document + 1); ++s)
    tokens += data.sequence_length(s);
  return tokens;
}

std::string text_of(int64_t id, const Tokenizer& tokenizer) {
  const auto narrow = static_cast<int32_t>(id);
  return tokenizer.decode({&narrow, 1});
}

/// A horizontal bar, `cells` columns long to the nearest eighth, but at least an eighth.
std::string bar(double cells) {
  static constexpr const char* kEighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const auto eighths = std::max<int64_t>(std::lround(cells * 8), 1);
  std::string text;
  for (int64_t i = 0; i < eighths / 8; ++i) text += "█";
  return text + kEighths[eighths % 8];
}

std::string right(const std::string& text, size_t width) {
  return std::string(text.size() < width ? width - text.size() : 0, ' ') + text;
}

std::string ids_text(std::span<const int32_t> ids) {
  std::string text;
  for (const int32_t id : ids) text += concat(text.empty() ? "" : " ", id);
  return text;
}

}  // namespace

Json dataset_json(const IndexedDataset& data) {
  Json json = Json::object();
  json.set("prefix", data.prefix());
  json.set("type", name_of(data.dtype()));
  json.set("documents", data.documents());
  json.set("sequences", data.sequences());
  json.set("tokens", data.tokens());
  json.set("longest_sequence", data.longest_sequence());
  json.set("bin_bytes", static_cast<int64_t>(data.bin().size()));
  json.set("idx_bytes", static_cast<int64_t>(data.idx().size()));
  json.set("sidecar", read_sidecar(data.prefix()) ? Json::load(sidecar_path(data.prefix())) : Json());
  return json;
}

Json lengths_json(const LengthCounts& lengths) {
  Json json = Json::object();
  json.set("empty_documents", lengths.zeros());
  Json bins = Json::array();
  if (lengths.size() > 0) {
    json.set("min", lengths.min());
    json.set("median", lengths.quantile(0.5));
    json.set("mean", lengths.mean());
    json.set("p90", lengths.quantile(0.9));
    json.set("p99", lengths.quantile(0.99));
    json.set("max", lengths.max());
  }
  for (const LengthCounts::Bin& bin : lengths.bins()) {
    Json row = Json::object();
    row.set("from", bin.from);
    row.set("to", bin.to);
    row.set("documents", bin.count);
    bins.push_back(std::move(row));
  }
  json.set("histogram", std::move(bins));
  return json;
}

Json ids_json(const IdCounts& ids, size_t frequent, const Tokenizer* tokenizer) {
  Json rows = Json::array();
  for (const int64_t id : ids.most_frequent(frequent)) {
    Json row = Json::object();
    row.set("id", id);
    row.set("count", ids.of_id[static_cast<size_t>(id)]);
    if (tokenizer) row.set("text", text_of(id, *tokenizer));
    rows.push_back(std::move(row));
  }
  Json json = Json::object();
  json.set("different", ids.different());
  json.set("outside_2^24", ids.outside);
  json.set("most_frequent", std::move(rows));
  return json;
}

void print_dataset(const IndexedDataset& data, std::ostream& out) {
  out << printable(data.prefix()) << "\n  documents  " << format_count(data.documents()) << "\n  sequences  "
      << format_count(data.sequences()) << ", the longest of " << format_count(data.longest_sequence())
      << " tokens\n  tokens     " << format_count(data.tokens()) << ", " << name_of(data.dtype())
      << "\n  files      .bin " << format_bytes(static_cast<double>(data.bin().size())) << ", .idx "
      << format_bytes(static_cast<double>(data.idx().size())) << "\n  tokenizer  ";
  const auto sidecar = read_sidecar(data.prefix());
  if (!sidecar) {
    out << "not known: there is no " << printable(sidecar_path(data.prefix())) << '\n';
    return;
  }
  out << printable(sidecar->tokenizer) << " of " << format_count(sidecar->vocab_size) << " ids, the max here "
      << format_count(sidecar->max_token_id) << "\n  content    "
      << (sidecar->idx_hash.empty() ? "hashes are not known"
                                    : "hashes are kept: `megalith-data verify` compares")
      << '\n';
  for (const auto& [name, value] : sidecar->options.as_object())
    out << "  option     " << printable(name) << ' ' << printable(value.dump()) << '\n';
}

void print_lengths(const LengthCounts& lengths, Terminal terminal, std::ostream& out) {
  if (lengths.size() == 0) return;
  out << wrapped(concat("tokens a document: min ", format_count(lengths.min()), ", median ",
                        format_count(lengths.quantile(0.5)), ", mean ", format_fixed(lengths.mean(), 1),
                        ", 90 % up to ", format_count(lengths.quantile(0.9)), ", 99 % up to ",
                        format_count(lengths.quantile(0.99)), ", max ", format_count(lengths.max()), "; ",
                        format_count(lengths.zeros()), " empty"),
                 terminal.columns, "  ")
      << '\n';
  struct Row {
    std::string range, count;
    int64_t documents;
  };
  std::vector<Row> rows;
  const std::string range_title = "tokens", count_title = "documents";
  size_t range_width = range_title.size(), count_width = count_title.size();
  int64_t max_count = 1;
  for (const auto& [from, to, count] : lengths.bins()) {
    const std::string range = from == to ? format_count(from) : format_count(from) + " - " + format_count(to);
    rows.push_back({range, format_count(count), count});
    range_width = std::max(range_width, range.size());
    count_width = std::max(count_width, rows.back().count.size());
    max_count = std::max(max_count, count);
  }
  const size_t words = range_width + count_width + 6;
  const double cells = terminal.columns > words + 8 ? static_cast<double>(terminal.columns - words) : 8;
  out << "  " << right(range_title, range_width) << "  " << right(count_title, count_width) << '\n';
  for (const Row& row : rows) {
    out << "  " << right(row.range, range_width) << "  " << right(row.count, count_width);
    if (row.documents > 0)
      out << "  " << bar(cells * static_cast<double>(row.documents) / static_cast<double>(max_count));
    out << '\n';
  }
}

void print_ids(const IdCounts& ids, size_t frequent, const Tokenizer* tokenizer, std::ostream& out) {
  int64_t all = ids.outside;
  for (const int64_t n : ids.of_id) all += n;
  out << format_count(ids.different()) << " different ids; "
      << (tokenizer ? "id, occurrences, share, text" : "id, occurrences, share") << " of the most frequent\n";
  for (const int64_t id : ids.most_frequent(frequent)) {
    const int64_t n = ids.of_id[static_cast<size_t>(id)];
    out << "  " << right(std::to_string(id), 8) << "  " << right(format_count(n), 16) << "  "
        << right(format_fixed(100 * static_cast<double>(n) / static_cast<double>(all), 2), 6) << " %";
    if (tokenizer) out << "  " << printable(json_quote(text_of(id, *tokenizer)));
    out << '\n';
  }
  if (ids.outside > 0) out << "  " << format_count(ids.outside) << " ids below 0 or beyond 16,777,215\n";
}

void print_beginnings(const IndexedDataset& data, int64_t count, const Tokenizer* tokenizer,
                      Terminal terminal, std::ostream& out) {
  constexpr int64_t kMax = 256;  // number of tokens read from each document: more than fit on a line
  for (int64_t i = 0; i < std::min(count, data.documents()); ++i) {
    const std::vector<int32_t> ids = document_ids(data, i, kMax);
    const std::string text = tokenizer ? printable(json_quote(tokenizer->decode(ids))) : ids_text(ids);
    const std::string begin = concat("  ", i, "  ");
    if (ids.empty()) {
      out << begin << "(empty)\n";
      continue;
    }
    const size_t room = terminal.columns > begin.size() + 16 ? terminal.columns - begin.size() - 1 : 16;
    const std::string_view shown = fitting(text, room);
    const bool whole = shown.size() == text.size() && document_length(data, i) <= kMax;
    out << begin << shown << (whole ? "" : "…") << '\n';
  }
}

Verified verify_dataset(const std::string& prefix) {
  const IndexedDataset data(prefix);
  const auto sidecar = read_sidecar(prefix);
  if (!sidecar || sidecar->idx_hash.empty()) return Verified::kStructure;
  verify_content(data.idx().path(), {{data.idx().size(), sidecar->idx_hash}});
  verify_content(data.bin().path(), sidecar->bin_parts);
  const auto compare = [&](const char* what, int64_t said, int64_t found) {
    if (said != found)
      fail(ErrorKind::kData, sidecar_path(prefix), ": says that the ", what, " is ", said,
           ", but the dataset's is ", found, "; remove the file to continue without it");
  };
  compare("number of documents", sidecar->documents, data.documents());
  compare("number of sequences", sidecar->sequences, data.sequences());
  compare("number of tokens", sidecar->tokens, data.tokens());
  compare("max token id", sidecar->max_token_id, scan_tokens(data).max);
  return Verified::kContent;
}

namespace {

/// Prints documents, a block at a time. What was read of the mapped files is given back.
class DocumentPrinter {
 public:
  /// `from`: the first document that is printed; the others follow it.
  DocumentPrinter(const IndexedDataset& data, int64_t from, const Tokenizer* tokenizer, std::ostream& out)
      : data_(data),
        tokenizer_(tokenizer),
        out_(out),
        kept_(static_cast<size_t>(data.tokens_of(0, data.document_begin(from))) * size_of(data.dtype())),
        read_(kept_) {}

  void print(int64_t document) {
    add(concat("{\"document\": ", document));
    if (tokenizer_) {
      const std::vector<int32_t> ids = document_ids(data_, document, document_length(data_, document));
      note_read(static_cast<int64_t>(ids.size()));
      add(concat(", \"text\": ", json_quote(tokenizer_->decode(ids)), "}\n"));
    } else {
      add(", \"ids\": [");
      add_ids(document);
      add("]}\n");
    }
    note_entries(1 + data_.document_begin(document + 1) - data_.document_begin(document));
  }

  void flush() {
    out_.write(block_.data(), static_cast<std::streamsize>(block_.size()));
    block_.clear();
  }

 private:
  static constexpr size_t kBlock = size_t{1} << 16;
  static constexpr int64_t kPiece = int64_t{1} << 13;  // ids that are written at once
  static constexpr size_t kMaxId = 11;                 // characters of an int32_t

  void add(std::string_view text) {
    block_.append(text.data(), text.size());
    if (block_.size() >= kBlock) flush();
  }

  void add_ids(int64_t document) {
    bool first = true;
    for (int64_t s = data_.document_begin(document); s < data_.document_begin(document + 1); ++s)
      for (int64_t at = 0, n; at < data_.sequence_length(s); at += n) {
        n = std::min(kPiece, data_.sequence_length(s) - at);
        ids_.resize(static_cast<size_t>(n));
        data_.sequence(s, at, n).copy_to(ids_.data());
        add_piece(first);
        first = false;
        note_read(n);
      }
  }

  void add_piece(bool first) {
    const size_t before = block_.size(), most = ids_.size() * (kMaxId + 2);
    char* const begin = block_.extend(most);
    char* at = begin;
    for (const int32_t id : ids_) {
      if (!first) {
        *at++ = ',';
        *at++ = ' ';
      }
      first = false;
      at = std::to_chars(at, begin + most, id).ptr;
    }
    block_.truncate(before + static_cast<size_t>(at - begin));
    if (block_.size() >= kBlock) flush();
  }

  /// Notes that the next `tokens` of the .bin were read, and now and then gives back what was.
  void note_read(int64_t tokens) {
    constexpr size_t kMost = size_t{1} << 23;
    read_ += static_cast<size_t>(tokens) * size_of(data_.dtype());
    if (read_ - kept_ < kMost) return;
    data_.bin().forget(kept_, read_ - kept_);
    kept_ = read_;
  }

  /// The same for documents and sequences in the .idx.
  void note_entries(int64_t n) {
    constexpr int64_t kMost = int64_t{1} << 19;
    if ((entries_ += n) < kMost) return;
    data_.idx().forget(0, data_.idx().size());
    entries_ = 0;
  }

  const IndexedDataset& data_;
  const Tokenizer* tokenizer_;
  std::ostream& out_;
  ByteBuffer block_;
  std::vector<int32_t> ids_;
  size_t kept_, read_;   // bytes [kept_, read_) of the .bin were read and not yet given back
  int64_t entries_ = 0;  // of the .idx, read since pages were given back
};

}  // namespace

void print_documents(const IndexedDataset& data, int64_t from, int64_t count, const Tokenizer* tokenizer,
                     std::ostream& out) {
  if (from > data.documents())
    fail(ErrorKind::kUsage, "--from ", from, " is beyond the end of ", data.prefix(), ", which has ",
         data.documents(), " documents");
  const int64_t end = from + std::min(count, data.documents() - std::min(from, data.documents()));
  DocumentPrinter printer(data, from, tokenizer, out);
  try {
    for (int64_t i = from; i < end; ++i) printer.print(i);
  } catch (const Error&) {
    printer.flush();  // what comes before the damage
    throw;
  }
  printer.flush();
}

}  // namespace megalith
