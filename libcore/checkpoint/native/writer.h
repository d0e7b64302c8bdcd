#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "libcore/checkpoint/native/checkpoint_format.h"
#include "libcore/checkpoint/slice.h"
#include "libcore/json/json.h"
#include "libcore/parallel/communicator.h"
#include "libcore/tensor/device.h"

namespace megalith {

/// Writes one checkpoint, all ranks together. Nothing is visible until every byte is on the disk: the folder
/// appears by rename, then the tracker names it. A process that dies at any moment leaves the tracker naming
/// a complete checkpoint.
///
///   CheckpointWriter writer(root, iteration);
///   put_params(writer, params, split);     // checkpoint/native/params_io.h
///   writer.put(optimizer_box, moments);
///   writer.put_json(kArgsFile, args);      // the same on every rank
///   writer.commit(*groups.checkpoint, stream);
class CheckpointWriter {
 public:
  CheckpointWriter(std::string root, int64_t iteration);  // writes nothing yet

  /// Notes a block. The view (device or host memory of commit()'s stream) must stay as it is until commit()
  /// returns. Each element of a tensor must be put by exactly one rank; a rank may put several blocks of a
  /// tensor.
  void put(const Box& box, ConstView value);
  /// Notes a small file, written by rank 0. `name` may have one folder: "tokenizer/vocab.json".
  void put_text(const std::string& name, std::string contents);
  void put_json(const std::string& name, const Json& value);

  /// Writes, syncs, renames. Every rank calls it; on return the checkpoint is the latest one on every rank.
  /// kIo when the disk fails (on one rank: on all); what was there before is then untouched. kInternal when
  /// the blocks do not cover a tensor exactly.
  void commit(Communicator& comm, Stream& stream);
  /// By one process alone, from host memory.
  void commit();
  /// By one process alone, of tensors that were not put: `write` writes them into data_file(0) of the folder
  /// and says what they are. `look` is given the complete folder before it gets its name. What either throws
  /// takes everything back.
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
  struct Ranks {
    Communicator* comm = nullptr;  // null: one process alone
    Stream* stream = nullptr;
  };
  void commit_with(const Ranks& ranks, const WriteTensors& write, const Look& look = {});
  std::vector<IndexedTensor> write_blocks(const std::string& folder, int rank, Stream* stream) const;
  void publish(const std::string& folder, int ranks, Index own, const Look& look) const;

  std::string root_;
  int64_t iteration_;
  std::vector<Block> blocks_;
  std::vector<SmallFile> small_files_;
};

}  // namespace megalith
