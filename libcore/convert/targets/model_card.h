#pragma once

#include <map>
#include <string>

#include "libcore/convert/output/conversion.h"

namespace megalith {

/// README.md of an exported model, by Hugging Face's rules: what it is and how to run it. For a checkpoint
/// that was trained here, also its data, every option and a picture of the loss (loss.svg). The picture is
/// drawn from the losses that the checkpoint keeps; if it keeps none, from the run's log of JSON lines,
/// provided that the run's options name this file and that it exists there or next to the checkpoint. Returns
/// file names and contents.
std::map<std::string, std::string> model_card(const Conversion& conversion, const std::string& title,
                                              int64_t parameters);

}  // namespace megalith
