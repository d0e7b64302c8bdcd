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
#include "libcore/parallel/together.h"
#include "libcore/train/saves/checkpoint_store.h"

namespace megalith {
namespace {

constexpr size_t kPage = 4096;

/// Removes old checkpoints. A failure causes only a warning: the new checkpoint is complete all the same.
void tidy(const SaverOptions& options, int64_t newest) {
  try {
    if (options.keep_last) remove_old_checkpoints(options.root, newest, *options.keep_last, options.used);
    if (options.retain_interval)
      remove_previous_checkpoint(options.root, newest, *options.retain_interval, options.used);
  } catch (const std::exception& error) {
    warn("old checkpoints were not removed: ", error.what());
  }
}

/// Writes a checkpoint, then removes older ones.
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
  if (first) make_directories(folder);  // fails now rather than at the first save
  if (ranks.size() == 1) return;
  // The name is that of an unfinished checkpoint: if a killed process leaves this folder, the next save
  // removes it.
  const std::string path = concat(folder, "/.iter_seen-by-all-", rank0_value(ranks, ::getpid()), ".tmp");
  if (first) make_directories(path);
  ranks.exchange({});
  const std::vector<bool> seen = exchange_values(ranks, file_exists(path));
  std::error_code ignored;
  if (first) std::filesystem::remove(path, ignored);
  for (size_t rank = 0; rank < seen.size(); ++rank)
    if (!seen[rank])
      fail(ErrorKind::kUsage, "--save ", folder, ": rank ", rank,
           " does not see the files that rank 0 writes there; all ranks write their parts of a checkpoint to "
           "one "
           "folder: give one on a file system that all machines share");
}

Saver::Saver(Trainer& trainer, SaverOptions options)
    : trainer_(trainer),
      options_(std::move(options)),
      copy_(trainer.memory().save_copy),
      late_(dynamic_cast<LateCopies*>(&trainer.stream().backend())),
      number_(options_.first_number),
      joint_(trainer.groups().world, options_.peer_timeout) {
  // Also on a rank that saves nothing: all ranks begin to write at the same step.
  if (in_background() && late_) copying_ = trainer.stream().backend().make_queue_stream();
  if (copy_.as<char>().empty()) return;
  // The first touch of memory may take as long as the copy, so it is not done while training waits.
  touching_ = std::make_unique<Beside>("the first touch of a save's copy", [this, memory = copy_.as<char>()] {
    for (size_t at = 0; at < memory.size(); at += kPage) static_cast<volatile char&>(memory[at]) = 0;
    if (late_) locked_ = late_->lock_pages(memory.data(), memory.size());
  });
}

Saver::~Saver() {
  try {
    if (trainer_.groups().world.size() == 1) begin_writing();
  } catch (const std::exception& error) {
    warn("the checkpoint of iteration ", begun_, " is not complete: ", error.what());
  }
  if (copying_) copying_->finish(false);  // it uses the copy's memory
}

void Saver::start(const TrainState& state, const CheckpointExtras& extras) {
  finish();
  begun_ = state.iteration;
  const SaveRequest request{options_.root, state, trainer_, extras, number_++};
  const SavePlan plan = options_.store.save(request);
  report_ = {begun_, plan.path, plan.number};
  auto writer = checkpoint_of(plan.root, state, trainer_, extras);
  plan.make ? save_through_ours(std::move(writer), plan) : save_ours(std::move(writer));
}

// All ranks wait until the other format's checkpoint is complete, however long that takes.
void Saver::save_through_ours(std::unique_ptr<CheckpointWriter> writer, const SavePlan& plan) {
  Communicator& world = trainer_.groups().world;
  joint_.save(std::move(writer));
  do_together(world, options_.peer_timeout, [&](const auto&) {
    if (world.rank() != 0) return;
    plan.make(concat(plan.root, "/", iteration_folder(begun_)));
    std::error_code ignored;
    std::filesystem::remove_all(plan.root, ignored);
  });
  if (options_.removes() && world.rank() == 0) tidy(options_, begun_);
  note_complete();
}

void Saver::save_ours(std::unique_ptr<CheckpointWriter> writer) {
  if (in_background()) take_copy(*writer);
  std::unique_ptr<CheckpointJob> job = std::move(writer);
  if (options_.removes()) job = std::make_unique<SaveAndTidy>(std::move(job), begun_, options_);
  if (copying_) {
    copied_later_ = std::move(job);
    return;
  }
  if (in_background()) return joint_.start(std::move(job));
  joint_.save(std::move(job));
  note_complete();
}

// After a step there is nothing to wait for, as its update waited for the copy.
void Saver::begin_writing() {
  if (!copied_later_) return;
  std::unique_ptr<CheckpointJob> job = std::move(copied_later_);
  copying_->synchronize();
  joint_.start(std::move(job));
}

void Saver::take_copy(CheckpointWriter& writer) {
  if (touching_) touching_->wait();
  touching_.reset();
  if (writer.bytes() != trainer_.memory().save_copy)
    fail(ErrorKind::kInternal, "memory of rank ", trainer_.groups().world.rank(), ": the plan said ",
         trainer_.memory().save_copy, " bytes of a save's copy, the checkpoint has ", writer.bytes());
  if (copying_) return copy_beside_work(writer);
  const auto began = std::chrono::steady_clock::now();
  Stream& stream = trainer_.stream();
  writer.take_copy(copy_.as<std::byte>(), [&stream](void* to, ConstView from) { stream.to_host(to, from); });
  log("  copied ", format_bytes(static_cast<double>(writer.bytes())), " in ",
      format_duration(seconds_since(began)), "; training continues while they are written");
}

void Saver::copy_beside_work(CheckpointWriter& writer) {
  copying_->wait(trainer_.stream().record());
  writer.take_copy(copy_.as<std::byte>(),
                   [this](void* to, ConstView from) { late_->copy_out(*copying_, to, from); });
  trainer_.keep_state_until(copying_->record());
  log("  copying ", format_bytes(static_cast<double>(writer.bytes())), " beside training, which continues");
}

void Saver::finish() {
  begin_writing();
  if (!joint_.under_way()) return;
  joint_.finish();
  note_complete();
}

void Saver::note_complete() {
  if (options_.complete) options_.complete(report_);
}

}  // namespace megalith
