#include "libcore/json/foreign_input.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/shell_word.h"
#include "libcore/base/text.h"
#include "libcore/base/utf8.h"
#include "libcore/io/streams/decoder.h"
#include "libcore/io/streams/input_stream.h"

namespace megalith {
namespace {

constexpr std::string_view kSpaces = " \t\r\n";

bool is_between(char c, unsigned first, unsigned last) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= first && byte <= last;
}

/// A command that reads the input and writes `output`. Of stdin and of a compressed file it is only
/// `filter`, for a pipe.
std::string command_for(const std::string& path, const std::string& filter, const std::string& output) {
  if (path == "-" || !compression_of(path).empty()) return "`" + filter + "` in a pipe";
  return concat("`", filter, " < ", shell_word(path), " > ", shell_word(output), "`");
}

/// The path with another extension: "a/b.jsonl" for "a/b.csv" and ".jsonl".
std::string renamed(const std::string& path, const std::string& extension) {
  return std::filesystem::path(path).replace_extension(extension).string();
}

std::string converted_by_iconv(const std::string& path, const std::string& encoding) {
  const std::string extension = std::filesystem::path(path).extension().string();
  return "convert it with " +
         command_for(path, concat("iconv -f ", encoding, " -t utf-8"), renamed(path, ".utf8" + extension));
}

/// The iconv name of the kind of UTF-16 that begins so; empty if it is none. Without a byte order mark, two
/// characters below U+0100 show it.
std::string_view utf16_name(std::string_view head) {
  if (head.starts_with("\xFF\xFE") || head.starts_with("\xFE\xFF")) return "utf-16";
  if (head.size() < 4) return {};
  const bool zeros[] = {head[0] == '\0', head[1] == '\0', head[2] == '\0', head[3] == '\0'};
  if (!zeros[0] && zeros[1] && !zeros[2] && zeros[3]) return "utf-16le";
  if (zeros[0] && !zeros[1] && zeros[2] && !zeros[3]) return "utf-16be";
  return {};
}

/// The text without a byte order mark and white space at its beginning.
std::string_view without_blank_start(std::string_view text) {
  if (text.starts_with(kUtf8ByteOrderMark)) text.remove_prefix(kUtf8ByteOrderMark.size());
  text.remove_prefix(std::min(text.find_first_not_of(kSpaces), text.size()));
  return text;
}

std::string_view first_line(std::string_view text) {
  return text.substr(0, text.find_first_of("\r\n"));
}

/// Whether the first line opens an object and ends inside it.
bool is_indented(std::string_view text) {
  const std::string_view line = trim(first_line(text));
  return line.starts_with('{') && std::string_view("{[,:").find(line.back()) != std::string_view::npos;
}

/// The separator of a table whose first line names its columns; 0 if the text does not look like one. All
/// names must be short words, and the next line must have as many separators at least.
char separator_of(std::string_view text) {
  const std::string_view names = first_line(text);
  const std::string_view rest = text.substr(names.size());
  const size_t next = rest.find_first_not_of("\r\n");
  if (next == std::string_view::npos) return 0;
  const std::string_view row = first_line(rest.substr(next));
  const auto is_name = [](std::string_view name) {
    constexpr size_t kLongest = 40;
    if (name.size() >= 2 && name.front() == '"' && name.back() == '"') name = name.substr(1, name.size() - 2);
    if (name.empty() || name.size() > kLongest || trim(name) != name) return false;
    return std::all_of(name.begin(), name.end(), [](char c) {
      return is_between(c, '0', '9') || is_between(c, 'a', 'z') || is_between(c, 'A', 'Z') || c == '_' ||
             c == '-' || c == ' ';
    });
  };
  for (const char separator : {',', '\t', ';'}) {
    const auto count = std::count(names.begin(), names.end(), separator);
    if (count == 0 || std::count(row.begin(), row.end(), separator) < count) continue;
    const std::vector<std::string> columns = split(std::string(names), separator);
    if (std::all_of(columns.begin(), columns.end(), is_name)) return separator;
  }
  return 0;
}

std::string table_advice(const std::string& path, char separator) {
  const std::string delimiter = separator == '\t' ? "\\t" : std::string(1, separator);
  return concat("it looks like a table (CSV); convert it with ",
                command_for(path,
                            concat("python3 -c 'import csv, json, sys; [print(json.dumps(row)) for row in "
                                   "csv.DictReader(sys.stdin, delimiter=\"",
                                   delimiter, "\")]'"),
                            renamed(path, ".jsonl")),
                ", and name the text's column by --json-keys");
}

/// For Parquet that is not in a plain file: it is read from its end, which only a plain file allows. (Parquet
/// in a plain file, and in an object whose name says so, has been read and does not come here.)
std::string parquet_advice(const std::string& path) {
  std::error_code error;
  const auto kind =
      path == "-" ? std::filesystem::file_type::fifo : std::filesystem::status(path, error).type();
  const bool file = kind == std::filesystem::file_type::regular;
  // An object of --input-command, which may name a file: `cat {}`.
  if (kind == std::filesystem::file_type::not_found || (file && !is_compressed(path)))
    return "it is Parquet; give the object a name that ends with .parquet, and let the command write it "
           "uncompressed";
  return concat("it is Parquet in a ", file ? "compressed file" : "pipe",
                "; write it to a file of its own, uncompressed, and name that");
}

/// Whether the text begins as no JSON line or array does, and has no control characters.
bool is_plain_text(std::string_view text) {
  if (text.empty() || text.front() == '{') return false;
  if (text.front() == '[') {  // a link or a heading such as "[Verse 1]", not an array
    const size_t inside = text.find_first_not_of(kSpaces, 1);
    if (inside == std::string_view::npos || is_between(text[inside], '0', '9') ||
        std::string_view("{[]\"-").find(text[inside]) != std::string_view::npos)
      return false;
  }
  return std::none_of(text.begin(), text.end(), [](char c) {
    return is_between(c, 0, 0x1F) && c != '\f' && kSpaces.find(c) == std::string_view::npos;
  });
}

}  // namespace

