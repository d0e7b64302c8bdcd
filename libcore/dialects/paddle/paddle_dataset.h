#pragma once

#include <string>

namespace megalith {

/// The prefix of the one dataset in `folder` (PaddleNLP's --input_dir): of a pair NAME.bin and NAME.idx, else
/// of NAME_ids.npy with NAME_idx.npz, of which such a pair is made first, in `cache`, or beside them when
/// that is empty: NAME.from_npy-HASH.bin and .idx, the hash being of the arrays' paths, sizes and times, so
/// that it is taken again for these files as they are, and for no others. The .npy has all ids in a row (16
/// to 64 bits), the .npz's member "lens" the tokens of each document. kUsage unless there is one dataset;
/// kNoInput, kData, kIo.
std::string dataset_of_folder(const std::string& folder, const std::string& cache);

}  // namespace megalith
