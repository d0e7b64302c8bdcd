#include "libcore/train/saves/saver.h"

#include <exception>
#include <filesystem>
#include <system_error>
#include <utility>

#include <unistd.h>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/process.h"
#include "libcore/base/text.h"
#include "libcore/checkpoint/native/retention.h"
#include "libcore/io/files/file.h"
#include "libcore/parallel/exchange.h"
#include "libcore/train/saves/pth_checkpoint.h"
#include "libcore/train/saves/torch_checkpoint.h"

namespace megalith {
namespace {

constexpr size_t kPage = 4096;

/// The new checkpoint is there even where an old one cannot be removed.
void tidy(const SaverOptions& options, int64_t newest) {
  try {
    remove_old_checkpoints(options.root, newest, *options.keep_last, options.used);
  } catch (const std::exception& error) {
    warn("old checkpoints were not removed: ", error.what());
  }
}

/// A checkpoint after which older ones go.
class SaveAndTidy final : public CheckpointJob {
 public:
  SaveAndTidy(std::unique_ptr<CheckpointJob> save, int64_t iteration, const SaverOptions& options)
      : save_(std::move(save)), iteration_(iteration), options_(options) {}

  void begin() override { save_->begin(); }
  void write(int rank, const Check& check) override { save_->write(rank, check); }
  void publish(int ranks) override {
    save_->publish(ranks);
    tidy(options_, iteration_);
  }
  void discard() noexcept override { save_->discard(); }

 private:
  std::unique_ptr<CheckpointJob> save_;
  int64_t iteration_;
  const SaverOptions& options_;
};

}  // namespace

void make_shared_folder(Communicator& ranks, const std::string& folder) {
  const bool first = ranks.rank() == 0;
  if (first) make_directories(folder);  // or fail now, not at the first save
  if (ranks.size() == 1) return;
  // The next save removes what a killed process leaves under this name.
  const std::string path = concat(folder, "/.iter_seen-by-all-", rank0_value(ranks, ::getpid()), ".tmp");
  if (first) make_directories(path);
  ranks.exchange({});
  const std::vector<bool> seen = exchange_values(ranks, file_exists(path));
  std::error_code ignored;
  if (first) std::filesystem::remove(path, ignored);
  for (size_t rank = 0; rank < seen.size(); ++rank)
    if (!seen[rank])
      fail(ErrorKind::kUsage, "--save ", folder, ": rank ", rank,
           " does not see there what rank 0 writes; all ranks write their part of a checkpoint to one "
           "folder: give one on a file system that all machines share");
}

Saver::Saver(Trainer& trainer, SaverOptions options)
    : trainer_(trainer),
      options_(std::move(options)),
      copy_(trainer.memory().save_copy),
      joint_(trainer.groups().world, options_.peer_timeout) {
  if (copy_.as<char>().empty()) return;
  // The first touch of memory may cost as much as the copy: not while training waits.
  touching_ = std::make_unique<Beside>([memory = copy_.as<char>()] {
    for (size_t at = 0; at < memory.size(); at += kPage) static_cast<volatile char&>(memory[at]) = 0;
  });
}

void Saver::start(const TrainState& state, const CheckpointExtras& extras) {
  finish();
  begun_ = state.iteration;
  is_ours(options_.format) ? start_ours(state, extras) : save_other(state, extras);
}

void Saver::save_other(const TrainState& state, const CheckpointExtras& extras) {
  const auto write =
      options_.format == CheckpointFormat::kTorch ? save_torch_checkpoint : save_pth_checkpoint;
  const std::string path = write(options_.root, state, trainer_, extras);
  if (options_.keep_last && trainer_.groups().world.rank() == 0) tidy(options_, state.iteration);
  note_complete(path);
}

void Saver::start_ours(const TrainState& state, const CheckpointExtras& extras) {
  auto writer = checkpoint_of(options_.root, state, trainer_, extras);
  if (in_background()) take_copy(*writer);
  std::unique_ptr<CheckpointJob> job = std::move(writer);
  if (options_.keep_last) job = std::make_unique<SaveAndTidy>(std::move(job), state.iteration, options_);
  if (in_background()) return joint_.start(std::move(job));
  joint_.save(std::move(job));
  note_complete();
}

void Saver::take_copy(CheckpointWriter& writer) {
  if (touching_) touching_->wait();
  touching_.reset();
  const auto began = std::chrono::steady_clock::now();
  if (writer.bytes() != trainer_.memory().save_copy)
    fail(ErrorKind::kInternal, "memory of rank ", trainer_.groups().world.rank(), ": the plan said ",
         trainer_.memory().save_copy, " bytes of a save's copy, the checkpoint has ", writer.bytes());
  writer.take_copy(copy_.as<std::byte>(), trainer_.stream());
  log("  copied ", format_bytes(static_cast<double>(writer.bytes())), " in ",
      format_duration(seconds_since(began)), "; training goes on while they are written");
}

void Saver::finish() {
  if (!joint_.under_way()) return;
  joint_.finish();
  note_complete();
}

void Saver::note_complete() {
  note_complete(concat(options_.root, "/", iteration_folder(begun_)));
}

void Saver::note_complete(const std::string& path) {
  if (options_.complete) options_.complete(begun_, path);
}

}  // namespace megalith
