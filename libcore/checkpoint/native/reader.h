#pragma once

#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "libcore/checkpoint/native/checkpoint_format.h"
#include "libcore/checkpoint/native/retention.h"
#include "libcore/checkpoint/tensor_file.h"
#include "libcore/io/files/file.h"

namespace megalith {

/// The folder of the checkpoint that the tracker in `root` names ("root/iter_0000100"). If there is no
/// tracker but exactly one checkpoint of ours in `root`, that checkpoint: a run may have been killed after
/// its first save got its name and before it wrote the tracker. Otherwise nothing, and the run starts afresh.
/// Throws kData for a tracker that holds neither a number nor "release".
std::optional<std::string> latest_checkpoint(const std::string& root);

/// A checkpoint that CheckpointWriter wrote. Opening reads and checks the index and the files' sizes; a
/// tensor's bytes are compared with their checksum when they are first read, so that opening does not read
/// everything. Any block of a tensor can be read, however the tensor was divided into blocks when it was
/// written.
class CheckpointReader final : public TensorFile {
 public:
  /// `path`: a checkpoint folder, or the folder with the tracker. kNoInput, kIo, kData.
  explicit CheckpointReader(const std::string& path);
  ~CheckpointReader() override;

  const std::string& path() const override { return folder_; }  // the folder of this one checkpoint
  const std::vector<StoredTensor>& tensors() const override { return tensors_; }
  void read(const Box& box, View out) const override;
  std::optional<std::string> checksums() const override { return dump_index(index_); }

  const Index& index() const { return index_; }
  int64_t iteration() const { return index_.iteration; }  // kRelease if the checkpoint has only weights

  /// The contents of another file of the checkpoint (args.json, state.json), after they were compared with
  /// their checksum. kData if there is no file of that name.
  std::string text(const std::string& name) const;
  Json json(const std::string& name) const;
  bool has_file(const std::string& name) const;
  /// Checks every byte of the checkpoint now.
  void verify() const;

 private:
  struct DataFile;
  DataFile& data_file(const std::string& name) const;
  void check_block(const IndexedTensor& tensor, const StoredBlock& block) const;

  std::string folder_;
  CheckpointUse use_;  // keeps other processes from removing the checkpoint
  Index index_;
  std::vector<StoredTensor> tensors_;  // parallel to index_.tensors
  // all are opened by the constructor; references to elements stay valid
  mutable std::deque<DataFile> files_;
  mutable std::mutex checking_;  // held while blocks are being checked
};

}  // namespace megalith
