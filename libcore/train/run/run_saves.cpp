#include "libcore/train/run/run_saves.h"

#include <filesystem>
#include <utility>

#include "libcore/base/log.h"
#include "libcore/base/terminal.h"
#include "libcore/base/text.h"
#include "libcore/parallel/exchange.h"
#include "libcore/train/log/metrics.h"
#include "libcore/train/products/product_choices.h"
#include "libcore/train/run/same_data.h"
#include "libcore/train/saves/checkpoint_store.h"

namespace megalith {

RunSaves::RunSaves(const RankInput& in, const PretrainConfig& config) : in_(in), config_(config) {}

void RunSaves::require_own_folder(const StartPoint* start) const {
  std::string refusal;
  if (in_.world.rank() == 0)
    refusal = refusal_to_replace(config_.checkpoint, start, in_.tuning ? Trained::kTuned : Trained::kModel);
  refusal = rank0_value(in_.world, refusal);
  if (!refusal.empty()) fail(ErrorKind::kUsage, refusal);
}

void RunSaves::take_folder(const StartPoint* start) {
  if (!wanted()) return;
  const CheckpointConfig& config = config_.checkpoint;
  make_shared_folder(in_.world, config.save);
  if (in_.world.rank() == 0) lock_.emplace(config.save);
  require_own_folder(start);
  replaced_ = replaced_by(config, start);
  if (start && start->state && !config.finetune) next_number_ = start->next_save;
  if (in_.world.rank() > 0) return;
  for (const auto& [format, store] : checkpoint_stores()) store->clear_leftovers(config.save, *lock_);
  store_of(config.format).enter(config);
}

void RunSaves::protect_base(const std::string& path) {
  const CheckpointConfig& config = config_.checkpoint;
  if (config.load == config.save || !std::filesystem::is_directory(path)) return;
  base_ = path;
  base_use_.emplace(base_);
}

void RunSaves::remove_old(int64_t iteration) const {
  const CheckpointConfig& config = config_.checkpoint;
  if (!wanted() || !config.keep_last || in_.world.rank() > 0) return;
  remove_old_checkpoints(config.save, iteration, *config.keep_last,
                         base_.empty() ? std::vector<std::string>() : std::vector{base_});
}

// By now nothing can refuse the run any more.
void RunSaves::make_way() {
  const CheckpointConfig& config = config_.checkpoint;
  if (std::exchange(has_way_, true) || !saver_ || !config.overwrite || in_.world.rank() > 0) return;
  for (const auto& [format, store] : checkpoint_stores())
    store->remove(config.save, [this](int64_t iteration) {
      return iteration > replaced_.after && iteration != replaced_.start;
    });
  if (!in_.tuning) return;
  for (const std::string& path : in_.tuning->results) std::filesystem::remove_all(path);
}

// A checkpoint that the command line itself names stays: the same command, run again, looks for it.
void RunSaves::remove_replaced_start(int64_t saved) {
  const CheckpointConfig& config = config_.checkpoint;
  const int64_t start = std::exchange(replaced_.start, -1);
  if (!config.overwrite || in_.world.rank() > 0 || start < 0 || start == saved || !base_.empty()) return;
  for (const auto& [format, store] : checkpoint_stores())
    store->remove(config.save, [start](int64_t iteration) { return iteration == start; });
}

// A run that begins afresh replaces no checkpoint that is still there when it saves.
int64_t RunSaves::first_number() const {
  const CheckpointConfig& config = config_.checkpoint;
  if (next_number_) return *next_number_;
  if (config.overwrite) return 0;
  int64_t number = 0;
  if (in_.world.rank() == 0) number = store_of(config.format).next_number(config.save);
  return rank0_value(in_.world, number);
}

void RunSaves::begin(Trainer& trainer, RunObserver& observer) {
  if (!wanted()) return;
  const CheckpointConfig& config = config_.checkpoint;
  SaverOptions options{.root = config.save,
                       .store = store_of(config.format),
                       .first_number = first_number(),
                       .keep_last = config.keep_last,
                       .retain_interval = config.retain_interval,
                       .peer_timeout = config_.parallel.peer_timeout()};
  if (!base_.empty()) options.used.push_back(base_);
  options.complete = [this, &observer](const SaveReport& report) {
    observer.saved(report);
    saved_ = report.iteration;
    remove_replaced_start(saved_);
    if (saved_ == best_) protect_best(saved_);
  };
  saver_ = std::make_unique<Saver>(trainer, std::move(options));
  if (in_.world.rank() == 0) data_digests_ = data_digests(config_.data);
}

void RunSaves::save(const RunProgress& progress) {
  if (!saver_ || saver_->begun() == progress.iteration()) return;
  make_way();
  log("saving checkpoint at iteration ", padded_iteration(progress.iteration()), " to ",
      printable(config_.checkpoint.save));
  Json args = to_json(config_);
  if (!data_digests_.is_null()) args.set(kDataDigests, data_digests_);
  if (!products_.is_null()) args.set(kProductAlgorithms, products_);
  if (in_.tuning)
    for (const auto& [name, value] : in_.tuning->args) args.set(name, value);
  saver_->start(progress.state(), {.args = std::move(args),
                                   .schedule = progress.schedule(),
                                   .tokenizer_files = tokenizer_files(config_.tokenizer),
                                   .optimizer = config_.checkpoint.save_optim,
                                   .losses = progress.losses()});
}

// Before it releases the previous best checkpoint, waits for the save in progress, which may still be writing
// that checkpoint.
void RunSaves::save_best(const RunProgress& progress) {
  if (!in_.tuning->keep_best) return;
  best_ = progress.iteration();
  finish();
  best_use_.reset();
  if (saved_ == best_)
    protect_best(best_);
  else
    save(progress);
}

void RunSaves::protect_best(int64_t iteration) {
  if (in_.tuning && in_.tuning->keep_best && in_.world.rank() == 0)
    best_use_.emplace(concat(config_.checkpoint.save, "/", iteration_folder(iteration)));
}

}  // namespace megalith