BadRecord bad_record(std::string path, const LineBatch& batch, size_t line) {
  const bool at_start = batch.place(0, 0).line == 1;
  return {.path = std::move(path),
          .record = batch.raw_line(line),
          .head = at_start ? batch.all() : std::string_view()};
}

std::string other_form(const BadRecord& bad) {
  constexpr size_t kLooked = 4096;
  const std::string_view head = bad.head.substr(0, kLooked);
  if (head.empty()) return {};
  if (head.starts_with("PAR1")) return parquet_advice(bad.path);
  if (const std::string_view name = utf16_name(head); !name.empty())
    return "it looks like UTF-16; " + converted_by_iconv(bad.path, std::string(name));
  if (bad.plain_text || (bad.fault != DocumentFault::kSyntax && bad.fault != DocumentFault::kTrailing))
    return {};
  const std::string_view text = without_blank_start(head);
  if (is_indented(text))
    return "it looks like indented JSON; make each object one line with " +
           command_for(bad.path, "jq -c .", renamed(bad.path, ".lines.jsonl"));
  if (!is_plain_text(text)) return {};
  if (const char separator = separator_of(text)) return table_advice(bad.path, separator);
  return "it looks like plain text; read it with --text file (a file is a document) or --text paragraph "
         "(cut at blank lines)";
}

std::string other_encoding(const BadRecord& bad) {
  if (bad.fault != DocumentFault::kInvalidUtf8 || bad.byte >= bad.record.size()) return {};
  const auto is_ascii = [](char c) { return is_between(c, 0, 0x7F); };
  const std::string_view before = bad.record.substr(0, bad.byte), after = bad.record.substr(bad.byte + 1);
  if (!std::all_of(before.begin(), before.end(), is_ascii)) return {};  // UTF-8, but for this byte
  if (!after.empty() && !is_ascii(after.front())) return {};            // a character of several bytes
  const bool windows =
      std::any_of(bad.record.begin(), bad.record.end(), [](char c) { return is_between(c, 0x80, 0x9F); });
  return concat("it looks like ", windows ? "Windows-1252" : "Latin-1", "; ",
                converted_by_iconv(bad.path, windows ? "cp1252" : "latin1"));
}

std::string advice_on(const BadRecord& bad) {
  std::string form = other_form(bad);
  return form.empty() ? other_encoding(bad) : form;
}

std::optional<DocumentProblem> check_text(std::string_view text) {
  if (const size_t good = valid_utf8_prefix(text); good < text.size())
    return DocumentProblem{DocumentFault::kInvalidUtf8, good, "found " + quote(text.substr(good, 1))};
  if (!utf16_name(text).empty()) return DocumentProblem{DocumentFault::kInvalidUtf8, 0, "found UTF-16"};
  return std::nullopt;
}

}  // namespace megalith
