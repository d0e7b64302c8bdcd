// The data of a run that trains on text folders (--train-data-path), read as the PyTorch DDP tutorial reads
// them.
#include <limits>
#include <optional>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/text.h"
#include "libcore/dialects/ddp_tutorial/text_windows.h"
#include "libcore/train/data/run_texts.h"

namespace megalith {
namespace {

TextWindows open_windows(const std::string& path, const PretrainConfig& config, const Tokenizer& tokenizer,
                         bool shuffled) {
  TextWindows windows(read_texts(path, tokenizer),
                      {.seq_length = config.model.seq_length,
                       .stride = config.data.stride.value_or(config.model.seq_length),
                       .batch = config.train.global_batch,
                       .seed = static_cast<uint32_t>(config.train.seed),
                       .shuffled = shuffled});
  log("    ", path, ": ", format_count(windows.tokens()), " tokens, ", format_count(windows.windows()),
      " samples of ", config.model.seq_length);
  return windows;
}

class TextData final : public RunTexts {
 public:
  /// Throws kUsage when an epoch has no full batch, and whatever read_texts() throws.
  TextData(PretrainConfig& config, const Tokenizer& tokenizer) {
    if (!config.data.train_path.empty())
      train_.emplace(open_windows(config.data.train_path.front(), config, tokenizer, true));
    if (!config.data.valid_path.empty()) {
      valid_.emplace(open_windows(config.data.valid_path.front(), config, tokenizer, false));
      if (valid_->epoch() == 0)
        fail(ErrorKind::kUsage, config.data.valid_path.front(), ": ", valid_->windows(),
             " samples are fewer than --global-batch-size ", config.train.global_batch,
             "; give more text, a smaller --stride, or leave --valid-data-path out");
    }
    if (train_ && train_->epoch() == 0)
      fail(ErrorKind::kUsage, config.data.train_path.front(), ": ", train_->windows(),
           " samples are fewer than --global-batch-size ", config.train.global_batch,
           "; give more text, or a smaller --stride or --seq-length");
    if (config.train.epochs) config.train.set_epoch_steps(train_->epoch() / config.train.global_batch);
  }

  DataSets sets() const override {
    const auto set_of = [](const TextWindows& windows, int64_t size) {
      return DataSet{.read = [&windows](int64_t index, const SampleView& out) { windows.get(index, out); },
                     .size = size,
                     .epoch = windows.epoch()};
    };
    DataSets sets;
    for (const auto* windows : {&train_, &valid_})
      if (*windows) sets.held += (*windows)->bytes();
    if (train_) sets.train = set_of(*train_, std::numeric_limits<int64_t>::max());
    if (valid_) {
      sets.valid = set_of(*valid_, valid_->epoch());
      sets.valid.from_the_beginning = true;
    }
    return sets;
  }

  std::string hash() const override {
    std::string out;
    for (const auto* windows : {&train_, &valid_})
      if (*windows) out += (*windows)->hash();
    return out;
  }

 private:
  std::optional<TextWindows> train_;  // nothing: the run only evaluates
  std::optional<TextWindows> valid_;
};

[[maybe_unused]] const bool kAdded =
    add_text_opener([](PretrainConfig& config, const Tokenizer& tokenizer) -> std::unique_ptr<RunTexts> {
      return std::make_unique<TextData>(config, tokenizer);
    });

}  // namespace
}  // namespace megalith
