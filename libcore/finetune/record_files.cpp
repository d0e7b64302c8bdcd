#include "libcore/finetune/record_files.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <random>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/text.h"
#include "libcore/config/tokenizer_config.h"
#include "libcore/finetune/chat_segments.h"
#include "libcore/io/files/file.h"
#include "libcore/text/formats/make_tokenizer.h"

namespace megalith {
namespace {

/// The path of the folder's file NAME.json or NAME.jsonl; empty if there is none. Throws kNoInput if it is
/// not a regular file: a run that read a FIFO would wait forever for a writer.
std::string file_in(const std::string& folder, const char* name) {
  for (const char* end : {".json", ".jsonl"}) {
    std::string path = concat(folder, "/", name, end);
    if (!file_exists(path)) continue;
    if (!std::filesystem::is_regular_file(path))
      fail(ErrorKind::kNoInput, path, ": is not a regular file; name the file in --data or --eval-data");
    return path;
  }
  return {};
}

}  // namespace

DataFiles data_files(const TuningDataOptions& options, bool trains) {
  DataFiles files{{options.data}, {options.eval_data}};
  const bool needs_train = trains || options.val_size > 0;
  if (std::filesystem::is_directory(options.data)) {
    files.train.path = file_in(options.data, "train");
    if (files.train.path.empty() && needs_train)
      fail(ErrorKind::kNoInput, options.data, ": holds neither train.json nor train.jsonl");
    if (files.dev.path.empty()) files.dev.path = file_in(options.data, "dev");
  } else if (!file_exists(options.data) && (needs_train || options.eval_data.empty())) {
    fail(
        ErrorKind::kNoInput, options.data, ": no such file or folder; give --data DIR with ",
        needs_train ? "train.json, or a file of records" : "dev.json, or --eval-data with a file of records");
  }
  if (options.val_size == 0) return files;
  if (!files.dev.path.empty())
    fail(ErrorKind::kUsage, "--val-size ", options.val_size, " holds out records of ", files.train.path,
         ", but ", files.dev.path, " is there to evaluate on; leave out one of them");
  files.dev = {files.train.path, RecordSource::kHeldOut};
  files.train.part = RecordSource::kTrained;
  return files;
}

// Uses Knuth's algorithm S (selection sampling).
std::vector<bool> held_out(int64_t records, double size, int64_t seed, const std::string& path) {
  const double wanted = size < 1 ? size * static_cast<double>(records) : size;
  int64_t needed = std::max<int64_t>(1, std::llround(wanted));
  if (needed >= records)
    fail(ErrorKind::kUsage, "--val-size ", size, " holds out ", needed, " of the ", records, " records of ",
         path, "; give less");
  std::mt19937_64 numbers(static_cast<uint64_t>(seed));
  std::vector<bool> out(static_cast<size_t>(records));
  for (int64_t i = 0; i < records; ++i) {
    const bool held = static_cast<int64_t>(numbers() % static_cast<uint64_t>(records - i)) < needed;
    out[static_cast<size_t>(i)] = held;
    needed -= held ? 1 : 0;
  }
  return out;
}

LengthLimits length_limits(const TuningDataOptions& options, int64_t positions) {
  if (options.max_length > positions + 1)
    fail(ErrorKind::kUsage, "--max-length ", options.max_length, ": the model has ", positions, " positions");
  return {.source = options.source_length,
          .target = options.target_length,
          .whole = options.max_length > 0 ? options.max_length : positions};
}

TokenizerFiles tokenizer_of(TokenizerConfig& config, const ModelSource& model) {
  // A NullTokenizer's number of ids: the vocabulary without the end of a document.
  if (!config.type.empty())
    return tokenizer_files(config, config.type == "NullTokenizer" ? model.config().vocab_size - 1 : 0);
  if (model.tokenizer().type.empty())
    fail(ErrorKind::kUsage, model.path(),
         ": the model came without a tokenizer; give --tokenizer-model, or --vocab-file and --merge-file");
  return take_tokenizer(model.tokenizer(), config);
}

namespace {

GenerationFiles files_of(const ModelSource& model, const TokenizerFiles& files, const Tokenizer& tokenizer) {
  GenerationFiles out = generation_files(model, tokenizer);
  if (!files.eod.empty()) out.end = {tokenizer.eod()};
  return out;
}

}  // namespace

RecordFiles::RecordFiles(const TuningDataOptions& options, const ModelSource& model,
                         const TokenizerFiles& files, int64_t seed)
    : RecordFiles(options, model, files, make_tokenizer(files), seed) {}

RecordFiles::RecordFiles(const TuningDataOptions& options, const ModelSource& model,
                         const TokenizerFiles& files, std::unique_ptr<Tokenizer> tokenizer, int64_t seed)
    : options_(options),
      seed_(seed),
      files_(files_of(model, files, *tokenizer)),
      plain_(std::move(tokenizer), files_.end.front()) {
  if (plain_.tokenizer().vocab_size() > model.config().vocab_size)
    fail(ErrorKind::kUsage, "the tokenizer has ", plain_.tokenizer().vocab_size(), " ids, the model ",
         model.config().vocab_size, ": it belongs to another model");
  choose_template();
  records_.style = options.style;
  records_.max_records = options.max_records;
  if (!files_.chat_template.empty()) chat_.emplace(files_.chat_template, files_.template_file);
  if (chat_)
    records_.render = [this](const Conversation& conversation, const std::string& where) {
      return chat_segments(*chat_, {files_.bos_token, files_.eos_token}, conversation, where);
    };
}

void RecordFiles::choose_template() {
  if (!options_.chat_template.empty()) {
    files_.chat_template = read_file(options_.chat_template);
    files_.template_file = options_.chat_template;
    return;
  }
  if (!options_.named_template) return;
  const NamedTemplate& named = *options_.named_template;
  std::vector<int32_t> ids;
  for (const std::string& mark : named.marks) {
    ids = plain_.encode(mark);
    if (ids.size() != 1 || tokenizer().decode(ids) != mark) {
      warn(named.name, ": the model's tokenizer has no token ", quote(mark),
           "; the model's own chat template is used");
      return;
    }
  }
  files_.chat_template = named.jinja;
  files_.template_file = named.name;
  // A base model does not name the end of a message among the tokens that end a text.
  if (std::find(files_.end.begin(), files_.end.end(), ids.at(0)) == files_.end.end())
    files_.end.push_back(ids[0]);
}

template <class R, class Read, class Take>
std::set<std::string> RecordFiles::each(const RecordSource& source, Read&& read, Take&& take) const {
  std::set<std::string> unread;
  RecordOptions options = records_;
  options.unread = [&](const std::string& member) { unread.insert(member); };
  std::vector<R> kept;  // all records, because held_out() needs their number
  read(source.path, options, [&](R&& record) {
    if (source.part == RecordSource::kAll)
      take(record);
    else
      kept.push_back(std::move(record));
  });
  if (source.part == RecordSource::kAll) return unread;
  const std::vector<bool> held =
      held_out(static_cast<int64_t>(kept.size()), options_.val_size, seed_, source.path);
  for (size_t i = 0; i < kept.size(); ++i)
    if (held[i] == (source.part == RecordSource::kHeldOut)) take(kept[i]);
  return unread;
}

template <class Take>
std::set<std::string> RecordFiles::each_record(const RecordSource& source, Take&& take) const {
  return each<Record>(source, read_records, take);
}
template <class Take>
std::set<std::string> RecordFiles::each_pair(const RecordSource& source, Take&& take) const {
  return each<RecordPair>(source, read_pairs, take);
}

namespace {

/// Names the members that are not read, so that nothing of a file is dropped in silence.
void log_unread(const std::string& path, const std::set<std::string>& members) {
  constexpr size_t kNamed = 20;  // a table may have hundreds of columns
  if (members.empty()) return;
  std::vector<std::string> names;
  for (const std::string& member : members)
    if (names.size() < kNamed) names.push_back(quote(member));
  const std::string more = members.size() > kNamed ? concat(" and ", members.size() - kNamed, " more") : "";
  log(path, ": members of its records that are not read: ", join(names, ", "), more);
}

}  // namespace

std::unique_ptr<Examples> RecordFiles::examples(const RecordSource& source, const LengthLimits& limits,
                                                bool pairs) const {
  auto examples = std::make_unique<Examples>();
  const auto add = [&](const auto& record) { examples->add(record, plain_, limits); };
  const std::set<std::string> unread = pairs ? each_pair(source, add) : each_record(source, add);
  log(report_line(source.part == RecordSource::kHeldOut ? source.path + ", held out" : source.path,
                  examples->report()));
  if (source.part != RecordSource::kHeldOut) log_unread(source.path, unread);  // once for both parts
  if (examples->size() == 0) fail(ErrorKind::kData, source.path, ": holds no record with an answer");
  return examples;
}

std::vector<Question> RecordFiles::questions(const RecordSource& source, const LengthLimits& limits,
                                             bool pairs) const {
  std::vector<Question> out;
  const auto take = [&](const Record& record) {
    out.push_back(question_of(record, plain_, limits));
    if (out.back().ids.empty()) out.back().ids.push_back(plain_.tokenizer().eod());
  };
  if (pairs)
    each_pair(source, [&](const RecordPair& pair) { take(pair.chosen); });
  else
    each_record(source, take);
  return out;
}

}  // namespace megalith
