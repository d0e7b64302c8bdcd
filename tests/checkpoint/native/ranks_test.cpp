// Checkpoints that several ranks write together, with parameters that are sharded over ranks and padded.
#include <csignal>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/checkpoint/native/joint_save.h"
#include "libcore/checkpoint/native/params_io.h"
#include "libcore/checkpoint/native/reader.h"
#include "libcore/checkpoint/native/writer.h"
#include "libcore/io/files/file.h"
#include "libcore/io/streams/stop_signal.h"
#include "libcore/model/param_store.h"
#include "libcore/ops/backend/backend.h"
#include "libcore/parallel/threads/thread_comm.h"
#include "tests/support/files.h"

namespace megalith {
namespace {

using test::TempDir;
namespace fs = std::filesystem;

constexpr std::chrono::seconds kPeerTimeout(30);

// Runs `body(rank, comm, stream)` on one thread per rank. Returns each rank's message if it threw.
std::vector<std::string> run_ranks(int ranks, const std::function<void(int, Communicator&, Stream&)>& body) {
  std::vector<std::string> messages(static_cast<size_t>(ranks));
  run_thread_ranks(ranks, {}, [&](Communicator& comm) {
    const auto backend = make_cpu_backend();
    Stream stream = backend->make_stream();
    try {
      body(comm.rank(), comm, stream);
    } catch (const Error& error) {
      messages[static_cast<size_t>(comm.rank())] = error.what();
    }
  });
  return messages;
}

// One parameter of each kind: sharded along an inner axis, sharded and padded, held whole, and tied.
constexpr int64_t kVocabulary = 11;
struct Model {
  Model(const TensorSplit& split, Stream& stream) {
    Param words;
    words.name = "words";
    words.global = {kVocabulary, 3};
    table.add(cut(words, 0, split, (kVocabulary + split.size - 1) / split.size));
    Param fused;
    fused.name = "fused";
    fused.global = {2, 12, 3};
    table.add(cut(fused, 1, split));
    Param norm;
    norm.name = "norm";
    norm.global = {5};
    table.add(norm);
    Param head = words;
    head.name = "head";
    head.tie = "words";
    table.add(cut(head, 0, split, (kVocabulary + split.size - 1) / split.size));
    store.emplace(table, stream, StoreOptions{.dtype = DType::kF32, .grads = false});
  }
  ParamTable table;
  std::optional<ParamStore> store;
};

// The value that the tests give an element: its index in the global tensor.
float expected(const Param& param, int64_t outer, int64_t middle, int64_t inner) {
  const Shape& g = param.global;
  if (g.rank == 1) return static_cast<float>(outer);
  if (g.rank == 2) return static_cast<float>(outer * g[1] + middle);
  return static_cast<float>((outer * g[1] + middle) * g[2] + inner);
}

// Calls visit(value, expected value) for each element of this rank's part. The expected value of padding is
// 0.
void visit_elements(Param& param, const std::function<void(float&, float)>& visit) {
  float* value = param.value.as<float>();
  Shape at{0, 0, 0};
  const Shape local = param.local;
  for (at[0] = 0; at[0] < local[0]; ++at[0])
    for (at[1] = 0; at[1] < (local.rank > 1 ? local[1] : 1); ++at[1])
      for (at[2] = 0; at[2] < (local.rank > 2 ? local[2] : 1); ++at[2]) {
        Shape global = at;
        if (param.shard_axis != kWhole) global[param.shard_axis] += param.offset;
        const bool padding =
            param.shard_axis != kWhole && global[param.shard_axis] >= param.global[param.shard_axis];
        visit(*value++, padding ? 0 : expected(param, global[0], global[1], global[2]));
      }
}

void save_cut(const std::string& root, int ranks) {
  const auto messages = run_ranks(ranks, [&](int rank, Communicator& comm, Stream& stream) {
    const TensorSplit split{.rank = rank, .size = ranks};
    Model model(split, stream);
    for (Param& param : model.table.all())
      visit_elements(param, [](float& value, float wanted) { value = wanted; });
    auto writer = std::make_unique<CheckpointWriter>(root, 5, stream);
    put_params(*writer, model.table, split);
    writer->put_json(kStateFile, Json::object());
    JointSave(comm, kPeerTimeout).save(std::move(writer));
  });
  for (const std::string& message : messages) EXPECT_EQ(message, "");
}

// A run of any tensor-parallel size must be able to read the checkpoint of a run of any other size, a single
// rank included.
TEST(Ranks, AnyLayoutReadsWhatAnyOtherWrote) {
  for (const int writers : {1, 2, 3, 4, 6}) {
    const TempDir dir;
    save_cut(dir / "save", writers);
    const CheckpointReader reader(dir / "save");
    EXPECT_NO_THROW(reader.verify());
    EXPECT_EQ(reader.tensors().size(), 3u) << "a tied parameter is saved once";
    EXPECT_EQ(reader.at("words").shape(), (Shape{kVocabulary, 3}));
    for (const int readers : {1, 2, 3, 4, 6})
      for (int rank = 0; rank < readers; ++rank) {
        const auto backend = make_cpu_backend();
        Stream stream = backend->make_stream();
        Model model({.rank = rank, .size = readers}, stream);
        for (Param& param : model.table.all()) visit_elements(param, [](float& value, float) { value = -7; });
        load_params(reader, model.table, stream);
        for (Param& param : model.table.all())
          visit_elements(param, [&](float& value, float wanted) {
            EXPECT_EQ(value, wanted) << param.name << " of rank " << rank;
          });
      }
  }
}

/// A checkpoint. A signal reaches the program when its first tensor is read.
class InterruptedFile final : public TensorFile {
 public:
  explicit InterruptedFile(const TensorFile& file) : file_(file) {}
  const std::string& path() const override { return file_.path(); }
  const std::vector<StoredTensor>& tensors() const override { return file_.tensors(); }
  void read(const Box& box, View out) const override {
    if (++reads_ == 1) std::raise(SIGTERM);
    file_.read(box, out);
  }
  int reads() const { return reads_; }

