#pragma once

namespace megalith::test {

// Options of megalith-autoplan.

/// GPT-3 with 22 billion parameters (Korthikanti et al. 2022, table 3) on 64 devices.
inline constexpr const char* k22b =
    " --world-size 64 --local-world-size 8 --max-global-batch-size 16 --num-layers 48 "
    "--num-attention-heads 64 --hidden-size 6144 --seq-length 2048 --max-position-embeddings 2048 "
    "--vocab-size 50257";

/// A small GPT on this machine's processor.
inline constexpr const char* kHere =
    " --gpu local --global-batch-size 16 --num-layers 2 --hidden-size 64 --num-attention-heads 4 "
    "--seq-length 64 --vocab-size 512";

}  // namespace megalith::test
