#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "libcore/checkpoint/native/reader.h"
#include "libcore/config/model_config.h"
#include "libcore/json/json.h"
#include "libcore/train/saves/start_point.h"
#include "libcore/train/step/trainer.h"

/// Pairs of files in the form of the PyTorch DDP tutorial: ROOT/model_NNNNNN.pth, the state_dict() of a
/// model, and ROOT/optimizer_NNNNNN.pth, that of torch.optim.AdamW. NNNNNN counts the saves of a run from 0.
/// A model that GPTModel has a place for (fits_tutorial()) has its names there, any other model our own, as
/// all had in pairs of Megalith 0.x, which were numbered by steps. Our optimizer files have one more key,
/// "megalith": the run's progress, as JSON. torch.load(weights_only=True) reads both.
namespace megalith {

inline constexpr const char* kOwnKey = "megalith";
/// The names of Adam's tensors: ours and torch's.
inline constexpr std::pair<const char*, const char*> kMoments[] = {
    {"m.", "exp_avg"}, {"v.", "exp_avg_sq"}, {"master.", "master"}};

/// `kind`: "model" or "optimizer".
std::string pair_path(const std::string& root, const char* kind, int64_t number);
/// The numbers NNNNNN of the model files in the folder `root`, in ascending order.
std::vector<int64_t> pair_numbers(const std::string& root);
/// How many steps the run had done that saved the pair; nothing if its optimizer file is missing, cannot be
/// read or does not say.
std::optional<int64_t> pair_iteration(const std::string& root, int64_t number);
/// The options of the run that saved the pair; null if no run of ours did.
Json pair_args(const std::string& root, int64_t number);

/// Reads the pair with this number; a run resumes from one of ours bit for bit. From a pair of torch's own it
/// resumes with the moments, after as many steps as the optimizer has done. If there is only a model file,
/// the result holds only weights. `model` says how GPTModel's layers become ours. kNoInput, with a list of
/// the existing numbers; kData.
StartPoint read_pair(const std::string& root, int64_t number, const ModelConfig& model);

/// Writes the pair with this number from a checkpoint in our format of the trainer's state: the optimizer's
/// file first, since a model file without it would count as weights only.
void write_pair(const std::string& root, int64_t number, const CheckpointReader& ours, Trainer&);

}  // namespace megalith
