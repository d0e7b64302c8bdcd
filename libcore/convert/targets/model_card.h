#pragma once

#include <map>
#include <string>

#include "libcore/convert/output/conversion.h"

namespace megalith {

/// README.md of an exported model, by Hugging Face's rules: what it is, how to run it, and, of a checkpoint
/// that was trained here, its data, every option and a picture of the loss (loss.svg), drawn from the losses
/// that the checkpoint keeps; of one that keeps none from the JSON lines of the run, when its options name
/// them and the file is there or beside the checkpoint. Names to contents.
std::map<std::string, std::string> model_card(const Conversion& conversion, const std::string& title,
                                              int64_t parameters);

}  // namespace megalith
