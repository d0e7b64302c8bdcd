#pragma once

#include <string>

namespace megalith {

/// The prefix of the one dataset in `folder` (PaddleNLP's --input_dir): a pair NAME.bin and NAME.idx, or
/// NAME_ids.npy with NAME_idx.npz. From the latter a pair NAME.from_npy-HASH.bin and .idx is first made in
/// `cache`, or next to them when that is empty. The hash covers the arrays' paths, sizes and times, so the
/// pair is reused for these files while they are unchanged, and for no others. The .npy holds the ids of all
/// documents in a row (16 to 64 bits), and the .npz's member "lens" the number of tokens in each document.
/// kUsage unless there is exactly one dataset; kNoInput, kData, kIo.
std::string dataset_of_folder(const std::string& folder, const std::string& cache);

}  // namespace megalith