 private:
  const TensorFile& file_;
  mutable int reads_ = 0;
};

TEST(Params, AreNotReadOnAfterASignal) {
  const TempDir dir;
  save_cut(dir / "save", 1);
  const CheckpointReader reader(dir / "save");
  const InterruptedFile file(reader);
  const auto backend = make_cpu_backend();
  Stream stream = backend->make_stream();
  Model model({.rank = 0, .size = 1}, stream);
  const StopSignal stop;
  EXPECT_THROW(load_params(file, model.table, stream), Stopped);
  EXPECT_EQ(file.reads(), 1);
}

// Saves the same model from one rank and from four. The tensors in the index must be equal; only their blocks
// may differ.
TEST(Ranks, LeaveNoTraceOfTheLayoutInTheIndexButThePieces) {
  const TempDir dir;
  save_cut(dir / "one", 1);
  save_cut(dir / "four", 4);
  const CheckpointReader one(dir / "one"), four(dir / "four");
  ASSERT_EQ(one.index().tensors.size(), four.index().tensors.size());
  for (size_t i = 0; i < one.index().tensors.size(); ++i) {
    EXPECT_EQ(one.index().tensors[i].name, four.index().tensors[i].name);
    EXPECT_EQ(one.index().tensors[i].shape, four.index().tensors[i].shape);
  }
  EXPECT_EQ(four.index().find("fused")->blocks.size(), 4u);
  EXPECT_EQ(four.index().find("norm")->blocks.size(), 1u);
  for (const auto& entry : fs::directory_iterator(dir / "four/iter_0000005"))
    EXPECT_FALSE(entry.path().filename().string().starts_with("part_")) << entry.path();
}

TEST(Ranks, AllStopWhenOneCannotWriteAndTheOldCheckpointStays) {
  const TempDir dir;
  save_cut(dir / "save", 3);
  const auto messages = run_ranks(3, [&](int rank, Communicator& comm, Stream&) {
    auto writer = std::make_unique<CheckpointWriter>(dir / "save", 6);
    const float value = 1;
    for (int times = 0; times < (rank == 1 ? 2 : 1); ++times)
      writer->put({"x", {3}, {rank}}, {&value, DType::kF32, {1}});
    JointSave(comm, kPeerTimeout).save(std::move(writer));
  });
  EXPECT_NE(messages[1].find("is put twice"), std::string::npos) << messages[1];
  EXPECT_NE(messages[0].find("another rank could not write"), std::string::npos);
  EXPECT_NE(messages[2].find("another rank could not write"), std::string::npos);
  EXPECT_EQ(CheckpointReader(dir / "save").iteration(), 5);
  EXPECT_FALSE(file_exists(dir / "save/.iter_0000006.tmp"));
  EXPECT_FALSE(file_exists(dir / "save/iter_0000006"));
}

TEST(Ranks, AHoleBetweenThePiecesOfRanksIsNoticed) {
  const TempDir dir;
  const auto messages = run_ranks(2, [&](int rank, Communicator& comm, Stream&) {
    const float value = 1;
    auto writer = std::make_unique<CheckpointWriter>(dir / "save", 6);
    writer->put({"x", {3}, {2 * rank}}, {&value, DType::kF32, {1}});
    JointSave(comm, kPeerTimeout).save(std::move(writer));
  });
  EXPECT_NE(messages[0].find("cover 2 of 3"), std::string::npos) << messages[0];
  EXPECT_NE(messages[1], "");
  EXPECT_FALSE(latest_checkpoint(dir / "save"));
}

TEST(Params, NameTheTensorThatIsMissingOrHasAnotherShape) {
  const TempDir dir;
  save_cut(dir / "save", 1);
  const CheckpointReader reader(dir / "save");
  const auto backend = make_cpu_backend();
  Stream stream = backend->make_stream();
  const auto message = [&](const char* name, Shape shape) -> std::string {
    ParamTable table;
    Param param;
    param.name = name;
    param.global = shape;
    table.add(param);
    const ParamStore store(table, stream, {.grads = false});
    try {
      load_params(reader, table, stream);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kData);
      return error.what();
    }
    return {};
  };
  EXPECT_EQ(message("norm", {5}), "");
  EXPECT_NE(message("norm", {6}).find("\"norm\" is [5], wanted [6]"), std::string::npos);
  EXPECT_NE(message("nrm", {5}).find("the nearest name is \"norm\""), std::string::npos);
}

}  // namespace
}  // namespace megalith
