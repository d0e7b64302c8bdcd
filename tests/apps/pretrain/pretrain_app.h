#pragma once

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/text.h"
#include "libcore/data/indexed/indexed_dataset.h"
#include "libcore/io/files/file.h"
#include "libcore/json/json.h"
#include "tests/support/files.h"
#include "tests/support/json_log.h"
#include "tests/support/once/pattern.h"

namespace megalith::test {

/// A folder with a dataset, c.bin and c.idx: 40 documents of noisy counting.
class PretrainApp : public testing::Test {
 protected:
  PretrainApp() {
    constexpr int kVocab = 61;
    IndexedDatasetWriter writer(dir_ / "c", optimal_dtype(kVocab));
    uint64_t noise = 1;
    for (int document = 0; document < 40; ++document) {
      std::vector<int32_t> ids;
      for (int i = 0; i < 50 + document; ++i) {
        noise = noise * 6364136223846793005ULL + 1442695040888963407ULL;
        ids.push_back(static_cast<int32_t>((document + 2 * i + static_cast<int>(noise >> 63)) % kVocab));
      }
      writer.add_document(ids, std::vector<int32_t>{static_cast<int32_t>(ids.size())});
    }
    writer.finish();
  }
  CommandResult run(const std::string& options) const {
    return run_command("cd " + dir_.path().string() + " && " + app("pretrain") + " " + options);
  }
  CommandResult train(const std::string& options) const { return run(kModel + options); }
  std::string file(const std::string& name) const { return read_file(dir_ / name); }
  std::vector<Json> lines(const std::string& name, const std::string& type) const {
    return log_lines(dir_ / name, type);
  }
  /// The log's lines with a loss, without their times.
  static std::string losses(const std::string& log) {
    std::string out;
    for (const std::string& line : split(log, '\n'))
      if (line.find(" loss") != std::string::npos && line.find("iteration") != std::string::npos)
        out += test::replaced(line, "^ \\[[^\\]]*\\]|elapsed[^|]*\\||tokens/s.*", "|") + "\n";
    return out;
  }
  const std::string kModel =
      "--num-layers 2 --hidden-size 16 --num-attention-heads 2 --seq-length 12 --max-position-embeddings 12 "
      "--micro-batch-size 2 --global-batch-size 4 --train-iters 20 --lr 0.01 --min-lr 0.001 --lr-decay-style "
      "cosine "
      "--lr-warmup-iters 2 --data-path c --vocab-size 61 --eval-interval 10 --eval-iters 2 --log-interval 5 "
      "--split 8,1,1 --threads 1 ";
  TempDir dir_;
};

}  // namespace megalith::test
