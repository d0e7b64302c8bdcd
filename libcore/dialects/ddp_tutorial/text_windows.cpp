#include "libcore/dialects/ddp_tutorial/text_windows.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <mutex>
#include <numeric>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/random.h"
#include "libcore/base/shell_word.h"
#include "libcore/base/text.h"
#include "libcore/hash/xxh64.h"
#include "libcore/io/files/file.h"
#include "libcore/io/streams/stop_signal.h"
#include "libcore/json/foreign_input.h"
#include "libcore/json/json.h"

namespace megalith {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> files_of(const std::string& path) {
  std::error_code error;
  if (fs::is_regular_file(path, error)) return {path};
  std::vector<std::string> files;
  fs::recursive_directory_iterator at(path, error);
  if (error)
    fail(ErrorKind::kNoInput, path, ": ", error.message(), "; wanted a text file or a folder of them");
  for (; !error && at != fs::recursive_directory_iterator(); at.increment(error)) {
    const bool hidden = at->path().filename().string().starts_with('.');
    if (hidden && at->is_directory()) at.disable_recursion_pending();
    if (!hidden && at->is_regular_file()) files.push_back(at->path().string());
  }
  if (error) fail(ErrorKind::kIo, path, ": cannot read all of the folder: ", error.message());
  if (files.empty()) fail(ErrorKind::kNoInput, path, ": holds no file; wanted texts");
  std::sort(files.begin(), files.end());
  return files;
}

/// Whether the first line is a JSON object, as in a corpus of loose JSON.
bool is_loose_json(std::string_view text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  if (!line.starts_with('{')) return false;
  try {
    return Json::parse(line, "a text's first line").is_object();
  } catch (const Error&) {
    return false;
  }
}

void warn_of_json(const std::string& path, const std::vector<std::string>& files) {
  if (files.empty()) return;
  const size_t more = files.size() - 1;
  warn(files.front(),
       more > 0 ? concat(" and ", more, " more ", more == 1 ? "file" : "files") : std::string(),
       ": JSON is learned as it stands, keys and all; for its texts alone, make a dataset with "
       "megalith-preprocess --input ",
       shell_word(path));
}

}  // namespace

std::vector<int32_t> read_texts(const std::string& path, const Tokenizer& tokenizer) {
  std::vector<int32_t> ids;
  std::vector<std::string> json;
  for (const std::string& file : files_of(path)) {
    const std::string text = read_file(file);
    if (const std::optional<DocumentProblem> problem = check_text(text)) {
      const std::string advice = advice_on({.path = file,
                                            .fault = problem->fault,
                                            .byte = problem->byte,
                                            .record = text,
                                            .head = text,
                                            .plain_text = true});
      fail(ErrorKind::kData, file, ": byte ", problem->byte, " is not valid UTF-8; ",
           advice.empty() ? "convert the file, for example with iconv" : advice);
    }
    if (is_loose_json(text)) json.push_back(file);
    if (!ids.empty()) ids.push_back(tokenizer.eod());
    tokenizer.encode_in_parts(text, [&](std::span<const int32_t> piece) {
      stop_if_asked();
      ids.insert(ids.end(), piece.begin(), piece.end());
    });
  }
  warn_of_json(path, json);
  return ids;
}

struct TextWindows::Kept {
  std::mutex mutex;
  struct {
    int64_t epoch = -1;
    Order order = {};
  } orders[2];
};

TextWindows::TextWindows(std::vector<int32_t> ids, const WindowSpec& spec)
    : ids_(std::move(ids)), spec_(spec), kept_(std::make_shared<Kept>()) {
  const int64_t starts = tokens() - spec.seq_length;
  windows_ = starts > 0 ? (starts + spec.stride - 1) / spec.stride : 0;
  if (windows_ > std::numeric_limits<uint32_t>::max())
    fail(ErrorKind::kUsage, "the text has ", format_count(windows_),
         " windows, more than 2^32; give a greater --stride");
  epoch_ = windows_ / spec.batch * spec.batch;
}

size_t TextWindows::bytes() const {
  return ids_.capacity() * sizeof ids_[0] +
         std::size(kept_->orders) * static_cast<size_t>(windows_) * sizeof(uint32_t);
}

std::string TextWindows::hash() const {
  return hex64(xxh64(ids_.data(), ids_.size() * sizeof ids_[0]));
}

TextWindows::Order TextWindows::order_of(int64_t epoch) const {
  const std::lock_guard lock(kept_->mutex);
  auto& kept = kept_->orders[epoch % 2];
  if (kept.epoch != epoch) {
    std::vector<uint32_t> order(static_cast<size_t>(windows_));
    std::iota(order.begin(), order.end(), 0U);
    if (spec_.shuffled)
      NumpyRandomState(spec_.seed + static_cast<uint32_t>(epoch)).shuffle(std::span<uint32_t>(order));
    kept = {epoch, std::make_shared<const std::vector<uint32_t>>(std::move(order))};
  }
  return kept.order;
}

void TextWindows::get(int64_t index, const SampleView& out) const {
  if (epoch_ == 0) fail(ErrorKind::kInternal, "a text without a whole batch of windows was read");
  const int64_t window = (*order_of(index / epoch_))[static_cast<size_t>(index % epoch_)];
  const auto begin = ids_.begin() + window * spec_.stride;
  std::copy_n(begin, spec_.seq_length, out.tokens.begin());
  std::copy_n(begin + 1, spec_.seq_length, out.labels.begin());
  std::fill_n(out.loss_mask.begin(), spec_.seq_length, 1.0f);
}

}  // namespace megalith
