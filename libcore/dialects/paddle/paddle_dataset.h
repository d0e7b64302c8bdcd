#pragma once

#include <string>

namespace megalith {

/// The prefix of the only dataset in `folder` (PaddleNLP's --input_dir): a pair NAME.bin and NAME.idx, or
/// NAME_ids.npy with NAME_idx.npz. From the arrays, first creates a pair NAME.from_npy-HASH.bin and .idx in
/// `cache`, or next to the arrays when `cache` is empty. The hash covers the arrays' paths, sizes and times,
/// so the pair is reused only as long as these files are unchanged. The .npy holds the ids of all documents
/// in a row (16 to 64 bits); the member "lens" of the .npz holds the number of tokens in each document.
/// kUsage unless there is exactly one dataset; kNoInput, kData, kIo.
std::string dataset_of_folder(const std::string& folder, const std::string& cache);

}  // namespace megalith
