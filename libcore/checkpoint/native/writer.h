#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "libcore/checkpoint/native/checkpoint_format.h"
#include "libcore/checkpoint/slice.h"
#include "libcore/json/json.h"
#include "libcore/tensor/device.h"

namespace megalith {

/// One checkpoint in the making, whatever its format, in steps that need no messages between the ranks:
/// JointSave has all of them take the same step. Nothing is visible before the last one. All throw kIo when
/// the disk fails.
class CheckpointJob {
 public:
  virtual ~CheckpointJob() = default;
  /// The first rank's: makes a place for the files, before any other step.
  virtual void begin() = 0;
  /// A rank's share, which is on the disk on return. Any thread. `check` is called now and then, and throws
  /// to give up.
  using Check = std::function<void()>;
  virtual void write(int rank, const Check& check) = 0;
  /// The first rank's, once all have written, because it makes this checkpoint the latest one.
  virtual void publish(int ranks) = 0;
  /// The first rank's, after a failure, and not while anybody still writes.
  virtual void discard() noexcept = 0;
};

/// Ends what a process that was killed left in a folder of checkpoints: its temporary files go, and an only
/// checkpoint that no tracker names gets its tracker. For who holds the folder's lock; nothing where there is
/// no such folder. kIo.
void end_killed_save(const std::string& root);

/// Writes one checkpoint in our own format. Nothing is visible until every byte is on the disk: the folder
/// appears by rename, then the tracker names it. A process that dies at any moment leaves the tracker naming
/// a complete checkpoint.
///
///   CheckpointWriter writer(root, iteration);
///   put_params(writer, params, split);     // checkpoint/native/params_io.h
///   writer.put(optimizer_box, moments);
///   writer.put_json(kArgsFile, args);      // the same on every rank
///   writer.commit();                       // by several ranks: JointSave
class CheckpointWriter final : public CheckpointJob {
 public:
  /// Writes nothing yet. `stream` must be of the device that has the views that will be put; nothing: they
  /// are in host memory.
  CheckpointWriter(std::string root, int64_t iteration, std::optional<Stream> stream = {});

  /// Notes a block. The view must stay as it is until it is written, or copied by take_copy(). Each element
  /// of a tensor must be put by exactly one rank; a rank may put several blocks of a tensor.
  void put(const Box& box, ConstView value);
  /// Notes a small file, written by rank 0. `name` may have one folder: "tokenizer/vocab.json".
  void put_text(const std::string& name, std::string contents);
  void put_json(const std::string& name, const Json& value);

  /// Bytes of all blocks.
  size_t bytes() const;
  /// Copies the blocks, of this stream's backend, into `memory`, of the host and at least bytes() large, from
  /// which they are written then, so that training may change the originals on return.
  void take_copy(std::span<std::byte> memory, Stream&);

  void begin() override;
  /// kInternal when a block is put twice or does not lie in its tensor.
  void write(int rank, const Check& check) override;
  /// kInternal when the blocks of all ranks do not cover a tensor exactly.
  void publish(int ranks) override { publish(ranks, {}); }
  void discard() noexcept override;

  /// All steps, by one process alone. What was there before is untouched when one fails.
  void commit();
  /// The same of tensors that were not put: `write` writes them into data_file(0) of the folder and says what
  /// they are. `look` is given the complete folder before it gets its name, so that what it finds wrong is
  /// never seen under it. What either throws takes everything back.
  using WriteTensors = std::function<std::vector<IndexedTensor>(const std::string& folder)>;
  using Look = std::function<void(const std::string& folder)>;
  void commit(const WriteTensors& write, const Look& look);

 private:
  struct Block {
    Box box;
    ConstView value;
  };
  struct SmallFile {
    std::string name, contents;
  };
  std::string folder() const;  // until it has its name
  std::vector<IndexedTensor> write_blocks(int rank, const Check& check) const;
  void commit_with(const WriteTensors& write, const Look& look);
  void publish(int ranks, const Look& look);

  std::string root_;
  int64_t iteration_;
  std::optional<Stream> stream_;  // nothing: the blocks are in host memory
  std::vector<Block> blocks_;
  std::vector<SmallFile> small_files_;
  std::vector<IndexedTensor> own_;  // what write() has written
};

}  // namespace megalith
