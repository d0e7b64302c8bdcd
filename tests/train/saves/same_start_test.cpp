#include "libcore/train/saves/same_start.h"

#include <chrono>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/finetune/memory_tensors.h"
#include "libcore/parallel/threads/thread_comm.h"

namespace megalith {
namespace {

constexpr int kRanks = 3;

/// What a rank begins with.
struct Begin {
  float value = 1;
  bool there = true;
  int64_t iteration = 5;
  std::string option = "seed";
};

/// The message of the comparison's error where the last rank begins with `last`; empty: there is none.
std::string refusal(const Begin& last) {
  try {
    run_thread_ranks(kRanks, {}, [&](Communicator& world) {
      const Begin mine = world.rank() + 1 == kRanks ? last : Begin{};
      MemoryTensors file("run" + std::to_string(world.rank()));
      file.put("w", {2, 2}, {1, 2, 3, mine.value});
      StartPoint start{.path = file.path(), .tensors = {}};
      start.args = Json(Json::Object{{mine.option, 1}});
      start.state = TrainState{.iteration = mine.iteration};
      const std::vector<Origin> origins = {{"--model", nullptr},
                                           {"--load", mine.there ? &file : nullptr, &start}};
      require_same_start(world, std::chrono::seconds(20), origins);
    });
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kData) << error.what();
    return error.what();
  }
  return {};
}

TEST(SameStart, IsTakenFromCopies) {
  EXPECT_EQ(refusal({}), "");
}

TEST(SameStart, SeesOtherValuesAndOtherProgress) {
  for (const Begin& other :
       {Begin{.value = 2}, Begin{.there = false}, Begin{.iteration = 6}, Begin{.option = "x"}}) {
    const std::string text = refusal(other);
    EXPECT_NE(text.find(": --load"), std::string::npos) << text;
    EXPECT_NE(text.find(" has other contents on rank 2 than on rank 0; give every machine the same files"),
              std::string::npos)
        << text;
  }
}

}  // namespace
}  // namespace megalith
