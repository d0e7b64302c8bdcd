// Converts with kill -9 or a full disk at every call in turn. The output must be the old one, the new one or
// absent.
#include <cerrno>
#include <filesystem>

#include <gtest/gtest.h>

#include "libcore/base/log.h"
#include "libcore/checkpoint/gguf/gguf.h"
#include "libcore/checkpoint/native/reader.h"
#include "libcore/convert/output/adapter.h"
#include "libcore/convert/targets/gguf.h"
#include "libcore/convert/targets/hf.h"
#include "libcore/convert/targets/megalith.h"
#include "libcore/convert/targets/megatron.h"
#include "libcore/io/files/file.h"
#include "tests/support/faults.h"
#include "tests/support/files.h"
#include "tests/support/goldens.h"

namespace megalith {
namespace {

namespace fs = std::filesystem;
using test::convert_golden;
using test::Fault;
using test::FaultRun;
using test::TempDir;

class ConvertCrash : public testing::Test {
 protected:
  // For each system call in turn: calls `start`, then `convert` with a fault at that call, then `check` with
  // the outcome.
  void at_every_call(Fault fault, const std::function<void()>& start, const std::function<void()>& convert,
                     const std::function<void(const FaultRun&)>& check) {
    for (fault.at = 1;; ++fault.at) {
      start();
      const FaultRun run = run_with_fault(fault, convert);
      if (!run.fired) break;
      SCOPED_TRACE(concat("call ", fault.at, ", ", run.call));
      check(run);
      if (HasFailure()) return;
    }
    EXPECT_GT(fault.at, 6);
  }
  // Throws unless the folder is a complete export with these weights.
  void expect_whole(const std::string& folder) {
    const ModelSource source(folder);
    EXPECT_TRUE(file_exists(folder + "/generation_config.json") && file_exists(folder + "/README.md"));
    EXPECT_EQ(read_file(folder + "/model.safetensors"), read_file(convert_golden("gpt2/model.safetensors")));
  }
  const ModelSource source_{convert_golden("gpt2")};
  const Conversion conversion_{.source = source_, .tokenizer_folder = convert_golden("gpt2")};
  const TempDir dir_;
  const std::string out_ = dir_ / "out";
};

TEST_F(ConvertCrash, AnExportIsWholeOrNotThere) {
  for (const Fault& fault : {Fault{.mode = Fault::kKill}, Fault{.mode = Fault::kFail, .error = ENOSPC}})
    at_every_call(
        fault, [&] { fs::remove_all(out_); }, [&] { export_hf(conversion_, out_); },
        [&](const FaultRun& run) {
          if (fs::exists(out_)) expect_whole(out_);
          if (fault.mode == Fault::kFail) {
            EXPECT_TRUE(run.exit_code == 74 || (run.exit_code == 0 && fs::exists(out_))) << run.exit_code;
          }
        });
}

TEST_F(ConvertCrash, AnEarlierExportIsThereUntilTheNewOneIs) {
  at_every_call(
      {.mode = Fault::kKill},
      [&] {
        if (!fs::exists(out_)) fs::copy(convert_golden("gpt2"), out_);
        fs::remove(out_ + "/README.md");  // its absence tells the old folder from a new one
      },
      [&] { export_hf(conversion_, out_); },
      [&](const FaultRun&) {
        if (file_exists(out_ + "/README.md")) return expect_whole(out_);
        EXPECT_EQ(read_file(out_ + "/model.safetensors"),
                  read_file(convert_golden("gpt2/model.safetensors")));
        EXPECT_TRUE(file_exists(out_ + "/config.json") && file_exists(out_ + "/tokenizer.json"));
      });
}

TEST_F(ConvertCrash, ACheckpointIsWholeOrNotThere) {
  at_every_call(
      {.mode = Fault::kKill}, [&] { fs::remove_all(out_); }, [&] { export_checkpoint(conversion_, out_); },
      [&](const FaultRun&) {
        if (fs::exists(out_)) CheckpointReader(out_).verify();
      });
}

// After a kill or a full disk at any call, the output must be either absent or complete.
TEST_F(ConvertCrash, EveryTargetIsWholeOrNotThere) {
  const Adapter adapter(convert_golden("lora_gpt2"));
  struct Target {
    std::function<void()> write, check;
  };
  const std::string gguf = out_ + ".gguf";
  Conversion checked = conversion_;
  checked.check = true;  // the check runs on threads of its own, which wait for written tensors
  const auto expect_megatron = [&] {
    if (!fs::exists(out_)) return;
    const ModelSource written(out_, {.vocab_size = 300});
    EXPECT_EQ(written.tensors().tensors().size(), source_.tensors().tensors().size());
    EXPECT_TRUE(file_exists(out_ + "/tokenizer/vocab.json"));
  };
  const std::vector<Target> targets = {
      {[&] { export_megatron(conversion_, out_, {.tensor = 1, .pipeline = 2}); }, expect_megatron},
      {[&] { export_megatron(checked, out_, {.tensor = 1, .pipeline = 2}); }, expect_megatron},
      {[&] { export_hf(checked, out_); },
       [&] {
         if (fs::exists(out_)) expect_whole(out_);
       }},
      {[&] { export_gguf(conversion_, gguf, {}); },
       [&] {
         if (fs::exists(gguf)) {
           EXPECT_EQ(GgufFile(gguf).tensors().size(), source_.tensors().tensors().size());
         }
       }},
      {[&] { export_adapter(adapter, out_, {}); },
       [&] {
         if (fs::exists(out_)) {
           EXPECT_EQ(Adapter(out_).modules().size(), adapter.modules().size());
         }
       }}};
  for (const Target& target : targets)
    for (const Fault& fault : {Fault{.mode = Fault::kKill}, Fault{.mode = Fault::kFail, .error = ENOSPC}})
      at_every_call(
          fault,
          [&] {
            fs::remove_all(out_);
            fs::remove(gguf);
          },
          target.write,
          [&](const FaultRun& run) {
            target.check();
            if (fault.mode == Fault::kFail) {
              EXPECT_TRUE(run.exit_code == 74 || run.exit_code == 0) << run.exit_code;
            }
          });
}

}  // namespace
}  // namespace megalith
