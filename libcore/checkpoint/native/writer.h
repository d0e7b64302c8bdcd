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

/// One checkpoint, in any format, that is written step by step. The ranks exchange no messages within a step:
/// JointSave makes all ranks take the same step. The checkpoint is not visible before the last step. All
/// steps throw kIo if the disk fails.
class CheckpointJob {
 public:
  virtual ~CheckpointJob() = default;
  /// Called on the first rank, before any other step: creates the folder for the files.
  virtual void begin() = 0;
  /// Called on each rank, from any thread: writes the rank's share. On return, the share is on the disk.
  /// `check` is called from time to time and throws if the save is given up.
  using Check = std::function<void()>;
  virtual void write(int rank, const Check& check) = 0;
  /// Called on the first rank, once all ranks have written: makes this checkpoint the latest one.
  virtual void publish(int ranks) = 0;
  /// Called on the first rank after a failure, once no rank writes any more: removes the files.
  virtual void discard() noexcept = 0;
};

/// Cleans up after a killed process in a folder of checkpoints: removes the process's temporary files; if
/// there is no tracker and exactly one checkpoint, writes the tracker. The caller must hold the folder's
/// lock. Does nothing if the folder does not exist. kIo.
void end_killed_save(const std::string& root);

/// Writes one checkpoint in our own format. Nothing is visible until every byte is on the disk: the folder
/// appears by rename, then the tracker names it. Whenever a process dies, the tracker names a complete
/// checkpoint.
///
///   CheckpointWriter writer(root, iteration);
///   put_params(writer, params, split);     // checkpoint/native/params_io.h
///   writer.put(optimizer_box, moments);
///   writer.put_json(kArgsFile, args);      // the same on every rank
///   writer.commit();                       // by several ranks: JointSave
class CheckpointWriter final : public CheckpointJob {
 public:
  /// Does not write anything yet. `stream` must belong to the device that holds the views that will be put.
  /// It is empty if they are in host memory.
  CheckpointWriter(std::string root, int64_t iteration, std::optional<Stream> stream = {});

  /// Registers a block. The view must not change until write() or take_copy() has read it. Each element of a
  /// tensor must be put by exactly one rank; a rank may put several blocks of a tensor.
  void put(const Box& box, ConstView value);
  /// Registers a small file, which rank 0 writes. `name` may have one folder: "tokenizer/vocab.json".
  void put_text(const std::string& name, std::string contents);
  void put_json(const std::string& name, const Json& value);

  /// The number of bytes of all blocks.
  size_t bytes() const;
  /// Lets `copy` copy each block to `memory`, which is host memory of at least bytes() bytes. The blocks are
  /// written from there. Once `copy` has read them, training may change the originals.
  using CopyOut = std::function<void(void* to, ConstView from)>;
  void take_copy(std::span<std::byte> memory, const CopyOut& copy);

  void begin() override;
  /// kInternal if a block is put twice or is not within its tensor.
  void write(int rank, const Check& check) override;
  /// kInternal if the blocks of all ranks do not cover a tensor exactly.
  void publish(int ranks) override { publish(ranks, {}); }
  void discard() noexcept override;

  /// Takes all steps in a single process. If one of them fails, the folder is left as it was before.
  void commit();
  /// As commit(), for tensors that were not put: `write` writes them to data_file(0) in the folder and
  /// returns their index entries. `look` is called with the complete folder before it gets its final name. By
  /// throwing, it keeps a faulty checkpoint from ever appearing under that name. If `write` or `look` throws,
  /// everything is undone.
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
  std::string folder() const;  // the temporary folder, which is later renamed
  std::vector<IndexedTensor> write_blocks(int rank, const Check& check) const;
  void commit_with(const WriteTensors& write, const Look& look);
  void publish(int ranks, const Look& look);

  std::string root_;
  int64_t iteration_;
  std::optional<Stream> stream_;  // empty if the blocks are in host memory
  std::vector<Block> blocks_;
  std::vector<SmallFile> small_files_;
  std::vector<IndexedTensor> own_;  // this rank's blocks, after they were written
};

}  // namespace megalith
