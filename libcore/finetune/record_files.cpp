#include "libcore/finetune/record_files.h"

#include <filesystem>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/finetune/chat_segments.h"
#include "libcore/io/file.h"
#include "libcore/text/formats/tokenizer_files.h"

namespace megalith {
namespace {

/// The folder's file of that name, with .json or .jsonl; empty: there is none.
std::string file_in(const std::string& folder, const char* name) {
  for (const char* end : {".json", ".jsonl"})
    if (const std::string path = folder + "/" + name + end; file_exists(path)) return path;
  return {};
}

}  // namespace

DataFiles data_files(const TuningDataOptions& options) {
  DataFiles files{options.data, options.eval_data};
  if (!std::filesystem::is_directory(options.data)) {
    if (!file_exists(options.data))
      fail(ErrorKind::kNoInput, options.data,
           ": no such file or folder; give --data DIR with train.json, or a file of records");
    return files;
  }
  files.train = file_in(options.data, "train");
  if (files.train.empty())
    fail(ErrorKind::kNoInput, options.data, ": holds neither train.json nor train.jsonl");
  if (files.dev.empty()) files.dev = file_in(options.data, "dev");
  return files;
}

LengthLimits length_limits(const TuningDataOptions& options, int64_t positions) {
  if (options.max_length > positions + 1)
    fail(ErrorKind::kUsage, "--max-length ", options.max_length, ": the model has ", positions, " positions");
  return {.source = options.source_length,
          .target = options.target_length,
          .whole = options.max_length > 0 ? options.max_length : positions};
}

TokenizerFiles tokenizer_of(TokenizerConfig& config, const ModelSource& model) {
  if (!config.type.empty()) return tokenizer_files(config, 0);
  const TokenizerFiles& own = model.tokenizer();
  if (own.type.empty())
    fail(ErrorKind::kUsage, model.path(),
         ": the model came without a tokenizer; give --tokenizer-model, or --vocab-file and --merge-file");
  take_tokenizer(own, config);
  return own;
}

RecordFiles::RecordFiles(const TuningDataOptions& options, const ModelSource& model,
                         const TokenizerFiles& files)
    : plain_(files), files_(generation_files(model, plain_.tokenizer())) {
  if (!files_.end.empty()) plain_ = PlainTokenizer(files, files_.end.front());
  if (plain_.tokenizer().vocab_size() > model.config().vocab_size)
    fail(ErrorKind::kUsage, "the tokenizer has ", plain_.tokenizer().vocab_size(), " ids, the model ",
         model.config().vocab_size, ": it belongs to another model");
  if (!options.chat_template.empty()) {
    files_.chat_template = read_file(options.chat_template);
    files_.template_file = options.chat_template;
  }
  records_.style = options.style;
  if (!files_.chat_template.empty()) chat_.emplace(files_.chat_template, files_.template_file);
  if (chat_)
    records_.render = [this](const Json::Array& messages, const std::string& where) {
      return chat_segments(*chat_, {files_.bos_token, files_.eos_token}, messages, where);
    };
}

std::unique_ptr<Examples> RecordFiles::examples(const std::string& path, const LengthLimits& limits,
                                                bool pairs) const {
  auto examples = std::make_unique<Examples>();
  if (pairs)
    read_pairs(path, records_, [&](RecordPair&& pair) { examples->add(pair, plain_, limits); });
  else
    read_records(path, records_, [&](Record&& record) { examples->add(record, plain_, limits); });
  log(report_line(path, examples->report()));
  if (examples->size() == 0) fail(ErrorKind::kData, path, ": holds no record with an answer");
  return examples;
}

std::vector<Question> RecordFiles::questions(const std::string& path, const LengthLimits& limits,
                                             bool pairs) const {
  std::vector<Question> out;
  const auto take = [&](const Record& record) {
    out.push_back(question_of(record, plain_, limits));
    if (out.back().ids.empty()) out.back().ids.push_back(plain_.tokenizer().eod());
  };
  if (pairs)
    read_pairs(path, records_, [&](RecordPair&& pair) { take(pair.chosen); });
  else
    read_records(path, records_, take);
  return out;
}

}  // namespace megalith
